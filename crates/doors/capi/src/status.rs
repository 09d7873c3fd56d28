//! The results of calls: an integer, and a message for the thread that called.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use recoup::core::{
    CodecError, CommError, CommonError, Difference, ErrorKind, KindedError, RankFailure, SolveError, StoreError,
};
use recoup::memory::MemoryError;
use recoup::options::OptionsError;
use recoup::pipeline::PipelineError;
use recoup::tape::{PlaceError, TapeError};

/// The call succeeded.
pub const RECOUP_OK: i32 = 0;
/// No version exists yet: start from the beginning. Not an error.
pub const RECOUP_NO_VERSION: i32 = 1;
/// No state is on the tape: all were popped. Not an error.
pub const RECOUP_EMPTY: i32 = 2;
/// Versions are still being made after the time given: wait again. Not an error.
pub const RECOUP_NOT_YET: i32 = 3;
/// A pointer is NULL, a size or a number is out of its range, or regions overlap.
pub const RECOUP_E_ARGUMENT: i32 = -1;
/// The number is not an open handle, or it was opened by the process that this one was forked from.
pub const RECOUP_E_HANDLE: i32 = -2;
/// The options have an unknown key or an impossible value.
pub const RECOUP_E_OPTIONS: i32 = -3;
/// The call is not allowed now: variables and operator come before the first restore or step,
/// iterations count up, and callbacks must not call their handle, nor a signal handler the one
/// whose call it interrupts.
pub const RECOUP_E_ORDER: i32 = -4;
/// The name is taken, too long or has characters that are not allowed.
pub const RECOUP_E_NAME: i32 = -5;
/// The directory or the file is not ours, not writable, full or used by another process.
pub const RECOUP_E_STORE: i32 = -6;
/// Versions exist, but none is whole; or the file of a state, or a block of a version, is damaged.
/// The message names it.
pub const RECOUP_E_DAMAGED: i32 = -7;
/// The versions belong to another problem: another size, another operator or another right-hand
/// side. The message says which.
pub const RECOUP_E_OTHER_PROBLEM: i32 = -8;
/// A version holds other variables or arrays, or other sizes, than are protected or lent; or a
/// state or an array has another type than the room for it, or more values.
pub const RECOUP_E_MISMATCH: i32 = -9;
/// A callback of the communicator failed, or a rank is lost.
pub const RECOUP_E_COMM: i32 = -10;
/// A callback of the program returned an error.
pub const RECOUP_E_CALLBACK: i32 = -11;
/// The bound needs recoup_operator, or a norm that an operator by callback cannot give.
pub const RECOUP_E_OPERATOR: i32 = -12;
/// A version that was taken could not be made; older ones remain, and the solver may continue. From
/// recoup_close also: the newest version is in memory alone, and stays there.
pub const RECOUP_E_NOT_SAVED: i32 = -13;
/// The step is on the tape already, or it is not on the tape.
pub const RECOUP_E_STEP: i32 = -14;
/// The tape or the file is full, or the machine does not have what it needs.
pub const RECOUP_E_FULL: i32 = -15;
/// A mistake of the library.
pub const RECOUP_E_INTERNAL: i32 = -99;

/// A code below 0, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallFailure {
    pub(crate) code: i32,
    pub(crate) kind: ErrorKind,
    /// Empty for [`INTERRUPTED`].
    pub(crate) message: String,
}

/// The message of a call that a signal handler made in the middle of another one.
const INTERRUPTED: &CStr = c"this thread is in a call of the same memory or tape: a signal handler sets a flag, \
                             and the program calls when it sees the flag";

impl CallFailure {
    /// A failure of the kind that its code tells.
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        let kind = match code {
            RECOUP_E_STORE | RECOUP_E_NOT_SAVED => ErrorKind::Io,
            RECOUP_E_DAMAGED => ErrorKind::Damaged,
            RECOUP_E_COMM => ErrorKind::Communication,
            RECOUP_E_CALLBACK => ErrorKind::Callback,
            RECOUP_E_FULL => ErrorKind::OutOfMemory,
            RECOUP_E_INTERNAL => ErrorKind::Internal,
            _ => ErrorKind::Refused,
        };
        Self { code, kind, message: message.into() }
    }

    /// The failure of a call for an error that has a kind.
    pub(crate) fn of(code: i32, error: &impl KindedError) -> Self {
        Self { code, kind: error.kind(), message: error.to_string() }
    }

    /// The failure of a call in the middle of another one of the same thread. The allocator may be
    /// in the middle of a call, too, so this one takes no memory.
    pub(crate) const fn interrupted() -> Self {
        Self { code: RECOUP_E_ORDER, kind: ErrorKind::Refused, message: String::new() }
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(RECOUP_E_ARGUMENT, message)
    }
}

/// A mistake in an options string.
pub(crate) fn refuse(message: String) -> CallFailure {
    CallFailure::new(RECOUP_E_OPTIONS, message)
}

impl From<OptionsError> for CallFailure {
    fn from(error: OptionsError) -> Self {
        refuse(error.0)
    }
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl KindedError for CallFailure {
    fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<RankFailure> for CallFailure {
    /// Takes the failure of a rank that found the program out of order.
    fn from(failure: RankFailure) -> Self {
        Self { code: RECOUP_E_ORDER, kind: failure.kind, message: failure.to_string() }
    }
}

impl From<CommonError<Self>> for CallFailure {
    fn from(error: CommonError<Self>) -> Self {
        error.into_inner()
    }
}

impl From<StoreError> for CallFailure {
    fn from(error: StoreError) -> Self {
        Self::of(RECOUP_E_STORE, &error)
    }
}

impl From<PipelineError> for CallFailure {
    fn from(error: PipelineError) -> Self {
        let mut failure = Self::of(RECOUP_E_INTERNAL, &error);
        let Self { code, message, .. } = &mut failure;
        *code = match &error {
            PipelineError::Store(_) | PipelineError::Rank { .. } => RECOUP_E_STORE,
            PipelineError::Comm(error) => code_of(error),
            PipelineError::Name { .. } => RECOUP_E_NAME,
            PipelineError::Shape { .. } | PipelineError::NotOfSystem { .. } => RECOUP_E_ARGUMENT,
            PipelineError::NoVariables => RECOUP_E_ORDER,
            PipelineError::NeedsOperator { .. } | PipelineError::MissingNorm(_) => RECOUP_E_OPERATOR,
            PipelineError::OtherProblem { difference, .. } => {
                *message += match difference {
                    Difference::Size { .. } => "; give another dir or name",
                    _ => "; give another dir or name, or same_operator=no if A or b change from solve to solve",
                };
                RECOUP_E_OTHER_PROBLEM
            }
            PipelineError::OtherSystem { .. } => RECOUP_E_OTHER_PROBLEM,
            PipelineError::SystemOrder { .. } | PipelineError::IterationOrder { .. } => RECOUP_E_ORDER,
            PipelineError::Solve(SolveError::Length { .. }) | PipelineError::Norm { .. } => RECOUP_E_ARGUMENT,
            PipelineError::RankCount { .. } | PipelineError::Variable { .. } => RECOUP_E_MISMATCH,
            PipelineError::Lacks { .. } => {
                *message += " (recoup_default, recoup_renamed, recoup_dropped)";
                RECOUP_E_MISMATCH
            }
            PipelineError::NoUsable { .. } | PipelineError::Link { .. } => RECOUP_E_DAMAGED,
            PipelineError::Codec { .. } | PipelineError::NoCodec(_) => RECOUP_E_OPTIONS,
            _ => RECOUP_E_INTERNAL,
        };
        failure
    }
}

impl From<CommError> for CallFailure {
    fn from(error: CommError) -> Self {
        Self::of(code_of(&error), &error)
    }
}

/// The name of the program's operator in errors. It is no callback of the communicator, although
/// its failures travel like those.
pub(crate) const OPERATOR: &str = "operator";

fn code_of(error: &CommError) -> i32 {
    match error {
        CommError::Callback { what: OPERATOR, .. } => RECOUP_E_CALLBACK,
        _ => RECOUP_E_COMM,
    }
}

impl From<recoup::Error> for CallFailure {
    fn from(error: recoup::Error) -> Self {
        match error {
            recoup::Error::Store(error @ StoreError::InMemoryAlone { .. }) => Self::of(RECOUP_E_NOT_SAVED, &error),
            recoup::Error::Store(error) => Self::of(RECOUP_E_STORE, &error),
            recoup::Error::Pipeline(error) => error.into(),
            error => Self::new(RECOUP_E_INTERNAL, error.to_string()),
        }
    }
}

impl From<MemoryError> for CallFailure {
    fn from(error: MemoryError) -> Self {
        let code = match &error {
            MemoryError::BlockBytes { .. } => RECOUP_E_OPTIONS,
            MemoryError::Io { .. } | MemoryError::NotMemory { .. } | MemoryError::Format { .. } => RECOUP_E_STORE,
            MemoryError::Locked | MemoryError::Gone { .. } => RECOUP_E_STORE,
            MemoryError::NoRoot { .. } | MemoryError::Damaged(_) | MemoryError::Retired { .. } => RECOUP_E_DAMAGED,
            MemoryError::NoVersion { .. } | MemoryError::Range { .. } => RECOUP_E_ARGUMENT,
            MemoryError::NoStructure { .. } | MemoryError::Kind { .. } | MemoryError::Length { .. } => {
                RECOUP_E_MISMATCH
            }
            MemoryError::TwoOfOneName { .. } | MemoryError::Name { .. } => RECOUP_E_NAME,
            MemoryError::TooManyBlocks => RECOUP_E_FULL,
            MemoryError::Undecided => RECOUP_E_NOT_SAVED,
            MemoryError::Forked { .. } => RECOUP_E_HANDLE,
        };
        Self::of(code, &error)
    }
}

impl From<TapeError> for CallFailure {
    fn from(error: TapeError) -> Self {
        let code = match &error {
            TapeError::NoRoom | TapeError::CodedDevice | TapeError::ChainedDevice => RECOUP_E_OPTIONS,
            TapeError::NotBuilt { .. } | TapeError::CodecBound(_) => RECOUP_E_OPTIONS,
            TapeError::Memory { .. } | TapeError::System(_) | TapeError::Device(_) => RECOUP_E_FULL,
            TapeError::Spill { .. } | TapeError::Turns { .. } => RECOUP_E_STORE,
            TapeError::Occupied { .. } | TapeError::NothingKept => RECOUP_E_STORE,
            TapeError::Duplicate { .. } | TapeError::Unknown { .. } => RECOUP_E_STEP,
            TapeError::Shape { .. } => RECOUP_E_MISMATCH,
            TapeError::Grid { .. } => RECOUP_E_ARGUMENT,
            TapeError::Codec { source: CodecError::Damaged { .. }, .. } | TapeError::Orphan { .. } => RECOUP_E_DAMAGED,
            TapeError::Codec { .. } | TapeError::OtherCodec { .. } => RECOUP_E_OPTIONS,
            TapeError::ChainedOrder => RECOUP_E_ORDER,
            TapeError::Forked { .. } => RECOUP_E_HANDLE,
            TapeError::Place { source, .. } => match source {
                PlaceError::TooLarge { .. } | PlaceError::Full { .. } => RECOUP_E_FULL,
                PlaceError::Copy { .. } | PlaceError::Kept { .. } => RECOUP_E_STORE,
                PlaceError::Unknown { .. } => RECOUP_E_STEP,
            },
            _ => RECOUP_E_INTERNAL,
        };
        let mut failure = Self::of(code, &error);
        match error {
            TapeError::NoRoom => {
                failure.message =
                    "a tape needs room: device=BYTES or host=BYTES of memory, or spill=DIRECTORY".to_owned();
            }
            TapeError::Occupied { .. } => failure.message += ": reopen=yes or clear=yes",
            _ => {}
        }
        failure
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
    /// The last failure was that of a signal handler.
    static IS_INTERRUPTED: Cell<bool> = const { Cell::new(false) };
    /// The kind of the last failure; 0 for none.
    static KIND: Cell<i32> = const { Cell::new(0) };
}

/// The code of a call that succeeded.
pub(crate) trait Success {
    fn code(self) -> i32;
}

impl Success for i32 {
    fn code(self) -> i32 {
        self
    }
}

impl Success for () {
    fn code(self) -> i32 {
        RECOUP_OK
    }
}

/// Runs the body of a call: errors become codes and messages, panics do not get out.
pub(crate) fn guarded<S: Success>(body: impl FnOnce() -> Result<S, CallFailure>) -> i32 {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(success)) => return success.code(),
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            // A panic with a value of another type has no words.
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            CallFailure::new(RECOUP_E_INTERNAL, format!("panicked: {text}"))
        }
    };
    KIND.set(failure.kind as i32);
    IS_INTERRUPTED.set(failure.message.is_empty());
    if failure.message.is_empty() {
        return failure.code;
    }
    // A text without a zero byte is a C string: the default is never taken.
    let text = CString::new(failure.message.replace('\0', " ")).unwrap_or_default();
    // Without its thread-local storage a thread that ends has no message.
    let _ = MESSAGE.try_with(|message| *message.borrow_mut() = text);
    failure.code
}

/// Writes a result where the caller wants it, which may be nowhere.
///
/// # Safety
/// `target` can be written.
pub(crate) unsafe fn write_if<T>(target: Option<*mut T>, result: T) {
    if let Some(target) = target {
        // SAFETY: as the caller promises.
        unsafe { target.write(result) };
    }
}

/// Returns the message of the last call of this thread that returned a code below 0; empty if none
/// did. Valid until the next call of this thread that fails.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_message() -> *const c_char {
    if IS_INTERRUPTED.get() {
        return INTERRUPTED.as_ptr();
    }
    MESSAGE.try_with(|message| message.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Returns the kind of the error of the last call of this thread that returned a code below 0, as
/// RECOUP_KIND_DISK_FULL; 0 if none did. After RECOUP_E_NOT_SAVED it is the kind of the error that
/// cost the version.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_error_kind() -> i32 {
    KIND.get()
}

/// Returns the meaning of a code, in a few words. The text stays valid.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_strerror(code: i32) -> *const c_char {
    let text: &CStr = match code {
        RECOUP_OK => c"done",
        RECOUP_NO_VERSION => c"there is no version yet",
        RECOUP_EMPTY => c"no state is on the tape",
        RECOUP_NOT_YET => c"versions are still being made",
        RECOUP_E_ARGUMENT => c"an argument is NULL or out of its range",
        RECOUP_E_HANDLE => c"not an open handle",
        RECOUP_E_OPTIONS => c"unknown or impossible option",
        RECOUP_E_ORDER => c"not at this point of the program",
        RECOUP_E_NAME => c"the name is taken or not allowed",
        RECOUP_E_STORE => c"the directory or the file cannot be used",
        RECOUP_E_DAMAGED => c"no version is whole, or a state or a block is damaged",
        RECOUP_E_OTHER_PROBLEM => c"the versions belong to another problem",
        RECOUP_E_MISMATCH => c"the versions hold other variables, or the state other values",
        RECOUP_E_COMM => c"the communicator failed",
        RECOUP_E_CALLBACK => c"a callback of the program failed",
        RECOUP_E_OPERATOR => c"the bound needs an operator",
        RECOUP_E_NOT_SAVED => c"a version could not be made",
        RECOUP_E_STEP => c"the step is on the tape already, or not on it",
        RECOUP_E_FULL => c"the tape or the file has no room",
        RECOUP_E_INTERNAL => c"a mistake of the library",
        _ => c"unknown code",
    };
    text.as_ptr()
}

/// Returns the version of the library, as in "0.1.0". The text stays valid.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
