//! The driver: its tables, and the rules of its calls that all of them share.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use recoup_cuda_double::{CudaStatus, DoubleReport, Settings};

use super::address_space::AddressSpace;
use super::advance::Advance;
use super::backlog::Backlog;
use super::host_memory::HostMemory;
use crate::Refusable;
use crate::ptx;

/// Faults and leaks that a report lists.
const LIST_MAX: usize = 100;

/// A context.
#[derive(Debug)]
pub(crate) struct ContextState {
    pub(crate) device: u32,
    /// Times that it was retained.
    pub(crate) retains: u32,
    /// The stream with the number 0 or 1.
    pub(crate) legacy: u64,
    /// The streams with the number 2.
    pub(crate) of_threads: HashMap<ThreadId, u64>,
    /// The fault that ended all work.
    pub(crate) error: Option<CudaStatus>,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

/// A stream.
#[derive(Debug)]
pub(crate) struct StreamState {
    pub(crate) context: u64,
    /// The stream and the legacy stream wait for each other.
    pub(crate) is_blocking: bool,
    /// The program made the stream.
    pub(crate) is_made: bool,
    /// Position among all streams ever made: the name that does not change from run to run.
    pub(crate) place: u64,
    /// The operation added last.
    pub(crate) last: Option<u64>,
    /// All that comes before the next operation.
    pub(crate) advance: Advance,
    pub(crate) count: u64,
}

/// A record of an event.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// The operation that marks the place.
    pub(crate) operation: u64,
    pub(crate) advance: Advance,
}

/// An event.
#[derive(Debug)]
pub(crate) struct EventState {
    pub(crate) context: u64,
    pub(crate) has_timing: bool,
    pub(crate) recorded: Option<Record>,
    /// Operations that had run when its record ran.
    pub(crate) reached: Option<u64>,
}

/// A loaded module.
#[derive(Debug)]
pub(crate) struct ModuleState {
    pub(crate) context: u64,
    pub(crate) code: Arc<ptx::Module>,
    /// An address for each variable.
    pub(crate) globals: Vec<u64>,
}

/// A kernel of a module.
#[derive(Debug)]
pub(crate) struct FunctionState {
    pub(crate) module: u64,
    pub(crate) name: String,
}

/// The state of the whole driver.
pub(crate) struct Driver {
    pub(crate) settings: Settings,
    pub(crate) is_initialised: bool,
    n_calls: u64,
    calls: BTreeMap<&'static str, u64>,
    pub(crate) contexts: BTreeMap<u64, ContextState>,
    /// The primary context of each device.
    pub(crate) primaries: BTreeMap<u32, u64>,
    pub(crate) streams: BTreeMap<u64, StreamState>,
    pub(crate) n_streams: u64,
    pub(crate) events: BTreeMap<u64, EventState>,
    pub(crate) modules: BTreeMap<u64, ModuleState>,
    pub(crate) functions: BTreeMap<u64, FunctionState>,
    pub(crate) memory: AddressSpace,
    pub(crate) host: HostMemory,
    pub(crate) backlog: Backlog,
    faults: Vec<String>,
    leaks: Vec<String>,
}

static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);
/// Handles are never given out twice, so one of an earlier run is found to be stale.
static NEXT_HANDLE: AtomicU64 = AtomicU64::new(0x5500_0000_0000);
const HANDLE_STEP: u64 = 16;

thread_local! {
    /// The context that was made current.
    static CURRENT: Cell<Option<u64>> = const { Cell::new(None) };
}

fn lock() -> MutexGuard<'static, Option<Driver>> {
    DRIVER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a call of the driver: counts it, lets it fail where the settings say so, and runs it.
pub(crate) fn call(name: &'static str, body: impl FnOnce(&mut Driver) -> Refusable<()>) -> u32 {
    let mut state = lock();
    let driver = state.get_or_insert_with(|| Driver::new(settings_of_environment()));
    driver.admit(name).and_then(|()| body(driver)).map_or_else(CudaStatus::code, |()| 0)
}

/// Begins again with other settings. Everything that is alive ends without a word.
pub(crate) fn reset(settings: Settings) {
    *lock() = Some(Driver::new(settings));
}

/// Continues with other settings; what was drawn from the seed stays.
pub(crate) fn change(settings: Settings) {
    let mut state = lock();
    match state.as_mut() {
        Some(driver) => driver.settings = settings,
        None => *state = Some(Driver::new(settings)),
    }
}

/// The account so far; `None` if the driver was never called.
pub(crate) fn report() -> Option<DoubleReport> {
    lock().as_ref().map(Driver::report)
}

/// The settings that variables called `RECOUP_DOUBLE_SEED` and so on make.
fn settings_of_environment() -> Settings {
    let mut settings = Settings::default();
    for name in recoup_cuda_double::NAMES {
        let variable = format!("RECOUP_DOUBLE_{}", name.to_uppercase());
        let Ok(text) = std::env::var(&variable) else { continue };
        let is_set = text.parse().is_ok_and(|value| settings.set(name, value));
        assert!(is_set, "{variable}={text}: not understood");
    }
    settings
}

impl Driver {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            backlog: Backlog::new(settings.seed),
            settings,
            is_initialised: false,
            n_calls: 0,
            calls: BTreeMap::new(),
            contexts: BTreeMap::new(),
            primaries: BTreeMap::new(),
            streams: BTreeMap::new(),
            n_streams: 0,
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            memory: AddressSpace::default(),
            host: HostMemory::default(),
            faults: Vec::new(),
            leaks: Vec::new(),
        }
    }

    /// Counts a call and refuses it where the settings, or its place before `cuInit`, say so.
    fn admit(&mut self, name: &'static str) -> Refusable<()> {
        self.n_calls += 1;
        *self.calls.entry(name).or_insert(0) += 1;
        if self.settings.driver_version.is_none() {
            return Err(CudaStatus::StubLibrary);
        }
        if self.settings.lost_at.is_some_and(|first| self.n_calls >= first) {
            return Err(self.settings.lost_error);
        }
        if self.settings.fail_call == Some(self.n_calls) {
            return Err(self.settings.error);
        }
        let is_early = ["cuInit", "cuDriverGetVersion", "cuGetProcAddress_v2"].contains(&name);
        (self.is_initialised || is_early).then_some(()).ok_or(CudaStatus::NotInitialized)
    }

    pub(crate) fn new_handle(&self) -> u64 {
        NEXT_HANDLE.fetch_add(HANDLE_STEP, Ordering::Relaxed)
    }

    /// Notes that a rule was broken.
    pub(crate) fn fault(&mut self, message: String) {
        if self.faults.len() < LIST_MAX {
            self.faults.push(message);
        }
    }

    /// Notes that something was not given back.
    pub(crate) fn leak(&mut self, message: String) {
        if self.leaks.len() < LIST_MAX {
            self.leaks.push(message);
        }
    }

    /// The context of the calling thread.
    pub(crate) fn bound(&self) -> Option<u64> {
        CURRENT.get()
    }

    /// Changes the context of the calling thread.
    pub(crate) fn bind(&mut self, context: Option<u64>) {
        CURRENT.set(context);
    }

    /// The context of the calling thread, which is alive and without a fault.
    pub(crate) fn context(&self) -> Refusable<u64> {
        let context = self.bound().ok_or(CudaStatus::InvalidContext)?;
        self.check_context(context)?;
        Ok(context)
    }

    /// Refuses a context that is destroyed, or ended by a fault.
    pub(crate) fn check_context(&self, context: u64) -> Refusable<()> {
        let state = self.contexts.get(&context).ok_or(CudaStatus::ContextIsDestroyed)?;
        state.error.map_or(Ok(()), Err)
    }

    /// The device of a live context.
    pub(crate) fn device_of(&self, context: u64) -> Refusable<u32> {
        Ok(self.contexts.get(&context).ok_or(CudaStatus::ContextIsDestroyed)?.device)
    }

    fn report(&self) -> DoubleReport {
        let calls = self.calls.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        DoubleReport {
            calls,
            leaks: self.leaks.clone(),
            races: self.backlog.history.races().to_vec(),
            faults: self.faults.clone(),
            live: self.live(),
            trace: self.backlog.trace,
        }
    }

    fn live(&self) -> Vec<String> {
        let mut live: Vec<String> =
            self.contexts.values().map(|own| format!("context of device {}", own.device)).collect();
        let mut count = |n: usize, what: &str| {
            if n > 0 {
                live.push(format!("{n} {what}"));
            }
        };
        count(self.streams.values().filter(|stream| stream.is_made).count(), "streams");
        count(self.events.len(), "events");
        count(self.modules.len(), "modules");
        live.extend(self.memory.live());
        live.extend(self.host.live());
        live
    }
}
