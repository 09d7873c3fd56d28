//! The tape as a program uses it: real memory, a real directory, real codecs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use recoup_compress::Qb;
use recoup_core::{Bound, Codec, CodecId, CodecResult, Context, ElementType, Values, ValuesMut};
use recoup_model::Rng;
use recoup_tape::{Eviction, StateShape, Tape, TapeBuilder, TapeError};

const DIMS: [usize; 3] = [20, 15, 10];
const LEN: usize = 3000;

/// A field that changes smoothly with the step.
fn field(step: u64, len: usize) -> Vec<f64> {
    let t = step as f64 * 0.05;
    (0..len).map(|i| ((i % 20) as f64 * 0.3 + t).sin() * ((i / 20) as f64 * 0.02 - t).cos()).collect()
}

fn lossless(builder: TapeBuilder) -> TapeBuilder {
    builder.codec(Arc::new(Qb::default()), Bound::Lossless).grid(DIMS)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn pop(tape: &mut Tape) -> Result<(u64, Vec<f64>), TapeError> {
    let mut values = vec![0.0; LEN];
    tape.pop(ValuesMut::F64(&mut values)).map(|step| (step, values))
}

#[test]
fn states_come_back_in_reverse_from_memory_and_directory() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = 5 * 8 * LEN as u64;
    let builders: [fn(TapeBuilder) -> TapeBuilder; 4] =
        [|b| b, lossless, |b| lossless(b).key_every(4), |b| lossless(b).key_every(100).threads(2)];
    for (n, describe) in builders.into_iter().enumerate() {
        let spill = dir.path().join(n.to_string());
        let mut tape = describe(Tape::builder().host(bytes).spill(&spill)).build().unwrap();
        for step in 0..40 {
            tape.push(10 * step, Values::F64(&field(step, LEN))).unwrap();
        }
        assert_eq!(tape.steps().unwrap(), (0..40).map(|step| 10 * step).collect::<Vec<u64>>());
        for step in (0..40).rev() {
            assert_eq!(pop(&mut tape).unwrap(), (10 * step, field(step, LEN)));
        }
        assert!(matches!(pop(&mut tape), Err(TapeError::Empty)));
        drop(tape);
        assert_eq!(files(&spill), [] as [PathBuf; 0], "popped states leave no file");
    }
}

/// Bounds hold for every value, whatever level it went through.
#[test]
fn lossy_states_keep_their_bound_and_take_less_room() {
    for key_every in [1, 3] {
        let bound = 1e-4;
        let codec = Arc::new(Qb::default());
        let builder = Tape::builder().host(8 << 20).codec(codec, Bound::Absolute(bound)).grid(DIMS);
        let mut tape = builder.key_every(key_every).build().unwrap();
        for step in 0..30 {
            tape.push(step, Values::F64(&field(step, LEN))).unwrap();
        }
        tape.steps().unwrap();
        let report = tape.report();
        assert!(3 * report.stored_bytes < report.raw_bytes, "{report:?}");
        for step in (0..30).rev() {
            let (popped, values) = pop(&mut tape).unwrap();
            let error = values.iter().zip(field(step, LEN)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(popped == step && error <= bound, "step {step}: {error}");
        }
    }
}

/// A random program: what is on the tape is compared with a map of it after each call.
#[test]
fn random_programs_get_what_they_pushed() {
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let dir = tempfile::tempdir().unwrap();
        let mut builder = Tape::builder().spill(dir.path());
        if !rng.next_u64().is_multiple_of(4) {
            builder = builder.host(20_000 + rng.next_u64() % 200_000);
        }
        let is_coded = rng.next_u64().is_multiple_of(2);
        if is_coded {
            builder = builder.codec(Arc::new(Qb::default()), Bound::Lossless);
        }
        if rng.next_u64().is_multiple_of(2) {
            builder = builder.eviction(Eviction::KnownOrder);
        }
        let mut tape = builder.build().unwrap();
        let mut expected = BTreeMap::new();
        let mut order: Vec<u64> = Vec::new();
        for step in 0..60 {
            match rng.next_u64() % 8 {
                0..4 => {
                    let values = field(step, (rng.next_u64() % 2000) as usize);
                    tape.push(step, Values::F64(&values)).unwrap();
                    expected.insert(step, values);
                }
                4 if !expected.is_empty() => {
                    let some: Vec<u64> = expected.keys().copied().collect();
                    let step = some[(rng.next_u64() % some.len() as u64) as usize];
                    let mut values = vec![0.0; expected[&step].len()];
                    tape.peek(step, ValuesMut::F64(&mut values)).unwrap();
                    assert_eq!(values, expected[&step], "seed {seed}, step {step}");
                    if rng.next_u64().is_multiple_of(3) {
                        tape.forget(step).unwrap();
                        expected.remove(&step);
                        order.retain(|other| *other != step);
                    }
                }
                5 => {
                    order = expected.keys().copied().filter(|_| rng.next_u64().is_multiple_of(3)).collect();
                    tape.announce(&order).unwrap();
                }
                _ => {
                    let next = order.first().copied().or_else(|| expected.keys().next_back().copied());
                    let Some(next) = next else { continue };
                    let mut values = vec![0.0; expected[&next].len()];
                    assert_eq!(tape.pop(ValuesMut::F64(&mut values)).unwrap(), next, "seed {seed}");
                    assert_eq!(expected.remove(&next), Some(values), "seed {seed}, step {next}");
                    order.retain(|other| *other != next);
                }
            }
            assert_eq!(tape.len(), expected.len());
        }
        let left: Vec<u64> = expected.keys().copied().collect();
        assert_eq!(tape.steps().unwrap(), left, "seed {seed}");
    }
}

#[test]
fn every_element_type_comes_back() {
    let mut tape = Tape::builder().host(1 << 20).build().unwrap();
    tape.push(0, Values::F32(&[1.5, f32::NAN, -0.0])).unwrap();
    tape.push(1, Values::I64(&[i64::MIN, 7])).unwrap();
    tape.push(2, Values::Bytes(&[1, 2, 3])).unwrap();
    tape.push(3, Values::F64(&[])).unwrap();
    tape.pop(ValuesMut::F64(&mut [])).unwrap();
    let mut bytes = [0; 3];
    assert_eq!((tape.pop(ValuesMut::Bytes(&mut bytes)).unwrap(), bytes), (2, [1, 2, 3]));
    let mut integers = [0; 2];
    assert_eq!((tape.pop(ValuesMut::I64(&mut integers)).unwrap(), integers), (1, [i64::MIN, 7]));
    let mut singles = [0.0; 3];
    tape.pop(ValuesMut::F32(&mut singles)).unwrap();
    assert_eq!(singles.map(f32::to_bits), [1.5, f32::NAN, -0.0].map(f32::to_bits));
}

#[test]
fn memory_that_is_prepared_keeps_states_like_memory_that_grows() {
    let mut tape = Tape::builder().host(1 << 20).prepared().build().unwrap();
    (0..20).for_each(|step| tape.push(step, Values::F64(&field(step, LEN))).unwrap());
    for step in (0..20).rev() {
        assert_eq!(pop(&mut tape).unwrap(), (step, field(step, LEN)));
    }
}

#[test]
fn a_saved_tape_is_reopened_whole() {
    let dir = tempfile::tempdir().unwrap();
    for describe in [|b: TapeBuilder| b, |b| lossless(b).key_every(3)] {
        let builder = || describe(Tape::builder().host(1 << 20).spill(dir.path()));
        let mut tape = builder().clear().build().unwrap();
        (0..20).for_each(|step| tape.push(step, Values::F64(&field(step, LEN))).unwrap());
        tape.save().unwrap();
        drop(tape);
        let occupied = builder().build().unwrap_err().to_string();
        assert!(
            occupied
                .ends_with("20 states of an earlier run are there; reopen the tape to continue with them, or clear it")
        );
        let mut tape = builder().reopen().build().unwrap();
        assert_eq!((tape.len(), tape.damaged()), (20, &[][..]));
        (20..30).for_each(|step| tape.push(step, Values::F64(&field(step, LEN))).unwrap());
        for step in (0..30).rev() {
            assert_eq!(pop(&mut tape).unwrap(), (step, field(step, LEN)));
        }
    }
}

/// The file of such a state stayed, and a reopened tape gave the state out again.
#[test]
fn a_state_that_is_dropped_while_it_is_fetched_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let builder = || Tape::builder().host(16 << 20).spill(dir.path());
    for _ in 0..20 {
        let mut tape = builder().build().unwrap();
        tape.push(0, Values::F64(&vec![1.0; 1 << 20])).unwrap();
        tape.save().unwrap();
        drop(tape);
        let mut tape = builder().reopen().build().unwrap();
        tape.turn().unwrap();
        tape.forget(0).unwrap();
        drop(tape);
        assert!(files(dir.path()).is_empty(), "{:?}", files(dir.path()));
    }
}

/// Truncations and flipped bits of each file: the state is named, and never given out.
#[test]
fn damaged_files_are_named_and_their_states_never_given_out() {
    let dir = tempfile::tempdir().unwrap();
    let builder = || Tape::builder().spill(dir.path());
    let mut rng = Rng::new(1);
    for round in 0..60 {
        let mut tape = builder().clear().build().unwrap();
        (0..3).for_each(|step| tape.push(step, Values::F64(&field(step, 50))).unwrap());
        drop(tape);
        let victim = files(dir.path()).remove(1);
        let mut bytes = fs::read(&victim).unwrap();
        if round % 2 == 0 {
            bytes.truncate((rng.next_u64() % bytes.len() as u64) as usize);
        } else {
            let bit = (rng.next_u64() % (8 * bytes.len() as u64)) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        fs::write(&victim, bytes).unwrap();
        let mut tape = builder().reopen().build().unwrap();
        let named = victim.file_name().unwrap().to_str().unwrap();
        let mut values = vec![0.0; 50];
        if let [damaged] = tape.damaged() {
            assert_eq!(damaged.path, victim);
            assert_eq!(tape.len(), 2);
        } else {
            assert_eq!(tape.len(), 3);
            tape.pop(ValuesMut::F64(&mut values)).unwrap();
            for step in tape.steps().unwrap() {
                match tape.peek(step, ValuesMut::F64(&mut values)) {
                    Ok(()) => assert_eq!(values, field(step, 50), "round {round}"),
                    Err(TapeError::Shape { .. }) => assert_eq!(round % 2, 1, "a flipped bit in the header"),
                    Err(error) => assert!(error.to_string().contains(named), "{error}"),
                }
            }
            let read =
                tape.steps().unwrap().into_iter().filter(|step| tape.peek(*step, ValuesMut::F64(&mut values)).is_ok());
            assert_eq!(read.count(), 1, "round {round}: only the whole state is given out");
        }
    }
}

#[test]
fn a_failed_spill_costs_no_state() {
    let dir = tempfile::tempdir().unwrap();
    let spill = dir.path().join("spill");
    let mut tape = Tape::builder().host(4 * 8 * LEN as u64).spill(&spill).build().unwrap();
    // Files cannot be made where there is no directory.
    fs::remove_dir(&spill).unwrap();
    (0..3).for_each(|step| tape.push(step, Values::F64(&field(step, LEN))).unwrap());
    let error = tape.push(3, Values::F64(&field(3, 2 * LEN))).unwrap_err().to_string();
    assert!(error.starts_with("step 3: ") && error.contains("create"), "{error}");
    for step in (0..3).rev() {
        assert_eq!(pop(&mut tape).unwrap(), (step, field(step, LEN)));
    }
}

/// The codec's thread found no room for a state, and a later call returned the error. The step
/// still counted as one of the tape: it could neither be pushed again nor be popped.
#[test]
fn a_state_that_the_codec_could_not_push_can_be_pushed_again() {
    let mut tape = lossless(Tape::builder().host(20 << 10)).build().unwrap();
    let noise = |step: u64| -> Vec<f64> {
        let mut rng = Rng::new(step);
        (0..LEN).map(|_| f64::from_bits(rng.next_u64() >> 2)).collect()
    };
    tape.push(0, Values::F64(&[1.0; LEN])).unwrap();
    tape.push(1, Values::F64(&noise(1))).unwrap();
    let error = tape.shape(0).unwrap_err().to_string();
    assert!(error.starts_with("step 1: ") && error.contains("largest level"), "{error}");
    assert_eq!((tape.len(), tape.steps().unwrap()), (1, vec![0]));
    assert!(matches!(tape.shape(1), Err(TapeError::Unknown { step: 1 })));
    tape.push(1, Values::F64(&[2.0; LEN])).unwrap();
    assert_eq!(tape.next_step().unwrap(), Some(1));
    let shape = tape.shape(1).unwrap();
    assert_eq!((shape.element, shape.dims), (ElementType::F64, DIMS));
    assert_eq!(pop(&mut tape).unwrap(), (1, vec![2.0; LEN]));
    assert_eq!(pop(&mut tape).unwrap(), (0, vec![1.0; LEN]));
    assert_eq!(tape.next_step().unwrap(), None);
}

#[test]
fn mistakes_are_errors_that_name_the_step_and_leave_the_tape_as_it_was() {
    let message = |result: Result<(), TapeError>| result.unwrap_err().to_string();
    assert!(Tape::builder().build().unwrap_err().to_string().contains("needs room"));
    assert!(Tape::builder().host(1 << 60).build().unwrap_err().to_string().contains("the machine has"));
    let mut tape = Tape::builder().host(1000).build().unwrap();
    tape.push(5, Values::F64(&[1.0; 50])).unwrap();
    assert!(message(tape.push(5, Values::F64(&[1.0]))).starts_with("step 5 is on the tape already"));
    assert!(message(tape.push(6, Values::F64(&[0.0; 100]))).starts_with("step 6: 896 bytes: the tape is full"));
    assert!(message(tape.push(6, Values::F64(&[0.0; 200]))).contains("the largest level of the tape holds 1000"));
    assert!(message(tape.peek(4, ValuesMut::F64(&mut []))).starts_with("step 4 is not on the tape"));
    assert!(message(tape.forget(4)).starts_with("step 4 is not on the tape"));
    assert!(message(tape.announce(&[5, 9])).starts_with("step 9 is not on the tape"));
    let wrong = "step 5: 50 values of type f64 are on the tape, room for 50 of type f32 was given";
    assert_eq!(message(tape.pop(ValuesMut::F32(&mut [0.0; 50])).map(|_| ())), wrong);
    assert!(matches!(tape.save(), Err(TapeError::NothingKept)));
    let mut back = [0.0; 50];
    assert_eq!((tape.pop(ValuesMut::F64(&mut back)).unwrap(), back), (5, [1.0; 50]));
    let mut grid = lossless(Tape::builder().host(1 << 20)).build().unwrap();
    assert_eq!(
        message(grid.push(0, Values::F64(&[0.0; 7]))),
        "step 0: the grid of the tape has 3000 values, the state 7"
    );
}

/// The system refused to remove the file of a popped state, and no error said so. The step was
/// pushed again and saved, and the next run got the old value.
#[test]
fn a_step_that_was_pushed_again_comes_back_with_its_last_value() {
    let dir = tempfile::tempdir().unwrap();
    let builder = || Tape::builder().spill(dir.path());
    let mut tape = builder().build().unwrap();
    (0..4).for_each(|step| tape.push(step, Values::F64(&field(step, LEN))).unwrap());
    let old = files(dir.path()).pop().unwrap();
    let bytes = fs::read(&old).unwrap();
    assert_eq!(pop(&mut tape).unwrap().0, 3);
    tape.push(3, Values::F64(&[333.0; LEN])).unwrap();
    tape.save().unwrap();
    drop(tape);
    fs::write(&old, bytes).unwrap();
    let mut tape = builder().reopen().build().unwrap();
    assert_eq!(tape.steps().unwrap(), [0, 1, 2, 3]);
    assert_eq!(pop(&mut tape).unwrap(), (3, vec![333.0; LEN]));
    drop(tape);
    assert_eq!(builder().reopen().build().unwrap().steps().unwrap(), [0, 1, 2], "the old one went, too");
}

/// As above: saving and closing name a file that stays.
#[test]
fn a_file_that_the_system_does_not_remove_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let protect = |flag: &str, path: &Path| {
        let done = std::process::Command::new("chattr").arg(flag).arg(path).output();
        done.is_ok_and(|output| output.status.success())
    };
    let mut tape = Tape::builder().spill(dir.path()).build().unwrap();
    (0..2).for_each(|step| tape.push(step, Values::F64(&field(step, LEN))).unwrap());
    let file = files(dir.path()).pop().unwrap();
    if !protect("+i", &file) {
        eprintln!("SKIPPED: immutable files need root and a file system that has them");
        return;
    }
    assert_eq!(pop(&mut tape).unwrap(), (1, field(1, LEN)));
    let saved = tape.save().unwrap_err().to_string();
    let closed = tape.close().unwrap_err().to_string();
    let tape = Tape::builder().spill(dir.path()).reopen().build().unwrap();
    assert_eq!(tape.steps().unwrap(), [0, 1], "it is back");
    drop(tape);
    assert!(protect("-i", &file));
    for error in [saved, closed] {
        assert!(error.contains(file.to_str().unwrap()) && error.contains("would be back"), "{error}");
    }
}

/// `clear` removed every `*.state` of the folder, and opening every `*.state.new`, also through
/// links of other users.
#[test]
fn files_that_no_tape_has_made_stay() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let kept = ["run.state", "run.state.new", "12-3.state", "0000000001-x.state"];
    kept.iter().for_each(|name| fs::write(at(name), "the user's own").unwrap());
    std::os::unix::fs::symlink(at("run.state"), at("0000000007-7.state")).unwrap();
    std::os::unix::fs::symlink(at("run.state"), at("0000000008-8.state.new")).unwrap();
    // Whoever opens a pipe waits for its other end.
    rustix::fs::mknodat(rustix::fs::CWD, at("0000000009-9.state"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let mut tape = Tape::builder().spill(dir.path()).clear().build().unwrap();
    let named: Vec<_> = tape.damaged().iter().map(|state| (state.path.clone(), state.reason.clone())).collect();
    assert!(
        matches!(&named[..], [(path, why), (_, pipe)] if *path == at("0000000007-7.state") && why.contains("link")
            && pipe.contains("not a regular file")),
        "{named:?}"
    );
    tape.push(7, Values::F64(&field(7, LEN))).unwrap();
    tape.save().unwrap();
    drop(tape);
    Tape::builder().spill(dir.path()).clear().build().unwrap();
    assert_eq!(files(dir.path()).len(), kept.len() + 3, "{:?}", files(dir.path()));
    assert!(kept.iter().all(|name| fs::read_to_string(at(name)).unwrap() == "the user's own"));
}

/// A folder that everybody may write to was used with the values that another user put there.
#[test]
fn a_folder_or_a_state_that_others_may_have_written_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let builder = || Tape::builder().spill(dir.path().join("spill"));
    let mut tape = builder().build().unwrap();
    tape.push(0, Values::F64(&field(0, LEN))).unwrap();
    drop(tape);
    let spill = dir.path().join("spill");
    for open in [0o777, 0o1777] {
        set_mode(&spill, open);
        let error = builder().reopen().build().unwrap_err().to_string();
        assert!(error.contains(&format!("mode {open:04o}")) && error.contains("chmod o-w"), "{error}");
    }
    // A group may share it.
    set_mode(&spill, 0o2775);
    assert_eq!(builder().reopen().build().unwrap().steps().unwrap(), [0]);
    set_mode(&files(&spill)[0], 0o666);
    let tape = builder().reopen().build().unwrap();
    assert!(tape.is_empty() && tape.damaged()[0].reason.contains("mode 0666"), "{:?}", tape.damaged());
}

/// A file whose header asked for more values than any payload holds ended the program when room was
/// made for them.
#[test]
fn no_room_is_made_by_a_header_whose_checksum_does_not_hold() {
    let dir = tempfile::tempdir().unwrap();
    let builder = || lossless(Tape::builder().host(1 << 20).spill(dir.path()));
    let mut tape = builder().build().unwrap();
    tape.push(0, Values::F64(&[0.5; LEN])).unwrap();
    tape.save().unwrap();
    drop(tape);
    let file = files(dir.path()).remove(0);
    let whole = fs::read(&file).unwrap();
    assert_eq!(whole[24..26], *b"qb", "a raw state has no room but its file");
    let mut n_compared = 0;
    for bit in 0..64 {
        let mut bytes = whole.clone();
        bytes[40 + bit / 8] ^= 1 << (bit % 8);
        fs::write(&file, bytes).unwrap();
        let mut tape = builder().reopen().build().unwrap();
        if tape.damaged().is_empty() {
            let error = tape.shape(0).unwrap_err().to_string();
            assert!(error.contains("checksum"), "bit {bit}: {error}");
            n_compared += 1;
            assert!(tape.pop(ValuesMut::F64(&mut [0.0; LEN])).is_err(), "bit {bit}");
        }
    }
    assert!(n_compared > 0, "the header alone told of all");
    // Right checksums, and more than the machine has.
    let mut bytes = whole.clone();
    bytes[45] = 1;
    let end = bytes.len() - 16;
    let crc = crc32c::crc32c(&bytes[..end]);
    bytes[end + 8..end + 12].copy_from_slice(&crc.to_le_bytes());
    fs::write(&file, bytes).unwrap();
    let tape = builder().reopen().build().unwrap();
    assert!(tape.is_empty() && tape.damaged()[0].reason.contains("in a payload of"), "{:?}", tape.damaged());
}

/// Counts decodes of QB.
#[derive(Default)]
struct CountingQb {
    inner: Qb,
    n_decoded: AtomicUsize,
}

impl Codec for CountingQb {
    fn id(&self) -> CodecId {
        self.inner.id()
    }

    fn can_follow(&self) -> bool {
        self.inner.can_follow()
    }

    fn encode(&self, source: Values<'_>, bound: Bound, context: &Context, target: &mut Vec<u8>) -> CodecResult {
        self.inner.encode(source, bound, context, target)
    }

    fn decode(&self, source: &[u8], bound: Bound, context: &Context, target: ValuesMut<'_>) -> CodecResult<()> {
        self.n_decoded.fetch_add(1, Ordering::Relaxed);
        self.inner.decode(source, bound, context, target)
    }
}

/// A group is decoded once, from its key on.
#[test]
fn chained_states_are_smaller_and_each_is_decoded_once_on_the_way_back() {
    let stored = [1, 5].map(|key_every| {
        let codec = Arc::new(CountingQb::default());
        let counted: Arc<dyn Codec> = codec.clone();
        let builder = Tape::builder().host(8 << 20).codec(counted, Bound::Absolute(1e-7)).grid(DIMS);
        let mut tape = builder.key_every(key_every).build().unwrap();
        (0..33).for_each(|step| tape.push(step, Values::F64(&field(step, LEN))).unwrap());
        tape.steps().unwrap();
        let stored = tape.report().stored_bytes;
        codec.n_decoded.store(0, Ordering::Relaxed);
        for step in (0..33).rev() {
            assert_eq!(pop(&mut tape).unwrap().0, step);
        }
        assert_eq!(codec.n_decoded.load(Ordering::Relaxed), 33);
        stored
    });
    assert!(stored[1] < stored[0], "{stored:?}");
}

#[test]
fn a_directory_has_one_tape_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let first = Tape::builder().spill(dir.path()).build().unwrap();
    let second = Tape::builder().spill(dir.path()).build().unwrap_err().to_string();
    assert!(second.contains("another process has a tape there"), "{second}");
    drop(first);
    Tape::builder().spill(dir.path()).build().unwrap();
}

#[test]
fn states_that_follow_others_leave_in_reverse_only() {
    let builder = Tape::builder().host(4 << 20).codec(Arc::new(Qb::default()), Bound::Absolute(1e-6)).grid(DIMS);
    let mut tape = builder.key_every(4).build().unwrap();
    (0..8).for_each(|step| tape.push(step, Values::F64(&field(step, LEN))).unwrap());
    assert!(matches!(tape.announce(&[0]), Err(TapeError::ChainedOrder)));
    assert!(matches!(tape.forget(4), Err(TapeError::ChainedOrder)));
    tape.forget(7).unwrap();
    assert_eq!(pop(&mut tape).unwrap().0, 6);
}

/// A program that did not push a state makes room for it by its shape, as doors do.
#[test]
fn states_of_any_grid_tell_their_shape_also_after_a_reopen() {
    let shapes = [[30, 1, 1], [20, 15, 10], [4, 5, 1], [0, 1, 1]];
    for is_coded in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let builder = || {
            let builder = Tape::builder().host(1 << 20).spill(dir.path());
            if is_coded { builder.codec(Arc::new(Qb::default()), Bound::Lossless).key_every(2) } else { builder }
        };
        let mut tape = builder().build().unwrap();
        for (step, dims) in (0..).zip(shapes) {
            tape.push_shaped(step, Values::F64(&field(step, dims.iter().product())), dims).unwrap();
        }
        tape.push_shaped(9, Values::F32(&[1.5; 6]), [3, 2, 1]).unwrap();
        let wrong = tape.push_shaped(10, Values::F64(&[0.0; 5]), [2, 2, usize::MAX]).unwrap_err();
        assert!(matches!(wrong, TapeError::Grid { step: 10, found: 5, .. }), "{wrong}");
        tape.save().unwrap();
        drop(tape);
        let mut tape = builder().reopen().build().unwrap();
        assert_eq!(tape.next_step().unwrap(), Some(9));
        assert_eq!(tape.shape(9).unwrap(), StateShape { element: ElementType::F32, dims: [3, 2, 1] });
        assert!(tape.contains(9) && !tape.contains(10));
        tape.forget(9).unwrap();
        for step in (0..4_u64).rev() {
            let dims = shapes[step as usize];
            assert_eq!(tape.shape(step).unwrap(), StateShape { element: ElementType::F64, dims });
            let mut values = vec![0.0; dims.iter().product()];
            assert_eq!(tape.pop(ValuesMut::F64(&mut values)).unwrap(), step);
            assert_eq!(values, field(step, values.len()));
        }
        assert_eq!(tape.next_step().unwrap(), None);
        assert!(matches!(tape.shape(0), Err(TapeError::Unknown { step: 0 })));
    }
}

/// A schedule reads a state again and again before it takes it. Each of its slots held the decoded
/// state, too, from the first of these reads on: with a codec a tape took more memory than without.
#[test]
fn states_that_are_peeked_do_not_stay_decoded() {
    let codec = Arc::new(CountingQb::default());
    let counted: Arc<dyn Codec> = codec.clone();
    let builder = Tape::builder().host(8 << 20).codec(counted, Bound::Absolute(1e-7)).grid(DIMS);
    let mut tape = builder.build().unwrap();
    (0..8).for_each(|step| tape.push(step, Values::F64(&field(step, LEN))).unwrap());
    tape.steps().unwrap();
    codec.n_decoded.store(0, Ordering::Relaxed);
    let mut values = vec![0.0; LEN];
    for _ in 0..3 {
        (0..8).for_each(|step| tape.peek(step, ValuesMut::F64(&mut values)).unwrap());
    }
    assert_eq!(codec.n_decoded.load(Ordering::Relaxed), 3 * 8, "a peeked state is decoded, given out and forgotten");
}

/// The name of one was cut to the eight bytes that a header has, so no state could be popped. C
/// took a bound for the other, which keeps every bit, and Python refused it.
#[test]
fn codecs_without_a_word_for_states_or_a_use_for_the_bound_are_refused() {
    let refused = |id, bound| {
        let codec = recoup_compress::codec(id).unwrap();
        Tape::builder().host(1 << 20).codec(codec, bound).build().map(drop).unwrap_err()
    };
    let nameless = refused(CodecId::Increment, Bound::Lossless);
    assert!(matches!(nameless, TapeError::CodecName { codec: CodecId::Increment }), "{nameless}");
    let exact = refused(CodecId::Zstd, Bound::Absolute(1e-3));
    assert!(exact.to_string().starts_with("codec zstd loses nothing"), "{exact}");
}
