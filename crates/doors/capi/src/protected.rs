//! The program's variables: their memory, roles, types and distribution.

use std::ffi::{c_int, c_void};

use recoup::core::{
    Borrowed, BorrowedMut, DeviceValues, DeviceValuesError, Distribution, ElementType, Registered, Resume, Role,
    Values, ValuesMut, Variable, VariableMut, Zones, revision_of,
};
use recoup::pipeline::WriteTable;

use crate::status::{CallFailure, RECOUP_E_NAME, RECOUP_E_ORDER};

/// The vector that the solver improves: saved in every version, lossy if the scheme is.
pub const RECOUP_ITERATE: i32 = 0;
/// A search direction that a restarted method is deflated with, or that its recurrence needs; may
/// be lossy.
pub const RECOUP_DIRECTION: i32 = 1;
/// A variable that is saved exactly in every version.
pub const RECOUP_DYNAMIC: i32 = 2;
/// A variable that never changes: saved once, exactly, next to the versions.
pub const RECOUP_STATIC: i32 = 3;
/// A variable that the recurrence needs to continue: saved by the schemes traditional, lossless and
/// exact.
pub const RECOUP_RECURRENCE: i32 = 4;
/// A variable that is rebuilt from the others after a restore; saved by the scheme exact alone.
pub const RECOUP_RECOMPUTED: i32 = 5;

/// Values of type double, real(c_double).
pub const RECOUP_F64: i32 = 0;
/// Values of type float, real(c_float).
pub const RECOUP_F32: i32 = 1;
/// Values of type int64_t, integer(c_int64_t).
pub const RECOUP_I64: i32 = 2;
/// Bytes without a meaning to the library.
pub const RECOUP_BYTES: i32 = 3;
/// Values of type double complex, complex(c_double_complex): a bound holds for each part, and an
/// operator has two rows for each value, the real part first.
pub const RECOUP_C128: i32 = 7;
/// Values of type float complex, complex(c_float_complex), as for RECOUP_C128.
pub const RECOUP_C64: i32 = 8;

/// Value of `first`: each rank has its own values, of no common shape.
pub const RECOUP_RANK_LOCAL: u64 = u64::MAX;
/// Value of `first`: every rank has the same values.
pub const RECOUP_REPLICATED: u64 = u64::MAX - 1;

/// Rebuilds state that a version does not hold. `how` is as for recoup_restore. Returns 0, or a
/// code of the program's own.
pub type RecoupRebuild = Option<unsafe extern "C" fn(ctx: *mut c_void, iteration: u64, how: c_int) -> c_int>;

/// One variable.
#[derive(Debug)]
pub(crate) struct Region {
    name: String,
    pub(crate) role: Role,
    memory: LentMemory,
    distribution: Distribution,
    dims: [usize; 3],
    /// Numbers of a value: 2 for a complex one.
    parts: u64,
    /// Column of the right-hand side it belongs to, where it is one of a block.
    column: Option<usize>,
    /// Writes that the program announces, where it announces all of them.
    writes: Option<WriteTable>,
}

/// The types of values a program can lend. Closed, unlike [`ElementType`]: memory of a type that is
/// not here cannot be lent, and so is never read as one that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LentType {
    F64,
    F32,
    I64,
    Bytes,
}

impl LentType {
    fn of(code: i32) -> Option<Self> {
        Some(match code {
            RECOUP_F64 => Self::F64,
            RECOUP_F32 => Self::F32,
            RECOUP_I64 => Self::I64,
            RECOUP_BYTES => Self::Bytes,
            _ => return None,
        })
    }

    /// Returns the code of a type.
    pub(crate) fn code(element: ElementType) -> Option<i32> {
        [RECOUP_F64, RECOUP_F32, RECOUP_I64, RECOUP_BYTES]
            .into_iter()
            .find(|code| Self::of(*code).is_some_and(|known| known.element() == element))
    }

    fn element(self) -> ElementType {
        match self {
            Self::F64 => ElementType::F64,
            Self::F32 => ElementType::F32,
            Self::I64 => ElementType::I64,
            Self::Bytes => ElementType::Bytes,
        }
    }

    fn size(self) -> usize {
        self.element().size()
    }
}

/// Returns the address of a value behind `start`, as far as there can be one; NULL where not.
pub(crate) fn address_of(element: i32, start: *mut c_void, value: u64) -> *mut c_void {
    let (element, parts) = parts_of(element);
    let size = LentType::of(element).map_or(0, |element| element.size() as u64);
    let bytes = value.checked_mul(size * parts).and_then(|bytes| usize::try_from(bytes).ok());
    let is_there = |bytes: &usize| !start.is_null() && (start as usize).checked_add(*bytes).is_some();
    bytes.filter(is_there).map_or(std::ptr::null_mut(), |bytes| start.cast::<u8>().wrapping_add(bytes).cast())
}

/// Returns the type of the parts of values, and how many each has.
fn parts_of(code: i32) -> (i32, u64) {
    match code {
        RECOUP_C128 => (RECOUP_F64, 2),
        RECOUP_C64 => (RECOUP_F32, 2),
        code => (code, 1),
    }
}

/// Values of the program.
#[derive(Debug)]
pub(crate) struct LentMemory {
    element: LentType,
    start: *mut c_void,
    count: usize,
    /// The values as a device sees them, where they are on one.
    on_device: Option<Box<dyn DeviceValues>>,
}

// SAFETY: the memory is the program's, which promises not to touch it during a call; it does not
// belong to a thread.
unsafe impl Send for LentMemory {}

impl LentMemory {
    /// Takes `count` values of the type with this code. `Err` says what is wrong with them.
    pub(crate) fn of(code: i32, start: *mut c_void, count: u64) -> Result<Self, String> {
        let element = LentType::of(code)
            .ok_or_else(|| format!("{code} is no type: expected RECOUP_F64 or another of recoup.h"))?;
        let memory = Self::new(element, start, count);
        let mut memory =
            memory.ok_or_else(|| format!("no {count} values of type {} can be at {start:p}", element.element()))?;
        memory.locate().map_err(|error| error.to_string())?;
        Ok(memory)
    }

    /// Refuses an address and a count that cannot be memory.
    fn new(element: LentType, start: *mut c_void, count: u64) -> Option<Self> {
        let count = usize::try_from(count).ok()?;
        let bytes = count.checked_mul(element.size()).filter(|bytes| isize::try_from(*bytes).is_ok())?;
        let address = start as usize;
        let is_there = address != 0 && address.is_multiple_of(element.size()) && address.checked_add(bytes).is_some();
        (count == 0 || is_there).then_some(Self { element, start, count, on_device: None })
    }

    /// Asks whether the values are on a device.
    fn locate(&mut self) -> Result<(), DeviceValuesError> {
        if self.count > 0 {
            self.on_device = recoup::device_memory(self.start as usize, self.element.element(), self.count)?;
        }
        Ok(())
    }

    /// Lends the values where they are.
    pub(crate) fn lend(&self) -> Borrowed<'_> {
        self.on_device.as_ref().map_or_else(|| self.values().into(), |on_device| Borrowed::Device(&**on_device))
    }

    /// Lends the values where they are, to be overwritten.
    pub(crate) fn lend_mut(&mut self) -> BorrowedMut<'_> {
        if self.on_device.is_none() {
            return self.values_mut().into();
        }
        let on_device = self.on_device.as_mut().expect("it was found there");
        BorrowedMut::Device(&mut **on_device)
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let end = |memory: &Self| memory.start as usize + memory.count * memory.element.size();
        let is_empty = self.count == 0 || other.count == 0;
        !is_empty && (self.start as usize) < end(other) && (other.start as usize) < end(self)
    }

    /// Returns the first values of memory that has as many and more. `Err` says why a device does
    /// not lend them.
    pub(crate) fn first(mut self, count: usize) -> Result<Self, String> {
        if count < self.count {
            self.count = count;
            self.on_device = None;
            self.locate().map_err(|error| error.to_string())?;
        }
        Ok(self)
    }

    fn values(&self) -> Values<'_> {
        // SAFETY: the program lends `count` aligned values at this address while the call lasts, as
        // `LentMemory::new` was told and has checked as far as it can.
        unsafe {
            match self.element {
                LentType::F64 => Values::F64(slice(self.start, self.count)),
                LentType::F32 => Values::F32(slice(self.start, self.count)),
                LentType::I64 => Values::I64(slice(self.start, self.count)),
                LentType::Bytes => Values::Bytes(slice(self.start, self.count)),
            }
        }
    }

    fn values_mut(&mut self) -> ValuesMut<'_> {
        // SAFETY: as in `values`; regions do not overlap, so this is the only slice.
        unsafe {
            match self.element {
                LentType::F64 => ValuesMut::F64(slice_mut(self.start, self.count)),
                LentType::F32 => ValuesMut::F32(slice_mut(self.start, self.count)),
                LentType::I64 => ValuesMut::I64(slice_mut(self.start, self.count)),
                LentType::Bytes => ValuesMut::Bytes(slice_mut(self.start, self.count)),
            }
        }
    }
}

/// # Safety
/// There are `count` aligned values, unless it is 0.
unsafe fn slice<'a, T>(start: *mut c_void, count: usize) -> &'a [T] {
    // SAFETY: as the caller promises.
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(start.cast(), count) } }
}

/// # Safety
/// As [`slice()`], and no other code uses them.
unsafe fn slice_mut<'a, T>(start: *mut c_void, count: usize) -> &'a mut [T] {
    // SAFETY: as the caller promises.
    if count == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(start.cast(), count) } }
}

impl Region {
    /// Refuses arguments that cannot be a variable.
    pub(crate) fn new(
        name: &str,
        role: i32,
        element: i32,
        start: *mut c_void,
        count: u64,
        first: u64,
        global: u64,
    ) -> Result<Self, CallFailure> {
        let refuse = |what: String| CallFailure::argument(format!("variable {name}: {what}"));
        let no_role = || refuse(format!("{role} is no role: expected RECOUP_ITERATE or another of recoup.h"));
        let role = role_of(role).ok_or_else(no_role)?;
        let (element, parts) = parts_of(element);
        let numbers = count.checked_mul(parts).ok_or_else(|| refuse(format!("{count} values are no memory")))?;
        let memory = LentMemory::of(element, start, numbers).map_err(refuse)?;
        let distribution = distribution(first, global, count, parts)
            .ok_or_else(|| refuse(format!("{count} values from row {first} of {global}")))?;
        if count == 0 && !matches!(distribution, Distribution::Rows { .. }) {
            return Err(refuse("no values".to_owned()));
        }
        let dims = [memory.count, 1, 1];
        Ok(Self { name: name.to_owned(), role, memory, distribution, dims, parts, column: None, writes: None })
    }

    /// Returns the variable as a column of a block.
    pub(crate) fn of_column(self, column: usize) -> Self {
        Self { column: Some(column), ..self }
    }

    fn has_shape_of(&self, other: &Self) -> bool {
        let values = |region: &Self| (region.memory.element, region.parts, region.memory.count);
        let shape = |region: &Self| (region.role, values(region), region.distribution, region.column);
        shape(self) == shape(other)
    }

    /// Begins a new table of announced writes: nothing is known of writes before.
    fn track(&mut self) {
        self.writes = Some(WriteTable::new(self.memory.count, self.memory.element.element()));
    }

    /// Moves to other memory of the same shape, whose values may be any.
    fn move_to(&mut self, memory: LentMemory) {
        self.memory = memory;
        if self.writes.is_some() {
            self.track();
        }
    }

    fn lend_mut(&mut self) -> VariableMut<'_> {
        VariableMut::new(&self.name, self.memory.lend_mut())
    }

    fn lend(&self) -> Variable<'_> {
        let Self { name, role, memory, distribution, dims, parts, column, writes } = self;
        let zones = writes.as_ref().map(|writes| writes as &dyn Zones);
        Variable {
            dims: *dims,
            stride: *parts as usize,
            is_complex: *parts == 2,
            zones,
            column: *column,
            ..Variable::new(name, *role, memory.lend(), *distribution)
        }
    }
}

fn role_of(role: i32) -> Option<Role> {
    Some(match role {
        RECOUP_ITERATE => Role::Iterate,
        RECOUP_DIRECTION => Role::Direction,
        // A variable that is saved once is like others, in a run of its own.
        RECOUP_DYNAMIC | RECOUP_STATIC => Role::Dynamic,
        RECOUP_RECURRENCE => Role::Recomputed { saved_for: Resume::Traditional },
        RECOUP_RECOMPUTED => Role::Recomputed { saved_for: Resume::Exact },
        _ => return None,
    })
}

/// The distribution of values of some parts over the ranks, by `first` and `global`.
fn distribution(first: u64, global: u64, count: u64, parts: u64) -> Option<Distribution> {
    match first {
        RECOUP_RANK_LOCAL => Some(Distribution::RankLocal),
        RECOUP_REPLICATED => Some(Distribution::Replicated),
        first if first.checked_add(count)? > global => None,
        // The last row is below `global`, so the product of the first one is in range as well.
        first => Some(Distribution::Rows { first: first * parts, global: global.checked_mul(parts)? }),
    }
}

/// All variables of one kind, in the order they were protected.
#[derive(Debug, Default)]
pub(crate) struct ProtectedRegions {
    regions: Vec<Region>,
}

impl ProtectedRegions {
    /// Adds a region, or moves the one of the same name and shape; only moving is possible once
    /// `is_started`.
    pub(crate) fn add(&mut self, region: Region, is_started: bool) -> Result<(), CallFailure> {
        let at = self.regions.iter().position(|other| other.name == region.name);
        let mut others = self.regions.iter().enumerate().filter(|(i, _)| Some(*i) != at).map(|(_, other)| other);
        if let Some(other) = others.find(|other| other.memory.overlaps(&region.memory)) {
            return Err(CallFailure::argument(format!("variable {} overlaps {}", region.name, other.name)));
        }
        match at {
            Some(at) if self.regions[at].has_shape_of(&region) => self.regions[at].move_to(region.memory),
            Some(_) if !is_started => {
                let what = format!("variable {}: taken by one of another role, type or size", region.name);
                return Err(CallFailure::new(RECOUP_E_NAME, what));
            }
            None if !is_started => self.regions.push(region),
            _ => {
                let what =
                    format!("variable {}: only its address can change after the first restore or step", region.name);
                return Err(CallFailure::new(RECOUP_E_ORDER, what));
            }
        }
        Ok(())
    }

    /// Places the values of a variable on a grid.
    pub(crate) fn set_grid(&mut self, name: &str, dims: [u64; 3]) -> Result<(), CallFailure> {
        let region = self.region_mut(name)?;
        let values = dims.iter().try_fold(1_u64, |product, extent| product.checked_mul(*extent));
        let count = region.memory.count as u64 / region.parts;
        if values != Some(count) {
            return Err(CallFailure::argument(format!("variable {name}: extents {dims:?}, {count} values")));
        }
        region.dims = dims.map(|extent| extent as usize);
        region.dims[0] *= region.parts as usize;
        Ok(())
    }

    /// Begins to track a variable whose writes the program announces.
    pub(crate) fn track(&mut self, name: &str) -> Result<(), CallFailure> {
        self.region_mut(name)?.track();
        Ok(())
    }

    /// Takes an announced write.
    pub(crate) fn touch(&mut self, name: &str, first: u64, count: u64) -> Result<(), CallFailure> {
        let region = self.region_mut(name)?;
        let parts = region.parts;
        let writes = region
            .writes
            .as_ref()
            .ok_or_else(|| CallFailure::new(RECOUP_E_ORDER, format!("variable {name}: touched, but not tracked")))?;
        let position = |value: u64| usize::try_from(value.saturating_mul(parts)).unwrap_or(usize::MAX);
        writes.touch(position(first)..position(first.saturating_add(count)));
        Ok(())
    }

    fn region_mut(&mut self, name: &str) -> Result<&mut Region, CallFailure> {
        let found = self.regions.iter_mut().find(|region| region.name == name);
        found.ok_or_else(|| CallFailure::new(RECOUP_E_NAME, format!("variable {name}: not protected")))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    pub(crate) fn holds(&self, name: &str) -> bool {
        self.regions.iter().any(|region| region.name == name)
    }
}

impl Registered for ProtectedRegions {
    fn variables(&self) -> Vec<Variable<'_>> {
        self.regions.iter().map(Region::lend).collect()
    }

    fn revision(&self) -> u64 {
        revision_of(self.regions.iter().map(Region::lend))
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        self.regions.iter_mut().map(Region::lend_mut).collect()
    }
}

/// The variables that are saved exactly in every version.
pub(crate) struct ApplicationState<'a>(pub(crate) &'a mut ProtectedRegions);

impl ApplicationState<'_> {
    fn regions(&self) -> impl Iterator<Item = &Region> {
        self.0.regions.iter().filter(|region| region.role == Role::Dynamic)
    }
}

impl Registered for ApplicationState<'_> {
    fn variables(&self) -> Vec<Variable<'_>> {
        self.regions().map(Region::lend).collect()
    }

    fn revision(&self) -> u64 {
        revision_of(self.regions().map(Region::lend))
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        let dynamic = self.0.regions.iter_mut().filter(|region| region.role == Role::Dynamic);
        dynamic.map(Region::lend_mut).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every code of a type, the type it is lent as, and the bytes of a value.
    const TYPES: [(i32, ElementType, usize); 4] = [
        (RECOUP_F64, ElementType::F64, 8),
        (RECOUP_F32, ElementType::F32, 4),
        (RECOUP_I64, ElementType::I64, 8),
        (RECOUP_BYTES, ElementType::Bytes, 1),
    ];

    #[test]
    fn memory_is_lent_as_the_type_it_was_given_as_and_no_longer_than_it_is() {
        let mut words = [0_u64; 6];
        for (code, element, bytes) in TYPES {
            let count = size_of_val(&words) / bytes;
            let start = words.as_mut_ptr().cast();
            let mut region = Region::new("v", RECOUP_DYNAMIC, code, start, count as u64, RECOUP_RANK_LOCAL, 0).unwrap();
            assert_eq!((region.memory.values().element(), region.memory.values().len()), (element, count));
            let lent = region.memory.values_mut();
            assert_eq!((lent.as_values().element(), lent.as_values().len()), (element, count));
        }
        for code in [-1, TYPES.len() as i32, i32::MAX] {
            let start = words.as_mut_ptr().cast();
            assert!(Region::new("v", RECOUP_DYNAMIC, code, start, 1, RECOUP_RANK_LOCAL, 0).is_err(), "{code}");
        }
    }

    #[test]
    fn complex_values_are_lent_as_their_parts() {
        let mut words = [0_u64; 48];
        for (code, element, n_values) in [(RECOUP_C128, ElementType::F64, 24), (RECOUP_C64, ElementType::F32, 48)] {
            let start = words.as_mut_ptr().cast();
            let region = Region::new("v", RECOUP_ITERATE, code, start, n_values, 10, 100).unwrap();
            let mut regions = ProtectedRegions::default();
            regions.add(region, false).unwrap();
            assert!(regions.set_grid("v", [2 * n_values, 1, 1]).is_err());
            regions.set_grid("v", [n_values / 4, 4, 1]).unwrap();
            regions.track("v").unwrap();
            let [variable] = &regions.variables()[..] else { panic!("one variable") };
            let n_parts = 2 * n_values as usize;
            assert_eq!((variable.values.element(), variable.values.len(), variable.stride), (element, n_parts, 2));
            assert_eq!(variable.dims, [n_parts / 4, 4, 1]);
            assert_eq!(variable.distribution, Distribution::Rows { first: 20, global: 200 });
            assert!(Region::new("v", RECOUP_ITERATE, code, start, u64::MAX / 2, 0, u64::MAX).is_err());
            assert!(Region::new("v", RECOUP_ITERATE, code, start, 1, 0, u64::MAX).is_err());
        }
    }

    #[test]
    fn touched_values_of_a_tracked_variable_are_known_until_it_moves() {
        let mut here = vec![0.0; 20_000];
        let mut there = here.clone();
        let region = |memory: &mut Vec<f64>| {
            let start = memory.as_mut_ptr().cast();
            Region::new("v", RECOUP_DYNAMIC, RECOUP_F64, start, 20_000, RECOUP_RANK_LOCAL, 0).unwrap()
        };
        let mut regions = ProtectedRegions::default();
        regions.add(region(&mut here), false).unwrap();
        assert!(regions.variables()[0].zones.is_none());
        assert_eq!(regions.touch("v", 0, 1).unwrap_err().code, RECOUP_E_ORDER);
        regions.track("v").unwrap();
        let mark = regions.variables()[0].zones.unwrap().mark();
        regions.touch("v", 19_000, u64::MAX).unwrap();
        regions.touch("v", 0, 1).unwrap();
        let written = |regions: &ProtectedRegions| regions.variables()[0].zones.unwrap().written_since(mark);
        // In zones of 8192 doubles.
        assert_eq!(written(&regions), Some(vec![0..8192, 16_384..20_000]));
        regions.add(region(&mut there), true).unwrap();
        assert_eq!(written(&regions), None);
    }

    /// An arm for "any other type" lent its memory as doubles: a new type of four bytes would have
    /// been read and written at twice its length. The compiler names a missing arm only while there
    /// is no such one.
    #[test]
    fn no_arm_stands_for_any_other_type() {
        let code = include_str!("protected.rs").split("#[cfg(test)]").next().unwrap();
        let lends = |line: &&str| line.contains("=> Values") && line.trim_start().starts_with('_');
        assert_eq!(code.lines().find(lends), None);
    }
}
