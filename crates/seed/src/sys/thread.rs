//! Simulated threads: real ones, carried by the first of them.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Arc, OnceLock};

use super::filter;
use crate::world::{Task, World};

thread_local! {
    /// The task that this thread is, until it has ended.
    static TASK: Cell<*const Task> = const { Cell::new(std::ptr::null()) };
}

/// Returns the task that this thread is; `None` outside of a world.
pub(crate) fn current() -> Option<&'static Task> {
    // SAFETY: a task that was set is alive until this thread has ended, and no caller keeps it
    // beyond its call.
    unsafe { TASK.get().as_ref() }
}

type Routine = extern "C" fn(*mut c_void) -> *mut c_void;

/// The beginning of a simulated thread.
struct ThreadStart {
    task: Arc<Task>,
    routine: Routine,
    argument: *mut c_void,
}

/// Makes this thread the first one of a world, runs `body`, and returns its result once no thread
/// of the world is left; `None` if some wait without end.
pub(super) fn simulate<T: Send + 'static>(world: &Arc<World>, body: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let task = world.task();
    // Once for all worlds of this thread: the kernel compiles each filter.
    filter::install();
    let thread = std::thread::Builder::new().name("main".to_owned()).spawn(move || {
        task.context().begin();
        become_task(task);
        body()
    });
    let thread = thread.expect("a thread for the world");
    if world.await_end() { thread.join().ok() } else { None }
}

/// Makes this thread the task.
fn become_task(task: Arc<Task>) {
    TASK.set(Arc::into_raw(task));
    // SAFETY: the key was made; its value is a number that only the destructor reads.
    let is_kept = unsafe { libc::pthread_setspecific(end_key(), std::ptr::without_provenance(1)) } == 0;
    assert!(is_kept, "room for the end of a thread");
}

/// The key whose destructor is the last of a thread.
fn end_key() -> libc::pthread_key_t {
    static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the key is written to a variable of its own.
        let is_made = unsafe { libc::pthread_key_create(&raw mut key, Some(end)) } == 0;
        assert!(is_made, "a key for the end of threads");
        key
    })
}

/// Rounds of destructors after which a thread has run those of the program.
const ROUNDS: usize = 3;

/// Ends the task in the last round, when no code of the program is left to run.
unsafe extern "C" fn end(round: *mut c_void) {
    if round.addr() < ROUNDS {
        // SAFETY: as when the thread began.
        unsafe { libc::pthread_setspecific(end_key(), std::ptr::without_provenance(round.addr() + 1)) };
        return;
    }
    let task = TASK.replace(std::ptr::null());
    if !task.is_null() {
        // SAFETY: the pointer is from `Arc::into_raw` of `enter`, and was taken back once.
        let task = unsafe { Arc::from_raw(task) };
        task.end();
    }
}

extern "C" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: the pointer is from `Box::into_raw` of `pthread_create`, and comes here once.
    let start = unsafe { Box::from_raw(start.cast::<ThreadStart>()) };
    let task = start.task.clone();
    task.context().begin();
    become_task(start.task);
    task.context().park();
    task.world_continues();
    drop(task);
    (start.routine)(start.argument)
}

/// A function of libc behind ours.
fn behind(name: &std::ffi::CStr) -> *mut c_void {
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    assert!(!found.is_null(), "libc has {name:?}");
    found
}

type CreateThread =
    unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Routine, *mut c_void) -> c_int;
type JoinThread = unsafe extern "C" fn(libc::pthread_t, *mut *mut c_void) -> c_int;

/// Starts a thread; of the same world, if the caller is in one.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    static BEHIND: OnceLock<usize> = OnceLock::new();
    let address = *BEHIND.get_or_init(|| behind(c"pthread_create").expose_provenance());
    // SAFETY: this is the type of the function of that name.
    let create: CreateThread = unsafe { std::mem::transmute(std::ptr::with_exposed_provenance::<c_void>(address)) };
    let Some(parent) = current() else {
        // SAFETY: the caller's call.
        return unsafe { create(thread, attributes, routine, argument) };
    };
    let task = parent.fork();
    let start = Box::into_raw(Box::new(ThreadStart { task: task.clone(), routine, argument }));
    // SAFETY: the caller's call, with a beginning that takes its argument.
    let result = unsafe { create(thread, attributes, begin, start.cast()) };
    if result == 0 {
        // SAFETY: a call that succeeds has written the thread.
        parent.started(&task, unsafe { *thread } as usize);
    } else {
        // SAFETY: no thread has taken it.
        drop(unsafe { Box::from_raw(start) });
        task.end_unborn();
    }
    result
}

/// Waits for the end of a thread.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_join(thread: libc::pthread_t, value: *mut *mut c_void) -> c_int {
    static BEHIND: OnceLock<usize> = OnceLock::new();
    let address = *BEHIND.get_or_init(|| behind(c"pthread_join").expose_provenance());
    // SAFETY: this is the type of the function of that name.
    let join: JoinThread = unsafe { std::mem::transmute(std::ptr::with_exposed_provenance::<c_void>(address)) };
    if let Some(task) = current() {
        task.join(thread as usize);
    }
    // SAFETY: the caller's call.
    unsafe { join(thread, value) }
}

/// Names a thread: the kernel would name the one that carries it.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_setname_np(_: libc::pthread_t, name: *const c_char) -> c_int {
    if let Some(task) = current() {
        // SAFETY: the caller gives a name that ends with a zero.
        task.set_name(unsafe { CStr::from_ptr(name) });
    }
    0
}

/// Makes the linker take these functions in place of libc's, because it names them.
pub(super) fn name() {
    std::hint::black_box([pthread_create as *const (), pthread_join as *const (), pthread_setname_np as *const ()]);
}
