//! The cost of a version of which little changed, next to a whole one.
//!
//! `cargo bench -p recoup --bench increments` saves a vector of 1 GiB (`-- --mib N` for another
//! size) into a directory below the system's one for temporary files. Between two versions the
//! program writes one value in every hundredth, tenth, or each zone of 64 KiB. Drain is encoding
//! and writing, behind the solver; blocking is the copy. Medians over versions, all ways in turn
//! within each round. "touch" is what announcing all the writes of a version takes the program.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::path::Path;

use recoup::SystemClock;
use recoup::core::{
    Clock, CodecId, Distribution, ElementType, IncrementMode, Plan, Registered, Role, Scheme, Values, ValuesMut,
    Variable, VariableMut, Zones,
};
use recoup::pipeline::{Outcome, Saved, Session, WriteTable};
use recoup_testkit::progress;

/// Doubles of a zone.
const ZONE: usize = 8192;
/// Versions of each way that count, after two that do not.
const ROUNDS: u64 = 5;
const UNCOUNTED: u64 = 2;

/// A way to save.
struct Way {
    name: &'static str,
    mode: IncrementMode,
    announces: bool,
}

const WAYS: [Way; 3] = [
    Way { name: "whole", mode: IncrementMode::Off, announces: false },
    Way { name: "hash", mode: IncrementMode::Hash, announces: false },
    Way { name: "owner", mode: IncrementMode::Hash, announces: true },
];

fn main() {
    let mib = std::env::args().skip_while(|arg| arg != "--mib").nth(1).map_or(1024, |mib| mib.parse().unwrap());
    let mut x: Vec<f64> = (0..mib * 131_072).map(|i| (i as f64 * 1e-4).sin()).collect();
    println!("{mib} MiB, every stride-th zone dirty, medians of {ROUNDS} versions, to whole versions in brackets");
    for codec in [CodecId::Raw, CodecId::Zstd] {
        for stride in [100, 10, 1] {
            let measured = measure(&mut x, codec, stride);
            let whole = measured[0].clone();
            for (way, costs) in WAYS.iter().zip(measured) {
                println!(
                    "{codec:>5} stride {stride:>3} {:>6}: {:>9.2} MB ({:.4}), drain {:>8.1} ms ({:.3}), \
                     blocking {:>6.1} ms, touch {:.3} ms",
                    way.name,
                    costs.bytes / 1e6,
                    costs.bytes / whole.bytes,
                    costs.drain_seconds * 1e3,
                    costs.drain_seconds / whole.drain_seconds,
                    costs.blocking_seconds * 1e3,
                    costs.touch_seconds * 1e3,
                );
            }
        }
    }
}

/// Costs of one version.
#[derive(Clone, Default)]
struct VersionCosts {
    bytes: f64,
    drain_seconds: f64,
    blocking_seconds: f64,
    touch_seconds: f64,
}

fn measure(x: &mut [f64], codec: CodecId, stride: usize) -> Vec<VersionCosts> {
    let dirs: Vec<_> = WAYS.iter().map(|_| tempfile::tempdir().unwrap()).collect();
    let mut sessions: Vec<Session> = WAYS.iter().zip(&dirs).map(|(way, dir)| open(dir.path(), codec, way)).collect();
    let table = WriteTable::new(x.len(), ElementType::F64);
    let clock = SystemClock::new();
    let mut costs: Vec<Vec<VersionCosts>> = WAYS.iter().map(|_| Vec::new()).collect();
    for version in 1..=UNCOUNTED + ROUNDS {
        let zones = || (version as usize % stride..x.len() / ZONE).step_by(stride);
        let written: Vec<usize> = zones().map(|zone| zone * ZONE + 7).collect();
        let start = clock.now();
        written.iter().for_each(|&at| table.touch(at..at + 1));
        let touch_seconds = (clock.now() - start).as_secs_f64();
        written.iter().for_each(|&at| x[at] += 1.0);
        for (way, (session, costs)) in WAYS.iter().zip(sessions.iter_mut().zip(&mut costs)) {
            let zones = way.announces.then_some(&table);
            let owner = Written { x: &mut *x, zones };
            session.checkpoint(plan(codec), progress(version), &[&owner]).unwrap();
            session.wait().unwrap();
            let saved = session.take_outcomes().into_iter().find_map(saved).unwrap();
            costs.push(VersionCosts {
                bytes: saved.payload_bytes as f64,
                drain_seconds: saved.spent.drain_seconds(),
                blocking_seconds: saved.spent.stage_seconds,
                touch_seconds,
            });
        }
    }
    costs.into_iter().map(|all| medians(&all[UNCOUNTED as usize..])).collect()
}

fn open(dir: &Path, codec: CodecId, way: &Way) -> Session {
    recoup::open(dir).plan(plan(codec)).increments(way.mode).key_every(1000).keep(1).build().unwrap()
}

fn plan(codec: CodecId) -> Plan {
    Plan { codec, ..recoup::open("unused").plan_of(Scheme::Exact) }
}

fn saved(outcome: Outcome) -> Option<Box<Saved>> {
    match outcome {
        Outcome::Saved(saved) => Some(saved),
        _ => None,
    }
}

fn medians(costs: &[VersionCosts]) -> VersionCosts {
    let median = |of: fn(&VersionCosts) -> f64| {
        let mut values: Vec<f64> = costs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    VersionCosts {
        bytes: median(|costs| costs.bytes),
        drain_seconds: median(|costs| costs.drain_seconds),
        blocking_seconds: median(|costs| costs.blocking_seconds),
        touch_seconds: median(|costs| costs.touch_seconds),
    }
}

/// The vector, with its table of writes.
struct Written<'a> {
    x: &'a mut [f64],
    zones: Option<&'a WriteTable>,
}

impl Registered for Written<'_> {
    fn variables(&self) -> Vec<Variable<'_>> {
        let zones = self.zones.map(|table| table as &dyn Zones);
        let x = Variable::new("x", Role::Dynamic, Values::F64(self.x), Distribution::RankLocal);
        vec![Variable { zones, ..x }]
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        vec![VariableMut::new("x", ValuesMut::F64(self.x))]
    }
}
