//! Values in the memory of a device, lent to a pipeline where they rest.
//!
//! A [`DeviceVector`] is values and the stream that works on them. A frozen copy of it is a copy
//! within the device, the next work of that stream; its ticket tells other streams when it is
//! there. Copies to and from the host have a stream of their own, so that they do not wait for what
//! the owner has given to his.

use std::any::Any;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;
use recoup_core::{Afar, AfarError, AfarErrorKind, ElementType, HeldValues, Values, ValuesMut};

use crate::{Device, DeviceError, DeviceTicket, DeviceVec, DeviceView, DeviceViewMut, HostBuffer, Stream};

/// Bytes that travel at a time between a frozen copy and the host.
const PIECE_BYTES: usize = 8 << 20;

/// A type of values that a pipeline takes.
pub trait DeviceElement: Pod + Send + Sync {
    /// The type, as the pipeline knows it.
    const ELEMENT: ElementType;

    /// Returns the values of a slice of this type.
    fn values(source: Values<'_>) -> Option<&[Self]>;

    /// Returns the values of a slice of this type, to be overwritten.
    fn values_mut(target: ValuesMut<'_>) -> Option<&mut [Self]>;
}

/// Defines the element types, a line each.
macro_rules! elements {
    ($($type:ty => $variant:ident),+ $(,)?) => {$(
        impl DeviceElement for $type {
            const ELEMENT: ElementType = ElementType::$variant;

            fn values(source: Values<'_>) -> Option<&[Self]> {
                if let Values::$variant(values) = source { Some(values) } else { None }
            }

            fn values_mut(target: ValuesMut<'_>) -> Option<&mut [Self]> {
                if let ValuesMut::$variant(values) = target { Some(values) } else { None }
            }
        }
    )+};
}

elements!(f64 => F64, f32 => F32, i64 => I64, u8 => Bytes);

/// A vector of a solver on a device: its values, and the stream that works on them. A pipeline
/// takes it as [`Afar`].
#[derive(Debug)]
pub struct DeviceVector<T> {
    /// The values.
    pub values: DeviceVec<T>,
    /// The stream in which the owner works on them.
    pub stream: Stream,
}

impl<T> AsRef<DeviceVec<T>> for DeviceVector<T> {
    fn as_ref(&self) -> &DeviceVec<T> {
        &self.values
    }
}

impl<T: DeviceElement> Afar for DeviceVector<T> {
    fn element(&self) -> ElementType {
        T::ELEMENT
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn hold(&self, earlier: Option<Box<dyn HeldValues>>) -> Result<Box<dyn HeldValues>, AfarError> {
        let fits = |held: &DeviceHeld<T>| held.values.len() == self.values.len();
        let mut held = match earlier {
            Some(earlier) if earlier.as_any().downcast_ref().is_some_and(fits) => earlier,
            _ => self.room()?,
        };
        if let Some(held) = held.as_any_mut().downcast_mut::<DeviceHeld<T>>() {
            held.freeze(self).map_err(afar_error)?;
        }
        Ok(held)
    }

    fn room(&self) -> Result<Box<dyn HeldValues>, AfarError> {
        let values = DeviceVec::<T>::new(self.stream.device(), self.values.len()).map_err(afar_error)?;
        let transfer = Mutex::new(HeldOrder { road: None, last: None });
        Ok(Box::new(DeviceHeld { device: self.stream.device().clone(), values, transfer }))
    }

    fn overwrite(&mut self, held: &dyn HeldValues) -> Result<(), AfarError> {
        match held.as_any().downcast_ref::<DeviceHeld<T>>() {
            Some(held) if held.values.len() == self.values.len() => held.copy_to(self).map_err(afar_error),
            _ => Err(other_place()),
        }
    }
}

/// A frozen copy of a [`DeviceVector`], in the same device's memory.
pub struct DeviceHeld<T> {
    device: Device,
    values: DeviceVec<T>,
    transfer: Mutex<HeldOrder>,
}

/// The order of the work on a frozen copy, and its road to the host.
struct HeldOrder {
    /// Made when first needed: the owner does not wait for it.
    road: Option<HostRoad>,
    /// The last work on the values, in whatever stream. All further work waits for it.
    last: Option<DeviceTicket>,
}

/// Memory that copies to and from the host pass through, and their stream.
struct HostRoad {
    stream: Stream,
    pinned: HostBuffer,
}

impl<T> fmt::Debug for DeviceHeld<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceHeld").field("values", &self.values).finish_non_exhaustive()
    }
}

impl HeldOrder {
    /// Lets later work of `stream` come after the last work on the values.
    fn order(&self, stream: &Stream) -> Result<(), DeviceError> {
        self.last.as_ref().map_or(Ok(()), |last| stream.wait_for(last))
    }

    /// Takes the road to the host out; made now if there is none. After an error it is not put
    /// back, and the next copy makes another.
    fn take_road(&mut self, device: &Device, bytes: usize) -> Result<HostRoad, DeviceError> {
        self.road.take().map_or_else(|| HostRoad::new(device, bytes), Ok)
    }
}

impl HostRoad {
    fn new(device: &Device, bytes: usize) -> Result<Self, DeviceError> {
        let pinned = HostBuffer::registered(device, bytes.clamp(1, PIECE_BYTES))?;
        Ok(Self { stream: Stream::new(device)?, pinned })
    }
}

impl<T: DeviceElement> DeviceHeld<T> {
    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the values, for a codec that works on this device. They are there once
    /// [`DeviceHeld::ticket`] is done.
    #[must_use]
    pub fn view(&self) -> DeviceView<'_, T> {
        self.values.view()
    }

    /// Returns the values, for a codec that decodes on this device. It writes after
    /// [`DeviceHeld::ticket`], and says by [`DeviceHeld::wrote`] when it is done.
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, T> {
        self.values.view_mut()
    }

    /// Returns the place of the last work on the values; `None` if there was none.
    #[must_use]
    pub fn ticket(&self) -> Option<DeviceTicket> {
        self.transfer().last.clone()
    }

    /// Takes note of later work on the values.
    pub fn wrote(&self, ticket: DeviceTicket) {
        self.transfer().last = Some(ticket);
    }

    fn transfer(&self) -> MutexGuard<'_, HeldOrder> {
        // A ticket is replaced by one step.
        self.transfer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies the owner's values in, as the next work of his stream.
    fn freeze(&mut self, owner: &DeviceVector<T>) -> Result<(), DeviceError> {
        let Self { values, transfer, .. } = self;
        let transfer = transfer.get_mut().unwrap_or_else(PoisonError::into_inner);
        transfer.order(&owner.stream)?;
        owner.stream.copy(owner.values.view(), &mut values.view_mut())?;
        transfer.last = Some(owner.stream.ticket()?);
        Ok(())
    }

    /// Copies the values to the owner, as the next work of his stream.
    fn copy_to(&self, owner: &mut DeviceVector<T>) -> Result<(), DeviceError> {
        let mut transfer = self.transfer();
        transfer.order(&owner.stream)?;
        owner.stream.copy(self.values.view(), &mut owner.values.view_mut())?;
        transfer.last = Some(owner.stream.ticket()?);
        Ok(())
    }

    /// Copies values from `start` on to the host, a piece at a time.
    fn download(&self, start: usize, target: &mut [T]) -> Result<(), DeviceError> {
        let mut transfer = self.transfer();
        let road = transfer.take_road(&self.device, self.values.view().bytes())?;
        let mut start = start;
        for piece in target.chunks_mut(PIECE_BYTES / size_of::<T>()) {
            let source = self.values.slice(start..start + piece.len());
            transfer.order(&road.stream)?;
            transfer.last = Some(road.pinned.store(&road.stream, source, 0)?);
            bytemuck::cast_slice_mut(piece).copy_from_slice(&road.pinned.read(0..source.bytes())?);
            start += piece.len();
        }
        transfer.road = Some(road);
        Ok(())
    }

    /// Copies values of the host to those from `start` on, a piece at a time.
    fn upload(&mut self, start: usize, source: &[T]) -> Result<(), DeviceError> {
        let Self { device, values, transfer } = self;
        let transfer = transfer.get_mut().unwrap_or_else(PoisonError::into_inner);
        let road = transfer.take_road(device, values.view().bytes())?;
        let mut start = start;
        for piece in source.chunks(PIECE_BYTES / size_of::<T>()) {
            let bytes: &[u8] = bytemuck::cast_slice(piece);
            road.pinned.write(0..bytes.len())?.copy_from_slice(bytes);
            transfer.order(&road.stream)?;
            let mut target = values.slice_mut(start..start + piece.len());
            transfer.last = Some(road.pinned.load(&road.stream, 0, &mut target)?);
            start += piece.len();
        }
        transfer.road = Some(road);
        Ok(())
    }
}

impl<T: DeviceElement> HeldValues for DeviceHeld<T> {
    fn element(&self) -> ElementType {
        T::ELEMENT
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn fetch(&self, start: usize, target: ValuesMut<'_>) -> Result<(), AfarError> {
        let target = T::values_mut(target).ok_or_else(other_place)?;
        self.download(start, target).map_err(afar_error)
    }

    fn put(&mut self, start: usize, source: Values<'_>) -> Result<(), AfarError> {
        let source = T::values(source).ok_or_else(other_place)?;
        self.upload(start, source).map_err(afar_error)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

fn other_place() -> AfarError {
    AfarError { message: "values of another type, number or place".to_owned(), kind: AfarErrorKind::Failed }
}

/// Turns an error of a device into one of a place, by what can be done about it.
#[must_use]
pub fn afar_error(error: DeviceError) -> AfarError {
    let kind = match &error {
        error if error.is_out_of_memory() => AfarErrorKind::NoRoom,
        error if error.is_lost() => AfarErrorKind::Lost,
        _ => AfarErrorKind::Failed,
    };
    AfarError { message: error.to_string(), kind }
}
