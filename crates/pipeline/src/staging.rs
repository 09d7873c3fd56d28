//! Staging: the copy that blocks the solver, into buffers that are used again. Values that rest
//! elsewhere are frozen there.

use recoup_core::{Afar, AfarError, CodecId, HeldValues, Lent, Plan, Registered, Scheme, Values, VariableRecord};

use crate::PipelineError;
use crate::buffer::{Buffer, FrameCuts};
use crate::error::afar_error;
use crate::frames::{frame_len, frames, padded_len, raw_bytes, record};
use crate::placed::PlacedValues;
use crate::registry::{self, StagingNeed, StagingPlace};

/// Bytes of a variable for which another thread is worth its start.
const BYTES_PER_THREAD: usize = 4 << 20;

/// One staged variable.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) record: VariableRecord,
    pub(crate) values: PlacedValues,
    /// CRC-32C of each frame's memory, where they were taken on the way: a later look would bring
    /// all values near once more.
    pub(crate) sums: Vec<u32>,
}

impl Staged {
    /// Returns the number of values in one frame.
    pub(crate) fn frame_len(&self) -> usize {
        frame_len(&self.record)
    }

    /// Returns the number of frames.
    pub(crate) fn frames(&self) -> usize {
        frames(&self.record)
    }

    /// Returns the padded values where they are in this process's memory.
    pub(crate) fn near(&self) -> Option<&Buffer> {
        self.values.near()
    }

    /// Returns the copy where the values rest, if they rest elsewhere.
    pub(crate) fn held(&self) -> Option<&dyn HeldValues> {
        self.values.held()
    }

    /// Freezes values where they rest. The copy of the version before is handed back.
    fn hold(&mut self, values: &dyn Afar) -> Result<(), AfarError> {
        self.sums.clear();
        let none = PlacedValues::none(values.element());
        let earlier = match std::mem::replace(&mut self.values, none) {
            PlacedValues::Held(earlier) => Some(earlier),
            PlacedValues::Near(_) => None,
        };
        self.values = PlacedValues::Held(values.hold(padded_len(&self.record), earlier)?);
        Ok(())
    }

    /// Copies `values` in; with sums where the frames' memory is what will be written.
    fn fill(&mut self, values: Values<'_>, is_summed: bool, threads: usize) {
        let threads = threads.min(values.len() * self.record.element.size() / BYTES_PER_THREAD);
        let cuts = FrameCuts { n_frames: self.frames(), len: self.frame_len(), threads };
        self.sums.clear();
        self.sums.resize(if is_summed { cuts.n_frames } else { 0 }, 0);
        self.values.near_mut(self.record.element).fill(values, cuts, &mut self.sums);
    }
}

/// The rank that stages its variables, and its threads, which have nothing else to do meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StagingRank {
    pub(crate) rank: usize,
    pub(crate) threads: usize,
}

/// The staged variables of one version. Its buffers are used again by later versions.
#[derive(Debug, Default)]
pub(crate) struct StagingSet {
    pub(crate) staged: Vec<Staged>,
}

impl StagingSet {
    /// Copies the variables that a version of this plan holds.
    ///
    /// # Errors
    /// [`PipelineError::Name`] or [`PipelineError::Shape`] of any variable, before any is copied;
    /// [`PipelineError::Afar`] where values cannot be frozen where they rest.
    pub(crate) fn stage(
        &mut self,
        owners: &[&dyn Registered],
        plan: &Plan,
        by: StagingRank,
    ) -> Result<(), PipelineError> {
        let mut variables = Vec::new();
        owners.iter().for_each(|owner| variables.extend(owner.variables()));
        registry::check(&variables)?;
        let saved = variables.iter().filter(|v| v.role.is_saved_for(plan.resume));
        let is_summed = plan.scheme != Scheme::Lossy && plan.codec == CodecId::Raw;
        let mut count = 0;
        for (index, variable) in saved.enumerate() {
            let record = record(variable, by.rank);
            if index == self.staged.len() {
                let values = PlacedValues::none(record.element);
                self.staged.push(Staged { values, record: record.clone(), sums: Vec::new() });
            }
            let staged = &mut self.staged[index];
            staged.record = record;
            match variable.values {
                Lent::Near(values) => staged.fill(values, is_summed, by.threads),
                Lent::Afar(values) => staged.hold(values).map_err(afar_error(&staged.record))?,
            }
            count = index + 1;
        }
        self.staged.truncate(count);
        Ok(())
    }

    /// Makes the memory of a set that was never used. The first version then costs the solver what
    /// the later ones do.
    pub(crate) fn prepare(&mut self, needs: &[StagingNeed]) {
        if !self.staged.is_empty() {
            return;
        }
        for StagingNeed { record, place } in needs {
            let mut values = PlacedValues::none(record.element);
            match place {
                StagingPlace::Near => values.near_mut(record.element).make_room(padded_len(record)),
                StagingPlace::Afar(Some(rooms)) => {
                    // A place without room says so when values are frozen there.
                    let room = rooms.room(record.element, padded_len(record));
                    values = room.map_or(values, PlacedValues::Held);
                }
                StagingPlace::Afar(None) => {}
            }
            self.staged.push(Staged { record: record.clone(), values, sums: Vec::new() });
        }
    }

    pub(crate) fn raw_bytes(&self) -> u64 {
        self.staged.iter().map(|s| raw_bytes(&s.record)).sum()
    }
}

#[cfg(test)]
mod tests {
    use recoup_core::{BoundRule, Distribution, Grain, Resume, Role, ValuesMut, Variable, VariableMut, revision_of};
    use recoup_cuda_double::{Double, Settings};
    use recoup_device::{Device, DeviceVec, DeviceVector, Stream};

    use super::*;
    use crate::Variables;
    use crate::registry::Registry;

    /// An owner of one vector on a device.
    struct DeviceOwner(DeviceVector<f64>);

    impl Registered for DeviceOwner {
        fn variables(&self) -> Vec<Variable<'_>> {
            let rows = Distribution::Rows { first: 0, global: self.0.len() as u64 };
            vec![Variable::new("x", Role::Iterate, Lent::Afar(&self.0), rows)]
        }

        fn revision(&self) -> u64 {
            revision_of(self.variables().into_iter())
        }

        fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
            Vec::new()
        }
    }

    const RANK: StagingRank = StagingRank { rank: 0, threads: 2 };

    /// The first copy once met pages that the system made while the solver waited: it took three
    /// times as long as the later ones.
    #[test]
    fn first_copy_goes_to_memory_that_was_made_before() {
        let mut x: Vec<f64> = (0..700_000).map(f64::from).collect();
        let expected = x.clone();
        let owner = Variables::new().iterate("x", &mut x);
        let mut set = StagingSet::default();
        let plan = plan(CodecId::Zstd);
        set.prepare(&Registry::new(0).needs(&[&owner], plan.resume).unwrap());
        let made = address(&set);
        set.stage(&[&owner], &plan, RANK).unwrap();
        assert_eq!(address(&set), made);
        assert_eq!(set.staged[0].near().unwrap().doubles(expected.len()), expected);
    }

    /// The first copy of values on a device once waited for memory of the device.
    #[test]
    fn first_copy_on_a_device_goes_to_memory_that_was_made_before() {
        let double = Double::load();
        double.reset(&Settings::default());
        let device = Device::open(0).unwrap();
        let stream = Stream::new(&device).unwrap();
        let values = DeviceVec::copy_of(&stream, &[1.5; 1000]).unwrap();
        let owner = DeviceOwner(DeviceVector { values, stream });
        let mut set = StagingSet::default();
        let plan = plan(CodecId::Qb);
        set.prepare(&Registry::new(0).needs(&[&owner], plan.resume).unwrap());
        let made = double.report().count("cuMemAlloc_v2");
        for _ in 0..2 {
            set.stage(&[&owner], &plan, RANK).unwrap();
            assert_eq!(double.report().count("cuMemAlloc_v2"), made, "{}", double.report());
        }
        let mut found = [0.0; 1000];
        set.staged[0].held().unwrap().fetch(0, ValuesMut::F64(&mut found)).unwrap();
        assert_eq!(found, [1.5; 1000]);
        drop((set, owner, device));
        assert!(double.report().is_clean(), "{}", double.report());
    }

    #[test]
    fn staging_reuses_its_buffers() {
        let mut x = vec![1.0; 5000];
        let expected = Buffer::F64(x.clone());
        let owner = Variables::new().iterate("x", &mut x);
        let mut set = StagingSet::default();
        let plan = plan(CodecId::Zstd);
        set.stage(&[&owner], &plan, RANK).unwrap();
        let first = address(&set);
        set.stage(&[&owner], &plan, RANK).unwrap();
        assert_eq!(address(&set), first);
        assert_eq!(set.staged[0].near(), Some(&expected));
    }

    /// A variable of three frames, the last one padded, saved as it is.
    #[test]
    fn sums_taken_on_the_way_are_those_of_the_frames() {
        let mut x: Vec<f64> = (0..2_500_001).map(f64::from).collect();
        let n_values = x.len();
        let expected = x.clone();
        let owner = Variables::new().iterate("x", &mut x);
        let mut set = StagingSet::default();
        // To new memory first. Then to the same by one thread, and by more than there are frames.
        for threads in [2, 1, 3, 8] {
            set.stage(&[&owner], &plan(CodecId::Raw), StagingRank { rank: 0, threads }).unwrap();
            let staged = &set.staged[0];
            let frame = |run| staged.near().unwrap().slice(run * staged.frame_len(), staged.frame_len());
            let sum = |run| crc32c::crc32c(frame(run).as_raw().unwrap());
            assert_eq!(staged.frames(), 3);
            let padded_len = staged.frames() * staged.frame_len();
            assert!(padded_len > n_values);
            assert_eq!(staged.sums, (0..3).map(sum).collect::<Vec<_>>());
            let copied = staged.near().unwrap().doubles(padded_len);
            assert_eq!(copied[..n_values], expected, "{threads} threads");
            assert!(copied[n_values..].iter().all(|value| *value == expected[n_values - 1]), "{threads} threads");
        }
        set.stage(&[&owner], &plan(CodecId::Zstd), RANK).unwrap();
        assert!(set.staged[0].sums.is_empty());
    }

    fn plan(codec: CodecId) -> Plan {
        let scheme = Scheme::Lossless;
        let rule = BoundRule::Verified;
        let resume = Resume::Restarted;
        Plan { scheme, codec, rule, theta: 0.5, delta: 0.05, resume, grain: Grain::Usual }
    }

    fn address(set: &StagingSet) -> *const f64 {
        match set.staged[0].near() {
            Some(Buffer::F64(values)) => values.as_ptr(),
            other => panic!("doubles expected, {other:?} found"),
        }
    }
}
