//! The calls recoup_memory_*: arrays of a program, and versions of them in one file.

use std::ffi::{c_char, c_void};
use std::sync::Mutex;

use recoup::core::Clock;
use recoup::io::SystemClock;
use recoup::memory::{AnyVersionedArray as _, Memory, Versioned};
use recoup::memory_options::FileOptions;

use crate::calls::{answer, check_name, out, text, write_line};
use crate::memory_array::{LentArray, LentValues, kind_of};
use crate::memory_pace::MemoryPace;
use crate::numbers::Numbered;
use crate::status::{CallFailure, RECOUP_E_NAME, RECOUP_NO_VERSION, RECOUP_OK, guarded, write_if};

/// A versioned memory: arrays of the program, and a file with versions of them. 0 is none. Memories
/// are not used again after recoup_memory_close.
pub type RecoupMemory = u64;

/// One version of a memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecoupMemoryVersion {
    /// Its number: 1 for the first version of the file, and one more for each commit.
    pub number: u64,
    /// The step that the program gave.
    pub step: u64,
    /// Bytes of its values.
    pub bytes: u64,
    /// Bytes of the blocks that it does not share with older versions.
    pub new_bytes: u64,
}

/// Counts, bytes and seconds of a memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecoupMemoryReport {
    /// Versions that are kept.
    pub versions: u64,
    /// Commits of this memory so far.
    pub commits: u64,
    /// Places that were found damaged: recoup_memory_damaged names them.
    pub damaged: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes of the file that versions and views need.
    pub used_bytes: u64,
    /// Seconds the program waited in commits.
    pub seconds_commit: f64,
}

/// A memory, and the arrays that the program has lent to it.
pub(crate) struct OpenMemory {
    pub(crate) memory: Memory,
    arrays: Vec<LentArray>,
    pace: MemoryPace,
    clock: SystemClock,
    n_commits: u64,
    commit_seconds: f64,
}

pub(crate) static MEMORIES: Numbered<Mutex<Option<OpenMemory>>> = Numbered::new("versioned memory");

impl OpenMemory {
    /// Returns where an array is in the list.
    fn index(&self, name: &str) -> Result<usize, CallFailure> {
        let found = self.arrays.iter().position(|array| array.name() == name);
        found.ok_or_else(|| CallFailure::new(RECOUP_E_NAME, format!("no array {name:?} was lent")))
    }

    /// Takes an array, in the place of one of the same name.
    fn lend(&mut self, array: LentArray) -> Result<(), CallFailure> {
        let mut others = self.arrays.iter().filter(|other| other.name() != array.name());
        if let Some(other) = others.find(|other| other.overlaps(&array)) {
            return Err(CallFailure::argument(format!("array {}: overlaps array {}", array.name(), other.name())));
        }
        match self.index(array.name()) {
            Ok(index) if self.arrays[index].is_same_memory(&array) => {}
            Ok(index) => self.arrays[index].move_to(array),
            Err(_) => self.arrays.push(array),
        }
        Ok(())
    }

    /// Makes a version of all arrays, in any case or if one is due after a step. Returns its
    /// number; 0 if none was due.
    fn commit(&mut self, step: u64, only_if_due: bool) -> Result<u64, CallFailure> {
        let Self { memory, arrays, pace, .. } = self;
        let began = self.clock.now();
        let mut state: Vec<&mut dyn Versioned> = arrays.iter_mut().map(|array| array as _).collect();
        let number = if only_if_due {
            pace.step(memory, step, &mut state)?.unwrap_or(0)
        } else {
            pace.commit(memory, step, &mut state)?
        };
        if number > 0 {
            self.n_commits += 1;
            self.commit_seconds += (self.clock.now() - began).as_secs_f64();
        }
        Ok(number)
    }

    /// Fills all arrays with a version, or with the newest one that is whole if `number` is 0.
    /// Returns its step; `None` if there is no version.
    fn restore(&mut self, number: u64) -> Result<Option<u64>, CallFailure> {
        let mut state: Vec<&mut dyn Versioned> = self.arrays.iter_mut().map(|array| array as _).collect();
        let restored = match number {
            0 => self.memory.restore_newest(&mut state)?,
            number => Some(self.memory.restore(number, &mut state)?),
        };
        self.pace.rest();
        Ok(restored.map(|version| version.step))
    }
}

/// Opens the file of a versioned memory, makes it if there is none, and writes the memory to
/// `memory`.
///
/// `options` are words as in "file=/dev/shm/heat.memory keep=4 interval=10it": file (the one that
/// must be there), keep (versions that are kept, 2 if not given), block (bytes of a block of a new
/// file, a power of two, 64KiB if not given), medium (file for positioned writes, map for stores
/// into a map of the file, auto for a map where the file is stored in memory), interval (of
/// recoup_memory_step: steps as in 20it, seconds, or a policy that follows the measured cost of a
/// commit: auto, which is the optimal interval, young, daly, or greedy, which computes for as long
/// as it commits) and mtti (seconds, for auto, young and daly). A file has one writer at a time.
///
/// RECOUP_E_ARGUMENT, RECOUP_E_OPTIONS, RECOUP_E_STORE, also for a file that another memory has
/// open, RECOUP_E_DAMAGED.
///
/// # Safety
/// `options` is NULL or a C string, `memory` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_memory_open(options: *const c_char, memory: *mut RecoupMemory) -> i32 {
    let open = || {
        // SAFETY: as the caller promises.
        let options: FileOptions = unsafe { text("options", options) }?.parse()?;
        let opened = Memory::open(&options.file, options.memory).map_err(CallFailure::from);
        let memory = opened.map_err(|failure| CallFailure {
            message: format!("{}: {}", options.file.display(), failure.message),
            ..failure
        })?;
        let pace = MemoryPace::new(options.pace());
        let clock = SystemClock::new();
        let open = OpenMemory { memory, arrays: Vec::new(), pace, clock, n_commits: 0, commit_seconds: 0.0 };
        Ok(MEMORIES.insert(Mutex::new(Some(open))))
    };
    // SAFETY: as the caller promises.
    unsafe { answer("memory", memory, open) }
}

/// Lends an array to a memory: `count` values of `type` at `values`, in memory of the host. Every
/// version holds all arrays of its memory.
///
/// `name` has 1 to 64 letters, digits, '_', '-' and '.', the last not first. The array must stay
/// there until the memory is closed; it is read in recoup_memory_commit and recoup_memory_step, and
/// written in recoup_memory_restore. Lending a name again moves the array: the next version then
/// shares none of its values. The types are RECOUP_F64, RECOUP_F32, RECOUP_I64, RECOUP_I32,
/// RECOUP_U64, RECOUP_U32 and RECOUP_BYTES.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, also for an array that overlaps another, RECOUP_E_NAME.
///
/// # Safety
/// `name` is NULL or a C string; `values` has `count` values of `type`, unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_memory_array(
    memory: RecoupMemory,
    name: *const c_char,
    r#type: i32,
    values: *mut c_void,
    count: u64,
) -> i32 {
    guarded(|| {
        MEMORIES.with(memory, |open| {
            // SAFETY: as the caller promises.
            let name = unsafe { text("name", name) }?;
            check_name(name)?;
            let lent = LentValues { kind: kind_of(r#type)?, start: values, count };
            open.lend(LentArray::new(name, lent)?)
        })
    })
}

/// Has each commit compare an array with the version before. Its writes then need no
/// recoup_memory_touch, and each commit reads the array's last version from the file.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_NAME.
///
/// # Safety
/// `name` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_memory_compare(memory: RecoupMemory, name: *const c_char) -> i32 {
    guarded(|| {
        MEMORIES.with(memory, |open| {
            // SAFETY: as the caller promises.
            let index = open.index(unsafe { text("name", name) }?)?;
            open.arrays[index].tracking_mut().compare();
            Ok(RECOUP_OK)
        })
    })
}

/// Announces that `count` values from value `first` of an array were written, or will be before the
/// next commit. A write that is not announced may be missing from versions.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT for values that the array does not have, RECOUP_E_NAME.
///
/// # Safety
/// `name` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_memory_touch(memory: RecoupMemory, name: *const c_char, first: u64, count: u64) -> i32 {
    guarded(|| {
        MEMORIES.with(memory, |open| {
            // SAFETY: as the caller promises.
            let index = open.index(unsafe { text("name", name) }?)?;
            open.arrays[index].touch(first, count)
        })
    })
}

/// Makes a version of all arrays, under a number of the program's own, and writes the version's
/// number to `number`, which may be NULL. Returns when the version is durable.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_STORE, RECOUP_E_FULL: the version does not count,
/// and those before stay. RECOUP_E_NOT_SAVED after a commit that failed in its last step: open the
/// file again to see whether that one counts.
///
/// # Safety
/// `number` is NULL or can be written; the arrays are as they were lent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_memory_commit(memory: RecoupMemory, step: u64, number: *mut u64) -> i32 {
    guarded(|| {
        MEMORIES.with(memory, |open| {
            let target = if number.is_null() { None } else { Some(out("number", number)?) };
            let committed = open.commit(step, false)?;
            // SAFETY: the caller\'s to be written.
            unsafe { write_if(target, committed) };
            Ok(RECOUP_OK)
        })
    })
}

/// Makes a version as recoup_memory_commit does if one is due by the option interval, and writes
/// its number to `number`, which may be NULL; 0 if none was due. Call it after each step.
///
/// As recoup_memory_commit.
///
/// # Safety
/// As for recoup_memory_commit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_memory_step(memory: RecoupMemory, step: u64, number: *mut u64) -> i32 {
    guarded(|| {
        MEMORIES.with(memory, |open| {
            let target = if number.is_null() { None } else { Some(out("number", number)?) };
            let committed = open.commit(step, true)?;
            // SAFETY: the caller\'s to be written.
            unsafe { write_if(target, committed) };
            Ok(RECOUP_OK)
        })
    })
}

/// Fills all arrays with a version, and writes the program's number of it to `step`, which may be
/// NULL. 0 for `number` is the newest version that is whole.
///
/// RECOUP_NO_VERSION if `number` is 0 and there is none: nothing is written. RECOUP_E_HANDLE,
/// RECOUP_E_ARGUMENT for a version that is not kept, RECOUP_E_MISMATCH if an array is not in the
/// version, or has another type or size there, RECOUP_E_DAMAGED, RECOUP_E_STORE: the arrays stay as
/// they are.
///
/// # Safety
/// `step` is NULL or can be written; the arrays are as they were lent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_memory_restore(memory: RecoupMemory, number: u64, step: *mut u64) -> i32 {
    guarded(|| {
        MEMORIES.with(memory, |open| {
            let target = if step.is_null() { None } else { Some(out("step", step)?) };
            let Some(restored) = open.restore(number)? else { return Ok(RECOUP_NO_VERSION) };
            // SAFETY: the caller\'s to be written.
            unsafe { write_if(target, restored) };
            Ok(RECOUP_OK)
        })
    })
}

/// Writes the versions that are kept to `versions`, which has room for `capacity`, the oldest
/// first, and their number to `count`.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT if there are more than `capacity`.
///
/// # Safety
/// `versions` has room for `capacity` of them, unless it is NULL; `count` is NULL or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_memory_versions(
    memory: RecoupMemory,
    versions: *mut RecoupMemoryVersion,
    capacity: u64,
    count: *mut u64,
) -> i32 {
    guarded(|| {
        MEMORIES.with(memory, |open| {
            let count = out("count", count)?;
            let kept = open.memory.versions();
            if kept.len() as u64 > capacity {
                let what = format!("{} versions are kept, room for {capacity} was given", kept.len());
                return Err(CallFailure::argument(what));
            }
            let target = if kept.is_empty() { versions } else { out("versions", versions)? };
            let block_bytes = open.memory.block_bytes();
            for (index, version) in kept.iter().enumerate() {
                let new_blocks: usize = version.structures.iter().map(|structure| structure.new_blocks).sum();
                let new_bytes = (new_blocks * block_bytes) as u64;
                let listed = RecoupMemoryVersion {
                    number: version.number,
                    step: version.step,
                    bytes: version.bytes(),
                    new_bytes,
                };
                // SAFETY: there is room for `capacity`, which is no less than the index.
                unsafe { target.add(index).write(listed) };
            }
            // SAFETY: not NULL, and the caller's to be written.
            unsafe { count.write(kept.len() as u64) };
            Ok(RECOUP_OK)
        })
    })
}

/// Writes counts, bytes and seconds of a memory.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT.
///
/// # Safety
/// `report` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_memory_report(memory: RecoupMemory, report: *mut RecoupMemoryReport) -> i32 {
    let found = || {
        MEMORIES.with(memory, |open| {
            Ok(RecoupMemoryReport {
                versions: open.memory.versions().len() as u64,
                commits: open.n_commits,
                damaged: open.memory.findings().len() as u64,
                block_bytes: open.memory.block_bytes() as u64,
                used_bytes: open.memory.used_bytes(),
                seconds_commit: open.commit_seconds,
            })
        })
    };
    // SAFETY: as the caller promises.
    unsafe { answer("report", report, found) }
}

/// Writes what is damaged, by version, array and block, to `line`, which has room for `capacity`
/// characters with the zero at its end. A longer line is cut. `index` counts from 0. Roots, lists
/// and tables are checked when the file is opened, blocks when they are read.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT.
///
/// # Safety
/// `line` has room for `capacity` characters, unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_memory_damaged(
    memory: RecoupMemory,
    index: u64,
    line: *mut c_char,
    capacity: u64,
) -> i32 {
    guarded(|| {
        MEMORIES.with(memory, |open| {
            let findings = open.memory.findings();
            let found = usize::try_from(index).ok().and_then(|index| findings.get(index));
            let found = found.ok_or_else(|| {
                CallFailure::argument(format!("place {index}: {} were found damaged, counted from 0", findings.len()))
            })?;
            // SAFETY: as the caller promises.
            unsafe { write_line(&found.to_string(), line, capacity) }
        })
    })
}

/// Closes a memory, whatever the code. Its number is never used again, and its arrays are the
/// program's. What was written since the last commit is in no version. Views stay open, and hold
/// the file until they are closed.
///
/// RECOUP_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_memory_close(memory: RecoupMemory) -> i32 {
    guarded(|| MEMORIES.close(memory).map(drop))
}
