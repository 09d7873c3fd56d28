//! Buffers that one thread grows while others use them.

use recoup_cuda_double::Settings;
use recoup_device::{DeviceVec, HostBuffer, Mapped, Stream};

use super::support::{numbers, on_device};

const MIB: usize = 1 << 20;

#[test]
fn a_host_buffer_grows_while_it_is_used() {
    for seed in 0..10 {
        on_device(&Settings { seed, ..Settings::default() }, |device| {
            let buffer = HostBuffer::reserve(device, 12 * MIB, 2 * MIB).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| buffer.touch(9 * MIB));
                scope.spawn(|| buffer.register(12 * MIB).unwrap());
                for part in 0..3 {
                    let buffer = &buffer;
                    scope.spawn(move || {
                        let stream = Stream::new(device).unwrap();
                        let values = numbers(part, 3 * MIB / 8);
                        let there = DeviceVec::copy_of(&stream, &values).unwrap();
                        let offset = part * 3 * MIB + MIB;
                        buffer.store(&stream, there.view(), offset).unwrap();
                        let found = buffer.read(offset..offset + 3 * MIB).unwrap();
                        let is_same = found.as_chunks().0.iter().zip(&values).all(|(a, b)| *a == b.to_ne_bytes());
                        assert!(is_same, "part {part}");
                    });
                }
            });
            assert_eq!(buffer.registered_bytes(), 12 * MIB);
        });
    }
}

#[test]
fn mapped_memory_grows_while_it_is_used() {
    for seed in 0..10 {
        on_device(&Settings { seed, ..Settings::default() }, |device| {
            let mapped = Mapped::reserve(device, 16 * MIB, 2 * MIB).unwrap();
            mapped.grow(4 * MIB).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| mapped.grow(16 * MIB).unwrap());
                scope.spawn(|| mapped.grow(10 * MIB).unwrap());
                let stream = Stream::new(device).unwrap();
                let values = numbers(seed as usize, 4 * MIB / 8);
                stream.upload(&values, &mut mapped.view_mut(0, values.len())).unwrap();
                let mut found = vec![0.0; values.len()];
                stream.download(mapped.view(0, found.len()), &mut found).unwrap();
                assert!(found == values);
            });
            assert_eq!(mapped.mapped_bytes(), 16 * MIB);
        });
    }
}
