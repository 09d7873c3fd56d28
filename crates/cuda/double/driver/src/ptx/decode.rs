//! Statements to instructions.

mod access;
mod together;

use super::error::ParseError;
use super::instruction::{Action, Instruction};
use super::names::Names;
use super::operand::{Resolver, Width};
use super::register::{NO_REGISTER, Register, RegisterPlaces};
use super::scalar::{ScalarKind, ScalarType, mask};
use super::syntax::{OperandSyntax, Statement};
use super::table::{self, ScalarFunction, one};

/// Decodes a statement. Branches lead to numbers of labels.
pub(super) fn decode(statement: &Statement<'_>, names: &mut Names<'_>) -> Result<Instruction, ParseError> {
    let mut resolver = Resolver { statement, names };
    let guard = match statement.guard {
        Some(guard) => resolver.register(&OperandSyntax::Name(guard.name), 1)?,
        None => NO_REGISTER,
    };
    let is_guard_negated = statement.guard.is_some_and(|guard| guard.is_negated);
    let action = action(&mut resolver)?;
    Ok(Instruction { guard, is_guard_negated, ..Instruction::new(statement.line, action) })
}

fn action(resolver: &mut Resolver<'_, '_, '_>) -> Result<Action, ParseError> {
    let statement = resolver.statement;
    let words = statement.words.as_slice();
    match *words {
        ["mov", scalar] => mov(resolver, scalar),
        ["cvt", ref modifiers @ .., target, source] => convert(resolver, modifiers, target, source),
        ["setp", comparison, scalar] => compare(resolver, comparison, scalar),
        ["bra"] | ["bra", "uni"] => {
            let [label] = resolver.operands()?;
            Ok(Action::Branch { target: resolver.label(label)? })
        }
        ["ret"] | ["ret", "uni"] | ["exit"] => resolver.operands::<0>().map(|_| Action::Exit),
        ["trap"] => resolver.operands::<0>().map(|_| Action::Trap),
        ["ld" | "st" | "atom" | "cvta", ..] => access::decode(resolver),
        ["bar" | "shfl" | "vote" | "redux", ..] => together::decode(resolver),
        _ => compute(resolver),
    }
}

/// Instructions of the table.
fn compute(resolver: &mut Resolver<'_, '_, '_>) -> Result<Action, ParseError> {
    let words = &resolver.statement.words;
    let operation = table::find(words).ok_or_else(|| resolver.refuse("not interpreted"))?;
    let operands = &resolver.statement.operands;
    if operands.len() != operation.sources.len() + 1 {
        return Err(resolver.refuse("another number of operands expected"));
    }
    let target = resolver.register(&operands[0], operation.target)?;
    let mut sources = [target; 4];
    for (index, bits) in operation.sources.iter().enumerate() {
        let operand = &operands[index + 1];
        sources[index] = resolver.source(operand, Width::Exactly(*bits))?;
    }
    let [a, b, ..] = sources;
    Ok(match operation.function {
        ScalarFunction::Total(function) => {
            Action::Compute { function, places: RegisterPlaces { target, sources, mask: u64::MAX } }
        }
        ScalarFunction::Partial(function) => Action::Divide { target, function, sources: [a, b] },
    })
}

/// Copies a value, takes an address, or takes a value apart or together.
fn mov(resolver: &mut Resolver<'_, '_, '_>, scalar: &str) -> Result<Action, ParseError> {
    let found = ScalarType::named(scalar).filter(|found| found.bits != 8);
    let bits = found.ok_or_else(|| resolver.refuse("not interpreted"))?.bits;
    let [target, source] = resolver.operands()?;
    let is_plain = scalar.starts_with('b');
    match (&target, &source) {
        (OperandSyntax::Group(parts), _) if is_plain => {
            let part_bits = part_bits(resolver, bits, parts)?;
            let width = Width::Exactly(part_bits);
            let targets: Result<Box<[u32]>, _> =
                parts.iter().map(|part| resolver.target(part, width).map(|target| target.register)).collect();
            Ok(Action::Unpack { targets: targets?, part_bits, source: resolver.source(source, Width::Exactly(bits))? })
        }
        (_, OperandSyntax::Group(parts)) if is_plain => {
            let part_bits = part_bits(resolver, bits, parts)?;
            let parts: Result<Box<[Register]>, _> =
                parts.iter().map(|part| resolver.source(part, Width::Exactly(part_bits))).collect();
            Ok(Action::Pack { target: resolver.register(target, bits)?, part_bits, parts: parts? })
        }
        _ => {
            let source = resolver.source(source, Width::Exactly(bits))?;
            let target = resolver.register(target, bits)?;
            Ok(Action::convert(one!(|a| a), target, source, mask(bits)))
        }
    }
}

/// Bits of each part of a value.
fn part_bits(resolver: &Resolver<'_, '_, '_>, bits: u32, parts: &[OperandSyntax<'_>]) -> Result<u32, ParseError> {
    match bits / parts.len() as u32 {
        part @ (16 | 32) if [2, 4].contains(&parts.len()) => Ok(part),
        _ => Err(resolver.refuse("another number of parts expected")),
    }
}

fn convert(
    resolver: &mut Resolver<'_, '_, '_>,
    modifiers: &[&str],
    target: &str,
    source: &str,
) -> Result<Action, ParseError> {
    let scalar = |name: &str| ScalarType::named(name).filter(|found| found.kind != ScalarKind::Bits);
    let function = table::conversion(modifiers, target, source);
    let (Some(from), Some(to), Some(function)) = (scalar(source), scalar(target), function) else {
        return Err(resolver.refuse("not interpreted"));
    };
    let [target, source] = resolver.operands()?;
    let width = |scalar: ScalarType| match scalar.kind {
        ScalarKind::Float => Width::Exactly(scalar.bits),
        _ => Width::AtLeast(scalar.bits),
    };
    let source = resolver.source(source, width(from))?;
    let target = resolver.target(target, width(to))?;
    if target.register == NO_REGISTER {
        return Err(resolver.refuse("a register expected"));
    }
    Ok(Action::convert(function, target.register, source, mask(target.bits)))
}

fn compare(resolver: &mut Resolver<'_, '_, '_>, comparison: &str, scalar: &str) -> Result<Action, ParseError> {
    let found = table::compare(comparison, scalar).zip(ScalarType::named(scalar));
    let (function, scalar) = found.ok_or_else(|| resolver.refuse("not interpreted"))?;
    let [target, a, b] = resolver.operands()?;
    let target = resolver.register(target, 1)?;
    let a = resolver.source(a, Width::Exactly(scalar.bits))?;
    let b = resolver.source(b, Width::Exactly(scalar.bits))?;
    Ok(Action::Compute { function, places: RegisterPlaces { target, sources: [a, b, a, a], mask: u64::MAX } })
}
