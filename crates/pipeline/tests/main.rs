//! Sessions from outside.

mod device_values;
mod hashed_zones;
mod road;
mod snapshot;
