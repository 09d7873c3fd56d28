//! The level in the memory of a device: a cache that is mapped while it is in use.
//!
//! Promises: work on the same bytes is in order. A copy of the program within the device is given
//! to its owner's stream and not waited for; its place keeps the ticket, and whoever uses the place
//! next waits for it in a stream. All other copies are done when their call returns, or have failed
//! and are no longer under way, unless the device is lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use recoup_core::{CodecError, DeviceSnapshot, DeviceValues, DeviceValuesError, DeviceValuesErrorKind};
use recoup_device::{
    Device, DeviceError, DeviceTicket, HostBuffer, Mapped, MappedPart, PlacedCopy, Stream, device_values_error,
};

use crate::owned::{raw_mut, read_bytes, write_bytes};
use crate::payload::{PayloadSource, PayloadTarget, RecordSource, RecordTarget, StateTarget, fetch};
use crate::record::{HEADER_BYTES, StateHeader};
use crate::record_coder::{CodingRoom, RecordCoder};
use crate::work::Extent;

/// Copies of the program under way before those that are done are looked for.
const KEPT: usize = 16;
/// Copies of the program under way before a push or a pop waits for the oldest.
const UNDER_WAY_MAX: usize = 256;

/// The memory of a device, as places of records.
#[derive(Debug)]
pub(crate) struct DeviceCache {
    device: Device,
    mapped: Arc<Mapped>,
    /// Streams of the calling thread, of copies to the host, and of those from there.
    calls: Stream,
    down: Stream,
    up: Stream,
    under_way: Mutex<ProgramCopies>,
    /// Works between this level and those below, if they are coded.
    coder: Option<Arc<RecordCoder>>,
}

/// Copies of the program that may be under way.
#[derive(Debug, Default)]
struct ProgramCopies {
    copies: Vec<PlaceUse>,
    n_copies: u64,
}

/// A use of a place, until the ticket is due.
#[derive(Clone, Debug)]
struct PlaceUse {
    number: u64,
    extent: Extent,
    ticket: DeviceTicket,
}

impl DeviceCache {
    /// Reserves `bytes` bytes, which are mapped by chunks.
    pub(crate) fn reserve(
        device: &Device,
        bytes: u64,
        chunk_bytes: u64,
        coder: Option<Arc<RecordCoder>>,
    ) -> Result<Self, DeviceError> {
        Ok(Self {
            mapped: Arc::new(Mapped::reserve(device, bytes as usize, chunk_bytes as usize)?),
            calls: Stream::new(device)?,
            down: Stream::new(device)?,
            up: Stream::new(device)?,
            device: device.clone(),
            under_way: Mutex::default(),
            coder,
        })
    }

    /// Returns the codec between this level and those below.
    pub(crate) fn coder(&self) -> Option<&RecordCoder> {
        self.coder.as_deref()
    }

    /// Maps memory up to this watermark.
    pub(crate) fn grow(&self, to: u64) -> Result<(), String> {
        self.mapped.grow(to as usize).map_err(message)
    }

    /// Maps all memory.
    pub(crate) fn prepare(&self) -> Result<(), DeviceError> {
        self.mapped.grow(self.mapped.bytes())
    }

    /// Copies a place to pages of the host.
    pub(crate) fn drain(&self, extent: Extent, buffer: &HostBuffer, start: usize) -> Result<(), String> {
        let source = self.mapped.view::<u8>(extent.start as usize, extent.bytes as usize);
        let copied = self.after_program(&self.down, extent, || buffer.store(&self.down, source, start)?.wait());
        copied.and_then(|()| buffer.settle(start..start + extent.bytes as usize)).map_err(message)
    }

    /// Copies pages of the host to a place.
    pub(crate) fn fetch(&self, extent: Extent, buffer: &HostBuffer, start: usize) -> Result<(), String> {
        let mut target = self.mapped.view_mut::<u8>(extent.start as usize, extent.bytes as usize);
        let copied = self.after_program(&self.up, extent, || buffer.load(&self.up, start, &mut target)?.wait());
        copied.and_then(|()| buffer.settle(start..start + extent.bytes as usize)).map_err(message)
    }

    /// Returns the bytes of a place, for the level below.
    pub(crate) fn drained(&self, extent: Extent) -> Result<Vec<u8>, String> {
        self.download(&self.down, extent)
    }

    fn download(&self, stream: &Stream, extent: Extent) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; extent.bytes as usize];
        self.read(stream, extent, &mut bytes).map(|()| bytes)
    }

    fn read(&self, stream: &Stream, extent: Extent, target: &mut [u8]) -> Result<(), String> {
        let source = self.mapped.view::<u8>(extent.start as usize, target.len());
        self.after_program(stream, extent, || stream.download(source, target)).map_err(message)
    }

    /// Overwrites the bytes of a place, from the level below.
    pub(crate) fn fetched(&self, extent: Extent, bytes: &[u8]) -> Result<(), String> {
        let mut target = self.mapped.view_mut::<u8>(extent.start as usize, bytes.len());
        self.after_program(&self.up, extent, || self.up.upload(bytes, &mut target)).map_err(message)
    }

    /// Puts a record of the program in its place.
    pub(crate) fn store(&self, extent: Extent, source: &mut RecordSource<'_>) -> Result<(), String> {
        self.frame(&self.calls, extent, &source.header)?;
        let place = payload_of(extent, &source.header);
        let upload = |bytes: &[u8]| {
            let mut target = self.mapped.view_mut::<u8>(place.start as usize, bytes.len());
            self.calls.upload(bytes, &mut target).map_err(message)
        };
        match &mut source.payload {
            PayloadSource::Values(values) => match values.as_raw() {
                Some(bytes) => upload(bytes),
                None => {
                    let mut bytes = vec![0; place.bytes as usize];
                    write_bytes(*values, &mut bytes);
                    upload(&bytes)
                }
            },
            PayloadSource::Device { values, .. } => {
                let frozen = self.mapped.freeze(&self.device, place.start as usize, *values);
                match frozen.map_err(|error| error.to_string())? {
                    PlacedCopy::Here(ticket) => {
                        self.note(extent, ticket);
                        Ok(())
                    }
                    PlacedCopy::Elsewhere(held) => {
                        let mut bytes = vec![0; place.bytes as usize];
                        fetch(held.as_ref(), &mut bytes)?;
                        upload(&bytes)
                    }
                }
            }
        }
    }

    /// Writes what is around the payload of a record: its header, and zeros to the end of its
    /// place.
    fn frame(&self, stream: &Stream, extent: Extent, header: &StateHeader) -> Result<(), String> {
        let end = payload_of(extent, header).end();
        let bytes = extent.end().checked_sub(end).ok_or("a place that is too small for its state")?;
        let framed = self.after_program(stream, extent, || {
            stream.fill_zero(&mut self.mapped.view_mut::<u8>(end as usize, bytes as usize))?;
            stream.upload(&header.encode(), &mut self.mapped.view_mut(extent.start as usize, HEADER_BYTES))
        });
        framed.map_err(message)
    }

    /// Gives the payload of a place to the program.
    pub(crate) fn give(&self, extent: Extent, target: &mut RecordTarget<'_>) -> Result<(), String> {
        let payload = payload_of(extent, &target.header);
        match &mut target.payload {
            PayloadTarget::State(StateTarget::Device { values, .. }) => match self.thaw(payload, *values) {
                // The values may be stored at another place.
                Err(DeviceValuesError { kind: DeviceValuesErrorKind::Failed, .. }) => {}
                thawed => return thawed.map_err(|error| error.to_string()),
            },
            PayloadTarget::State(StateTarget::Values(values)) => {
                if let Some(bytes) = raw_mut(values.reborrow()) {
                    return self.read(&self.calls, payload, bytes);
                }
            }
            PayloadTarget::Decoder(_) => {}
        }
        target.payload.read(&self.download(&self.calls, payload)?)
    }

    /// Encodes the state at a place for the level below: on the device, if the codec knows it.
    /// Returns the bytes of the record.
    pub(crate) fn encode(&self, extent: Extent, target: &mut [u8]) -> Result<usize, String> {
        let coder = self.coder().ok_or("no codec")?;
        let mut header = [0; HEADER_BYTES];
        self.read(&self.down, extent, &mut header)?;
        let header = StateHeader::decode(&header)?;
        let place = payload_of(extent, &header);
        coder.with_room(|CodingRoom { payload, values }| {
            let there = self.lend(&self.down, place, &header, |held| {
                coder.encode_on_device(&header, held, payload).map_err(device_codec_error)
            });
            let coded = match there {
                Ok(Some(coded)) => coded,
                _ => {
                    values.reshape(header.element, header.len());
                    match raw_mut(values.values_mut()) {
                        Some(bytes) => self.read(&self.down, place, bytes)?,
                        None => read_bytes(&self.download(&self.down, place)?, values.values_mut()),
                    }
                    coder.encode(&header, values.values(), payload)
                }
            };
            coded.write_record(target, |bytes| {
                bytes.copy_from_slice(payload);
                Ok(())
            })
        })
    }

    /// Decodes a record of the level below to a place: on the device, if the codec knows it.
    pub(crate) fn decode(&self, extent: Extent, record: &[u8]) -> Result<(), String> {
        let coder = self.coder().ok_or("no codec")?;
        let header = StateHeader::decode(record)?;
        let payload = header.payload_of(record)?;
        let raw = header.as_raw();
        let place = payload_of(extent, &raw);
        self.frame(&self.up, extent, &raw)?;
        let there = self.lend(&self.up, place, &raw, |held| {
            coder.decode_on_device(&header, payload, held).map_err(device_codec_error)
        });
        if there == Ok(true) {
            return Ok(());
        }
        coder.with_room(|CodingRoom { values, .. }| {
            values.reshape(header.element, header.len());
            coder.decode(&header, payload, values.values_mut())?;
            let mut bytes = vec![0; place.bytes as usize];
            write_bytes(values.values(), &mut bytes);
            self.fetched(place, &bytes)
        })
    }

    /// Lends the values at a place to work of the codec, after the copies of the program there. All
    /// of it is over when this returns.
    fn lend<R>(
        &self,
        stream: &Stream,
        place: Extent,
        header: &StateHeader,
        work: impl FnOnce(&mut dyn DeviceSnapshot) -> Result<R, DeviceValuesError>,
    ) -> Result<R, DeviceValuesError> {
        let before = self.order(stream, place).map_err(device_values_error)?;
        let ticket = stream.ticket().map_err(device_values_error)?;
        let part = MappedPart { offset: place.start as usize, element: header.element, len: header.len() };
        let done = self.mapped.lend(&self.device, part, ticket, work)?;
        self.under_way().copies.retain(|copy| !before.contains(&copy.number));
        Ok(done)
    }

    /// Overwrites values on the device with a payload, in their owner's stream.
    fn thaw(&self, payload: Extent, target: &mut dyn DeviceValues) -> Result<(), DeviceValuesError> {
        let before = self.order(&self.calls, payload).and_then(|_| self.calls.ticket()).map_err(device_values_error)?;
        let ticket = self.mapped.thaw(&self.device, payload.start as usize, target, before)?;
        self.note(payload, ticket);
        Ok(())
    }

    /// Does work on a place that is over when it returns, after the copies of the program there.
    fn after_program(
        &self,
        stream: &Stream,
        extent: Extent,
        work: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let before = self.order(stream, extent)?;
        let done = work();
        match &done {
            // The stream has waited for them.
            Ok(()) => self.under_way().copies.retain(|copy| !before.contains(&copy.number)),
            // Work that was refused may have begun, and the bytes are used again.
            Err(_) => drop(stream.synchronize().or_else(|_| stream.synchronize())),
        }
        done
    }

    /// Lets later work of a stream come after the copies of the program at a place, and returns
    /// their numbers.
    fn order(&self, stream: &Stream, extent: Extent) -> Result<Vec<u64>, DeviceError> {
        let under_way = self.under_way();
        let before: Vec<PlaceUse> =
            under_way.copies.iter().filter(|copy| copy.extent.overlaps(extent)).cloned().collect();
        drop(under_way);
        before.iter().try_for_each(|copy| stream.wait_for(&copy.ticket))?;
        Ok(before.iter().map(|copy| copy.number).collect())
    }

    /// Notes a copy of the program. Those that are done are forgotten; where too many are under
    /// way, the oldest is waited for.
    fn note(&self, extent: Extent, ticket: DeviceTicket) {
        let mut under_way = self.under_way();
        if under_way.copies.len() >= KEPT {
            under_way.copies.retain(|copy| copy.ticket.is_done() != Ok(true));
        }
        if under_way.copies.len() >= UNDER_WAY_MAX {
            // An error of the device is that of the next call that uses the place.
            let _ = under_way.copies.remove(0).ticket.wait();
        }
        let number = under_way.n_copies;
        under_way.n_copies += 1;
        under_way.copies.push(PlaceUse { number, extent, ticket });
    }

    /// Each change of the list is one step.
    fn under_way(&self) -> MutexGuard<'_, ProgramCopies> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the bytes of the payload in the place of a record.
fn payload_of(extent: Extent, header: &StateHeader) -> Extent {
    Extent { start: extent.start + HEADER_BYTES as u64, bytes: header.payload_bytes }
}

/// Turns the error of a codec on a device into one of the place.
fn device_codec_error(error: CodecError) -> DeviceValuesError {
    DeviceValuesError { message: error.to_string(), kind: DeviceValuesErrorKind::Failed }
}

/// Returns the words of an error.
pub(crate) fn message(error: DeviceError) -> String {
    error.to_string()
}
