//! Methods by name: the lines of the table that programs offer them from.

use std::fmt;

use recoup_core::{MethodProfile, SolveError};

use crate::{BasisStorage, Csr, Method, Preconditioner, Side, Stop, System};

/// A method under the name that programs offer it by.
pub struct NamedMethod {
    /// Name on the command line and in versions.
    pub name: &'static str,
    /// Sentence for help texts, without its full stop.
    pub summary: &'static str,
    /// Answer of [`recoup_core::Iteration::profile`], before there is a solver.
    pub profile: MethodProfile,
    /// Requirement on A beyond products with it.
    pub needs: Option<Need>,
    /// Settings the method reads, in addition to its tolerance.
    pub settings: &'static [Setting],
    /// Starts the method.
    pub make: for<'a> fn(&MethodInputs<'a>) -> Result<Box<dyn Method + 'a>, SolveError>,
    /// Starts the method on a device; `None` for one that runs on the host alone.
    #[cfg(feature = "cuda")]
    pub make_on_device: Option<DeviceMaker>,
}

/// Starts a method on a device. Of the inputs' system it reads nothing: the device's is given.
#[cfg(feature = "cuda")]
pub type DeviceMaker =
    for<'a> fn(crate::device::DeviceSystem<'a>, &MethodInputs<'a>) -> Result<Box<dyn Method + 'a>, SolveError>;

/// Requirement of a method on A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A is symmetric: the method may not converge otherwise.
    Symmetry,
    /// The entries of A by rows.
    Rows,
}

/// A setting that some methods read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// [`MethodInputs::preconditioner`].
    Preconditioner,
    /// [`MethodInputs::side`].
    Side,
    /// [`MethodInputs::restart`].
    Restart,
    /// [`MethodInputs::harvest`].
    Harvest,
    /// [`MethodInputs::omega`].
    Omega,
    /// [`MethodInputs::basis`].
    Basis,
}

/// Everything a method is made from; each reads what it needs.
#[derive(Clone, Copy)]
pub struct MethodInputs<'a> {
    /// `A x = b`.
    pub system: System<'a>,
    /// The rows of A, where they are assembled.
    pub rows: Option<&'a Csr>,
    /// M.
    pub preconditioner: &'a dyn Preconditioner,
    /// Initial guess.
    pub x0: &'a [f64],
    /// Tolerance and divergence limit.
    pub stop: Stop,
    /// Damping of Jacobi, relaxation of SOR and SSOR.
    pub omega: f64,
    /// Restart length.
    pub restart: usize,
    /// Side of the preconditioner.
    pub side: Side,
    /// Directions carried over from cycle to cycle.
    pub harvest: usize,
    /// The numbers in which basis vectors are stored.
    pub basis: BasisStorage,
}

impl NamedMethod {
    /// Returns whether the method reads a setting.
    #[must_use]
    pub fn takes(&self, setting: Setting) -> bool {
        self.settings.contains(&setting)
    }
}

impl fmt::Debug for NamedMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamedMethod").field(&self.name).finish()
    }
}

impl PartialEq for NamedMethod {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Writes the calls of [`Iteration`](recoup_core::Iteration) that every method answers alike: from
/// its progress and its limits, its name, and the profile in its line of the table.
macro_rules! table_facts {
    (|$solver:ident| $name:expr, $profile:expr) => {
        fn progress(&self) -> recoup_core::Progress {
            self.progress
        }

        fn method(&self) -> Option<&'static str> {
            let $solver = self;
            _ = $solver;
            Some($name)
        }

        fn profile(&self) -> recoup_core::MethodProfile {
            let $solver = self;
            _ = $solver;
            $profile
        }

        fn tolerance(&self) -> Option<f64> {
            self.limits.relative(&self.progress)
        }
    };
}
pub(crate) use table_facts;
