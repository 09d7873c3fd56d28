//! The owners whose values are frozen or tracked.

use recoup_core::Zones;
use recoup_snapshot::{TouchedRegion, TrackedRegion};

use super::plan::ThreadPlan;
use super::trial::Owner;

impl Owner for TouchedRegion<f64> {
    fn zones(&self) -> &dyn Zones {
        self
    }

    fn write(&mut self, plans: &[ThreadPlan]) {
        std::thread::scope(|scope| {
            let mut rest = self.part();
            for plan in plans {
                let (mut part, after) = rest.split_at(plan.part.len());
                rest = after;
                scope.spawn(move || {
                    for write in &plan.writes {
                        part.write(write.elements.clone()).fill(write.value);
                    }
                });
            }
        });
    }

    fn values(&self) -> Vec<f64> {
        self.to_vec()
    }
}

impl Owner for TrackedRegion<f64> {
    fn zones(&self) -> &dyn Zones {
        self
    }

    fn write(&mut self, plans: &[ThreadPlan]) {
        std::thread::scope(|scope| {
            let mut rest = &mut self[..];
            for plan in plans {
                let (part, after) = rest.split_at_mut(plan.part.len());
                rest = after;
                scope.spawn(move || plan.apply_to_part(part));
            }
        });
    }

    fn values(&self) -> Vec<f64> {
        self.to_vec()
    }
}
