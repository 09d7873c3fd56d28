//! Barriers of a block.

use super::fault::DeviceFault;
use super::instruction::{Action, Barrier};
use super::state::{BlockState, LANES, ThreadFault};
use super::thread::ThreadStatus;

/// Barriers that a block has.
const BARRIERS: u32 = 16;

/// Lets the threads continue that wait at a barrier all others have come to; returns whether there
/// are any.
pub(super) fn release(block: &mut BlockState<'_>) -> Result<bool, ThreadFault> {
    let mut is_released = false;
    for thread in 0..block.lanes.len() {
        let ThreadStatus::Barrier { number } = block.lanes[thread].status else { continue };
        let at = |fault| ThreadFault { thread, fault };
        if number >= BARRIERS {
            return Err(at(DeviceFault::Barrier { number }));
        }
        if let Some(arrived) = complete(block, thread, number).map_err(at)? {
            pass(block, &arrived);
            is_released = true;
        }
    }
    Ok(is_released)
}

/// The instruction a thread waits at.
fn barrier<'a>(block: &BlockState<'a>, thread: usize) -> Option<&'a Barrier> {
    match &block.kernel.code[block.lanes[thread].position].action {
        Action::Barrier(barrier) => Some(barrier),
        _ => None,
    }
}

/// The threads at a barrier, if all have come to it that have not ended.
fn complete(block: &BlockState<'_>, thread: usize, number: u32) -> Result<Option<Vec<usize>>, DeviceFault> {
    let mut arrived = Vec::new();
    for first in (0..block.lanes.len()).step_by(LANES) {
        let warp = first..block.lanes.len().min(first + LANES);
        let lanes: Vec<usize> = warp.filter(|lane| block.lanes[*lane].status != ThreadStatus::Ended).collect();
        if !lanes.iter().all(|lane| block.lanes[*lane].status == ThreadStatus::Barrier { number }) {
            return Ok(None);
        }
        if lanes.iter().any(|lane| block.lanes[*lane].position != block.lanes[lanes[0]].position) {
            let what = "lanes of a warp come to it at different instructions";
            return Err(DeviceFault::Disagreement { number, what });
        }
        arrived.extend(lanes);
    }
    let gathers = |thread: usize| barrier(block, thread).is_some_and(|barrier| barrier.reduction.is_some());
    if arrived.iter().any(|other| gathers(*other) != gathers(thread)) {
        return Err(DeviceFault::Disagreement { number, what: "threads come to it by instructions that differ" });
    }
    Ok(Some(arrived))
}

/// Gathers what the threads bring, and lets them continue.
fn pass(block: &mut BlockState<'_>, arrived: &[usize]) {
    let mut is_any = 0;
    for thread in arrived {
        if let Some(reduction) = barrier(block, *thread).and_then(|barrier| barrier.reduction) {
            is_any |= block.registers(*thread).predicate(reduction.predicate);
        }
    }
    for thread in arrived {
        if let Some(reduction) = barrier(block, *thread).and_then(|barrier| barrier.reduction) {
            block.registers(*thread).write(reduction.target, is_any);
        }
        block.lanes[*thread].position += 1;
        block.lanes[*thread].status = ThreadStatus::Ready;
    }
}
