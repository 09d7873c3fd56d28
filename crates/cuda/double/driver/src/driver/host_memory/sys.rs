//! Memory of the program, by the addresses it passes to the driver.

#![expect(unsafe_code, reason = "a driver reads and writes where its callers say")]

/// A text longer than this is none.
const TEXT_MAX: usize = 256 << 20;

/// An address that a program has passed to the driver, or the driver to a program. No other code
/// can make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct HostAddress(usize);

impl HostAddress {
    /// Returns the address as a number.
    pub(crate) fn number(self) -> usize {
        self.0
    }

    /// Returns the address `bytes` later.
    pub(crate) fn later(self, bytes: usize) -> Self {
        Self(self.0 + bytes)
    }

    /// Reads from here on.
    pub(crate) fn read(self, target: &mut [u8]) {
        // SAFETY: the program has said that as many bytes may be read here.
        unsafe { std::ptr::copy_nonoverlapping(self.0 as *const u8, target.as_mut_ptr(), target.len()) };
    }

    /// Writes from here on.
    pub(crate) fn write(self, source: &[u8]) {
        // SAFETY: the program has said that as many bytes may be written here.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), self.0 as *mut u8, source.len()) };
    }

    /// Reads an address.
    pub(crate) fn read_address(self) -> Self {
        let mut bytes = [0; size_of::<usize>()];
        self.read(&mut bytes);
        Self(usize::from_ne_bytes(bytes))
    }

    /// Reads bytes up to a zero, which is left out.
    pub(crate) fn read_text(self) -> Vec<u8> {
        let mut text = Vec::new();
        while text.len() < TEXT_MAX {
            let mut byte = [0];
            self.later(text.len()).read(&mut byte);
            if byte[0] == 0 {
                break;
            }
            text.push(byte[0]);
        }
        text
    }
}
