//! Values that are frozen without a copy make the versions of values that are copied, while the
//! solver overwrites them.

use std::sync::Arc;

use recoup_comm::Solo;
use recoup_core::{CodecId, Iteration, Manifest, Plan, Registered, Resume, Scheme, Store};
use recoup_io::{MemoryStore, SystemClock, Throttle};
use recoup_pipeline::{Codecs, Outcome, Reference, Saved, Session, SessionConfig, StagingMode};
use recoup_solvers::{Cg, Identity, JacobiPreconditioner, Poisson3d, Pool, Preconditioner, Stop, System};
use recoup_testkit::SavesAt;

/// Points along an edge of the cube: a vector has 16 zones and a part of one.
const EDGE: usize = 51;
const LEN: usize = EDGE * EDGE * EDGE;

fn plan(scheme: Scheme, codec: CodecId) -> Plan {
    Plan::new(scheme, codec, if scheme == Scheme::Lossy { Resume::Traditional } else { Resume::Exact })
}

/// A session that saves every third iteration.
fn session(store: Arc<dyn Store>, plan: Plan, staging: StagingMode) -> Session {
    let policy = Box::new(SavesAt(plan, |iteration| iteration.is_multiple_of(3)));
    let codecs = Codecs { table: recoup_compress::codec, threads: 1 };
    let reference = Some(Reference::new(Arc::new(Poisson3d::new(EDGE)), vec![1.0; LEN].into()));
    let config = SessionConfig::new("run", store, codecs, policy, Arc::new(SystemClock::new()));
    let config = SessionConfig { keep: 9, key_every: 3, checks_corruption: true, staging, reference, ..config };
    Session::open(config, &Solo).unwrap()
}

/// A solve, its versions and what they cost.
struct Run {
    residual_bits: Vec<u64>,
    manifests: Vec<Manifest>,
    saved: Vec<Saved>,
    /// The iterate, restored from the newest version.
    restored: Vec<u64>,
}

/// Makes 12 iterations to a store that takes a version in about the time of two of them, so that
/// zones are fetched in every state.
fn run(plan: Plan, preconditioner: &dyn Preconditioner, staging: StagingMode, threads: usize) -> Run {
    let clock = Arc::new(SystemClock::new());
    let store = MemoryStore::new().with_throttle(Throttle::new(400e6, clock));
    let mut session = session(Arc::new(store.clone()), plan, staging);
    let operator = Poisson3d::new(EDGE);
    let pool = Pool::new(threads);
    let b = vec![1.0; LEN];
    let system = System { a: &operator, b: &b, comm: &Solo, pool: &pool };
    let solver = || Cg::new(system, preconditioner, &vec![0.0; LEN], Stop::at(1e-10)).unwrap();
    let mut cg = solver();
    let mut residual_bits = Vec::new();
    for _ in 0..12 {
        let progress = cg.step().unwrap();
        residual_bits.push(progress.residual_norm.to_bits());
        session.step(&cg).unwrap();
    }
    session.wait().unwrap();
    let saved = session.take_outcomes().into_iter().map(|outcome| match outcome {
        Outcome::Saved(saved) => *saved,
        other => panic!("{staging:?}: {other:?}"),
    });
    let saved = saved.collect();
    let manifests = store.versions().unwrap().into_iter().map(|version| store.manifest(version).unwrap()).collect();
    let mut other = solver();
    session.restore(&mut other).unwrap().unwrap();
    let x = other.variables().into_iter().find(|variable| variable.name == "x").unwrap();
    let restored = x.values.host().unwrap();
    let recoup_core::Values::F64(x) = restored else { panic!("doubles") };
    Run { residual_bits, manifests, saved, restored: x.iter().map(|x| x.to_bits()).collect() }
}

/// Exact and lossy, raw and coded, one thread and several.
#[test]
fn frozen_values_make_the_versions_and_the_residuals_of_copied_ones() {
    let jacobi = JacobiPreconditioner::new(&Poisson3d::new(EDGE)).unwrap();
    let cases = [(Scheme::Exact, CodecId::Raw), (Scheme::Exact, CodecId::Zstd), (Scheme::Lossy, CodecId::Qb)];
    for (scheme, codec) in cases {
        for (preconditioner, threads) in [(&Identity as &dyn Preconditioner, 1), (&jacobi, 3)] {
            let plan = plan(scheme, codec);
            let copied = run(plan, preconditioner, StagingMode::Copy, threads);
            let touched = run(plan, preconditioner, StagingMode::Touch, threads);
            assert_eq!(copied.residual_bits, touched.residual_bits, "{scheme:?} {codec}, {threads} threads");
            assert_eq!(copied.manifests, touched.manifests, "{scheme:?} {codec}, {threads} threads");
            assert!(copied.restored == touched.restored, "{scheme:?} {codec}, {threads} threads");
            assert_eq!(copied.manifests.len(), 4);
            let vectors = if scheme == Scheme::Lossy { 2 } else { 3 };
            for saved in touched.saved {
                assert_eq!(saved.frozen_bytes, 8 * (vectors * LEN) as u64, "{scheme:?} {codec}");
                assert_eq!(saved.on_device.fetched_bytes, 0, "no device was read");
            }
            assert!(copied.saved.iter().all(|saved| saved.frozen_bytes == 0));
        }
    }
}
