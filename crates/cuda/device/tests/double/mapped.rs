//! Memory of the device that grows.

use recoup_cuda_double::Settings;
use recoup_device::{DeviceVec, Mapped, MappedWay, Stream};

use super::support::{double, numbers, on_device};

const MIB: usize = 1 << 20;

#[test]
fn memory_is_mapped_by_chunks_and_stays_where_it_is() {
    let report = on_device(&Settings::default(), |device| {
        let stream = Stream::new(device).unwrap();
        let mapped = Mapped::reserve(device, 15 * MIB, 3 * MIB).unwrap();
        assert_eq!((mapped.way(), mapped.way().name()), (MappedWay::Chunks, "chunks"));
        assert!(mapped.bytes() >= 15 * MIB && mapped.chunk_bytes() >= 3 * MIB);
        assert_eq!(mapped.mapped_bytes(), 0);
        mapped.grow(1).unwrap();
        assert_eq!(mapped.mapped_bytes(), mapped.chunk_bytes());
        let values = numbers(5, 1000);
        stream.upload(&values, &mut mapped.view_mut(4000, 1000)).unwrap();
        let address = *mapped.view::<f64>(4000, 1000).address();
        mapped.grow(usize::MAX).unwrap();
        mapped.grow(10).unwrap();
        assert_eq!(mapped.mapped_bytes(), mapped.bytes());
        assert_eq!(*mapped.view::<f64>(4000, 1000).address(), address);
        let mut found = vec![0.0; 1000];
        stream.download(mapped.view(4000, 1000), &mut found).unwrap();
        assert_eq!(found, values);
        // A copy over the border of two chunks.
        let border = mapped.chunk_bytes() - 80;
        let there = DeviceVec::copy_of(&stream, &values).unwrap();
        stream.copy(there.view(), &mut mapped.view_mut(border, 1000)).unwrap();
        stream.download(mapped.view(border, 1000), &mut found).unwrap();
        assert_eq!(found, values);
    });
    let Some(report) = report else { return };
    // 16 MiB by chunks of 4.
    let calls = ["cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease"];
    assert_eq!(calls.map(|call| report.count(call)), [4; 5], "{report}");
    assert_eq!(report.count("cuMemAddressFree"), 1);
}

#[test]
fn a_device_without_virtual_memory_gives_all_at_once() {
    let Some(double) = double() else { return };
    drop(double);
    let settings = Settings { has_virtual_memory: false, ..Settings::default() };
    let report = on_device(&settings, |device| {
        let stream = Stream::new(device).unwrap();
        let mapped = Mapped::reserve(device, 5 * MIB, MIB).unwrap();
        assert_eq!((mapped.way(), mapped.way().name()), (MappedWay::AllAtOnce, "all at once"));
        mapped.grow(1).unwrap();
        assert_eq!((mapped.bytes(), mapped.mapped_bytes()), (5 * MIB, MIB));
        let values = numbers(5, 1000);
        stream.upload(&values, &mut mapped.view_mut(0, 1000)).unwrap();
        mapped.grow(5 * MIB).unwrap();
        let mut found = vec![0.0; 1000];
        stream.download(mapped.view(0, 1000), &mut found).unwrap();
        assert_eq!(found, values);
    });
    let report = report.unwrap();
    assert_eq!((report.count("cuMemCreate"), report.count("cuMemAlloc_v2")), (0, 1), "{report}");
}

#[test]
fn what_does_not_fit_leaves_what_is_mapped_as_it_was() {
    on_device(&Settings { memory_bytes: 9 << 20, ..Settings::default() }, |device| {
        if device.memory().unwrap().total > 9 * MIB {
            return;
        }
        let stream = Stream::new(device).unwrap();
        let mapped = Mapped::reserve(device, 64 * MIB, 4 * MIB).unwrap();
        let error = mapped.grow(64 * MIB).err().unwrap();
        assert!(error.is_out_of_memory(), "{error}");
        assert!(error.to_string().contains(&format!("cuMemCreate of {} bytes", 4 * MIB)), "{error}");
        assert_eq!(mapped.mapped_bytes(), 8 * MIB);
        let values = numbers(0, MIB);
        stream.upload(&values, &mut mapped.view_mut(0, MIB)).unwrap();
        let mut found = vec![0.0; MIB];
        stream.download(mapped.view(0, MIB), &mut found).unwrap();
        assert!(found == values);
    });
}

#[test]
fn a_view_beyond_the_watermark_is_our_mistake() {
    on_device(&Settings::default(), |device| {
        let mapped = Mapped::reserve(device, 8 * MIB, 2 * MIB).unwrap();
        mapped.grow(1).unwrap();
        let beyond = || mapped.view::<f64>(2 * MIB - 8, 2).len();
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(beyond)).is_err());
        let askew = || mapped.view::<f64>(4, 1).len();
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(askew)).is_err());
        assert_eq!(mapped.view::<f64>(2 * MIB - 8, 1).len(), 1);
    });
}
