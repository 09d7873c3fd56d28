//! The attribute `#[versioned(..)]` of structs and fields.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Expr, LitInt, LitStr, Path, Result, Token, parse_quote};

/// Bytes of a block that a memory takes.
const BLOCK_BYTES: std::ops::RangeInclusive<usize> = 512..=16 << 20;
/// Bytes of a name that a memory takes.
const NAME_BYTES_MOST: usize = 255;

/// Attributes of a struct.
pub(crate) struct StructAttributes {
    /// Path of the library.
    pub(crate) library: Path,
    pub(crate) block_bytes: Option<usize>,
    pub(crate) keep: Option<usize>,
}

impl StructAttributes {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut read = Self { library: parse_quote!(::recoup::memory), block_bytes: None, keep: None };
        for attribute in ours(attributes) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("block") {
                    once(&meta, read.block_bytes.is_some())?;
                    read.block_bytes = Some(block_bytes(&meta.value()?.parse()?)?);
                } else if meta.path.is_ident("keep") {
                    once(&meta, read.keep.is_some())?;
                    read.keep = Some(versions(&meta.value()?.parse()?)?);
                } else if meta.path.is_ident("crate") {
                    read.library = meta.value()?.call(Path::parse_mod_style)?;
                } else {
                    return Err(meta.error("a struct has `block = \"64KiB\"`, `keep = 2` and `crate = PATH`"));
                }
                Ok(())
            })?;
        }
        Ok(read)
    }
}

/// The part that a field has in a version.
pub(crate) enum FieldRole {
    /// A part of the version.
    Kept,
    /// A part of the version, and the step of the state.
    Counter,
    /// No part of the version: a restore sets it to its default or to the expression.
    Renewed(Option<Expr>),
    /// No part of the version: a restore leaves it as the program has made it.
    Constant,
}

/// Attributes of a field.
pub(crate) struct FieldAttributes {
    pub(crate) role: FieldRole,
    pub(crate) name: Option<LitStr>,
    /// The values of an array in the file that stay in memory, too.
    pub(crate) hot: Option<Expr>,
}

impl FieldAttributes {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut read = Self { role: FieldRole::Kept, name: None, hot: None };
        for attribute in ours(attributes) {
            attribute.parse_nested_meta(|meta| read.take(&meta))?;
        }
        Ok(read)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("name") {
            once(meta, self.name.is_some())?;
            self.name = Some(checked_name(meta.value()?.parse()?)?);
        } else if meta.path.is_ident("hot") && meta.input.peek(Token![=]) {
            once(meta, self.hot.is_some())?;
            self.hot = Some(meta.value()?.parse()?);
        } else {
            let role = field_role(meta)?;
            if !matches!(self.role, FieldRole::Kept) {
                return Err(meta.error("a field is one of `counter`, `skip` and `constant`"));
            }
            self.role = role;
        }
        let is_left_out = matches!(self.role, FieldRole::Renewed(_) | FieldRole::Constant);
        if is_left_out && self.name.is_some() {
            return Err(meta.error("a field that is not in a version has no name there"));
        }
        Ok(())
    }
}

fn field_role(meta: &ParseNestedMeta<'_>) -> Result<FieldRole> {
    if meta.path.is_ident("counter") {
        return Ok(FieldRole::Counter);
    }
    if meta.path.is_ident("constant") {
        return Ok(FieldRole::Constant);
    }
    if meta.path.is_ident("skip") {
        let value = meta.input.peek(Token![=]).then(|| meta.value()?.parse());
        return Ok(FieldRole::Renewed(value.transpose()?));
    }
    if meta.path.is_ident("place") {
        return Err(
            meta.error("the type of a field is its place: a `FileArray` stays in the file, all others in memory")
        );
    }
    let all = "`counter`, `skip`, `skip = EXPRESSION`, `constant`, `name = \"NAME\"` and `hot = RANGE`";
    Err(meta.error(format!("a field has {all}")))
}

fn ours(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("versioned"))
}

fn once(meta: &ParseNestedMeta<'_>, is_there: bool) -> Result<()> {
    if is_there { Err(meta.error("it is given twice")) } else { Ok(()) }
}

/// Reads a number of bytes: `4096`, `64KiB` or `1MiB`.
fn block_bytes(text: &LitStr) -> Result<usize> {
    let value = text.value();
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20)];
    let unit = units.iter().find_map(|(name, bytes)| Some((value.strip_suffix(name)?, *bytes)));
    let (digits, unit_bytes) = unit.unwrap_or((&value, 1));
    let bytes = digits.trim_end().parse::<usize>().ok().and_then(|number| number.checked_mul(unit_bytes));
    let bytes = bytes.filter(|bytes| bytes.is_power_of_two() && BLOCK_BYTES.contains(bytes));
    let expected = "a block has a power of two of bytes from \"512\" to \"16MiB\", for example \"64KiB\"";
    bytes.ok_or_else(|| syn::Error::new(text.span(), expected))
}

fn versions(count: &LitInt) -> Result<usize> {
    let number = count.base10_parse::<usize>()?;
    if number > 0 { Ok(number) } else { Err(syn::Error::new(count.span(), "a memory keeps at least one version")) }
}

fn checked_name(name: LitStr) -> Result<LitStr> {
    let bytes = name.value().len();
    let is_fit = (1..=NAME_BYTES_MOST).contains(&bytes);
    let expected = format!("a name has 1 to {NAME_BYTES_MOST} bytes, {bytes} found");
    if is_fit { Ok(name) } else { Err(syn::Error::new(name.span(), expected)) }
}
