//! A system that refuses calls: each call of a medium fails once, and no version is lost.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use recoup_memory::{
    ByteSource, FileArray, FileMedium, Medium, Memory, MemoryError, Versioned, VersionedArray, VersionedGraph,
    first_bytes,
};

/// A file whose call with this number fails; it has then done half of its work.
struct FailingMedium {
    inner: FileMedium,
    calls: Arc<AtomicUsize>,
    fails: usize,
}

impl FailingMedium {
    fn may_go_on(&self) -> io::Result<()> {
        let is_due = self.calls.fetch_add(1, Ordering::Relaxed) == self.fails;
        if is_due { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl Medium for FailingMedium {
    fn prefers_runs(&self) -> bool {
        self.inner.prefers_runs()
    }

    fn source(&self) -> Arc<dyn ByteSource> {
        self.inner.source()
    }

    fn grow(&mut self, bytes: u64) -> io::Result<()> {
        self.may_go_on()?;
        self.inner.grow(bytes)
    }

    fn store(&mut self, at: u64, bytes: &[u8]) -> io::Result<u32> {
        let result = self.may_go_on();
        if result.is_err() {
            self.inner.store(at, &bytes[..bytes.len() / 2])?;
        }
        result.and_then(|()| self.inner.store(at, bytes))
    }

    fn write_back(&mut self, range: Range<u64>) -> io::Result<()> {
        self.may_go_on()?;
        self.inner.write_back(range)
    }

    fn fence(&mut self) -> io::Result<()> {
        self.may_go_on()?;
        self.inner.fence()
    }
}

fn open(path: &Path, calls: &Arc<AtomicUsize>, fails: usize) -> Memory {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let medium = FailingMedium { inner: FileMedium::new(file).unwrap(), calls: Arc::clone(calls), fails };
    Memory::on(Box::new(medium), 2).unwrap()
}

/// The state of a program that commits five times.
#[derive(Versioned)]
#[versioned(crate = recoup_memory)]
struct State {
    field: VersionedArray<u64>,
    graph: VersionedGraph<u8, f32>,
    table: FileArray<u64>,
}

impl State {
    fn new() -> Self {
        Self {
            field: VersionedArray::default(),
            graph: VersionedGraph::new("", 1, &[]),
            table: FileArray::zeros("", 200),
        }
    }

    fn advance(&mut self, step: u64) {
        self.field.resize(100 + 60 * step as usize, step);
        self.field.write(0..3).fill(step);
        self.graph.set_edges(3 + step as usize, &[(0, 1), (2, 0)]);
        self.graph.set(1, step as u8, step as f32);
        self.table.write(20 * step as usize, &[step; 30]).unwrap();
    }

    fn is_of(&self, step: u64) -> bool {
        let Self { field, graph, table } = self;
        let len = 100 + 60 * step as usize;
        let is_field = field.len() == len && field[..3] == [step; 3] && field[len - 1] == step;
        let is_graph = graph.n_vertices() == 3 + step as usize && graph.data()[1] == step as f32 && graph.is_sound();
        // Each step writes 30 values, and the next one writes over the last ten of them.
        let mut expected = vec![0; 200];
        (1..=step).for_each(|step| expected[20 * step as usize..][..30].fill(step));
        is_field && is_graph && table.get(0..200).unwrap()[..] == expected
    }
}

#[test]
fn each_call_that_fails_costs_a_commit_and_no_version() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("failing.memory");
    let mut n_repeated = 0;
    let mut n_undecided = 0;
    for fails in 0.. {
        std::fs::write(&path, first_bytes(512).unwrap()).unwrap();
        let calls = Arc::default();
        let mut memory = open(&path, &calls, fails);
        let mut state = State::new();
        let mut promised = 0;
        let mut has_failed = false;
        for step in 1..=5 {
            state.advance(step);
            let mut result = memory.commit(step, &mut [&mut state]);
            if result.is_err() && !has_failed {
                has_failed = true;
                assert!(matches!(result, Err(MemoryError::Io { .. })), "call {fails}");
                result = memory.commit(step, &mut [&mut state]);
                n_repeated += usize::from(result.is_ok());
            }
            match result {
                Ok(_) => promised = step,
                Err(MemoryError::Undecided) => n_undecided += 1,
                Err(error) => panic!("call {fails}: {error}"),
            }
        }
        drop(memory);
        let mut memory = open(&path, &Arc::default(), usize::MAX);
        let newest = memory.restore_newest(&mut [&mut state]).unwrap();
        let step = newest.map_or(0, |version| version.step);
        assert!(step == promised || step == promised + 1, "call {fails}: step {step}, {promised} was promised");
        assert!(step == 0 || state.is_of(step), "call {fails}");
        if !has_failed {
            assert_eq!(promised, 5);
            break;
        }
    }
    println!("{n_repeated} commits were repeated, {n_undecided} were undecided");
    assert!(n_repeated > 50 && n_undecided > 0);
}
