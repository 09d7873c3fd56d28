//! Ranks as threads that may wait for each other without end.

use std::sync::mpsc;
use std::time::Duration;

use recoup_comm::Threads;
use recoup_core::{Comm, CommError};

/// Longer than any of these runs takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs `run` on this many ranks, none of which ends before all have come to their end: a call that
/// one rank has left early hangs, as it does between processes. Gives up on it then.
///
/// # Panics
/// When the ranks wait for each other, or one of them panics.
pub fn watched<T: Send + 'static>(
    what: &str,
    ranks: usize,
    run: impl Fn(&Threads) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let ended = Threads::launch(ranks, |comm| {
            let ended = run(&comm);
            comm.barrier().map(|()| ended)
        });
        sender.send(ended.into_iter().collect::<Result<Vec<T>, CommError>>())
    });
    let ended = receiver.recv_timeout(PATIENCE).ok().and_then(Result::ok);
    ended.unwrap_or_else(|| panic!("{what}: the ranks wait for each other, or one panicked"))
}
