//! The call stack as files of this workspace: which of them a value passes on its way.

use std::backtrace::Backtrace;
use std::path::Path;

/// Returns the files of this workspace whose functions are on the stack, outermost first. A file
/// that calls itself counts once; tests do not count.
///
/// # Panics
/// When this crate lies in no workspace.
pub fn files_on_stack() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a crate of a workspace");
    let trace = format!("{:#}", Backtrace::force_capture());
    let file = |line: &str| {
        let place = line.trim_start().strip_prefix("at ")?.rsplitn(3, ':').last()?;
        let path = Path::new(place).strip_prefix(root).ok()?.to_str()?.to_owned();
        Some(path).filter(|path| !path.contains("tests") && path != file!())
    };
    let mut files: Vec<String> = trace.lines().filter_map(file).collect();
    files.reverse();
    files.dedup();
    files
}
