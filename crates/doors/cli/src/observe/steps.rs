//! Progress by steps of known number: a bar on a terminal, a line now and then elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use recoup::SystemClock;
use recoup::core::Clock as _;

use crate::tell::tell;

/// Drawings per second.
const HERTZ: u8 = 10;
/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Shows which step is under way.
pub(crate) struct StepBar {
    bar: ProgressBar,
    what: String,
    n_steps: usize,
    n_begun: usize,
    clock: SystemClock,
    /// Time of the next line.
    next_line: Duration,
}

impl StepBar {
    /// A bar for `n_steps` steps.
    pub(crate) fn new(what: &str, n_steps: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(n_steps as u64), ProgressDrawTarget::stderr_with_hz(HERTZ));
        let style = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {msg} {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(what.to_owned());
        let clock = SystemClock::new();
        Self { bar, what: what.to_owned(), n_steps, n_begun: 0, clock, next_line: LINE_EVERY }
    }

    /// Begins a step.
    pub(crate) fn show(&mut self, step: &str) {
        if !self.bar.is_hidden() {
            self.bar.set_position(self.n_begun as u64);
            self.bar.set_message(step.to_owned());
        } else if self.clock.now() >= self.next_line {
            self.next_line = self.clock.now() + LINE_EVERY;
            let elapsed_seconds = self.clock.now().as_secs();
            tell(format_args!(
                "{} {step}, {} of {} steps done, {elapsed_seconds} s",
                self.what, self.n_begun, self.n_steps
            ));
        }
        self.n_begun += 1;
    }
}

impl Drop for StepBar {
    /// Takes the bar away.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Shows on a terminal, with its time, a computation whose steps are not known.
pub(crate) struct WaitBar(ProgressBar);

impl WaitBar {
    /// Shows it until it is dropped.
    pub(crate) fn new(what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(HERTZ));
        let style = ProgressStyle::with_template("{prefix} {spinner} {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_prefix(what);
        bar.enable_steady_tick(Duration::from_secs(1) / u32::from(HERTZ));
        Self(bar)
    }
}

impl Drop for WaitBar {
    /// Takes it away.
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
