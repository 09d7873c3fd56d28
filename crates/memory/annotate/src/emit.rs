//! The text of the annotated program: the source, with insertions. Lines keep their numbers.

use std::collections::BTreeMap;

use crate::directive::Directive;
use crate::element::VariableForm;
use crate::nest::CountedLoop;
use crate::node::SyntaxNode;
use crate::program::{Program, VersionedVariable};
use crate::span_text::{Substitute, text, text_with, whole_span};
use crate::touch::{Touch, TouchReach};

/// Text in the place of bytes of the source; an insertion if there are none.
struct Edit {
    start: usize,
    end: usize,
    text: String,
    /// Order among insertions at one place, the lowest first.
    rank: i64,
}

/// Writes the program. `file` is the name of the source in messages of the compiler.
pub(crate) fn emit(program: &Program<'_>, touches: &[Touch<'_>], file: &str) -> String {
    let mut edits = frame(program);
    let mut nests: BTreeMap<usize, (&SyntaxNode, Vec<String>)> = BTreeMap::new();
    for touch in touches {
        let announcement = announcement(program, touch);
        match &touch.reach {
            TouchReach::Nest { loops, .. } if !loops.is_empty() => {
                let Some(outermost) = loops.last().map(|counted| counted.statement) else { continue };
                let of_nest = &mut nests.entry(outermost.start()).or_insert((outermost, Vec::new())).1;
                let guarded = format!("if ({}) {announcement};", guard(program.source, loops));
                if !of_nest.contains(&guarded) {
                    of_nest.push(guarded);
                }
            }
            _ => edits.extend(around(touch.node, &format!("({announcement}, "), ")", program.source)),
        }
    }
    for (statement, announcements) in nests.values() {
        edits.extend(around(statement, &format!("{{ {} ", announcements.join(" ")), " }", program.source));
    }
    let name = file.replace('\\', "\\\\").replace('"', "\\\"");
    format!("#include <recoup_annotate.h>\n#line 1 \"{name}\"\n{}", applied(program.source, edits))
}

/// Text before and behind an expression or a statement.
fn around(node: &SyntaxNode, before: &str, behind: &str, source: &str) -> [Edit; 2] {
    let start = node.start();
    let end = statement_end(source, node);
    let length = (end - start) as i64;
    // What ends here is closed before anything opens; the shorter is inside of the longer.
    let open = Edit { start, end: start, text: before.to_owned(), rank: i64::MAX - length };
    [open, Edit { start: end, end, text: behind.to_owned(), rank: length - i64::MAX }]
}

/// Returns the end of a node, with the semicolon of a statement that ends with one.
fn statement_end(source: &str, node: &SyntaxNode) -> usize {
    let end = whole_span(source, node).map_or(0, |span| span.end);
    let mut last = node;
    while let ("ForStmt" | "WhileStmt" | "IfStmt" | "LabelStmt" | "SwitchStmt", Some(inner)) =
        (last.kind.as_str(), last.inner.last())
    {
        last = inner;
    }
    let has_semicolon =
        !std::ptr::eq(last, node) && !matches!(last.kind.as_str(), "CompoundStmt" | "NullStmt" | "DeclStmt");
    let semicolon = source[end..].find(';').filter(|_| has_semicolon);
    semicolon.map_or(end, |at| end + at + 1)
}

/// The edits of the directives and of the loop.
fn frame(program: &Program<'_>) -> Vec<Edit> {
    let main_loop = &program.main_loop;
    let in_place =
        |directive: &Directive, text: String| Edit { start: directive.start, end: directive.end, text, rank: 0 };
    let options = program.memory.options;
    let open = format!("recoup_memory recoup_annotated = recoup_annotated_open({options});");
    let mut edits = vec![in_place(program.memory.directive, open), in_place(main_loop.directive, String::new())];
    edits.extend(program.versioned.iter().map(|versioned| in_place(versioned.directive, lend(versioned))));

    let variable = &main_loop.variable.name;
    let c_type = &main_loop.variable.type_text.qual_type;
    let start = format!("({c_type})recoup_annotated_start(recoup_annotated, (uint64_t)(");
    edits.extend(around(main_loop.first, &start, "))", program.source));
    let step = format!(", recoup_annotated_step(recoup_annotated, (uint64_t){variable})");
    edits.extend(around(main_loop.increment, "", &step, program.source));
    edits.extend(around(main_loop.statement, "", " recoup_annotated_close(recoup_annotated);", program.source));
    edits
}

/// The call that lends a variable, and its number of values.
fn lend(versioned: &VersionedVariable<'_>) -> String {
    let name = &versioned.variable.name;
    let code = versioned.element.code;
    let c_type = &versioned.element.c_type;
    let count = match (versioned.element.form, versioned.count) {
        (VariableForm::Value, _) => {
            return format!("recoup_annotated_lend_value(recoup_annotated, \"{name}\", {code}, &{name});");
        }
        (VariableForm::Pointer, Some(count)) => count.to_owned(),
        _ => format!("sizeof {name} / sizeof({c_type})"),
    };
    format!(
        "const uint64_t recoup_count_{name} = (uint64_t)({count}); \
         recoup_annotated_lend(recoup_annotated, \"{name}\", {code}, {name}, recoup_count_{name});"
    )
}

/// The call that announces a write.
fn announcement(program: &Program<'_>, touch: &Touch<'_>) -> String {
    let name = &touch.versioned.variable.name;
    let TouchReach::Nest { place, loops } = &touch.reach else { return format!("RECOUP_TOUCHED_ALL({name})") };
    let corners = corners(program.source, loops);
    let corners: Vec<String> = corners.iter().map(|at| index(program.source, touch, place, at)).collect();
    format!("RECOUP_TOUCHED({name}, {})", corners.join(", "))
}

/// The ends of a nest: one value for each variable, least or greatest.
fn corners<'a>(source: &str, loops: &[CountedLoop<'a>]) -> Vec<Vec<Substitute<'a>>> {
    let at_corner = |corner: usize| {
        let substitute = |(bit, counted): (usize, &CountedLoop<'a>)| {
            let c_type = &counted.variable.type_text.qual_type;
            let high = text(source, counted.high);
            let text = match (corner >> bit & 1, counted.is_inclusive) {
                (0, _) => format!("({c_type})({})", text(source, counted.low)),
                (_, true) => format!("({c_type})({high})"),
                (_, false) => format!("({c_type})(({high}) - 1)"),
            };
            Substitute { variable: &counted.variable.id, text }
        };
        loops.iter().enumerate().map(substitute).collect()
    };
    (0..1 << loops.len()).map(at_corner).collect()
}

/// The place of a value in its array, counted from 0.
fn index(source: &str, touch: &Touch<'_>, place: &SyntaxNode, at: &[Substitute<'_>]) -> String {
    let bare = place.bare();
    if let ("ArraySubscriptExpr", [base, index]) = (bare.kind.as_str(), &bare.inner[..])
        && base.named().is_some()
    {
        return text_with(source, index, at);
    }
    let variable = touch.versioned.variable;
    let n_extents = variable.type_text.plain().matches('[').count().max(1);
    format!("&{} - &{}{}", text_with(source, place, at), variable.name, "[0]".repeat(n_extents))
}

/// The condition under which no loop of a nest is empty.
fn guard(source: &str, loops: &[CountedLoop<'_>]) -> String {
    let mut runs: Vec<String> = Vec::new();
    for counted in loops {
        let c_type = &counted.variable.type_text.qual_type;
        let order = if counted.is_inclusive { "<=" } else { "<" };
        let run = format!("({c_type})({}) {order} ({})", text(source, counted.low), text(source, counted.high));
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    runs.join(" && ")
}

fn applied(source: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| (edit.start, edit.rank));
    let mut out = String::new();
    let mut at = 0;
    for edit in edits {
        out += &source[at..edit.start];
        out += &edit.text;
        at = edit.end;
    }
    out + &source[at..]
}
