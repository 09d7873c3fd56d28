//! Copies and fills.
//!
//! A copy from pageable memory reads it when the call is made; the device gets the bytes later. A
//! copy to pageable memory waits. Copies of pinned memory touch it when they run.

mod sys;

use recoup_cuda_double::CudaStatus;

use super::host_memory::{HostAddress, HostKind};
use super::operation::{HostSource, StreamWork};
use super::state::Driver;
use crate::Refusable;

/// A stream, and whether the call waits for what it adds there.
#[derive(Clone, Copy, Debug)]
struct CopyMode {
    stream: u64,
    waits: bool,
}

impl CopyMode {
    /// A call that returns at once.
    fn of(stream: u64) -> Self {
        Self { stream, waits: false }
    }

    /// A call without a stream, which waits where it must.
    fn legacy() -> Self {
        Self { stream: 0, waits: true }
    }
}

impl Driver {
    /// Refuses addresses that no allocation holds.
    fn check_device(&mut self, address: u64, bytes: usize) -> Refusable<()> {
        if self.memory.is_known(address, bytes as u64) {
            return Ok(());
        }
        self.fault(format!("{bytes} bytes at {address:#x} are not within memory of a device"));
        Err(CudaStatus::InvalidValue)
    }

    fn host_kind(&mut self, address: HostAddress, bytes: usize) -> Refusable<HostKind> {
        let kind = self.host.kind(address, bytes);
        if kind.is_err() {
            self.fault(format!("a copy of {bytes} bytes leaves its piece of page-locked memory"));
        }
        kind
    }

    /// Adds a copy, and waits for it if asked to.
    fn add_copy(&mut self, mode: CopyMode, action: StreamWork) -> Refusable<()> {
        self.submit(mode.stream, action)?;
        if mode.waits { self.finish_stream(mode.stream) } else { Ok(()) }
    }

    /// The mode with its stream found, where there is anything to do.
    fn mode(&mut self, mode: CopyMode, bytes: usize) -> Refusable<Option<CopyMode>> {
        self.context()?;
        let stream = self.stream(mode.stream)?;
        Ok((bytes > 0).then_some(CopyMode { stream, ..mode }))
    }

    fn copy_to_device(&mut self, target: u64, source: HostAddress, bytes: usize, mode: CopyMode) -> Refusable<()> {
        let Some(mode) = self.mode(mode, bytes)? else { return Ok(()) };
        self.check_device(target, bytes)?;
        if self.host_kind(source, bytes)? == HostKind::Pinned {
            let source = HostSource::Pinned { start: source, bytes };
            return self.add_copy(mode, StreamWork::ToDevice { source, target });
        }
        if mode.waits {
            self.finish_stream(mode.stream)?;
        }
        let mut copied = vec![0; bytes];
        source.read(&mut copied);
        let source = HostSource::Copied(copied);
        self.submit(mode.stream, StreamWork::ToDevice { source, target }).map(|_| ())
    }

    fn copy_to_host(&mut self, target: HostAddress, source: u64, bytes: usize, mode: CopyMode) -> Refusable<()> {
        let Some(mode) = self.mode(mode, bytes)? else { return Ok(()) };
        self.check_device(source, bytes)?;
        let is_pageable = self.host_kind(target, bytes)? == HostKind::Pageable;
        let mode = CopyMode { waits: mode.waits || is_pageable, ..mode };
        self.add_copy(mode, StreamWork::ToHost { source, target, bytes })
    }

    /// Copies within devices; such a copy is never waited for.
    fn copy_on_device(&mut self, target: u64, source: u64, bytes: usize, mode: CopyMode) -> Refusable<()> {
        let Some(mode) = self.mode(mode, bytes)? else { return Ok(()) };
        self.check_device(target, bytes)?;
        self.check_device(source, bytes)?;
        self.submit(mode.stream, StreamWork::OnDevice { source, target, bytes: bytes as u64 }).map(|_| ())
    }

    fn fill(&mut self, target: u64, value: u8, bytes: usize, mode: CopyMode) -> Refusable<()> {
        let Some(mode) = self.mode(mode, bytes)? else { return Ok(()) };
        self.check_device(target, bytes)?;
        self.submit(mode.stream, StreamWork::Fill { target, value, bytes: bytes as u64 }).map(|_| ())
    }
}
