//! The functions that HDF5 calls: the plugin interface of `H5PLextern.h` and the filter class of
//! `H5Zpublic.h`.
#![expect(unsafe_code, reason = "HDF5 calls C functions and passes buffers by pointer")]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::io::Write as _;
use std::panic::catch_unwind;

use recoup_compress::QB_FILTER;

use crate::{FilterRefusal, decode, decoded_bytes};

/// `H5PL_TYPE_FILTER`.
const TYPE_FILTER: c_int = 0;
/// `H5Z_CLASS_T_VERS`.
const CLASS_VERSION: c_int = 1;
/// `H5Z_FLAG_REVERSE`: the chunk is read.
const REVERSE: c_uint = 0x0100;

type Apply = unsafe extern "C" fn(
    flags: c_uint,
    n_values: usize,
    values: *const c_uint,
    n_bytes: usize,
    room: *mut usize,
    buffer: *mut *mut c_void,
) -> usize;

/// `H5Z_class2_t`.
#[repr(C)]
pub(crate) struct Class {
    version: c_int,
    id: c_int,
    encoder_present: c_uint,
    decoder_present: c_uint,
    name: *const c_char,
    can_apply: *const c_void,
    set_local: *const c_void,
    filter: Apply,
}

// SAFETY: the record is never written, and its pointers lead to constants or nowhere.
unsafe impl Sync for Class {}

static CLASS: Class = Class {
    version: CLASS_VERSION,
    id: QB_FILTER as c_int,
    encoder_present: 0,
    decoder_present: 1,
    name: c"recoup QB and pyramid".as_ptr(),
    can_apply: std::ptr::null(),
    set_local: std::ptr::null(),
    filter: apply,
};

/// Returns the kind of plugin.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn H5PLget_plugin_type() -> c_int {
    TYPE_FILTER
}

/// The filter's class record.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn H5PLget_plugin_info() -> *const Class {
    &raw const CLASS
}

/// Replaces the encoded chunk in `buffer` by its values; their bytes, or 0 with all as it was.
///
/// # Safety
/// `*buffer` must point to `n_bytes` readable bytes that `malloc` gave, and `room` to their number.
unsafe extern "C" fn apply(
    flags: c_uint,
    _: usize,
    _: *const c_uint,
    n_bytes: usize,
    room: *mut usize,
    buffer: *mut *mut c_void,
) -> usize {
    let opened = catch_unwind(|| {
        if flags & REVERSE == 0 {
            return Err(FilterRefusal::Encoding);
        }
        // SAFETY: HDF5 passes a chunk of this many bytes, and nothing else touches it during the
        // call.
        let frame = unsafe { std::slice::from_raw_parts((*buffer).cast::<u8>(), n_bytes) };
        DecodedChunk::open(frame)
    });
    match opened {
        Ok(Ok(chunk)) => {
            let bytes = chunk.bytes;
            // SAFETY: HDF5 takes buffers of malloc and frees them with free; the old one is no
            // longer used.
            unsafe {
                libc::free(std::mem::replace(&mut *buffer, chunk.release()));
                *room = bytes;
            }
            bytes
        }
        Ok(Err(refusal)) => {
            tell(&format!("recoup filter: {refusal}\n"));
            0
        }
        Err(_) => {
            tell("recoup filter: stopped by an error of its own\n");
            0
        }
    }
}

/// Prints a line on stderr, if it can be: a reader that was closed is no reason to panic.
fn tell(line: &str) {
    std::io::stderr().write_all(line.as_bytes()).ok();
}

/// Values of a frame in memory of `malloc`, which is HDF5's own allocator.
struct DecodedChunk {
    start: *mut c_void,
    bytes: usize,
}

impl DecodedChunk {
    fn open(frame: &[u8]) -> Result<Self, FilterRefusal> {
        let bytes = decoded_bytes(frame)?;
        // SAFETY: any size may be asked for; a byte more, so that an empty chunk has a buffer too.
        let start = unsafe { libc::calloc(bytes + 1, 1) };
        if start.is_null() {
            return Err(FilterRefusal::Memory { bytes });
        }
        let chunk = Self { start, bytes };
        // SAFETY: calloc gave more than this many zeroed bytes, which only `chunk` knows.
        decode(frame, unsafe { std::slice::from_raw_parts_mut(start.cast(), bytes) })?;
        Ok(chunk)
    }

    /// Leaves the memory to the caller.
    fn release(self) -> *mut c_void {
        let start = self.start;
        std::mem::forget(self);
        start
    }
}

impl Drop for DecodedChunk {
    fn drop(&mut self) {
        // SAFETY: the memory is calloc's, and nothing else has it.
        unsafe { libc::free(self.start) }
    }
}

#[cfg(test)]
mod tests {
    use recoup_compress::Qb;
    use recoup_core::{Bound, Codec, Context, Values};

    use super::*;

    /// A copy of `bytes` as HDF5 passes it.
    fn lend(bytes: &[u8]) -> *mut c_void {
        // SAFETY: malloc's memory is as long as what is copied into it.
        unsafe {
            let start = libc::malloc(bytes.len());
            assert!(!start.is_null());
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), start.cast(), bytes.len());
            start
        }
    }

    /// Returns the filter's result and the buffer it leaves.
    fn filtered(flags: c_uint, bytes: &[u8]) -> (usize, Vec<u8>) {
        let mut buffer = lend(bytes);
        let mut room = bytes.len();
        // SAFETY: buffer and room are as HDF5 passes them; what comes back is read by its length
        // and freed once.
        unsafe {
            let n = (CLASS.filter)(flags, 0, std::ptr::null(), bytes.len(), &raw mut room, &raw mut buffer);
            let left = std::slice::from_raw_parts(buffer.cast::<u8>(), room).to_vec();
            libc::free(buffer);
            (n, left)
        }
    }

    fn frame() -> Vec<u8> {
        let values: Vec<f64> = (0..700).map(f64::from).collect();
        let mut frame = Vec::new();
        let source = Values::F64(&values);
        Qb::default().encode(source, Bound::Absolute(0.25), &Context::flat(700), &mut frame).unwrap();
        frame
    }

    #[test]
    fn chunk_is_replaced_by_its_values() {
        let (n, values) = filtered(REVERSE, &frame());
        assert_eq!((n, values.len()), (5600, 5600));
        let second = f64::from_le_bytes(values[8..16].try_into().unwrap());
        assert!((second - 1.0).abs() <= 0.25);
    }

    #[test]
    fn refused_chunk_stays_as_it_was() {
        let frame = frame();
        assert_eq!(filtered(0, &frame), (0, frame.clone()));
        assert_eq!(filtered(REVERSE, &frame[..100]), (0, frame[..100].to_vec()));
    }

    #[test]
    fn class_record_is_that_of_the_filter() {
        // SAFETY: the pointer leads to a constant.
        let class = unsafe { &*H5PLget_plugin_info() };
        assert_eq!((H5PLget_plugin_type(), class.id, class.encoder_present, class.decoder_present), (0, 53_570, 0, 1));
    }
}
