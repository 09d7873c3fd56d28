//! Kernels: parameters, limits, and a body of declarations, labels and instructions.

use std::collections::HashMap;

use super::declare::{declared, scalar};
use super::decode::decode;
use super::error::ParseError;
use super::instruction::{Action, Instruction};
use super::kernel::{Kernel, Parameter};
use super::names::{Constant, ModuleVariable, Named, Names};
use super::plain;
use super::syntax::Reader;

/// Reads a kernel from its name on.
pub(super) fn kernel<'a>(
    reader: &mut Reader<'a>,
    variables: &HashMap<&'a str, ModuleVariable>,
) -> Result<Kernel, ParseError> {
    let mut names = Names::new(variables);
    let mut kernel = Kernel { name: reader.word("the name of a kernel expected")?.to_owned(), ..Kernel::default() };
    kernel.parameters = parameters(reader, &mut names)?;
    limits(reader, &mut kernel)?;
    let mut body = Body { reader, names, code: Vec::new() };
    body.read()?;
    body.finish(&mut kernel)?;
    Ok(kernel)
}

/// Reads the list of parameters; their names stand for their offsets.
fn parameters(reader: &mut Reader<'_>, names: &mut Names<'_>) -> Result<Vec<Parameter>, ParseError> {
    let mut found: Vec<Parameter> = Vec::new();
    if !reader.takes("(") || reader.takes(")") {
        return Ok(found);
    }
    loop {
        reader.expect(".param", "a parameter expected")?;
        let declared = declared(reader)?;
        let bytes = declared.bytes.ok_or_else(|| reader.refuse("a size expected before"))?;
        let end = found.last().map_or(0, |last| last.offset + last.bytes);
        let offset = end.next_multiple_of(declared.alignment);
        found.push(Parameter { offset, bytes, alignment: declared.alignment });
        if !names.declare(declared.name, Named::Variable(Constant::Value(offset as u64))) {
            return Err(reader.refuse("a name that is there already, before"));
        }
        if !reader.takes(",") {
            reader.expect(")", "the end of the parameters expected")?;
            return Ok(found);
        }
    }
}

/// Reads what stands between the parameters and the body.
fn limits(reader: &mut Reader<'_>, kernel: &mut Kernel) -> Result<(), ParseError> {
    loop {
        match reader.peek(0) {
            "{" => return Ok(()),
            ".maxntid" => kernel.block_max = Some(sizes(reader)?),
            // Advice to the assembler on blocks side by side.
            ".minnctapersm" => {
                reader.next();
                reader.count()?;
            }
            _ => return Err(reader.refuse("not interpreted")),
        }
    }
}

/// Reads up to three sizes behind a directive.
fn sizes(reader: &mut Reader<'_>) -> Result<[u32; 3], ParseError> {
    reader.next();
    let mut found = [1; 3];
    for (axis, size) in found.iter_mut().enumerate() {
        if axis > 0 && !reader.takes(",") {
            break;
        }
        *size = reader.count()? as u32;
    }
    Ok(found)
}

/// The body of a kernel on its way.
struct Body<'r, 'a, 'm> {
    reader: &'r mut Reader<'a>,
    names: Names<'m>,
    code: Vec<Instruction>,
}

impl Body<'_, '_, '_> {
    fn read(&mut self) -> Result<(), ParseError> {
        self.reader.expect("{", "the body of a kernel expected")?;
        loop {
            match self.reader.peek(0) {
                "{" => {
                    self.reader.next();
                    self.names.open_scope();
                }
                "}" => {
                    self.reader.next();
                    if !self.names.close_scope() {
                        return Ok(());
                    }
                }
                "" => return Err(self.reader.refuse("the end of a body expected")),
                _ if self.reader.peek(1) == ":" => self.label()?,
                directive if directive.starts_with('.') => self.directive()?,
                _ => {
                    let statement = self.reader.statement()?;
                    self.code.push(decode(&statement, &mut self.names)?);
                }
            }
        }
    }

    fn directive(&mut self) -> Result<(), ParseError> {
        match self.reader.peek(0) {
            ".reg" => self.registers(),
            ".shared" => self.variable(),
            ".pragma" if self.reader.peek(1) == "\"nounroll\"" => {
                self.reader.next();
                self.reader.next();
                self.reader.expect(";", "the end of a pragma expected")
            }
            _ => Err(self.reader.refuse("not interpreted")),
        }
    }

    fn registers(&mut self) -> Result<(), ParseError> {
        self.reader.next();
        let scalar = scalar(self.reader)?;
        if scalar.bits == 8 {
            return Err(self.reader.refuse("no registers of 8 bits, as before"));
        }
        loop {
            let name = self.reader.word("the name of a register expected")?;
            let is_new = match self.reader.takes("<") {
                true => {
                    let n = self.reader.count()?;
                    self.reader.expect(">", "the end of a count expected")?;
                    n <= 1 << 20 && (0..n).all(|i| self.names.declare_register(&format!("{name}{i}"), scalar.bits))
                }
                false => self.names.declare_register(name, scalar.bits),
            };
            if !is_new {
                return Err(self.reader.refuse("a name that is there already, before"));
            }
            if !self.reader.takes(",") {
                return self.reader.expect(";", "the end of registers expected");
            }
        }
    }

    fn variable(&mut self) -> Result<(), ParseError> {
        self.reader.next();
        let declared = declared(self.reader)?;
        let bytes = declared.bytes.ok_or_else(|| self.reader.refuse("a size expected before"))?;
        if !self.names.declare_shared(declared.name, bytes, declared.alignment) {
            return Err(self.reader.refuse("a name that is there already, before"));
        }
        self.reader.expect(";", "the end of a variable expected")
    }

    fn label(&mut self) -> Result<(), ParseError> {
        let line = self.reader.line();
        let name = self.reader.word("a label expected")?;
        self.reader.expect(":", "the end of a label expected")?;
        self.names.place_label(name, line, self.code.len())
    }

    /// Labels become places.
    fn finish(self, kernel: &mut Kernel) -> Result<(), ParseError> {
        let Names { labels, register_bits, constants, specials, shared_bytes, .. } = self.names;
        let mut code = self.code;
        // Where a body ends without a return, its threads end.
        let line = code.last().map_or(0, |last| last.line);
        code.push(Instruction::new(line, Action::Exit));
        let missing = labels.iter().find(|label| label.position.is_none());
        if let Some(label) = missing {
            return Err(ParseError { line: label.line, what: "a label without a place", found: label.name.clone() });
        }
        for instruction in &mut code {
            if let Action::Branch { target } = &mut instruction.action {
                *target = labels[*target].position.unwrap_or_default();
            }
        }
        kernel.n_registers = register_bits.len();
        kernel.steps = plain::plain_steps(&code);
        kernel.static_shared_bytes = shared_bytes;
        kernel.dynamic_alignment = self.names.dynamic_alignment;
        kernel.specials = specials;
        kernel.constants = constants;
        kernel.code = code;
        Ok(())
    }
}
