//! Threads that work in the background.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

type Job = Box<dyn FnOnce() + Send>;

/// Threads that take jobs in the order they come. Dropping it waits for all jobs.
#[derive(Debug)]
pub(crate) struct MoverThreads {
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl MoverThreads {
    /// Starts `n_threads` threads.
    pub(crate) fn start(n_threads: usize) -> std::io::Result<Self> {
        let (jobs, taken) = channel::<Job>();
        let taken = Arc::new(Mutex::new(taken));
        let start = |_| {
            let taken = Arc::clone(&taken);
            std::thread::Builder::new().name("recoup-tape".to_owned()).spawn(move || work_off(&taken))
        };
        let threads = (0..n_threads).map(start).collect::<std::io::Result<_>>()?;
        Ok(Self { jobs: Some(jobs), threads })
    }

    /// Runs `work` on a thread, then gives `end` its result. A panic of the work is an error.
    pub(crate) fn run<T, W, E>(&self, work: W, end: E)
    where
        W: FnOnce() -> Result<T, String> + Send + 'static,
        E: FnOnce(Result<T, String>) + Send + 'static,
    {
        let job =
            Box::new(move || end(catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(said(&*panic)))));
        if let Some(jobs) = &self.jobs {
            // The threads live as long as this.
            let _ = jobs.send(job);
        }
    }
}

/// Takes jobs until no more can come.
fn work_off(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let taken = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = taken else { return };
        job();
    }
}

/// Message of a panic.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a thread of the tape panicked: {}", text.unwrap_or("no message"))
}

impl Drop for MoverThreads {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // Jobs catch their panics.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_job_is_its_error_and_the_threads_go_on() {
        let threads = MoverThreads::start(2).unwrap();
        let (ended, results) = channel();
        for number in 0..20 {
            let ended = ended.clone();
            let work = move || if number % 2 == 0 { Ok(()) } else { panic!("job {number}") };
            threads.run(work, move |result| ended.send((number, result)).unwrap());
        }
        drop((threads, ended));
        let mut results: Vec<_> = results.iter().collect();
        results.sort();
        assert_eq!(results.len(), 20);
        assert_eq!(results[4], (4, Ok(())));
        assert_eq!(results[5], (5, Err("a thread of the tape panicked: job 5".to_owned())));
    }
}
