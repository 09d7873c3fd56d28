//! The syntax tree of clang: nodes, and where they stand in the source.

use serde::Deserialize;

/// A declaration, statement or expression, with the names that clang gives them.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SyntaxNode {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) opcode: String,
    pub(crate) cast_kind: String,
    pub(crate) storage_class: String,
    pub(crate) is_arrow: bool,
    #[serde(rename = "type")]
    pub(crate) type_text: TypeText,
    loc: ClangLocation,
    range: ClangRange,
    pub(crate) referenced_decl: Option<Box<SyntaxNode>>,
    pub(crate) inner: Vec<SyntaxNode>,
    /// Bytes of the main source; `None` for a node of another file.
    #[serde(skip)]
    pub(crate) span: Option<SourceSpan>,
}

/// A type as it is written, and without its typedef if it has one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TypeText {
    pub(crate) qual_type: String,
    desugared_qual_type: Option<String>,
}

impl TypeText {
    /// Returns the type without its typedef.
    pub(crate) fn plain(&self) -> &str {
        self.desugared_qual_type.as_deref().unwrap_or(&self.qual_type)
    }
}

/// Bytes of the main source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Its first token comes from a macro.
    pub(crate) starts_in_macro: bool,
    /// Its last token comes from a macro.
    pub(crate) ends_in_macro: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClangLocation {
    offset: Option<usize>,
    tok_len: usize,
    file: Option<String>,
    spelling_loc: Option<Box<ClangLocation>>,
    expansion_loc: Option<Box<ClangLocation>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ClangRange {
    begin: ClangLocation,
    end: ClangLocation,
}

/// A token of the main source.
struct TokenPlace {
    start: usize,
    end: usize,
    is_macro: bool,
}

/// Finds the places of all nodes. clang names a file only where it differs from that of the
/// location before.
struct PlaceFinder<'a> {
    main: &'a str,
    is_main: bool,
}

impl PlaceFinder<'_> {
    fn visit(&mut self, node: &mut SyntaxNode) {
        self.place(&node.loc);
        let begin = self.place(&node.range.begin);
        let end = self.place(&node.range.end);
        if let (Some(begin), Some(end)) = (begin, end) {
            let starts_in_macro = begin.is_macro;
            let ends_in_macro = end.is_macro;
            node.span = Some(SourceSpan { start: begin.start, end: end.end, starts_in_macro, ends_in_macro });
        }
        node.inner.iter_mut().for_each(|child| self.visit(child));
    }

    fn place(&mut self, location: &ClangLocation) -> Option<TokenPlace> {
        if let Some(spelling) = &location.spelling_loc {
            self.place(spelling);
        }
        if let Some(expansion) = &location.expansion_loc {
            return self.place(expansion).map(|place| TokenPlace { is_macro: true, ..place });
        }
        if let Some(file) = &location.file {
            self.is_main = file == self.main;
        }
        let start = location.offset.filter(|_| self.is_main)?;
        Some(TokenPlace { start, end: start + location.tok_len, is_macro: false })
    }
}

impl SyntaxNode {
    /// Reads the text of a tree whose main source has this path.
    pub(crate) fn parse(text: &[u8], main: &str) -> Result<Self, serde_json::Error> {
        let mut tree: Self = serde_json::from_slice(text)?;
        PlaceFinder { main, is_main: false }.visit(&mut tree);
        Ok(tree)
    }

    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind == kind
    }

    /// Returns the place of its first byte; 0 for a node of another file.
    pub(crate) fn start(&self) -> usize {
        self.span.map_or(0, |span| span.start)
    }

    /// Returns whether its text does not begin in the main source, but in a macro or another file.
    pub(crate) fn starts_elsewhere(&self) -> bool {
        self.span.is_none_or(|span| span.starts_in_macro)
    }

    /// Returns the expression below parentheses and casts that clang has added.
    pub(crate) fn bare(&self) -> &Self {
        match (self.kind.as_str(), self.inner.first()) {
            ("ParenExpr" | "ImplicitCastExpr" | "ConstantExpr", Some(inner)) => inner.bare(),
            _ => self,
        }
    }

    /// Returns the variable or function that an expression names.
    pub(crate) fn named(&self) -> Option<&Self> {
        let bare = self.bare();
        bare.referenced_decl.as_deref().filter(|_| bare.is("DeclRefExpr"))
    }

    /// Calls `see` for it and all nodes below.
    pub(crate) fn each<'a>(&'a self, see: &mut dyn FnMut(&'a Self)) {
        see(self);
        self.inner.iter().for_each(|child| child.each(see));
    }

    /// Returns its body, if it is a function that has one.
    pub(crate) fn body(&self) -> Option<&Self> {
        self.inner.iter().find(|child| child.is("CompoundStmt")).filter(|_| self.is("FunctionDecl"))
    }
}
