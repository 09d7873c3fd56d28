//! Checks of the repository as a whole: every crate obeys the lints, and the map is true.

use std::path::Path;

use super::Source;

/// The page whose first code block is the map.
const MAP: &str = "ARCHITECTURE.md";

pub(super) fn complaints(root: &Path, sources: &[Source]) -> Vec<String> {
    let manifests = sources.iter().filter(|source| source.file_name() == "Cargo.toml" && source.path.contains('/'));
    let mut found: Vec<String> = manifests.clone().filter_map(without_lints).collect();
    let Some(map) = sources.iter().find(|source| source.path == MAP) else {
        found.push(format!("{MAP}: not there"));
        return found;
    };
    let paths = mapped_paths(&map.text);
    let missing = paths.iter().filter(|(_, path)| !root.join(path).exists());
    found.extend(missing.map(|(index, path)| map.complaint(*index, format!("{path} does not exist"))));
    let crates = manifests.filter_map(|source| source.path.strip_suffix("/Cargo.toml"));
    found.extend(wrong_dependencies(map, sources));
    found.extend(crossed_families(map, sources));
    let unmapped = crates.filter(|name| !paths.iter().any(|(_, path)| path == name));
    found.extend(unmapped.map(|name| format!("{MAP}: {name} is not on the map")));
    found
}

fn without_lints(manifest: &Source) -> Option<String> {
    let is_lazy = !manifest.text.contains("[lints]\nworkspace = true");
    is_lazy.then(|| manifest.complaint(0, "[lints] workspace = true is missing"))
}

/// Crates whose manifests differ from the second code block of the map. A line of it names a crate,
/// or several by commas, and all it uses.
fn wrong_dependencies(map: &Source, sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in block_lines(&map.text, 3) {
        let Some((crates, used)) = line.split_once("  ") else { continue };
        let mut told: Vec<&str> = used.split_whitespace().filter(|name| *name != "none").collect();
        told.sort_unstable();
        for name in crates.split(',').map(str::trim) {
            let Some(manifest) = sources.iter().find(|source| is_manifest_of(name, &source.path)) else {
                found.push(map.complaint(index, format!("{name} is no crate")));
                continue;
            };
            let uses = dependencies(&manifest.text);
            if uses != told {
                let uses = if uses.is_empty() { "none".to_owned() } else { uses.join(" ") };
                found.push(map.complaint(index, format!("{name} uses {uses}")));
            }
        }
    }
    found
}

/// Number and text of the lines behind this many fences of code blocks.
fn block_lines(page: &str, fences: usize) -> impl Iterator<Item = (usize, &str)> {
    let mut seen = 0;
    let counted = page.lines().enumerate().map(move |line| {
        seen += usize::from(line.1.starts_with("```"));
        (seen, line)
    });
    counted.filter(move |(seen, _)| *seen == fences).map(|(_, line)| line)
}

/// Returns whether a path is the manifest of the crate in a folder of this name, in whatever folder
/// that is.
fn is_manifest_of(name: &str, path: &str) -> bool {
    path.strip_suffix("/Cargo.toml").is_some_and(|folder| folder.rsplit('/').next() == Some(name))
}

/// Lines `family NAME: CRATES` of the second code block of the map that are not true: a crate of a
/// family uses the pipeline, or the pipeline uses one, itself or through another crate.
fn crossed_families(map: &Source, sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    let uses = |name: &str| {
        let manifest = sources.iter().find(|source| is_manifest_of(name, &source.path));
        manifest.map(|manifest| dependencies(&manifest.text)).unwrap_or_default()
    };
    let mut road = vec!["pipeline"];
    let mut next = 0;
    while let Some(name) = road.get(next) {
        next += 1;
        let new: Vec<&str> = uses(name).into_iter().filter(|name| !road.contains(name)).collect();
        road.extend(new);
    }
    let families = block_lines(&map.text, 3).filter_map(|(index, line)| Some((index, line.strip_prefix("family ")?)));
    for (index, line) in families {
        let Some((family, crates)) = line.split_once(':') else { continue };
        for name in crates.split_whitespace() {
            if road.contains(&name) {
                found.push(map.complaint(index, format!("the pipeline uses {name} of the family {family}")));
            }
            if uses(name).contains(&"pipeline") {
                found.push(map.complaint(index, format!("{name} of the family {family} uses the pipeline")));
            }
        }
    }
    found
}

/// The crates of ours that a manifest names below `[dependencies]`, in order.
fn dependencies(manifest: &str) -> Vec<&str> {
    let below = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let lines = below.take_while(|line| !line.starts_with('['));
    let name = |line: &'_ str| line.split(['.', ' ', '=']).next().map(str::len);
    let names = lines.filter_map(|line| Some(&line[..name(line)?]));
    let mut found: Vec<&str> =
        names.filter_map(|name| if name == "recoup" { Some(name) } else { name.strip_prefix("recoup-") }).collect();
    found.sort_unstable();
    found
}

/// Line and path of each entry of the first code block: its first word, while that is a path.
fn mapped_paths(page: &str) -> Vec<(usize, String)> {
    let lines = page.lines().enumerate();
    let block = lines.skip_while(|(_, line)| !line.starts_with("```")).skip(1);
    let block = block.take_while(|(_, line)| !line.starts_with("```"));
    let entries = block.filter(|(_, line)| !line.starts_with(' '));
    entries.filter_map(|(index, line)| Some((index, line.split_whitespace().next()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn crate_without_workspace_lints_is_found() {
        let lazy = [source("io/Cargo.toml", "[package]\n"), source(MAP, "```text\nio  stores\n```\n")];
        assert!(complaints(&crate::root(), &lazy).iter().any(|what| what.starts_with("io/Cargo.toml:1")));
    }

    #[test]
    fn dependencies_that_the_map_does_not_tell_are_found() {
        let page = "```text\nio  stores\n```\nwords\n```text\nio, cache  core\ngone       none\n```\n";
        let manifest =
            |uses: &str| format!("[lints]\nworkspace = true\n[dependencies]\n{uses}[features]\nrecoup-no = []\n");
        let sources = [
            source("io/Cargo.toml", &manifest("recoup-core.workspace = true\nlibc = \"1\"\n")),
            source(
                "crates/cache/Cargo.toml",
                &manifest("recoup-core.workspace = true\nrecoup-io = { path = \"x\" }\n"),
            ),
        ];
        let found = wrong_dependencies(&source(MAP, page), &sources);
        assert_eq!(found, ["ARCHITECTURE.md:6: cache uses core io", "ARCHITECTURE.md:7: gone is no crate"]);
    }

    #[test]
    fn families_and_the_pipeline_stay_apart() {
        let page = "```text\n```\n```text\nfamily adjoint: tape\nfamily memory: memory derive\n```\n";
        let uses = |name: &str, used: &str| {
            source(&format!("crates/adjoint/{name}/Cargo.toml"), &format!("[dependencies]\nrecoup-{used} = 1\n"))
        };
        let map = source(MAP, page);
        let apart = [uses("tape", "core"), uses("memory", "io"), uses("pipeline", "model"), uses("model", "core")];
        assert_eq!(crossed_families(&map, &apart), [""; 0]);
        let crossed = [uses("tape", "pipeline"), uses("pipeline", "model"), uses("model", "derive")];
        let found = [
            "ARCHITECTURE.md:4: tape of the family adjoint uses the pipeline",
            "ARCHITECTURE.md:5: the pipeline uses derive of the family memory",
        ];
        assert_eq!(crossed_families(&map, &crossed), found);
    }

    #[test]
    fn map_with_a_lost_entry_or_a_lost_crate_is_found() {
        let page = "# Map\n```text\nio        stores\nnowhere   nothing\n          more words\n```\n";
        let sources = [source("tests/Cargo.toml", "[lints]\nworkspace = true\n"), source(MAP, page)];
        let found = complaints(&crate::root(), &sources);
        assert_eq!(found, ["ARCHITECTURE.md:4: nowhere does not exist", "ARCHITECTURE.md: tests is not on the map"]);
    }
}
