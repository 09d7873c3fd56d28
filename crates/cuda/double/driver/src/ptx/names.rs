//! The names of a kernel: registers, variables, labels.

use std::collections::HashMap;

use super::error::ParseError;
use super::register::Register;
use super::special::Special;

/// First address of shared memory; below it is none.
pub(super) const FIRST_ADDRESS: u64 = 1024;

/// A constant of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Constant {
    Value(u64),
    /// The address of a variable of the module, by its number.
    Global(usize),
    /// The address where the shared memory of the launch begins.
    DynamicShared,
}

/// A variable of the module, as kernels see it.
#[derive(Clone, Copy, Debug)]
pub(super) enum ModuleVariable {
    /// A variable in global memory, by its number.
    Global(usize),
    /// A variable in shared memory: each kernel that names it has its own.
    Shared { bytes: usize, alignment: usize },
    /// A variable in the dynamic shared memory of the launch.
    DynamicShared { alignment: usize },
}

/// A name, and what stands behind it.
#[derive(Clone, Debug)]
pub(super) enum Named {
    Register(Register),
    /// A variable, by its address.
    Variable(Constant),
}

/// A label; known before its place is.
#[derive(Clone, Debug)]
pub(super) struct Label {
    pub(super) name: String,
    /// Line that named it first.
    pub(super) line: usize,
    /// The instruction it stands before.
    pub(super) position: Option<usize>,
}

/// All names of a kernel.
#[derive(Debug)]
pub(super) struct Names<'a> {
    module: &'a HashMap<&'a str, ModuleVariable>,
    scopes: Vec<HashMap<String, Named>>,
    label_numbers: HashMap<String, usize>,
    constant_registers: HashMap<Constant, Register>,
    /// The bits of each register.
    pub(super) register_bits: Vec<u32>,
    /// Registers that hold a constant of the launch.
    pub(super) constants: Vec<(Constant, Register)>,
    pub(super) labels: Vec<Label>,
    /// Registers that hold a number of the thread before its first instruction.
    pub(super) specials: Vec<(Special, Register)>,
    pub(super) shared_bytes: usize,
    /// The number that the address of the launch's shared memory is a multiple of.
    pub(super) dynamic_alignment: usize,
}

impl<'a> Names<'a> {
    pub(super) fn new(module: &'a HashMap<&'a str, ModuleVariable>) -> Self {
        Self {
            module,
            scopes: vec![HashMap::new()],
            label_numbers: HashMap::new(),
            constant_registers: HashMap::new(),
            register_bits: Vec::new(),
            constants: Vec::new(),
            labels: Vec::new(),
            specials: Vec::new(),
            shared_bytes: 0,
            dynamic_alignment: 16,
        }
    }

    pub(super) fn open_scope(&mut self) {
        self.scopes.push(HashMap::new());
    }

    /// Leaves the innermost scope; false for the outermost.
    pub(super) fn close_scope(&mut self) -> bool {
        self.scopes.pop();
        !self.scopes.is_empty()
    }

    /// Declares a name in the innermost scope; false where it is taken.
    pub(super) fn declare(&mut self, name: &str, named: Named) -> bool {
        let scope = self.scopes.last_mut().expect("a scope is open in a kernel");
        scope.insert(name.to_owned(), named).is_none()
    }

    pub(super) fn declare_register(&mut self, name: &str, bits: u32) -> bool {
        let register = self.new_register(bits);
        self.declare(name, Named::Register(register))
    }

    fn new_register(&mut self, bits: u32) -> Register {
        self.register_bits.push(bits);
        self.register_bits.len() as Register - 1
    }

    /// Declares a variable in shared memory.
    pub(super) fn declare_shared(&mut self, name: &str, bytes: usize, alignment: usize) -> bool {
        let address = place(&mut self.shared_bytes, bytes, alignment);
        self.declare(name, Named::Variable(Constant::Value(address)))
    }

    /// Returns what a name stands for; a variable of the module becomes one of the kernel.
    pub(super) fn find(&mut self, name: &str) -> Option<Named> {
        if let Some(named) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            return Some(named.clone());
        }
        let constant = match *self.module.get(name)? {
            ModuleVariable::Global(number) => Constant::Global(number),
            ModuleVariable::Shared { bytes, alignment } => {
                Constant::Value(place(&mut self.shared_bytes, bytes, alignment))
            }
            ModuleVariable::DynamicShared { alignment } => {
                self.dynamic_alignment = self.dynamic_alignment.max(alignment);
                Constant::DynamicShared
            }
        };
        self.scopes.first_mut()?.insert(name.to_owned(), Named::Variable(constant));
        Some(Named::Variable(constant))
    }

    /// Returns the register that holds a special one.
    pub(super) fn special(&mut self, special: Special) -> Register {
        if let Some((_, register)) = self.specials.iter().find(|(known, _)| *known == special) {
            return *register;
        }
        let register = self.new_register(32);
        self.specials.push((special, register));
        register
    }

    /// Returns the register that holds a constant.
    pub(super) fn constant(&mut self, constant: Constant) -> Register {
        if let Some(register) = self.constant_registers.get(&constant) {
            return *register;
        }
        let register = self.new_register(64);
        self.constant_registers.insert(constant, register);
        self.constants.push((constant, register));
        register
    }

    /// Returns the number of a label.
    pub(super) fn label(&mut self, name: &str, line: usize) -> usize {
        let next = self.labels.len();
        let number = *self.label_numbers.entry(name.to_owned()).or_insert(next);
        if number == next {
            self.labels.push(Label { name: name.to_owned(), line, position: None });
        }
        number
    }

    /// Puts a label before the instruction `position`.
    pub(super) fn place_label(&mut self, name: &str, line: usize, position: usize) -> Result<(), ParseError> {
        let number = self.label(name, line);
        match self.labels[number].position.replace(position) {
            None => Ok(()),
            Some(_) => Err(ParseError { line, what: "a label that is there already", found: name.to_owned() }),
        }
    }
}

/// Takes the next bytes of a memory; returns their address.
fn place(used: &mut usize, bytes: usize, alignment: usize) -> u64 {
    let start = used.next_multiple_of(alignment);
    *used = start + bytes;
    FIRST_ADDRESS + start as u64
}
