//! Instructions that threads execute together: barriers, shuffles, votes, reductions.

use super::super::error::ParseError;
use super::super::instruction::{Action, Barrier, BarrierReduction, Collective, CollectiveKind, Gathering, Shuffle};
use super::super::names::Constant;
use super::super::operand::{Resolver, Width};
use super::super::register::NO_REGISTER;
use super::super::syntax::OperandSyntax;

const WORD: Width = Width::Exactly(32);

/// Decodes an instruction of several threads.
pub(super) fn decode(resolver: &mut Resolver<'_, '_, '_>) -> Result<Action, ParseError> {
    let statement = resolver.statement;
    match *statement.words.as_slice() {
        ["bar", "warp", "sync"] => {
            let [mask] = resolver.operands()?;
            Ok(Action::Collective(Box::new(blank(resolver, CollectiveKind::Barrier, mask)?)))
        }
        ["bar", "sync"] => {
            let [number] = resolver.operands()?;
            barrier(resolver, number, None)
        }
        ["bar", "red", "or", "pred"] => barrier_reduction(resolver),
        ["shfl", "sync", how, "b32"] => shuffle(resolver, how),
        ["vote", "sync", "any", "pred"] => vote(resolver, Gathering::Any, 1),
        ["vote", "sync", "ballot", "b32"] => vote(resolver, Gathering::Lanes, 32),
        ["redux", "sync", "add", "u32"] => reduce(resolver, CollectiveKind::Add),
        ["redux", "sync", "or", "b32"] => reduce(resolver, CollectiveKind::Or),
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

fn barrier_reduction(resolver: &mut Resolver<'_, '_, '_>) -> Result<Action, ParseError> {
    let [target, number, predicate] = resolver.operands()?;
    let target = resolver.register(target, 1)?;
    let predicate = resolver.predicate(predicate)?;
    barrier(resolver, number, Some(BarrierReduction { predicate, target }))
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

fn vote(resolver: &mut Resolver<'_, '_, '_>, how: Gathering, bits: u32) -> Result<Action, ParseError> {
    let [target, source, mask] = resolver.operands()?;
    let mut found = blank(resolver, CollectiveKind::Vote(how), mask)?;
    let predicate = resolver.predicate(source)?;
    found.source = predicate.operand;
    found.is_source_negated = predicate.is_negated;
    found.target = resolver.register(target, bits)?;
    Ok(Action::Collective(Box::new(found)))
}

fn reduce(resolver: &mut Resolver<'_, '_, '_>, how: CollectiveKind) -> Result<Action, ParseError> {
    let [target, source, mask] = resolver.operands()?;
    let mut found = blank(resolver, how, mask)?;
    found.source = resolver.source(source, WORD)?;
    found.target = resolver.register(target, 32)?;
    Ok(Action::Collective(Box::new(found)))
}
