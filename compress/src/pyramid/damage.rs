//! The error of a frame that no encoder wrote.

use recoup_core::{CodecError, CodecId};

pub(super) fn damaged(what: &'static str) -> CodecError {
    CodecError::Damaged { codec: CodecId::Pyramid, what }
}
