//! A system on a CUDA device. Nothing of CUDA is looked for unless the options ask for a device.

use std::cell::Cell;
use std::sync::Arc;

use anyhow::Result;
use recoup::core::{Comm, DeviceValuesError, DeviceValuesErrorKind, ProblemOnDevice, SolveError, gather_json};
use recoup::device::{Device, DeviceError, FreezeSettings, FreezeWay, probe};
use recoup::solvers::device::{DeviceProblem, DeviceSystem};
use recoup::solvers::{DeviceMaker, Method, MethodInputs, System};

use crate::exit::Exit;
use crate::options::{DeviceChoice, DeviceStaging, MethodArgs, PcKind, methods_with, name_of};
use crate::ranks::agree;

/// A CUDA device to solve on.
pub(crate) struct SolveDevice {
    device: Device,
    freezing: FreezeSettings,
}

/// A system on a device, and the method that is to run there.
pub(crate) struct PlacedSystem<'a> {
    system: DeviceSystem<'a>,
    maker: DeviceMaker,
    device_name: String,
    /// Versions are measured on the device where their vectors are copied there.
    measures: bool,
    /// No other rank waits for this one: the run may continue without the device.
    is_alone: bool,
    is_lost: Cell<bool>,
}

impl SolveDevice {
    /// Opens the device that the options ask for, if they ask for one. Collective.
    ///
    /// # Errors
    /// Exit 5 where there is no such device, or where it cannot be used; the same on all ranks.
    pub(crate) fn open(choice: DeviceChoice, staging: DeviceStaging, comm: &dyn Comm) -> Result<Option<Self>> {
        let DeviceChoice::Cuda(number) = choice else { return Ok(None) };
        let place = place_on_machine(comm)?;
        let freezing = match staging {
            DeviceStaging::Copy => FreezeSettings::default(),
            DeviceStaging::Zones(None) => FreezeSettings::zones(FreezeSettings::default().ring_bytes()),
            DeviceStaging::Zones(Some(bytes)) => FreezeSettings::zones(usize::try_from(bytes).unwrap_or(usize::MAX)),
        };
        let open = || {
            let number = match number {
                Some(number) => number,
                None => place % probe()?.len().max(1),
            };
            let device = Device::open(number)?;
            // Kernels are compiled when a solver is made. Without a compiler there is none.
            device.check_kernels()?;
            Ok(Some(Self { device, freezing }))
        };
        agree(comm, open().map_err(refused))
    }

    /// Copies a system to the device, for the method of the options. Collective.
    ///
    /// # Errors
    /// Exit 2 where method or preconditioner have no form on a device; else where the device fails
    /// or has no room.
    pub(crate) fn place<'a>(&self, system: &System<'a>, args: &MethodArgs) -> Result<PlacedSystem<'a>> {
        let maker = maker(args)?;
        let comm = system.comm;
        let placed = DeviceSystem::new(system, &self.device).and_then(|placed| placed.freezing(self.freezing));
        let placed = placed.map_err(with_way_out).map_err(anyhow::Error::from);
        Ok(PlacedSystem {
            system: agree(comm, placed)?,
            maker,
            device_name: self.device.info().name.clone(),
            measures: self.freezing.way == FreezeWay::Copy,
            is_alone: comm.size() == 1,
            is_lost: Cell::new(false),
        })
    }
}

impl<'a> PlacedSystem<'a> {
    /// Returns the name of the device.
    pub(crate) fn device_name(&self) -> &str {
        &self.device_name
    }

    /// Returns the problem on the device, for a session to measure with; `None` where a device has
    /// no room or fails, and where vectors are not copied there. Collective.
    pub(crate) fn problem(&self) -> Result<Option<Arc<dyn ProblemOnDevice>>> {
        if !self.measures {
            return Ok(None);
        }
        let problem = DeviceProblem::of(&self.system).map(Arc::new);
        if self.system.host().comm.max(i64::from(problem.is_err()))? == 0 {
            return Ok(problem.ok().map(|problem| problem as Arc<dyn ProblemOnDevice>));
        }
        if let Err(error) = problem {
            tracing::warn!("{}: {error}: versions are measured on the host", self.device_name);
        }
        Ok(None)
    }

    /// Makes a solver on the device; `None` where the device is lost and the host is to continue.
    pub(crate) fn make(&self, inputs: &MethodInputs<'a>) -> Option<Result<Box<dyn Method + 'a>, SolveError>> {
        if self.is_lost.get() {
            return None;
        }
        match (self.maker)(self.system.clone(), inputs) {
            Err(SolveError::Device(error)) if self.is_alone && error.kind == DeviceValuesErrorKind::Lost => {
                self.is_lost.set(true);
                tracing::warn!("{} is lost ({error}): the run continues on the host", self.device_name);
                None
            }
            made => Some(made.map_err(with_way_out)),
        }
    }
}

/// Returns what makes the method of the options on a device.
fn maker(args: &MethodArgs) -> Result<DeviceMaker> {
    if !matches!(args.pc, PcKind::None | PcKind::Jacobi) {
        let pc = name_of(args.pc);
        return Err(Exit::Usage.because(format!("--pc {pc} has no form on a device: take none or jacobi")));
    }
    args.method.make_on_device.ok_or_else(|| {
        let method = args.method.name;
        let others = methods_with(|method| method.make_on_device.is_some());
        Exit::Usage.because(format!("--method {method} has no form on a device: {others} have one"))
    })
}

fn refused(error: DeviceError) -> anyhow::Error {
    Exit::NotAvailable.because(format!("--device: {error}; `recoup device` says more, --device host does without"))
}

/// Says of a solve that does not fit on the device what can be done.
fn with_way_out(error: SolveError) -> SolveError {
    match error {
        SolveError::Device(DeviceValuesError { kind: DeviceValuesErrorKind::NoRoom, message }) => {
            let message = format!("the solve does not fit on the device: {message}; --device host does without");
            SolveError::Device(DeviceValuesError { kind: DeviceValuesErrorKind::NoRoom, message })
        }
        other => other,
    }
}

/// Returns the number of ranks before this one on the same machine. Collective.
fn place_on_machine(comm: &dyn Comm) -> Result<usize> {
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let names: Vec<String> = gather_json(comm, &own)?;
    Ok(names.iter().take(comm.rank()).filter(|name| **name == own).count())
}
