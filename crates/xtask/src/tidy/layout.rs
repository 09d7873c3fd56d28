//! Checks of the repository as a whole: every crate obeys the lints, and the map is true.

use std::path::Path;

use super::Source;

/// The page with the map, the dependencies and the invariants, each below its heading.
const MAP: &str = "ARCHITECTURE.md";
/// The page with the table of losses, and the tests that go through it.
const LOSSES: [&str; 2] = ["docs/operations.md", "crates/doors/cli/tests/survives.rs"];

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
    found.extend(unproven_invariants(map, sources));
    if let [Some(page), Some(tests)] = LOSSES.map(|path| sources.iter().find(|source| source.path == path)) {
        found.extend(untried_losses(page, tests));
    }
    let unmapped = crates.filter(|name| !paths.iter().any(|(_, path)| path == name));
    found.extend(unmapped.map(|name| format!("{MAP}: {name} is not on the map")));
    found
}

fn without_lints(manifest: &Source) -> Option<String> {
    let is_lazy = !manifest.text.contains("[lints]\nworkspace = true");
    is_lazy.then(|| manifest.complaint(0, "[lints] workspace = true is missing"))
}

/// Crates whose manifests differ from the code block of their section. A line of it names a crate,
/// or several by commas, and all it uses.
fn wrong_dependencies(map: &Source, sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in section(&map.text, "Dependencies") {
        let Some((crates, used)) = line.split_once("  ") else { continue };
        let mut told: Vec<&str> = used.split_whitespace().filter(|name| *name != "none").collect();
        told.sort_unstable();
        for name in crates.split(',').map(str::trim) {
            let Some(manifest) = sources.iter().find(|source| is_manifest_of(name, source)) else {
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

/// Returns whether a file is the manifest of the package of this name.
fn is_manifest_of(name: &str, source: &Source) -> bool {
    let names = ["", "recoup-"].map(|prefix| format!("[package]\nname = \"{prefix}{name}\"\n"));
    source.file_name() == "Cargo.toml" && names.iter().any(|name| source.text.starts_with(name))
}

/// Lines `family NAME: CRATES` of the section on dependencies that are not true: a crate of a
/// family uses the pipeline, or the pipeline uses one, itself or through another crate.
fn crossed_families(map: &Source, sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    let uses = |name: &str| {
        let manifest = sources.iter().find(|source| is_manifest_of(name, source));
        manifest.map(|manifest| dependencies(&manifest.text)).unwrap_or_default()
    };
    let mut road = vec!["pipeline"];
    let mut next = 0;
    while let Some(name) = road.get(next) {
        next += 1;
        let new: Vec<&str> = uses(name).into_iter().filter(|name| !road.contains(name)).collect();
        road.extend(new);
    }
    let families =
        section(&map.text, "Dependencies").filter_map(|(index, line)| Some((index, line.strip_prefix("family ")?)));
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

/// Lines of the page from a heading, of any level, to the next of its level.
fn section<'a>(page: &'a str, title: &str) -> impl Iterator<Item = (usize, &'a str)> {
    let level = |line: &str| line.bytes().take_while(|byte| *byte == b'#').count();
    let is_heading = move |line: &str| line.starts_with('#') && line.trim_start_matches('#').trim() == title;
    let mut lines = page.lines().enumerate().skip_while(move |(_, line)| !is_heading(line));
    let top = lines.next().map_or(0, |(_, line)| level(line));
    lines.take_while(move |(_, line)| !(1..=top).contains(&level(line)))
}

/// Line and path of each row of the map's tables: the quoted path of its first column, in bold or
/// not.
fn mapped_paths(page: &str) -> Vec<(usize, String)> {
    let rows = section(page, "Map").filter_map(|(index, line)| Some((index, line.strip_prefix("| ")?)));
    let path =
        |row: &str| row.trim_start_matches("**").strip_prefix('`')?.split_once('`').map(|(path, _)| path.to_owned());
    rows.filter_map(|(index, row)| Some((index, path(row)?))).collect()
}

/// Invariants that name no test, or one that does not exist. The name stands behind `Test:`.
fn unproven_invariants(map: &Source, sources: &[Source]) -> Vec<String> {
    let mut items: Vec<(usize, String)> = Vec::new();
    for (index, line) in section(&map.text, "Invariants") {
        match items.last_mut() {
            _ if line.starts_with("- **") => items.push((index, line.to_owned())),
            Some((_, item)) if line.starts_with(' ') => *item += line,
            _ => {}
        }
    }
    let is_test =
        |name: &str| sources.iter().any(|source| source.is_rust() && source.text.contains(&format!("fn {name}()")));
    let complaint = |(index, item): (usize, String)| {
        let name = item.split_once("Test:").and_then(|(_, rest)| rest.split('`').nth(1));
        match name {
            Some(name) if is_test(name) => None,
            Some(name) => Some(map.complaint(index, format!("no test {name}"))),
            None => Some(map.complaint(index, "an invariant without a test")),
        }
    };
    items.into_iter().filter_map(complaint).collect()
}

/// Rows of the table of losses that name no test in their last column, or one that does not exist.
fn untried_losses(page: &Source, tests: &Source) -> Vec<String> {
    let rows = section(&page.text, "What survives what").filter(|(_, line)| line.starts_with("| ")).skip(1);
    let complaint = |(index, row): (usize, &str)| {
        let name = row.trim_end_matches("` |").rsplit_once("| `survives::").map(|(_, name)| name);
        match name {
            Some(name) if tests.text.contains(&format!("\n#[test]\nfn {name}() {{")) => None,
            Some(name) => Some(page.complaint(index, format!("no test {name} in {}", tests.path))),
            None => Some(page.complaint(index, "a loss without a test")),
        }
    };
    rows.filter_map(complaint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str, uses: &str) -> Source {
        let package = format!("[package]\nname = \"recoup-{name}\"\n[lints]\nworkspace = true\n");
        let text = format!("{package}[dependencies]\n{uses}[features]\nrecoup-no = []\n");
        Source::new(&format!("crates/family/{name}/Cargo.toml"), &text)
    }

    #[test]
    fn crate_without_workspace_lints_is_found() {
        let lazy = [Source::new("io/Cargo.toml", "[package]\n"), Source::new(MAP, "# Map\n| `io` | stores |\n")];
        assert!(complaints(&crate::root(), &lazy).iter().any(|what| what.starts_with("io/Cargo.toml:1")));
    }

    #[test]
    fn dependencies_that_the_map_does_not_tell_are_found() {
        let page =
            "# Map\n## Dependencies\nwords\n```text\nio, cache  core\ngone       none\n```\n## Next\nno  crate\n";
        let sources = [
            manifest("io", "recoup-core.workspace = true\nlibc = \"1\"\n"),
            manifest("cache", "recoup-core.workspace = true\nrecoup-io = { path = \"x\" }\n"),
        ];
        let found = wrong_dependencies(&Source::new(MAP, page), &sources);
        assert_eq!(found, ["ARCHITECTURE.md:5: cache uses core io", "ARCHITECTURE.md:6: gone is no crate"]);
    }

    #[test]
    fn families_and_the_pipeline_stay_apart() {
        let map = Source::new(MAP, "# Map\n### Dependencies\nfamily adjoint: tape\nfamily memory: memory derive\n");
        let uses = |name: &str, used: &str| manifest(name, &format!("recoup-{used} = 1\n"));
        let apart = [uses("tape", "core"), uses("memory", "io"), uses("pipeline", "model"), uses("model", "core")];
        assert_eq!(crossed_families(&map, &apart), [""; 0]);
        let crossed = [uses("tape", "pipeline"), uses("pipeline", "model"), uses("model", "derive")];
        let found = [
            "ARCHITECTURE.md:3: tape of the family adjoint uses the pipeline",
            "ARCHITECTURE.md:4: the pipeline uses derive of the family memory",
        ];
        assert_eq!(crossed_families(&map, &crossed), found);
    }

    #[test]
    fn map_with_a_lost_entry_or_a_lost_crate_is_found() {
        let page =
            "# Map\n| path | what |\n|---|---|\n| **`io`** | stores |\n| `nowhere` | `more` |\n# Next\n| `else` | |\n";
        let sources = [Source::new("tests/Cargo.toml", "[lints]\nworkspace = true\n"), Source::new(MAP, page)];
        let found = complaints(&crate::root(), &sources);
        assert_eq!(found, ["ARCHITECTURE.md:5: nowhere does not exist", "ARCHITECTURE.md: tests is not on the map"]);
    }

    #[test]
    fn invariants_without_a_test_are_found() {
        let page =
            "## Invariants\n\n- **`a`**. It holds. Test:\n  `holds`.\n- **`b`**. Test: `lost`.\n- **`c`**. It may.\n";
        let sources = [Source::new("tests/a.rs", "#[test]\nfn holds() {}\n")];
        let found = unproven_invariants(&Source::new(MAP, page), &sources);
        assert_eq!(found, ["ARCHITECTURE.md:5: no test lost", "ARCHITECTURE.md:6: an invariant without a test"]);
    }

    #[test]
    fn losses_without_a_test_are_found() {
        let page =
            "## What survives what\n| loss | try |\n|---|---|\n| a | `survives::a` |\n| b | `survives::b` |\n| c | |\n";
        let found = untried_losses(&Source::new("p.md", page), &Source::new("t.rs", "\n#[test]\nfn a() {\n"));
        assert_eq!(found, ["p.md:5: no test b in t.rs", "p.md:6: a loss without a test"]);
    }
}
