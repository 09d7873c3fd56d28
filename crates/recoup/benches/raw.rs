//! The cost of a raw version in memory with a copy on a partner, next to a plain copy of the same
//! bytes in the same run.
//!
//! `cargo bench -p recoup --bench raw` starts itself under `mpirun` on 2 ranks, which share 262 MB.
//! Each round makes a version and a plain copy in turn. Times are those of the slowest rank.
//! Processor time counts what a rank's thread did, not what it waited for, and is the one to
//! read on a busy machine.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::path::Path;

use recoup::SystemClock;
use recoup::cache::{NodeStore, Partners, Protection};
use recoup::comm::MpiJob;
use recoup::core::{Clock, Comm, ElementType, Frame, Manifest, NextCall, Role, Store, VariableRecord, gather_json};
use recoup_testkit::mpirun;

/// Says to a process that it is one of the job, and where its memory is.
const MEMORY: &str = "RECOUP_BENCH_MEMORY";
/// Values of each of two ranks, and of a frame.
const LEN: usize = 16 << 20;
const FRAME_LEN: usize = 1 << 20;
/// Rounds that make the memory, and rounds that count.
const ROUNDS: (usize, usize) = (3, 15);

fn main() {
    if let Some(memory) = std::env::var_os(MEMORY) {
        return rank(Path::new(&memory));
    }
    let memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let program = std::env::current_exe().unwrap();
    let job = mpirun::job(2, |command| {
        command.arg(program).env(MEMORY, memory.path());
    });
    assert!(job.success(), "{job}");
    print!("{}", job.stdout);
}

/// Seconds on the clock, and seconds that the processor worked for this thread.
fn now(clock: &SystemClock) -> [f64; 2] {
    let worked = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let worked = worked.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    [clock.now().as_secs_f64(), worked.map_or(f64::NAN, |ns| ns * 1e-9)]
}

fn rank(memory: &Path) {
    let job = MpiJob::start().unwrap();
    {
        let comm = job.comm().unwrap();
        measure(memory, &comm);
    }
    job.end(0);
}

fn measure(memory: &Path, comm: &dyn Comm) {
    let rank = comm.rank();
    let values: Vec<f64> = (0..LEN).map(|i| (i + rank) as f64).collect();
    let store = NodeStore::new(memory.join(rank.to_string()), rank);
    let store = store.guarded(Protection::Partner(Partners::Ring(1)), 1);
    let mut target = values.clone();
    let clock = SystemClock::new();
    let mut steps = [("plain copy", Vec::new()), ("own part", Vec::new()), ("partner, commit", Vec::new())];
    for round in 0..ROUNDS.0 + ROUNDS.1 {
        let version = round as u64 + 1;
        let mut step = |index: usize, work: &mut dyn FnMut()| {
            comm.barrier().unwrap();
            let start = now(&clock);
            work();
            let end = now(&clock);
            let all = gather_json(comm, &[end[0] - start[0], end[1] - start[1]]).unwrap();
            steps[index]
                .1
                .push(all.into_iter().fold([0.0, 0.0], |most: [f64; 2], one| [0, 1].map(|i| most[i].max(one[i]))));
        };
        step(0, &mut || target.copy_from_slice(black_box(&values)));
        black_box(&mut target);
        let mut manifest = manifest(version, rank);
        let frames: Vec<_> = frames(&manifest.variables[0], &values);
        let mut frames = Some(frames);
        step(1, &mut || {
            let mut frames = frames.take().unwrap();
            let mut draft = store.begin(version, rank).unwrap();
            draft.write(&manifest.variables[0], &mut frames, NextCall::Seal).unwrap();
            manifest.files = draft.seal().unwrap().files;
            manifest.frames = frames.into_iter().map(|frame| frame.record).collect();
        });
        step(2, &mut || {
            store.publish(&manifest, comm).unwrap();
        });
        if version > 1 {
            store.remove(version - 1).unwrap();
        }
    }
    if rank == 0 {
        print(&mut steps);
    }
}

fn manifest(version: u64, rank: usize) -> Manifest {
    let variable = VariableRecord::new("x", rank, Role::Iterate, ElementType::F64, LEN);
    let variables = vec![VariableRecord { frame_dims: [FRAME_LEN, 1, 1], ..variable }];
    Manifest { variables, ..Manifest::new("bench", version, 2) }
}

/// Frames as the pipeline lends them: staged memory whose sums are known.
fn frames<'a>(variable: &VariableRecord, values: &'a [f64]) -> Vec<Frame<'a>> {
    let frame = |(run, values): (usize, &'a [f64])| {
        let payload = recoup::core::Values::F64(values).as_raw().unwrap();
        let record = variable.raw_frame(run, payload, crc32c::crc32c(payload));
        Frame { record, filters: Vec::new(), payload: payload.into() }
    };
    values.chunks(FRAME_LEN).enumerate().map(frame).collect()
}

/// Prints medians and lower quartiles, in milliseconds and in plain copies.
fn print(steps: &mut [(&str, Vec<[f64; 2]>)]) {
    let at = |seconds: &[[f64; 2]], which: usize, quarter: usize| {
        let mut seconds: Vec<f64> = seconds.iter().skip(ROUNDS.0).map(|both| both[which]).collect();
        seconds.sort_by(f64::total_cmp);
        1e3 * seconds[quarter * (seconds.len() - 1) / 4]
    };
    let columns = [(0, 2), (0, 1), (1, 2), (1, 1)];
    let copy = columns.map(|(which, quarter)| at(&steps[0].1, which, quarter));
    println!(
        "{:>16} {:>20} {:>20} {:>20} {:>20}",
        "ms (copies)", "median", "lower quartile", "processor, median", "lower quartile"
    );
    for (name, seconds) in steps {
        print!("{name:>16}");
        for ((which, quarter), copy) in columns.into_iter().zip(copy) {
            let ms = at(seconds, which, quarter);
            print!(" {:>20}", format!("{ms:.1} ({:.2})", ms / copy));
        }
        println!();
    }
}
