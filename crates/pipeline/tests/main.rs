//! Sessions from outside.

mod afar;
mod hashed_zones;
mod road;
mod snapshot;
