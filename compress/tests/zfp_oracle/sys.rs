//! The C library, called the plain way.
#![expect(unsafe_code, reason = "the oracle is a C library")]

use std::ffi::c_void;

use recoup_core::{Bound, Values};
use zfp_sys::{
    stream_close, stream_open, zfp_compress, zfp_field, zfp_field_1d, zfp_field_2d, zfp_field_3d, zfp_field_free,
    zfp_stream_close, zfp_stream_maximum_size, zfp_stream_open, zfp_stream_rewind, zfp_stream_set_accuracy,
    zfp_stream_set_bit_stream, zfp_stream_set_reversible, zfp_type_zfp_type_double, zfp_type_zfp_type_float,
};

/// The stream zfp writes for `values` of extents `dims`, without header.
pub(crate) fn compress(values: Values<'_>, dims: [usize; 3], bound: Bound) -> Vec<u8> {
    let field = field(values, dims);
    // SAFETY: every handle is made here, used while open and closed once; the buffer outlives the
    // bit stream and is as long as the library asks for.
    unsafe {
        let stream = zfp_stream_open(std::ptr::null_mut());
        match bound {
            Bound::Absolute(e) => drop(zfp_stream_set_accuracy(stream, e)),
            _ => zfp_stream_set_reversible(stream),
        }
        let mut buffer = vec![0u8; zfp_stream_maximum_size(stream, field)];
        let bits = stream_open(buffer.as_mut_ptr().cast::<c_void>(), buffer.len());
        zfp_stream_set_bit_stream(stream, bits);
        zfp_stream_rewind(stream);
        let written = zfp_compress(stream, field);
        zfp_field_free(field);
        zfp_stream_close(stream);
        stream_close(bits);
        buffer.truncate(written);
        buffer
    }
}

fn field(values: Values<'_>, [x, y, z]: [usize; 3]) -> *mut zfp_field {
    let (pointer, kind) = match values {
        Values::F64(values) => (values.as_ptr().cast_mut().cast::<c_void>(), zfp_type_zfp_type_double),
        Values::F32(values) => (values.as_ptr().cast_mut().cast::<c_void>(), zfp_type_zfp_type_float),
        _ => unreachable!("zfp takes floats"),
    };
    // SAFETY: the field only records the pointer; compression reads as many values as the extents
    // multiply to, which is the length of the slice.
    unsafe {
        match (y, z) {
            (1, 1) => zfp_field_1d(pointer, kind, x),
            (_, 1) => zfp_field_2d(pointer, kind, x, y),
            _ => zfp_field_3d(pointer, kind, x, y, z),
        }
    }
}
