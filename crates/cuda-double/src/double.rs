//! The double as a test sees it: loaded, set, and asked for its account.

mod sys;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::report::DoubleReport;
use crate::settings::Settings;

/// The name that cargo gives the library.
const LIBRARY: &str = "librecoup_cuda_double.so";

static TURN: Mutex<()> = Mutex::new(());

/// The double, loaded in this process and in the hands of one test: others wait for their turn.
#[derive(Debug)]
pub struct Double {
    library: &'static sys::Library,
    _turn: MutexGuard<'static, ()>,
}

impl Double {
    /// Loads the library and waits for its turn. From then on, the process finds the double where
    /// it looks for the driver; a driver that it has loaded before stays in use. The settings are
    /// the default ones.
    ///
    /// # Panics
    /// When the library is missing.
    #[must_use]
    pub fn load() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let double = Self { library: sys::library(&Self::path()), _turn: turn };
        double.reset(&Settings::default());
        double
    }

    /// Loads the double, unless the tests are for the machine's own device: where
    /// `RECOUP_REAL_DEVICE` is set.
    #[must_use]
    pub fn unless_real() -> Option<Self> {
        std::env::var_os("RECOUP_REAL_DEVICE").is_none().then(Self::load)
    }

    /// Runs `test`, for one test at a time: on the double, where no rule may be broken and nothing
    /// may be left, or on the machine's own device. Returns the account of the double.
    ///
    /// # Panics
    /// When a rule is broken, something is left, or the device was not used.
    pub fn on_device(settings: &Settings, test: impl FnOnce()) -> Option<DoubleReport> {
        let double = Self::unless_real();
        if let Some(double) = &double {
            double.reset(settings);
        }
        test();
        let report = double.map(|double| double.report());
        if let Some(report) = &report {
            assert!(report.is_clean() && report.total_calls() > 0, "seed {}: {report}", settings.seed);
        }
        report
    }

    /// The file of the library: the one `RECOUP_CUDA_DOUBLE` names, or the one cargo has put next
    /// to the running program.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn path() -> PathBuf {
        if let Some(named) = std::env::var_os("RECOUP_CUDA_DOUBLE") {
            return PathBuf::from(named);
        }
        let program = std::env::current_exe().expect("a process knows its program");
        let mut places = program.ancestors().skip(1).map(|folder| folder.join(LIBRARY));
        places.find(|path| path.exists()).expect("cargo builds the library with the tests that need it")
    }

    /// Begins again with other settings. Contexts, memory and all else of before are gone: a test
    /// gives them back first.
    pub fn reset(&self, settings: &Settings) {
        assert!(self.library.reset(&settings.values()), "program and library are of one version");
    }

    /// Goes on with other settings: calls are counted on, and everything that is alive stays.
    pub fn change(&self, settings: &Settings) {
        assert!(self.library.change(&settings.values()), "program and library are of one version");
    }

    /// Returns the account since the last reset.
    #[must_use]
    pub fn report(&self) -> DoubleReport {
        DoubleReport::parse(&self.library.report())
    }
}
