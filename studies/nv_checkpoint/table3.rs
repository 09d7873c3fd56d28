//! Table 3: directives and lines that versions take.

use crate::Failed;
use crate::changes::{changed_lines, code};
use crate::lab::Lab;
use crate::programs::Kind;
use crate::published::application;
use crate::sheet::Sheet;

macro_rules! sources {
    ($name:literal) => {
        [
            include_str!(concat!(env!("OUT_DIR"), "/", $name, "_plain.rs")),
            include_str!(concat!("../../examples/versions/", $name, ".rs")),
        ]
    };
}

/// The text of a program without versions, and with them.
fn sources(kind: Kind) -> [&'static str; 2] {
    match kind {
        Kind::Lu => sources!("lu"),
        Kind::Droplet => sources!("droplet"),
        Kind::PageRank => sources!("pagerank"),
        Kind::Crack => sources!("crack"),
    }
}

/// The same program in C with directives, where there is one.
fn annotated(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Lu => Some(include_str!("../../examples/embed/lu.c")),
        Kind::PageRank => Some(include_str!("../../examples/embed/pagerank.c")),
        Kind::Droplet | Kind::Crack => None,
    }
}

/// Lines that begin with one of these words.
fn count(text: &str, words: &[&str]) -> usize {
    text.lines().filter(|line| words.iter().any(|word| line.trim_start().starts_with(word))).count()
}

pub(crate) fn make(_: &Lab) -> Result<Sheet, Failed> {
    let mut sheet = Sheet { title: "Table 3: directives and lines of code".to_owned(), ..Sheet::default() };
    let row = |kind: Kind| {
        let [plain, versions] = sources(kind);
        let application = application(kind);
        let pragmas = annotated(kind).map(|text| count(text, &["#pragma recoup"]).to_string());
        vec![
            kind.name().to_owned(),
            code(plain).len().to_string(),
            count(versions, &["#[derive(Versioned)]", "#[versioned("]).to_string(),
            changed_lines(&code(plain), &code(versions)).to_string(),
            pragmas.unwrap_or_else(|| "-".to_owned()),
            format!("{}: {}", application.name, application.directives),
            application.changed_lines.to_string(),
        ]
    };
    let head = ["program", "lines", "attributes", "changed", "directives in C", "published", "changed"];
    sheet.table(&head, &Kind::ALL.map(row));
    sheet.say(
        "Lines of code, without comments and blank ones. Ours are changed by hand, attributes included; the published",
    );
    sheet.say("ones by a compiler that follows the directives. Not counted are the tree and the graph that the plain");
    sheet
        .say("programs bring along, and the command line that the programs with versions share: a program without one");
    sheet.say("calls Memory::resume, Saver::new and Saver::commit_if_due in its place.");
    Ok(sheet)
}
