//! The states of a program whose vector is stored on a device.
//!
//! A push or a pop ends when the device has done it, so that its time is comparable with that of a
//! copy on the host: the program may use its vector then.

use anyhow::Result;
use recoup::device::{Device, DeviceVec, DeviceVector, Stream};
use recoup::tape::{Tape, TapeBuilder};

use super::keepers::StateKeeper;
use super::scratch::ScratchFolder;

/// A tape, and the vector that the program works on.
pub(super) struct DeviceStates {
    /// Ends before its folder.
    tape: Box<Tape>,
    vector: DeviceVector<f64>,
    _folder: Option<ScratchFolder>,
}

impl DeviceStates {
    pub(super) fn start(builder: TapeBuilder, device: &Device, folder: Option<ScratchFolder>) -> Result<Self> {
        let tape = Box::new(builder.build()?);
        let vector = DeviceVector::new(DeviceVec::new(device, 0)?, Stream::new(device)?);
        Ok(Self { tape, vector, _folder: folder })
    }
}

/// The program's vector is the state that is staged and looked at.
impl StateKeeper for DeviceStates {
    fn stage(&mut self, state: &[f64]) -> Result<()> {
        self.make_room(state.len())?;
        Ok(self.vector.upload(state)?)
    }

    fn make_room(&mut self, len: usize) -> Result<()> {
        if self.vector.view().len() != len {
            let stream = self.vector.stream().clone();
            self.vector = DeviceVector::new(DeviceVec::new(stream.device(), len)?, stream);
        }
        Ok(())
    }

    fn push(&mut self, step: u64, _state: &[f64]) -> Result<()> {
        self.tape.push_device(step, &self.vector)?;
        Ok(self.vector.stream().synchronize()?)
    }

    fn stored_bytes(&self) -> Option<u64> {
        Some(self.tape.report().stored_bytes)
    }

    fn turn(&mut self) -> Result<()> {
        Ok(self.tape.turn()?)
    }

    fn pop(&mut self, _target: &mut [f64]) -> Result<()> {
        self.tape.pop_device(&mut self.vector)?;
        Ok(self.vector.stream().synchronize()?)
    }

    fn look(&self, target: &mut [f64]) -> Result<()> {
        Ok(self.vector.download(target)?)
    }
}
