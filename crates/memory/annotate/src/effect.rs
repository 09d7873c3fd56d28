//! Effects of statements: what they write, and what they call.

use crate::node::SyntaxNode;

/// The object that an expression writes to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WrittenObject<'a> {
    /// The variable itself, or a part of it.
    Variable(&'a SyntaxNode),
    /// Values that a pointer variable points to.
    Pointee(&'a SyntaxNode),
    /// Another object.
    Unknown,
}

/// Something that a statement does.
pub(crate) struct Effect<'a> {
    pub(crate) kind: EffectKind<'a>,
    /// The whole expression.
    pub(crate) node: &'a SyntaxNode,
    /// The `for` statements in whose bodies it is, the outermost first.
    pub(crate) loops: Vec<&'a SyntaxNode>,
}

/// The kind of an effect.
pub(crate) enum EffectKind<'a> {
    /// Writes to this expression.
    Write(&'a SyntaxNode),
    /// Calls this function with these arguments; `None` is a function that a pointer names.
    Call(Option<&'a SyntaxNode>, &'a [SyntaxNode]),
    /// Takes the address of this expression.
    Address(&'a SyntaxNode),
    /// Leaves for another place, or does something that cannot be seen.
    Opaque(&'static str),
}

/// The place of the body among the parts of a `for`.
const FOR_BODY: usize = 4;

/// Collects the effects of a node in the order of the source.
pub(crate) fn effects<'a>(node: &'a SyntaxNode, found: &mut Vec<Effect<'a>>) {
    collect(node, &mut Vec::new(), found);
}

fn collect<'a>(node: &'a SyntaxNode, loops: &mut Vec<&'a SyntaxNode>, found: &mut Vec<Effect<'a>>) {
    if let Some(kind) = effect(node) {
        found.push(Effect { kind, node, loops: loops.clone() });
    }
    for (part, child) in node.inner.iter().enumerate() {
        // The parts before the body also run where the body does not.
        let is_body = node.is("ForStmt") && part == FOR_BODY;
        if is_body {
            loops.push(node);
        }
        collect(child, loops, found);
        if is_body {
            loops.pop();
        }
    }
}

fn effect(node: &SyntaxNode) -> Option<EffectKind<'_>> {
    let first = node.inner.first();
    match (node.kind.as_str(), node.opcode.as_str()) {
        ("BinaryOperator", "=") | ("CompoundAssignOperator", _) | ("UnaryOperator", "++" | "--") => {
            first.map(EffectKind::Write)
        }
        ("UnaryOperator", "&") => first.map(EffectKind::Address),
        ("CallExpr", _) => {
            let function = first.and_then(SyntaxNode::named).filter(|decl| decl.is("FunctionDecl"));
            Some(EffectKind::Call(function, node.inner.get(1..).unwrap_or_default()))
        }
        ("GotoStmt" | "IndirectGotoStmt" | "LabelStmt", _) => Some(EffectKind::Opaque("a jump")),
        ("AtomicExpr", _) => Some(EffectKind::Opaque("an atomic access")),
        ("GCCAsmStmt" | "MSAsmStmt", _) => Some(EffectKind::Opaque("assembly")),
        _ => None,
    }
}

/// Returns the object that an expression names.
pub(crate) fn object(place: &SyntaxNode) -> WrittenObject<'_> {
    let bare = place.bare();
    let first = bare.inner.first();
    match (bare.kind.as_str(), first) {
        ("DeclRefExpr", _) => bare.named().map_or(WrittenObject::Unknown, WrittenObject::Variable),
        ("MemberExpr", Some(owner)) if bare.is_arrow => pointee(owner),
        ("MemberExpr", Some(owner)) => object(owner),
        ("ArraySubscriptExpr", Some(base)) => pointee(base),
        ("UnaryOperator", Some(pointer)) if bare.opcode == "*" => pointee(pointer),
        _ => WrittenObject::Unknown,
    }
}

/// Returns the object that a pointer points to.
pub(crate) fn pointee(pointer: &SyntaxNode) -> WrittenObject<'_> {
    let first = pointer.inner.first();
    match (pointer.kind.as_str(), first) {
        ("ImplicitCastExpr", Some(array)) if pointer.cast_kind == "ArrayToPointerDecay" => object(array),
        ("ImplicitCastExpr" | "ParenExpr", Some(inner)) => pointee(inner),
        ("DeclRefExpr", _) => pointer.named().map_or(WrittenObject::Unknown, WrittenObject::Pointee),
        ("UnaryOperator", Some(place)) if pointer.opcode == "&" => object(place),
        ("BinaryOperator", Some(_)) if matches!(pointer.opcode.as_str(), "+" | "-") => {
            let is_pointer = |node: &&SyntaxNode| node.type_text.plain().ends_with('*');
            pointer.inner.iter().find(is_pointer).map_or(WrittenObject::Unknown, pointee)
        }
        _ => WrittenObject::Unknown,
    }
}
