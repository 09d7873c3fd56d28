//! The output of `recoup --version`: sources, machine and parts of this build.

use std::sync::LazyLock;

use recoup::core::CodecId;

/// Version of this build.
pub(crate) const NUMBER: &str = env!("CARGO_PKG_VERSION");

/// Number, commit, target, features and codecs, a line each.
pub(crate) static LONG: LazyLock<String> = LazyLock::new(|| {
    let commit = option_env!("RECOUP_COMMIT").unwrap_or("not known");
    let features = [("cuda", cfg!(feature = "cuda")), ("mpi", true), ("sz3", cfg!(feature = "sz3"))];
    let features: Vec<&str> = features.iter().filter(|(_, is_in)| *is_in).map(|(name, _)| *name).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    let codecs = CodecId::ALL.iter().filter(|&&id| recoup::compress::codec(id).is_ok());
    let codecs: Vec<String> = codecs.map(ToString::to_string).collect();
    let target = env!("RECOUP_TARGET");
    let codecs = codecs.join(", ");
    format!("{NUMBER}\ncommit: {commit}\ntarget: {target}\nfeatures: {features}\ncodecs: {codecs}")
});
