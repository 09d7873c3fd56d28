//! The place where a rank's solver computes: the processor, or a CUDA device.

use anyhow::Result;
use recoup::core::Comm;

use crate::exit::Exit;
use crate::options::DeviceChoice;

/// A CUDA device to solve on.
pub(crate) struct SolveDevice {
    #[cfg(feature = "cuda")]
    pub(crate) device: recoup::device::Device,
}

impl SolveDevice {
    /// Opens the device that the options ask for, if they ask for one. Nothing of CUDA is looked
    /// for otherwise. Collective.
    ///
    /// # Errors
    /// Exit 5 where there is no such device, where it cannot be used, or where this program was
    /// built without CUDA.
    pub(crate) fn open(choice: DeviceChoice, comm: &dyn Comm) -> Result<Option<Self>> {
        match choice {
            DeviceChoice::Host => Ok(None),
            DeviceChoice::Cuda(number) => opened(number, comm).map(Some),
        }
    }
}

/// Opens device `number`, or the one for the place of this rank among those of its machine.
#[cfg(feature = "cuda")]
fn opened(number: Option<usize>, comm: &dyn Comm) -> Result<SolveDevice> {
    use recoup::device::{Device, probe};

    let place = place_on_machine(comm)?;
    let refuse = |error: recoup::device::DeviceError| {
        Exit::NotAvailable.because(format!("--device: {error}; `recoup device` says more, --device host does without"))
    };
    let open = || {
        let number = match number {
            Some(number) => number,
            None => place % probe()?.len().max(1),
        };
        let device = Device::open(number)?;
        // Kernels are compiled when a solver is made. Without a compiler there is none.
        device.compiler()?.architecture(device.info().capability)?;
        Ok(device)
    };
    crate::ranks::agree(comm, open().map(|device| SolveDevice { device }).map_err(refuse))
}

#[cfg(not(feature = "cuda"))]
fn opened(_number: Option<usize>, _comm: &dyn Comm) -> Result<SolveDevice> {
    Err(Exit::NotAvailable.because("--device: this program was built without CUDA: rebuild it with feature cuda"))
}

/// Returns the number of ranks before this one on the same machine. Collective.
#[cfg(feature = "cuda")]
fn place_on_machine(comm: &dyn Comm) -> Result<usize> {
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let names: Vec<String> = recoup::core::gather_json(comm, &own)?;
    Ok(names.iter().take(comm.rank()).filter(|name| **name == own).count())
}
