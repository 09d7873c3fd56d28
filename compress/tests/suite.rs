//! Every codec of the table passes the suite, and its name stands where readers of files look.

use recoup_compress::{bound_holds, codec, decode_raw};
use recoup_core::{CodecError, CodecId};
use recoup_testkit::codec_suite::{CodecJudge, keeps_its_promises, survives_damage};

const JUDGE: CodecJudge = CodecJudge { bound_holds, decode_raw };

/// Defines a test for each codec, and the list of those that have one.
macro_rules! suite {
    ($($test:ident: $id:ident),+ $(,)?) => {
        $(
            #[test]
            fn $test() {
                match codec(CodecId::$id) {
                    Ok(codec) => keeps_its_promises(&*codec, JUDGE),
                    Err(CodecError::NotBuilt { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        )+

        const IN_SUITE: &[CodecId] = &[$(CodecId::$id),+];
    };
}

suite! {
    raw_keeps_its_promises: Raw,
    zstd_keeps_its_promises: Zstd,
    pco_keeps_its_promises: Pco,
    zfp_keeps_its_promises: Zfp,
    sz3_keeps_its_promises: Sz3,
    qb_keeps_its_promises: Qb,
}

#[test]
fn every_codec_of_the_table_is_in_the_suite() {
    for id in CodecId::ALL {
        assert!(IN_SUITE.contains(&id), "codec {id} has no line in `suite!` of compress/tests/suite.rs");
    }
}

/// SZ3's decoder is the one that may end the process on damaged bytes.
#[test]
fn safe_decoders_survive_every_truncation_and_every_flipped_bit() {
    for id in CodecId::ALL.into_iter().filter(|id| *id != CodecId::Sz3) {
        survives_damage(&*codec(id).unwrap());
    }
}

#[test]
fn the_format_page_names_every_codec() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../io/FORMAT.md");
    let page = std::fs::read_to_string(path).unwrap();
    let names = CodecId::ALL.map(CodecId::name).join(" ");
    let row = format!("| `codec` | word | `{names}` |");
    assert!(page.contains(&row), "io/FORMAT.md lacks this row of the frame table: {row}");
}
