//! Text of nodes, with other text in the place of variables.

use crate::node::{SourceSpan, SyntaxNode};

/// A variable, and the text in its place.
pub(crate) struct Substitute<'a> {
    pub(crate) variable: &'a str,
    pub(crate) text: String,
}

/// Returns the bytes of a node, with the arguments of a macro that it ends with.
pub(crate) fn whole_span(source: &str, node: &SyntaxNode) -> Option<SourceSpan> {
    let span = node.span?;
    let behind = source.get(span.end..)?;
    let has_arguments = span.ends_in_macro && behind.trim_start().starts_with('(');
    if !has_arguments {
        return Some(span);
    }
    let mut depth = 0_usize;
    for (at, c) in behind.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && c == ')' {
            return Some(SourceSpan { end: span.end + at + 1, ..span });
        }
    }
    None
}

/// Returns the text of a node.
pub(crate) fn text<'a>(source: &'a str, node: &SyntaxNode) -> &'a str {
    whole_span(source, node).and_then(|span| source.get(span.start..span.end)).unwrap_or_default()
}

/// Returns the text of a node with substitutes.
pub(crate) fn text_with(source: &str, node: &SyntaxNode, substitutes: &[Substitute<'_>]) -> String {
    let mut replaced: Vec<(SourceSpan, &str)> = Vec::new();
    node.each(&mut |node| {
        let variable = node.referenced_decl.as_ref().filter(|_| node.is("DeclRefExpr"));
        let found = variable.and_then(|variable| substitutes.iter().find(|known| known.variable == variable.id));
        if let (Some(span), Some(substitute)) = (node.span, found) {
            replaced.push((span, &substitute.text));
        }
    });
    replaced.sort_by_key(|(span, _)| span.start);
    let Some(whole) = whole_span(source, node) else { return String::new() };
    let mut out = String::new();
    let mut at = whole.start;
    for (span, text) in replaced {
        out += &source[at..span.start];
        out += text;
        at = span.end;
    }
    out + &source[at..whole.end]
}
