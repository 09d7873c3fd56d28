//! Registers that are never needed at the same time share their room.
//!
//! A kernel names thousands of registers, each written once. The registers of all threads of a
//! block fit the processor's caches only when they are a few hundred.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::flow::{RegisterSet, Stretch, stretches};
use super::instruction::{Instruction, Usage};
use super::register::Register;

/// First and last instruction between which a register holds a value that is needed.
#[derive(Clone, Copy, Debug)]
struct Span {
    register: Register,
    first: usize,
    last: usize,
}

/// Gives registers new numbers, fewer than before; returns how many. Those of `kept` share their
/// room with none.
pub(super) fn compact(code: &mut [Instruction], n_registers: usize, kept: Vec<&mut Register>) -> usize {
    let mut fixed = RegisterSet::none(n_registers);
    kept.iter().for_each(|register| fixed.insert(**register));
    let mut numbers = vec![0; n_registers];
    let mut next = 0;
    for register in fixed.iter() {
        numbers[register as usize] = next;
        next += 1;
    }
    let spans = spans(code, n_registers);
    let taken = share(spans.into_iter().filter(|span| !fixed.contains(span.register)), next, &mut numbers);
    for instruction in code {
        instruction.visit(&mut |register, _| *register = numbers[*register as usize]);
    }
    kept.into_iter().for_each(|register| *register = numbers[*register as usize]);
    taken as usize
}

/// Gives each span a number that no other has meanwhile, from `first_number` on.
fn share(spans: impl Iterator<Item = Span>, first_number: u32, numbers: &mut [u32]) -> u32 {
    let mut next = first_number;
    let mut free = BinaryHeap::new();
    let mut busy = BinaryHeap::new();
    for span in spans {
        while let Some(Reverse((last, number))) = busy.peek().copied()
            && last < span.first
        {
            busy.pop();
            free.push(Reverse(number));
        }
        let number = free.pop().map_or_else(
            || {
                next += 1;
                next - 1
            },
            |Reverse(number)| number,
        );
        numbers[span.register as usize] = number;
        busy.push(Reverse((span.last, number)));
    }
    next
}

/// The span of each register that is used, in the order of their starts.
fn spans(code: &mut [Instruction], n_registers: usize) -> Vec<Span> {
    let stretches = stretches(code);
    let needed = needed_at_start(code, &stretches, n_registers);
    let mut found: Vec<Option<Span>> = vec![None; n_registers];
    let mut widen = |register: Register, position: usize| {
        let span = found[register as usize].get_or_insert(Span { register, first: position, last: position });
        span.first = span.first.min(position);
        span.last = span.last.max(position);
    };
    for (stretch, needed) in stretches.iter().zip(&needed.at_start) {
        needed.iter().for_each(|register| widen(register, stretch.start));
        for (position, instruction) in (stretch.start..).zip(&mut code[stretch.start..stretch.end]) {
            instruction.visit(&mut |register, _| widen(*register, position));
        }
    }
    for (stretch, needed) in stretches.iter().zip(&needed.at_end) {
        needed.iter().for_each(|register| widen(register, stretch.end - 1));
    }
    let mut spans: Vec<Span> = found.into_iter().flatten().collect();
    spans.sort_by_key(|span| (span.first, span.register));
    spans
}

/// The registers that are needed later, for each stretch.
struct Needed {
    at_start: Vec<RegisterSet>,
    at_end: Vec<RegisterSet>,
}

fn needed_at_start(code: &mut [Instruction], stretches: &[Stretch], n_registers: usize) -> Needed {
    let none = vec![RegisterSet::none(n_registers); stretches.len()];
    let mut needed = Needed { at_start: none.clone(), at_end: none };
    let mut changes = true;
    while changes {
        changes = false;
        for (number, stretch) in stretches.iter().enumerate().rev() {
            let mut live = RegisterSet::none(n_registers);
            stretch.next.iter().for_each(|next| live.unite(&needed.at_start[*next]));
            needed.at_end[number] = live.clone();
            code[stretch.start..stretch.end].iter_mut().rev().for_each(|instruction| go_back(instruction, &mut live));
            if live != needed.at_start[number] {
                needed.at_start[number] = live;
                changes = true;
            }
        }
    }
    needed
}

/// Turns the registers needed after an instruction into those needed before it.
fn go_back(instruction: &mut Instruction, live: &mut RegisterSet) {
    let is_guarded = instruction.is_guarded();
    instruction.visit(&mut |register, usage| {
        if usage == Usage::Write && !is_guarded {
            live.remove(*register);
        }
    });
    instruction.visit(&mut |register, usage| {
        if matches!(usage, Usage::Guard | Usage::Read) {
            live.insert(*register);
        }
    });
}
