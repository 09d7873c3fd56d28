//! Do the calls and bytes of a rank for an iteration, a version and a restore grow with the number
//! of ranks?
//!
//! The ranks are threads of one process. Their vectors are a few rows long, so nearly all bytes are
//! the library's own: agreement, manifests and guards.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use recoup::cache::{Dispensable, RunMemory, RunPlace, TierList};
use recoup::comm::Threads;
use recoup::core::{Clock, CodecId, Comm, CommError, Iteration, Operator, Plan, Scheme};
use recoup::io::{Access, Hdf5Store, SystemClock};
use recoup::solvers::{Cg, Identity, Method, Pool, Stop, System};
use recoup::{Builder, Drain, Nodes, PfsEvery, TierOptions};
use recoup_testkit::counting_comm::{CommCounts, CountingComm};
use recoup_testkit::folders::{entries, versions};

use crate::support::{fixed, plan};

/// Rows of a rank where the number of ranks is that of the first job.
const ROWS: usize = 4;
/// Ranks of a node.
const NODE: usize = 4;
const EVERY: u64 = 4;

/// A line of points, shared among ranks in a row, each joined to the two next to it.
struct Line {
    comm: Mutex<Box<dyn Comm>>,
    rows: usize,
    first: u64,
    global: u64,
}

impl Line {
    fn new(comm: &dyn Comm, global: usize) -> Self {
        let start = |rank: usize| rank * global / comm.size();
        let first = start(comm.rank());
        let rows = start(comm.rank() + 1) - first;
        Self { comm: Mutex::new(comm.dup().unwrap()), rows, first: first as u64, global: global as u64 }
    }

    fn rhs(&self) -> Arc<[f64]> {
        (0..self.rows as u64).map(|row| ((self.first + row) % 7) as f64 - 2.0).collect()
    }
}

impl Operator for Line {
    fn rows(&self) -> usize {
        self.rows
    }

    fn first_row(&self) -> u64 {
        self.first
    }

    fn global_rows(&self) -> u64 {
        self.global
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        let comm = self.comm.lock().unwrap();
        let rank = comm.rank();
        let mut before = [0.0];
        let mut after = [0.0];
        let mut sends = Vec::new();
        let mut receives: Vec<(usize, &mut [f64])> = Vec::new();
        if rank > 0 {
            sends.push((rank - 1, &x[..1]));
            receives.push((rank - 1, &mut before));
        }
        if rank + 1 < comm.size() {
            sends.push((rank + 1, &x[x.len() - 1..]));
            receives.push((rank + 1, &mut after));
        }
        comm.exchange(&sends, &mut receives)?;
        let at = |row: usize| x.get(row).copied();
        for (row, y) in y.iter_mut().enumerate() {
            let left = row.checked_sub(1).map_or(before[0], |row| x[row]);
            *y = 2.5 * x[row] - left - at(row + 1).unwrap_or(after[0]);
        }
        Ok(())
    }
}

/// The counts of one rank.
#[derive(Clone, Copy, Debug, Default)]
struct Phases {
    open: CommCounts,
    iteration: CommCounts,
    version: CommCounts,
    restore: CommCounts,
}

/// Where the versions of a job are.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place<'a> {
    dir: &'a Path,
    tiers: &'static str,
}

impl Place<'_> {
    fn builder(&self, a: Arc<Line>, b: &Arc<[f64]>) -> Builder {
        let mut options = TierOptions::from(self.tiers.parse::<TierList>().unwrap());
        options.memory_dir = self.dir.join("memory");
        options.pfs_every = PfsEvery::Given(1);
        options.drain = Some(Drain::Off);
        options.nodes = Nodes::Ranks(NODE);
        options.is_forgiving = true;
        let builder = recoup::open(self.dir.join("ckpt")).system(a, b.clone()).plan(plan(Scheme::Traditional));
        builder.every(EVERY).synchronous(true).threads(1).pin_worker(true).tier_options(options)
    }

    fn lose_node(&self, node: usize) {
        let run = RunPlace { dir: Some(&self.dir.join("ckpt")), name: "solve" };
        let memory = RunMemory::new(&self.dir.join("memory"), run).unwrap();
        memory.of_node(node).unwrap().remove(&Dispensable::given_up()).unwrap();
    }
}

/// The iterate of a job, of all ranks in order, and the counts of each.
struct JobEnd {
    x: Vec<f64>,
    resumed_at: u64,
    phases: Vec<Phases>,
}

/// Iterates from the newest version, if there is one, to iteration `end`; every fourth makes a
/// version.
fn run(place: Place<'_>, ranks: usize, global: usize, end: u64) -> JobEnd {
    let of_ranks = Threads::launch(ranks, |comm| {
        let comm = CountingComm::new(Box::new(comm));
        let mut phases = Phases::default();
        let mut before = comm.counts();
        let mut passed = |phase: &mut CommCounts| {
            let now = comm.counts();
            *phase = now - before;
            before = now;
        };
        let a = Line::new(&comm, global);
        let b = a.rhs();
        let pool = Pool::new(1);
        let system = System { a: &a, b: &b, comm: &comm, pool: &pool };
        let mut cg = Cg::new(system, &Identity, &vec![0.0; a.rows], Stop::at(1e-300)).unwrap();
        let mut session = place.builder(Arc::new(Line::new(&comm, global)), &b).build_on(&comm).unwrap();
        passed(&mut phases.open);
        session.restore(&mut cg).unwrap();
        passed(&mut phases.restore);
        let resumed_at = cg.progress().iteration;
        for iteration in resumed_at + 1..=end {
            let phase = if iteration % EVERY == 0 { &mut phases.version } else { &mut phases.iteration };
            cg.step().unwrap();
            session.step(&cg).unwrap();
            passed(phase);
        }
        session.wait().unwrap();
        (cg.iterate().unwrap(), resumed_at, phases)
    });
    let resumed_at = of_ranks[0].1;
    let phases = of_ranks.iter().map(|(_, _, phases)| *phases).collect();
    JobEnd { x: of_ranks.into_iter().flat_map(|(x, ..)| x).collect(), resumed_at, phases }
}

/// Saves on `ranks`, and returns the counts of a steady version and of a restore on as many.
fn counted(tiers: &'static str, ranks: usize) -> Vec<Phases> {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    std::fs::create_dir(dir.path().join("memory")).unwrap();
    let place = Place { dir: dir.path(), tiers };
    let saved = run(place, ranks, ROWS * ranks, 3 * EVERY);
    let again = run(place, ranks, ROWS * ranks, 3 * EVERY + 1);
    assert_eq!(again.resumed_at, 3 * EVERY, "{tiers}, {ranks} ranks");
    let phases = saved.phases.iter().zip(again.phases);
    phases.map(|(saved, again)| Phases { restore: again.restore, open: again.open, ..*saved }).collect()
}

/// The mean and the most of all ranks.
fn mean_and_most(phases: &[Phases], count: impl Fn(&Phases) -> u64) -> [u64; 2] {
    let sum: u64 = phases.iter().map(&count).sum();
    [sum.div_ceil(phases.len() as u64), phases.iter().map(count).max().unwrap()]
}

type OfPhase = fn(&Phases) -> CommCounts;

/// The mean and the most of the bytes that go to a rank and come from it.
fn bytes(phases: &[Phases], of: OfPhase) -> [u64; 2] {
    mean_and_most(phases, |phases| of(phases).sent_bytes + of(phases).received_bytes)
}

/// The phases of a job, by name.
const PHASES: [(&str, OfPhase); 4] = [
    ("open", |phases| phases.open),
    ("iteration", |phases| phases.iteration),
    ("version", |phases| phases.version),
    ("restore", |phases| phases.restore),
];

/// Tiers of the jobs that are counted.
const TIERS: [&str; 4] = ["pfs", "memory,partner:ring1", "memory,partner:ring1,rs:4+2", "memory,partner:ring1,pfs"];

fn print(tiers: &str, ranks: usize, phases: &[Phases]) {
    for (name, of) in PHASES {
        let calls = mean_and_most(phases, |phases| of(phases).calls());
        let reductions = mean_and_most(phases, |phases| of(phases).reductions)[1];
        let gathered = mean_and_most(phases, |phases| of(phases).gathered_bytes)[1];
        let sent = mean_and_most(phases, |phases| of(phases).sent_bytes);
        let received = mean_and_most(phases, |phases| of(phases).received_bytes);
        let rank_0 = of(&phases[0]).received_bytes;
        let others = phases[1..].iter().map(|phases| of(phases).received_bytes).max().unwrap_or(0);
        let counts = [calls, sent, received, [rank_0, others]].map(|[mean, most]| format!("{mean:>9}{most:>9}"));
        println!("{tiers:<28}{ranks:>5} {name:<10}{}{reductions:>9}{gathered:>9}", counts.concat());
    }
}

/// Saves on many ranks, loses a host with its memory, and goes on with fewer, twice.
fn loses_a_host(ranks: [usize; 3]) {
    for tiers in ["memory,partner:ring1", "memory,partner:ring1,pfs", "pfs"] {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        std::fs::create_dir(dir.path().join("memory")).unwrap();
        let place = Place { dir: dir.path(), tiers };
        let mut x = Vec::new();
        for now in ranks {
            let clock = SystemClock::new();
            let end = run(place, now, ROWS * ranks[0], 3 * EVERY);
            println!("{tiers}, {now} ranks: {:.1} s", clock.now().as_secs_f64());
            if now < ranks[0] {
                assert_eq!(end.resumed_at, 3 * EVERY, "{tiers}, {now} ranks");
                let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert!(bits(&end.x) == bits(&x), "{tiers}, {now} ranks: other values");
            } else if tiers != "pfs" {
                place.lose_node(3);
            }
            x = end.x;
        }
    }
}

#[test]
fn a_job_of_many_ranks_loses_a_host_and_goes_on_with_fewer() {
    loses_a_host([80, 56, 7]);
}

#[test]
#[ignore = "1,024 ranks in one process: minutes"]
fn a_job_of_1024_ranks_loses_a_host_and_goes_on_with_700_and_with_7() {
    loses_a_host([1024, 700, 7]);
}

/// With a file of each rank's own, this directory had 1,026 entries.
#[test]
fn a_version_of_1024_ranks_has_a_thousand_entries_at_most_and_one_of_few_ranks_their_own_files() {
    for (ranks, expected) in [(8, 8 + 2), (1024, 1024 / NODE + 2)] {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        std::fs::create_dir(dir.path().join("memory")).unwrap();
        run(Place { dir: dir.path(), tiers: "pfs" }, ranks, ROWS * ranks, EVERY);
        let versions = std::fs::read_dir(dir.path().join("ckpt/solve")).unwrap().map(|entry| entry.unwrap().path());
        let versions: Vec<PathBuf> = versions.filter(|path| path.join("manifest.json").exists()).collect();
        assert_eq!(versions.len(), 1);
        assert_eq!(std::fs::read_dir(&versions[0]).unwrap().count(), expected, "{ranks} ranks");
    }
}

/// How the files of a version are laid out.
#[derive(Clone, Copy, Debug)]
struct Layout {
    ranks_per_file: usize,
    parts_from: usize,
}

const OWN_FILES: Layout = Layout { ranks_per_file: 1, parts_from: usize::MAX };

/// Saves at iteration 12, or restores from there: each rank from the directory it is given. Returns
/// the iterates of all ranks in order.
fn saved_or_restored(
    ranks: usize,
    global: usize,
    layout: Layout,
    plan: Plan,
    dir: impl Fn(usize) -> PathBuf + Sync,
) -> Vec<f64> {
    let open = |rank| {
        let store = Hdf5Store::open(dir(rank), "solve", if rank == 0 { Access::Write } else { Access::Join });
        store.map(|store| store.with_ranks_per_file(layout.ranks_per_file).with_parts_from(layout.parts_from))
    };
    let parts = Threads::launch(ranks, |comm| {
        let first = (comm.rank() == 0).then(|| open(0).unwrap());
        comm.barrier().unwrap();
        let store = Arc::new(first.unwrap_or_else(|| open(comm.rank()).unwrap()));
        let a = Line::new(&comm, global);
        let b = a.rhs();
        let pool = Pool::new(1);
        let system = System { a: &a, b: &b, comm: &comm, pool: &pool };
        let mut cg = Cg::new(system, &Identity, &vec![0.0; a.rows], Stop::at(1e-300)).unwrap();
        let builder = recoup::open("unused").system(Arc::new(Line::new(&comm, global)), b.clone()).plan(plan);
        let mut session = builder.every(EVERY).synchronous(true).build_with(store, &comm).unwrap();
        let restored = session.restore(&mut cg).unwrap();
        while cg.progress().iteration < 3 * EVERY {
            assert!(restored.is_none(), "restored the last version");
            cg.step().unwrap();
            session.step(&cg).unwrap();
        }
        session.wait().unwrap();
        cg.iterate().unwrap()
    });
    parts.concat()
}

/// Every rank used to read the manifest of the whole version, and of all it is coded against.
#[test]
fn ranks_restore_where_rank_0_alone_sees_manifests() {
    let parts = Layout { ranks_per_file: 2, parts_from: 2 };
    for (layout, plan) in [
        (OWN_FILES, plan(Scheme::Traditional)),
        (OWN_FILES, fixed(CodecId::Qb, 1e-3)),
        (parts, plan(Scheme::Traditional)),
        (parts, fixed(CodecId::Qb, 1e-3)),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let [whole, view] = ["whole", "view"].map(|name| dir.path().join(name));
        saved_or_restored(5, 50, layout, plan, |_| whole.clone());
        link_versions(&whole, &view, |name| name != "manifest.json");
        let expected = saved_or_restored(1, 50, layout, plan, |_| whole.clone());
        for ranks in [5, 3, 8] {
            let seen = |rank| if rank == 0 { whole.clone() } else { view.clone() };
            let found = saved_or_restored(ranks, 50, layout, plan, seen);
            assert!(
                found.iter().zip(&expected).all(|(x, y)| x.to_bits() == y.to_bits()),
                "{plan:?}, {layout:?} on {ranks} ranks"
            );
        }
    }
}

/// Four times the ranks may add as many calls, and as many bytes, as a tree gets levels: two.
/// Nothing grows in an iteration.
#[test]
fn calls_of_a_rank_grow_no_faster_than_a_tree_is_deep() {
    for tiers in TIERS {
        let [fewer, more] = [16, 64].map(|ranks| counted(tiers, ranks));
        for (name, of) in PHASES {
            let [fewer, more] = [&fewer, &more].map(|phases| mean_and_most(phases, |phases| of(phases).calls()));
            assert!(more[0] * 4 <= fewer[0] * 6, "{tiers}, {name}: {} calls on 16 ranks, {} on 64", fewer[0], more[0]);
        }
        // A session tells where each rank is; the restore from memory is looked at below.
        let is_held = |name: &str| name != "open" && (tiers == "pfs" || name != "restore");
        for (name, of) in PHASES.into_iter().filter(|(name, _)| is_held(name)) {
            let [fewer, more] = [&fewer, &more].map(|phases| bytes(phases, of)[0]);
            assert!(more * 4 <= fewer * 6, "{tiers}, {name}: {fewer} bytes on 16 ranks, {more} on 64");
        }
        let [fewer, more] =
            [&fewer, &more].map(|phases| mean_and_most(phases, |phases| phases.iteration.received_bytes));
        // The ranks at the ends have one neighbour.
        assert!(fewer[1] == more[1], "{tiers}: {fewer:?} bytes an iteration on 16 ranks, {more:?} on 64");
    }
}

/// Memory tiers gave every rank the manifest of all.
#[test]
fn bytes_of_a_rank_in_memory_tiers_grow_no_faster_than_a_tree_is_deep() {
    let counts = [16, 64, 256].map(|ranks| counted("memory,partner:ring1", ranks));
    let [few, _, many] = counts.each_ref().map(|phases| bytes(phases, |phases| phases.version)[1]);
    // Numbers of more digits.
    assert!(many * 100 <= few * 101, "{few} bytes of a version on 16 ranks, {many} on 256");
    let [few, more, many] = counts.each_ref().map(|phases| bytes(phases, |phases| phases.restore)[0]);
    // What grew with the number of ranks would grow four times as much the second time.
    let [first, second] = [more - few, many - more];
    assert!(second * 2 <= first * 3, "{first} bytes of a restore more on 64 ranks, and {second} more on 256");
}

/// Where ranks share files, rank 0 received 1,210 bytes of each rank, and 4,840 of four. It read
/// all parts for a restore, and the rank below it received the portions of half of the ranks.
#[test]
fn ranks_that_share_files_receive_a_few_bytes_of_each_file_in_the_directory() {
    let counts = [256, 512].map(|ranks| counted("pfs", ranks));
    let of_file = |[fewer, more]: [u64; 2]| (more - fewer) / (256 / NODE as u64);
    let of_version = of_file(counts.each_ref().map(|phases| phases[0].version.received_bytes));
    // A record of the file, and one of at most 200 bytes of each of three variables; 8 bytes of
    // each rank.
    assert!(of_version <= 200 + 3 * 200 + 8 * NODE as u64, "{of_version} bytes of a file");
    // The record of the file alone.
    let of_restore = of_file(counts.each_ref().map(|phases| mean_and_most(phases, |p| p.restore.received_bytes)[1]));
    assert!(of_restore <= 200, "{of_restore} bytes of a file at a restore");
}

/// Rank 0 read the parts in all files. Each rank sees those files alone that have a row of its own,
/// or what the rank of its number wrote; rank 0 has the top as well.
#[test]
fn a_rank_that_restores_opens_the_files_of_its_own_rows_and_no_others() {
    let saved = 12;
    let global = 96;
    let per_file = 2;
    let layout = Layout { ranks_per_file: per_file, parts_from: 2 };
    for plan in [plan(Scheme::Traditional), fixed(CodecId::Qb, 1e-3)] {
        let dir = tempfile::tempdir().unwrap();
        let whole = dir.path().join("whole");
        saved_or_restored(saved, global, layout, plan, |_| whole.clone());
        let expected = saved_or_restored(1, global, layout, plan, |_| whole.clone());
        for ranks in [12, 7, 3, 20] {
            let view = |rank: usize| dir.path().join(format!("view-{ranks}-{rank}"));
            for rank in 0..ranks {
                // The rows of a file, and those of a rank, to the one behind the last.
                let file_rows =
                    |file: usize| [file, file + 1].map(|file| (file * per_file).min(saved) * global / saved);
                let [first, end] = [rank, rank + 1].map(|rank| rank * global / ranks);
                let own = if rank < saved { rank } else { 0 };
                let is_seen = |name: &str| match name.strip_prefix("ranks-").and_then(|rest| rest.get(..6)) {
                    Some(number) => {
                        let file = number.parse::<usize>().unwrap() / per_file;
                        let [start, stop] = file_rows(file);
                        file == own / per_file || first.max(start) < end.min(stop)
                    }
                    None => rank == 0 && name == "manifest.json",
                };
                link_versions(&whole, &view(rank), is_seen);
            }
            let found = saved_or_restored(ranks, global, layout, plan, view);
            let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&expected), "{plan:?} on {ranks} ranks");
        }
    }
}

/// Links the files of all versions with these names to another directory.
fn link_versions(from: &Path, to: &Path, is_linked: impl Fn(&str) -> bool) {
    for (_, version) in versions(&from.join("solve")) {
        let below = to.join("solve").join(version.file_name().unwrap());
        std::fs::create_dir_all(&below).unwrap();
        for file in entries(&version) {
            let name = file.file_name().unwrap().to_str().unwrap();
            if is_linked(name) {
                std::fs::hard_link(&file, below.join(name)).unwrap();
            }
        }
    }
}

#[test]
#[ignore = "prints a table, for a minute or more; RECOUP_SCALE_RANKS is the largest number of ranks"]
fn table() {
    let most = std::env::var("RECOUP_SCALE_RANKS").map_or(256, |ranks| ranks.parse().unwrap());
    println!("mean and most of a rank: calls, bytes sent, bytes received; most: reductions, bytes gathered");
    for tiers in TIERS {
        for ranks in [4, 16, 64, 256, 1024].into_iter().filter(|&ranks| ranks <= most) {
            print(tiers, ranks, &counted(tiers, ranks));
        }
    }
}
