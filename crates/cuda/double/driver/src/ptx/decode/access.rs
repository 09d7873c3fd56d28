//! Instructions on memory: loads, stores, atomics, and addresses from one space to another.

use super::super::error::ParseError;
use super::super::instruction::{Action, Loaded, MemoryAccess, StateSpace};
use super::super::operand::{Resolver, Width};
use super::super::scalar::{ScalarKind, ScalarType, mask};
use super::super::syntax::OperandSyntax;
use super::super::table::one;

/// Decodes an instruction on memory.
pub(super) fn decode(resolver: &mut Resolver<'_, '_, '_>) -> Result<Action, ParseError> {
    let statement = resolver.statement;
    let words = statement.words.as_slice();
    match *words {
        ["cvta", "to", "global", "u64"] => convert_address(resolver),
        ["ld", ref rest @ .., scalar] => load(resolver, rest, scalar),
        ["st", ref rest @ .., scalar] => store(resolver, rest, scalar),
        ["atom", ref rest @ .., "or", "b32"] => atomic_or(resolver, rest),
        _ => Err(resolver.refuse("not interpreted")),
    }
}

/// Decodes a conversion of an address that means any space, which is one of global memory.
fn convert_address(resolver: &mut Resolver<'_, '_, '_>) -> Result<Action, ParseError> {
    let [target, source] = resolver.operands()?;
    let source = resolver.source(source, Width::Exactly(64))?;
    let target = resolver.register(target, 64)?;
    Ok(Action::convert(one!(|a| a), target, source, mask(64)))
}

/// The modifiers of an access, read from the front.
struct Modifiers<'a, 'w> {
    words: &'w [&'a str],
}

impl Modifiers<'_, '_> {
    fn takes(&mut self, names: &[&str]) -> bool {
        let is_next = self.words.first().is_some_and(|word| names.contains(word));
        self.words = &self.words[usize::from(is_next)..];
        is_next
    }

    /// Takes the space; global memory without.
    fn space(&mut self) -> StateSpace {
        let spaces = [("global", StateSpace::Global), ("shared", StateSpace::Shared), ("param", StateSpace::Parameter)];
        spaces.into_iter().find(|(name, _)| self.takes(&[name])).map_or(StateSpace::Global, |(_, space)| space)
    }

    /// Takes the number of values.
    fn values(&mut self) -> usize {
        match (self.takes(&["v2"]), self.takes(&["v4"])) {
            (true, _) => 2,
            (_, true) => 4,
            _ => 1,
        }
    }
}

/// The registers of a load.
fn parts<'a>(operand: &'a OperandSyntax<'a>, n_values: usize) -> Option<&'a [OperandSyntax<'a>]> {
    match operand {
        OperandSyntax::Group(parts) if parts.len() == n_values && n_values > 1 => Some(parts),
        OperandSyntax::Group(_) => None,
        other => (n_values == 1).then_some(std::slice::from_ref(other)),
    }
}

/// The type of values in memory; predicates have none.
fn scalar_in_memory(resolver: &Resolver<'_, '_, '_>, name: &str) -> Result<ScalarType, ParseError> {
    let found = ScalarType::named(name).filter(|found| found.kind != ScalarKind::Predicate);
    found.ok_or_else(|| resolver.refuse("not interpreted"))
}

fn load(resolver: &mut Resolver<'_, '_, '_>, words: &[&str], scalar: &str) -> Result<Action, ParseError> {
    let scalar = scalar_in_memory(resolver, scalar)?;
    let mut modifiers = Modifiers { words };
    let space = modifiers.space();
    // Caching changes nothing here.
    modifiers.takes(&["nc"]);
    let n_values = modifiers.values();
    let [target, address] = resolver.operands()?;
    let ([], Some(parts)) = (modifiers.words, parts(target, n_values)) else {
        return Err(resolver.refuse("not interpreted"));
    };
    let targets: Result<Box<[Loaded]>, ParseError> = parts
        .iter()
        .map(|part| {
            let target = resolver.target(part, Width::AtLeast(scalar.bits))?;
            Ok(Loaded { register: target.register, mask: mask(target.bits) })
        })
        .collect();
    let access = MemoryAccess { space, bytes: scalar.bytes(), address: resolver.address(address)? };
    Ok(Action::Load { access, is_signed: scalar.kind == ScalarKind::Signed, targets: targets? })
}

fn store(resolver: &mut Resolver<'_, '_, '_>, words: &[&str], scalar: &str) -> Result<Action, ParseError> {
    let scalar = scalar_in_memory(resolver, scalar)?;
    let mut modifiers = Modifiers { words };
    let space = modifiers.space();
    if space == StateSpace::Parameter || !modifiers.words.is_empty() {
        return Err(resolver.refuse("not interpreted"));
    }
    let [address, source] = resolver.operands()?;
    let source = resolver.source(source, Width::AtLeast(scalar.bits))?;
    let access = MemoryAccess { space, bytes: scalar.bytes(), address: resolver.address(address)? };
    Ok(Action::Store { access, source })
}

fn atomic_or(resolver: &mut Resolver<'_, '_, '_>, words: &[&str]) -> Result<Action, ParseError> {
    let mut modifiers = Modifiers { words };
    let space = modifiers.space();
    if space == StateSpace::Parameter || !modifiers.words.is_empty() {
        return Err(resolver.refuse("not interpreted"));
    }
    let [target, address, source] = resolver.operands()?;
    let target = resolver.target(target, Width::Exactly(32))?.register;
    let access = MemoryAccess { space, bytes: 4, address: resolver.address(address)? };
    Ok(Action::AtomicOr { access, source: resolver.source(source, Width::Exactly(32))?, target })
}
