//! HDF5's byte shuffle (filter 2): byte `k` of all elements together, so that the slowly varying
//! high bytes form runs. The whole buffer is one shuffle; bytes after the last whole element stay
//! in place.

/// Elements handled at a time, so that a block of eight-byte elements stays in the nearest cache.
const BLOCK: usize = 1024;

/// Writes the shuffled `source` over `target`, which is as long; `element` is the element's size in
/// bytes.
pub(crate) fn shuffle(source: &[u8], element: usize, target: &mut [u8]) {
    debug_assert_eq!(source.len(), target.len());
    match element {
        4 => shuffle_as::<4>(source, target),
        8 => shuffle_as::<8>(source, target),
        _ => target.copy_from_slice(source),
    }
}

/// Writes the original order of the shuffled `source` over `target`, which is as long.
pub(crate) fn unshuffle(source: &[u8], element: usize, target: &mut [u8]) {
    debug_assert_eq!(source.len(), target.len());
    match element {
        4 => unshuffle_as::<4>(source, target),
        8 => unshuffle_as::<8>(source, target),
        _ => target.copy_from_slice(source),
    }
}

fn shuffle_as<const SIZE: usize>(source: &[u8], target: &mut [u8]) {
    let (elements, rest) = source.as_chunks::<SIZE>();
    let (planes, tail) = target.split_at_mut(elements.len() * SIZE);
    tail.copy_from_slice(rest);
    for (block_index, block) in elements.chunks(BLOCK).enumerate() {
        for k in 0..SIZE {
            let start = k * elements.len() + block_index * BLOCK;
            for (byte, element) in planes[start..start + block.len()].iter_mut().zip(block) {
                *byte = element[k];
            }
        }
    }
}

fn unshuffle_as<const SIZE: usize>(source: &[u8], target: &mut [u8]) {
    let (elements, tail) = target.as_chunks_mut::<SIZE>();
    let n = elements.len();
    let (planes, rest) = source.split_at(n * SIZE);
    tail.copy_from_slice(rest);
    for (block_index, block) in elements.chunks_mut(BLOCK).enumerate() {
        for k in 0..SIZE {
            let start = k * n + block_index * BLOCK;
            for (element, byte) in block.iter_mut().zip(&planes[start..]) {
                element[k] = *byte;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_k_of_all_elements_lies_together_and_trailing_bytes_stay() {
        let source = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
        let mut target = [0; 10];
        shuffle(&source, 4, &mut target);
        assert_eq!(target, [1, 5, 2, 6, 3, 7, 4, 8, 9, 10]);
    }

    #[test]
    fn unshuffle_undoes_shuffle_across_block_edges() {
        for n in [0, 1, 7, 8, 8 * BLOCK - 1, 8 * BLOCK, 8 * BLOCK + 9, 20_000] {
            let source: Vec<u8> = (0..n).map(|i| (i * 37 % 251) as u8).collect();
            for element in [1, 4, 8] {
                let mut shuffled = vec![0; n];
                let mut back = vec![0; n];
                shuffle(&source, element, &mut shuffled);
                unshuffle(&shuffled, element, &mut back);
                assert_eq!(back, source, "{n} bytes in elements of {element}");
            }
        }
    }
}
