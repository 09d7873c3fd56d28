//! Progress of the residual on a logarithmic scale: a bar on a terminal, a line now and then
//! elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use recoup::SystemClock;
use recoup::core::{Clock as _, Progress};

use crate::ranks;
use crate::tell::tell;

/// Length of the bar.
const STEPS: f64 = 1000.0;
/// Drawings per second.
const HERTZ: u8 = 10;
/// Iterations between two looks at the bar.
const EVERY: u64 = 8;
/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Shows where a solve stands.
pub(crate) struct Bar {
    bar: ProgressBar,
    what: String,
    rtol: f64,
    first: Option<f64>,
    clock: SystemClock,
    /// Lines printed.
    lines: u32,
}

impl Bar {
    /// A bar for a solve that ends at `rtol`.
    pub(crate) fn new(what: &str, rtol: f64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(STEPS as u64), ProgressDrawTarget::stderr_with_hz(HERTZ));
        let style = ProgressStyle::with_template("{prefix} [{bar:30}] {msg} {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(what.to_owned());
        Self { bar, what: what.to_owned(), rtol, first: None, clock: SystemClock::new(), lines: 0 }
    }

    /// After an iteration.
    pub(crate) fn show(&mut self, progress: &Progress, executed: u64) {
        if !executed.is_multiple_of(EVERY) {
            return;
        }
        let residual = progress.relative_residual();
        let part = fallen(*self.first.get_or_insert(residual), residual, self.rtol);
        let message = format!("iteration {}, residual {residual:.2e}", progress.iteration);
        if !self.bar.is_hidden() {
            self.bar.set_position((STEPS * part) as u64);
            self.bar.set_message(message);
        } else if self.clock.now() >= LINE_EVERY * (self.lines + 1) && ranks::is_first() {
            self.lines = (self.clock.now().as_secs() / LINE_EVERY.as_secs()) as u32;
            tell(format_args!(
                "{} {message}, {:.0} % of the way, {} s",
                self.what,
                100.0 * part,
                self.clock.now().as_secs()
            ));
        }
    }
}

impl Drop for Bar {
    /// Takes the bar away.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Part of the way from `first` to `rtol` that is done, by the logarithm of the residual.
pub(crate) fn fallen(first: f64, residual: f64, rtol: f64) -> f64 {
    let part = (first / residual).ln() / (first / rtol).ln();
    if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_is_half_way_at_half_the_digits() {
        assert!((fallen(1.0, 1e-3, 1e-6) - 0.5).abs() < 1e-12);
        assert_eq!(fallen(1.0, 10.0, 1e-6), 0.0);
        assert_eq!(fallen(0.0, 0.0, 1e-6), 0.0);
        assert_eq!(fallen(1.0, 1e-9, 1e-6), 1.0);
    }
}
