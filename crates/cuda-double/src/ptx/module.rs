//! A module of PTX: its kernels and its variables.

/// A text that is no PTX, or PTX that is not interpreted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PTX, line {line}: {what}: {found}")]
pub struct ParseError {
    /// Line of the text, from 1.
    pub line: usize,
    /// The rule that does not hold.
    pub what: &'static str,
    /// The words in question.
    pub found: String,
}

/// A parsed module.
#[derive(Clone, Debug, Default)]
pub struct Module {
    pub(super) kernels: Vec<Kernel>,
    pub(super) globals: Vec<Global>,
}

impl Module {
    /// Parses the PTX that NVRTC 13.0 writes.
    ///
    /// # Errors
    /// [`ParseError`] for whatever is not interpreted, with its line: directives, opcodes,
    /// modifiers, types.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let statements = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        match statements.into_iter().find(|(_, line)| !line.is_empty() && !line.starts_with("//")) {
            Some((line, found)) => Err(ParseError { line, what: "not interpreted", found: found.to_owned() }),
            None => Ok(Self::default()),
        }
    }

    /// Returns the kernel of that name.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// Returns all kernels, in the order of the text.
    #[must_use]
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// Returns the variables in global and constant memory. A launch is told an address for each,
    /// in this order.
    #[must_use]
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }
}

/// A variable of a module in global or constant memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Its name.
    pub name: String,
    /// Whether kernels may only read it.
    pub is_constant: bool,
    /// Its length in bytes.
    pub bytes: usize,
    /// The number its address is a multiple of.
    pub alignment: usize,
    /// Its first value, `bytes` long.
    pub initial: Vec<u8>,
}

/// The place of a parameter among the bytes of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// First byte.
    pub offset: usize,
    /// Length.
    pub bytes: usize,
    /// The number `offset` is a multiple of.
    pub alignment: usize,
}

/// A kernel, ready to run.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Its parameters, in order.
    pub parameters: Vec<Parameter>,
    /// Shared memory that a block has without asking.
    pub static_shared_bytes: usize,
    /// Registers of a thread, where the text limits them (`.maxnreg`).
    pub registers_max: Option<u32>,
    /// The largest block, where the text limits it (`.maxntid`).
    pub block_max: Option<[u32; 3]>,
    /// The only block allowed, where the text names one (`.reqntid`).
    pub block_required: Option<[u32; 3]>,
}

impl Kernel {
    /// Returns the length of all parameters together, with the gaps between them.
    #[must_use]
    pub fn parameter_bytes(&self) -> usize {
        self.parameters.last().map_or(0, |last| last.offset + last.bytes)
    }
}
