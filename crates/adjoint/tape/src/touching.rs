//! The choice between touching pages during copies, between copies, and not at all, from rates that
//! were measured and the time between two states.
//!
//! Source of the two strategies: Maurya, Nicolae, Rafique et al., HiPC 2022 (hal-03799226), which
//! states no formula for the choice; this one is ours.

/// Order of touching and of copies to the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchMode {
    /// Both at once. Copies go to pages that were touched.
    Concurrent,
    /// Pages are touched while no copy is under way. Copies do not wait for it.
    Sequential,
    /// Copies touch the pages they write.
    Never,
}

/// Rates of copies to memory of a host, and of touching it, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TouchModel {
    /// Copies to pages that were touched, while none is being touched.
    pub copy_rate: f64,
    /// Copies to pages that were not touched.
    pub untouched_copy_rate: f64,
    /// Touching while no copy is under way.
    pub touch_rate: f64,
    /// Copies to touched pages while others are being touched.
    pub shared_copy_rate: f64,
    /// Touching during a copy.
    pub shared_touch_rate: f64,
}

/// A rate of [`TouchModel`] that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MeasuredRate {
    Copy,
    UntouchedCopy,
    Touch,
    SharedCopy,
    SharedTouch,
}

/// Share of a new measurement in a rate.
const WEIGHT: f64 = 0.25;

impl TouchModel {
    /// Moves a rate towards a measurement.
    pub(crate) fn learn(&mut self, which: MeasuredRate, rate: f64) {
        let known = match which {
            MeasuredRate::Copy => &mut self.copy_rate,
            MeasuredRate::UntouchedCopy => &mut self.untouched_copy_rate,
            MeasuredRate::Touch => &mut self.touch_rate,
            MeasuredRate::SharedCopy => &mut self.shared_copy_rate,
            MeasuredRate::SharedTouch => &mut self.shared_touch_rate,
        };
        if rate.is_finite() && rate > 0.0 {
            *known += WEIGHT * (rate - *known);
        }
    }

    /// Returns the mode in which a state of `bytes` delays the next one least, if a state comes
    /// every `interval_seconds`. Of equals, the one that leaves copies undisturbed.
    #[must_use]
    pub fn choose(&self, bytes: f64, interval_seconds: f64) -> TouchMode {
        let stall = |seconds: f64| (seconds - interval_seconds).max(0.0);
        let sequential = stall(self.sequential_seconds(bytes, interval_seconds));
        let concurrent = stall(bytes / self.concurrent_rate());
        let never = stall(bytes / self.untouched_copy_rate);
        if never < sequential.min(concurrent) {
            TouchMode::Never
        } else if concurrent < sequential {
            TouchMode::Concurrent
        } else {
            TouchMode::Sequential
        }
    }

    /// Seconds for the copy of a state if pages are touched between copies. Touching either keeps
    /// ahead of the copies, or falls behind until no time is left for it.
    fn sequential_seconds(&self, bytes: f64, interval_seconds: f64) -> f64 {
        let touched = bytes / self.copy_rate;
        let keeps_ahead = touched + bytes / self.touch_rate <= interval_seconds;
        if keeps_ahead { touched } else { bytes / self.untouched_copy_rate.min(self.copy_rate) }
    }

    /// Rate of copies that wait for their pages. While they wait, touching has the memory to
    /// itself.
    fn concurrent_rate(&self) -> f64 {
        // f is the share of time with a copy: shared_touch f + touch (1 - f) = shared_copy f
        let f = self.touch_rate / (self.shared_copy_rate + self.touch_rate - self.shared_touch_rate);
        self.shared_copy_rate * f.min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a state.
    const BYTES: f64 = 128e6;
    const MODEL: TouchModel = TouchModel {
        copy_rate: 6e9,
        untouched_copy_rate: 3e9,
        touch_rate: 8e9,
        shared_copy_rate: 3.3e9,
        shared_touch_rate: 4.4e9,
    };

    #[test]
    fn short_intervals_touch_during_copies_and_long_ones_between_them() {
        assert_eq!(MODEL.choose(BYTES, 0.005), TouchMode::Concurrent);
        assert_eq!(MODEL.choose(BYTES, 0.036), TouchMode::Concurrent);
        // 128 MB are copied in 21.3 ms and touched in 16 ms.
        assert_eq!(MODEL.choose(BYTES, 0.0374), TouchMode::Sequential);
        assert_eq!(MODEL.choose(BYTES, 1.0), TouchMode::Sequential);
    }

    #[test]
    fn no_page_is_touched_where_touching_delays_copies_more_than_their_own_faults() {
        let slow = TouchModel { shared_copy_rate: 2e9, ..MODEL };
        assert_eq!(slow.choose(BYTES, 0.005), TouchMode::Sequential);
        let useless = TouchModel { copy_rate: 2e9, shared_copy_rate: 2e9, ..MODEL };
        assert_eq!(useless.choose(BYTES, 0.005), TouchMode::Never);
    }

    #[test]
    fn slow_touching_limits_copies_that_wait_for_it() {
        let slow = TouchModel { touch_rate: 2e9, shared_touch_rate: 1e9, ..MODEL };
        // f = 2 / (3.3 + 2 - 1)
        assert!((slow.concurrent_rate() - 3.3e9 * 2.0 / 4.3).abs() < 1.0);
    }

    #[test]
    fn measurements_move_the_choice() {
        let mut model = MODEL;
        for _ in 0..40 {
            model.learn(MeasuredRate::SharedCopy, 2.5e9);
            model.learn(MeasuredRate::Copy, f64::NAN);
        }
        assert_eq!(model.copy_rate, MODEL.copy_rate);
        assert_eq!(model.choose(BYTES, 0.005), TouchMode::Sequential);
    }
}
