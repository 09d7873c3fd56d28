//! A system that permits less, as in a container: each reason has its name, and owners that say
//! what they write need no permission.

#![cfg(target_os = "linux")]

mod sys;

use recoup_core::{ValuesMut, Zones};
use recoup_snapshot::{Monitors, NoMonitor, PageSize, TouchedRegion};

/// Runs `body` in a thread whose calls of userfaultfd a seccomp filter answers with `errno`.
fn filtered<T: Send>(errno: i32, body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            sys::answer_userfaultfd(errno);
            body()
        });
        thread.join().expect("no panic in the thread")
    })
}

#[test]
fn a_container_that_forbids_userfaultfd_is_named() {
    let monitors = filtered(libc::EPERM, Monitors::probe);
    assert_eq!(monitors, Monitors { track: Err(NoMonitor::Forbidden) });
    let reason = monitors.track.unwrap_err().to_string();
    assert!(reason.contains("seccomp") && reason.contains("EPERM"), "{reason}");
}

#[test]
fn a_system_without_userfaultfd_is_named() {
    let monitors = filtered(libc::ENOSYS, Monitors::probe);
    assert_eq!(monitors, Monitors { track: Err(NoMonitor::NotThere) });
}

#[test]
fn another_answer_is_named_by_its_call() {
    let expected =
        NoMonitor::System { call: "userfaultfd", error: std::io::Error::from_raw_os_error(libc::EMFILE).kind() };
    assert_eq!(filtered(libc::EMFILE, Monitors::probe).track, Err(expected));
}

#[test]
fn touched_regions_freeze_where_userfaultfd_is_forbidden() {
    let values = filtered(libc::EPERM, || {
        let mut region = TouchedRegion::<f64>::zeros(100, PageSize::Huge).expect("addresses");
        let frozen = region.freeze(100).expect("nothing else is frozen");
        region.write(0..100).fill(1.0);
        let mut values = vec![f64::NAN; 100];
        frozen.fetch(0, ValuesMut::F64(&mut values)).expect("frozen values");
        values
    });
    assert_eq!(values, [0.0; 100]);
}
