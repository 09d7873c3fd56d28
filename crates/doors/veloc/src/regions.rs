//! The regions that a program protects: their memory, and the checkpoints that hold them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use recoup_core::Bound;

use crate::Error;
use crate::device;

/// Regions by number.
pub(crate) type Set = BTreeMap<i32, MemoryRegion>;

/// Memory of the program.
#[derive(Clone, Copy, Debug)]
pub struct MemoryRegion {
    start: *mut u8,
    bytes: usize,
    element_bytes: usize,
    is_on_device: bool,
}

// SAFETY: a region is an address and a length; who reads or writes through it says when that may be
// done.
unsafe impl Send for MemoryRegion {}

impl MemoryRegion {
    /// Describes `count` elements of `element_bytes` bytes each.
    ///
    /// # Errors
    /// [`Error::Argument`] for a null address, and for more bytes than memory can have.
    pub fn new(start: *mut u8, count: usize, element_bytes: usize) -> Result<Self, Error> {
        let refuse = |what: String| Error::Argument { call: "protect", what };
        let bytes = count.checked_mul(element_bytes).filter(|&bytes| isize::try_from(bytes).is_ok());
        let bytes = bytes.ok_or_else(|| refuse(format!("{count} elements of {element_bytes} bytes")))?;
        if start.is_null() && bytes > 0 {
            return Err(refuse(format!("{bytes} bytes at a null address")));
        }
        let is_on_device = bytes > 0 && device::holds(start.addr(), bytes).map_err(refuse)?;
        Ok(Self { start, bytes, element_bytes, is_on_device })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn element_bytes(&self) -> usize {
        self.element_bytes
    }

    /// Returns the bytes that the region holds now; a copy where they are on a device.
    ///
    /// # Safety
    /// The program's memory is there, and nothing else writes it meanwhile.
    ///
    /// # Errors
    /// [`Error::Device`] when the device is lost, or its memory was given back.
    pub(crate) unsafe fn read(&self) -> Result<Cow<'_, [u8]>, Error> {
        if self.bytes == 0 {
            return Ok(Cow::Borrowed(&[]));
        }
        if self.is_on_device {
            let mut bytes = vec![0; self.bytes];
            device::read(self.start.addr(), &mut bytes).map_err(|what| Error::Device { what })?;
            return Ok(Cow::Owned(bytes));
        }
        // SAFETY: the caller vouches for the memory; the length fits an `isize` and the address is
        // not null.
        Ok(Cow::Borrowed(unsafe { std::slice::from_raw_parts(self.start, self.bytes) }))
    }

    /// Overwrites the region with bytes of its length.
    ///
    /// # Safety
    /// The program's memory is there, and nothing else touches it meanwhile.
    ///
    /// # Errors
    /// [`Error::Device`] when the device is lost, or its memory was given back.
    pub(crate) unsafe fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        assert_eq!(bytes.len(), self.bytes, "lengths are compared before values are given out");
        if self.is_on_device {
            return device::write(self.start.addr(), bytes).map_err(|what| Error::Device { what });
        }
        if self.bytes > 0 {
            // SAFETY: the caller vouches for the memory; `bytes` is ours, so the two do not
            // overlap.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start, self.bytes) }
        }
        Ok(())
    }
}

/// All that is protected.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    common: Set,
    named: BTreeMap<String, Set>,
    /// Regions that may be stored with an error.
    pub(crate) lossy: BTreeMap<i32, Bound>,
}

impl Regions {
    pub(crate) fn with_bounds(lossy: BTreeMap<i32, Bound>) -> Self {
        Self { lossy, ..Self::default() }
    }

    pub(crate) fn protect(&mut self, name: Option<&str>, id: i32, region: MemoryRegion) {
        match name {
            None => self.common.insert(id, region),
            Some(name) => self.named.entry(name.to_owned()).or_default().insert(id, region),
        };
    }

    /// Removes a region; returns whether there was one.
    pub(crate) fn unprotect(&mut self, name: Option<&str>, id: i32) -> bool {
        let set = match name {
            None => Some(&mut self.common),
            Some(name) => self.named.get_mut(name),
        };
        let removed = set.is_some_and(|set| set.remove(&id).is_some());
        self.named.retain(|_, set| !set.is_empty());
        removed
    }

    pub(crate) fn clear(&mut self, name: Option<&str>) {
        match name {
            None => self.common.clear(),
            Some(name) => drop(self.named.remove(name)),
        }
    }

    /// Returns the regions of checkpoints called `name`: those protected under it or, if there are
    /// none, those protected without a name.
    pub(crate) fn of(&self, name: &str) -> &Set {
        self.named.get(name).unwrap_or(&self.common)
    }

    /// Returns the regions without a name that a checkpoint called `name` leaves out.
    pub(crate) fn left_out(&self, name: &str) -> usize {
        if self.named.contains_key(name) { self.common.len() } else { 0 }
    }

    pub(crate) fn bound(&self, id: i32) -> Bound {
        self.lossy.get(&id).copied().unwrap_or(Bound::Lossless)
    }
}

/// The regions that a call selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection<'a> {
    /// All of them.
    All,
    /// The regions named.
    Some(&'a [i32]),
    /// All but those named.
    Rest(&'a [i32]),
}

impl Selection<'_> {
    /// Returns the numbers selected, of those that there are.
    ///
    /// # Errors
    /// The first number that is named and not there.
    pub(crate) fn of(self, all: impl Iterator<Item = i32>) -> Result<Vec<i32>, i32> {
        let all: Vec<i32> = all.collect();
        match self {
            Self::All => Ok(all),
            Self::Some(ids) => match ids.iter().find(|id| !all.contains(id)) {
                Some(&missing) => Err(missing),
                None => Ok(all.into_iter().filter(|id| ids.contains(id)).collect()),
            },
            Self::Rest(ids) => Ok(all.into_iter().filter(|id| !ids.contains(id)).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_regions_are_refused_and_empty_ones_are_not() {
        let mut byte = 0_u8;
        let start = &raw mut byte;
        assert!(MemoryRegion::new(std::ptr::null_mut(), 1, 8).is_err());
        assert!(MemoryRegion::new(start, usize::MAX, 2).is_err());
        assert!(MemoryRegion::new(start, usize::MAX / 2 + 1, 1).is_err());
        let empty = MemoryRegion::new(std::ptr::null_mut(), 0, 8).unwrap();
        // SAFETY: an empty region has no memory.
        assert!(unsafe { empty.read() }.unwrap().is_empty());
    }

    #[test]
    fn named_regions_take_the_place_of_the_common_ones() {
        let region = MemoryRegion::new(std::ptr::null_mut(), 0, 8).unwrap();
        let mut regions = Regions::default();
        regions.protect(None, 0, region);
        regions.protect(None, 1, region);
        regions.protect(Some("sub"), 7, region);
        assert_eq!(regions.of("main").keys().collect::<Vec<_>>(), [&0, &1]);
        assert_eq!(regions.of("sub").keys().collect::<Vec<_>>(), [&7]);
        assert_eq!((regions.left_out("main"), regions.left_out("sub")), (0, 2));
        assert!(regions.unprotect(Some("sub"), 7) && !regions.unprotect(Some("sub"), 7));
        assert_eq!(regions.of("sub").len(), 2);
    }

    #[test]
    fn selection_names_what_is_not_there() {
        let selected = |selection: Selection<'_>| selection.of([1, 2, 3].into_iter());
        assert_eq!(selected(Selection::All), Ok(vec![1, 2, 3]));
        assert_eq!(selected(Selection::Some(&[3, 1, 3])), Ok(vec![1, 3]));
        assert_eq!(selected(Selection::Some(&[3, 9])), Err(9));
        assert_eq!(selected(Selection::Rest(&[3, 9])), Ok(vec![1, 2]));
    }
}
