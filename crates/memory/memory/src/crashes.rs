//! Crashes at every point of a program, by enumeration: each image that a crash may leave is
//! opened, and holds the last promised version or a newer one, whole.

mod images;
mod recorder;

use std::sync::Arc;

use recoup_memory_derive::Versioned;
use recoup_model::Rng;

use crate::array::VersionedArray;
use crate::blocks::ViewHold;
use crate::file_array::FileArray;
use crate::graph::VersionedGraph;
use crate::listed::ListedArray;
use crate::load::load;
use crate::memory::{Memory, first_bytes};
use crate::octree::VersionedOctree;
use crate::order::{CommitOrder, OrderRule};
use crate::structure::{ArrayList, Versioned};
use crate::view::VersionView;
use images::{CrashModel, ImageWalk};
use recorder::{CallRecorder, CrashImage, LogEvent};

/// Bytes of a block: small, so that few cells make many of them.
const BLOCK_BYTES: usize = 512;

/// The bytes of the arrays of each version, from version 1 on. They are plain: arrays would hold
/// the blocks of their versions, and no place would be used again.
type CrashHistory = Vec<Vec<Vec<u8>>>;

/// A program that is cut off.
trait CrashProgram: Versioned {
    /// Changes as many parts of the state, and at times its length.
    fn advance(&mut self, parts: usize, rng: &mut Rng);
}

/// Two arrays that belong together.
struct ArrayProgram {
    field: VersionedArray<u64>,
    flags: VersionedArray<u8>,
}

impl Versioned for ArrayProgram {
    fn list_arrays<'a>(&'a mut self, arrays: &mut ArrayList<'a>) {
        arrays.field("field", &mut self.field);
        arrays.field("flags", &mut self.flags);
    }
}

impl CrashProgram for ArrayProgram {
    fn advance(&mut self, parts: usize, rng: &mut Rng) {
        if rng.next_u64().is_multiple_of(4) {
            let len = 1 + rng.next_u64() as usize % (3 * parts * BLOCK_BYTES / 8);
            self.field.resize(len, rng.next_u64());
        }
        for _ in 0..parts {
            let start = rng.next_u64() as usize % self.field.len();
            let end = (start + 1 + rng.next_u64() as usize % 9).min(self.field.len());
            self.field.write(start..end).iter_mut().for_each(|value| *value = rng.next_u64());
        }
        if rng.next_u64().is_multiple_of(2) {
            let flag = rng.next_u64() as usize % self.flags.len();
            self.flags.write(flag..flag + 1)[0] ^= rng.next_u64() as u8;
        }
    }
}

impl CrashProgram for VersionedGraph<u8, f64> {
    fn advance(&mut self, parts: usize, rng: &mut Rng) {
        if self.n_vertices() == 0 || rng.next_u64().is_multiple_of(4) {
            let n_vertices = 1 + rng.next_u64() as u32 % (40 * parts as u32);
            let mut vertex = || rng.next_u64() as u32 % n_vertices;
            let edges: Vec<(u32, u32)> = (0..30 * parts).map(|_| (vertex(), vertex())).collect();
            self.set_edges(n_vertices as usize, &edges);
        }
        for _ in 0..parts {
            self.set(rng.next_u64() as usize % self.n_vertices(), rng.next_u64() as u8, rng.next_u64() as f64);
        }
    }
}

impl CrashProgram for VersionedOctree<u64, 2> {
    fn advance(&mut self, parts: usize, rng: &mut Rng) {
        for _ in 0..parts {
            let leaves: Vec<usize> = self.leaves().collect();
            let leaf = leaves[rng.next_u64() as usize % leaves.len()];
            match rng.next_u64() % 4 {
                0 if leaf != 0 => self.coarsen(0),
                1 => self.set(leaf, rng.next_u64()),
                _ => {
                    self.refine(leaf);
                }
            }
        }
    }
}

/// A struct that derives `Versioned`, with plain values that each commit compares.
#[derive(Versioned)]
#[versioned(crate = crate)]
struct PlainProgram {
    #[versioned(counter)]
    step: u64,
    pairs: Vec<[u64; 2]>,
    fixed: [u32; 2 * BLOCK_BYTES / 4 + 1],
}

impl CrashProgram for PlainProgram {
    fn advance(&mut self, parts: usize, rng: &mut Rng) {
        self.step += 1;
        if rng.next_u64().is_multiple_of(4) {
            self.pairs.resize(1 + rng.next_u64() as usize % (3 * parts * BLOCK_BYTES / 16), [rng.next_u64(); 2]);
        }
        for _ in 0..parts {
            let pair = rng.next_u64() as usize % self.pairs.len();
            self.pairs[pair][1] ^= rng.next_u64();
        }
        if rng.next_u64().is_multiple_of(2) {
            let value = rng.next_u64() as usize % self.fixed.len();
            self.fixed[value] ^= rng.next_u64() as u32;
        }
    }
}

/// A table that stays in the file, and a count of its changes.
#[derive(Versioned)]
#[versioned(crate = crate)]
struct FileProgram {
    table: FileArray<u64>,
    changes: u64,
}

impl CrashProgram for FileProgram {
    fn advance(&mut self, parts: usize, rng: &mut Rng) {
        if rng.next_u64().is_multiple_of(4) {
            self.table.resize(1 + rng.next_u64() as usize % (3 * parts * BLOCK_BYTES / 8)).unwrap();
        }
        for _ in 0..parts {
            let first = rng.next_u64() as usize % self.table.len();
            let values: Vec<u64> = (0..1 + rng.next_u64() % 9).map(|_| rng.next_u64()).collect();
            let n = values.len().min(self.table.len() - first);
            self.table.write(first, &values[..n]).unwrap();
            self.changes += 1;
        }
    }
}

/// A kind of program.
#[derive(Clone, Copy, Debug)]
enum ProgramKind {
    Arrays,
    Graph,
    Tree,
    Plain,
    File,
}

impl ProgramKind {
    const ALL: [Self; 5] = [Self::Arrays, Self::Graph, Self::Tree, Self::Plain, Self::File];
}

impl ProgramKind {
    fn start(self) -> Box<dyn CrashProgram> {
        match self {
            Self::Arrays => Box::new(ArrayProgram {
                field: VersionedArray::zeros("field", 2 * BLOCK_BYTES / 8 + 3),
                flags: VersionedArray::zeros("flags", 90),
            }),
            Self::Graph => Box::new(VersionedGraph::<u8, f64>::new("graph", 0, &[])),
            Self::Tree => Box::new(VersionedOctree::<u64, 2>::new("tree", 0)),
            Self::Plain => {
                Box::new(PlainProgram { step: 0, pairs: vec![[7; 2]; 20], fixed: [0; 2 * BLOCK_BYTES / 4 + 1] })
            }
            Self::File => {
                Box::new(FileProgram { table: FileArray::zeros("table", 2 * BLOCK_BYTES / 8 + 3), changes: 0 })
            }
        }
    }
}

/// A program and the crashes it is put through.
#[derive(Clone, Copy, Debug)]
struct CrashPlan {
    program: ProgramKind,
    model: CrashModel,
    broken: Option<OrderRule>,
    keep: usize,
    commits: usize,
    /// Parts of the state that a step writes.
    parts: usize,
    /// Most images of each point.
    images_each: usize,
    seed: u64,
    /// Images between two that continue and crash again; 0 for none.
    again_every: usize,
}

/// Images that an enumeration has opened.
#[derive(Debug, Default)]
struct CrashReport {
    images: usize,
    /// The first few faults.
    bad: Vec<String>,
}

impl CrashReport {
    fn note(&mut self, result: Result<(), String>) {
        self.images += 1;
        if let Err(what) = result
            && self.bad.len() < 5
        {
            self.bad.push(what);
        }
    }
}

/// Runs the program on `image`, and returns the calls it makes. What it commits goes to `history`.
fn record(
    plan: &CrashPlan,
    image: Vec<u8>,
    commits: usize,
    rng: &mut Rng,
    history: &mut CrashHistory,
) -> Vec<LogEvent> {
    let recorder = CallRecorder::new(image);
    let log = recorder.log();
    let mut memory = Memory::on(Box::new(recorder), plan.keep).unwrap();
    memory.order = CommitOrder { broken: plan.broken };
    let mut program = plan.program.start();
    let newest = memory.restore_newest(&mut [&mut *program]).unwrap();
    history.truncate(newest.map_or(0, |version| version.number as usize));
    for step in 0..commits {
        program.advance(plan.parts, rng);
        let mut list = ArrayList::default();
        program.list_arrays(&mut list);
        history.push(list.into_arrays().iter().map(bytes_of).collect());
        let number = memory.commit(step as u64, &mut [&mut *program]).unwrap();
        assert_eq!(number as usize, history.len());
        log.lock().unwrap().push(LogEvent::Promise(number));
    }
    log.lock().unwrap().clone()
}

fn bytes_of(array: &ListedArray<'_>) -> Vec<u8> {
    array.bytes(0..array.n_bytes(), &mut Vec::new()).unwrap().to_vec()
}

/// Opens what a crash has left, and compares all versions with history.
fn check(image: &[u8], promised: u64, history: &CrashHistory) -> Result<(), String> {
    let source = Arc::new(CrashImage(image.to_vec()));
    let loaded = load(&*source).map_err(|error| format!("{error}, where version {promised} was promised"))?;
    let newest = loaded.versions().next_back().map_or(0, |version| version.number);
    if newest < promised {
        return Err(format!("version {newest}, where version {promised} was promised"));
    }
    for version in loaded.versions() {
        let number = version.number;
        let expected = history.get(number as usize - 1).ok_or_else(|| format!("version {number} was never made"))?;
        let hold = ViewHold::Held;
        let view = VersionView { version: version.clone(), source: source.clone(), block_bytes: BLOCK_BYTES, hold };
        let n_structures = version.structures().count();
        if n_structures != expected.len() {
            return Err(format!("version {number} has {n_structures} arrays"));
        }
        for (structure, expected) in version.structures().zip(expected) {
            let blocks = view.blocks_of(structure);
            let mut bytes = vec![0; blocks.table.bytes()];
            blocks.read(0, &mut bytes).map_err(|error| error.to_string())?;
            if bytes != *expected {
                return Err(format!("version {number}, {}: other values", blocks.name));
            }
        }
    }
    Ok(())
}

/// Puts a program through every crash of its plan.
fn enumerate(plan: &CrashPlan) -> CrashReport {
    let mut rng = Rng::new(plan.seed);
    let mut history = CrashHistory::new();
    let first = first_bytes(BLOCK_BYTES).unwrap();
    let log = record(plan, first.clone(), plan.commits, &mut rng, &mut history);
    let mut report = CrashReport::default();
    let mut left = Vec::new();
    walk(plan, first, &log, 0, |image, promised| {
        report.note(check(image, promised, &history));
        if plan.again_every > 0 && report.images.is_multiple_of(plan.again_every) {
            left.push((image.to_vec(), promised));
        }
    });
    let short = CrashPlan { images_each: 30, ..*plan };
    for (image, promised) in left {
        let mut history = history.clone();
        let log = record(&short, image.clone(), 2, &mut rng, &mut history);
        walk(&short, image, &log, promised, |image, promised| report.note(check(image, promised, &history)));
    }
    report
}

/// Gives out the images of a log, each with the version that was promised before the crash.
fn walk(plan: &CrashPlan, image: Vec<u8>, log: &[LogEvent], promised: u64, mut give: impl FnMut(&[u8], u64)) {
    let mut promised = promised;
    let mut images = ImageWalk::new(plan.model, image, plan.images_each, plan.seed);
    for event in log {
        if let LogEvent::Promise(number) = event {
            promised = *number;
        }
        images.advance(event, |image| give(image, promised));
    }
}

fn plan(model: CrashModel) -> CrashPlan {
    // A block is eight lines and one sector.
    let (parts, images_each) = match model {
        CrashModel::Lines => (1, 120),
        CrashModel::Sectors => (7, 400),
    };
    let program = ProgramKind::Arrays;
    CrashPlan { program, model, broken: None, keep: 2, commits: 20, parts, images_each, seed: 1, again_every: 300 }
}

fn survive(plans: impl IntoIterator<Item = CrashPlan>) -> usize {
    let mut images = 0;
    for plan in plans {
        let report = enumerate(&plan);
        println!("{plan:?}: {} images", report.images);
        assert_eq!(report.bad, [""; 0], "{plan:?}");
        images += report.images;
    }
    images
}

#[test]
fn every_crash_leaves_the_last_promised_version_or_a_newer_one_whole() {
    let plans = ProgramKind::ALL.into_iter().zip(1..).flat_map(|(program, keep)| {
        let of = |model| CrashPlan { program, keep, seed: keep as u64, ..plan(model) };
        [of(CrashModel::Lines), of(CrashModel::Sectors)]
    });
    let images = survive(plans);
    println!("{images} images");
    assert!(images >= 100_000, "{images} images");
}

#[test]
#[ignore = "millions of images: `make soak`"]
fn every_crash_of_millions_leaves_the_last_promised_version_or_a_newer_one_whole() {
    let plans = (0..60).map(|seed| {
        let model = if seed % 2 == 0 { CrashModel::Lines } else { CrashModel::Sectors };
        // Each program in both models.
        let program = ProgramKind::ALL[seed as usize / 2 % ProgramKind::ALL.len()];
        CrashPlan { program, keep: 1 + seed as usize % 6, seed, commits: 60, images_each: 2000, ..plan(model) }
    });
    let images = survive(plans);
    println!("{images} images");
    assert!(images >= 2_000_000, "{images} images");
}

#[test]
fn each_rule_of_order_that_is_left_out_is_found_on_both_media() {
    let rules = [
        OrderRule::WriteBlocksBack,
        OrderRule::StoreBeforeFence,
        OrderRule::FenceBeforeRoot,
        OrderRule::FenceAfterRoot,
        OrderRule::RetireAfterRoot,
        OrderRule::TurnOfRoots,
    ];
    for model in [CrashModel::Lines, CrashModel::Sectors] {
        for rule in rules {
            let report = enumerate(&CrashPlan { broken: Some(rule), again_every: 0, images_each: 40, ..plan(model) });
            println!("{model:?} without {rule:?}: {} images, bad: {:?}", report.images, report.bad);
            // The fence of a file is one call for all that was stored, so there is nothing to write
            // back. What a program can get wrong there is to store after that call, the next rule.
            let is_harmless = model == CrashModel::Sectors && rule == OrderRule::WriteBlocksBack;
            assert_eq!(report.bad.is_empty(), is_harmless, "{model:?} without {rule:?}");
        }
    }
}
