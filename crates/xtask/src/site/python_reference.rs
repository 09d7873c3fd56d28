//! The reference of the Python package: pdoc, put next to the book.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::files::{clear, copy, copy_all, files_below};
use crate::succeed;

/// The modules with public names. Those that begin with an underscore are shown where they are
/// re-exported.
const MODULES: [&str; 3] = ["recoup", "recoup.scipy", "recoup.pyadjoint"];

/// The folder with the style of its pages.
const LOOKS: &str = "docs/book/pdoc";

/// The mark of a block of code in docstrings, which pdoc shows as words.
const LITERAL: &str = "<p>::</p>\n";

/// The imports of the package that wait until a name is asked for, and those that pdoc finds.
const LAZY: &str = "\nif TYPE_CHECKING:\n";
const EAGER: &str = "\nif True:\n";

/// The border of a table in a docstring, which pdoc does not draw.
const TABLE: &str = "=========";

/// Lets pdoc look at the package in `place`, with the native module that cargo has built, and
/// write its pages to `target`.
pub(super) fn make(root: &Path, place: &Path, target: &Path) -> Result<()> {
    let package = place.join("python/recoup");
    clear(&package)?;
    copy_all(&root.join("crates/doors/python/python/recoup"), &package)?;
    copy(&root.join("target/debug/librecoup_native.so"), &package.join("_native.abi3.so"))?;
    for module in files_below(&package)?.iter().filter(|path| path.extension().is_some_and(|it| it == "py")) {
        fs::write(module, with_lists(&fs::read_to_string(module)?)).context("cannot write a module")?;
    }
    let first = package.join("__init__.py");
    fs::write(&first, fs::read_to_string(&first)?.replace(LAZY, EAGER)).context("cannot write the package")?;
    let mut command = Command::new(root.join("target/tools/python/bin/python"));
    command.args(["-m", "pdoc", "--docformat", "restructuredtext", "-t"]).arg(root.join(LOOKS));
    command.arg("-o").arg(target).args(MODULES);
    succeed(command.env("PYTHONPATH", place.join("python")))?;
    for page in files_below(target)?.iter().filter(|path| path.extension().is_some_and(|it| it == "html")) {
        let text = fs::read_to_string(page)?.replace(LITERAL, "");
        let bare = without_words(&text);
        ensure!(bare.is_empty(), "{}: {} without a word on it", page.display(), bare.join(", "));
        ensure!(!text.contains(TABLE), "{}: a table that pdoc shows as its source", page.display());
        fs::write(page, text).context("cannot write a page")?;
    }
    Ok(())
}

/// A module with the parameters of its docstrings, a line or more each, as lists: pdoc would make
/// one paragraph of them.
fn with_lists(module: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut list = None;
    let mut before = "";
    let mut text = String::new();
    for line in module.lines() {
        let entry = line.trim_start().split_once(": ").filter(|_| list == Some(indent(line)));
        match entry {
            Some((names, words)) => {
                text += &format!("{:1$}- **{names}**: {words}", "", indent(line));
            }
            None => text += line,
        }
        text.push('\n');
        if line.trim() == "----------" && ["Parameters", "Attributes"].contains(&before.trim()) {
            list = Some(indent(line));
            text.push('\n');
        } else if line.trim().is_empty() || line.contains("\"\"\"") {
            list = None;
        }
        before = line;
    }
    text
}

/// The public names of a page without a docstring.
fn without_words(page: &str) -> Vec<&str> {
    let sections = page.split("<section id=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    let bare = sections.filter(|(name, rest)| {
        let section = rest.split("</section>").next().unwrap_or(rest);
        !name.is_empty()
            && !name.contains('.')
            && !name.starts_with('_')
            && ["docstring", "default_value"].iter().all(|word| !section.contains(word))
    });
    bare.map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All parameters of a function were one paragraph.
    #[test]
    fn each_parameter_is_an_entry_of_a_list() {
        let module = "def f(a, b):\n    \"\"\"Does.\n\n    Parameters\n    ----------\n    a, b: numbers, of\n        any size.\n    \
                      c: another.\n\n    note: this.\n    \"\"\"\n    x: int = 1\n";
        let expected = "def f(a, b):\n    \"\"\"Does.\n\n    Parameters\n    ----------\n\n    - **a, b**: numbers, of\n        \
                        any size.\n    - **c**: another.\n\n    note: this.\n    \"\"\"\n    x: int = 1\n";
        assert_eq!(with_lists(module), expected);
    }

    /// `Session` and five others stood there by their names alone.
    #[test]
    fn names_without_a_docstring_are_found() {
        let page = "<section id=\"module-info\"><div class=\"docstring\"></section><section id=\"Session\">x</section>\
                    <section id=\"open\"><div class=\"docstring\"></section><section id=\"__version__\"></section>";
        assert_eq!(without_words(page), ["Session"]);
    }
}
