//! The fields of a struct, and those that no version can hold.

use proc_macro2::Span;
use syn::ext::IdentExt as _;
use syn::{Data, DeriveInput, Error, Expr, Field, Fields, GenericParam, Ident, LitStr, Result, Type};

use crate::attributes::{FieldAttributes, FieldRole};

/// A field of the struct.
pub(crate) struct StateField<'a> {
    pub(crate) field: &'a Field,
    pub(crate) ident: &'a Ident,
    /// Its name in a version.
    pub(crate) name: LitStr,
    pub(crate) role: FieldRole,
    /// The values of an array in the file that stay in memory, too.
    pub(crate) hot: Option<Expr>,
}

impl StateField<'_> {
    /// Returns whether a version holds it.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.role, FieldRole::Kept | FieldRole::Counter)
    }
}

/// Reads the fields of a struct, in their order.
///
/// # Errors
/// All that is wrong with them, together.
pub(crate) fn state_fields(input: &DeriveInput) -> Result<Vec<StateField<'_>>> {
    let fields = named_fields(input)?;
    if let Some(GenericParam::Lifetime(lifetime)) = input.generics.params.first() {
        let what = "a state that borrows cannot come back after a restart: own the values";
        return Err(Error::new_spanned(lifetime, what));
    }
    let mut read = Vec::new();
    let mut wrong: Option<Error> = None;
    for field in fields {
        match state_field(field).and_then(|found| check_once(found, &read)) {
            Ok(found) => read.extend(found),
            Err(error) => match &mut wrong {
                Some(all) => all.combine(error),
                None => wrong = Some(error),
            },
        }
    }
    if let Some(error) = wrong {
        return Err(error);
    }
    if !read.iter().any(StateField::is_held) {
        return Err(Error::new_spanned(&input.ident, "no field of this state is in a version"));
    }
    Ok(read)
}

fn named_fields(input: &DeriveInput) -> Result<impl Iterator<Item = &Field>> {
    let what = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => return Ok(fields.named.iter()),
            _ => "versions hold fields by their names: give the fields names",
        },
        Data::Enum(_) => "versions hold structs: an enum has other fields in each variant",
        Data::Union(_) => "versions hold structs: the type of the bytes of a union is not known",
    };
    Err(Error::new_spanned(&input.ident, what))
}

fn state_field(field: &Field) -> Result<Option<StateField<'_>>> {
    let Some(ident) = &field.ident else { return Ok(None) };
    let FieldAttributes { role, name, hot } = FieldAttributes::read(&field.attrs)?;
    let name = name.unwrap_or_else(|| LitStr::new(&ident.unraw().to_string(), Span::call_site()));
    let found = StateField { field, ident, name, role, hot };
    if found.is_held() {
        check_type(&field.ty)?;
    } else if let Some(hot) = &found.hot {
        return Err(Error::new_spanned(hot, "a field that is not in a version has no place in its file"));
    }
    Ok(Some(found))
}

/// Refuses types whose bytes mean nothing in another process. All others are refused by the trait.
fn check_type(ty: &Type) -> Result<()> {
    let what = match ty {
        Type::Reference(_) => "a reference",
        Type::Ptr(_) => "a pointer",
        Type::FnPtr(_) => "a pointer to a function",
        Type::Paren(inner) => return check_type(&inner.elem),
        Type::Group(inner) => return check_type(&inner.elem),
        Type::Array(inner) => return check_type(&inner.elem),
        _ => return Ok(()),
    };
    let remedy = "own the values, or mark the field `#[versioned(skip = EXPRESSION)]` or `#[versioned(constant)]`";
    Err(Error::new_spanned(ty, format!("{what} is an address of this process, gone after a restart: {remedy}")))
}

/// Refuses a second field of one name, and a second counter.
fn check_once<'a>(found: Option<StateField<'a>>, before: &[StateField<'_>]) -> Result<Option<StateField<'a>>> {
    let Some(field) = &found else { return Ok(None) };
    let is_counter = |other: &StateField<'_>| matches!(other.role, FieldRole::Counter);
    if is_counter(field) && before.iter().any(is_counter) {
        return Err(Error::new_spanned(field.ident, "a state has one counter"));
    }
    let is_double = |other: &StateField<'_>| other.is_held() && other.name.value() == field.name.value();
    if field.is_held() && before.iter().any(is_double) {
        let what = format!("two fields are called \"{}\" in a version", field.name.value());
        return Err(Error::new_spanned(field.ident, what));
    }
    Ok(found)
}
