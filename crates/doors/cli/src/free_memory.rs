//! The memory that this process may still take: of the machine, of its control groups, of its own
//! limit.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

/// Returns the bytes that may still be taken, as far as the system says.
pub(crate) fn free_bytes() -> Option<u64> {
    [available_bytes(), group_bytes(), own_bytes()].into_iter().flatten().min()
}

/// Returns what programs of this machine may still take.
fn available_bytes() -> Option<u64> {
    kibibytes(&read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// Returns what the limit on the memory of this process leaves.
fn own_bytes() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    let taken = kibibytes(&read_to_string("/proc/self/status").ok()?, "VmSize:")?;
    Some(limit.saturating_sub(taken))
}

fn kibibytes(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    value.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}

/// Returns what the control groups of this process leave: of either version of them.
fn group_bytes() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let folders = groups.lines().filter_map(|line| {
        let mut words = line.splitn(3, ':').skip(1);
        let controllers = words.next()?;
        let path = words.next()?;
        let is_second = controllers.is_empty();
        let root = if is_second { "/sys/fs/cgroup" } else { "/sys/fs/cgroup/memory" };
        let is_ours = is_second || controllers.split(',').any(|controller| controller == "memory");
        is_ours.then(|| (PathBuf::from(root), path.trim_start_matches('/').to_owned()))
    });
    folders
        .filter_map(|(root, path)| {
            root.join(path)
                .ancestors()
                .map_while(|folder| folder.starts_with(&root).then(|| left_in(folder)))
                .flatten()
                .min()
        })
        .min()
}

/// Returns what one control group leaves; what it has cached of files counts as free.
fn left_in(folder: &Path) -> Option<u64> {
    let number = |names: [&str; 2]| {
        let text = names.iter().find_map(|name| read_to_string(folder.join(name)).ok())?;
        text.trim().parse::<u64>().ok()
    };
    let limit = number(["memory.max", "memory.limit_in_bytes"])?;
    let taken = number(["memory.current", "memory.usage_in_bytes"])?;
    let counts = read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cached = counts.lines().find_map(|line| line.strip_prefix("inactive_file ")?.trim().parse::<u64>().ok());
    Some(limit.saturating_sub(taken.saturating_sub(cached.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_leaves_its_limit_less_what_it_holds_but_for_files() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        assert_eq!(left_in(dir.path()), None);
        write("memory.max", "max\n");
        write("memory.current", "700\n");
        assert_eq!(left_in(dir.path()), None, "no limit");
        write("memory.max", "1000\n");
        write("memory.stat", "anon 400\ninactive_file 250\n");
        assert_eq!(left_in(dir.path()), Some(550));
        assert_eq!(kibibytes("MemFree: 1 kB\nMemAvailable:    12 kB\n", "MemAvailable:"), Some(12 << 10));
    }
}
