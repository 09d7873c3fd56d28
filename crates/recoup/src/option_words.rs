//! Options strings: the keys they have, and paths that are one by mistake.

use std::path::Path;

/// The keys of an options string that describes a session, as messages list them.
pub const OPTION_KEYS: &str = "dir, name, scheme, codec, bound, theta, delta, interval, state, keep, max-bytes, \
                               key-every, increments, threads, sync, stay, systems, same-operator, mtti, rtol, \
                               pfs-bandwidth, tiers, memory-dir, node-ranks, pfs-every, drain, method, \
                               time-limit";

/// Returns the first part of a path that reads like an option of `keys`, which a list separates by
/// commas. `dir=x,interval=10it` would otherwise make a directory of the name `x,interval=10it`.
/// What exists under that name is taken.
///
/// ```
/// use recoup::{OPTION_KEYS, option_in_path};
///
/// assert_eq!(option_in_path("x,interval=10it", OPTION_KEYS), Some("interval=10it"));
/// assert_eq!(option_in_path("runs/n=32,dt=0.1", OPTION_KEYS), None);
/// ```
#[must_use]
pub fn option_in_path<'a>(path: &'a str, keys: &str) -> Option<&'a str> {
    let is_key = |text: &str| keys.split(", ").any(|key| key == text.replace('_', "-"));
    let is_option = |part: &&str| part.split_once('=').is_some_and(|(key, _)| is_key(key));
    let found = path.split([',', ';', ' ', '\t', '\n']).find(is_option);
    found.filter(|_| !Path::new(path).exists())
}
