//! Sessions from outside.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod device_values;
mod hashed_zones;
mod road;
mod snapshot;
