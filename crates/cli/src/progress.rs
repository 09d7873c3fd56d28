//! A progress bar on a terminal, nothing elsewhere: how far the residual has fallen, on a logarithmic scale.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use recoup::core::Progress;

/// Length of the bar.
const STEPS: f64 = 1000.0;
/// Drawings per second.
const HERTZ: u8 = 10;
/// Iterations between two looks at the bar.
const EVERY: u64 = 8;

/// Shows where a solve stands.
pub(crate) struct Bar {
    bar: ProgressBar,
    rtol: f64,
    first: Option<f64>,
}

impl Bar {
    /// A bar for a solve that ends at `rtol`.
    pub(crate) fn new(what: &str, rtol: f64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(STEPS as u64), ProgressDrawTarget::stderr_with_hz(HERTZ));
        let style = ProgressStyle::with_template("{prefix} [{bar:30}] {msg} {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(what.to_owned());
        Self { bar, rtol, first: None }
    }

    /// After an iteration.
    pub(crate) fn show(&mut self, progress: &Progress, executed: u64) {
        if self.bar.is_hidden() || !executed.is_multiple_of(EVERY) {
            return;
        }
        let residual = progress.relative_residual();
        let first = *self.first.get_or_insert(residual);
        self.bar.set_position((STEPS * fallen(first, residual, self.rtol)) as u64);
        self.bar.set_message(format!("iteration {}, residual {residual:.2e}", progress.iteration));
    }
}

impl Drop for Bar {
    /// Takes the bar away.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Part of the way from `first` to `rtol` that is done, by the logarithm of the residual.
fn fallen(first: f64, residual: f64, rtol: f64) -> f64 {
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
