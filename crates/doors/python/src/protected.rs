//! Protected arrays: NumPy arrays, and arrays on a CUDA device, lent to a session for the time of a
//! call.

use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use recoup::core::{
    Borrowed, BorrowedMut, DeviceValues, Distribution, ElementType, Registered, Resume, Role, Values, Variable,
    VariableMut, Zones, revision_of,
};
use recoup::pipeline::WriteTable;

use crate::device_array::DeviceArray;
use crate::host_array::{HostArray, HostArrayMut, dims};
use crate::refused;

/// An array under its name.
pub(crate) struct ProtectedArray {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) place: ArrayPlace,
    /// Extents, fastest first.
    pub(crate) dims: [usize; 3],
    /// Numbers that lie together at each point.
    pub(crate) unknowns: usize,
    /// Column of a block, where the problem has several.
    pub(crate) column: Option<usize>,
    /// A spare: a variable only while versions hold it, or once it was taken into use.
    pub(crate) is_spare: bool,
    pub(crate) is_used: bool,
    pub(crate) element: ElementType,
    /// Writes that the program announces, where it announces all of them.
    pub(crate) writes: Option<WriteTable>,
}

/// The place of an array's values.
pub(crate) enum ArrayPlace {
    NumPy(Py<PyUntypedArray>),
    Device(DeviceArray),
}

impl ProtectedArray {
    /// Describes an array to be protected.
    ///
    /// # Errors
    /// [`crate::Error`] for a role that is none, and for an array that is not contiguous in C order
    /// or of another type than f64, f32, i64 and u8.
    pub(crate) fn new(name: &str, array: &Bound<'_, PyAny>, role: &str, is_spare: bool) -> PyResult<Self> {
        let role = role_of(role)?;
        let (dims, element, place) = match DeviceArray::of(name, array)? {
            Some(array) => (dims(&array.shape), array.element, ArrayPlace::Device(array)),
            None => {
                let array = array.cast::<PyUntypedArray>()?;
                if !array.is_c_contiguous() {
                    return Err(refused(format!("array {name} is not contiguous in C order: protect a copy of it")));
                }
                let element = HostArray::of(name, array)?.values()?.element();
                (dims(array.shape()), element, ArrayPlace::NumPy(array.clone().unbind()))
            }
        };
        check_role(name, role, element)?;
        Ok(Self {
            name: name.to_owned(),
            role,
            place,
            dims,
            unknowns: 1,
            column: None,
            is_spare,
            is_used: !is_spare,
            element,
            writes: None,
        })
    }

    /// Returns whether an array may take the place of this one.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let kind = |array: &Self| (array.role, array.element, array.unknowns, array.column);
        kind(self) == kind(other)
    }

    /// Begins a new table of announced writes: nothing is known of writes before.
    pub(crate) fn track(&mut self) {
        self.writes = Some(WriteTable::new(self.dims.iter().product(), self.element));
    }

    fn is_complex(&self) -> bool {
        self.unknowns == 2
    }

    fn distribution(&self) -> Distribution {
        match self.role {
            Role::Iterate | Role::Direction => {
                Distribution::Rows { first: 0, global: self.dims.iter().product::<usize>() as u64 }
            }
            _ => Distribution::RankLocal,
        }
    }
}

/// Refuses vectors of a solver that hold no real numbers.
fn check_role(name: &str, role: Role, element: ElementType) -> PyResult<()> {
    let is_vector = matches!(role, Role::Iterate | Role::Direction);
    if is_vector && !matches!(element, ElementType::F64 | ElementType::F32) {
        let expected = "needs real or complex numbers";
        return Err(refused(format!("array {name} is of type {element}, role {role:?} {expected}")));
    }
    Ok(())
}

fn role_of(name: &str) -> PyResult<Role> {
    Ok(match name {
        "iterate" => Role::Iterate,
        "direction" => Role::Direction,
        "dynamic" => Role::Dynamic,
        "recomputed" => Role::Recomputed { saved_for: Resume::Traditional },
        other => {
            let expected = "expected iterate, direction, dynamic or recomputed";
            return Err(refused(format!("role {other}: {expected}")));
        }
    })
}

/// An array borrowed to be read.
pub(crate) enum ReadableArray<'py> {
    NumPy(HostArray<'py>),
    Device(Box<dyn DeviceValues>),
}

impl ReadableArray<'_> {
    fn lend(&self) -> PyResult<Borrowed<'_>> {
        match self {
            Self::NumPy(array) => array.values().map(Borrowed::Host),
            Self::Device(memory) => Ok(Borrowed::Device(&**memory)),
        }
    }
}

/// Borrows all arrays in use to be read.
///
/// # Errors
/// [`crate::Error`] when one is borrowed to be written.
pub(crate) fn read<'py>(py: Python<'py>, all: &[ProtectedArray]) -> PyResult<Vec<ReadableArray<'py>>> {
    let reading = |p: &ProtectedArray| match &p.place {
        ArrayPlace::NumPy(array) => HostArray::of(&p.name, array.bind(py)).map(ReadableArray::NumPy),
        ArrayPlace::Device(array) => array.borrow(&p.name).map(ReadableArray::Device),
    };
    all.iter().filter(|p| p.is_used).map(reading).collect()
}

/// Names the first value that is NaN or infinite; `index` says how Python finds it.
pub(crate) fn not_finite(index: impl Fn(usize) -> String, values: Values<'_>) -> Option<String> {
    let (at, value) = match values {
        Values::F64(values) => values.iter().copied().enumerate().find(|(_, value)| !value.is_finite())?,
        Values::F32(values) => {
            values.iter().map(|value| f64::from(*value)).enumerate().find(|(_, v)| !v.is_finite())?
        }
        _ => return None,
    };
    Some(format!("{} is {value}, expected a finite number", index(at)))
}

/// Variables lent to be saved.
pub(crate) struct LentArrays<'a>(Vec<Variable<'a>>);

impl<'a> LentArrays<'a> {
    /// Takes the arrays in use, as [`read`] borrowed them.
    ///
    /// # Errors
    /// [`crate::Error`] when an array has changed its layout.
    pub(crate) fn new(all: &'a [ProtectedArray], readings: &'a [ReadableArray<'_>]) -> PyResult<Self> {
        let pairs = all.iter().filter(|p| p.is_used).zip(readings);
        let variable = |(p, reading): (&'a ProtectedArray, &'a ReadableArray<'_>)| {
            let dims = p.dims;
            let stride = p.unknowns;
            let values = reading.lend()?;
            let zones = p.writes.as_ref().map(|writes| writes as &dyn Zones);
            let column = p.column;
            let is_complex = p.is_complex();
            let plain = Variable::new(&p.name, p.role, values, p.distribution());
            Ok(Variable { dims, stride, is_complex, zones, column, ..plain })
        };
        Ok(Self(pairs.map(variable).collect::<PyResult<_>>()?))
    }

    /// Names the first value of an iterate here that is NaN or infinite.
    pub(crate) fn not_finite(&self) -> Option<String> {
        self.0.iter().filter(|variable| variable.role == Role::Iterate).find_map(|variable| {
            let flat = if variable.dims[1..] == [1, 1] { "" } else { ".flat" };
            let part = |at: usize| if variable.stride == 1 { "" } else { [".real", ".imag"][at % 2] };
            let index = |at| format!("{}{flat}[{}]{}", variable.name, at / variable.stride, part(at));
            not_finite(index, variable.values.host()?)
        })
    }
}

impl Registered for LentArrays<'_> {
    fn variables(&self) -> Vec<Variable<'_>> {
        self.0.clone()
    }

    fn revision(&self) -> u64 {
        revision_of(self.0.iter().cloned())
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        Vec::new()
    }
}

/// An array borrowed to be written.
pub(crate) enum WritableArray<'py> {
    NumPy(HostArrayMut<'py>),
    Device(Box<dyn DeviceValues>),
}

impl<'py> WritableArray<'py> {
    /// Borrows an array to be written.
    ///
    /// # Errors
    /// [`crate::Error`] when it is borrowed otherwise, or not to be written.
    pub(crate) fn of(py: Python<'py>, protected: &ProtectedArray) -> PyResult<Self> {
        match &protected.place {
            ArrayPlace::NumPy(array) => HostArrayMut::of(&protected.name, array.bind(py)).map(Self::NumPy),
            ArrayPlace::Device(array) => array.borrow(&protected.name).map(Self::Device),
        }
    }

    fn lend_mut(&mut self) -> PyResult<BorrowedMut<'_>> {
        match self {
            Self::NumPy(array) => array.values_mut().map(BorrowedMut::Host),
            Self::Device(memory) => Ok(BorrowedMut::Device(&mut **memory)),
        }
    }
}

/// One variable lent to be restored.
struct RestoreTarget<'a> {
    protected: &'a ProtectedArray,
    values: BorrowedMut<'a>,
    is_used: bool,
}

impl RestoreTarget<'_> {
    fn variable(&self) -> Variable<'_> {
        let ProtectedArray { name, role, dims, unknowns: stride, column, .. } = self.protected;
        let variable = Variable::new(name, *role, self.values.as_borrowed(), self.protected.distribution());
        let is_complex = self.protected.is_complex();
        Variable { dims: *dims, stride: *stride, is_complex, column: *column, ..variable }
    }

    fn variable_mut(&mut self) -> VariableMut<'_> {
        let values = match &mut self.values {
            BorrowedMut::Host(values) => BorrowedMut::Host(values.reborrow()),
            BorrowedMut::Device(values) => BorrowedMut::Device(&mut **values),
        };
        VariableMut::new(&self.protected.name, values)
    }
}

/// Variables lent to be restored. Spare ones come into use where a version holds them.
pub(crate) struct RestoreTargets<'a>(Vec<RestoreTarget<'a>>);

impl<'a> RestoreTargets<'a> {
    /// Takes these arrays, spare ones too.
    ///
    /// # Errors
    /// [`crate::Error`] when an array has changed its layout.
    pub(crate) fn new(
        protected: impl Iterator<Item = &'a ProtectedArray>,
        writings: &'a mut [WritableArray<'_>],
    ) -> PyResult<Self> {
        let target = |(protected, writing): (&'a ProtectedArray, &'a mut WritableArray<'_>)| {
            Ok(RestoreTarget { protected, values: writing.lend_mut()?, is_used: protected.is_used })
        };
        Ok(Self(protected.zip(writings).map(target).collect::<PyResult<_>>()?))
    }

    /// Returns the names of those in use now.
    pub(crate) fn used(&self) -> Vec<String> {
        self.0.iter().filter(|target| target.is_used).map(|target| target.protected.name.clone()).collect()
    }
}

impl Registered for RestoreTargets<'_> {
    fn variables(&self) -> Vec<Variable<'_>> {
        self.0.iter().filter(|target| target.is_used).map(RestoreTarget::variable).collect()
    }

    fn revision(&self) -> u64 {
        revision_of(self.0.iter().filter(|target| target.is_used).map(RestoreTarget::variable))
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        let used = self.0.iter_mut().filter(|target| target.is_used);
        used.map(RestoreTarget::variable_mut).collect()
    }

    fn make_room(&mut self, saved: &[&str]) {
        for target in self.0.iter_mut().filter(|target| target.protected.is_spare) {
            target.is_used = saved.contains(&target.protected.name.as_str());
        }
    }
}
