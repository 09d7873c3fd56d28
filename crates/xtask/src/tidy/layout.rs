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
    let unmapped = crates.filter(|name| !paths.iter().any(|(_, path)| path == name));
    found.extend(unmapped.map(|name| format!("{MAP}: {name} is not on the map")));
    found
}

fn without_lints(manifest: &Source) -> Option<String> {
    let is_lazy = !manifest.text.contains("[lints]\nworkspace = true");
    is_lazy.then(|| manifest.complaint(0, "[lints] workspace = true is missing"))
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
    fn map_with_a_lost_entry_or_a_lost_crate_is_found() {
        let page = "# Map\n```text\nio        stores\nnowhere   nothing\n          more words\n```\n";
        let sources = [source("tests/Cargo.toml", "[lints]\nworkspace = true\n"), source(MAP, page)];
        let found = complaints(&crate::root(), &sources);
        assert_eq!(found, ["ARCHITECTURE.md:4: nowhere does not exist", "ARCHITECTURE.md: tests is not on the map"]);
    }
}
