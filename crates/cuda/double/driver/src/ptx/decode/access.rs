//! Instructions on memory: loads, stores, atomics, fences, and addresses from one space to another.

use super::super::error::ParseError;
use super::super::instruction::{Action, Atomic, Loaded, MemoryAccess, StateSpace};
use super::super::names::Constant;
use super::super::operand::{Resolver, Width};
use super::super::register::{NO_REGISTER, Register, RegisterPlaces};
use super::super::scalar::{Integer, Real, ScalarKind, ScalarType, by_integer, mask};
use super::super::space::{LOCAL_WINDOW, SHARED_WINDOW};
use super::super::syntax::OperandSyntax;
use super::super::table::two;

const SCOPES: [&str; 4] = ["cta", "cluster", "gpu", "sys"];

/// Decodes an instruction on memory.
pub(super) fn decode(resolver: &mut Resolver<'_, '_, '_>) -> Result<Action, ParseError> {
    let statement = resolver.statement;
    let words = statement.words.as_slice();
    match *words {
        ["membar", "cta" | "gl" | "sys"] => resolver.operands::<0>().map(|_| Action::Nothing),
        ["fence", scope] | ["fence", "sc" | "acq_rel" | "acquire" | "release", scope] if SCOPES.contains(&scope) => {
            resolver.operands::<0>().map(|_| Action::Nothing)
        }
        ["cvta", ref rest @ .., "u64"] => convert_address(resolver, rest),
        ["ld", ref rest @ .., scalar] => load(resolver, rest, scalar),
        ["st", ref rest @ .., scalar] => store(resolver, rest, scalar),
        ["atom", ref rest @ .., operation, scalar] => atomic(resolver, rest, operation, scalar, true),
        ["red", ref rest @ .., operation, scalar] => atomic(resolver, rest, operation, scalar, false),
        _ => Err(resolver.refuse("not interpreted")),
    }
}

/// Decodes a conversion between the address of a space and the one that means any space. Global and
/// constant memory have the same in both.
fn convert_address(resolver: &mut Resolver<'_, '_, '_>, words: &[&str]) -> Result<Action, ParseError> {
    let distance = match *words {
        ["to", "global" | "const"] | ["global" | "const"] => 0,
        ["shared" | "shared::cta"] => SHARED_WINDOW,
        ["to", "shared" | "shared::cta"] => SHARED_WINDOW.wrapping_neg(),
        ["local"] => LOCAL_WINDOW,
        ["to", "local"] => LOCAL_WINDOW.wrapping_neg(),
        _ => return Err(resolver.refuse("not interpreted")),
    };
    let [target, source] = resolver.operands()?;
    let source = resolver.source(source, Width::Exactly(64))?;
    let target = resolver.register(target, 64)?;
    let distance = resolver.names.constant(Constant::Value(distance));
    let places = RegisterPlaces { target, sources: [source, distance, source, source], mask: u64::MAX };
    Ok(Action::Compute { function: two!(|a, b| a.wrapping_add(b)), places })
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

    /// Takes the order of an access to memory, with its scope; false for an order without one.
    fn takes_order(&mut self, orders: &[&str]) -> bool {
        !self.takes(orders) || self.takes(&SCOPES)
    }

    /// Takes the space; any space without.
    fn space(&mut self) -> StateSpace {
        let spaces: [(&[&str], StateSpace); 4] = [
            (&["global"], StateSpace::Global),
            (&["shared", "shared::cta"], StateSpace::Shared),
            (&["local"], StateSpace::Local),
            (&["param"], StateSpace::Parameter),
        ];
        let found = spaces.iter().find(|(names, _)| self.takes(names));
        found.map_or(StateSpace::Generic, |(_, space)| *space)
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

/// The registers or values of a load or a store.
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
    let has_scope = modifiers.takes(&["volatile", "weak"]) || modifiers.takes_order(&["relaxed", "acquire"]);
    let is_constant = modifiers.takes(&["const"]);
    let space = if is_constant { StateSpace::Global } else { modifiers.space() };
    // Caching changes nothing here.
    modifiers.takes(&["nc", "ca", "cg", "cs", "lu", "cv"]);
    let n_values = modifiers.values();
    let [target, address] = resolver.operands()?;
    let (true, [], Some(parts)) = (has_scope, modifiers.words, parts(target, n_values)) else {
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
    let has_scope = modifiers.takes(&["volatile", "weak"]) || modifiers.takes_order(&["relaxed", "release"]);
    let space = modifiers.space();
    modifiers.takes(&["wb", "cg", "cs", "wt"]);
    let n_values = modifiers.values();
    let [address, source] = resolver.operands()?;
    let (true, [], Some(parts)) =
        (has_scope && space != StateSpace::Parameter, modifiers.words, parts(source, n_values))
    else {
        return Err(resolver.refuse("not interpreted"));
    };
    let sources: Result<Box<[Register]>, ParseError> =
        parts.iter().map(|part| resolver.source(part, Width::AtLeast(scalar.bits))).collect();
    let access = MemoryAccess { space, bytes: scalar.bytes(), address: resolver.address(address)? };
    Ok(Action::Store { access, sources: sources? })
}

fn atomic(
    resolver: &mut Resolver<'_, '_, '_>,
    words: &[&str],
    operation: &str,
    scalar: &str,
    has_target: bool,
) -> Result<Action, ParseError> {
    let mut modifiers = Modifiers { words };
    modifiers.takes(&["relaxed", "acquire", "release", "acq_rel"]);
    modifiers.takes(&SCOPES);
    let space = modifiers.space();
    let function = atomic_function(operation, scalar).zip(ScalarType::named(scalar));
    let is_atomic = matches!(space, StateSpace::Generic | StateSpace::Global | StateSpace::Shared);
    let (true, [], Some((function, scalar))) = (is_atomic, modifiers.words, function) else {
        return Err(resolver.refuse("not interpreted"));
    };
    let is_exchange = operation == "cas";
    let operands = resolver.statement.operands.as_slice();
    if operands.len() != 2 + usize::from(has_target) + usize::from(is_exchange) {
        return Err(resolver.refuse("another number of operands expected"));
    }
    let width = Width::Exactly(scalar.bits);
    let (target, operands) = match has_target {
        true => (resolver.target(&operands[0], width)?.register, &operands[1..]),
        false => (NO_REGISTER, operands),
    };
    let access = MemoryAccess { space, bytes: scalar.bytes(), address: resolver.address(&operands[0])? };
    let first = resolver.source(&operands[1], width)?;
    let second = if is_exchange { resolver.source(&operands[2], width)? } else { first };
    Ok(Action::Atomic(Box::new(Atomic { access, function, sources: [first, second], target })))
}

/// The function of what is there and of the operands.
fn atomic_function(operation: &str, scalar: &str) -> Option<fn(u64, u64, u64) -> u64> {
    Some(match (operation, scalar) {
        ("and", "b32" | "b64") => |old, b, _| old & b,
        ("or", "b32" | "b64") => |old, b, _| old | b,
        ("xor", "b32" | "b64") => |old, b, _| old ^ b,
        ("exch", "b32" | "b64") => |_, b, _| b,
        ("cas", "b32" | "b64") => |old, b, c| if old == b { c } else { old },
        ("add", "f32") => |old, b, _| (<f32 as Real>::of(old) + <f32 as Real>::of(b)).bits(),
        ("add", "f64") => |old, b, _| (<f64 as Real>::of(old) + <f64 as Real>::of(b)).bits(),
        ("inc", "u32") => |old, b, _| if old >= b { 0 } else { old + 1 },
        ("dec", "u32") => |old, b, _| if old == 0 || old > b { b } else { old - 1 },
        ("add", "u32" | "s32" | "u64") => {
            by_integer!(scalar, arithmetic, T => |old, b, _| T::of(old.wrapping_add(b)).bits())
        }
        ("min", _) => by_integer!(scalar, wide, T => |old, b, _| T::of(old).min(T::of(b)).bits()),
        ("max", _) => by_integer!(scalar, wide, T => |old, b, _| T::of(old).max(T::of(b)).bits()),
        _ => return None,
    })
}
