//! Staging: the copy that blocks the solver, into memory that is used again. Values that rest
//! elsewhere are frozen there. Values that were not written since they were last staged are not
//! copied: versions share them. Values that their owner can freeze are not copied either, where
//! that takes less of the solver's time.
//!
//! Others may use what was staged ([`Staged`], [`StagingSet`]), and values at their place.

mod buffer;
mod rule;
mod sys;
mod values;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use recoup_core::{
    Borrowed, CodecId, DeviceSnapshot, Mark, Plan, Registered, Scheme, Values, Variable, VariableRecord,
};

pub use self::buffer::Buffer;
pub use self::rule::StagingMode;
pub(crate) use self::rule::StagingRule;
pub(crate) use self::values::{
    FetchedFrame, PlacedValues, VectorView, frame_len, frames, padded_len, raw_bytes, record,
};
use self::values::{take_held, take_host};
use self::writes::WriteLog;
pub use self::writes::WriteTable;
pub(crate) use self::writes::append_run;
use crate::error::{PipelineError, device_values_error};
use crate::session::{StagingNeed, check_variables};

/// Bytes of a variable for which another thread is worth its start.
const BYTES_PER_THREAD: usize = 4 << 20;

/// One staged variable.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) record: VariableRecord,
    values: StagedValues,
    /// CRC-32C of each frame's memory, where they were taken on the way: a later look would bring
    /// all values near once more.
    pub(crate) sums: Vec<u32>,
    /// The values written since each earlier staging, by its number, where the owner announces all
    /// writes: see [`WriteLog::enter`].
    pub(crate) writes: Option<BTreeMap<u64, Vec<Range<usize>>>>,
}

/// The values of a staged variable.
#[derive(Debug)]
enum StagedValues {
    /// Copied for one version: to this process's memory, or where they are stored.
    Copied(PlacedValues),
    /// Copied for all versions between which their owner, who sees all writes, says that nothing
    /// was written; and their mark then.
    Shared(Arc<PlacedValues>, Mark),
    /// Frozen by their owner without a copy, and fetched once: to `room`, if to memory at all.
    Frozen { snapshot: Box<dyn DeviceSnapshot>, room: Buffer },
}

impl Staged {
    /// Makes a variable of values that were copied.
    pub(crate) fn of(record: VariableRecord, values: PlacedValues) -> Self {
        Self { record, values: StagedValues::Copied(values), sums: Vec::new(), writes: None }
    }

    /// Returns the number of values in one frame.
    pub(crate) fn frame_len(&self) -> usize {
        frame_len(&self.record)
    }

    /// Returns the number of frames.
    pub(crate) fn frames(&self) -> usize {
        frames(&self.record)
    }

    /// Returns the copy at its place; `None` for frozen values.
    fn copy(&self) -> Option<&PlacedValues> {
        match &self.values {
            StagedValues::Copied(values) => Some(values),
            StagedValues::Shared(values, _) => Some(values),
            StagedValues::Frozen { .. } => None,
        }
    }

    /// Returns the padded values where they were copied to this process's memory.
    pub(crate) fn host(&self) -> Option<&Buffer> {
        self.copy()?.host()
    }

    /// Returns the copy where the values are stored, if they are stored elsewhere.
    pub(crate) fn held(&self) -> Option<&dyn DeviceSnapshot> {
        self.copy()?.held()
    }

    /// Returns the vector where it is stored, if elsewhere; no values of it where it is here.
    pub(crate) fn unfetched(&self) -> VectorView<'_> {
        VectorView { record: &self.record, host: &[], device: self.held() }
    }

    /// Returns the values of one frame: those here, or fetched.
    ///
    /// # Errors
    /// [`PipelineError::Device`] when the place fails.
    pub(crate) fn frame<'a>(&'a self, run: usize, fetched: &'a mut FetchedFrame) -> Result<Values<'a>, PipelineError> {
        match &self.values {
            StagedValues::Copied(values) => values.frame(&self.record, run, fetched),
            StagedValues::Shared(values, _) => values.frame(&self.record, run, fetched),
            StagedValues::Frozen { snapshot, .. } => fetched.fetch(&self.record, snapshot.as_ref(), run, None),
        }
    }

    /// Returns a frame of which some runs of values are those here, or fetched; the others may be
    /// any.
    ///
    /// # Errors
    /// [`PipelineError::Device`] when the place fails.
    pub(crate) fn frame_runs<'a>(
        &'a self,
        run: usize,
        runs: &[Range<usize>],
        fetched: &'a mut FetchedFrame,
    ) -> Result<Values<'a>, PipelineError> {
        let held = match &self.values {
            StagedValues::Frozen { snapshot, .. } => snapshot.as_ref(),
            _ => match self.held() {
                None => return self.frame(run, fetched),
                Some(held) => {
                    let len: usize = runs.iter().map(Range::len).sum();
                    fetched.bytes += (len * self.record.element.size()) as u64;
                    held
                }
            },
        };
        fetched.fetch(&self.record, held, run, Some(runs))
    }

    /// Copies values that were frozen, for whoever needs all of them.
    ///
    /// # Errors
    /// [`PipelineError::Device`]; the values are zeros then.
    pub(crate) fn bring_near(&mut self) -> Result<(), PipelineError> {
        let StagedValues::Frozen { snapshot, room } = &mut self.values else { return Ok(()) };
        let len = padded_len(&self.record);
        room.retype(self.record.element);
        room.resize(len);
        let fetched = snapshot.fetch(0, room.slice_mut(0, len));
        if fetched.is_err() {
            room.zero();
        }
        self.thaw();
        fetched.map_err(device_values_error(&self.record))
    }

    /// Lets the owner of frozen values write without a thought of this version, which has the
    /// memory for them.
    pub(crate) fn thaw(&mut self) {
        if let StagedValues::Frozen { room, .. } = &mut self.values {
            let room = std::mem::replace(room, Buffer::new(self.record.element));
            self.values = StagedValues::Copied(PlacedValues::Host(room));
        }
    }

    /// Returns values that a later version may share under another record, with their mark.
    fn shared(&self, record: VariableRecord) -> Option<(Self, Mark)> {
        let StagedValues::Shared(values, mark) = &self.values else { return None };
        let values = StagedValues::Shared(values.clone(), *mark);
        Some((Self { record, values, sums: self.sums.clone(), writes: None }, *mark))
    }
}

/// The memory that staging works with, besides that of versions under way.
#[derive(Debug, Default)]
pub(crate) struct StagingMemory {
    /// The rank that stages its variables.
    rank: usize,
    /// Its threads, which have nothing else to do meanwhile.
    threads: usize,
    /// The newest values of variables whose owners see all writes to them.
    newest: Vec<Staged>,
    /// Memory to be used again; never more than was in use at one time.
    spare: Vec<PlacedValues>,
    log: WriteLog,
    /// Variables of which the iteration after a staging left most values as they were.
    lasting: BTreeSet<String>,
    /// No iteration has ended since the last staging, which would freeze some values if they last.
    is_fresh: bool,
}

impl StagingMemory {
    pub(crate) fn new(rank: usize, threads: usize) -> Self {
        Self { rank, threads, ..Self::default() }
    }

    /// Takes note of the end of an iteration: the first after a staging shows which values last.
    pub(crate) fn iterated(&mut self, owners: &[&dyn Registered]) {
        if std::mem::take(&mut self.is_fresh) {
            let variables = owners.iter().flat_map(|owner| owner.variables());
            let lasting = variables.filter(|variable| self.log.is_lasting(variable));
            self.lasting = lasting.map(|variable| variable.name.to_owned()).collect();
        }
    }

    /// Returns the values that were last staged of a variable, if they still are its values, in the
    /// frames that `record` asks for.
    fn unwritten(&self, variable: &Variable<'_>, record: &VariableRecord) -> Option<Staged> {
        let now = variable.zones?.mark();
        let is_same =
            |staged: &&Staged| staged.record.len == record.len && staged.record.frame_dims == record.frame_dims;
        let mut shared = self.newest.iter().filter(is_same).filter_map(|staged| staged.shared(record.clone()));
        shared.find(|(_, mark)| *mark == now).map(|(staged, _)| staged)
    }

    /// Takes back the memory of an older version and of the newest values, as far as nothing else
    /// shares it.
    fn reclaim(&mut self, older: &mut StagingSet) {
        for staged in older.staged.drain(..).chain(self.newest.drain(..)) {
            match staged.values {
                StagedValues::Copied(values) => self.spare.push(values),
                StagedValues::Shared(values, _) => {
                    Arc::into_inner(values).into_iter().for_each(|values| self.spare.push(values));
                }
                StagedValues::Frozen { room, .. } => self.spare.push(PlacedValues::Host(room)),
            }
        }
    }

    /// Copies a variable into spare memory, with sums where the frames' memory is what will be
    /// written; or freezes it where it is stored.
    fn copied(
        &mut self,
        variable: &Variable<'_>,
        record: VariableRecord,
        is_summed: bool,
    ) -> Result<Staged, PipelineError> {
        let padded_len = padded_len(&record);
        let mut sums = Vec::new();
        let values = match variable.values {
            Borrowed::Host(values) => {
                sums.resize(if is_summed { frames(&record) } else { 0 }, 0);
                let threads = self.threads.min(raw_bytes(&record) as usize / BYTES_PER_THREAD);
                let mut buffer = take_host(&mut self.spare, record.element, padded_len);
                buffer.fill(values, frame_len(&record), threads, &mut sums);
                PlacedValues::Host(buffer)
            }
            Borrowed::Device(values) => {
                let earlier = take_held(&mut self.spare, record.element, padded_len);
                PlacedValues::Held(values.snapshot(padded_len, earlier).map_err(device_values_error(&record))?)
            }
        };
        let values = match variable.zones {
            None => StagedValues::Copied(values),
            Some(zones) => StagedValues::Shared(Arc::new(values), zones.mark()),
        };
        Ok(Staged { record, values, sums, writes: None })
    }

    /// Freezes a variable without a copy where that takes less of the solver's time; `None` where
    /// it is to be copied.
    fn frozen(
        &mut self,
        variable: &Variable<'_>,
        record: &VariableRecord,
        needs_room: bool,
        rule: StagingRule,
    ) -> Option<Staged> {
        let zones = variable.zones.filter(|_| variable.values.host().is_some())?;
        let freezes = |is_lasting| rule.freezes(raw_bytes(record), is_lasting);
        self.is_fresh |= rule.mode == StagingMode::Auto && freezes(true);
        let padded_len = padded_len(record);
        let snapshot = freezes(self.lasting.contains(variable.name)).then(|| zones.freeze(padded_len))??;
        let none = || Buffer::new(record.element);
        let room = if needs_room { take_host(&mut self.spare, record.element, padded_len) } else { none() };
        let values = StagedValues::Frozen { snapshot, room };
        Some(Staged { record: record.clone(), values, sums: Vec::new(), writes: None })
    }
}

/// The staged variables of one version. Their memory is used again by later versions.
#[derive(Debug, Default)]
pub(crate) struct StagingSet {
    /// Number of this staging; no other of the session has it.
    pub(crate) number: u64,
    pub(crate) staged: Vec<Staged>,
    /// Bytes of values that were copied for this version. The others were there already, or are
    /// frozen.
    pub(crate) copied_bytes: u64,
    /// Bytes of values that were frozen without a copy.
    pub(crate) frozen_bytes: u64,
}

impl StagingSet {
    /// Copies the variables that a version of this plan holds.
    ///
    /// # Errors
    /// [`PipelineError::Name`] or [`PipelineError::Shape`] of any variable, before any is copied;
    /// [`PipelineError::NoVariables`] for none; [`PipelineError::Device`] where values cannot be
    /// frozen where they are stored.
    pub(crate) fn stage(
        &mut self,
        owners: &[&dyn Registered],
        plan: &Plan,
        rule: StagingRule,
        memory: &mut StagingMemory,
    ) -> Result<(), PipelineError> {
        self.number = memory.log.begin();
        memory.is_fresh = false;
        let mut variables = Vec::new();
        owners.iter().for_each(|owner| variables.extend(owner.variables()));
        check_variables(&variables)?;
        variables.retain(|variable| variable.role.is_saved_for(plan.resume));
        if variables.is_empty() {
            return Err(PipelineError::NoVariables);
        }
        let records: Vec<VariableRecord> = variables.iter().map(|variable| record(variable, memory.rank)).collect();
        let unwritten: Vec<Option<Staged>> =
            variables.iter().zip(&records).map(|(variable, record)| memory.unwritten(variable, record)).collect();
        memory.reclaim(self);
        self.copied_bytes = 0;
        self.frozen_bytes = 0;
        let is_lossy = plan.scheme == Scheme::Lossy;
        for ((variable, record), unwritten) in variables.iter().zip(records).zip(unwritten) {
            let bytes = raw_bytes(&record);
            let mut staged = if let Some(staged) = unwritten {
                staged
            } else if let Some(staged) = memory.frozen(variable, &record, is_lossy, rule) {
                self.frozen_bytes += bytes;
                staged
            } else {
                self.copied_bytes += bytes;
                memory.copied(variable, record, !is_lossy && plan.codec == CodecId::Raw)?
            };
            staged.writes = memory.log.enter(variable);
            memory.newest.extend(staged.shared(staged.record.clone()).map(|(shared, _)| shared));
            self.staged.push(staged);
        }
        Ok(())
    }

    /// Makes the memory of a set that was never used. The first version then costs the solver what
    /// the later ones do.
    pub(crate) fn prepare(&mut self, needs: &[StagingNeed], rule: StagingRule) {
        if !self.staged.is_empty() {
            return;
        }
        for StagingNeed { record, is_here, rooms, has_zones } in needs {
            let mut values = PlacedValues::none(record.element);
            match rooms {
                // A place without room says so when values are frozen there.
                Some(rooms) => {
                    let room = rooms.alloc(record.element, padded_len(record));
                    values = room.map_or(values, PlacedValues::Held);
                }
                None if !is_here || *has_zones && rule.freezes(raw_bytes(record), false) => {}
                None => values.host_mut(record.element).make_room(padded_len(record)),
            }
            self.staged.push(Staged::of(record.clone(), values));
        }
    }

    /// Ends what is frozen: the version is made, or given up.
    pub(crate) fn thaw(&mut self) {
        self.staged.iter_mut().for_each(Staged::thaw);
    }

    pub(crate) fn raw_bytes(&self) -> u64 {
        self.staged.iter().map(|s| raw_bytes(&s.record)).sum()
    }
}

#[cfg(test)]
mod tests {
    use recoup_core::Distribution::RankLocal;
    use recoup_core::{Distribution, Resume, Role, ValuesMut, VariableMut, revision_of};
    use recoup_cuda_double::{Double, Settings};
    use recoup_device::{Device, DeviceVec, DeviceVector, Stream};
    use recoup_solvers::{Pool, Vector};

    use super::*;
    use crate::session::{Registry, Variables};

    /// An owner of one vector on a device.
    struct DeviceOwner(DeviceVector<f64>);

    impl Registered for DeviceOwner {
        fn variables(&self) -> Vec<Variable<'_>> {
            let rows = Distribution::Rows { first: 0, global: self.0.view().len() as u64 };
            vec![Variable::new("x", Role::Iterate, Borrowed::Device(&self.0), rows)]
        }

        fn revision(&self) -> u64 {
            revision_of(self.variables())
        }

        fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
            Vec::new()
        }
    }

    /// Copies the first values of a staged vector of doubles.
    fn doubles(staged: &Staged, len: usize) -> Vec<f64> {
        staged.host().unwrap().doubles(len, &mut Vec::new()).to_vec()
    }

    const COPY: StagingRule = StagingRule::COPY;

    /// The first copy once met pages that the system made while the solver waited: it took three
    /// times as long as the later ones.
    #[test]
    fn first_copy_goes_to_memory_that_was_made_before() {
        let mut x: Vec<f64> = (0..700_000).map(f64::from).collect();
        let expected = x.clone();
        let owner = Variables::new().iterate("x", &mut x);
        let mut set = StagingSet::default();
        let mut memory = StagingMemory::new(0, 2);
        let plan = plan(CodecId::Zstd);
        set.prepare(&Registry::new(0).needs(&[&owner], plan.resume).unwrap(), COPY);
        let made = address(&set);
        set.stage(&[&owner], &plan, COPY, &mut memory).unwrap();
        assert_eq!(address(&set), made);
        assert_eq!(doubles(&set.staged[0], expected.len()), expected);
    }

    /// The first copy of values on a device once waited for memory of the device.
    #[test]
    fn first_copy_on_a_device_goes_to_memory_that_was_made_before() {
        let double = Double::load();
        double.reset(&Settings::default());
        let device = Device::open(0).unwrap();
        let stream = Stream::new(&device).unwrap();
        let values = DeviceVec::copy_of(&stream, &[1.5; 1000]).unwrap();
        let owner = DeviceOwner(DeviceVector::new(values, stream));
        let mut set = StagingSet::default();
        let mut memory = StagingMemory::new(0, 2);
        let plan = plan(CodecId::Qb);
        set.prepare(&Registry::new(0).needs(&[&owner], plan.resume).unwrap(), COPY);
        let made = double.report().count("cuMemAlloc_v2");
        for _ in 0..2 {
            set.stage(&[&owner], &plan, COPY, &mut memory).unwrap();
            assert_eq!(double.report().count("cuMemAlloc_v2"), made, "{}", double.report());
        }
        let mut found = [0.0; 1000];
        set.staged[0].held().unwrap().fetch(0, ValuesMut::F64(&mut found)).unwrap();
        assert_eq!(found, [1.5; 1000]);
        drop((set, memory, owner, device));
        assert!(double.report().is_clean(), "{}", double.report());
    }

    #[test]
    fn staging_reuses_its_buffers() {
        let mut x = vec![1.0; 5000];
        let expected = Buffer::F64(x.clone());
        let owner = Variables::new().iterate("x", &mut x);
        let mut set = StagingSet::default();
        let mut memory = StagingMemory::new(0, 2);
        let plan = plan(CodecId::Zstd);
        set.stage(&[&owner], &plan, COPY, &mut memory).unwrap();
        let first = address(&set);
        set.stage(&[&owner], &plan, COPY, &mut memory).unwrap();
        assert_eq!(address(&set), first);
        assert_eq!(set.staged[0].host(), Some(&expected));
    }

    /// A variable of three frames, the last one padded, saved as it is.
    #[test]
    fn sums_taken_on_the_way_are_those_of_the_frames() {
        let mut x: Vec<f64> = (0..2_500_001).map(f64::from).collect();
        let n_values = x.len();
        let expected = x.clone();
        let owner = Variables::new().iterate("x", &mut x);
        let mut set = StagingSet::default();
        let mut memory = StagingMemory::new(0, 2);
        // To new memory first. Then to the same by one thread, and by more than there are frames.
        for threads in [2, 1, 3, 8] {
            memory.threads = threads;
            set.stage(&[&owner], &plan(CodecId::Raw), COPY, &mut memory).unwrap();
            let staged = &set.staged[0];
            let frame = |run| staged.host().unwrap().slice(run * staged.frame_len(), staged.frame_len());
            let sum = |run| crc32c::crc32c(frame(run).as_raw().unwrap());
            assert_eq!(staged.frames(), 3);
            let padded_len = staged.frames() * staged.frame_len();
            assert!(padded_len > n_values);
            assert_eq!(staged.sums, (0..3).map(sum).collect::<Vec<_>>());
            let copied = doubles(staged, padded_len);
            assert_eq!(copied[..n_values], expected, "{threads} threads");
            assert!(copied[n_values..].iter().all(|value| *value == expected[n_values - 1]), "{threads} threads");
        }
        set.stage(&[&owner], &plan(CodecId::Zstd), COPY, &mut memory).unwrap();
        assert!(set.staged[0].sums.is_empty());
    }

    /// Vectors whose owner sees all writes to them, by name.
    struct Watched(Vec<(String, Vector)>);

    impl Registered for Watched {
        fn variables(&self) -> Vec<Variable<'_>> {
            let variables = self.0.iter().map(|(name, values)| Variable {
                zones: Some(values),
                ..Variable::new(name, Role::Dynamic, Values::F64(values), RankLocal)
            });
            variables.collect()
        }

        fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
            Vec::new()
        }
    }

    impl Watched {
        fn append(&mut self, value: f64) {
            self.0.push((format!("v{}", self.0.len()), Vector::zeros(&Pool::new(1), LEN, 0)));
            self.write(self.0.len() - 1, value);
        }

        fn write(&mut self, index: usize, value: f64) {
            self.0[index].1.fill(value);
        }

        /// Stages all vectors, and returns the bytes that were copied.
        fn staged(&self, set: &mut StagingSet, memory: &mut StagingMemory) -> u64 {
            set.stage(&[self], &plan(CodecId::Zstd), COPY, memory).unwrap();
            let staged: Vec<Vec<f64>> = set.staged.iter().map(|staged| doubles(staged, LEN)).collect();
            assert_eq!(staged, self.0.iter().map(|(_, vector)| &vector[..]).collect::<Vec<_>>());
            set.copied_bytes
        }
    }

    const LEN: usize = 1000;
    const BYTES: u64 = 8 * LEN as u64;

    #[test]
    fn vectors_that_were_not_written_are_copied_into_one_of_two_sets_only() {
        let mut owner = Watched(Vec::new());
        let mut memory = StagingMemory::new(0, 2);
        let mut sets = [StagingSet::default(), StagingSet::default()];
        for version in 0..10 {
            owner.append(f64::from(version));
            let set = &mut sets[version as usize % 2];
            assert_eq!(owner.staged(set, &mut memory), BYTES, "version {version}");
        }
        owner.write(3, 0.5);
        assert_eq!(owner.staged(&mut sets[0], &mut memory), BYTES);
        let other = doubles(&sets[0].staged[3], LEN);
        owner.write(3, 0.75);
        assert_eq!(owner.staged(&mut sets[1], &mut memory), BYTES);
        assert_eq!(doubles(&sets[0].staged[3], LEN), other, "a version keeps its values");
        assert_eq!(owner.staged(&mut sets[0], &mut memory), 0);
    }

    /// A solve lost more to versions of frozen vectors that each iteration writes again, than to
    /// copies.
    #[test]
    fn only_values_that_outlast_an_iteration_are_frozen_unasked() {
        const LARGE: usize = 8 << 20;
        let mut owner = Watched((0..2).map(|i| (format!("v{i}"), Vector::zeros(&Pool::new(1), LARGE, 0))).collect());
        let mut memory = StagingMemory::new(0, 2);
        let mut set = StagingSet::default();
        let rule = StagingRule { mode: StagingMode::Auto, is_behind: true };
        let mut frozen = |owner: &Watched, memory: &mut StagingMemory, rule| {
            set.stage(&[owner], &plan(CodecId::Zstd), rule, memory).unwrap();
            set.frozen_bytes
        };
        for version in 0..3 {
            let expected = if version == 0 { 0 } else { 8 * LARGE as u64 };
            assert_eq!(frozen(&owner, &mut memory, rule), expected, "version {version}");
            // Each iteration writes v1; every second one, v0 as well.
            owner.write(1, 1.0);
            memory.iterated(&[&owner]);
            (0..2).for_each(|index| owner.write(index, 2.0));
            memory.iterated(&[&owner]);
        }
        assert_eq!(frozen(&owner, &mut memory, StagingRule { is_behind: false, ..rule }), 0, "no core is idle");
    }

    #[test]
    fn vectors_that_change_places_are_known_by_their_memory() {
        let mut owner = Watched(Vec::new());
        (0..2).for_each(|value| owner.append(f64::from(value)));
        let mut memory = StagingMemory::new(0, 2);
        let mut set = StagingSet::default();
        assert_eq!(owner.staged(&mut set, &mut memory), 2 * BYTES);
        let [first, second] = &mut owner.0[..] else { unreachable!() };
        std::mem::swap(&mut first.1, &mut second.1);
        assert_eq!(owner.staged(&mut set, &mut memory), 0);
    }

    fn plan(codec: CodecId) -> Plan {
        Plan::new(Scheme::Lossless, codec, Resume::Restarted)
    }

    fn address(set: &StagingSet) -> *const f64 {
        match set.staged[0].host() {
            Some(Buffer::F64(values)) => values.as_ptr(),
            other => panic!("doubles expected, {other:?} found"),
        }
    }
}
