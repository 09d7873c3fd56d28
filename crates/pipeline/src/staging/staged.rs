//! Staging: the copy that blocks the solver, into memory that is used again. Values that rest
//! elsewhere are frozen there. Values that were not written since they were last staged are not
//! copied: versions share them. Values that their owner can freeze are not copied either, where
//! that takes less of the solver's time.

use std::ops::Range;
use std::sync::Arc;

use recoup_core::{CodecId, HeldValues, Lent, Mark, Plan, Registered, Scheme, Values, Variable, VariableRecord};

use super::buffer::{Buffer, FrameCuts};
use super::frames::{frame_len, frames, padded_len, raw_bytes, record};
use super::placed_values::{FetchedFrame, HeldRuns, PlacedValues};
use super::rule::StagingRule;
use super::spare::SpareMemory;
use super::write_log::{AnnouncedWrites, WriteLog};
use crate::error::PipelineError;
use crate::error::afar_error;
use crate::session::registry;
use crate::session::{StagingNeed, StagingPlace};

/// Bytes of a variable for which another thread is worth its start.
const BYTES_PER_THREAD: usize = 4 << 20;

/// One staged variable.
#[derive(Clone, Debug)]
pub(crate) struct Staged {
    pub(crate) record: VariableRecord,
    /// Shared by versions between which nothing was written. Memory only, while they are frozen.
    pub(crate) values: Arc<PlacedValues>,
    /// The values as their owner froze them without a copy. They are fetched once.
    frozen: Option<Arc<dyn HeldValues>>,
    /// CRC-32C of each frame's memory, where they were taken on the way: a later look would bring
    /// all values near once more.
    pub(crate) sums: Vec<u32>,
    /// The mark of the values when they were staged, where their owner sees all writes to them.
    pub(crate) mark: Option<Mark>,
    /// Announced writes, where the owner announces all of them.
    pub(crate) writes: Option<AnnouncedWrites>,
}

impl Staged {
    /// Makes a variable of values without a mark.
    pub(crate) fn of(record: VariableRecord, values: PlacedValues) -> Self {
        Self { record, values: Arc::new(values), frozen: None, sums: Vec::new(), mark: None, writes: None }
    }

    /// Returns the number of values in one frame.
    pub(crate) fn frame_len(&self) -> usize {
        frame_len(&self.record)
    }

    /// Returns the number of frames.
    pub(crate) fn frames(&self) -> usize {
        frames(&self.record)
    }

    /// Returns the padded values where they were copied to this process's memory.
    pub(crate) fn near(&self) -> Option<&Buffer> {
        self.values.near().filter(|_| self.frozen.is_none())
    }

    /// Returns the values of one frame: those here, or fetched.
    ///
    /// # Errors
    /// [`PipelineError::Afar`] when the place fails.
    pub(crate) fn frame<'a>(&'a self, run: usize, fetched: &'a mut FetchedFrame) -> Result<Values<'a>, PipelineError> {
        let Some(frozen) = &self.frozen else { return self.values.frame(&self.record, run, fetched) };
        frozen.fetch(run * self.frame_len(), fetched.room(&self.record)).map_err(afar_error(&self.record))?;
        Ok(fetched.values())
    }

    /// Returns a frame of which some runs of values are those here, or fetched; the others may be
    /// any.
    ///
    /// # Errors
    /// [`PipelineError::Afar`] when the place fails.
    pub(crate) fn frame_runs<'a>(
        &'a self,
        run: usize,
        runs: &[Range<usize>],
        fetched: &'a mut FetchedFrame,
    ) -> Result<Values<'a>, PipelineError> {
        let place = self.frozen.as_deref().or(self.held());
        let Some(held) = place else { return self.values.frame(&self.record, run, fetched) };
        let frame = HeldRuns { values: held, start: run * self.frame_len(), runs };
        fetched.fetch_runs(&self.record, frame, self.frozen.is_none())
    }

    /// Copies values that were frozen, for whoever needs all of them.
    ///
    /// # Errors
    /// [`PipelineError::Afar`]; the values are zeros then.
    pub(crate) fn bring_near(&mut self) -> Result<(), PipelineError> {
        let Some(frozen) = self.frozen.take() else { return Ok(()) };
        let len = padded_len(&self.record);
        let none = || PlacedValues::none(self.record.element);
        let room = std::mem::replace(&mut self.values, Arc::new(none()));
        // No other version shares values that were frozen, so their memory is this one's alone.
        let mut values = Arc::into_inner(room).unwrap_or_else(none);
        let buffer = values.near_mut(self.record.element);
        buffer.resize(len);
        let fetched = frozen.fetch(0, buffer.slice_mut(0, len));
        if fetched.is_err() {
            buffer.zero();
        }
        self.values = Arc::new(values);
        fetched.map_err(afar_error(&self.record))
    }

    /// Lets the owner of frozen values write without a thought of this version.
    pub(crate) fn thaw(&mut self) {
        self.frozen = None;
    }

    /// Returns the copy where the values rest, if they rest elsewhere.
    pub(crate) fn held(&self) -> Option<&dyn HeldValues> {
        self.values.held()
    }

    /// Returns whether these are the values of `variable` now, in the frames that `record` asks
    /// for.
    fn is_still(&self, variable: &Variable<'_>, record: &VariableRecord) -> bool {
        let is_unwritten = self.mark.is_some() && self.mark == mark(variable);
        is_unwritten && self.record.len == record.len && self.record.frame_dims == record.frame_dims
    }
}

/// Returns the mark of a variable's values now, where their owner sees all writes to them.
fn mark(variable: &Variable<'_>) -> Option<Mark> {
    variable.zones.map(|zones| zones.mark())
}

/// Copies a variable into spare memory, with sums where the frames' memory is what will be written;
/// or freezes it where it rests.
fn copied(
    variable: &Variable<'_>,
    record: VariableRecord,
    is_summed: bool,
    threads: usize,
    spare: &mut SpareMemory,
) -> Result<Staged, PipelineError> {
    let padded_len = padded_len(&record);
    let mut sums = Vec::new();
    let values = match variable.values {
        Lent::Near(values) => {
            let threads = threads.min(values.len() * record.element.size() / BYTES_PER_THREAD);
            let cuts = FrameCuts { n_frames: frames(&record), len: frame_len(&record), threads };
            sums.resize(if is_summed { cuts.n_frames } else { 0 }, 0);
            let mut buffer = spare.take_near(record.element, padded_len);
            buffer.fill(values, cuts, &mut sums);
            PlacedValues::Near(buffer)
        }
        Lent::Afar(values) => {
            let earlier = spare.take_held(record.element, padded_len);
            PlacedValues::Held(values.hold(padded_len, earlier).map_err(afar_error(&record))?)
        }
    };
    Ok(Staged { sums, mark: mark(variable), ..Staged::of(record, values) })
}

/// Freezes a variable without a copy where that takes less of the solver's time; `None` where it is
/// to be copied.
fn frozen(
    variable: &Variable<'_>,
    record: &VariableRecord,
    needs_room: bool,
    rule: StagingRule,
    spare: &mut SpareMemory,
) -> Option<Staged> {
    let zones = variable.zones.filter(|_| variable.values.near().is_some() && rule.freezes(raw_bytes(record)))?;
    let padded_len = padded_len(record);
    let frozen = zones.freeze(padded_len)?;
    let room = if needs_room { spare.take_near(record.element, padded_len) } else { Buffer::new(record.element) };
    Some(Staged { frozen: Some(frozen.into()), ..Staged::of(record.clone(), PlacedValues::Near(room)) })
}

/// The rank that stages its variables, and its threads, which have nothing else to do meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StagingRank {
    pub(crate) rank: usize,
    pub(crate) threads: usize,
    pub(crate) rule: StagingRule,
}

/// The memory that staging works with, besides that of versions under way.
#[derive(Debug, Default)]
pub(crate) struct StagingMemory {
    /// The newest values of variables whose owners see all writes to them.
    newest: Vec<Staged>,
    spare: SpareMemory,
    log: WriteLog,
}

impl StagingMemory {
    /// Returns the values that were last staged of a variable, if they still are its values.
    fn unwritten(&self, variable: &Variable<'_>, record: &VariableRecord) -> Option<Staged> {
        let newest = self.newest.iter().find(|staged| staged.is_still(variable, record))?;
        Some(Staged { record: record.clone(), ..newest.clone() })
    }

    /// Takes back the memory of an older version and of the newest values, as far as nothing else
    /// shares it.
    fn reclaim(&mut self, older: &mut StagingSet) {
        for staged in older.staged.drain(..).chain(self.newest.drain(..)) {
            Arc::into_inner(staged.values).into_iter().for_each(|values| self.spare.put(values));
        }
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
    /// [`PipelineError::Afar`] where values cannot be frozen where they rest.
    pub(crate) fn stage(
        &mut self,
        owners: &[&dyn Registered],
        plan: &Plan,
        by: StagingRank,
        memory: &mut StagingMemory,
    ) -> Result<(), PipelineError> {
        self.number = memory.log.begin();
        let mut variables = Vec::new();
        owners.iter().for_each(|owner| variables.extend(owner.variables()));
        registry::check(&variables)?;
        variables.retain(|variable| variable.role.is_saved_for(plan.resume));
        let records: Vec<VariableRecord> = variables.iter().map(|variable| record(variable, by.rank)).collect();
        let unwritten: Vec<Option<Staged>> =
            variables.iter().zip(&records).map(|(variable, record)| memory.unwritten(variable, record)).collect();
        memory.reclaim(self);
        self.copied_bytes = 0;
        self.frozen_bytes = 0;
        let rule = by.rule.for_version(records.iter().map(raw_bytes).sum());
        let is_summed = plan.scheme != Scheme::Lossy && plan.codec == CodecId::Raw;
        for ((variable, record), unwritten) in variables.iter().zip(records).zip(unwritten) {
            let mut staged = match unwritten {
                Some(staged) => staged,
                None => match frozen(variable, &record, plan.scheme == Scheme::Lossy, rule, &mut memory.spare) {
                    Some(staged) => {
                        self.frozen_bytes += raw_bytes(&record);
                        staged
                    }
                    None => {
                        self.copied_bytes += raw_bytes(&record);
                        copied(variable, record, is_summed, by.threads, &mut memory.spare)?
                    }
                },
            };
            staged.writes = memory.log.enter(variable);
            if staged.mark.is_some() {
                memory.newest.push(staged.clone());
            }
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
        for StagingNeed { record, place, has_zones } in needs {
            let mut values = PlacedValues::none(record.element);
            match place {
                StagingPlace::Near if *has_zones && rule.freezes(raw_bytes(record)) => {}
                StagingPlace::Near => values.near_mut(record.element).make_room(padded_len(record)),
                StagingPlace::Afar(Some(rooms)) => {
                    // A place without room says so when values are frozen there.
                    let room = rooms.room(record.element, padded_len(record));
                    values = room.map_or(values, PlacedValues::Held);
                }
                StagingPlace::Afar(None) => {}
            }
            self.staged.push(Staged::of(record.clone(), values));
        }
    }

    /// Ends what is frozen: the version is made, or given up.
    pub(crate) fn thaw(&mut self) {
        self.staged.iter_mut().for_each(Staged::thaw);
    }

    /// Returns the bytes of the largest variable.
    pub(crate) fn largest_bytes(&self) -> u64 {
        self.staged.iter().map(|s| raw_bytes(&s.record)).max().unwrap_or(0)
    }

    pub(crate) fn raw_bytes(&self) -> u64 {
        self.staged.iter().map(|s| raw_bytes(&s.record)).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use recoup_core::Distribution::RankLocal;
    use recoup_core::{
        BoundRule, Distribution, Grain, LastWrite, Resume, Role, ValuesMut, VariableMut, Zones, revision_of,
    };
    use recoup_cuda_double::{Double, Settings};
    use recoup_device::{Device, DeviceVec, DeviceVector, Stream};

    use super::*;
    use crate::session::Registry;
    use crate::session::Variables;

    /// An owner of one vector on a device.
    struct DeviceOwner(DeviceVector<f64>);

    impl Registered for DeviceOwner {
        fn variables(&self) -> Vec<Variable<'_>> {
            let rows = Distribution::Rows { first: 0, global: self.0.view().len() as u64 };
            vec![Variable::new("x", Role::Iterate, Lent::Afar(&self.0), rows)]
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
        staged.near().unwrap().doubles(len, &mut Vec::new()).to_vec()
    }

    const RANK: StagingRank = StagingRank { rank: 0, rule: StagingRule::COPY, threads: 2 };

    /// The first copy once met pages that the system made while the solver waited: it took three
    /// times as long as the later ones.
    #[test]
    fn first_copy_goes_to_memory_that_was_made_before() {
        let mut x: Vec<f64> = (0..700_000).map(f64::from).collect();
        let expected = x.clone();
        let owner = Variables::new().iterate("x", &mut x);
        let mut set = StagingSet::default();
        let mut memory = StagingMemory::default();
        let plan = plan(CodecId::Zstd);
        set.prepare(&Registry::new(0).needs(&[&owner], plan.resume).unwrap(), StagingRule::COPY);
        let made = address(&set);
        set.stage(&[&owner], &plan, RANK, &mut memory).unwrap();
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
        let mut memory = StagingMemory::default();
        let plan = plan(CodecId::Qb);
        set.prepare(&Registry::new(0).needs(&[&owner], plan.resume).unwrap(), StagingRule::COPY);
        let made = double.report().count("cuMemAlloc_v2");
        for _ in 0..2 {
            set.stage(&[&owner], &plan, RANK, &mut memory).unwrap();
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
        let mut memory = StagingMemory::default();
        let plan = plan(CodecId::Zstd);
        set.stage(&[&owner], &plan, RANK, &mut memory).unwrap();
        let first = address(&set);
        set.stage(&[&owner], &plan, RANK, &mut memory).unwrap();
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
        let mut memory = StagingMemory::default();
        // To new memory first. Then to the same by one thread, and by more than there are frames.
        for threads in [2, 1, 3, 8] {
            set.stage(
                &[&owner],
                &plan(CodecId::Raw),
                StagingRank { rank: 0, rule: StagingRule::COPY, threads },
                &mut memory,
            )
            .unwrap();
            let staged = &set.staged[0];
            let frame = |run| staged.near().unwrap().slice(run * staged.frame_len(), staged.frame_len());
            let sum = |run| crc32c::crc32c(frame(run).as_raw().unwrap());
            assert_eq!(staged.frames(), 3);
            let padded_len = staged.frames() * staged.frame_len();
            assert!(padded_len > n_values);
            assert_eq!(staged.sums, (0..3).map(sum).collect::<Vec<_>>());
            let copied = doubles(staged, padded_len);
            assert_eq!(copied[..n_values], expected, "{threads} threads");
            assert!(copied[n_values..].iter().all(|value| *value == expected[n_values - 1]), "{threads} threads");
        }
        set.stage(&[&owner], &plan(CodecId::Zstd), RANK, &mut memory).unwrap();
        assert!(set.staged[0].sums.is_empty());
    }

    /// Vectors whose owner sees all writes to them.
    struct Watched(Vec<WatchedVector>);

    struct WatchedVector {
        name: String,
        values: Vec<f64>,
        last_write: LastWrite,
    }

    impl WatchedVector {
        fn variable(&self) -> Variable<'_> {
            let values = Values::F64(&self.values);
            Variable { zones: Some(self), ..Variable::new(&self.name, Role::Dynamic, values, RankLocal) }
        }
    }

    impl Zones for WatchedVector {
        fn mark(&self) -> Mark {
            self.last_write.mark()
        }

        fn written_since(&self, since: Mark) -> Option<Vec<Range<usize>>> {
            self.last_write.written_since(since, self.values.len())
        }

        fn freeze(&self, _padded_len: usize) -> Option<Box<dyn HeldValues>> {
            None
        }
    }

    impl Registered for Watched {
        fn variables(&self) -> Vec<Variable<'_>> {
            self.0.iter().map(WatchedVector::variable).collect()
        }

        fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
            Vec::new()
        }
    }

    impl Watched {
        fn append(&mut self, values: Vec<f64>) {
            let name = format!("v{}", self.0.len());
            self.0.push(WatchedVector { name, values, last_write: LastWrite::to_new_memory() });
        }

        fn write(&mut self, index: usize, value: f64) {
            self.0[index].last_write.note();
            self.0[index].values.fill(value);
        }

        /// Stages all vectors, and returns the bytes that were copied.
        fn staged(&self, set: &mut StagingSet, memory: &mut StagingMemory) -> u64 {
            set.stage(&[self], &plan(CodecId::Zstd), RANK, memory).unwrap();
            let staged: Vec<Vec<f64>> = set.staged.iter().map(|staged| doubles(staged, LEN)).collect();
            assert_eq!(staged, self.0.iter().map(|vector| &vector.values[..]).collect::<Vec<_>>());
            set.copied_bytes
        }
    }

    const LEN: usize = 1000;
    const BYTES: u64 = 8 * LEN as u64;

    #[test]
    fn vectors_that_were_not_written_are_copied_into_one_of_two_sets_only() {
        let mut owner = Watched(Vec::new());
        let mut memory = StagingMemory::default();
        let mut sets = [StagingSet::default(), StagingSet::default()];
        for version in 0..10 {
            owner.append(vec![f64::from(version); LEN]);
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

    #[test]
    fn vectors_that_change_places_are_known_by_their_memory() {
        let mut owner = Watched(Vec::new());
        (0..2).for_each(|value| owner.append(vec![f64::from(value); LEN]));
        let mut memory = StagingMemory::default();
        let mut set = StagingSet::default();
        assert_eq!(owner.staged(&mut set, &mut memory), 2 * BYTES);
        let [first, second] = &mut owner.0[..] else { unreachable!() };
        std::mem::swap(&mut first.values, &mut second.values);
        std::mem::swap(&mut first.last_write, &mut second.last_write);
        assert_eq!(owner.staged(&mut set, &mut memory), 0);
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
