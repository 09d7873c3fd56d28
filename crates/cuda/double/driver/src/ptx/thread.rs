//! One thread: it runs until it ends, waits for others, or its turn is over.

use super::fault::DeviceFault;
use super::instruction::{Action, Address, Instruction, PredicateOperand};
use super::plain::PlainStep;
use super::register::{NO_REGISTER, Register};
use super::space::Spaces;

/// The state of a thread between its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadStatus {
    /// Can continue at its next turn.
    Ready,
    /// Waits for the lanes of its mask.
    Collective {
        mask: u32,
    },
    /// Waits at a barrier of the block.
    Barrier {
        number: u32,
    },
    Ended,
}

/// The place of a thread in its kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadState {
    /// The next instruction.
    pub(super) position: usize,
    pub(super) status: ThreadStatus,
}

/// The registers of a thread.
pub(super) struct Registers<'a> {
    pub(super) values: &'a mut [u64],
}

impl Registers<'_> {
    #[inline]
    pub(super) fn read(&self, register: Register) -> u64 {
        self.values[register as usize]
    }

    #[inline]
    pub(super) fn write(&mut self, register: Register, value: u64) {
        if register != NO_REGISTER {
            self.values[register as usize] = value;
        }
    }

    pub(super) fn predicate(&self, predicate: PredicateOperand) -> u64 {
        self.read(predicate.operand) ^ u64::from(predicate.is_negated)
    }

    fn address(&self, address: Address) -> u64 {
        self.read(address.base).wrapping_add(address.offset)
    }
}

/// The step that follows an instruction.
enum Next {
    Following,
    Jump(usize),
    Stand(ThreadStatus),
}

/// A kernel's instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelCode<'a> {
    pub(super) code: &'a [Instruction],
    /// A step for each instruction.
    pub(super) steps: &'a [PlainStep],
}

impl KernelCode<'_> {
    /// Runs a thread for at most `turn` instructions; returns how many it ran.
    pub(super) fn run(
        &self,
        lane: &mut ThreadState,
        registers: &mut Registers<'_>,
        spaces: &mut Spaces<'_>,
        turn: u64,
    ) -> Result<u64, DeviceFault> {
        let mut executed = 0;
        while executed < turn {
            let run = u64::from(self.steps[lane.position].run).min(turn - executed);
            if run > 0 {
                let steps = &self.steps[lane.position..][..run as usize];
                steps.iter().for_each(|step| (step.function.apply)(&step.places, registers.values));
                lane.position += run as usize;
                executed += run;
                continue;
            }
            executed += 1;
            let instruction = &self.code[lane.position];
            match step(instruction, registers, spaces)? {
                Next::Following => lane.position += 1,
                Next::Jump(target) => lane.position = target,
                Next::Stand(status) => {
                    lane.status = status;
                    return Ok(executed);
                }
            }
        }
        Ok(turn)
    }
}

#[inline]
fn is_skipped(instruction: &Instruction, registers: &Registers<'_>) -> bool {
    instruction.is_guarded() && (registers.values[instruction.guard as usize] != 0) == instruction.is_guard_negated
}

#[inline]
fn step(
    instruction: &Instruction,
    registers: &mut Registers<'_>,
    spaces: &mut Spaces<'_>,
) -> Result<Next, DeviceFault> {
    if is_skipped(instruction, registers) {
        return Ok(Next::Following);
    }
    match &instruction.action {
        Action::Branch { target } => Ok(Next::Jump(*target)),
        Action::Compute { function, places } => {
            (function.apply)(places, registers.values);
            Ok(Next::Following)
        }
        action => act(action, registers, spaces),
    }
}

fn act(action: &Action, registers: &mut Registers<'_>, spaces: &mut Spaces<'_>) -> Result<Next, DeviceFault> {
    match action {
        Action::Compute { function, places } => (function.apply)(places, registers.values),
        Action::Divide { target, function, sources } => {
            let [dividend, divisor] = sources.map(|source| registers.read(source));
            let value = function(dividend, divisor).ok_or(DeviceFault::Division { dividend, divisor })?;
            registers.values[*target as usize] = value;
        }
        Action::Pack { target, part_bits, parts } => {
            let value = parts.iter().rev().fold(0, |value, part| value << part_bits | registers.read(*part));
            registers.values[*target as usize] = value;
        }
        Action::Unpack { targets, part_bits, source } => {
            let value = registers.read(*source);
            let mask = super::scalar::mask(*part_bits);
            for (place, target) in (0u32..).zip(targets) {
                registers.write(*target, value >> (place * part_bits) & mask);
            }
        }
        Action::Load { access, is_signed, targets } => {
            let mut bytes = [0; 32];
            let bytes = &mut bytes[..access.bytes * targets.len()];
            spaces.load(access.space, registers.address(access.address), bytes)?;
            for (value, target) in bytes.chunks_exact(access.bytes).zip(targets) {
                registers.write(target.register, value_of(value, *is_signed) & target.mask);
            }
        }
        Action::Store { access, source } => {
            let value = registers.read(*source).to_le_bytes();
            spaces.store(access.space, registers.address(access.address), &value[..access.bytes])?;
        }
        Action::AtomicOr { access, source, target } => {
            let address = registers.address(access.address);
            let mut bytes = [0; 4];
            spaces.load(access.space, address, &mut bytes)?;
            let old = u32::from_le_bytes(bytes);
            let new = old | registers.read(*source) as u32;
            spaces.store(access.space, address, &new.to_le_bytes())?;
            registers.write(*target, u64::from(old));
        }
        Action::Branch { target } => return Ok(Next::Jump(*target)),
        Action::Exit => return Ok(Next::Stand(ThreadStatus::Ended)),
        Action::Trap => return Err(DeviceFault::Trap),
        Action::Barrier(barrier) => {
            return Ok(Next::Stand(ThreadStatus::Barrier { number: registers.read(barrier.number) as u32 }));
        }
        Action::Collective(collective) => {
            return Ok(Next::Stand(ThreadStatus::Collective { mask: registers.read(collective.mask) as u32 }));
        }
    }
    Ok(Next::Following)
}

/// The bits of a value in memory, with its sign where it has one.
#[inline]
fn value_of(bytes: &[u8], is_signed: bool) -> u64 {
    let value = match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => unreachable!("values in memory have 1, 2, 4 or 8 bytes"),
    };
    let unused = 64 - 8 * bytes.len() as u32;
    if is_signed { ((value << unused) as i64 >> unused) as u64 } else { value }
}
