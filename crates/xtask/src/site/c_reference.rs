//! The page of `recoup.h`: constants, types and calls with the words of the header.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// The page, among the sources of the book.
pub(super) const PAGE: &str = "reference/recoup.h.md";
const HEADER: &str = "crates/doors/capi/include/recoup.h";
/// Everything before it in the header is for compilers.
const BEGINS_AFTER: &str = "#include <stdint.h>";
/// The pages whose names of calls become links to the page.
const GUIDES: &str = "crates/doors/capi/docs/";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    Constant,
    Type,
    Call,
}

/// One declaration of the header.
#[derive(Debug)]
struct HeaderItem<'a> {
    kind: ItemKind,
    name: &'a str,
    /// The comment above it.
    words: String,
    code: &'a str,
}

/// Returns the page, in Markdown.
pub(super) fn page(root: &Path) -> Result<String> {
    let header = fs::read_to_string(root.join(HEADER)).with_context(|| format!("cannot read {HEADER}"))?;
    let items = items(&header)?;
    let mut page = format!("# recoup.h\n\n{}\n\n## Constants\n\n", opening(&header)?);
    page.push_str("| constant | value | meaning |\n|---|---|---|\n");
    for item in items.iter().filter(|item| item.kind == ItemKind::Constant) {
        let value = item.code.split_once(item.name).map_or("", |(_, value)| value.trim());
        let words = plain(&item.words).replace("\n\n", " ").replace('\n', " ").replace('|', "\\|");
        let name = item.name;
        writeln!(page, "| <span id=\"{name}\">`{name}`</span> | `{value}` | {} |", words.trim())?;
    }
    for (title, kind) in [("Types", ItemKind::Type), ("Calls", ItemKind::Call)] {
        write!(page, "\n## {title}\n")?;
        for item in items.iter().filter(|item| item.kind == kind) {
            write!(page, "\n### `{}`\n\n```c\n{}\n```\n\n{}\n", item.name, item.code, plain(&item.words).trim())?;
        }
    }
    Ok(page)
}

/// The comment that the header opens with; what is indented there is code in Markdown, too.
fn opening(header: &str) -> Result<String> {
    let comment = header.strip_prefix("/*").and_then(|rest| rest.split_once("*/"));
    let (comment, _) = comment.with_context(|| format!("{HEADER}: no comment at its beginning"))?;
    let lines = comment.lines().map(|line| line.strip_prefix(" *").unwrap_or(line));
    let lines = lines.map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end());
    Ok(lines.collect::<Vec<_>>().join("\n").trim().to_owned())
}

/// A guide whose names of the interface, written in brackets there, lead to the page; every other
/// page as it is.
pub(super) fn with_links(page: &str, text: &str) -> String {
    let mut text = text.to_owned();
    if page.starts_with(GUIDES) {
        let names = text.split("[`").skip(1).filter_map(|rest| rest.split_once("`]"));
        let names: BTreeSet<String> = names.map(|(name, _)| name.to_owned()).collect();
        text.extend(names.iter().map(|name| format!("\n[`{name}`]: ../../../../{PAGE}#{}\n", in_c(name))));
    }
    text
}

/// The name in C of an item: types of Rust lose their capitals.
fn in_c(name: &str) -> String {
    let is_constant = !name.contains(|sign: char| sign.is_ascii_lowercase());
    let mut out = String::new();
    for sign in name.chars() {
        if sign.is_ascii_uppercase() && !is_constant {
            out.push_str(if out.is_empty() { "" } else { "_" });
            out.push(sign.to_ascii_lowercase());
        } else {
            out.push(sign);
        }
    }
    out
}

fn items(header: &str) -> Result<Vec<HeaderItem<'_>>> {
    let (_, declarations) = header.split_once(BEGINS_AFTER).with_context(|| format!("{HEADER}: no {BEGINS_AFTER}"))?;
    let items: Vec<_> = declarations.split("\n\n").filter_map(|block| item(block.trim_matches('\n'))).collect();
    let has = |kind| items.iter().any(|item| item.kind == kind);
    ensure!([ItemKind::Constant, ItemKind::Type, ItemKind::Call].into_iter().all(has), "{HEADER}: a kind is missing");
    Ok(items)
}

/// A comment and the declaration below it; `None` for what only compilers need.
fn item(block: &str) -> Option<HeaderItem<'_>> {
    let code = &block[block.split_inclusive('\n').take_while(|line| line.starts_with("//")).map(str::len).sum()..];
    let words: Vec<&str> =
        block[..block.len() - code.len()].lines().map(|line| line.trim_start_matches('/').trim()).collect();
    let (kind, name) = if let Some(rest) = code.strip_prefix("#define ") {
        (ItemKind::Constant, rest.split(' ').next()?)
    } else if code.starts_with("typedef ") {
        (ItemKind::Type, type_name(code)?)
    } else if code.starts_with('#') || !code.contains('(') {
        return None;
    } else {
        (ItemKind::Call, code.split('(').next()?.rsplit([' ', '*']).next()?)
    };
    Some(HeaderItem { kind, name, words: words.join("\n"), code })
}

/// The name a typedef gives: that of a pointer to functions, or its last word.
fn type_name(code: &str) -> Option<&str> {
    let is_struct = code.contains('{');
    match code.split_once("(*").filter(|_| !is_struct) {
        Some((_, rest)) => rest.split(')').next(),
        None => code.trim_end_matches(';').rsplit([' ', '}']).next(),
    }
}

/// Words of a comment with nothing in them that Markdown would take for more.
fn plain(words: &str) -> String {
    let escaped = |text: &str| text.replace('*', "\\*").replace('<', "&lt;").replace('[', "\\[");
    let parts = words.split('`').enumerate();
    let parts: Vec<String> =
        parts.map(|(index, part)| if index % 2 == 0 { escaped(part) } else { part.to_owned() }).collect();
    parts.join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "#include <stdint.h>\n\n// Good | fine.\n#define OK 0\n\n// A pair.\ntypedef struct pair {\n    int a;\n} pair;\n\n\
                          typedef int (*apply)(void *ctx);\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n\
                          // Opens it.\n//\n// Twice.\nconst char *open_it(int a);\n";

    #[test]
    fn items_of_a_header_have_names_words_and_code() {
        let items = items(SAMPLE).unwrap();
        let names: Vec<_> = items.iter().map(|item| (item.kind, item.name)).collect();
        let expected = [
            (ItemKind::Constant, "OK"),
            (ItemKind::Type, "pair"),
            (ItemKind::Type, "apply"),
            (ItemKind::Call, "open_it"),
        ];
        assert_eq!(names, expected);
        assert_eq!(items[3].words, "Opens it.\n\nTwice.");
        assert_eq!(items[3].code, "const char *open_it(int a);");
    }

    #[test]
    fn every_item_of_the_header_is_on_the_page_once() {
        let page = page(&crate::root()).unwrap();
        for name in ["recoup_open", "recoup_close", "recoup_apply", "recoup_tape_report_t"] {
            assert_eq!(page.matches(&format!("\n### `{name}`\n")).count(), 1, "{name}");
        }
        assert_eq!(page.matches("<span id=\"RECOUP_OK\">").count(), 1);
        assert!(page.contains("\n    recoup_close(h);\n\nCalls return"), "{}", &page[..600]);
    }

    #[test]
    fn names_in_guides_lead_to_the_page() {
        let text = with_links("crates/doors/capi/docs/c.md", "Call [`recoup_step`].\n");
        assert!(text.ends_with("[`recoup_step`]: ../../../../reference/recoup.h.md#recoup_step\n"), "{text}");
        assert_eq!(with_links("docs/run.md", "[`a`]\n"), "[`a`]\n");
        assert_eq!(["RecoupComm", "RECOUP_OK", "recoup_step"].map(in_c), ["recoup_comm", "RECOUP_OK", "recoup_step"]);
    }
}
