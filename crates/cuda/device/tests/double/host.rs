//! Buffers of the host: growth, copies that are cut, readers that wait.

use recoup_cuda_double::Settings;
use recoup_device::{Device, DeviceVec, HostBuffer, Stream};

use super::support::{in_every_order, numbers, on_device};

const MIB: usize = 1 << 20;

fn bytes_of(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_ne_bytes()).collect()
}

#[test]
fn a_buffer_is_registered_by_chunks_each_once() {
    let report = on_device(&Settings::default(), |device| {
        let buffer = HostBuffer::reserve(device, 7 * MIB, MIB).unwrap();
        assert_eq!((buffer.bytes(), buffer.chunk_bytes()), (7 * MIB, 2 * MIB));
        assert_eq!((buffer.touched_bytes(), buffer.registered_bytes()), (0, 0));
        buffer.touch(100);
        assert_eq!((buffer.touched_bytes(), buffer.registered_bytes()), (100, 0));
        buffer.register(1).unwrap();
        assert_eq!((buffer.touched_bytes(), buffer.registered_bytes()), (2 * MIB, 2 * MIB));
        buffer.register(2 * MIB).unwrap();
        assert_eq!(buffer.registered_bytes(), 2 * MIB);
        buffer.register(usize::MAX).unwrap();
        buffer.register(7 * MIB).unwrap();
        assert_eq!((buffer.touched_bytes(), buffer.registered_bytes()), (7 * MIB, 7 * MIB));
    });
    let Some(report) = report else { return };
    assert_eq!(report.count("cuMemHostRegister_v2"), 4, "{report}");
    assert_eq!(report.count("cuMemHostUnregister"), 4, "{report}");
}

#[test]
fn a_buffer_that_is_registered_before_it_is_touched_holds_what_is_copied_to_it() {
    let report = on_device(&Settings::default(), |device| {
        let stream = Stream::new(device).unwrap();
        let buffer = HostBuffer::reserve(device, 6 * MIB, 2 * MIB).unwrap();
        buffer.register_untouched(5 * MIB).unwrap();
        assert_eq!((buffer.touched_bytes(), buffer.registered_bytes()), (0, 6 * MIB));
        let values = numbers(1, 3 * MIB / 8);
        let there = DeviceVec::copy_of(&stream, &values).unwrap();
        buffer.store(&stream, there.view(), MIB).unwrap();
        assert!(*buffer.read(MIB..4 * MIB).unwrap() == bytes_of(&values));
        buffer.register(6 * MIB).unwrap();
    });
    let Some(report) = report else { return };
    assert_eq!(report.count("cuMemHostRegister_v2"), 3, "{report}");
}

/// The driver refuses a copy that straddles two registrations, or the end of one.
#[test]
fn copies_are_cut_where_chunks_meet_whatever_is_registered() {
    for registered in [0, 2 * MIB, 4 * MIB, 7 * MIB] {
        let report = on_device(&Settings::default(), |device| {
            let stream = Stream::new(device).unwrap();
            let buffer = HostBuffer::reserve(device, 7 * MIB, 2 * MIB).unwrap();
            buffer.register(registered).unwrap();
            let values = numbers(1, 5 * MIB / 8);
            let there = DeviceVec::copy_of(&stream, &values).unwrap();
            buffer.store(&stream, there.view(), MIB).unwrap();
            assert!(*buffer.read(MIB..6 * MIB).unwrap() == bytes_of(&values), "{registered}");
            let mut back = DeviceVec::zeros(&stream, values.len()).unwrap();
            buffer.load(&stream, MIB, &mut back.view_mut()).unwrap();
            let mut found = vec![0.0; values.len()];
            stream.download(back.view(), &mut found).unwrap();
            assert!(found == values, "{registered}");
        });
        let Some(report) = report else { return };
        // Bytes 1 to 6 MiB lie in three chunks; the vector goes and comes whole besides.
        assert_eq!(report.count("cuMemcpyDtoHAsync_v2"), 3 + 1, "{report}");
        assert_eq!(report.count("cuMemcpyHtoDAsync_v2"), 3 + 1, "{report}");
    }
}

#[test]
fn a_reader_waits_for_its_bytes_and_a_writer_for_its_readers() {
    in_every_order(|device| {
        let [down, up] = [(); 2].map(|()| Stream::new(device).unwrap());
        let buffer = HostBuffer::registered(device, 8000).unwrap();
        let first = numbers(0, 500);
        let second = numbers(9000, 500);
        let [a, b] = [&first, &second].map(|values| DeviceVec::copy_of(&down, values).unwrap());
        buffer.store(&down, a.view(), 0).unwrap();
        buffer.store(&down, b.view(), 4000).unwrap();
        assert_eq!(*buffer.read(4000..8000).unwrap(), bytes_of(&second));
        let mut back = DeviceVec::<f64>::zeros(&up, 500).unwrap();
        // Read by one stream, then overwritten by another and by the host: nothing was waited for.
        buffer.load(&up, 0, &mut back.view_mut()).unwrap();
        buffer.store(&down, b.view(), 0).unwrap();
        buffer.write(0..8).unwrap().fill(1);
        let mut found = vec![0.0; 500];
        up.download(back.view(), &mut found).unwrap();
        assert_eq!(found, first);
        let bytes = buffer.read(0..4000).unwrap();
        assert!(bytes[..8] == [1; 8] && bytes[8..] == bytes_of(&second)[8..]);
    });
}

#[test]
fn a_buffer_may_be_dropped_while_copies_are_under_way() {
    in_every_order(|device| {
        let stream = Stream::new(device).unwrap();
        let values = DeviceVec::copy_of(&stream, &numbers(0, 1000)).unwrap();
        let buffer = HostBuffer::registered(device, 8000).unwrap();
        let ticket = buffer.store(&stream, values.view(), 0).unwrap();
        drop(buffer);
        assert_eq!(ticket.is_done(), Ok(true));
    });
}

#[test]
fn many_copies_under_way_are_bounded_and_all_arrive() {
    on_device(&Settings::default(), |device| {
        let stream = Stream::new(device).unwrap();
        let values = numbers(0, 1000);
        let there = DeviceVec::copy_of(&stream, &values).unwrap();
        let buffer = HostBuffer::registered(device, 8000).unwrap();
        for i in 0..1000 {
            buffer.store(&stream, there.slice(i..i + 1), 8 * i).unwrap();
        }
        buffer.wait().unwrap();
        assert_eq!(*buffer.read(0..8000).unwrap(), bytes_of(&values));
    });
}

fn panics_in(test: impl FnOnce(&Device) + std::panic::UnwindSafe) -> String {
    let mut text = String::new();
    on_device(&Settings::default(), |device| {
        let test = std::panic::AssertUnwindSafe(|| test(device));
        let panic = std::panic::catch_unwind(test).expect_err("it panics");
        text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
    });
    text
}

#[test]
fn bytes_that_the_host_holds_are_not_copied_over() {
    let text = panics_in(|device| {
        let stream = Stream::new(device).unwrap();
        let values = DeviceVec::<f64>::zeros(&stream, 10).unwrap();
        let buffer = HostBuffer::registered(device, 800).unwrap();
        let held = buffer.read(0..100).unwrap();
        buffer.store(&stream, values.view(), 100).unwrap();
        let _ = buffer.store(&stream, values.view(), 96);
        drop(held);
    });
    assert_eq!(text, "the host holds bytes 96..176 of a buffer that is to be used");
}

#[test]
fn bytes_beyond_a_buffer_are_our_mistake() {
    let text = panics_in(|device| {
        let buffer = HostBuffer::reserve(device, 800, 1).unwrap();
        let _ = buffer.read(700..801);
    });
    assert_eq!(text, "101 bytes from byte 700 of 800");
}
