//! Instructions that threads execute together: barriers, shuffles, votes, reductions.

use super::super::error::ParseError;
use super::super::instruction::{
    Action, Barrier, BarrierReduction, Collective, CollectiveKind, Gathering, Reduction, Shuffle,
};
use super::super::names::Constant;
use super::super::operand::{Resolver, Width};
use super::super::register::NO_REGISTER;
use super::super::scalar::{Integer, by_integer};
use super::super::syntax::OperandSyntax;

const WORD: Width = Width::Exactly(32);

/// Decodes an instruction of several threads.
pub(super) fn decode(resolver: &mut Resolver<'_, '_, '_>) -> Result<Action, ParseError> {
    let statement = resolver.statement;
    let words: Vec<&str> = statement.words.iter().copied().filter(|word| *word != "cta").collect();
    match *words.as_slice() {
        ["bar", "warp", "sync"] => {
            let [mask] = resolver.operands()?;
            Ok(Action::Collective(Box::new(blank(resolver, CollectiveKind::Barrier, mask)?)))
        }
        ["bar", "sync"] | ["barrier", "sync", "aligned"] => {
            let [number] = resolver.operands()?;
            barrier(resolver, number, None)
        }
        ["bar", "red", name, "pred"] | ["barrier", "red", name, "aligned", "pred"] => barrier_reduction(resolver, name),
        ["shfl", "sync", how, "b32"] => shuffle(resolver, how),
        ["vote", "sync", how, "pred"] => vote(resolver, how, 1),
        ["vote", "sync", "ballot", "b32"] => vote(resolver, "ballot", 32),
        ["redux", "sync", name, scalar] => reduce(resolver, name, scalar),
        _ => Err(resolver.refuse("not interpreted")),
    }
}

fn barrier(
    resolver: &mut Resolver<'_, '_, '_>,
    number: &OperandSyntax<'_>,
    reduction: Option<BarrierReduction>,
) -> Result<Action, ParseError> {
    let number = resolver.source(number, WORD)?;
    Ok(Action::Barrier(Box::new(Barrier { number, reduction })))
}

fn barrier_reduction(resolver: &mut Resolver<'_, '_, '_>, name: &str) -> Result<Action, ParseError> {
    let how = match name {
        "and" => Gathering::All,
        "or" => Gathering::Any,
        _ => return Err(resolver.refuse("not interpreted")),
    };
    let [target, number, predicate] = resolver.operands()?;
    let target = resolver.register(target, 1)?;
    let predicate = resolver.predicate(predicate)?;
    barrier(resolver, number, Some(BarrierReduction { how, predicate, target }))
}

/// A collective without a value and without results, for others to fill in.
fn blank(
    resolver: &mut Resolver<'_, '_, '_>,
    how: CollectiveKind,
    mask: &OperandSyntax<'_>,
) -> Result<Collective, ParseError> {
    let none = resolver.names.constant(Constant::Value(0));
    Ok(Collective {
        mask: resolver.source(mask, WORD)?,
        how,
        source: none,
        is_source_negated: false,
        shuffle: [none; 2],
        target: NO_REGISTER,
        predicate: NO_REGISTER,
    })
}

fn shuffle(resolver: &mut Resolver<'_, '_, '_>, how: &str) -> Result<Action, ParseError> {
    let how = CollectiveKind::Shuffle(match how {
        "up" => Shuffle::Up,
        "down" => Shuffle::Down,
        "bfly" => Shuffle::Butterfly,
        "idx" => Shuffle::Index,
        _ => return Err(resolver.refuse("not interpreted")),
    });
    let [target, source, lane, limits, mask] = resolver.operands()?;
    let mut found = blank(resolver, how, mask)?;
    found.source = resolver.source(source, WORD)?;
    [found.target, found.predicate] = resolver.pair(target, 32)?;
    found.shuffle = [resolver.source(lane, WORD)?, resolver.source(limits, WORD)?];
    Ok(Action::Collective(Box::new(found)))
}

fn vote(resolver: &mut Resolver<'_, '_, '_>, how: &str, bits: u32) -> Result<Action, ParseError> {
    let how = CollectiveKind::Vote(match how {
        "all" => Gathering::All,
        "any" => Gathering::Any,
        "ballot" if bits == 32 => Gathering::Lanes,
        _ => return Err(resolver.refuse("not interpreted")),
    });
    let [target, source, mask] = resolver.operands()?;
    let mut found = blank(resolver, how, mask)?;
    let predicate = resolver.predicate(source)?;
    found.source = predicate.operand;
    found.is_source_negated = predicate.is_negated;
    found.target = resolver.register(target, bits)?;
    Ok(Action::Collective(Box::new(found)))
}

fn reduce(resolver: &mut Resolver<'_, '_, '_>, name: &str, scalar: &str) -> Result<Action, ParseError> {
    let found = reduction(name, scalar).zip(reducer(name, scalar));
    let (name, function) = found.ok_or_else(|| resolver.refuse("not interpreted"))?;
    let [target, source, mask] = resolver.operands()?;
    let mut found = blank(resolver, CollectiveKind::Reduce { name, function }, mask)?;
    found.source = resolver.source(source, WORD)?;
    found.target = resolver.register(target, 32)?;
    Ok(Action::Collective(Box::new(found)))
}

fn reduction(name: &str, scalar: &str) -> Option<Reduction> {
    Some(match (name, scalar) {
        ("add", "u32" | "s32") => Reduction::Add,
        ("and", "b32") => Reduction::And,
        ("or", "b32") => Reduction::Or,
        ("xor", "b32") => Reduction::Xor,
        ("min", "u32") => Reduction::MinUnsigned,
        ("max", "u32") => Reduction::MaxUnsigned,
        ("min", "s32") => Reduction::MinSigned,
        ("max", "s32") => Reduction::MaxSigned,
        _ => return None,
    })
}

fn reducer(name: &str, scalar: &str) -> Option<fn(u64, u64) -> u64> {
    Some(match name {
        "add" => |a, b| u32::of(a.wrapping_add(b)).bits(),
        "and" => |a, b| a & b,
        "or" => |a, b| a | b,
        "xor" => |a, b| a ^ b,
        "min" => by_integer!(scalar, wide, T => |a, b| T::of(a).min(T::of(b)).bits()),
        "max" => by_integer!(scalar, wide, T => |a, b| T::of(a).max(T::of(b)).bits()),
        _ => return None,
    })
}
