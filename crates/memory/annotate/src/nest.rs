//! Ranges of writes: the loops around a write whose bounds say which values it reaches.
//!
//! An index that is linear in the variable of each loop has its least and largest value at the ends
//! of their ranges. One announcement of all values between them then stands before the loops.

use std::collections::BTreeSet;

use crate::callee::declared;
use crate::effect::{Effect, EffectKind, WrittenObject, effects, object};
use crate::node::SyntaxNode;
use crate::program::initialised;

/// A loop that counts up by the variable, from `low` to `high`.
pub(crate) struct CountedLoop<'a> {
    pub(crate) statement: &'a SyntaxNode,
    pub(crate) variable: &'a SyntaxNode,
    pub(crate) low: &'a SyntaxNode,
    pub(crate) high: &'a SyntaxNode,
    /// `high` is reached.
    pub(crate) is_inclusive: bool,
}

/// Loops of a nest whose ends make an announcement: each of them doubles the corners.
const LOOPS_MOST: usize = 3;

/// Returns the loops around a write that its announcement can stand before, the innermost first.
pub(crate) fn counted_loops<'a>(place: &'a SyntaxNode, loops: &[&'a SyntaxNode]) -> Vec<CountedLoop<'a>> {
    let mut nest: Vec<CountedLoop<'a>> = Vec::new();
    for statement in loops.iter().rev().take(LOOPS_MOST) {
        let counted = counted(statement).filter(|counted| fits(counted, place, &nest));
        let Some(counted) = counted else { break };
        nest.push(counted);
    }
    nest
}

fn counted(statement: &SyntaxNode) -> Option<CountedLoop<'_>> {
    let [init, declared, condition, increment, _] = &statement.inner[..] else { return None };
    let (variable, low) = initialised(init).filter(|_| declared.kind.is_empty())?;
    let is_variable = |node: &SyntaxNode| node.named().is_some_and(|named| named.id == variable.id);
    let is_inclusive = condition.opcode == "<=";
    let [left, high] = &condition.inner[..] else { return None };
    let is_bound = condition.is("BinaryOperator") && (is_inclusive || condition.opcode == "<") && is_variable(left);
    let [counter, step @ ..] = &increment.inner[..] else { return None };
    let is_count = match (increment.opcode.as_str(), step) {
        ("++", []) => true,
        ("+=", [step]) => step.bare().is("IntegerLiteral"),
        _ => false,
    };
    let is_counted = is_bound && is_count && is_variable(counter);
    is_counted.then_some(CountedLoop { statement, variable, low, high, is_inclusive })
}

/// Returns whether the values that a write reaches in a loop are known before the loop.
fn fits(counted: &CountedLoop<'_>, place: &SyntaxNode, inner: &[CountedLoop<'_>]) -> bool {
    let changed = changed_variables(counted);
    let own = counted.variable.id.as_str();
    if changed.contains(own) {
        return false;
    }
    let is_steady = |node: &SyntaxNode, of: &[&str]| {
        let used = used_variables(node);
        degree(node, None) == Some(0) && used.iter().all(|id| !changed.contains(id) && !of.contains(id))
    };
    let bounds = inner.iter().flat_map(|inner| [inner.low, inner.high]);
    let are_steady = bounds.chain([counted.low, counted.high]).all(|bound| is_steady(bound, &[own]));
    let counters: Vec<&str> = inner.iter().map(|inner| inner.variable.id.as_str()).chain([own]).collect();
    let indices = indices(place);
    let are_linear = indices.as_ref().is_some_and(|indices| {
        indices.iter().all(|index| {
            let others = used_variables(index).into_iter().filter(|id| !counters.contains(id));
            counters.iter().all(|id| degree(index, Some(id)).is_some())
                && others.into_iter().all(|id| !changed.contains(id))
        })
    });
    are_steady && are_linear
}

/// Returns the indices of a write to `a[i]..[j]`; `None` for one of another form.
fn indices(place: &SyntaxNode) -> Option<Vec<&SyntaxNode>> {
    let bare = place.bare();
    if bare.is("DeclRefExpr") {
        return Some(Vec::new());
    }
    let [base, index] = &bare.inner[..] else { return None };
    let mut found = indices(base).filter(|_| bare.is("ArraySubscriptExpr"))?;
    found.push(index);
    Some(found)
}

/// Returns variables that may change or come to be while the loop runs, other than its own counter
/// by its increment.
fn changed_variables<'a>(counted: &CountedLoop<'a>) -> BTreeSet<&'a str> {
    let statement = counted.statement;
    let mut found = Vec::new();
    // The condition and the body; counters of inner loops are changed by their own parts.
    [2, 4].iter().filter_map(|part| statement.inner.get(*part)).for_each(|part| effects(part, &mut found));
    let written = found.iter().filter_map(|Effect { kind, .. }| match kind {
        // Who has its address may change it.
        EffectKind::Write(place) | EffectKind::Address(place) => match object(place) {
            WrittenObject::Variable(variable) => Some(variable.id.as_str()),
            _ => None,
        },
        _ => None,
    });
    let mut changed: BTreeSet<&str> = written.collect();
    let own = counted.variable.id.as_str();
    changed.extend(declared(statement).into_iter().filter(|id| *id != own));
    changed
}

/// Returns the variables of an expression, by their ids.
fn used_variables(node: &SyntaxNode) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    node.each(&mut |node| {
        found.extend(node.named().filter(|decl| !decl.is("EnumConstantDecl")).map(|decl| decl.id.as_str()));
    });
    found
}

/// Returns the degree of an integer expression in a variable, 0 or 1; `None` if it is higher, or if
/// the expression is more than sums and products of variables and constants.
fn degree(node: &SyntaxNode, variable: Option<&str>) -> Option<u32> {
    let bare = node.bare();
    let is_macro = bare.starts_elsewhere();
    let part = |index: usize| bare.inner.get(index).and_then(|part| degree(part, variable));
    match (bare.kind.as_str(), bare.opcode.as_str()) {
        ("IntegerLiteral" | "CharacterLiteral", _) => Some(0),
        // What a macro is made of has no place of its own in the source.
        ("DeclRefExpr", _) if !is_macro => bare.named().map(|named| u32::from(variable == Some(named.id.as_str()))),
        ("CStyleCastExpr", _) if is_wide_cast(bare) => part(0),
        ("BinaryOperator", "+" | "-") => Some(part(0)?.max(part(1)?)),
        ("BinaryOperator", "*") => Some(part(0)? + part(1)?).filter(|degree| *degree <= 1),
        // Before the loop, a divisor may be 0 that is none in it.
        ("BinaryOperator", "/" | "%") if bare.inner.get(1).is_some_and(|by| by.bare().is("IntegerLiteral")) => {
            part(0).filter(|degree| *degree == 0)
        }
        _ => None,
    }
}

/// Returns whether a cast keeps all bits of an integer.
fn is_wide_cast(cast: &SyntaxNode) -> bool {
    const WIDE: [&str; 4] = ["long", "long long", "unsigned long", "unsigned long long"];
    matches!(cast.cast_kind.as_str(), "IntegralCast" | "NoOp") && WIDE.contains(&cast.type_text.plain())
}
