//! What the figures share: the traces, recorded once, and the settings of simulated runs.

use std::cell::OnceCell;

use crate::Failed;
use crate::device::DeviceRates;
use crate::programs::{ProblemSizes, traces};
use crate::sheet::Sheet;
use crate::trace::WriteTrace;

/// Settings and traces.
pub(crate) struct Lab {
    pub(crate) trials: u32,
    pub(crate) seed: u64,
    traces: OnceCell<Vec<WriteTrace>>,
}

impl Lab {
    pub(crate) fn new(trials: u32, seed: u64) -> Self {
        Self { trials, seed, traces: OnceCell::new() }
    }

    /// The traces of all programs.
    pub(crate) fn traces(&self) -> Result<&[WriteTrace], Failed> {
        if self.traces.get().is_none() {
            let recorded = traces(ProblemSizes::FIGURES)?;
            return Ok(self.traces.get_or_init(|| recorded));
        }
        Ok(self.traces.get().map_or(&[], Vec::as_slice))
    }
}

/// The rates of a device, as parameters of a figure.
pub(crate) fn note_rates(sheet: &mut Sheet, rates: &DeviceRates) {
    let [least, most] = rates.transfer_bytes.map(|bytes| bytes >> 20);
    sheet.parameters.push(format!(
        "Device: memory {} GB/s, {} TFLOP/s, {} us between kernels; link {} GB/s, {:.1} us a transfer, {} us a question and \
         its answer; {} writes wait at once; transfers of {least} to {most} MiB, of {} KiB at most where a write waits; \
         buffer of {} MiB.",
        rates.memory / 1e9,
        rates.flops / 1e12,
        rates.launch_seconds * 1e6,
        rates.link / 1e9,
        rates.transfer_seconds * 1e6,
        rates.message_seconds * 1e6,
        rates.waiting_writes,
        rates.asked_bytes >> 10,
        rates.buffer_bytes >> 20,
    ));
}
