//! Every codec of the table passes the suite.

use recoup_compress::{bound_holds, codec, decode_raw};
use recoup_core::CodecId;
use recoup_testkit::codec_suite::{Judge, keeps_its_promises, survives_damage};

const JUDGE: Judge = Judge { bound_holds, decode_raw };

#[test]
fn raw_keeps_its_promises() {
    keeps_its_promises(&*codec(CodecId::Raw).unwrap(), JUDGE);
}

#[test]
fn zstd_keeps_its_promises() {
    keeps_its_promises(&*codec(CodecId::Zstd).unwrap(), JUDGE);
}

#[test]
fn pco_keeps_its_promises() {
    keeps_its_promises(&*codec(CodecId::Pco).unwrap(), JUDGE);
}

#[test]
fn zfp_keeps_its_promises() {
    keeps_its_promises(&*codec(CodecId::Zfp).unwrap(), JUDGE);
}

#[test]
fn qb_keeps_its_promises() {
    keeps_its_promises(&*codec(CodecId::Qb).unwrap(), JUDGE);
}

#[test]
#[cfg(feature = "sz3")]
fn sz3_keeps_its_promises() {
    keeps_its_promises(&*codec(CodecId::Sz3).unwrap(), JUDGE);
}

#[test]
fn safe_decoders_survive_every_truncation_and_every_flipped_bit() {
    for id in [CodecId::Raw, CodecId::Zstd, CodecId::Pco, CodecId::Zfp, CodecId::Qb] {
        survives_damage(&*codec(id).unwrap());
    }
}
