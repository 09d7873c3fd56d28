//! Announcements of writes: every effect of the loop is one, is harmless, or is refused.

use std::collections::BTreeSet;

use crate::callee::{CallChain, declared, written_arguments};
use crate::directive::{Directive, DirectiveOrder};
use crate::effect::{Effect, EffectKind, WrittenObject, effects, object, pointee};
use crate::element::VariableForm;
use crate::error::Refusal;
use crate::nest::{CountedLoop, counted_loops};
use crate::node::SyntaxNode;
use crate::program::{Program, VersionedVariable};

/// The announcement of a write.
pub(crate) struct Touch<'a> {
    pub(crate) versioned: &'a VersionedVariable<'a>,
    /// The expression that writes, or calls.
    pub(crate) node: &'a SyntaxNode,
    pub(crate) reach: TouchReach<'a>,
}

/// The values that a write reaches.
pub(crate) enum TouchReach<'a> {
    /// Values at the ends of loops, and all between them. Without loops it is one value.
    Nest { place: &'a SyntaxNode, loops: Vec<CountedLoop<'a>> },
    /// All values.
    Whole,
}

/// Collects the announcements of a program.
pub(crate) fn touches<'a>(program: &'a Program<'a>, directives: &[Directive]) -> Result<Vec<Touch<'a>>, Vec<Refusal>> {
    let statement = program.main_loop.statement;
    let mut locals = declared(statement);
    locals.insert(program.main_loop.variable.id.as_str());
    let walk = LoopWalk { program, locals };
    let mut found = Vec::new();
    statement.inner.iter().skip(1).for_each(|part| effects(part, &mut found));
    let mut touches = Vec::new();
    let mut refusals: Vec<Refusal> = walk.pragmas(directives);
    for effect in &found {
        match walk.effect(effect) {
            Ok(found) => touches.extend(found),
            Err(refusal) => refusals.push(refusal),
        }
    }
    refusals.extend(walk.moved_variables());
    refusals.sort();
    refusals.dedup();
    if refusals.is_empty() { Ok(touches) } else { Err(refusals) }
}

struct LoopWalk<'a> {
    program: &'a Program<'a>,
    /// Variables that begin and end with an iteration, and the variable of the loop.
    locals: BTreeSet<&'a str>,
}

impl<'a> LoopWalk<'a> {
    fn effect(&self, effect: &Effect<'a>) -> Result<Vec<Touch<'a>>, Refusal> {
        match &effect.kind {
            EffectKind::Write(place) => {
                let versioned = self.written(effect.node, object(place))?;
                versioned.map(|versioned| self.nest(versioned, effect, place)).into_iter().collect()
            }
            EffectKind::Call(function, arguments) => self.call(effect.node, *function, arguments),
            // Refused with all other places that may move a pointer; harmless otherwise.
            EffectKind::Address(_) => Ok(Vec::new()),
            EffectKind::Opaque(what) => Err(self.refusal(effect.node, format!("{what}, which cannot be followed"))),
        }
    }

    fn refusal(&self, node: &SyntaxNode, what: impl Into<String>) -> Refusal {
        let at = node.span.map_or(self.program.main_loop.directive.start, |span| span.start);
        self.program.refusal(at, what)
    }

    /// Returns the versioned array that is written; `None` if the write needs no announcement.
    fn written(
        &self,
        node: &SyntaxNode,
        written: WrittenObject<'a>,
    ) -> Result<Option<&'a VersionedVariable<'a>>, Refusal> {
        match written {
            WrittenObject::Variable(variable) if self.locals.contains(variable.id.as_str()) => Ok(None),
            WrittenObject::Variable(variable) => match self.program.versioned(variable) {
                Some(versioned) if versioned.element.form == VariableForm::Array => Ok(Some(versioned)),
                Some(versioned) if versioned.element.form == VariableForm::Value => Ok(None),
                // Refused with all other places that move it.
                Some(_) => Ok(None),
                None => {
                    let what =
                        format!("{} is written in the loop, and is neither versioned nor its own", variable.name);
                    Err(self.refusal(node, what))
                }
            },
            WrittenObject::Pointee(pointer) => match self.program.versioned(pointer) {
                Some(versioned) if versioned.element.form == VariableForm::Pointer => Ok(Some(versioned)),
                _ => {
                    let what = format!("a write through {}, which may point to a versioned array", pointer.name);
                    Err(self.refusal(node, what))
                }
            },
            WrittenObject::Unknown => Err(self.refusal(node, "a write to a place that cannot be seen")),
        }
    }

    fn nest(
        &self,
        versioned: &'a VersionedVariable<'a>,
        effect: &Effect<'a>,
        place: &'a SyntaxNode,
    ) -> Result<Touch<'a>, Refusal> {
        let mut inside = Vec::new();
        effects(place, &mut inside);
        inside.retain(|effect| !matches!(effect.kind, EffectKind::Address(_)));
        if !inside.is_empty() {
            return Err(self.refusal(effect.node, "the place that is written is found by a write or a call"));
        }
        if effect.node.starts_elsewhere() {
            return Err(self.refusal(effect.node, format!("{} is written by a macro", versioned.variable.name)));
        }
        let loops = counted_loops(place, &effect.loops);
        let reach = TouchReach::Nest { place, loops };
        Ok(Touch { versioned, node: effect.node, reach })
    }

    fn call(
        &self,
        node: &'a SyntaxNode,
        function: Option<&'a SyntaxNode>,
        arguments: &'a [SyntaxNode],
    ) -> Result<Vec<Touch<'a>>, Refusal> {
        let through = written_arguments(self.program, function, &mut CallChain::default());
        let through = through.map_err(|what| self.refusal(node, what))?;
        let mut touches = Vec::new();
        for (_, argument) in arguments.iter().enumerate().filter(|(index, _)| through.contains(index)) {
            let Some(versioned) = self.written(argument, pointee(argument))? else { continue };
            if node.starts_elsewhere() {
                return Err(self.refusal(node, format!("{} is written by a macro", versioned.variable.name)));
            }
            touches.push(Touch { versioned, node, reach: TouchReach::Whole });
        }
        Ok(touches)
    }

    /// Refuses pragmas of other tools in the loop: text before their statement would part them.
    fn pragmas(&self, directives: &[Directive]) -> Vec<Refusal> {
        let span = self.program.main_loop.statement.span;
        let is_inside = |at: usize| span.is_some_and(|span| (span.start..span.end).contains(&at));
        let foreign = directives
            .iter()
            .filter(|directive| directive.order == DirectiveOrder::Foreign && is_inside(directive.start));
        foreign.map(|pragma| self.program.refusal(pragma.start, "a pragma of another tool in the loop")).collect()
    }

    /// Refuses versioned pointers that get another address, or whose memory is freed, before the
    /// loop ends.
    fn moved_variables(&self) -> Vec<Refusal> {
        let Some(main) = self.program.functions.get("main") else { return Vec::new() };
        let mut found = Vec::new();
        effects(main, &mut found);
        let end = self.program.main_loop.statement.span.map_or(0, |span| span.end);
        let moved = found.iter().filter_map(|effect| {
            let at = effect.node.start();
            let is_pointer = |variable: &SyntaxNode| {
                let versioned = self.program.versioned(variable)?;
                let is_lent = (versioned.directive.end..end).contains(&at);
                (is_lent && versioned.element.form == VariableForm::Pointer).then(|| variable.name.clone())
            };
            let name = match &effect.kind {
                EffectKind::Write(place) => match object(place) {
                    WrittenObject::Variable(variable) => is_pointer(variable),
                    _ => None,
                },
                EffectKind::Address(place) => place.named().and_then(is_pointer),
                EffectKind::Call(Some(function), arguments) if matches!(function.name.as_str(), "free" | "realloc") => {
                    match arguments.first().map(pointee) {
                        Some(WrittenObject::Pointee(variable)) => is_pointer(variable),
                        _ => None,
                    }
                }
                _ => None,
            };
            name.map(|name| self.refusal(effect.node, format!("{name} gets other memory while it is versioned")))
        });
        moved.collect()
    }
}
