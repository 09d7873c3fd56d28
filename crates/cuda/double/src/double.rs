//! The double as a test sees it: loaded, set, and asked for its account.

mod sys;

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::report::DoubleReport;
use crate::settings::Settings;

/// The name that cargo gives the library.
const LIBRARY: &str = "libcuda_double.so";
/// The manifest of the library.
const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/driver/Cargo.toml");

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
    pub fn load() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let double = Self { library: sys::library(&Self::path()), _turn: turn };
        double.reset(&Settings::default());
        double
    }

    /// Loads the double, unless the tests are for the machine's own device: where
    /// `RECOUP_REAL_DEVICE` is set.
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

    /// The file of the library: the one `RECOUP_CUDA_DOUBLE` names, the one next to the running
    /// program, or the one in the folder `cuda-double` of cargo's target directory, made now.
    ///
    /// # Panics
    /// When it does not compile.
    pub fn path() -> PathBuf {
        if let Some(named) = std::env::var_os("RECOUP_CUDA_DOUBLE") {
            return PathBuf::from(named);
        }
        static MADE: OnceLock<PathBuf> = OnceLock::new();
        MADE.get_or_init(|| beside_program().unwrap_or_else(build)).clone()
    }

    /// Begins again with other settings. Contexts, memory and all else of before are gone: a test
    /// gives them back first.
    pub fn reset(&self, settings: &Settings) {
        assert!(self.library.reset(&settings.values()), "program and library are of one version");
    }

    /// Continues with other settings: calls are counted on, and everything that is alive stays.
    pub fn change(&self, settings: &Settings) {
        assert!(self.library.change(&settings.values()), "program and library are of one version");
    }

    /// Returns the account since the last reset.
    pub fn report(&self) -> DoubleReport {
        DoubleReport::parse(&self.library.report())
    }
}

/// The library of the tests of its own workspace: cargo has put it next to the program.
fn beside_program() -> Option<PathBuf> {
    folders_above_program().map(|folder| folder.join(LIBRARY)).find(|path| path.exists())
}

/// Builds the library, or finds that it is built; other processes wait meanwhile.
fn build() -> PathBuf {
    // Cargo tags a directory that it makes; in one that was there before it keeps the other file.
    let is_target =
        |folder: &PathBuf| ["CACHEDIR.TAG", ".rustc_info.json"].iter().any(|file| folder.join(file).exists());
    let target = folders_above_program().find(is_target).expect("a test runs in cargo's target directory");
    let target = target.join("cuda-double");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--locked", "--lib", "--manifest-path", MANIFEST, "--target-dir"]).arg(&target);
    let status = cargo.status().expect("cargo runs");
    assert!(status.success(), "{cargo:?} fails: {status}");
    target.join("debug").join(LIBRARY)
}

fn folders_above_program() -> impl Iterator<Item = PathBuf> {
    let program = std::env::current_exe().expect("a process knows its program");
    program.ancestors().skip(1).map(PathBuf::from).collect::<Vec<_>>().into_iter()
}
