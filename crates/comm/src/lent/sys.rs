//! A closure on the stack of one thread that another thread runs.
//!
//! Promises: the closure runs at most once, and never after the call of [`lend`] that it was lent
//! in. Must not know who meets whom, or when.
#![expect(unsafe_code, reason = "lends a closure on the stack to another thread")]

use std::mem::transmute;
use std::sync::{Arc, Mutex, PoisonError};

/// The closure, with its lifetime left out.
struct LentClosure(*mut (dyn FnMut() + Send));

// SAFETY: the closure is `Send`, and it is used under the lock of the `Loan` it is stored in only.
unsafe impl Send for LentClosure {}

/// The closure as long as it is lent; `None` once it was run or taken back.
type Loan = Mutex<Option<LentClosure>>;

/// A closure of another thread, to be run on this one.
pub(super) struct BorrowedCall(Arc<Loan>);

impl BorrowedCall {
    /// Runs the closure, unless its owner has taken it back. The owner waits meanwhile.
    pub(super) fn run(self) {
        let mut lent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(LentClosure(closure)) = lent.take() {
            // SAFETY: `lend` does not end before it has had this lock and found the closure there,
            // or gone. Until then it does not touch the closure, and no one else has the pointer.
            unsafe { (*closure)() }
        }
    }
}

/// Takes a closure back at the end of its scope, after a panic as well.
struct Return<'a>(&'a Loan);

impl Drop for Return<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Lends `work` to another thread for as long as `wait` takes, or until that thread is done with
/// it. Returns the result, or `None` if no thread has run it to its end.
pub(super) fn lend<R: Send>(work: impl FnOnce() -> R + Send, wait: impl FnOnce(BorrowedCall)) -> Option<R> {
    let mut work = Some(work);
    let mut result = None;
    let mut run = || result = work.take().map(|work| work());
    let closure: *mut (dyn FnMut() + Send + '_) = &raw mut run;
    // SAFETY: only the lifetime changes. The pointer is taken out of the loan, under its lock,
    // before `run` goes: by whoever runs it, who keeps the lock meanwhile, or by `Return`.
    let closure = unsafe { transmute::<*mut (dyn FnMut() + Send + '_), *mut (dyn FnMut() + Send)>(closure) };
    let loan = Arc::new(Mutex::new(Some(LentClosure(closure))));
    let taken_back = Return(&loan);
    wait(BorrowedCall(Arc::clone(&loan)));
    drop(taken_back);
    result
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn another_thread_runs_a_lent_closure_and_its_result_comes_back() {
        let text = "lent".to_owned();
        let length = std::thread::scope(|scope| lend(|| text.len(), |call| scope.spawn(|| call.run()).join().unwrap()));
        assert_eq!(length, Some(4));
    }

    #[test]
    fn closure_that_was_taken_back_is_not_run() {
        let (sender, receiver) = mpsc::channel();
        let result = lend(|| panic!("was run"), |call| sender.send(call).unwrap());
        receiver.recv().unwrap().run();
        assert_eq!(result, None::<()>);
    }

    /// `wait` returns while the closure runs; its owner's stack must outlast it.
    #[test]
    fn owner_waits_for_a_closure_that_runs() {
        let (started, start) = mpsc::channel();
        let mut values = vec![0_u64; 4096];
        let sum = std::thread::scope(|scope| {
            let work = || {
                started.send(()).unwrap();
                std::thread::sleep(Duration::from_millis(20));
                values.fill(1);
                values.iter().sum::<u64>()
            };
            lend(work, |call| {
                scope.spawn(|| call.run());
                start.recv().unwrap();
            })
        });
        assert_eq!(sum, Some(4096));
    }

    #[test]
    fn closure_that_panics_has_no_result() {
        let result = std::thread::scope(|scope| {
            lend(|| assert_eq!(1, 2), |call| assert!(scope.spawn(|| call.run()).join().is_err()))
        });
        assert_eq!(result, None);
    }
}
