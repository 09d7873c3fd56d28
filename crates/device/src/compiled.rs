//! What compiling a source gives.

/// What a source became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The code of the device.
    pub binary: Vec<u8>,
    /// The same before registers were given out, as text.
    pub ptx: String,
    /// What the compiler said, registers and spilled bytes of every kernel among it.
    pub log: String,
}
