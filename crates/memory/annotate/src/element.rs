//! The types that a versioned variable may have.

use std::collections::BTreeMap;

use crate::node::SyntaxNode;

/// The form of a versioned variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableForm {
    /// A pointer to values, whose number is given.
    Pointer,
    /// An array, whose type has the number.
    Array,
    /// One value.
    Value,
}

/// The form of a variable, the type of its values in C, and their type in recoup.h.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionedType {
    pub(crate) form: VariableForm,
    pub(crate) c_type: String,
    pub(crate) code: &'static str,
}

/// Types of C, and their types in recoup.h.
const TYPES: [(&str, &str); 11] = [
    ("double", "RECOUP_F64"),
    ("float", "RECOUP_F32"),
    ("long", "RECOUP_I64"),
    ("long long", "RECOUP_I64"),
    ("int", "RECOUP_I32"),
    ("unsigned long", "RECOUP_U64"),
    ("unsigned long long", "RECOUP_U64"),
    ("unsigned int", "RECOUP_U32"),
    ("unsigned char", "RECOUP_BYTES"),
    ("signed char", "RECOUP_BYTES"),
    ("char", "RECOUP_BYTES"),
];

/// Names that `typedef` gives to types, and those types.
pub(crate) type TypeNames<'a> = BTreeMap<&'a str, &'a str>;

/// Collects the type names of a program.
pub(crate) fn type_names(tree: &SyntaxNode) -> TypeNames<'_> {
    let names = tree.inner.iter().filter(|decl| decl.is("TypedefDecl"));
    names.map(|decl| (decl.name.as_str(), decl.type_text.plain())).collect()
}

impl VersionedType {
    /// Returns whether it is one integer.
    pub(crate) fn is_integer(&self) -> bool {
        self.form == VariableForm::Value && !matches!(self.code, "RECOUP_F64" | "RECOUP_F32")
    }
}

/// Returns the form and type of a variable; `None` if it has no versions.
pub(crate) fn element(variable: &SyntaxNode, names: &TypeNames<'_>) -> Option<VersionedType> {
    let whole = resolved(variable.type_text.plain(), names);
    let (form, c_type) = match (whole.strip_suffix('*'), whole.split_once('[')) {
        _ if whole.contains("(*") => return None,
        (Some(of), _) => (VariableForm::Pointer, of),
        (None, Some((of, _))) => (VariableForm::Array, of),
        (None, None) => (VariableForm::Value, whole),
    };
    let c_type = c_type.trim();
    let plain = resolved(c_type, names);
    let code = TYPES.iter().find(|(name, _)| *name == plain).map(|(_, code)| *code)?;
    Some(VersionedType { form, c_type: c_type.to_owned(), code })
}

/// A type name is given by way of a few others at most.
const NAMES_MOST: usize = 16;

fn resolved<'a>(name: &'a str, names: &TypeNames<'a>) -> &'a str {
    (0..NAMES_MOST).fold(name, |name, _| names.get(name).copied().unwrap_or(name))
}
