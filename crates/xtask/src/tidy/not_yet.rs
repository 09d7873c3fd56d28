//! Lists of the folders and files that do not keep a rule yet. They only shrink: what keeps the
//! rule is taken off, and nothing is added.

use super::Source;

/// A rule for single files, and the list of those that do not keep it yet.
pub(super) struct ListedRule<'a> {
    /// The complaints about one file.
    pub(super) check: fn(&Source) -> Vec<String>,
    /// Folders and files that are excused.
    pub(super) not_yet: &'a [&'a str],
    /// The file that holds the list.
    pub(super) list: &'static str,
}

impl ListedRule<'_> {
    /// Returns the complaints about Rust files that are not excused, and one for each entry of the
    /// list that is clean.
    pub(super) fn complaints(&self, sources: &[Source]) -> Vec<String> {
        let rust = || sources.iter().filter(|source| source.is_rust());
        let is_listed = |source: &&Source| self.not_yet.iter().any(|path| source.path.starts_with(path));
        let mut found: Vec<String> = rust().filter(|source| !is_listed(source)).flat_map(self.check).collect();
        let is_clean = |path: &&&str| {
            rust().filter(|source| source.path.starts_with(**path)).all(|source| (self.check)(source).is_empty())
        };
        let clean = self.not_yet.iter().filter(is_clean);
        found.extend(clean.map(|path| format!("{}: {path} is clean: take it off the list", self.list)));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    fn is_bad(source: &Source) -> Vec<String> {
        if source.text.contains("bad") { vec![format!("{} is bad", source.path)] } else { Vec::new() }
    }

    #[test]
    fn list_excuses_its_folders_until_they_are_clean() {
        let sources = [
            source("old/src/a.rs", "bad"),
            source("clean/src/a.rs", "good"),
            source("new/src/a.rs", "bad"),
            source("new/page.md", "bad"),
        ];
        let rule = ListedRule { check: is_bad, not_yet: &["old/", "clean/"], list: "rule.rs" };
        let found = rule.complaints(&sources);
        assert_eq!(found, ["new/src/a.rs is bad", "rule.rs: clean/ is clean: take it off the list"]);
    }
}
