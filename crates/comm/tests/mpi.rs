//! Does an MPI communicator keep every promise of the trait, on one to five processes, at both
//! thread levels?
//!
//! Started by hand it starts itself under `mpirun`; there it runs the suite.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at the first surprise")]
#![expect(clippy::disallowed_methods, reason = "a test of communicators")]

use std::process::Command;

use recoup_comm::{MpiJob, ThreadLevel};
use recoup_core::Comm;
use recoup_testkit::{comm_suite, mpirun};

/// Names the level in a process of the job.
const LEVEL: &str = "RECOUP_TEST_MPI_LEVEL";

fn main() {
    match std::env::var(LEVEL).as_deref() {
        Ok("serialized") => rank(ThreadLevel::Serialized),
        Ok(_) => rank(ThreadLevel::Multiple),
        Err(_) => launch(),
    }
}

fn launch() {
    let program = std::env::current_exe().unwrap();
    for level in ["multiple", "serialized"] {
        for ranks in 1..=5 {
            let job = mpirun::job(ranks, |command: &mut Command| {
                command.arg(&program).env(LEVEL, level);
            });
            assert!(job.success(), "{ranks} ranks, {level}:\n{job}");
            println!("{ranks} ranks, {level}: ok");
        }
    }
}

fn rank(level: ThreadLevel) {
    let job = MpiJob::start_with(level).unwrap();
    let comm = job.comm().unwrap();
    comm_suite::run(&comm);
    threads_wait_for_different_calls_at_once(&comm);
    drop(comm);
    assert!(job.meet(std::time::Duration::from_secs(20)));
}

/// Two threads of each rank make many calls on communicators of their own, in orders that differ
/// between ranks.
fn threads_wait_for_different_calls_at_once(comm: &dyn Comm) {
    let ours = comm.dup().unwrap();
    let theirs = comm.dup().unwrap();
    std::thread::scope(|scope| {
        for mine in [ours, theirs] {
            scope.spawn(move || {
                for round in 0..200 {
                    let mut sum = [1.0];
                    mine.sum(&mut sum).unwrap();
                    assert_eq!(sum, [mine.size() as f64]);
                    let mut bytes = vec![round as u8; usize::from(mine.rank() == round % mine.size()) * round];
                    mine.broadcast(round % mine.size(), &mut bytes).unwrap();
                    assert_eq!(bytes, vec![round as u8; round]);
                }
            });
        }
    });
}
