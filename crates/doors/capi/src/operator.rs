//! `A`, known by its product only.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use recoup::comm::ProgramThread;
use recoup::core::{CommError, ExactSum, Operator};

use crate::status::OPERATOR;

/// Flag of recoup_operator: `apply` may be called from a thread of the library while the solver
/// works.
///
/// Without it, `apply` is called inside calls of the library only, on the thread that makes the
/// call, and the solver waits for it.
pub const RECOUP_OPERATOR_ANY_THREAD: u32 = 1;

/// Computes y = A x, this rank's rows. Collective. Returns 0, or a code of the program's own.
pub type RecoupApply = Option<unsafe extern "C" fn(ctx: *mut c_void, x: *const f64, y: *mut f64) -> c_int>;

/// The program's operator.
#[derive(Clone)]
pub(crate) struct CallbackOperator {
    pub(crate) apply: unsafe extern "C" fn(ctx: *mut c_void, x: *const f64, y: *mut f64) -> c_int,
    pub(crate) ctx: *mut c_void,
    pub(crate) rows: usize,
    pub(crate) first: u64,
    pub(crate) global: u64,
    pub(crate) is_free_threaded: bool,
    /// A rank's share of `||A||_F^2`, if the program knows it.
    pub(crate) frobenius_squared: Option<f64>,
    /// `||A||_inf` and `||A||_1`, if the program knows them.
    pub(crate) norms: [Option<f64>; 2],
    pub(crate) thread: Arc<ProgramThread>,
}

// SAFETY: `ctx` is the program's, for its callback only; the flag says from which thread that may
// be made.
unsafe impl Send for CallbackOperator {}
// SAFETY: as above; one worker applies it, and it waits for the program's thread unless the flag
// allows otherwise.
unsafe impl Sync for CallbackOperator {}

impl CallbackOperator {
    fn product(&self, x: &[f64], y: &mut [f64]) -> c_int {
        // SAFETY: both slices have as many values as the program said there are rows.
        unsafe { (self.apply)(self.ctx, x.as_ptr(), y.as_mut_ptr()) }
    }
}

impl Operator for CallbackOperator {
    fn rows(&self) -> usize {
        self.rows
    }

    fn first_row(&self) -> u64 {
        self.first
    }

    fn global_rows(&self) -> u64 {
        self.global
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        assert!(x.len() == self.rows && y.len() == self.rows, "an operator of {} rows on {}", self.rows, x.len());
        let code = if self.is_free_threaded { self.product(x, y) } else { self.thread.call(|| self.product(x, y))? };
        if code == 0 { Ok(()) } else { Err(CommError::Callback { what: OPERATOR, code }) }
    }

    fn frobenius_squared(&self) -> Option<ExactSum> {
        self.frobenius_squared.map(ExactSum::from)
    }

    fn largest_row_sum(&self) -> Option<f64> {
        self.norms[0]
    }

    fn largest_column_sum(&self) -> Option<f64> {
        self.norms[1]
    }

    fn is_applied_behind(&self) -> bool {
        self.is_free_threaded
    }
}
