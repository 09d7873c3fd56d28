//! Ways to keep the states of a program on a CUDA device.

use anyhow::Result;
use recoup::core::Bound;
use recoup::device::{Device, DeviceError};

use super::Args;
use super::host::{self, BenchPlan, HostBench, PlannedWay, STATES};
use super::sizes::{ProcessCounts, StateSizes};
use super::ways::{BenchDevice, DeviceWay, KeeperPlan, KeepingWay};
use crate::exit::Exit;
use crate::output::bytes;

/// Memory of the device that QB takes: two slices of 64 MiB, their payloads and room for these.
const CODEC_BYTES: u64 = 512 << 20;
/// Device whose memory is used.
const DEVICE: usize = 0;

/// Measures all ways in turns.
///
/// # Errors
/// Exit 5 where there is no device; exit 2 for more than it or the machine has; errors of a way.
pub(super) fn measure(args: &Args) -> Result<HostBench> {
    let missing = |error: DeviceError| Exit::NotAvailable.because(format!("--on cuda: {error}"));
    let device = Device::open(DEVICE).map_err(missing)?;
    let counts = args.processes.clone().unwrap_or(ProcessCounts(vec![1]));
    let sizes = args.sizes(STATES, counts.most())?;
    host::check_memory(&sizes, counts.most())?;
    let bound = host::codec_bound(args)?;
    let keeper = host::keeper(args, &sizes, bound)?;
    let two_states = 2 * KeeperPlan::memory_bytes(1, sizes.greatest_bytes());
    let memory_bytes = args.device.unwrap_or((keeper.whole_bytes / 8).max(two_states));
    let codec_bytes = if keeper.codec.is_some() { CODEC_BYTES } else { 0 };
    check_device(&device, DeviceNeeds { memory_bytes, codec_bytes }, &sizes, counts.most())?;
    let keeper = KeeperPlan { device: Some(BenchDevice { device, bytes: memory_bytes }), ..keeper };
    let mut ways = vec![DeviceWay::Prepared, DeviceWay::Grown, DeviceWay::Fetched];
    if let Some(directory) = &args.spill {
        host::check_spill(directory, sizes.total_bytes(counts.most()))?;
        ways.push(DeviceWay::Spill(directory.clone()));
    }
    if keeper.codec.is_some() {
        ways.push(DeviceWay::Coded);
    }
    let plan = |way| PlannedWay { way: KeepingWay::Device(way), skipped: None };
    let ways = ways.into_iter().map(plan).collect();
    BenchPlan { counts, sizes, keeper, ways, error_bound: bound.map_or(0.0, Bound::value) }.measure(args)
}

/// Memory of the device that the ways need besides vectors.
#[derive(Clone, Copy, Debug)]
struct DeviceNeeds {
    /// Memory of each tape.
    memory_bytes: u64,
    /// Memory of the codec, which the tapes share.
    codec_bytes: u64,
}

/// Refuses more than the device has left: memory of each tape and of the codec, the vector of each
/// program, and one copy of it.
fn check_device(device: &Device, needs: DeviceNeeds, sizes: &StateSizes, n_processes: usize) -> Result<()> {
    let free = device.memory()?.free as u64;
    let of_process = needs.memory_bytes.saturating_add(2 * sizes.greatest_bytes());
    let needed = of_process.saturating_mul(n_processes as u64).saturating_add(needs.codec_bytes);
    if needed <= free {
        return Ok(());
    }
    let [needed, free] = [needed, free].map(|count| bytes(count as f64));
    Err(Exit::Usage.because(format!(
        "{n_processes} processes need {needed} of the device's memory, {free} are free; name less with --device, or \
         smaller states"
    )))
}
