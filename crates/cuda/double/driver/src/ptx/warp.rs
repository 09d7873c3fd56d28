//! Instructions that lanes of a warp execute together.

use std::ops::Range;

use super::fault::DeviceFault;
use super::instruction::{Action, Collective, CollectiveKind, Gathering, Shuffle};
use super::register::NO_REGISTER;
use super::scalar::mask;
use super::state::{BlockState, LANES, ThreadFault, UNSET};
use super::thread::ThreadStatus;

/// Lanes that are at the same instruction with the same mask.
#[derive(Debug)]
struct Meeting {
    /// Thread of the first lane of the warp.
    first: usize,
    /// Lanes that meet, a bit for each.
    lanes: u32,
    /// The value that each lane brings.
    values: [u64; LANES],
}

/// Lets lanes continue for which all others of their masks wait too.
pub(super) fn meet(block: &mut BlockState<'_>, warp: Range<usize>) -> Result<(), ThreadFault> {
    for thread in warp.clone() {
        let ThreadStatus::Collective { mask } = block.lanes[thread].status else { continue };
        let lane = thread - warp.start;
        if mask >> lane & 1 == 0 {
            return Err(ThreadFault { thread, fault: DeviceFault::Mask { lane, mask } });
        }
        if let Some(lanes) = complete(block, &warp, thread, mask) {
            execute(block, warp.start, lanes);
        }
    }
    Ok(())
}

/// The instruction a thread waits at.
fn collective<'a>(block: &BlockState<'a>, thread: usize) -> Option<&'a Collective> {
    match &block.kernel.code[block.lanes[thread].position].action {
        Action::Collective(collective) => Some(collective),
        _ => None,
    }
}

/// The lanes of a mask that have not ended, if all of them wait at such an instruction.
fn complete(block: &BlockState<'_>, warp: &Range<usize>, thread: usize, mask: u32) -> Option<u32> {
    let own = collective(block, thread)?;
    let mut lanes = 0;
    for (lane, other) in warp.clone().enumerate() {
        if mask >> lane & 1 == 0 || block.lanes[other].status == ThreadStatus::Ended {
            continue;
        }
        let waits = block.lanes[other].status == ThreadStatus::Collective { mask };
        let is_at_same = block.lanes[other].position == block.lanes[thread].position;
        if !waits || !(is_at_same || collective(block, other).is_some_and(|other| other.how == own.how)) {
            return None;
        }
        lanes |= 1 << lane;
    }
    Some(lanes)
}

/// Executes the instruction for all of `lanes`.
fn execute(block: &mut BlockState<'_>, first: usize, lanes: u32) {
    let mut meeting = Meeting { first, lanes, values: [0; LANES] };
    for lane in meeting.iter() {
        let Some(collective) = collective(block, first + lane) else { continue };
        let value = block.registers(first + lane).read(collective.source);
        meeting.values[lane] = value ^ u64::from(collective.is_source_negated);
    }
    let mut common = None;
    for lane in meeting.iter() {
        let Some(collective) = collective(block, first + lane) else { continue };
        // Lanes meet with the same qualifiers only, so what is the same for one is so for all.
        let common = *common.get_or_insert_with(|| meeting.common(collective.how));
        finish(block, &meeting, lane, collective, common);
    }
}

/// Writes the results of one lane, and lets it continue.
fn finish(block: &mut BlockState<'_>, meeting: &Meeting, lane: usize, collective: &Collective, common: u64) {
    let thread = meeting.first + lane;
    let mut registers = block.registers(thread);
    let [number, limits] = collective.shuffle.map(|operand| registers.read(operand) as u32);
    let result = match collective.how {
        CollectiveKind::Shuffle(how) => meeting.shuffled(how, lane, number, limits),
        _ => LaneResult { value: common, predicate: false },
    };
    registers.write(collective.target, result.value);
    if collective.predicate != NO_REGISTER {
        registers.write(collective.predicate, u64::from(result.predicate));
    }
    block.lanes[thread].position += 1;
    block.lanes[thread].status = ThreadStatus::Ready;
}

/// The result for one lane.
#[derive(Clone, Copy, Debug)]
struct LaneResult {
    /// The value; [`UNSET`] of a lane that is not there.
    value: u64,
    predicate: bool,
}

impl Meeting {
    fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        let lanes = self.lanes;
        (0..LANES).filter(move |lane| lanes >> lane & 1 == 1)
    }

    /// The value that all lanes get: of a shuffle, each has its own.
    fn common(&self, how: CollectiveKind) -> u64 {
        let mut values = self.iter().map(|lane| self.values[lane]);
        match how {
            CollectiveKind::Barrier | CollectiveKind::Shuffle(_) => 0,
            CollectiveKind::Vote(Gathering::Any) => u64::from(values.any(|predicate| predicate == 1)),
            CollectiveKind::Vote(Gathering::Lanes) => self.iter().map(|lane| self.values[lane] << lane).sum(),
            CollectiveKind::Add => values.sum::<u64>() & mask(32),
            CollectiveKind::Or => values.fold(0, |bits, value| bits | value),
        }
    }

    /// The value of the lane a shuffle reads: limits has the lanes of a segment in bits 8 to 12 and
    /// the last lane in bits 0 to 4. A lane outside them is the reader itself.
    fn shuffled(&self, how: Shuffle, lane: usize, number: u32, limits: u32) -> LaneResult {
        let own = lane as i32;
        let number = (number & 31) as i32;
        let last = (limits & 31) as i32;
        let segment = (limits >> 8 & 31) as i32;
        let lowest = own & segment;
        let highest = lowest | last & !segment;
        let source = match how {
            Shuffle::Up => own - number,
            Shuffle::Down => own + number,
            Shuffle::Butterfly => own ^ number,
            Shuffle::Index => lowest | number & !segment,
        };
        let is_within = if how == Shuffle::Up { source >= highest } else { source <= highest };
        let source = if is_within { source as usize } else { lane };
        let is_there = self.lanes >> source & 1 == 1;
        LaneResult { value: if is_there { self.values[source] } else { UNSET }, predicate: is_within }
    }
}
