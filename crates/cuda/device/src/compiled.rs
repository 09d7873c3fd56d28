//! The result of compiling a source.

/// A compiled source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The code of the device; `None` if it was compiled for a virtual architecture.
    pub binary: Option<Vec<u8>>,
    /// The same before registers were given out, as text.
    pub ptx: String,
    /// The compiler's messages, with the registers and spilled bytes of every kernel that became
    /// the code of a device.
    pub log: String,
}
