//! `--residual-log`: a line per iteration, written as it goes, so that a run that is killed leaves
//! what it had.

use std::fs::File;
use std::io::{Read as _, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result};
use recoup::core::{Clock, Progress};

/// Names of the columns.
const HEADER: &str = "executed,iteration,seconds,relative_residual";
/// Longer than any line.
const LINE_MAX: u64 = 256;

/// The reason why the rest of a log is missing, if it is.
pub(crate) type LogLost = Arc<OnceLock<String>>;

/// The lines of a solve, through all its processes.
pub(crate) struct ResidualLog {
    /// `None` once it could not be written to.
    file: Option<File>,
    path: PathBuf,
    lost: LogLost,
    clock: Arc<dyn Clock>,
    since: Duration,
    /// Iterations and seconds of the processes before this one.
    before: (u64, f64),
}

impl ResidualLog {
    /// Opens the file at `path`, adding to what is there or taking its place.
    pub(crate) fn open(path: &Path, clock: Arc<dyn Clock>, adds: bool) -> Result<Self> {
        let open = || -> std::io::Result<(File, (u64, f64))> {
            let mut file = File::options().create(true).read(true).write(true).truncate(!adds).open(path)?;
            let length = file.seek(SeekFrom::End(0))?;
            if length == 0 {
                file.write_all(format!("{HEADER}\n").as_bytes())?;
                return Ok((file, (0, 0.0)));
            }
            let before = continued(&mut file, length)?;
            Ok((file, before))
        };
        let (file, before) = open().with_context(|| format!("--residual-log {}", path.display()))?;
        let path = path.to_owned();
        let lost = LogLost::default();
        let since = clock.now();
        Ok(Self { file: Some(file), path, lost, since, clock, before })
    }

    /// Tells, once it is so, that lines are missing: the log itself goes where the solver is
    /// watched.
    pub(crate) fn lost(&self) -> LogLost {
        self.lost.clone()
    }

    /// Writes the line of an iteration, after `executed` of them in this process.
    pub(crate) fn write(&mut self, progress: &Progress, executed: u64) {
        let Some(file) = &mut self.file else { return };
        let seconds = self.before.1 + self.clock.now().saturating_sub(self.since).as_secs_f64();
        let iteration = progress.iteration;
        let residual = progress.relative_residual();
        let line = format!("{},{iteration},{seconds:.6},{residual:e}\n", self.before.0 + executed);
        // One call for each line: a kill leaves whole lines.
        let whole = file.stream_position();
        if let Err(error) = file.write_all(line.as_bytes()) {
            // Best effort: a run that continues cuts off what is no line, too.
            whole.and_then(|whole| file.set_len(whole)).ok();
            let text = format!("--residual-log {}: ends before iteration {iteration}: {error}", self.path.display());
            tracing::warn!("{text}");
            self.lost.set(text).ok();
            self.file = None;
        }
    }
}

/// Executed iterations and seconds of the last whole line; what comes behind it is cut off.
fn continued(file: &mut File, length: u64) -> std::io::Result<(u64, f64)> {
    let start = length.saturating_sub(LINE_MAX);
    let mut tail = String::new();
    file.seek(SeekFrom::Start(start))?;
    file.read_to_string(&mut tail)?;
    let whole = tail.rfind('\n').map_or(0, |end| end + 1);
    file.set_len(start + whole as u64)?;
    file.seek(SeekFrom::End(0))?;
    let mut columns = tail[..whole].lines().next_back().unwrap_or_default().split(',');
    let executed = columns.next().and_then(|text| text.parse().ok()).unwrap_or(0);
    Ok((executed, columns.nth(1).and_then(|text| text.parse().ok()).unwrap_or(0.0)))
}

#[cfg(test)]
mod tests {
    use recoup::SystemClock;
    use recoup::core::{SafePoint, Status};

    use super::*;

    #[test]
    fn a_log_that_was_cut_goes_on_behind_its_last_whole_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.csv");
        std::fs::write(&path, format!("{HEADER}\n1,1,0.5,1e0\n7,4,2.500000,5e-1\n8,5,3.0")).unwrap();
        let mut log = ResidualLog::open(&path, Arc::new(SystemClock::new()), true).unwrap();
        assert_eq!(log.before, (7, 2.5));
        let status = Status::Running;
        let safe_point = SafePoint::Any;
        log.write(&Progress { iteration: 5, residual_norm: 1.0, rhs_norm: 4.0, status, safe_point }, 1);
        let text = std::fs::read_to_string(&path).unwrap();
        let last: Vec<&str> = text.lines().next_back().unwrap().split(',').collect();
        assert_eq!((text.lines().count(), last[0], last[1], last[3]), (4, "8", "5", "2.5e-1"), "{text}");
        ResidualLog::open(&path, Arc::new(SystemClock::new()), false).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{HEADER}\n"));
    }
}
