//! Memory of a device that the program owns, lent to a session for the time of a call.
//!
//! The program's streams are not known here. Each call therefore waits for all work of the device's
//! primary context first, and for its own copy at the end: what the program did before the call is
//! in the copy, and what it does later is not. The price is that work in other streams of the
//! program does not overlap with the call.

use std::any::Any;
use std::fmt;

use recoup_core::{Afar, AfarError, AfarErrorKind, ElementType, HeldValues, Values, ValuesMut};

use crate::{Device, DeviceError, DeviceVec, DeviceView, DeviceViewMut, Stream, device_pointer};

/// Values of the program in the memory of a device.
#[derive(Debug)]
pub struct BorrowedMemory {
    stream: Stream,
    address: usize,
    element: ElementType,
    len: usize,
}

impl BorrowedMemory {
    /// Borrows `len` values at `address` if it lies in the memory of a device. `None` for memory of
    /// the host. The program keeps the memory while it is borrowed.
    ///
    /// # Errors
    /// [`AfarError`] when the allocation is shorter, or the device refuses.
    pub fn find(address: usize, element: ElementType, len: usize) -> Result<Option<Self>, AfarError> {
        let Some(place) = device_pointer(address).map_err(afar_error)? else { return Ok(None) };
        let bytes = len * element.size();
        let left = place.bytes.saturating_sub(address - place.start);
        if bytes > left {
            let message = format!("{bytes} bytes expected at {address:#x} of device {}, {left} found", place.ordinal);
            return Err(AfarError { message, kind: AfarErrorKind::Failed });
        }
        let device = Device::open(place.ordinal).map_err(afar_error)?;
        let stream = Stream::new(&device).map_err(afar_error)?;
        Ok(Some(Self { stream, address, element, len }))
    }

    fn bytes(&self) -> usize {
        self.len * self.element.size()
    }

    /// Waits for the program's work.
    fn settle(&self) -> Result<(), DeviceError> {
        self.stream.context().enter()?.synchronize()
    }

    fn view(&self) -> DeviceView<'_, u8> {
        DeviceView::at(self.address as u64, self.bytes())
    }

    fn view_mut(&mut self) -> DeviceViewMut<'_, u8> {
        DeviceViewMut::at(self.address as u64, self.bytes())
    }

    /// Copies all values to the host, as bytes, once the program's work is done.
    ///
    /// # Errors
    /// [`AfarError`] when the device is lost.
    pub fn read_bytes(&self, target: &mut [u8]) -> Result<(), AfarError> {
        self.settle().and_then(|()| self.stream.download(self.view(), target)).map_err(afar_error)
    }

    /// Overwrites all values with bytes of the host, once the program's work is done.
    ///
    /// # Errors
    /// [`AfarError`] when the device is lost.
    pub fn write_bytes(&mut self, source: &[u8]) -> Result<(), AfarError> {
        let stream = self.stream.clone();
        self.settle().and_then(|()| stream.upload(source, &mut self.view_mut())).map_err(afar_error)
    }
}

impl Afar for BorrowedMemory {
    fn element(&self) -> ElementType {
        self.element
    }

    fn len(&self) -> usize {
        self.len
    }

    fn hold(&self, earlier: Option<Box<dyn HeldValues>>) -> Result<Box<dyn HeldValues>, AfarError> {
        let mut held = HeldBytes::like(self, earlier)?;
        let mut copy = || {
            self.settle()?;
            self.stream.copy(self.view(), &mut held.memory.view_mut())?;
            self.stream.synchronize()
        };
        copy().map_err(afar_error)?;
        Ok(Box::new(held))
    }

    fn room(&self) -> Result<Box<dyn HeldValues>, AfarError> {
        Ok(Box::new(HeldBytes::like(self, None)?))
    }

    fn overwrite(&mut self, held: &dyn HeldValues) -> Result<(), AfarError> {
        let held: Option<&HeldBytes> = held.as_any().downcast_ref();
        let held = held.filter(|held| held.element == self.element && held.len == self.len);
        let held = held.ok_or_else(|| {
            let message = format!("{} values of type {} were held elsewhere", self.len, self.element);
            AfarError { message, kind: AfarErrorKind::Failed }
        })?;
        let stream = self.stream.clone();
        let mut copy = || {
            held.stream.synchronize()?;
            self.settle()?;
            stream.copy(held.memory.view(), &mut self.view_mut())?;
            stream.synchronize()
        };
        copy().map_err(afar_error)
    }
}

/// A frozen copy of a program's values, in memory of the device that is ours.
pub struct HeldBytes {
    // Before the stream: dropping the memory waits for the device.
    memory: DeviceVec<u8>,
    stream: Stream,
    element: ElementType,
    len: usize,
}

impl HeldBytes {
    /// Room for the values of `owner`, in the memory of `earlier` where that fits.
    fn like(owner: &BorrowedMemory, earlier: Option<Box<dyn HeldValues>>) -> Result<Self, AfarError> {
        let earlier = earlier.and_then(|mut held| {
            let held: &mut Self = held.as_any_mut().downcast_mut()?;
            let is_here = held.stream.device().info().ordinal == owner.stream.device().info().ordinal;
            let fits = is_here && held.memory.len() == owner.bytes();
            fits.then(|| std::mem::replace(&mut held.memory, DeviceVec::none(held.stream.device())))
        });
        let memory = match earlier {
            Some(memory) => memory,
            None => DeviceVec::new(owner.stream.device(), owner.bytes()).map_err(afar_error)?,
        };
        Ok(Self { memory, stream: owner.stream.clone(), element: owner.element, len: owner.len })
    }
}

impl fmt::Debug for HeldBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeldBytes({} {})", self.len, self.element)
    }
}

impl HeldValues for HeldBytes {
    fn element(&self) -> ElementType {
        self.element
    }

    fn len(&self) -> usize {
        self.len
    }

    fn fetch(&self, start: usize, target: ValuesMut<'_>) -> Result<(), AfarError> {
        assert_eq!(target.as_values().element(), self.element, "a copy has the type of its source");
        let target = match target {
            ValuesMut::F64(values) => bytemuck::cast_slice_mut(values),
            ValuesMut::F32(values) => bytemuck::cast_slice_mut(values),
            ValuesMut::I64(values) => bytemuck::cast_slice_mut(values),
            ValuesMut::Bytes(values) => values,
        };
        let first = start * self.element.size();
        self.stream.download(self.memory.slice(first..first + target.len()), target).map_err(afar_error)
    }

    fn put(&mut self, start: usize, source: Values<'_>) -> Result<(), AfarError> {
        assert_eq!(source.element(), self.element, "a copy has the type of its source");
        let source = match source {
            Values::F64(values) => bytemuck::cast_slice(values),
            Values::F32(values) => bytemuck::cast_slice(values),
            Values::I64(values) => bytemuck::cast_slice(values),
            Values::Bytes(values) => values,
        };
        let first = start * self.element.size();
        self.stream.upload(source, &mut self.memory.slice_mut(first..first + source.len())).map_err(afar_error)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// The same error, by what a pipeline can do about it.
fn afar_error(error: DeviceError) -> AfarError {
    let kind = if error.is_out_of_memory() {
        AfarErrorKind::NoRoom
    } else if error.is_lost() {
        AfarErrorKind::Lost
    } else {
        AfarErrorKind::Failed
    };
    AfarError { message: error.to_string(), kind }
}
