//! Values as little-endian bytes and back, and the checks every codec begins with.

use recoup_core::{CodecError, CodecId, CodecResult, Context, Values, ValuesMut};

/// Appends one element type's values; compiles to a copy on little-endian machines.
macro_rules! append {
    ($source:expr, $target:expr, $kind:ty) => {{
        let start = $target.len();
        $target.resize(start + size_of_val($source), 0);
        let appended = $target[start..].as_chunks_mut::<{ size_of::<$kind>() }>().0;
        for (bytes, value) in appended.iter_mut().zip($source) {
            *bytes = value.to_le_bytes();
        }
    }};
}

/// Overwrites one element type's values.
macro_rules! overwrite {
    ($source:expr, $target:expr, $kind:ty) => {
        for (value, bytes) in $target.iter_mut().zip($source.as_chunks::<{ size_of::<$kind>() }>().0) {
            *value = <$kind>::from_le_bytes(*bytes);
        }
    };
}

/// Appends `source` to `target`, little-endian.
pub(crate) fn extend(source: Values<'_>, target: &mut Vec<u8>) {
    match source {
        Values::F64(values) => append!(values, target, f64),
        Values::F32(values) => append!(values, target, f32),
        Values::I64(values) => append!(values, target, i64),
        Values::Bytes(values) => target.extend_from_slice(values),
    }
}

/// Fills `target` from little-endian bytes.
pub(crate) fn fill(source: &[u8], target: ValuesMut<'_>, codec: CodecId) -> CodecResult<()> {
    if source.len() != size(target.as_values()) {
        return Err(CodecError::Damaged { codec, what: "length is not that of the values" });
    }
    match target {
        ValuesMut::F64(values) => overwrite!(source, values, f64),
        ValuesMut::F32(values) => overwrite!(source, values, f32),
        ValuesMut::I64(values) => overwrite!(source, values, i64),
        ValuesMut::Bytes(values) => values.copy_from_slice(source),
    }
    Ok(())
}

/// Bytes `values` take as they are.
pub(crate) fn size(values: Values<'_>) -> usize {
    values.len() * values.element().size()
}

/// Checks that the extents of `context` multiply to `n`.
pub(crate) fn check_shape(context: &Context, n: usize) -> CodecResult<()> {
    let product = context.dims.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
    match product {
        Some(expected) if expected == n => Ok(()),
        product => Err(CodecError::Shape { expected: product.unwrap_or(usize::MAX), found: n }),
    }
}
