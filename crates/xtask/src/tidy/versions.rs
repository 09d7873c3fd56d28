//! The version of the project is said in many files that people install from: all say the same.

use super::Source;

/// Texts before a version of ours in recipes and pages.
const MARKS: [&str; 5] = ["recoup-", "recoup_", "recoup/", "version(\"", "version: \""];

/// Lists places whose version differs from that of the workspace.
pub(super) fn complaints(sources: &[Source]) -> Vec<String> {
    let Some(manifest) = sources.iter().find(|source| source.path == "Cargo.toml") else {
        return vec!["Cargo.toml: not there".to_owned()];
    };
    let Some(version) = manifest.text.lines().find_map(|line| line.strip_prefix("version = \"")) else {
        return vec![manifest.complaint(0, "no version")];
    };
    let version = version.trim_end_matches('"');
    let mut found = wrong(manifest, version, &["version = \""], |line| line.starts_with("recoup"));
    let is_installed_from =
        |source: &&Source| ["packaging/", "docs/install/"].iter().any(|p| source.path.starts_with(p));
    found.extend(sources.iter().filter(is_installed_from).flat_map(|source| wrong(source, version, &MARKS, |_| true)));
    found
}

/// Places of a source, in lines that count, where another version follows one of the marks.
fn wrong(source: &Source, version: &str, marks: &[&str], counts: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in source.text.lines().enumerate().filter(|(_, line)| counts(line)) {
        for mark in marks {
            let stated = line.match_indices(mark).map(|(at, _)| number(&line[at + mark.len()..]));
            let other = stated.filter(|stated| stated.contains('.') && *stated != version);
            found.extend(
                other.map(|other| source.complaint(index, format!("version {other}, Cargo.toml has {version}"))),
            );
        }
    }
    found
}

/// The digits and points that a text begins with.
fn number(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_left_behind_is_named_with_its_line() {
        let sources = [
            Source::new(
                "Cargo.toml",
                "version = \"0.2.0\"\nrecoup-io = { path = \"io\", version = \"0.1.0\" }\nzstd = \"0.13\"\n",
            ),
            Source::new("docs/install/apt.md", "Get recoup_0.2.0-1_amd64.deb.\nOr recoup-0.1.9.tar.gz.\n"),
            Source::new("packaging/conda/recipe.yaml", "  version: \"0.2.1\"\n"),
            Source::new("docs/plan.md", "recoup-0.0.1\n"),
        ];
        let found = complaints(&sources);
        assert_eq!(
            found,
            [
                "Cargo.toml:2: version 0.1.0, Cargo.toml has 0.2.0",
                "docs/install/apt.md:2: version 0.1.9, Cargo.toml has 0.2.0",
                "packaging/conda/recipe.yaml:1: version 0.2.1, Cargo.toml has 0.2.0",
            ]
        );
    }
}
