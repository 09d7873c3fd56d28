//! The bytes of a device: pages that exist once they are written.

use std::ops::Range;

/// Value of every byte of fresh memory.
pub(crate) const FRESH: u8 = 0xA5;

const PAGE: usize = 1 << 16;

/// Physical memory of one allocation.
#[derive(Debug)]
pub(crate) struct PagedBytes {
    /// The device that it belongs to.
    pub(crate) device: u32,
    /// Length of the memory.
    pub(crate) bytes: u64,
    /// First byte, in a space that all memory shares and that no address appears in.
    pub(crate) physical: u64,
    /// Times it was handed out and not given back.
    pub(crate) handles: u32,
    /// Times it is mapped.
    pub(crate) mappings: u32,
    pages: Vec<Option<Box<[u8]>>>,
}

impl PagedBytes {
    pub(crate) fn new(device: u32, bytes: u64, physical: u64) -> Self {
        let n_pages = (bytes as usize).div_ceil(PAGE);
        Self { device, bytes, physical, handles: 0, mappings: 0, pages: vec![None; n_pages] }
    }

    /// Reads at `offset`; the caller has checked that all bytes lie within.
    pub(crate) fn read(&self, offset: u64, target: &mut [u8]) {
        for part in parts(offset, target.len()) {
            let target = &mut target[part.of_buffer];
            match &self.pages[part.page] {
                Some(page) => target.copy_from_slice(&page[part.in_page..part.in_page + target.len()]),
                None => target.fill(FRESH),
            }
        }
    }

    /// Writes at `offset`; the caller has checked that all bytes lie within.
    pub(crate) fn write(&mut self, offset: u64, source: &[u8]) {
        for part in parts(offset, source.len()) {
            let source = &source[part.of_buffer];
            let page = self.pages[part.page].get_or_insert_with(|| vec![FRESH; PAGE].into_boxed_slice());
            page[part.in_page..part.in_page + source.len()].copy_from_slice(source);
        }
    }
}

/// The bytes of a buffer that lie in one page.
struct Part {
    page: usize,
    in_page: usize,
    of_buffer: Range<usize>,
}

fn parts(offset: u64, len: usize) -> impl Iterator<Item = Part> {
    let offset = offset as usize;
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done;
        let n = (PAGE - at % PAGE).min(len - done);
        let part = Part { page: at / PAGE, in_page: at % PAGE, of_buffer: done..done + n };
        done += n;
        (n > 0).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_across_pages_is_read_and_the_rest_is_fresh() {
        let mut storage = PagedBytes::new(0, 3 * PAGE as u64, 0);
        let source: Vec<u8> = (0..PAGE + 10).map(|i| i as u8).collect();
        storage.write(PAGE as u64 - 5, &source);
        let mut target = vec![0; PAGE + 12];
        storage.read(PAGE as u64 - 6, &mut target);
        assert_eq!((target[0], target[PAGE + 11]), (FRESH, FRESH));
        assert_eq!(target[1..=PAGE + 10], source);
    }
}
