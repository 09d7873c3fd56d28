//! libveloc-client as programs meet it: C programs built against the headers and linked with the
//! library, killed and restarted; and clients as threads, for what takes several ranks and one
//! cunning hand.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]
#![expect(unsafe_code, reason = "clients are given memory as C programs give it")]

mod arguments;
mod clients;
mod cpp;
#[cfg(all(feature = "cuda", target_os = "linux"))]
mod device;
mod faults;
mod guide;
mod kills;
mod one_rank;
mod package;
mod support;
