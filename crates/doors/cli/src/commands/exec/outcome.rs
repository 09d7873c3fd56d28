//! Counts that ranks report at the end of a job, in one line.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Calls of all streams, as the first rank of each has counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallCounts {
    calls: u64,
    kept: u64,
    replayed: u64,
    guessed: u64,
    resumed: u64,
    left: u64,
}

impl CallCounts {
    /// Reads the report; a rank that was killed has written no line.
    pub(super) fn read(report: &Path) -> Self {
        let text = std::fs::read_to_string(report).unwrap_or_default();
        text.lines().fold(Self::default(), |sum, line| sum.with(line).unwrap_or(sum))
    }

    fn with(self, line: &str) -> Option<Self> {
        let counts: Vec<u64> = line.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [calls, kept, replayed, guessed, resumed, left] = counts.try_into().ok()?;
        Some(Self {
            calls: self.calls + calls,
            kept: self.kept + kept,
            replayed: self.replayed + replayed,
            guessed: self.guessed + guessed,
            resumed: self.resumed + resumed,
            left: self.left + left,
        })
    }

    /// Returns the line that the job ends with, if it has reported.
    pub(super) fn line(self) -> Option<String> {
        let Self { calls, kept, replayed, guessed, resumed, left } = self;
        (calls > 0).then(|| {
            format!(
                "{calls} calls: {replayed} answered from the log, {resumed} resumed within, {guessed} from a first \
                 guess there, {kept} saved, {left} too short to save"
            )
        })
    }
}

/// Returns the likely reason that nothing was caught.
pub(super) fn reason(command: &[OsString]) -> String {
    let programs = command.iter().filter_map(|word| find(Path::new(word)));
    let mut reasons = programs.filter_map(|program| Some(format!("{} {}", program.display(), unreachable(&program)?)));
    let none = "no program called KSPSolve of a shared libpetsc with an engine; of SciPy, python -m recoup.run catches \
                solves";
    reasons.next_back().unwrap_or_else(|| none.to_owned())
}

/// Returns the file of a program, by its path or on PATH.
fn find(word: &Path) -> Option<PathBuf> {
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    if word.components().count() > 1 {
        return Some(word.to_owned()).filter(is_program);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(word)).find(is_program)
}

/// Returns why nothing can be preloaded into a program, if so.
fn unreachable(program: &Path) -> Option<&'static str> {
    let mode = program.metadata().ok()?.permissions().mode();
    if mode & 0o6000 != 0 {
        return Some("runs as another user or group (setuid), and takes no preloaded library");
    }
    if rustix::fs::getxattr(program, "security.capability", &mut [0_u8; 64]).is_ok() {
        return Some("has file capabilities, and takes no preloaded library");
    }
    let is_static = !has_interpreter(&std::fs::read(program).ok()?)?;
    is_static.then_some("is linked statically, and takes no preloaded library")
}

/// Returns whether an ELF file of 64 bits names the loader that would preload; `None` for any other
/// file.
fn has_interpreter(bytes: &[u8]) -> Option<bool> {
    const INTERPRETER: u32 = 3;
    let short = |at: usize| bytes.get(at..)?.first_chunk().map(|bytes| usize::from(u16::from_le_bytes(*bytes)));
    let start = usize::try_from(u64::from_le_bytes(*bytes.get(32..)?.first_chunk()?)).ok()?;
    let size = short(54)?;
    let count = short(56)?;
    let kind = |index: usize| {
        let at = start.checked_add(index * size)?;
        bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    };
    bytes.starts_with(b"\x7fELF\x02").then(|| (0..count).any(|index| kind(index) == Some(INTERPRETER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_streams_add_up_and_a_line_cut_short_counts_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let report = dir.path().join("report");
        std::fs::write(&report, "10 4 5 0 1 1\n2 2 0 0 0 0\n7 7").unwrap();
        let outcome = CallCounts::read(&report);
        assert_eq!(outcome, CallCounts { calls: 12, kept: 6, replayed: 5, guessed: 0, resumed: 1, left: 1 });
        assert!(outcome.line().unwrap().starts_with("12 calls: 5 answered"));
        assert_eq!(CallCounts::read(&dir.path().join("none")).line(), None);
    }
}
