//! Links and pictures of pages in Markdown.
//!
//! Promises: a link in code is none. Must not know where pages are shown.

use std::path::{Component, Path, PathBuf};

/// A link or a picture of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkdownLink {
    /// Line of the page, from 0.
    pub(crate) line_index: usize,
    /// The text between the parentheses.
    pub(crate) target: String,
}

impl MarkdownLink {
    /// The file it points to, as a path below the repository; `None` for addresses of the network
    /// and for places of the same page.
    pub(crate) fn file(&self, page: &str) -> Option<String> {
        let is_far = self.target.contains("://") || self.target.starts_with("mailto:");
        let path = self.target.split('#').next().unwrap_or_default();
        (!is_far && !path.is_empty()).then(|| beside(page, path))
    }
}

/// The path that `target` means on a page, without dots.
pub(crate) fn beside(page: &str, target: &str) -> String {
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let mut path = PathBuf::new();
    for part in folder.join(target).components() {
        match part {
            Component::ParentDir if path.file_name().is_some_and(|name| name != "..") => {
                path.pop();
            }
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path.to_string_lossy().into_owned()
}

/// The links of a page, in order.
pub(crate) fn links(page: &str) -> Vec<MarkdownLink> {
    let mut is_code = false;
    let mut found = Vec::new();
    for (line_index, line) in page.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code {
            continue;
        }
        let prose = without_code(line);
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        found.extend(targets.map(|(target, _)| MarkdownLink { line_index, target: target.to_owned() }));
    }
    found
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_prose_are_found_and_code_is_left_out() {
        let page = "See [a](b.md) and ![`c`](../d.svg).\n```c\nx[i](y);\n```\n`z[i](w)` [e](f.md#g)\n";
        let targets: Vec<_> = links(page).into_iter().map(|link| (link.line_index, link.target)).collect();
        let expected = [(0, "b.md"), (0, "../d.svg"), (4, "f.md#g")];
        assert_eq!(targets, expected.map(|(line, target)| (line, target.to_owned())));
    }

    #[test]
    fn files_are_named_from_the_top() {
        let link = |target: &str| MarkdownLink { line_index: 0, target: target.to_owned() };
        assert_eq!(link("../io/FORMAT.md#raw").file("docs/run.md").as_deref(), Some("io/FORMAT.md"));
        assert_eq!(link("./a.md").file("docs/run.md").as_deref(), Some("docs/a.md"));
        assert_eq!(link("#raw").file("docs/run.md"), None);
        assert_eq!(link("https://a.org/b.md").file("docs/run.md"), None);
        assert_eq!(link("../../a.md").file("docs/run.md").as_deref(), Some("../a.md"));
    }
}
