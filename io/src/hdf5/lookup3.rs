//! The checksum HDF5 puts on its own metadata: lookup3 by Bob Jenkins (2006, public domain).
//!
//! It guards what libhdf5 reads; our own promise is stored on CRC-32C over every byte, see
//! FORMAT.md.

/// The hash of `key` with seed 0.
pub(super) fn lookup3(key: &[u8]) -> u32 {
    let seed = 0xdead_beef_u32.wrapping_add(key.len() as u32);
    let mut state = [seed; 3];
    let mut rest = key;
    while rest.len() > 12 {
        absorb(&mut state, &rest[..12]);
        mix(&mut state);
        rest = &rest[12..];
    }
    if !rest.is_empty() {
        let mut last = [0; 12];
        last[..rest.len()].copy_from_slice(rest);
        absorb(&mut state, &last);
        finish(&mut state);
    }
    state[2]
}

fn absorb(state: &mut [u32; 3], block: &[u8]) {
    for (word, bytes) in state.iter_mut().zip(block.chunks_exact(4)) {
        *word = word.wrapping_add(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    }
}

fn mix([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: &mut u32, z: u32, bits| {
        *x = x.wrapping_sub(*y) ^ y.rotate_left(bits);
        *y = y.wrapping_add(z);
    };
    step(a, c, *b, 4);
    step(b, a, *c, 6);
    step(c, b, *a, 8);
    step(a, c, *b, 16);
    step(b, a, *c, 19);
    step(c, b, *a, 4);
}

fn finish([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: u32, bits| *x = (*x ^ y).wrapping_sub(y.rotate_left(bits));
    step(c, *b, 14);
    step(a, *c, 11);
    step(b, *a, 25);
    step(c, *b, 16);
    step(a, *c, 4);
    step(b, *a, 14);
    step(c, *b, 24);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_the_published_one() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }
}
