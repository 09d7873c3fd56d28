//! Versions that are written again under the same number.

use super::*;

/// A store whose version 1 was written by two ranks and may be written again.
fn replaceable() -> Rooted {
    let dir = quick_directory();
    let store = Hdf5Store::open(dir.path(), RUN, Access::Write).unwrap().with_replacement();
    SampleVersion::new(1, 2).publish(&store).unwrap();
    Rooted { store, dir }
}

/// Version 1 is there, as one attempt or the other wrote it.
fn assert_one_attempt(store: &dyn Store) -> usize {
    let ranks = store.manifest(1).unwrap().ranks;
    SampleVersion::new(1, ranks).assert_whole(store);
    ranks
}

#[test]
fn version_written_again_is_the_old_one_or_the_new_one_before_every_step() {
    let rooted = replaceable();
    let root = rooted.dir.path().to_owned();
    let watch = move |_: Step, _: &Path| {
        assert_one_attempt(&Hdf5Store::open(&root, RUN, Access::Read).unwrap());
        Ok(())
    };
    watched(watch, || SampleVersion::new(1, 1).publish(&rooted)).unwrap();
    assert_eq!(assert_one_attempt(&rooted), 1);
    assert_eq!(entries(&rooted.store.root).unwrap(), [LOCK, "v000000000001"]);
}

#[test]
fn failed_step_of_a_version_written_again_leaves_one_attempt() {
    for failing in 0.. {
        let rooted = replaceable();
        let mut steps = 0;
        let fail = move |_: Step, _: &Path| {
            steps += 1;
            if steps == failing + 1 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        };
        let result = watched(fail, || SampleVersion::new(1, 1).publish(&rooted));
        let ranks = assert_one_attempt(&rooted);
        assert_eq!(result.is_ok(), ranks == 1, "step {failing}: {result:?}");
        if result.is_ok() {
            return assert!(failing > 10, "{failing} steps failed");
        }
    }
}

#[test]
fn old_version_is_set_aside_where_directories_cannot_be_exchanged() {
    let rooted = replaceable();
    let mut refused = false;
    let refuse_first_rename = move |step: Step, _: &Path| {
        let refuse = step == Step::Rename && !refused;
        refused |= refuse;
        if refuse { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
    };
    watched(refuse_first_rename, || SampleVersion::new(1, 1).publish(&rooted)).unwrap();
    assert_eq!(assert_one_attempt(&rooted), 1);
    assert_eq!(rooted.store.set_aside().unwrap(), ["v000000000001"]);
}
