//! Registers that are never needed at the same time share their room.
//!
//! A kernel names thousands of registers, each written once, most of them for the next few
//! instructions. The registers of all threads of a block fit the processor's caches only when they
//! are a few hundred.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::instruction::{Action, Instruction, Usage};
use super::register::Register;

/// Instructions of one stretch between which a register has all its values.
#[derive(Clone, Copy, Debug)]
struct Span {
    register: Register,
    stretch: usize,
    first: usize,
    last: usize,
    /// A value of before, or of another stretch, is in it, too.
    is_shared: bool,
}

/// Gives registers new numbers, fewer than before; returns how many. Those of `kept` share their
/// room with none.
pub(super) fn compact(code: &mut [Instruction], n_registers: usize, kept: Vec<&mut Register>) -> usize {
    let mut spans = spans(code, n_registers);
    for register in kept.iter().map(|register| **register) {
        spans[register as usize] = Some(Span { register, stretch: 0, first: 0, last: 0, is_shared: true });
    }
    let (shared, mut local): (Vec<Span>, Vec<Span>) = spans.into_iter().flatten().partition(|span| span.is_shared);
    let mut numbers = vec![0; n_registers];
    for (number, span) in (0..).zip(&shared) {
        numbers[span.register as usize] = number;
    }
    local.sort_by_key(|span| (span.first, span.register));
    let taken = share(local.into_iter(), shared.len() as u32, &mut numbers);
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

/// The span of each register that is used. Stretches begin where a branch leads to, and behind one.
fn spans(code: &mut [Instruction], n_registers: usize) -> Vec<Option<Span>> {
    let mut begins = vec![false; code.len() + 1];
    for (position, instruction) in code.iter().enumerate() {
        if let Action::Branch { target } = instruction.action {
            begins[target] = true;
            begins[position + 1] = true;
        }
    }
    let mut spans: Vec<Option<Span>> = vec![None; n_registers];
    let mut stretch = 0;
    for (position, instruction) in code.iter_mut().enumerate() {
        stretch += usize::from(begins[position]);
        let is_guarded = instruction.is_guarded();
        instruction.visit(&mut |register, usage| {
            let register = *register;
            let keeps = usage != Usage::Write || is_guarded;
            let begun = Span { register, stretch, first: position, last: position, is_shared: keeps };
            let span = spans[register as usize].get_or_insert(begun);
            span.last = position;
            span.is_shared |= span.stretch != stretch;
        });
    }
    spans
}
