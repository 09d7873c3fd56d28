//! One file per subcommand: its arguments, and a `run` that prints what the library answers.

pub(crate) mod annotate;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod device;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod export;
pub(crate) mod inspect;
pub(crate) mod man;
pub(crate) mod memory;
pub(crate) mod model;
pub(crate) mod prune;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod solve;
pub(crate) mod status;
pub(crate) mod tape;
pub(crate) mod verify;
pub(crate) mod watch;
