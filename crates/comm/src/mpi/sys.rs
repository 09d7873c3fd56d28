//! The only calls of MPI: each returns its error class, none ends the program.
//!
//! Nothing here blocks but start, end and [`RawComm::dup`]: everything else is begun and then asked
//! about, so that two threads of a rank can wait for different collective calls even where MPI
//! allows one call at a time.
#![expect(unsafe_code, reason = "calls the MPI library")]

use std::ffi::c_int;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use recoup_core::MpiHandle;

use self::library::{Constants, Functions, StatusRoom, load, mpi};
use super::error::MpiError;
use super::family::{Member, Members};
use super::fault::MpiFault;
use crate::waits::Wait;

mod library;

pub use library::find_mpi;

/// Values in one message at most: their number is a C int.
pub(super) const MESSAGE_MAX: usize = 1 << 30;
/// Looks before a waiting thread lets others run.
const SPINS: u32 = 500;
/// Looks before it sleeps between them.
const YIELDS: u32 = 2000;
/// Looks at requests whose buffers are given up: some 30 seconds.
const LOOKS_MAX: u32 = 500_000;
/// The time of one sleep.
const NAP: Duration = Duration::from_micros(50);

fn calls() -> &'static Functions {
    &mpi().functions
}

fn constants() -> &'static Constants {
    &mpi().constants
}

/// Returns whether a lost rank can be survived.
pub(super) fn can_repair() -> bool {
    mpi().ulfm.is_some()
}

/// Ends this process at once, without what else would run at its end: after a loss, or while a rank
/// hangs, MPI may not come to its own end.
pub fn leave(code: i32) -> ! {
    // SAFETY: ends the process; nothing runs after it.
    unsafe { libc::_exit(code) }
}

/// Calls take turns where the library does not allow several at once.
static TURN: Mutex<()> = Mutex::new(());
static TAKES_TURNS: AtomicBool = AtomicBool::new(false);
static IS_UP: AtomicBool = AtomicBool::new(false);

fn turn() -> Option<MutexGuard<'static, ()>> {
    TAKES_TURNS.load(Ordering::Relaxed).then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// One call, in its turn.
fn call(call: impl FnOnce() -> c_int) -> Result<(), MpiFault> {
    let _turn = turn();
    check(call())
}

fn check(code: c_int) -> Result<(), MpiFault> {
    if code == 0 {
        return Ok(());
    }
    let mut class = code;
    // SAFETY: `class` is a valid place; a class that cannot be had leaves the code in it.
    unsafe { (calls().MPI_Error_class)(code, &raw mut class) };
    Err(MpiFault { class })
}

/// The number of threads that may call at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ThreadSupport {
    /// Only the one that started MPI.
    One,
    /// Any, one at a time.
    Serialized,
    /// Any.
    Multiple,
}

/// Starts MPI for the process; the level granted.
pub(super) fn start(wanted: ThreadSupport) -> Result<ThreadSupport, MpiError> {
    load()?;
    let &Constants { thread_serialized: serialized, thread_multiple: multiple, .. } = constants();
    let asked = if wanted == ThreadSupport::Multiple { multiple } else { serialized };
    let mut granted = 0;
    // SAFETY: MPI allows null for the arguments, and `granted` is a valid place.
    check(unsafe { (calls().MPI_Init_thread)(std::ptr::null_mut(), std::ptr::null_mut(), asked, &raw mut granted) })?;
    let level = if granted >= multiple && wanted == ThreadSupport::Multiple {
        ThreadSupport::Multiple
    } else if granted >= serialized {
        ThreadSupport::Serialized
    } else {
        ThreadSupport::One
    };
    TAKES_TURNS.store(level != ThreadSupport::Multiple, Ordering::Relaxed);
    IS_UP.store(true, Ordering::Release);
    Ok(level)
}

/// Refuses to start where the launcher tells of another number of processes than the library.
pub(super) fn check_size(known: usize) -> Result<(), MpiError> {
    let library = mpi();
    match library.launched {
        Some(launched) if launched != known => {
            Err(MpiError::OtherLauncher { launched, library: library.name.display().to_string(), known })
        }
        _ => Ok(()),
    }
}

/// Ends MPI for the process.
pub(super) fn end() -> Result<(), MpiFault> {
    IS_UP.store(false, Ordering::Release);
    // SAFETY: MPI is up, and no communicator calls it any more (`RawComm::free` reads `IS_UP`).
    call(|| unsafe { (calls().MPI_Finalize)() })
}

/// Ends all processes of the job with this code.
pub(super) fn abort(code: i32) {
    // SAFETY: allowed whenever MPI is up; not called otherwise.
    unsafe { (calls().MPI_Abort)(constants().comm_world, code) };
}

/// Numbers that travel.
pub(super) trait Wire: Copy + Send + 'static {
    /// Returns MPI's name of the type.
    fn datatype() -> usize;
}

macro_rules! wire {
    ($($kind:ty = $name:ident),+) => {$(
        impl Wire for $kind {
            fn datatype() -> usize {
                constants().$name
            }
        }
    )+};
}

wire!(f64 = double, i64 = int64, u8 = uint8);

/// The way in which words of all ranks become one.
#[derive(Clone, Copy, Debug)]
pub(super) enum WordReduction {
    Sum,
    Min,
}

impl WordReduction {
    fn operation(self) -> usize {
        if matches!(self, Self::Sum) { constants().sum } else { constants().min }
    }
}

/// A communicator of the library.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RawComm(usize);

impl RawComm {
    /// All processes of the job; its errors are returned from now on.
    pub(super) fn world() -> Result<Self, MpiFault> {
        let world = Self(constants().comm_world);
        world.return_errors()?;
        Ok(world)
    }

    fn return_errors(self) -> Result<(), MpiFault> {
        // SAFETY: a communicator and a constant of the library.
        call(|| unsafe { (calls().MPI_Comm_set_errhandler)(self.0, constants().errors_return) })
    }

    /// Returns it for libraries whose calls take no turns.
    pub(super) fn handle(self) -> Option<MpiHandle> {
        let is_free = IS_UP.load(Ordering::Acquire) && !TAKES_TURNS.load(Ordering::Relaxed);
        is_free.then(|| MpiHandle { comm: self.0, comm_size: calls().MPI_Comm_size as usize })
    }

    pub(super) fn rank(self) -> Result<usize, MpiFault> {
        let mut rank = 0;
        // SAFETY: a communicator and a valid place.
        call(|| unsafe { (calls().MPI_Comm_rank)(self.0, &raw mut rank) })?;
        Ok(rank as usize)
    }

    pub(super) fn size(self) -> Result<usize, MpiFault> {
        let mut size = 0;
        // SAFETY: a communicator and a valid place.
        call(|| unsafe { (calls().MPI_Comm_size)(self.0, &raw mut size) })?;
        Ok(size as usize)
    }

    /// A communicator of the same ranks. The request completes when all of them have asked.
    pub(super) fn dup(self, family: &Family) -> Result<Self, MpiFault> {
        let mut new = Box::new(Self(constants().comm_null));
        let mut pending = PendingCalls::new(self, family);
        // SAFETY: `new` outlives the request: `pending` is waited for before it is read.
        pending.begin(|request| unsafe { (calls().MPI_Comm_idup)(self.0, &raw mut new.0, request) })?;
        pending.wait()?;
        new.return_errors()?;
        Ok(*new)
    }

    /// A communicator of the ranks that are alive. Waits for them inside the library.
    pub(super) fn shrink(self) -> Result<Self, MpiFault> {
        let ulfm = mpi().ulfm.as_ref().ok_or(MpiFault { class: 0 })?;
        let mut alive = Self(constants().comm_null);
        // SAFETY: a communicator and a valid place.
        call(|| unsafe { (ulfm.MPIX_Comm_shrink)(self.0, &raw mut alive.0) })?;
        alive.return_errors()?;
        Ok(alive)
    }

    /// Returns whether all ranks pass true and none is lost: the same answer on all that are alive.
    /// Waits inside the library.
    pub(super) fn agree(self, own: bool) -> bool {
        let Some(ulfm) = &mpi().ulfm else { return own };
        let mut flag = c_int::from(own);
        // SAFETY: a communicator and a valid place.
        call(|| unsafe { (ulfm.MPIX_Comm_agree)(self.0, &raw mut flag) }).is_ok() && flag != 0
    }

    /// The ranks that come with the same `color`, in the order of `key`. Waits inside the library.
    pub(super) fn split(self, color: usize, key: usize) -> Result<Self, MpiFault> {
        let mut part = Self(constants().comm_null);
        // SAFETY: a communicator and a valid place.
        call(|| unsafe { (calls().MPI_Comm_split)(self.0, color as c_int, key as c_int, &raw mut part.0) })?;
        part.return_errors()?;
        Ok(part)
    }
}

/// Communicators of MPI that are lost together.
pub(super) type Family = Members<RawComm>;

impl Member for RawComm {
    fn is_loss(fault: MpiFault) -> bool {
        mpi().ulfm.is_some() && (74..=77).contains(&fault.class)
    }

    fn revoke(self) {
        if let Some(ulfm) = &mpi().ulfm {
            // SAFETY: a communicator. What is revoked already stays so.
            let _revoked = call(|| unsafe { (ulfm.MPIX_Comm_revoke)(self.0) });
        }
    }

    fn is_revoked(self) -> bool {
        let Some(ulfm) = &mpi().ulfm else { return false };
        let mut flag = 0;
        // SAFETY: a communicator and a valid place.
        call(|| unsafe { (ulfm.MPIX_Comm_is_revoked)(self.0, &raw mut flag) }).is_ok() && flag != 0
    }

    fn failed_rank(self) -> Option<usize> {
        let ulfm = mpi().ulfm.as_ref()?;
        let mut failed = constants().group_null;
        let mut all = failed;
        let first = 0;
        let mut rank = -1;
        // SAFETY: a communicator and valid places.
        call(|| unsafe { (ulfm.MPIX_Comm_get_failed)(self.0, &raw mut failed) }).ok()?;
        // SAFETY: as before.
        call(|| unsafe { (calls().MPI_Comm_group)(self.0, &raw mut all) }).ok()?;
        // SAFETY: two groups, one rank of the first, and a valid place; an empty group is an error.
        let found =
            call(|| unsafe { (calls().MPI_Group_translate_ranks)(failed, 1, &raw const first, all, &raw mut rank) });
        found.ok().and_then(|()| usize::try_from(rank).ok())
    }

    fn free(mut self) {
        if IS_UP.load(Ordering::Acquire) {
            // SAFETY: a communicator made by `dup`, freed once. A failure is lost: no caller is
            // left to be told.
            let _freed = call(|| unsafe { (calls().MPI_Comm_free)(&raw mut self.0) });
        }
    }
}

/// Requests under way, and the exclusive use of their buffers until they are done.
pub(super) struct PendingCalls<'b> {
    requests: Vec<MpiRequest>,
    /// The communicator they are made on, and what is lost with it.
    comm: RawComm,
    family: &'b Family,
    /// Seen by those who look how long this process waits.
    wait: Option<Wait<'b>>,
    buffers: PhantomData<&'b mut [u8]>,
}

/// One request.
enum MpiRequest {
    /// A receive whose message has not come. Its length is looked at before it is taken: libraries
    /// were seen to write beyond the room given for a message that is too long.
    Awaited(ReceiveBuffer),
    /// The library is at work; the number of values that come.
    UnderWay {
        handle: usize,
        values: usize,
        #[expect(dead_code, reason = "room for a message that does not fit, while it comes")]
        overflow: Vec<u8>,
    },
    /// Values it took, or why not.
    Done(Result<usize, MpiFault>),
}

/// The target of a message.
#[derive(Clone, Copy)]
struct ReceiveBuffer {
    comm: RawComm,
    from: c_int,
    tag: c_int,
    start: *mut u8,
    /// Values of the shortest message that is kept.
    least: usize,
    /// And of the longest.
    values: usize,
    value_bytes: usize,
    datatype: usize,
}

impl<'b> PendingCalls<'b> {
    pub(super) fn new(comm: RawComm, family: &'b Family) -> Self {
        Self { requests: Vec::new(), comm, family, wait: None, buffers: PhantomData }
    }

    /// Shows them until they are done or given up.
    pub(super) fn seen(self, wait: Wait<'b>) -> Self {
        let mut pending = self;
        pending.wait = Some(wait);
        pending
    }

    fn begin(&mut self, begin: impl FnOnce(*mut usize) -> c_int) -> Result<(), MpiFault> {
        let begun = MpiRequest::begun(0, begin).inspect_err(|fault| self.family.suffer(*fault, self.comm))?;
        self.requests.push(begun);
        Ok(())
    }

    /// Sends `values`, at most [`MESSAGE_MAX`].
    pub(super) fn send<T: Wire>(&mut self, to: usize, tag: i32, values: &'b [T]) -> Result<(), MpiFault> {
        let start = values.as_ptr().cast();
        let count = values.len() as c_int;
        let comm = self.comm.0;
        self.begin(|request| {
            // SAFETY: `values` is borrowed until the request is done.
            unsafe { (calls().MPI_Isend)(start, count, T::datatype(), to as c_int, tag, comm, request) }
        })
    }

    /// Receives into `target`; a message of another length is taken and thrown away.
    pub(super) fn receive<T: Wire>(&mut self, from: usize, tag: i32, target: &'b mut [T]) {
        self.receive_between(from, tag, target, target.len());
    }

    /// Receives into the beginning of `room`; a longer message is taken and thrown away.
    pub(super) fn receive_up_to<T: Wire>(&mut self, from: usize, tag: i32, room: &'b mut [T]) {
        self.receive_between(from, tag, room, 0);
    }

    fn receive_between<T: Wire>(&mut self, from: usize, tag: i32, target: &'b mut [T], least: usize) {
        self.requests.push(MpiRequest::Awaited(ReceiveBuffer {
            comm: self.comm,
            from: from as c_int,
            tag,
            start: target.as_mut_ptr().cast(),
            least,
            values: target.len(),
            value_bytes: size_of::<T>(),
            datatype: T::datatype(),
        }));
    }

    /// Gives every rank the `values` of `root`, at most [`MESSAGE_MAX`].
    pub(super) fn broadcast<T: Wire>(&mut self, root: usize, values: &'b mut [T]) -> Result<(), MpiFault> {
        let start = values.as_mut_ptr().cast();
        let count = values.len() as c_int;
        let comm = self.comm.0;
        self.begin(|request| {
            // SAFETY: `values` is exclusively borrowed until the request is done.
            unsafe { (calls().MPI_Ibcast)(start, count, T::datatype(), root as c_int, comm, request) }
        })
    }

    /// Puts the `own` values of all ranks, equally many, into `all` in rank order.
    pub(super) fn gather<T: Wire>(&mut self, own: &'b [T], all: &'b mut [T]) -> Result<(), MpiFault> {
        let from = own.as_ptr().cast();
        let to = all.as_mut_ptr().cast();
        let count = own.len() as c_int;
        let comm = self.comm.0;
        self.begin(|request| {
            let kind = T::datatype();
            // SAFETY: both are borrowed until the request is done, and `all` has room for `own` of
            // every rank.
            unsafe { (calls().MPI_Iallgather)(from, count, kind, to, count, kind, comm, request) }
        })
    }

    /// Puts what the `own` words of all ranks, equally many, come to into `all`, word by word.
    pub(super) fn reduce(
        &mut self,
        reduction: WordReduction,
        own: &'b [i64],
        all: &'b mut [i64],
    ) -> Result<(), MpiFault> {
        assert_eq!(own.len(), all.len(), "a reduction has as many words as each rank brings");
        let from = own.as_ptr().cast();
        let to = all.as_mut_ptr().cast();
        let count = own.len() as c_int;
        let comm = self.comm.0;
        self.begin(|request| {
            // SAFETY: both are borrowed until the request is done, and of the same length.
            unsafe { (calls().MPI_Iallreduce)(from, to, count, i64::datatype(), reduction.operation(), comm, request) }
        })
    }

    /// Puts the `own` bytes of all ranks into `all` where `parts` says: their counts, and where
    /// they begin.
    pub(super) fn gather_parts(
        &mut self,
        own: &'b [u8],
        all: &'b mut [u8],
        parts: [&'b [c_int]; 2],
    ) -> Result<(), MpiFault> {
        let from = own.as_ptr().cast();
        let to = all.as_mut_ptr().cast();
        let count = own.len() as c_int;
        let [counts, starts] = parts.map(<[c_int]>::as_ptr);
        let comm = self.comm.0;
        self.begin(|request| {
            let kind = u8::datatype();
            // SAFETY: all four are borrowed until the request is done, and the parts lie within
            // `all`.
            unsafe { (calls().MPI_Iallgatherv)(from, count, kind, to, counts, starts, kind, comm, request) }
        })
    }

    /// Returns when every rank has begun it.
    pub(super) fn barrier(&mut self) -> Result<(), MpiFault> {
        let comm = self.comm.0;
        // SAFETY: a communicator; there are no buffers.
        self.begin(|request| unsafe { (calls().MPI_Ibarrier)(comm, request) })
    }

    /// Looks once; whether all are done.
    pub(super) fn test(&mut self) -> bool {
        let _turn = turn();
        let mut is_done = true;
        for index in 0..self.requests.len() {
            let (before, rest) = self.requests.split_at_mut(index);
            // Messages of one sender are taken in the order in which they are asked for.
            let road = rest[0].road();
            if road.is_none() || before.iter().all(|earlier| earlier.road() != road) {
                rest[0].advance();
            }
            is_done &= matches!(rest[0], MpiRequest::Done(_));
        }
        is_done
    }

    /// Waits for all; what the first that failed says.
    pub(super) fn wait(&mut self) -> Result<(), MpiFault> {
        self.finish();
        self.outcomes().find_map(Result::err).map_or(Ok(()), Err)
    }

    /// Waits for all, or for the first that fails.
    pub(super) fn finish(&mut self) {
        let mut pause = Pause::default();
        while !self.test() && self.outcomes().all(|outcome| outcome.is_ok()) {
            pause.wait();
        }
        if let Some(fault) = self.outcomes().find_map(Result::err) {
            self.family.suffer(fault, self.comm);
        }
    }

    /// Returns the result of each call, in the order in which they were begun: the number of values
    /// it received.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = Result<usize, MpiFault>> {
        self.requests
            .iter()
            .filter_map(|request| if let MpiRequest::Done(outcome) = request { Some(*outcome) } else { None })
    }
}

impl MpiRequest {
    fn begun(values: usize, begin: impl FnOnce(*mut usize) -> c_int) -> Result<Self, MpiFault> {
        let mut handle = constants().request_null;
        call(|| begin(&raw mut handle))?;
        Ok(Self::UnderWay { handle, values, overflow: Vec::new() })
    }

    /// Returns the source of the message that is still awaited.
    fn road(&self) -> Option<(c_int, c_int)> {
        if let Self::Awaited(room) = self { Some((room.from, room.tag)) } else { None }
    }

    /// Looks once whether there is something to do, in the caller's turn.
    fn advance(&mut self) {
        if let Self::Awaited(room) = self {
            match room.take_message() {
                Ok(None) => {}
                Ok(Some(begun)) => *self = begun,
                Err(fault) => *self = Self::Done(Err(fault)),
            }
        }
        if let Self::UnderWay { handle, values, .. } = self {
            let mut flag = 0;
            let ignored = constants().status_ignore as *mut StatusRoom;
            // SAFETY: a request under way, and valid places.
            let tested = check(unsafe { (calls().MPI_Test)(handle, &raw mut flag, ignored) });
            if flag != 0 || tested.is_err() {
                *self = Self::Done(tested.map(|()| *values));
            }
        }
    }
}

impl ReceiveBuffer {
    /// Begins to receive the message if it has come.
    fn take_message(&self) -> Result<Option<MpiRequest>, MpiFault> {
        let mut flag = 0;
        let mut count = 0;
        let mut message = constants().message_null;
        let mut status = StatusRoom::default();
        // SAFETY: a communicator and valid places.
        check(unsafe {
            (calls().MPI_Improbe)(self.from, self.tag, self.comm.0, &raw mut flag, &raw mut message, &raw mut status)
        })?;
        if flag == 0 {
            return Ok(None);
        }
        // SAFETY: the status of the message, and a valid place.
        check(unsafe { (calls().MPI_Get_count)(&raw const status, self.datatype, &raw mut count) })?;
        let values = usize::try_from(count).unwrap_or(0);
        let fits = (self.least..=self.values).contains(&values);
        let mut overflow = if fits { Vec::new() } else { vec![0_u8; values * self.value_bytes] };
        let start = if fits { self.start } else { overflow.as_mut_ptr() };
        let mut handle = constants().request_null;
        // SAFETY: there is room for this message, exclusively borrowed or kept until the
        // request is done.
        check(unsafe { (calls().MPI_Imrecv)(start.cast(), count, self.datatype, &raw mut message, &raw mut handle) })?;
        Ok(Some(MpiRequest::UnderWay { handle, values, overflow }))
    }
}

impl Drop for PendingCalls<'_> {
    /// Buffers are not given back before the library is done with them; messages that have not come
    /// are not waited for.
    fn drop(&mut self) {
        self.requests.retain(|request| request.road().is_none());
        let mut pause = Pause::default();
        for _ in 0..LOOKS_MAX {
            if self.test() {
                return;
            }
            pause.wait();
        }
        // The library keeps memory that is about to be used for something else.
        std::process::abort();
    }
}

/// Waiting: first at full speed, then letting others run, then asleep in between.
#[derive(Default)]
pub(super) struct Pause {
    looks: u32,
}

impl Pause {
    pub(super) fn wait(&mut self) {
        self.looks = self.looks.saturating_add(1);
        match self.looks {
            ..SPINS => std::hint::spin_loop(),
            SPINS..YIELDS => std::thread::yield_now(),
            _ => std::thread::sleep(NAP),
        }
    }
}
