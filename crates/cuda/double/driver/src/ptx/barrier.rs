//! Barriers of a block.

use super::fault::DeviceFault;
use super::gathering::gather;
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
        let ThreadStatus::Barrier { number, threads } = block.lanes[thread].status else { continue };
        let at = |fault| ThreadFault { thread, fault };
        let is_whole = threads.is_none_or(|threads| threads > 0 && (threads as usize).is_multiple_of(LANES));
        if number >= BARRIERS || !is_whole {
            return Err(at(DeviceFault::Barrier { number, threads }));
        }
        if let Some(arrived) = complete(block, thread, number, threads).map_err(at)? {
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

/// The threads at a barrier, if all have come to it. A warp has come when all its lanes have that
/// have not ended.
fn complete(
    block: &BlockState<'_>,
    thread: usize,
    number: u32,
    threads: Option<u32>,
) -> Result<Option<Vec<usize>>, DeviceFault> {
    let mut arrived = Vec::new();
    let mut warps = 0;
    for first in (0..block.lanes.len()).step_by(LANES) {
        let warp = first..block.lanes.len().min(first + LANES);
        let lanes: Vec<usize> = warp.filter(|lane| block.lanes[*lane].status != ThreadStatus::Ended).collect();
        let is_here = |lane: &usize| matches!(block.lanes[*lane].status, ThreadStatus::Barrier { number: own, .. } if own == number);
        if !lanes.is_empty() && lanes.iter().all(is_here) {
            check_aligned(block, &lanes, number)?;
            warps += 1;
            arrived.extend(lanes);
        } else if threads.is_none() && !lanes.is_empty() {
            return Ok(None);
        }
    }
    if threads.is_some_and(|threads| warps * LANES < threads as usize) || arrived.is_empty() {
        return Ok(None);
    }
    if threads.is_some_and(|threads| warps * LANES > threads as usize) {
        return Err(DeviceFault::Disagreement { number, what: "more threads come than it is for" });
    }
    check_agreement(block, &arrived, thread, number)?;
    Ok(Some(arrived))
}

/// Lanes of a warp come to an aligned barrier at one instruction.
fn check_aligned(block: &BlockState<'_>, lanes: &[usize], number: u32) -> Result<(), DeviceFault> {
    let is_aligned = |lane: &usize| barrier(block, *lane).is_some_and(|barrier| barrier.is_aligned);
    let position = block.lanes[lanes[0]].position;
    let is_together = lanes.iter().all(|lane| block.lanes[*lane].position == position);
    if is_together || !lanes.iter().any(is_aligned) {
        return Ok(());
    }
    Err(DeviceFault::Disagreement { number, what: "lanes of a warp come to it at different instructions" })
}

/// All threads name the same number of threads and the same reduction.
fn check_agreement(block: &BlockState<'_>, arrived: &[usize], thread: usize, number: u32) -> Result<(), DeviceFault> {
    let how = |thread: usize| barrier(block, thread).map(|barrier| barrier.reduction.map(|reduction| reduction.how));
    let is_same =
        |other: &usize| block.lanes[*other].status == block.lanes[thread].status && how(*other) == how(thread);
    if arrived.iter().all(is_same) {
        return Ok(());
    }
    Err(DeviceFault::Disagreement { number, what: "threads come to it by instructions that differ" })
}

/// Gathers what the threads bring, and lets them continue.
fn pass(block: &mut BlockState<'_>, arrived: &[usize]) {
    let mut predicates = Vec::new();
    for thread in arrived {
        if let Some(reduction) = barrier(block, *thread).and_then(|barrier| barrier.reduction) {
            predicates.push((*thread, block.registers(*thread).predicate(reduction.predicate)));
        }
    }
    let kernel = block.kernel;
    for thread in arrived {
        let instruction = &kernel.code[block.lanes[*thread].position];
        if let Some(reduction) = barrier(block, *thread).and_then(|barrier| barrier.reduction) {
            let value = gather(reduction.how, predicates.iter().copied());
            let mut registers = block.registers(*thread);
            registers.write(reduction.target, value);
            kernel
                .tracking
                .entries
                .get(instruction.tracking as usize)
                .iter()
                .for_each(|uses| registers.note_writes(uses));
        }
        block.lanes[*thread].position += 1;
        block.lanes[*thread].status = ThreadStatus::Ready;
    }
}
