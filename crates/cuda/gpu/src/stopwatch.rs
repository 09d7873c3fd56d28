//! Time on two clocks: that of the host, around waits, and that of the device, between events.

use anyhow::Result;
use recoup::SystemClock;
use recoup::core::Clock;
use recoup::device::Stream;

/// Returns the seconds that `work` takes on the host's clock. The work ends with a wait, or is the
/// host's own.
pub(crate) fn host_seconds<E: Into<anyhow::Error>>(work: impl FnOnce() -> Result<(), E>) -> Result<f64> {
    let clock = SystemClock::new();
    let start = clock.now();
    work().map_err(Into::into)?;
    Ok(clock.now().saturating_sub(start).as_secs_f64())
}

/// Returns the seconds that work given to `stream` takes on the device's clock.
pub(crate) fn device_seconds<E: Into<anyhow::Error>>(
    stream: &Stream,
    work: impl FnOnce() -> Result<(), E>,
) -> Result<f64> {
    let start = stream.timestamp()?;
    work().map_err(Into::into)?;
    let end = stream.timestamp()?;
    end.wait()?;
    Ok(end.seconds_since(&start)?)
}
