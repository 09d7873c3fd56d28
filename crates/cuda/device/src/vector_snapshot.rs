//! Frozen copies of values on a device.
//!
//! A copy has an order of its own: the ticket of the last work on it tells other streams when it is
//! there. Copies to and from the host have a stream of their own, so that they do not wait for what
//! the owner has given to his.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use recoup_core::{
    DeviceSnapshot, DeviceValuesError, DeviceValuesErrorKind, ElementType, SnapshotAllocator, Values, ValuesMut,
};

use crate::element::with_type;
use crate::pending::pieces;
use crate::zone_hash::ZoneHashes;
use crate::{
    Device, DeviceElement, DeviceError, DeviceTicket, DeviceVec, DeviceView, DeviceViewMut, HostBuffer, Mapped, Stream,
};

/// Bytes that travel at a time between a frozen copy and the host.
const PIECE_BYTES: usize = 8 << 20;
/// Bytes of the words that a hash takes.
const WORD_BYTES: u64 = 8;

/// A frozen copy of values in a device's memory, in the same memory.
pub struct VectorSnapshot<T> {
    device: Device,
    values: DeviceVec<T>,
    transfer: Mutex<SnapshotOrder>,
}

/// The order of the work on a frozen copy, and its staging buffer.
struct SnapshotOrder {
    /// Made when first needed: the owner does not wait for it.
    staging: Option<StagingBuffer>,
    /// The last work on the values, in whatever stream. All further work waits for it.
    last: Option<DeviceTicket>,
}

/// Memory that copies to and from the host pass through, and their stream.
struct StagingBuffer {
    stream: Stream,
    pinned: HostBuffer,
    /// Made when first asked for.
    hashes: Option<ZoneHashes>,
}

impl<T> fmt::Debug for VectorSnapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VectorSnapshot").field("values", &self.values).finish_non_exhaustive()
    }
}

impl SnapshotOrder {
    /// Lets later work of `stream` come after the last work on the values.
    fn order(&self, stream: &Stream) -> Result<(), DeviceError> {
        self.last.as_ref().map_or(Ok(()), |last| stream.wait_for(last))
    }

    /// Takes the staging buffer out; made now if there is none. After an error it is not put
    /// back, and the next copy makes another.
    fn take_staging_buffer(&mut self, device: &Device, bytes: usize) -> Result<StagingBuffer, DeviceError> {
        self.staging.take().map_or_else(|| StagingBuffer::new(device, bytes), Ok)
    }
}

impl StagingBuffer {
    fn new(device: &Device, bytes: usize) -> Result<Self, DeviceError> {
        let pinned = HostBuffer::registered(device, bytes.clamp(1, PIECE_BYTES))?;
        Ok(Self { stream: Stream::new(device)?, pinned, hashes: None })
    }

    /// Copies pieces that lie one after the other in the pinned memory to their places.
    fn unload<T: DeviceElement>(&self, batch: &mut Vec<Range<usize>>, target: &mut [T]) -> Result<(), DeviceError> {
        let mut offset = 0;
        for piece in batch.drain(..) {
            let place: &mut [u8] = bytemuck::cast_slice_mut(&mut target[piece]);
            place.copy_from_slice(&self.pinned.read(offset..offset + place.len())?);
            offset += place.len();
        }
        Ok(())
    }
}

impl<T: DeviceElement> VectorSnapshot<T> {
    /// Makes room for `len` values, which are whatever the memory holds.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when the device has no more.
    pub(crate) fn new(device: &Device, len: usize) -> Result<Self, DeviceValuesError> {
        let values = DeviceVec::new(device, len).map_err(device_values_error)?;
        let transfer = Mutex::new(SnapshotOrder { staging: None, last: None });
        Ok(Self { device: device.clone(), values, transfer })
    }

    /// Makes a frozen copy of `len` values from byte `offset` of memory that grows.
    pub(crate) fn part_of(device: &Device, mapped: &Arc<Mapped>, offset: usize, len: usize) -> Self {
        let transfer = Mutex::new(SnapshotOrder { staging: None, last: None });
        Self { device: device.clone(), values: DeviceVec::part_of(mapped, offset, len), transfer }
    }

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns whether the values are on this device.
    #[must_use]
    pub fn is_on(&self, device: &Device) -> bool {
        self.device.info().ordinal == device.info().ordinal
    }

    /// Returns the values, for a codec that works on this device. They are there once
    /// [`VectorSnapshot::ticket`] is done.
    #[must_use]
    pub fn view(&self) -> DeviceView<'_, T> {
        self.values.view()
    }

    /// Returns the values, for a codec that decodes on this device. It writes after
    /// [`VectorSnapshot::ticket`], and says by [`VectorSnapshot::wrote`] when it is done.
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

    fn transfer(&self) -> MutexGuard<'_, SnapshotOrder> {
        // A ticket is replaced by one step.
        self.transfer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Freezes an owner's values, as the next work of his stream, and repeats the last of them up
    /// to `padded_len`; in the memory of `earlier` where that fits.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when there is no room, or the device fails.
    pub(crate) fn frozen(
        values: DeviceView<'_, T>,
        padded_len: usize,
        stream: &Stream,
        earlier: Option<Box<dyn DeviceSnapshot>>,
    ) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError> {
        let device = stream.device();
        let fits = |held: &Self| held.values.len() == padded_len && held.is_on(device);
        let mut held = match earlier {
            Some(earlier) if earlier.as_any().downcast_ref().is_some_and(fits) => earlier,
            _ => Box::new(Self::new(device, padded_len)?),
        };
        let this: &mut Self = held.as_any_mut().downcast_mut().ok_or_else(other_place)?;
        this.freeze(values, stream).map_err(device_values_error)?;
        Ok(held)
    }

    fn freeze(&mut self, source: DeviceView<'_, T>, stream: &Stream) -> Result<(), DeviceError> {
        let Self { values, transfer, .. } = self;
        let transfer = transfer.get_mut().unwrap_or_else(PoisonError::into_inner);
        transfer.order(stream)?;
        stream.copy(source, &mut values.slice_mut(0..source.len()))?;
        stream.repeat_last(source.len(), &mut values.view_mut())?;
        transfer.last = Some(stream.ticket()?);
        Ok(())
    }

    /// Copies the first values to an owner's, as the next work of his stream.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when there are fewer than the owner has, or the device fails.
    pub(crate) fn copy_to(&self, target: &mut DeviceViewMut<'_, T>, stream: &Stream) -> Result<(), DeviceValuesError> {
        if self.values.len() < target.len() || !self.is_on(stream.device()) {
            return Err(other_place());
        }
        let mut transfer = self.transfer();
        let mut copy = || {
            transfer.order(stream)?;
            stream.copy(self.values.slice(0..target.len()), target)?;
            transfer.last = Some(stream.ticket()?);
            Ok(())
        };
        copy().map_err(device_values_error)
    }

    /// Copies runs of values to the host: value `start + i` becomes value `i` of `target`. As many
    /// pieces of runs as the pinned memory has room for are under way at once.
    fn download(&self, start: usize, runs: &[Range<usize>], target: &mut [T]) -> Result<(), DeviceError> {
        let mut transfer = self.transfer();
        let staging = transfer.take_staging_buffer(&self.device, self.values.view().bytes())?;
        transfer.order(&staging.stream)?;
        let room = (staging.pinned.bytes().min(PIECE_BYTES) / size_of::<T>()).max(1);
        let mut batch = Vec::new();
        let mut used = 0;
        for piece in pieces(runs, room) {
            if used + piece.len() > room {
                staging.unload(&mut batch, target)?;
                used = 0;
            }
            let source = self.values.slice(start + piece.start..start + piece.end);
            transfer.last = Some(staging.pinned.store(&staging.stream, source, used * size_of::<T>())?);
            used += piece.len();
            batch.push(piece);
        }
        staging.unload(&mut batch, target)?;
        transfer.staging = Some(staging);
        Ok(())
    }

    /// Hashes values on the device; `None` where there is no kernel, or they begin within a word.
    fn hash(&self, values: DeviceView<'_, u8>, zone_bytes: usize) -> Result<Option<Vec<u128>>, DeviceError> {
        if !values.address().is_multiple_of(WORD_BYTES) || !zone_bytes.is_multiple_of(WORD_BYTES as usize) {
            return Ok(None);
        }
        let mut transfer = self.transfer();
        let mut staging = transfer.take_staging_buffer(&self.device, self.values.view().bytes())?;
        if staging.hashes.is_none() {
            staging.hashes = ZoneHashes::on(&self.device)?;
        }
        let StagingBuffer { stream, pinned, hashes } = &mut staging;
        let Some(hashes) = hashes else { return Ok(None) };
        transfer.order(stream)?;
        let hashes = hashes.of(stream, values, zone_bytes, pinned)?;
        transfer.last = Some(staging.stream.ticket()?);
        transfer.staging = Some(staging);
        Ok(Some(hashes))
    }

    /// Copies values of the host to those from `start` on, a piece at a time.
    fn upload(&mut self, start: usize, source: &[T]) -> Result<(), DeviceError> {
        let Self { device, values, transfer } = self;
        let transfer = transfer.get_mut().unwrap_or_else(PoisonError::into_inner);
        let staging = transfer.take_staging_buffer(device, values.view().bytes())?;
        let mut start = start;
        for piece in source.chunks(PIECE_BYTES / size_of::<T>()) {
            let bytes: &[u8] = bytemuck::cast_slice(piece);
            staging.pinned.write(0..bytes.len())?.copy_from_slice(bytes);
            transfer.order(&staging.stream)?;
            let mut target = values.slice_mut(start..start + piece.len());
            transfer.last = Some(staging.pinned.load(&staging.stream, 0, &mut target)?);
            start += piece.len();
        }
        transfer.staging = Some(staging);
        Ok(())
    }
}

impl<T: DeviceElement> DeviceSnapshot for VectorSnapshot<T> {
    fn element(&self) -> ElementType {
        T::ELEMENT
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn fetch(&self, start: usize, target: ValuesMut<'_>) -> Result<(), DeviceValuesError> {
        let target = T::values_mut(target).ok_or_else(other_place)?;
        let all = 0..target.len();
        self.download(start, std::slice::from_ref(&all), target).map_err(device_values_error)
    }

    fn fetch_runs(&self, start: usize, runs: &[Range<usize>], target: ValuesMut<'_>) -> Result<(), DeviceValuesError> {
        let target = T::values_mut(target).ok_or_else(other_place)?;
        self.download(start, runs, target).map_err(device_values_error)
    }

    fn zone_hashes(&self, start: usize, len: usize, zone_bytes: usize) -> Result<Option<Vec<u128>>, DeviceValuesError> {
        self.hash(self.values.slice(start..start + len).as_bytes(), zone_bytes).map_err(device_values_error)
    }

    fn put(&mut self, start: usize, source: Values<'_>) -> Result<(), DeviceValuesError> {
        let source = T::values(source).ok_or_else(other_place)?;
        self.upload(start, source).map_err(device_values_error)
    }

    fn is_alike(&self, other: &dyn DeviceSnapshot) -> bool {
        let other = other.as_any().downcast_ref::<Self>();
        other.is_some_and(|other| other.values.len() == self.values.len() && other.is_on(&self.device))
    }

    fn alloc(&self) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError> {
        Ok(Box::new(Self::new(&self.device, self.values.len())?))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl SnapshotAllocator for Device {
    fn alloc(&self, element: ElementType, len: usize) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError> {
        Ok(with_type!(element, T => Box::new(VectorSnapshot::<T>::new(self, len)?)))
    }
}

pub(crate) fn other_place() -> DeviceValuesError {
    DeviceValuesError {
        message: "values of another type, number or place".to_owned(),
        kind: DeviceValuesErrorKind::Failed,
    }
}

/// Turns an error of a device into one of a place, by what can be done about it.
#[must_use]
pub fn device_values_error(error: DeviceError) -> DeviceValuesError {
    let kind = match &error {
        error if error.is_out_of_memory() => DeviceValuesErrorKind::NoRoom,
        error if error.is_lost() => DeviceValuesErrorKind::Lost,
        _ => DeviceValuesErrorKind::Failed,
    };
    DeviceValuesError { message: error.to_string(), kind }
}
