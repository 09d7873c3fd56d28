//! A program whose system calls are answered one by one: each continues, or fails as on a broken
//! disk.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};

use super::calls::{self, WritingCall};
use super::sys::{self, Waited};

/// Time of a run, at most; one that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(20);
/// Time between two looks at whether the program has ended.
const LOOK_MILLISECONDS: i32 = 5;

/// An error of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DiskError {
    #[value(name = "ENOSPC")]
    Enospc,
    #[value(name = "EIO")]
    Eio,
    #[value(name = "EDQUOT")]
    Edquot,
}

/// For how long a disk fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultSpan {
    /// One call.
    Once,
    /// To the end of the program. A full disk lets calls that free space succeed.
    Onwards,
}

/// The fault of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskFault {
    pub(super) error: DiskError,
    pub(super) span: FaultSpan,
    /// Position among the calls that write below the folder, from 1.
    pub(super) call: usize,
}

/// The end of a supervised program.
pub(super) struct SupervisedRun {
    /// Calls that write below the folder.
    pub(super) n_calls: usize,
    /// The first call that failed, and its file below the folder.
    pub(super) failed: Option<(&'static str, String)>,
    /// Files below the folder that were not removed, as the call failed.
    pub(super) not_removed: Vec<String>,
    pub(super) status: ExitStatus,
    pub(super) is_hung: bool,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl DiskError {
    pub(super) const ALL: [Self; 3] = [Self::Enospc, Self::Eio, Self::Edquot];

    fn number(self) -> i32 {
        match self {
            Self::Enospc => libc::ENOSPC,
            Self::Eio => libc::EIO,
            Self::Edquot => libc::EDQUOT,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Enospc => "ENOSPC",
            Self::Eio => "EIO",
            Self::Edquot => "EDQUOT",
        }
    }
}

/// Counts calls, and decides which of them fail.
struct Supervisor<'a> {
    calls: Vec<WritingCall>,
    folder: &'a Path,
    fault: Option<DiskFault>,
    n_calls: usize,
    failed: Option<(&'static str, String)>,
    not_removed: Vec<String>,
}

impl Supervisor<'_> {
    /// Answers the call that waits.
    fn serve(&mut self, listener: &OwnedFd) -> io::Result<()> {
        let Some(waiting) = sys::receive(listener)? else { return Ok(()) };
        let call = self.calls.iter().position(|call| call.number == waiting.number);
        let path = call.and_then(|call| self.calls[call].path(&waiting));
        let error = match (call, path) {
            (Some(call), Some(path)) => path.strip_prefix(self.folder).ok().and_then(|path| self.decide(call, path)),
            _ => None,
        };
        sys::answer(listener, &waiting, error)
    }

    /// Returns the error of the call, which is the next that writes below the folder.
    fn decide(&mut self, call: usize, path: &Path) -> Option<i32> {
        self.n_calls += 1;
        let WritingCall { name, frees_space, .. } = self.calls[call];
        let fault = self.fault?;
        let fails = match fault.span {
            FaultSpan::Once => self.n_calls == fault.call,
            FaultSpan::Onwards => self.n_calls >= fault.call && (fault.error == DiskError::Eio || !frees_space),
        };
        let path = path.display().to_string();
        if fails && frees_space {
            self.not_removed.push(path.clone());
        }
        if fails && self.failed.is_none() {
            self.failed = Some((name, path));
        }
        fails.then(|| fault.error.number())
    }

    /// Serves the calls of a program until it has ended. Returns whether it had to be killed.
    fn attend(&mut self, listener: &OwnedFd, started: &Receiver<io::Result<Child>>) -> Result<(Child, bool)> {
        let begun = SystemTime::now();
        let mut child: Option<Child> = None;
        let mut is_hung = false;
        loop {
            let waited = sys::wait(listener, LOOK_MILLISECONDS)?;
            if waited == Waited::Call {
                self.serve(listener)?;
            }
            if child.is_none() {
                child = started.try_recv().ok().transpose().context("start the program")?;
            }
            let Some(child_now) = child.as_mut() else { continue };
            let has_ended = waited != Waited::Call && child_now.try_wait()?.is_some();
            if !has_ended && !is_hung && begun.elapsed().unwrap_or_default() > LIMIT {
                is_hung = true;
                sys::kill_group(child_now.id());
            }
            if has_ended {
                break;
            }
        }
        Ok((child.context("the program has started")?, is_hung))
    }
}

/// Runs a program to its end, in `folder`; calls that write below it are counted, and fail as the
/// fault says.
pub(super) fn run(mut command: Command, folder: &Path, fault: Option<DiskFault>) -> Result<SupervisedRun> {
    let outputs = tempfile::tempdir()?;
    let texts = ["out", "err"].map(|name| outputs.path().join(name));
    command.current_dir(folder).process_group(0).stdin(Stdio::null());
    command.stdout(File::create(&texts[0])?).stderr(File::create(&texts[1])?);
    let calls = calls::all();
    let numbers: Vec<i64> = calls.iter().map(|call| call.number).collect();
    let (listener_sender, listener) = channel();
    let (child_sender, child) = channel();
    let launcher = std::thread::spawn(move || launch(&numbers, command, &listener_sender, &child_sender));
    let listener = listener.recv()?.context("seccomp user notification (Linux 5.5 and newer)")?;
    let mut supervisor = Supervisor { calls, folder, fault, n_calls: 0, failed: None, not_removed: Vec::new() };
    let (mut child, is_hung) = supervisor.attend(&listener, &child)?;
    let status = child.wait()?;
    launcher.join().map_err(|_| anyhow::anyhow!("the thread that starts programs panicked"))?;
    let [stdout, stderr] = texts.map(|path| fs::read(path).map(|text| String::from_utf8_lossy(&text).into_owned()));
    let Supervisor { n_calls, failed, not_removed, .. } = supervisor;
    Ok(SupervisedRun { n_calls, failed, not_removed, status, is_hung, stdout: stdout?, stderr: stderr? })
}

/// Returns whether calls can be supervised here.
pub(super) fn is_possible() -> bool {
    std::thread::spawn(|| sys::listen(&[]).is_ok()).join().unwrap_or(false)
}

/// Starts a program from a thread of its own, whose calls wait from here on. The reader of the
/// listener must serve them, or the program never starts.
fn launch(
    numbers: &[i64],
    mut command: Command,
    listener: &Sender<io::Result<OwnedFd>>,
    child: &Sender<io::Result<Child>>,
) {
    let listening = sys::listen(numbers);
    let can_go_on = listening.is_ok();
    // A reader that has gone away has had an error of its own.
    let _ = listener.send(listening);
    if can_go_on {
        let _ = child.send(command.spawn());
    }
}
