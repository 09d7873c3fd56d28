//! Functions that a loop calls: the parameters they write through.

use std::collections::BTreeSet;

use crate::directive::line_of;
use crate::effect::{Effect, EffectKind, WrittenObject, effects, object, pointee};
use crate::known::written_by_library;
use crate::node::SyntaxNode;
use crate::program::Program;

/// The parameters of a function that it writes through, by their place.
pub(crate) type WrittenArguments = BTreeSet<usize>;

/// Functions that are being looked at: the way from the loop.
#[derive(Default)]
pub(crate) struct CallChain<'a>(Vec<&'a str>);

/// Returns the arguments that a called function writes through. `Err` says why that is not known.
pub(crate) fn written_arguments<'a>(
    program: &Program<'a>,
    function: Option<&'a SyntaxNode>,
    chain: &mut CallChain<'a>,
) -> Result<WrittenArguments, String> {
    let name = function.ok_or("a pointer names the function that is called")?.name.as_str();
    if let Some(own) = program.functions.get(name) {
        if chain.0.contains(&name) {
            return Err(format!("{name} calls itself"));
        }
        chain.0.push(name);
        let written = written_parameters(program, own, chain);
        chain.0.pop();
        return written;
    }
    if program.main_loop.calls.iter().any(|allowed| allowed == name) {
        return Ok(WrittenArguments::new());
    }
    let known = written_by_library(name).map(|written| written.iter().copied().collect());
    known.ok_or_else(|| {
        format!(
            "{name} is called, and is not known: if it keeps no state and writes to none, say loop(..) calls({name})"
        )
    })
}

fn written_parameters<'a>(
    program: &Program<'a>,
    function: &'a SyntaxNode,
    chain: &mut CallChain<'a>,
) -> Result<WrittenArguments, String> {
    let parameters: Vec<&SyntaxNode> = function.inner.iter().filter(|decl| decl.is("ParmVarDecl")).collect();
    let locals = declared(function);
    let mut found = Vec::new();
    effects(function, &mut found);
    let mut written = WrittenArguments::new();
    for Effect { kind, node, .. } in &found {
        let refuse = |what: String| {
            let line = line_of(program.source, node.start());
            format!("{} is called, and {what} in line {line}", function.name)
        };
        let mut write = |written_object: WrittenObject<'_>| match written_object {
            WrittenObject::Variable(variable) if locals.contains(variable.id.as_str()) => Ok(()),
            WrittenObject::Variable(variable) => Err(refuse(format!("writes {}", variable.name))),
            WrittenObject::Pointee(pointer) => {
                let place = parameters.iter().position(|parameter| parameter.id == pointer.id);
                let unseen = || refuse(format!("writes through {}", pointer.name));
                written.insert(place.ok_or_else(unseen)?);
                Ok(())
            }
            WrittenObject::Unknown => Err(refuse("writes to a place that cannot be seen".to_owned())),
        };
        match kind {
            EffectKind::Write(place) if node.opcode == "=" && moves_parameter(place, &parameters) => {
                return Err(refuse("gives a parameter another address".to_owned()));
            }
            EffectKind::Write(place) => write(object(place))?,
            EffectKind::Call(callee, arguments) => {
                let through = written_arguments(program, *callee, chain).map_err(refuse)?;
                arguments
                    .iter()
                    .enumerate()
                    .filter(|(index, _)| through.contains(index))
                    .try_for_each(|(_, argument)| write(pointee(argument)))?;
            }
            EffectKind::Address(_) | EffectKind::Opaque("a jump") => {}
            EffectKind::Opaque(what) => return Err(refuse(format!("has {what}"))),
        }
    }
    Ok(written)
}

/// Returns whether a place is a parameter that is a pointer.
fn moves_parameter(place: &SyntaxNode, parameters: &[&SyntaxNode]) -> bool {
    let is_pointer = |named: &&SyntaxNode| named.type_text.plain().ends_with('*');
    place.named().filter(is_pointer).is_some_and(|named| parameters.iter().any(|known| known.id == named.id))
}

/// Returns the variables that are declared below a node and do not outlive it, by their ids.
pub(crate) fn declared(node: &SyntaxNode) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    node.each(&mut |node| {
        let is_variable = node.is("VarDecl") || node.is("ParmVarDecl");
        if is_variable && node.storage_class != "static" && node.storage_class != "extern" {
            found.insert(node.id.as_str());
        }
    });
    found
}
