//! Memory that a program lends by its address.

use recoup_core::{DeviceSnapshot, DeviceValues, DeviceValuesError, ElementType, Values, ValuesMut};
use recoup_cuda_double::{CudaStatus, Settings};
use recoup_device::{BorrowedMemory, Device, DeviceVec, Stream, device_pointer};

use super::support::{double, in_every_order, numbers};

const LEN: usize = 700;

/// The program's side: values, and the stream that it works on.
struct Program {
    stream: Stream,
    values: DeviceVec<f64>,
}

impl Program {
    fn new(device: &Device) -> Self {
        let stream = Stream::new(device).unwrap();
        let values = DeviceVec::copy_of(&stream, &numbers(0, LEN)).unwrap();
        Self { stream, values }
    }

    fn address(&self) -> usize {
        *self.values.view().address() as usize
    }

    fn lend(&self) -> Result<BorrowedMemory, DeviceValuesError> {
        Ok(BorrowedMemory::find(self.address(), ElementType::F64, LEN)?.unwrap())
    }

    /// Work that nothing waits for.
    fn clear(&mut self) {
        self.stream.fill_zero(&mut self.values.view_mut()).unwrap();
    }
}

fn fetched(held: &dyn DeviceSnapshot) -> Result<Vec<f64>, DeviceValuesError> {
    let mut found = vec![f64::NAN; LEN];
    let (first, rest) = found.split_at_mut(100);
    held.fetch(0, ValuesMut::F64(first))?;
    held.fetch(100, ValuesMut::F64(rest))?;
    Ok(found)
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn a_copy_holds_the_work_before_it_and_none_after() {
    in_every_order(|device| {
        let mut program = Program::new(device);
        let first = program.lend().unwrap().snapshot(LEN, None).unwrap();
        program.clear();
        assert_eq!(bits(&fetched(&*first).unwrap()), bits(&numbers(0, LEN)));
        let second = program.lend().unwrap().snapshot(LEN, Some(first)).unwrap();
        assert_eq!(bits(&fetched(&*second).unwrap()), bits(&[0.0; LEN]));
    });
}

#[test]
fn values_put_into_room_overwrite_the_program_s_after_its_work() {
    in_every_order(|device| {
        let mut program = Program::new(device);
        let mut lent = program.lend().unwrap();
        let mut room = lent.alloc(LEN).unwrap();
        let wanted = numbers(5000, LEN);
        room.put(0, Values::F64(&wanted[..1])).unwrap();
        room.put(1, Values::F64(&wanted[1..])).unwrap();
        program.clear();
        lent.overwrite(&*room).unwrap();
        let mut found = vec![0.0; LEN];
        program.stream.download(program.values.view(), &mut found).unwrap();
        assert_eq!(bits(&found), bits(&wanted));
        let bytes: Vec<u8> = numbers(9, LEN).iter().flat_map(|value| value.to_ne_bytes()).collect();
        program.clear();
        lent.write_bytes(&bytes).unwrap();
        let mut again = vec![0; bytes.len()];
        lent.read_bytes(&mut again).unwrap();
        assert_eq!(again, bytes);
    });
}

#[test]
fn an_address_is_told_by_the_memory_it_lies_in() {
    in_every_order(|device| {
        let program = Program::new(device);
        let inside = device_pointer(program.address() + 80).unwrap().unwrap();
        assert_eq!((inside.ordinal, inside.start, inside.bytes), (0, program.address(), LEN * 8));
        let host = [0.0_f64; 4];
        let address = host.as_ptr().addr();
        assert_eq!(device_pointer(address), Ok(None));
        assert!(BorrowedMemory::find(address, ElementType::F64, 4).unwrap().is_none());
        let error = BorrowedMemory::find(program.address() + 8, ElementType::F64, LEN).unwrap_err();
        assert!(error.message.contains("5600 bytes expected") && error.message.contains("5592 found"), "{error}");
    });
}

/// Lends, holds, fetches and overwrites; the first error.
fn scenario(program: &Program) -> Result<Vec<f64>, DeviceValuesError> {
    let mut lent = program.lend()?;
    let held = lent.snapshot(LEN, None)?;
    let mut room = lent.alloc(LEN)?;
    room.put(0, Values::F64(&fetched(&*held)?))?;
    lent.overwrite(&*room)?;
    fetched(&*lent.snapshot(LEN, Some(held))?)
}

#[test]
fn every_call_that_fails_is_an_error_and_the_next_use_is_right() {
    let Some(double) = double() else { return };
    let faults = |seed, call, is_lost| match is_lost {
        false => Settings { seed, fail_call: Some(call), error: CudaStatus::Unknown, ..Settings::default() },
        true => Settings { seed, lost_at: Some(call), ..Settings::default() },
    };
    double.reset(&Settings::default());
    let program = Program::new(&Device::open(0).unwrap());
    let before = double.report().total_calls();
    scenario(&program).unwrap();
    let after = double.report().total_calls();
    drop(program);
    assert!(after > before + 20);
    for is_lost in [false, true] {
        for call in before + 1..=after {
            double.reset(&Settings::default());
            let program = Program::new(&Device::open(0).unwrap());
            double.change(&faults(call, call, is_lost));
            match scenario(&program) {
                Ok(found) => assert_eq!(bits(&found), bits(&numbers(0, LEN)), "call {call}"),
                Err(error) => assert!(!error.message.is_empty(), "call {call}"),
            }
            if !is_lost {
                double.change(&Settings::default());
                assert_eq!(bits(&scenario(&program).unwrap()), bits(&numbers(0, LEN)), "call {call}");
                drop(program);
                assert!(double.report().is_clean(), "call {call}: {}", double.report());
            }
        }
    }
}
