//! The derive macro of `recoup-memory`.
//!
//! The macro reads a struct and writes a table: which fields are in a version, under which names,
//! and what a restart does with all others. Promises: a field is either named in the table or left
//! out by an attribute, so none is forgotten. Must not know how a field is stored: that is in its
//! implementation of the trait.

mod attributes;
mod expand;
mod fields;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct with named fields one state with versions.
///
/// It implements `Versioned`, which commits and restores use, and `Viewed`, with a struct
/// `NAMEView` of views of all fields in an old version. `docs/memory.md` has a whole program.
///
/// Attributes of the struct:
///
/// - `#[versioned(block = "64KiB")]`: bytes of a block of a file that is made for the state.
/// - `#[versioned(keep = 3)]`: versions that the file keeps.
/// - `#[versioned(crate = recoup_memory)]`: the path of the library, `recoup::memory` without it.
///
/// Attributes of a field:
///
/// - `#[versioned(counter)]`: the step of the state, an `u64`. It is restored like any field, and
///   shown as the step of the version.
/// - `#[versioned(name = "A")]`: the name in a version, that of the field without it.
/// - `#[versioned(skip)]`: not in a version; a restore sets it to its default.
///   `#[versioned(skip = EXPRESSION)]`: a restore sets it to the expression, which may use `self`
///   with the fields restored and those above.
/// - `#[versioned(hot = RANGE)]`, of a `FileArray`: the values that stay in memory, too. The
///   expression may use `self`.
/// - `#[versioned(constant)]`: not in a version; a restore leaves it as the program has made it.
#[proc_macro_derive(Versioned, attributes(versioned))]
pub fn derive_versioned(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
