//! `recoup device`: the CUDA devices of this machine, and what they lack to be used.

use anyhow::Result;
use serde::Serialize;

use crate::exit::Exit;
use crate::output::{Output, TextTable, bytes};

/// The end of the help: examples, and the parts that are looked for.
const EXAMPLES: &str = "Examples:
  if recoup device; then echo a GPU can be used; fi
  recoup device --json | python3 -m json.tool

Only `--device` of `solve`, `run` and `compare`, and `tape bench --on cuda`, use
a device. No other command looks for CUDA, and nothing of CUDA is needed to
build or install this program. The command looks for:

driver:   libcuda of CUDA 12.2 or newer, which comes with the GPU's driver.
compiler: NVRTC, which compiles the kernels when first needed. Its release is
          at most the driver's: 12 for CUDA 12, 12 or 13 for CUDA 13. Install it
          with `pip install nvidia-cuda-nvrtc==13.0.*` (nvidia-cuda-nvrtc-cu12
          for CUDA 12). Searched are the folder RECOUP_NVRTC, the Python
          environment VIRTUAL_ENV, CUDA_HOME and the system's libraries.
devices:  kernels are compiled to the code of the device (cubin) if the compiler
          knows it. A newer device gets PTX, which the driver compiles.

Exit code 0 if a device can be used, else 5 and the reason.";

/// Options of `recoup device`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {}

/// The printed report.
#[derive(Default, Serialize)]
struct DevicesReport {
    /// The version of CUDA that the driver serves.
    driver_version: Option<String>,
    driver_missing: Option<String>,
    compiler_version: Option<String>,
    /// Path of the compiler's library.
    compiler_library: Option<String>,
    compiler_missing: Option<String>,
    devices: Vec<DeviceRow>,
}

/// One device.
#[derive(Default, Serialize)]
struct DeviceRow {
    number: usize,
    name: String,
    capability: String,
    memory_bytes: usize,
    memory_free_bytes: Option<usize>,
    /// The architecture its kernels are compiled for.
    architecture: Option<String>,
    /// The form of its kernels: cubin or PTX.
    code: Option<String>,
    /// The reason why it cannot be used.
    unusable: Option<String>,
}

/// Looks and reports.
pub(crate) fn run(_args: &Args, output: &Output) -> Result<Exit> {
    let report = look();
    output.emit(&report, table)?;
    let can_be_used = report.devices.iter().any(|device| device.unusable.is_none());
    Ok(if can_be_used { Exit::Done } else { Exit::NotAvailable })
}

/// Returns the names of the devices that can be used, or why there is none.
pub(crate) fn usable() -> Result<Vec<String>, String> {
    let DevicesReport { driver_missing, compiler_missing, devices, .. } = look();
    let unusable = devices.iter().find_map(|device| device.unusable.clone());
    let names: Vec<String> = devices.into_iter().filter(|of| of.unusable.is_none()).map(|of| of.name).collect();
    let reasons = [driver_missing, unusable, compiler_missing];
    let reason = || reasons.into_iter().flatten().next().unwrap_or_else(|| "the driver lists no device".to_owned());
    if names.is_empty() { Err(reason()) } else { Ok(names) }
}

#[cfg(not(feature = "cuda"))]
fn look() -> DevicesReport {
    let missing = || Some("this program was built without feature cuda".to_owned());
    DevicesReport { driver_missing: missing(), compiler_missing: missing(), ..DevicesReport::default() }
}

#[cfg(feature = "cuda")]
fn look() -> DevicesReport {
    use recoup::device::{Compiler, driver_version, probe};

    let mut report = DevicesReport::default();
    let version = driver_version().map_err(|error| report.driver_missing = Some(reason(error))).ok();
    report.driver_version = version.map(|version| version.to_string());
    match Compiler::find(version) {
        Ok(compiler) => {
            report.compiler_version = Some(compiler.version().to_string());
            report.compiler_library = Some(compiler.library().display().to_string());
        }
        Err(error) => report.compiler_missing = Some(reason(error)),
    }
    match version.map(|_| probe()) {
        Some(Ok(found)) => report.devices = found.into_iter().map(row).collect(),
        Some(Err(error)) => report.driver_missing = Some(reason(error)),
        None => {}
    }
    report
}

/// The reason alone: the line names the part.
#[cfg(feature = "cuda")]
fn reason(error: recoup::device::DeviceError) -> String {
    match error {
        recoup::device::DeviceError::NotAvailable { why, .. } => why,
        other => other.to_string(),
    }
}

/// Opens a device to learn the properties that a closed one does not tell.
#[cfg(feature = "cuda")]
fn row(info: recoup::device::DeviceInfo) -> DeviceRow {
    use recoup::device::{Device, DeviceError};

    let recoup::device::DeviceInfo { ordinal, name, capability, memory_bytes, .. } = info;
    let known = DeviceRow { number: ordinal, name, capability: capability.to_string(), ..DeviceRow::default() };
    let mut row = DeviceRow { memory_bytes, ..known };
    let mut open = || -> Result<(), DeviceError> {
        let device = Device::open(ordinal)?;
        row.memory_free_bytes = Some(device.memory()?.free);
        let architecture = device.compiler()?.architecture(capability)?;
        row.architecture = Some(architecture.to_string());
        row.code = Some(architecture.form().to_owned());
        Ok(())
    };
    row.unusable = open().err().map(reason);
    row
}

fn table(report: &DevicesReport) -> TextTable {
    let mut table = match report.devices.is_empty() {
        true => TextTable::pairs(),
        false => TextTable::new(&["device", "name", "capability", "memory", "free", "kernels"]),
    };
    for device in &report.devices {
        let kernels = device.architecture.as_ref().zip(device.code.as_ref());
        table.row([
            device.number.to_string(),
            device.name.clone(),
            device.capability.clone(),
            bytes(device.memory_bytes as f64),
            device.memory_free_bytes.map_or_else(|| "-".to_owned(), |free| bytes(free as f64)),
            kernels.map_or_else(|| "-".to_owned(), |(architecture, code)| format!("{architecture} ({code})")),
        ]);
    }
    let driver = report.driver_version.as_ref().map(|version| format!("driver: CUDA {version}"));
    let missing = report.driver_missing.as_ref().map(|why| format!("driver: {why}"));
    let library = report.compiler_library.as_deref().unwrap_or("-");
    let compiler = report.compiler_version.as_ref().map(|version| format!("compiler: NVRTC {version}, {library}"));
    let without = report.compiler_missing.as_ref().map(|why| format!("compiler: {why}"));
    let unusable = report.devices.iter().filter_map(|device| {
        device.unusable.as_ref().map(|why| format!("device {} cannot be used: {why}", device.number))
    });
    for note in [driver, missing, compiler, without].into_iter().flatten().chain(unusable) {
        table.note(note);
    }
    table
}
