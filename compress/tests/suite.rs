//! Every codec of the table passes the suite, and its name stands where readers of files look.

use recoup_compress::{bound_holds, codec, decode_raw};
use recoup_core::{Codec, CodecError, CodecId};
use recoup_testkit::codec_suite::{CodecJudge, keeps_its_promises, survives_damage};

const JUDGE: CodecJudge = CodecJudge { bound_holds, decode_raw };

/// Runs `check` on every codec of this build, each in a thread of its own.
fn for_each_codec(check: impl Fn(&dyn Codec) + Sync) {
    std::thread::scope(|scope| {
        for id in CodecId::ALL {
            let check = &check;
            let work = move || match codec(id) {
                Ok(codec) => check(&*codec),
                Err(CodecError::NotBuilt { .. }) => {}
                Err(error) => panic!("{error}"),
            };
            std::thread::Builder::new().name(id.name().to_owned()).spawn_scoped(scope, work).expect("a thread");
        }
    });
}

/// The messages of a failed check name the thread, and the thread is named after its codec.
#[test]
fn every_codec_keeps_its_promises() {
    for_each_codec(|codec| keeps_its_promises(codec, JUDGE));
}

/// SZ3's decoder is the one that may end the process on damaged bytes.
#[test]
fn safe_decoders_survive_every_truncation_and_every_flipped_bit() {
    for_each_codec(|codec| {
        if codec.id() != CodecId::Sz3 {
            survives_damage(codec);
        }
    });
}

#[test]
fn the_format_page_names_every_codec() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../io/FORMAT.md");
    let page = std::fs::read_to_string(path).unwrap();
    let names = CodecId::ALL.map(CodecId::name).join(" ");
    let row = format!("| `codec` | word | `{names}` |");
    assert!(page.contains(&row), "io/FORMAT.md lacks this row of the frame table: {row}");
}
