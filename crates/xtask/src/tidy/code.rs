//! The words and signs of a Rust file. Comments are left out, and texts and numbers are empty.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// Signs of two characters that are one here.
const PAIRS: [&str; 3] = ["::", "->", "=>"];

/// A word or a sign.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CodeToken {
    pub(super) text: String,
    /// Line of the file, from 0.
    pub(super) line_index: usize,
    /// Position of the bracket that closes this one; of anything else, its own.
    pub(super) end: usize,
}

impl CodeToken {
    pub(super) fn is_word(&self) -> bool {
        self.text.starts_with(|sign: char| sign.is_alphabetic() || sign == '_')
    }
}

/// Returns the tokens of a file; none of one that the compiler would refuse.
pub(super) fn tokens(text: &str) -> Vec<CodeToken> {
    let mut tokens = Vec::new();
    add(text.parse().unwrap_or_default(), &mut tokens);
    tokens
}

fn add(stream: TokenStream, tokens: &mut Vec<CodeToken>) {
    let mut is_joint = false;
    for tree in stream {
        let at = tokens.len();
        let was_joint = std::mem::take(&mut is_joint);
        let mut line_index = tree.span().start().line - 1;
        let text = match &tree {
            TokenTree::Ident(word) => word.to_string(),
            TokenTree::Literal(_) => String::new(),
            TokenTree::Punct(sign) => {
                is_joint = sign.spacing() == Spacing::Joint;
                let last = tokens.last_mut().filter(|_| was_joint);
                let pair = last.map(|last| (format!("{}{}", last.text, sign.as_char()), last));
                if let Some((pair, last)) = pair.filter(|(pair, _)| PAIRS.contains(&pair.as_str())) {
                    last.text = pair;
                    continue;
                }
                sign.to_string()
            }
            TokenTree::Group(group) => {
                let [open, close] = match group.delimiter() {
                    Delimiter::Parenthesis => ["(", ")"],
                    Delimiter::Brace => ["{", "}"],
                    Delimiter::Bracket | Delimiter::None => ["[", "]"],
                };
                tokens.push(CodeToken { text: open.to_owned(), line_index, end: at });
                add(group.stream(), tokens);
                tokens[at].end = tokens.len();
                line_index = group.span_close().start().line - 1;
                close.to_owned()
            }
        };
        tokens.push(CodeToken { text, line_index, end: tokens.len() });
    }
}

/// The tokens before the module of unit tests that ends a file.
pub(super) fn without_tests(tokens: &[CodeToken]) -> &[CodeToken] {
    let start = ["#", "[", "cfg", "(", "test", ")", "]", "mod"];
    let begins = |at: &usize| {
        let first = tokens[*at..].iter().map(|token| token.text.as_str());
        first.take(start.len()).eq(start) && tokens.get(at + start.len() + 1).is_some_and(|next| next.text == "{")
    };
    &tokens[..(0..tokens.len()).find(begins).unwrap_or(tokens.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_left_out_and_texts_are_empty() {
        for (text, words) in [
            ("a // b\nc", "a c"),
            ("a /* b\n */ c", "a c"),
            ("f(\"(\\\"\", x)", "f (  , x )"),
            ("f(r#\"\"(\"#, 'x', '\\'')", "f (  ,  ,  )"),
            ("fn f<'a>(x: &'a str) -> a::b", "fn f < ' a > ( x : & ' a str ) -> a :: b"),
        ] {
            let found: Vec<String> = tokens(text).into_iter().map(|token| token.text).collect();
            assert_eq!(found.join(" "), words, "{text}");
        }
        let found = tokens("{\n    [a]\n}");
        assert_eq!(found.iter().map(|token| token.end).collect::<Vec<_>>(), [4, 3, 2, 3, 4]);
        assert_eq!(found.iter().map(|token| token.line_index).collect::<Vec<_>>(), [0, 1, 1, 1, 2]);
    }

    #[test]
    fn unit_tests_are_left_out_and_declared_modules_are_not() {
        let found = tokens("struct A;\n#[cfg(test)]\nmod tests {\n    struct B;\n}\n");
        assert_eq!(without_tests(&found).len(), 3);
        let declared = tokens("mod a;\n#[cfg(test)]\nmod tests;\nstruct A;\n");
        assert_eq!(without_tests(&declared).len(), declared.len());
    }
}
