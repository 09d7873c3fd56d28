//! Operands: names and numbers to registers, their widths checked.

use super::error::ParseError;
use super::instruction::{Address, PredicateOperand};
use super::names::{Constant, Named, Names};
use super::register::{NO_REGISTER, Register};
use super::scalar::mask;
use super::special::Special;
use super::syntax::{Number, OperandSyntax, Statement};

/// A statement on its way to an instruction.
#[derive(Debug)]
pub(super) struct Resolver<'a, 'n, 'm> {
    pub(super) statement: &'a Statement<'a>,
    pub(super) names: &'n mut Names<'m>,
}

/// The widths that an operand may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Exactly(u32),
    /// Loads, stores and conversions take wider registers too.
    AtLeast(u32),
}

impl Width {
    fn bits(self) -> u32 {
        match self {
            Self::Exactly(bits) | Self::AtLeast(bits) => bits,
        }
    }

    fn holds(self, bits: u32) -> bool {
        match self {
            Self::Exactly(wanted) => bits == wanted,
            Self::AtLeast(least) => bits >= least && least > 1,
        }
    }
}

/// A register that is written, and its width.
#[derive(Clone, Copy, Debug)]
pub(super) struct TargetRegister {
    pub(super) register: Register,
    pub(super) bits: u32,
}

impl<'a> Resolver<'a, '_, '_> {
    /// Returns an error that names the whole opcode.
    pub(super) fn refuse(&self, what: &'static str) -> ParseError {
        ParseError { line: self.statement.line, what, found: self.statement.words.join(".") }
    }

    pub(super) fn refuse_name(&self, what: &'static str, name: &str) -> ParseError {
        ParseError { line: self.statement.line, what, found: format!("{name} in {}", self.statement.words.join(".")) }
    }

    /// Returns the operands, if they are as many as the instruction takes.
    pub(super) fn operands<const N: usize>(&self) -> Result<&'a [OperandSyntax<'a>; N], ParseError> {
        let operands = self.statement.operands.as_slice();
        operands.try_into().map_err(|_| self.refuse("another number of operands expected"))
    }

    /// Resolves an operand that is read.
    pub(super) fn source(&mut self, operand: &OperandSyntax<'_>, width: Width) -> Result<Register, ParseError> {
        match operand {
            OperandSyntax::Name(name) => self.named_source(name, width),
            OperandSyntax::Number(number) => self.number(*number, width.bits()),
            _ => Err(self.refuse("a register or a number expected")),
        }
    }

    fn named_source(&mut self, name: &str, width: Width) -> Result<Register, ParseError> {
        let found = self.names.find(name);
        match found {
            Some(Named::Register(register)) => {
                let is_wide = width.holds(self.names.register_bits[register as usize]);
                if is_wide { Ok(register) } else { Err(self.refuse_name("a register of another width expected", name)) }
            }
            Some(Named::Variable(constant)) if width.holds(64) => Ok(self.names.constant(constant)),
            Some(_) => Err(self.refuse_name("not a value", name)),
            None if name == "WARP_SZ" => Ok(self.names.constant(Constant::Value(32))),
            None => self.special(name, width),
        }
    }

    fn special(&mut self, name: &str, width: Width) -> Result<Register, ParseError> {
        match Special::named(name) {
            Some(special) if width.holds(32) => Ok(self.names.special(special)),
            Some(_) => Err(self.refuse_name("a register of another width expected", name)),
            None => Err(self.refuse_name("an unknown name", name)),
        }
    }

    fn number(&mut self, number: Number, bits: u32) -> Result<Register, ParseError> {
        let value = match number {
            Number::Integer(value) if bits == 1 => u64::from(value != 0),
            Number::Integer(value) => value & mask(bits),
            Number::Single(value) if bits == 32 => u64::from(value),
            Number::Double(value) if bits == 64 => value,
            _ => return Err(self.refuse("a number of another type expected")),
        };
        Ok(self.names.constant(Constant::Value(value)))
    }

    /// Resolves a register that is written.
    pub(super) fn target(&mut self, operand: &OperandSyntax<'_>, width: Width) -> Result<TargetRegister, ParseError> {
        match operand {
            OperandSyntax::Name(name) => self.named_target(name, width),
            _ => Err(self.refuse("a register expected")),
        }
    }

    pub(super) fn named_target(&mut self, name: &str, width: Width) -> Result<TargetRegister, ParseError> {
        if name == "_" {
            return Ok(TargetRegister { register: NO_REGISTER, bits: width.bits() });
        }
        let Some(Named::Register(register)) = self.names.find(name) else {
            return Err(self.refuse_name("a register expected", name));
        };
        let bits = self.names.register_bits[register as usize];
        if width.holds(bits) {
            Ok(TargetRegister { register, bits })
        } else {
            Err(self.refuse_name("a register of another width expected", name))
        }
    }

    /// Resolves a register that must be there.
    pub(super) fn register(&mut self, operand: &OperandSyntax<'_>, bits: u32) -> Result<Register, ParseError> {
        match self.target(operand, Width::Exactly(bits))?.register {
            NO_REGISTER => Err(self.refuse("a register expected")),
            register => Ok(register),
        }
    }

    /// Resolves a predicate that is read.
    pub(super) fn predicate(&mut self, operand: &OperandSyntax<'_>) -> Result<PredicateOperand, ParseError> {
        match operand {
            OperandSyntax::Negated(name) => {
                Ok(PredicateOperand { operand: self.named_source(name, Width::Exactly(1))?, is_negated: true })
            }
            other => Ok(PredicateOperand { operand: self.source(other, Width::Exactly(1))?, is_negated: false }),
        }
    }

    /// Resolves a target, and the predicate behind it where there is one.
    pub(super) fn pair(&mut self, operand: &OperandSyntax<'_>, bits: u32) -> Result<[Register; 2], ParseError> {
        match operand {
            OperandSyntax::Pair(first, second) => Ok([
                self.named_target(first, Width::Exactly(bits))?.register,
                self.named_target(second, Width::Exactly(1))?.register,
            ]),
            other => Ok([self.register(other, bits)?, NO_REGISTER]),
        }
    }

    /// Resolves an address.
    pub(super) fn address(&mut self, operand: &OperandSyntax<'_>) -> Result<Address, ParseError> {
        match operand {
            OperandSyntax::Address(base, offset) => {
                Ok(Address { base: self.source(base, Width::Exactly(64))?, offset: *offset as u64 })
            }
            _ => Err(self.refuse("an address expected")),
        }
    }

    /// Resolves the label of a branch.
    pub(super) fn label(&mut self, operand: &OperandSyntax<'_>) -> Result<usize, ParseError> {
        match operand {
            OperandSyntax::Name(name) => Ok(self.names.label(name, self.statement.line)),
            _ => Err(self.refuse("a label expected")),
        }
    }
}
