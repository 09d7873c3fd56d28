//! A medium in memory that writes down what is asked of it.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use crate::medium::{ByteSource, Medium};

/// One call, or the moment at which a commit returned.
#[derive(Clone, Debug)]
pub(super) enum LogEvent {
    Grow(u64),
    Store { at: u64, bytes: Vec<u8> },
    WriteBack(Range<u64>),
    Fence,
    Promise(u64),
}

/// The calls of a medium, in their order.
pub(super) type EventLog = Arc<Mutex<Vec<LogEvent>>>;

/// Bytes in memory, and what was asked of them.
pub(super) struct CallRecorder {
    bytes: Arc<Mutex<Vec<u8>>>,
    log: EventLog,
}

impl CallRecorder {
    /// Begins with these bytes, which are durable.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes: Arc::new(Mutex::new(bytes)), log: EventLog::default() }
    }

    pub(super) fn log(&self) -> EventLog {
        Arc::clone(&self.log)
    }

    fn note(&self, event: LogEvent) {
        self.log.lock().unwrap().push(event);
    }
}

impl Medium for CallRecorder {
    fn prefers_runs(&self) -> bool {
        // The lowest places are used again at once, so an order that is wrong does the most harm.
        false
    }

    fn source(&self) -> Arc<dyn ByteSource> {
        Arc::new(SharedBytes(Arc::clone(&self.bytes)))
    }

    fn grow(&mut self, bytes: u64) -> io::Result<()> {
        let mut held = self.bytes.lock().unwrap();
        if bytes > held.len() as u64 {
            held.resize(bytes as usize, 0);
            self.note(LogEvent::Grow(bytes));
        }
        Ok(())
    }

    fn store(&mut self, at: u64, bytes: &[u8]) -> io::Result<u32> {
        self.bytes.lock().unwrap()[at as usize..][..bytes.len()].copy_from_slice(bytes);
        self.note(LogEvent::Store { at, bytes: bytes.to_vec() });
        Ok(crc32c::crc32c(bytes))
    }

    fn write_back(&mut self, range: Range<u64>) -> io::Result<()> {
        self.note(LogEvent::WriteBack(range));
        Ok(())
    }

    fn fence(&mut self) -> io::Result<()> {
        self.note(LogEvent::Fence);
        Ok(())
    }
}

/// Bytes that a recorder stores to.
struct SharedBytes(Arc<Mutex<Vec<u8>>>);

impl ByteSource for SharedBytes {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().len() as u64)
    }

    fn read(&self, at: u64, target: &mut [u8]) -> io::Result<()> {
        read_bytes(&self.0.lock().unwrap(), at, target)
    }
}

/// The bytes that a crash has left.
pub(super) struct CrashImage(pub(super) Vec<u8>);

impl ByteSource for CrashImage {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read(&self, at: u64, target: &mut [u8]) -> io::Result<()> {
        read_bytes(&self.0, at, target)
    }
}

fn read_bytes(bytes: &[u8], at: u64, target: &mut [u8]) -> io::Result<()> {
    let found = bytes.get(at as usize..).and_then(|rest| rest.get(..target.len()));
    target.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
    Ok(())
}
