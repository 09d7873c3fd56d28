//! The meeting point of ranks that are threads: one lock, the messages under way, and the ranks
//! that are gone.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use recoup_core::{CommError, ExactSum};

/// The values that a rank puts into a collective call. Ranks that bring different kinds do not
/// agree on the call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum HubMessage {
    /// A barrier, or the making of a new communicator.
    Nothing,
    /// Sums to be added.
    Sums(Arc<[ExactSum]>),
    /// A number to be compared.
    Integer(i64),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// The hub lets only messages of one kind meet.
const UNLIKE: &str = "messages of one kind";

impl HubMessage {
    pub(crate) fn sums(&self) -> &[ExactSum] {
        if let Self::Sums(sums) = self { sums } else { unreachable!("{UNLIKE}") }
    }

    pub(crate) fn integer(&self) -> i64 {
        if let Self::Integer(value) = self { *value } else { unreachable!("{UNLIKE}") }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        if let Self::Bytes(bytes) = self { bytes } else { unreachable!("{UNLIKE}") }
    }
}

/// Names one collective call: the communicator, and how many collective calls it has seen before.
pub(crate) type CallKey = (u64, u64);

/// Names one road of messages: communicator, sender, receiver.
pub(crate) type RoadKey = (u64, usize, usize);

/// The messages under way whose values are of type `T`, by road.
type Roads<T> = BTreeMap<RoadKey, VecDeque<Vec<T>>>;

/// A value that travels from one rank to another. Values and bytes have roads of their own.
pub(crate) trait Parcel: Copy {
    /// Returns the queues in which such messages wait.
    fn roads(state: &mut HubState) -> &mut Roads<Self>;
}

impl Parcel for f64 {
    fn roads(state: &mut HubState) -> &mut Roads<Self> {
        &mut state.values
    }
}

impl Parcel for u8 {
    fn roads(state: &mut HubState) -> &mut Roads<Self> {
        &mut state.bytes
    }
}

/// One collective call under way.
#[derive(Debug)]
struct Call {
    brought: Vec<Option<HubMessage>>,
    missing: usize,
    /// The messages that the ranks take, once the last of them is there.
    all: Option<Arc<[HubMessage]>>,
    taken: usize,
    /// Wakes those that came before.
    changed: Arc<Condvar>,
}

impl Call {
    fn new(ranks: usize) -> Self {
        Self { brought: vec![None; ranks], missing: ranks, all: None, taken: 0, changed: Arc::default() }
    }

    /// Takes the message of a rank. The last to come adds what all of them take, once for all.
    fn bring(&mut self, rank: usize, message: HubMessage) {
        self.brought[rank] = Some(message);
        self.missing -= 1;
        if self.missing == 0 {
            self.all = Some(joined(self.brought.drain(..).flatten().collect()).into());
            self.changed.notify_all();
        }
    }
}

/// Makes one message of sums that are equally many, and of numbers; others stay as they are.
fn joined(all: Vec<HubMessage>) -> Vec<HubMessage> {
    let Some((first, others)) = all.split_first() else { return all };
    let mut one = first.clone();
    for other in others {
        match (&mut one, other) {
            (HubMessage::Sums(sums), HubMessage::Sums(others)) if sums.len() == others.len() => {
                Arc::make_mut(sums).iter_mut().zip(others.iter()).for_each(|(sum, other)| *sum += *other);
            }
            (HubMessage::Integer(least), HubMessage::Integer(other)) => *least = *other.min(least),
            _ => return all,
        }
    }
    vec![one]
}

#[derive(Debug, Default)]
pub(crate) struct HubState {
    /// The first rank that was lost.
    lost: Option<usize>,
    /// Ranks whose function has returned: they will join no further call.
    left: Vec<bool>,
    calls: BTreeMap<CallKey, Call>,
    values: Roads<f64>,
    bytes: Roads<u8>,
}

/// The meeting place of all ranks of one launch.
#[derive(Debug)]
pub(crate) struct Hub {
    size: usize,
    state: Mutex<HubState>,
    /// Wakes a rank that waits for values from another, and no other rank.
    arrivals: Vec<Condvar>,
}

impl Hub {
    pub(crate) fn new(size: usize) -> Self {
        let state = HubState { left: vec![false; size], ..HubState::default() };
        Self { size, state: Mutex::new(state), arrivals: (0..size).map(|_| Condvar::new()).collect() }
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The first rank lost.
    pub(crate) fn lost(&self) -> Option<usize> {
        self.lock().lost
    }

    /// Records that `rank` is gone: pending and later calls of all ranks fail.
    pub(crate) fn lose(&self, rank: usize) {
        let mut state = self.lock();
        state.lost.get_or_insert(rank);
        self.wake_all(&state);
    }

    /// Records that `rank` is done: calls that wait for it fail.
    pub(crate) fn leave(&self, rank: usize) {
        let mut state = self.lock();
        state.left[rank] = true;
        self.wake_all(&state);
    }

    fn wake_all(&self, state: &HubState) {
        state.calls.values().map(|call| call.changed.as_ref()).chain(&self.arrivals).for_each(Condvar::notify_all);
    }

    /// Brings `message` to a collective call and returns those of all ranks once they are there:
    /// one that is made of them where they are sums or numbers.
    pub(crate) fn meet(&self, key: CallKey, rank: usize, message: HubMessage) -> Result<Arc<[HubMessage]>, CommError> {
        let mut state = self.lock();
        refuse_if_lost(&state)?;
        let call = state.calls.entry(key).or_insert_with(|| Call::new(self.size));
        let kind = std::mem::discriminant(&message);
        let is_alike = call.brought.iter().flatten().next().is_none_or(|other| std::mem::discriminant(other) == kind);
        assert!(is_alike, "rank {rank} makes another collective call than the ranks before it");
        call.bring(rank, message);
        let changed = call.changed.clone();
        loop {
            if let Some(all) = take_if_complete(&mut state, key, self.size) {
                return Ok(all);
            }
            refuse_if_lost(&state)?;
            let missing = (0..self.size).find(|&other| state.left[other] && !has_brought(&state, key, other));
            if let Some(rank) = missing {
                return Err(CommError::RankLost { rank });
            }
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Puts values on a road.
    pub(crate) fn send<T: Parcel>(&self, road: RoadKey, values: &[T]) -> Result<(), CommError> {
        let mut state = self.lock();
        refuse_if_lost(&state)?;
        T::roads(&mut state).entry(road).or_default().push_back(values.to_vec());
        self.arrivals[road.2].notify_all();
        Ok(())
    }

    /// Takes the oldest values off a road, waiting for them.
    pub(crate) fn receive<T: Parcel>(&self, road: RoadKey) -> Result<Vec<T>, CommError> {
        let mut state = self.lock();
        loop {
            if let Some(values) = T::roads(&mut state).get_mut(&road).and_then(VecDeque::pop_front) {
                return Ok(values);
            }
            refuse_if_lost(&state)?;
            if state.left[road.1] {
                return Err(CommError::RankLost { rank: road.1 });
            }
            state = self.arrivals[road.2].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A rank that panics inside a call leaves the state whole: every change is a single step.
    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refuse_if_lost(state: &HubState) -> Result<(), CommError> {
    state.lost.map_or(Ok(()), |rank| Err(CommError::RankLost { rank }))
}

fn has_brought(state: &HubState, key: CallKey, rank: usize) -> bool {
    state.calls.get(&key).is_some_and(|call| call.brought[rank].is_some())
}

/// Takes the messages of a complete call; the last rank to take it clears the call away.
fn take_if_complete(state: &mut HubState, key: CallKey, ranks: usize) -> Option<Arc<[HubMessage]>> {
    let call = state.calls.get_mut(&key)?;
    let all = call.all.clone()?;
    call.taken += 1;
    if call.taken == ranks {
        state.calls.remove(&key);
    }
    Some(all)
}
