//! Programs built without CUDA: there is no device, and asking for one says so.

use std::sync::Arc;

use anyhow::Result;
use recoup::core::{Comm, ProblemOnDevice, SolveError};
use recoup::solvers::{Method, MethodInputs, System};

use crate::exit::Exit;
use crate::options::{DeviceChoice, DeviceStaging, MethodArgs};

/// A CUDA device to solve on: none.
pub(crate) enum NoDevice {}

/// A system on a device: none.
pub(crate) enum NoSystem<'a> {
    /// Cannot be made.
    #[expect(dead_code, reason = "a type without values that has the lifetime of one")]
    Never(std::convert::Infallible, &'a ()),
}

impl NoDevice {
    /// Refuses a device.
    ///
    /// # Errors
    /// Exit 5 where one is asked for.
    pub(crate) fn open(choice: DeviceChoice, _staging: DeviceStaging, _comm: &dyn Comm) -> Result<Option<Self>> {
        match choice {
            DeviceChoice::Host => Ok(None),
            DeviceChoice::Cuda(_) => Err(Exit::NotAvailable
                .because("--device: this program was built without CUDA: rebuild it with feature cuda")),
        }
    }

    /// Cannot be called.
    pub(crate) fn place<'a>(&self, _system: &System<'a>, _args: &MethodArgs) -> Result<NoSystem<'a>> {
        match *self {}
    }
}

impl<'a> NoSystem<'a> {
    /// Cannot be called.
    pub(crate) fn device_name(&self) -> &str {
        match *self {
            Self::Never(never, _) => match never {},
        }
    }

    /// Cannot be called.
    pub(crate) fn problem(&self) -> Result<Option<Arc<dyn ProblemOnDevice>>> {
        match *self {
            Self::Never(never, _) => match never {},
        }
    }

    /// Cannot be called.
    pub(crate) fn make(&self, _inputs: &MethodInputs<'a>) -> Option<Result<Box<dyn Method + 'a>, SolveError>> {
        match *self {
            Self::Never(never, _) => match never {},
        }
    }
}
