//! A module of PTX: its kernels and its variables.

use std::collections::HashMap;

use super::body;
use super::declare::{Declared, declared};
use super::error::ParseError;
use super::kernel::Kernel;
use super::lex::tokens;
use super::names::ModuleVariable;
use super::syntax::{Number, Reader};

/// A parsed module.
#[derive(Clone, Debug, Default)]
pub struct Module {
    kernels: Vec<Kernel>,
    globals: Vec<Global>,
}

/// A variable of a module in global memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Name of the variable.
    pub name: String,
    /// Length in bytes.
    pub bytes: usize,
    /// The number its address is a multiple of.
    pub alignment: usize,
    /// The first value, `bytes` long.
    pub initial: Vec<u8>,
}

impl Module {
    /// Parses the PTX that NVRTC 13.0 writes.
    ///
    /// # Errors
    /// [`ParseError`] for whatever is not interpreted, with its line: directives, opcodes,
    /// modifiers, types.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut parser =
            Parser { reader: Reader::new(tokens(text)), module: Self::default(), variables: HashMap::new() };
        parser.head()?;
        while !parser.reader.is_at_end() {
            parser.item()?;
        }
        Ok(parser.module)
    }

    /// Returns the kernel of that name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// Returns all kernels, in the order of the text.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// Returns the variables in global memory. A launch is told an address for each,
    /// in this order.
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }
}

/// A module on its way.
struct Parser<'a> {
    reader: Reader<'a>,
    module: Module,
    variables: HashMap<&'a str, ModuleVariable>,
}

impl<'a> Parser<'a> {
    /// The version, the target and the size of addresses.
    fn head(&mut self) -> Result<(), ParseError> {
        self.reader.expect(".version", "a module begins with its version")?;
        match self.reader.peek(0).split_once('.') {
            Some(("6" | "7" | "8" | "9", _)) => self.reader.next(),
            _ => return Err(self.reader.refuse("not a version that is interpreted")),
        };
        self.reader.expect(".target", "a target expected")?;
        if !self.reader.peek(0).starts_with("sm_") {
            return Err(self.reader.refuse("not a target that is interpreted"));
        }
        self.reader.next();
        self.reader.expect(".address_size", "a size of addresses expected")?;
        self.reader.expect("64", "addresses of 64 bits expected")
    }

    fn item(&mut self) -> Result<(), ParseError> {
        let is_external = self.reader.takes(".extern");
        let is_linked = !is_external && (self.reader.takes(".visible") || self.reader.takes(".weak"));
        match self.reader.peek(0) {
            ".entry" if !is_external => {
                self.reader.next();
                let kernel = body::kernel(&mut self.reader, &self.variables)?;
                self.module.kernels.push(kernel);
                Ok(())
            }
            ".global" if !is_external => self.global(),
            ".shared" if is_external => self.dynamic_shared(),
            ".shared" if !is_linked => self.shared(),
            _ => Err(self.reader.refuse("not interpreted")),
        }
    }

    fn shared(&mut self) -> Result<(), ParseError> {
        self.reader.next();
        let declared = declared(&mut self.reader)?;
        let bytes = declared.bytes.ok_or_else(|| self.reader.refuse("a size expected before"))?;
        let variable = ModuleVariable::Shared { bytes, alignment: declared.alignment };
        self.declare(declared.name, variable)
    }

    fn dynamic_shared(&mut self) -> Result<(), ParseError> {
        self.reader.next();
        let declared = declared(&mut self.reader)?;
        if declared.bytes.is_some() {
            return Err(self.reader.refuse("an array without a size expected before"));
        }
        self.declare(declared.name, ModuleVariable::DynamicShared { alignment: declared.alignment })
    }

    fn global(&mut self) -> Result<(), ParseError> {
        self.reader.next();
        let declared = declared(&mut self.reader)?;
        let bytes = declared.bytes.ok_or_else(|| self.reader.refuse("a size expected before"))?;
        let mut initial = vec![0; bytes];
        if self.reader.takes("=") {
            let refused = self.reader.refuse("not an integer");
            let Number::Integer(value) = self.reader.number()? else { return Err(refused) };
            initial.iter_mut().zip(value.to_le_bytes()).for_each(|(initial, byte)| *initial = byte);
        }
        let variable = ModuleVariable::Global(self.module.globals.len());
        let Declared { name, alignment, .. } = declared;
        self.module.globals.push(Global { name: name.to_owned(), bytes, alignment, initial });
        self.declare(name, variable)
    }

    fn declare(&mut self, name: &'a str, variable: ModuleVariable) -> Result<(), ParseError> {
        if self.variables.insert(name, variable).is_some() {
            return Err(self.reader.refuse("a name that is there already, before"));
        }
        self.reader.expect(";", "the end of a variable expected")
    }
}
