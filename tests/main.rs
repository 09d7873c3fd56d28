//! Questions about the whole, one module each.
