//! The parts of a source that its directives name.

use std::collections::BTreeMap;

use crate::directive::{Directive, DirectiveOrder, line_of};
use crate::element::{VariableForm, VersionedType, element, type_names};
use crate::error::Refusal;
use crate::node::SyntaxNode;

/// A source with directives.
pub(crate) struct Program<'a> {
    pub(crate) source: &'a str,
    /// Functions of this source that have a body.
    pub(crate) functions: BTreeMap<&'a str, &'a SyntaxNode>,
    pub(crate) memory: MemoryDirective<'a>,
    pub(crate) versioned: Vec<VersionedVariable<'a>>,
    pub(crate) main_loop: MainLoop<'a>,
}

/// The directive that opens the file.
pub(crate) struct MemoryDirective<'a> {
    pub(crate) directive: &'a Directive,
    /// The options, with their quotes.
    pub(crate) options: &'a str,
}

/// A variable whose values have versions.
pub(crate) struct VersionedVariable<'a> {
    pub(crate) directive: &'a Directive,
    pub(crate) variable: &'a SyntaxNode,
    pub(crate) element: VersionedType,
    /// The number of values of a pointer.
    pub(crate) count: Option<&'a str>,
}

/// The loop after whose iterations versions are made.
pub(crate) struct MainLoop<'a> {
    pub(crate) directive: &'a Directive,
    pub(crate) statement: &'a SyntaxNode,
    pub(crate) variable: &'a SyntaxNode,
    /// The first value of the variable.
    pub(crate) first: &'a SyntaxNode,
    pub(crate) increment: &'a SyntaxNode,
    /// Functions that may be called in it.
    pub(crate) calls: &'a [String],
}

/// A statement of `main` and its place.
struct MainBody<'a> {
    source: &'a str,
    statements: Vec<&'a SyntaxNode>,
    /// Variables of the file and of `main`, outside of its blocks.
    variables: Vec<&'a SyntaxNode>,
}

impl<'a> Program<'a> {
    /// Finds what the directives name.
    pub(crate) fn new(source: &'a str, tree: &'a SyntaxNode, directives: &'a [Directive]) -> Result<Self, Refusal> {
        let in_source = |decl: &&SyntaxNode| decl.span.is_some();
        let functions: BTreeMap<&str, &SyntaxNode> = tree
            .inner
            .iter()
            .filter(in_source)
            .filter(|decl| decl.body().is_some())
            .map(|decl| (decl.name.as_str(), decl))
            .collect();
        let nowhere = || Refusal { line: 1, what: "no main is in this file: directives stand there".to_owned() };
        let main = functions.get("main").and_then(|main| main.body()).ok_or_else(nowhere)?;
        let globals = tree.inner.iter().filter(in_source).filter(|decl| decl.is("VarDecl"));
        let statements: Vec<&SyntaxNode> = main.inner.iter().collect();
        let declared = statements.iter().filter(|statement| statement.is("DeclStmt"));
        let locals = declared.flat_map(|statement| &statement.inner).filter(|decl| decl.is("VarDecl"));
        let body = MainBody { source, variables: globals.chain(locals).collect(), statements };
        body.check_places(main, directives)?;
        let memory = body.memory(directives)?;
        let main_loop = body.main_loop(directives)?;
        let names = type_names(tree);
        if !element(main_loop.variable, &names).is_some_and(|counter| counter.is_integer()) {
            let what = format!("{} is no integer of 8, 32 or 64 bits", main_loop.variable.name);
            return Err(body.refusal(main_loop.directive.start, what));
        }
        let versioned = directives.iter().filter_map(|directive| match &directive.order {
            DirectiveOrder::Versioned { name, count } => {
                let variable = body.variable(name, directive);
                Some(variable.and_then(|variable| {
                    let element = element(variable, &names);
                    let element = element.ok_or_else(|| body.refusal(directive.start, no_versions(variable)))?;
                    let needs_count = element.form == VariableForm::Pointer;
                    if needs_count && !body.is_local(variable) {
                        let what = "is a pointer of the file, which any function may move: use one of main";
                        return Err(body.refusal(directive.start, format!("{name} {what}")));
                    }
                    if needs_count != count.is_some() {
                        let what =
                            if needs_count { "needs its number of values" } else { "has its number in its type" };
                        return Err(body.refusal(directive.start, format!("{name} {what}")));
                    }
                    Ok(VersionedVariable { directive, variable, element, count: count.as_deref() })
                }))
            }
            _ => None,
        });
        let versioned = versioned.collect::<Result<Vec<VersionedVariable<'_>>, Refusal>>()?;
        let program = Self { source, functions, memory, versioned, main_loop };
        body.check_order(&program)?;
        Ok(program)
    }

    /// Returns the versioned variable of a declaration.
    pub(crate) fn versioned(&self, variable: &SyntaxNode) -> Option<&VersionedVariable<'a>> {
        self.versioned.iter().find(|versioned| versioned.variable.id == variable.id)
    }

    /// Returns a refusal of the line of a byte.
    pub(crate) fn refusal(&self, at: usize, what: impl Into<String>) -> Refusal {
        Refusal { line: line_of(self.source, at), what: what.into() }
    }
}

fn no_versions(variable: &SyntaxNode) -> String {
    format!(
        "{}: values of type {} have no versions; double, float and integers of 8, 32 and 64 bits have",
        variable.name, variable.type_text.qual_type
    )
}

impl<'a> MainBody<'a> {
    fn refusal(&self, at: usize, what: impl Into<String>) -> Refusal {
        Refusal { line: line_of(self.source, at), what: what.into() }
    }

    /// Refuses directives that are not between the statements of `main`.
    fn check_places(&self, main: &SyntaxNode, directives: &[Directive]) -> Result<(), Refusal> {
        let is_inside =
            |node: &SyntaxNode, at: usize| node.span.is_some_and(|span| (span.start..span.end).contains(&at));
        for directive in directives.iter().filter(|directive| directive.order != DirectiveOrder::Foreign) {
            let at = directive.start;
            if !is_inside(main, at) || self.statements.iter().any(|statement| is_inside(statement, at)) {
                let what = "directives stand in main, in none of its blocks: a part that runs twice would find the \
                            versions of its first run";
                return Err(self.refusal(at, what));
            }
        }
        Ok(())
    }

    fn memory(&self, directives: &'a [Directive]) -> Result<MemoryDirective<'a>, Refusal> {
        let mut found = directives.iter().filter_map(|directive| match &directive.order {
            DirectiveOrder::Memory(options) => Some(MemoryDirective { directive, options }),
            _ => None,
        });
        match (found.next(), found.next()) {
            (Some(memory), None) => Ok(memory),
            (_, Some(second)) => Err(self.refusal(second.directive.start, "a second memory: a program has one")),
            (None, _) => Err(self.refusal(0, "#pragma recoup memory(\"options\") is missing")),
        }
    }

    fn main_loop(&self, directives: &'a [Directive]) -> Result<MainLoop<'a>, Refusal> {
        let mut found = directives.iter().filter(|directive| matches!(directive.order, DirectiveOrder::Loop { .. }));
        let directive = match (found.next(), found.next()) {
            (Some(directive), None) => directive,
            (_, Some(second)) => return Err(self.refusal(second.start, "a second loop: a program has one")),
            (None, _) => return Err(self.refusal(0, "#pragma recoup loop(name) is missing")),
        };
        let DirectiveOrder::Loop { name, calls } = &directive.order else {
            return Err(self.refusal(directive.start, "no loop"));
        };
        let next = self.statements.iter().find(|statement| statement.start() > directive.start);
        let statement = next.filter(|next| next.is("ForStmt"));
        let refuse = |what: &str| self.refusal(directive.start, what);
        let statement = *statement.ok_or_else(|| refuse("loop(name) stands before a for statement"))?;
        let [init, _, _, increment, _] = &statement.inner[..] else { return Err(refuse("a for of unknown form")) };
        let (variable, first) = initialised(init).filter(|(variable, _)| variable.name == *name).ok_or_else(|| {
            refuse("the loop does not begin by giving the variable of loop(name) its first value, and that alone")
        })?;
        if init.starts_elsewhere() || increment.starts_elsewhere() {
            return Err(refuse("the loop has no increment, or its parts come from a macro"));
        }
        Ok(MainLoop { directive, statement, variable, first, increment, calls })
    }

    /// Returns whether a variable belongs to `main`.
    fn is_local(&self, variable: &SyntaxNode) -> bool {
        let declared = self.statements.iter().filter(|statement| statement.is("DeclStmt"));
        declared.flat_map(|statement| &statement.inner).any(|decl| decl.id == variable.id)
    }

    /// Finds a variable that a directive sees.
    fn variable(&self, name: &str, directive: &Directive) -> Result<&'a SyntaxNode, Refusal> {
        let seen = self.variables.iter().rev().find(|decl| decl.name == name && decl.start() < directive.start);
        let unseen = || self.refusal(directive.start, format!("{name} is no variable of main or of the file"));
        seen.copied().ok_or_else(unseen)
    }

    /// Refuses directives in another order than memory, versioned, loop, and variables named twice.
    fn check_order(&self, program: &Program<'_>) -> Result<(), Refusal> {
        let end = program.main_loop.directive.start;
        let begin = program.memory.directive.start;
        if begin > end || program.versioned.is_empty() {
            return Err(self.refusal(end, "memory and at least one versioned stand before loop"));
        }
        for (index, versioned) in program.versioned.iter().enumerate() {
            let at = versioned.directive.start;
            if !(begin..end).contains(&at) {
                return Err(self.refusal(at, "versioned stands between memory and loop"));
            }
            if program.versioned[..index].iter().any(|other| other.variable.id == versioned.variable.id) {
                return Err(self.refusal(at, format!("{} is versioned already", versioned.variable.name)));
            }
        }
        Ok(())
    }
}

/// Returns the variable that the first part of a `for` gives a value, and the value.
pub(crate) fn initialised(init: &SyntaxNode) -> Option<(&SyntaxNode, &SyntaxNode)> {
    match (init.kind.as_str(), &init.inner[..]) {
        ("DeclStmt", [variable]) if variable.is("VarDecl") => variable.inner.last().map(|first| (variable, first)),
        ("BinaryOperator", [place, first]) if init.opcode == "=" => place.named().map(|variable| (variable, first)),
        _ => None,
    }
}
