//! Memory of another owner, with a table attached.

use std::sync::Arc;

use recoup_core::{ElementType, Zones};
use recoup_snapshot::TouchedZones;

use super::plan::ThreadPlan;
use super::trial::Owner;
use sys::HeapValues;

mod sys;

/// Values on the heap.
pub(crate) struct Heap {
    values: Arc<HeapValues>,
    zones: TouchedZones,
}

impl Heap {
    pub(crate) fn zeros(len: usize, zone_bytes: usize) -> Self {
        let values = Arc::new(HeapValues::zeros(len));
        let zones = TouchedZones::with_zones(Arc::clone(&values) as _, ElementType::F64, zone_bytes);
        Self { values, zones }
    }
}

impl Owner for Heap {
    fn zones(&self) -> &dyn Zones {
        &self.zones
    }

    fn write(&mut self, plans: &[ThreadPlan]) {
        std::thread::scope(|scope| {
            for plan in plans {
                scope.spawn(|| {
                    for write in &plan.writes {
                        let start = plan.part.start;
                        let elements = start + write.elements.start..start + write.elements.end;
                        self.zones.before_write(elements.clone());
                        self.values.fill(elements, write.value);
                    }
                });
            }
        });
    }

    fn values(&self) -> Vec<f64> {
        self.values.to_vec()
    }
}
