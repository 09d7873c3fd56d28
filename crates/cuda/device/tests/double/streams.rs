//! Streams, tickets and values of the device.

use recoup_cuda_double::Settings;
use recoup_device::{Device, DeviceVec, Stream};

use super::support::{double, in_every_order, numbers, on_device};

#[test]
fn values_come_back_as_they_went() {
    in_every_order(|device| {
        let stream = Stream::new(device).unwrap();
        for n in [0, 1, 1000] {
            let values = numbers(n, n);
            let there = DeviceVec::copy_of(&stream, &values).unwrap();
            let mut back = vec![0.0; n];
            stream.download(there.view(), &mut back).unwrap();
            assert_eq!(back, values);
            assert_eq!((there.len(), there.is_empty()), (n, n == 0));
        }
    });
}

#[test]
fn fresh_zeros_are_zeros_and_parts_are_filled_alone() {
    in_every_order(|device| {
        let stream = Stream::new(device).unwrap();
        let mut zeros = DeviceVec::<u32>::zeros(&stream, 100).unwrap();
        stream.upload(&[7; 20], &mut zeros.slice_mut(40..60)).unwrap();
        stream.fill_zero(&mut zeros.slice_mut(50..55)).unwrap();
        let mut found = vec![1; 100];
        stream.download(zeros.view(), &mut found).unwrap();
        let expected = |i: usize| if (40..60).contains(&i) && !(50..55).contains(&i) { 7 } else { 0 };
        assert!(found.iter().enumerate().all(|(i, x)| *x == expected(i)), "{found:?}");
    });
}

/// Stages a vector as a checkpoint does: a copy in the solver's stream, fetched by another, while
/// the solver overwrites the vector.
fn stage(device: &Device, waits: bool) -> Vec<f64> {
    let [solver, worker] = [(); 2].map(|()| Stream::new(device).unwrap());
    let mut x = DeviceVec::copy_of(&solver, &numbers(0, 500)).unwrap();
    let mut staged = DeviceVec::new(device, 500).unwrap();
    solver.copy(x.view(), &mut staged.view_mut()).unwrap();
    let ticket = solver.ticket().unwrap();
    solver.fill_zero(&mut x.view_mut()).unwrap();
    if waits {
        worker.wait_for(&ticket).unwrap();
    }
    let mut found = vec![0.0; 500];
    worker.download(staged.view(), &mut found).unwrap();
    found
}

#[test]
fn a_staged_vector_is_that_of_its_ticket() {
    in_every_order(|device| assert_eq!(stage(device, true), numbers(0, 500)));
}

/// What the double is for: this program is wrong, and on a device mostly lucky.
#[test]
fn a_wait_that_is_left_out_is_found() {
    let Some(double) = double() else { return };
    let mut found = 0;
    for seed in 0..20 {
        double.reset(&Settings { seed, ..Settings::default() });
        stage(&Device::open(0).unwrap(), false);
        found += u32::from(!double.report().races.is_empty());
    }
    assert_eq!(found, 20, "races found in 20 orders");
}

#[test]
fn a_ticket_is_due_when_its_work_is_done() {
    in_every_order(|device| {
        let stream = Stream::new(device).unwrap();
        let mut values = DeviceVec::<u64>::zeros(&stream, 100).unwrap();
        let ticket = stream.ticket().unwrap();
        let mut asked = 0;
        while !ticket.is_done().unwrap() {
            asked += 1;
            assert!(asked < 10_000_000, "the device never ends its work");
        }
        stream.fill_zero(&mut values.view_mut()).unwrap();
        let later = stream.ticket().unwrap();
        let waiting = later.clone();
        std::thread::spawn(move || waiting.wait().unwrap()).join().unwrap();
        assert_eq!(later.is_done(), Ok(true));
    });
}

#[test]
fn timestamps_follow_each_other() {
    on_device(&Settings::default(), |device| {
        let stream = Stream::new(device).unwrap();
        let start = stream.timestamp().unwrap();
        let values = DeviceVec::<u8>::zeros(&stream, 1 << 20).unwrap();
        let end = stream.timestamp().unwrap();
        end.wait().unwrap();
        assert!(end.seconds_since(&start).unwrap() >= 0.0);
        drop(values);
    });
}

#[test]
fn memory_that_is_left_falls_and_rises() {
    on_device(&Settings::default(), |device| {
        let before = device.memory().unwrap();
        let values = DeviceVec::<u8>::new(device, 64 << 20).unwrap();
        let during = device.memory().unwrap();
        assert!(before.total == during.total && during.free + (64 << 20) <= before.free);
        drop(values);
        assert!(device.memory().unwrap().free > during.free);
    });
}

#[test]
fn memory_that_is_not_there_is_refused_with_its_size() {
    on_device(&Settings { memory_bytes: 1 << 20, ..Settings::default() }, |device| {
        let bytes = device.memory().unwrap().total + 1;
        let error = DeviceVec::<u8>::new(device, bytes).err().unwrap();
        assert!(error.is_out_of_memory() && !error.is_lost(), "{error}");
        assert!(error.to_string().contains(&format!("cuMemAlloc of {bytes} bytes: CUDA_ERROR_OUT_OF_MEMORY")));
    });
}
