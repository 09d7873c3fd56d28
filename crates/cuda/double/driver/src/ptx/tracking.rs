//! Registers that may be read before they are written.
//!
//! Most reads follow a write on every way to them; those cost nothing. The other registers have a
//! bit each, and the instructions that read or write them look after it.

use super::flow::{RegisterSet, Stretch, stretches};
use super::instruction::{Instruction, Usage};
use super::names::RegisterName;
use super::register::{NO_REGISTER, Register};

/// The registers of a kernel that have a bit, and the instructions that look after it.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracking {
    /// Names of the registers, by the number of their bit.
    pub(super) names: Vec<String>,
    /// The register of each bit.
    pub(super) registers: Vec<Register>,
    pub(super) entries: Vec<TrackedUses>,
}

/// The bits that one instruction looks after.
#[derive(Clone, Debug, Default)]
pub(super) struct TrackedUses {
    /// The bit of the guard, which is read always.
    pub(super) guard: Option<u32>,
    /// Bits of registers that must be set.
    pub(super) reads: Vec<u32>,
    /// Bits of registers that are set after it.
    pub(super) writes: Vec<u32>,
    /// The bit of a register that a shuffle may leave without a value.
    pub(super) may_write: Option<u32>,
}

impl Tracking {
    /// Returns the words of bits that a thread has.
    pub(super) fn words(&self) -> usize {
        self.registers.len().div_ceil(64)
    }
}

/// Finds the registers that need a bit, and tells the instructions. Those of `given` have a value
/// before the first one.
pub(super) fn track(code: &mut [Instruction], registers: &[RegisterName], given: &[Register]) -> Tracking {
    let stretches = stretches(code);
    let at_start = written_at_start(code, &stretches, registers.len(), given);
    let mut numbers = vec![NO_REGISTER; registers.len()];
    let mut tracking = Tracking::default();
    for (stretch, written) in stretches.iter().zip(at_start) {
        let mut written = written;
        for instruction in &mut code[stretch.start..stretch.end] {
            instruction.visit(&mut |register, usage| {
                let is_read = matches!(usage, Usage::Guard | Usage::Read);
                let number = &mut numbers[*register as usize];
                if is_read && !written.contains(*register) && *number == NO_REGISTER {
                    *number = tracking.registers.len() as u32;
                    tracking.registers.push(*register);
                    tracking.names.push(registers[*register as usize].name.clone());
                }
            });
            pass(instruction, &mut written);
        }
    }
    for instruction in code {
        note(instruction, &numbers, &mut tracking.entries);
    }
    tracking
}

/// The registers that are written on every way to each stretch.
fn written_at_start(
    code: &mut [Instruction],
    stretches: &[Stretch],
    n_registers: usize,
    given: &[Register],
) -> Vec<RegisterSet> {
    let mut at_start = vec![RegisterSet::all(n_registers); stretches.len()];
    at_start[0] = RegisterSet::none(n_registers);
    given.iter().for_each(|register| at_start[0].insert(*register));
    let mut waiting: Vec<usize> = (0..stretches.len()).rev().collect();
    while let Some(number) = waiting.pop() {
        let mut written = at_start[number].clone();
        let stretch = &stretches[number];
        code[stretch.start..stretch.end].iter_mut().for_each(|instruction| pass(instruction, &mut written));
        for next in &stretch.next {
            let before = at_start[*next].clone();
            at_start[*next].intersect(&written);
            if at_start[*next] != before {
                waiting.push(*next);
            }
        }
    }
    at_start
}

/// Turns the registers written before an instruction into those written after it.
fn pass(instruction: &mut Instruction, written: &mut RegisterSet) {
    let is_guarded = instruction.is_guarded();
    instruction.visit(&mut |register, usage| match usage {
        Usage::Write if !is_guarded => written.insert(*register),
        Usage::MayWrite => written.remove(*register),
        _ => {}
    });
}

/// Gives an instruction its entry, if it uses a register with a bit.
fn note(instruction: &mut Instruction, numbers: &[u32], entries: &mut Vec<TrackedUses>) {
    let mut entry = TrackedUses::default();
    let mut is_used = false;
    instruction.visit(&mut |register, usage| {
        let number = numbers[*register as usize];
        if number == NO_REGISTER {
            return;
        }
        is_used = true;
        match usage {
            Usage::Guard => entry.guard = Some(number),
            Usage::Read => entry.reads.push(number),
            Usage::Write => entry.writes.push(number),
            Usage::MayWrite => entry.may_write = Some(number),
        }
    });
    if is_used {
        instruction.tracking = entries.len() as u32;
        entries.push(entry);
    }
}
