//! The parts a session is made of.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use recoup_core::{Clock, CodecId, IncrementMode, Policy, Store};

use crate::costs::Timing;
use crate::encode::Codecs;
use crate::staging::StagingMode;
use crate::verify::Reference;

/// The parts of a session.
pub struct SessionConfig {
    /// Name of the run, in every manifest.
    pub name: String,
    /// The store of versions.
    pub store: Arc<dyn Store>,
    /// The codecs.
    pub codecs: Codecs,
    /// The policy that decides when to save, and how.
    pub policy: Box<dyn Policy>,
    /// The run's clock.
    pub clock: Arc<dyn Clock>,
    /// The source of costs: measured, or declared.
    pub timing: Timing,
    /// Versions kept, and with each of them those it is coded against.
    pub keep: usize,
    /// Limit on the bytes of published versions; the newest always stays. Tiers have their own.
    pub max_bytes: Option<u64>,
    /// Codecs that may replace the planned one for lossy variables if their ratio pays here.
    pub candidates: Vec<CodecId>,
    /// Versions from one key (an iterate coded alone) to the next; 1 for keys only. Above 1, one
    /// more copy of the iterate stays in memory.
    pub key_every: usize,
    /// The rule for versions of variables saved exactly that hold only what changed; none do where
    /// every version is a key.
    pub increments: IncrementMode,
    /// Checks reported residuals against true ones before a version counts, and CG's directions
    /// after it. A breakdown sends the run back to the last version first.
    pub checks_corruption: bool,
    /// The solver waits until a version counts, as in the published experiments.
    pub synchronous: bool,
    /// The way values are staged whose owner sees all writes to them.
    pub staging: StagingMode,
    /// Keeps the worker on the only core of a bound process, for nodes shared by such bindings.
    pub pin_worker: bool,
    /// The solver's tolerance on the relative residual, for the policy.
    pub tolerance: f64,
    /// Storage bandwidth, bytes per second, where it is known before the first version is written.
    pub bytes_per_second: Option<f64>,
    /// The problem, for verified bounds and the fingerprint. Without it only fixed bounds work.
    pub reference: Option<Reference>,
    /// Refuses versions of another problem. Otherwise their iterate is a first guess, used if its
    /// residual is not above the program's own.
    pub same_operator: bool,
    /// Set while versions in flight are dropped because their memory is lost; bypasses throttles.
    pub abort: Arc<AtomicBool>,
}

impl SessionConfig {
    /// Makes a session in which two versions are kept, each of them a key, and whose values are
    /// copied; nothing is checked, and without a problem only fixed bounds work.
    #[must_use]
    pub fn new(
        name: &str,
        store: Arc<dyn Store>,
        codecs: Codecs,
        policy: Box<dyn Policy>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            store,
            codecs,
            policy,
            clock,
            timing: Timing::Real,
            keep: 2,
            max_bytes: None,
            candidates: Vec::new(),
            key_every: 1,
            increments: IncrementMode::Auto,
            checks_corruption: false,
            synchronous: false,
            staging: StagingMode::Copy,
            pin_worker: false,
            tolerance: 1e-10,
            bytes_per_second: None,
            reference: None,
            same_operator: true,
            abort: Arc::default(),
        }
    }
}
