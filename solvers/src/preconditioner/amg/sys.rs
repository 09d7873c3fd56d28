//! The only calls of hypre: the library, loaded when it is asked for, and levels in its memory.
//!
//! hypre keeps state of the process, its error flag among it, so calls of several threads take
//! turns.
#![expect(unsafe_code, reason = "loads and calls a foreign library")]

use std::error::Error as _;
use std::ffi::{CStr, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use recoup_core::{MpiHandle, SolveError};

use super::error::AmgError;
use super::rows::HypreRows;

/// Names the library to load, where the one that is found is not the right one.
const CHOICE: &str = "RECOUP_HYPRE";
/// Minor versions of hypre 2 by which distributions name their libraries.
const MINORS: std::ops::Range<u32> = 20..40;
/// `HYPRE_PARCSR`.
const PARCSR: c_int = 5555;
/// Entries below this share of the largest of their row do not count as strong: hypre's own choice.
const STRONG: f64 = 0.25;
/// Levels that are coarsened aggressively: one makes a smaller hierarchy, at some more iterations.
const AGGRESSIVE: c_int = 1;

/// The smoothers of the way down and the way up, which are 1 and 2: l1-scaled Gauss-Seidel, forward
/// (13) and backward (14).
const SMOOTHERS: [(c_int, c_int); 2] = [(1, 13), (2, 14)];

/// An object of hypre.
type Object = *mut c_void;

/// Declares a table of functions, all of which return the error flag.
macro_rules! functions {
    ($($name:ident($($argument:ty),*);)*) => {
        /// The functions of hypre 2.20 that are called here.
        #[derive(Debug)]
        #[expect(non_snake_case, reason = "these are hypre's names")]
        struct HypreFunctions {
            $($name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl HypreFunctions {
            /// Looks all of them up; the name of the first that is missing.
            fn find(library: &Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        // SAFETY: hypre gives a function of this name these arguments.
                        let found = unsafe { library.get(stringify!($name).as_bytes()) };
                        *found.map_err(|_| stringify!($name))?
                    },)*
                })
            }
        }
    };
}

// Numbers of rows are 64-bit here: a library of 32-bit ones reads the lower half of a register.
functions! {
    HYPRE_ClearAllErrors();
    HYPRE_VersionNumber(*mut i64, *mut i64, *mut i64, *mut i64);
    HYPRE_IJMatrixCreate(usize, i64, i64, i64, i64, *mut Object);
    HYPRE_IJMatrixSetObjectType(Object, c_int);
    HYPRE_IJMatrixGetLocalRange(Object, *mut i64, *mut i64, *mut i64, *mut i64);
    HYPRE_IJMatrixSetDiagOffdSizes(Object, *const c_int, *const c_int);
    HYPRE_IJMatrixInitialize(Object);
    HYPRE_IJMatrixSetValues(Object, c_int, *mut c_int, *const c_int, *const c_int, *const f64);
    HYPRE_IJMatrixAssemble(Object);
    HYPRE_IJMatrixGetObject(Object, *mut Object);
    HYPRE_IJMatrixDestroy(Object);
    HYPRE_IJVectorCreate(usize, i64, i64, *mut Object);
    HYPRE_IJVectorSetObjectType(Object, c_int);
    HYPRE_IJVectorInitialize(Object);
    HYPRE_IJVectorSetValues(Object, c_int, *const c_int, *const f64);
    HYPRE_IJVectorGetValues(Object, c_int, *const c_int, *mut f64);
    HYPRE_IJVectorAssemble(Object);
    HYPRE_IJVectorGetObject(Object, *mut Object);
    HYPRE_IJVectorDestroy(Object);
    HYPRE_BoomerAMGCreate(*mut Object);
    HYPRE_BoomerAMGSetTol(Object, f64);
    HYPRE_BoomerAMGSetMaxIter(Object, c_int);
    HYPRE_BoomerAMGSetPrintLevel(Object, c_int);
    HYPRE_BoomerAMGSetCycleRelaxType(Object, c_int, c_int);
    HYPRE_BoomerAMGSetAggNumLevels(Object, c_int);
    HYPRE_BoomerAMGSetStrongThreshold(Object, f64);
    HYPRE_BoomerAMGGetStrongThreshold(Object, *mut f64);
    HYPRE_BoomerAMGSetup(Object, Object, Object, Object);
    HYPRE_BoomerAMGSolve(Object, Object, Object, Object);
    HYPRE_BoomerAMGDestroy(Object);
}

/// A library of hypre.
#[derive(Debug)]
pub(super) struct Hypre {
    functions: HypreFunctions,
    /// The MPI that it calls: the address of `MPI_Comm_size`; 0 where it has none.
    mpi: usize,
    version: [i64; 3],
    /// The name it was loaded by.
    name: String,
}

static LOADED: OnceLock<Hypre> = OnceLock::new();
static TURN: Mutex<()> = Mutex::new(());

/// Returns the name of the hypre library that would be used, and its version.
///
/// # Errors
/// [`AmgError::NotFound`], [`AmgError::NotUsable`].
pub fn find_hypre() -> Result<[String; 2], AmgError> {
    let hypre = Hypre::load()?;
    Ok([hypre.name.clone(), hypre.version.map(|number| number.to_string()).join(".")])
}

impl Hypre {
    /// Returns the library, loaded the first time.
    ///
    /// # Errors
    /// [`AmgError::NotFound`], [`AmgError::NotUsable`].
    pub(super) fn load() -> Result<&'static Self, AmgError> {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = LOADED.get() {
            return Ok(loaded);
        }
        let found = Self::find()?;
        Ok(LOADED.get_or_init(|| found))
    }

    /// Loads the library that is chosen, or the first there is.
    fn find() -> Result<Self, AmgError> {
        if let Some(path) = std::env::var_os(CHOICE).filter(|path| !path.is_empty()) {
            return Self::open(Path::new(&path));
        }
        let versioned = MINORS.rev().map(|minor| format!("libHYPRE-2.{minor}.0.so"));
        for name in ["libHYPRE.so".to_owned()].into_iter().chain(versioned) {
            match Self::open(Path::new(&name)) {
                // The loader names what it misses: this library, or another that it needs.
                Err(AmgError::NotUsable { what, .. }) if what.starts_with(&name) => {}
                opened => return opened,
            }
        }
        let names = format!("libHYPRE.so, libHYPRE-2.{}.0.so to 2.{}.0", MINORS.start, MINORS.end - 1);
        Err(AmgError::NotFound { names })
    }

    fn open(path: &Path) -> Result<Self, AmgError> {
        let name = path.display().to_string();
        let refused = |what: String| AmgError::NotUsable { library: name.clone(), what };
        if cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64"))) {
            return Err(refused("the size of its numbers cannot be told on this processor".to_owned()));
        }
        // SAFETY: hypre may be loaded at any time; what it runs then is its own affair.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        // What the loader says is the source of the error.
        let library =
            library.map_err(|error| refused(error.source().map_or_else(|| error.to_string(), ToString::to_string)))?;
        let missing = |name: &str| refused(format!("it has no {name}"));
        let functions = HypreFunctions::find(&library).map_err(missing)?;
        // Versions from 2.29 on have the second name.
        start(&library, c"HYPRE_Init").or_else(|_| start(&library, c"HYPRE_Initialize")).map_err(missing)?;
        let mut version = [-1; 3];
        let [major, minor, patch] = &mut version;
        // SAFETY: valid places, larger than those that the library expects or as large.
        unsafe { (functions.HYPRE_VersionNumber)(major, minor, patch, null_mut()) };
        if version.iter().any(|number| *number >= 0) {
            return Err(refused("its ints have 64 bits; a build with 32 is needed".to_owned()));
        }
        let version = version.map(|number| i64::from(number as u32));
        // Only builds for devices have it.
        if address(&library, c"hypre_DeviceDataCreate").is_some() {
            return Err(refused("it works on devices; a build for processors is needed".to_owned()));
        }
        let mpi = address(&library, c"MPI_Comm_size").unwrap_or(0);
        // Its code is called until the process ends.
        std::mem::forget(library);
        Ok(Self { functions, mpi, version, name })
    }

    /// Refuses a communicator of another MPI than the one that the library calls.
    ///
    /// # Errors
    /// [`AmgError::OtherMpi`].
    pub(super) fn check_mpi(&self, handle: MpiHandle) -> Result<(), AmgError> {
        if self.mpi == handle.comm_size {
            return Ok(());
        }
        let mpi = file_of(self.mpi).map_or_else(|| "no MPI".to_owned(), |path| path.display().to_string());
        Err(AmgError::OtherMpi { library: self.name.clone(), mpi })
    }

    /// Waits for this thread's turn. What other libraries of the process did before is no error of
    /// the calls that follow.
    fn turn(&self) -> MutexGuard<'static, ()> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: takes nothing.
        unsafe { (self.functions.HYPRE_ClearAllErrors)() };
        turn
    }
}

/// The error of a call, by the flag it returned.
fn check(call: &'static str, flag: c_int) -> Result<(), SolveError> {
    if flag == 0 { Ok(()) } else { Err(SolveError::Library { library: "hypre", call, code: flag }) }
}

fn start(library: &Library, name: &'static CStr) -> Result<(), &'static str> {
    // SAFETY: both names are those of a function without arguments.
    let found = unsafe { library.get::<unsafe extern "C" fn() -> c_int>(name.to_bytes_with_nul()) };
    let initialize = found.map_err(|_| name.to_str().unwrap_or_default())?;
    // SAFETY: may be called more than once, and before MPI is started.
    unsafe { initialize() };
    Ok(())
}

fn address(library: &Library, name: &CStr) -> Option<usize> {
    // SAFETY: the symbol is looked up, in the library and those that it needs, and not read.
    let found = unsafe { library.get::<*const c_void>(name.to_bytes_with_nul()) };
    found.ok().map(|found| found.into_raw() as usize)
}

/// The library that holds an address.
fn file_of(address: usize) -> Option<PathBuf> {
    let mut place =
        libc::Dl_info { dli_fname: null(), dli_fbase: null_mut(), dli_sname: null(), dli_saddr: null_mut() };
    // SAFETY: any address may be asked about, and `place` is a valid place.
    let is_known = unsafe { libc::dladdr(address as *const c_void, &raw mut place) } != 0;
    // SAFETY: the name of a library that stays loaded.
    let name = (is_known && !place.dli_fname.is_null()).then(|| unsafe { CStr::from_ptr(place.dli_fname) });
    name.map(|name| name.to_string_lossy().into_owned().into())
}

/// Calls a function of a library, in an unsafe block, and makes an error of what it returns.
macro_rules! call {
    ($hypre:expr, $name:ident($($argument:expr),*)) => {
        check(stringify!($name), ($hypre.functions.$name)($($argument),*))
    };
}

/// The levels of a matrix, with the vectors of a cycle. Objects that were not made are null.
pub(super) struct Hierarchy {
    hypre: &'static Hypre,
    matrix: Object,
    /// The right-hand side and the solution.
    vectors: [Object; 2],
    solver: Object,
    /// The matrix and the vectors as the solver takes them.
    assembled: [Object; 3],
    /// Rows of this rank.
    n: c_int,
}

impl Hierarchy {
    /// Sets up the levels of the rows of all ranks. Collective.
    ///
    /// # Errors
    /// [`AmgError::NotUsable`] for a library of other numbers, [`AmgError::Solve`].
    pub(super) fn new(hypre: &'static Hypre, comm: MpiHandle, rows: HypreRows) -> Result<Self, AmgError> {
        let n = rows.len() as c_int;
        let none = null_mut();
        let mut made = Self { hypre, matrix: none, vectors: [none; 2], solver: none, assembled: [none; 3], n };
        let turn = hypre.turn();
        made.create(comm, i64::from(rows.first))?;
        made.check_numbers()?;
        made.fill(rows)?;
        made.set_up()?;
        drop(turn);
        Ok(made)
    }

    /// Makes all objects.
    fn create(&mut self, comm: MpiHandle, first: i64) -> Result<(), SolveError> {
        let hypre = self.hypre;
        let comm = comm.comm;
        let last = first + i64::from(self.n) - 1;
        // SAFETY: a communicator of the MPI that the library calls, and valid places.
        unsafe {
            call!(hypre, HYPRE_IJMatrixCreate(comm, first, last, first, last, &raw mut self.matrix))?;
            call!(hypre, HYPRE_IJMatrixSetObjectType(self.matrix, PARCSR))?;
            for vector in &mut self.vectors {
                call!(hypre, HYPRE_IJVectorCreate(comm, first, last, vector))?;
                call!(hypre, HYPRE_IJVectorSetObjectType(*vector, PARCSR))?;
            }
            call!(hypre, HYPRE_BoomerAMGCreate(&raw mut self.solver))
        }
    }

    /// Refuses a library whose numbers have other sizes: values written to larger places tell.
    fn check_numbers(&self) -> Result<(), AmgError> {
        let mut range = [-1; 4];
        let [first_row, last_row, first_column, last_column] = &mut range;
        let mut strong = f64::NAN;
        // SAFETY: objects that were made, and valid places as large as any that a library expects.
        unsafe {
            call!(
                self.hypre,
                HYPRE_IJMatrixGetLocalRange(self.matrix, first_row, last_row, first_column, last_column)
            )?;
            call!(self.hypre, HYPRE_BoomerAMGSetStrongThreshold(self.solver, STRONG))?;
            call!(self.hypre, HYPRE_BoomerAMGGetStrongThreshold(self.solver, &raw mut strong))?;
        }
        let what = match strong == STRONG {
            true if range.iter().all(|number| *number < 0) => return Ok(()),
            true => "its numbers of rows have 64 bits; a build with 32 is needed",
            false => "its values are no doubles",
        };
        Err(AmgError::NotUsable { library: self.hypre.name.clone(), what: what.to_owned() })
    }

    /// Gives the library the rows, and vectors of zeros.
    fn fill(&mut self, rows: HypreRows) -> Result<(), SolveError> {
        let hypre = self.hypre;
        let matrix = self.matrix;
        let numbers: Vec<c_int> = (rows.first..rows.first + self.n).collect();
        let HypreRows { lengths: [mut lengths, own, beyond], columns, values, .. } = rows;
        let [own, beyond, numbers, columns] = [&own, &beyond, &numbers, &columns].map(Vec::as_ptr);
        let [object, vector_objects @ ..] = &mut self.assembled;
        // SAFETY: an object that was made; numbers for each of its rows, and entries as they say.
        unsafe {
            call!(hypre, HYPRE_IJMatrixSetDiagOffdSizes(matrix, own, beyond))?;
            call!(hypre, HYPRE_IJMatrixInitialize(matrix))?;
            let lengths = lengths.as_mut_ptr();
            call!(hypre, HYPRE_IJMatrixSetValues(matrix, self.n, lengths, numbers, columns, values.as_ptr()))?;
            call!(hypre, HYPRE_IJMatrixAssemble(matrix))?;
            call!(hypre, HYPRE_IJMatrixGetObject(matrix, object))?;
        }
        for (vector, object) in self.vectors.into_iter().zip(vector_objects) {
            // SAFETY: an object that was made, which begins with zeros, and a valid place.
            unsafe {
                call!(hypre, HYPRE_IJVectorInitialize(vector))?;
                call!(hypre, HYPRE_IJVectorAssemble(vector))?;
                call!(hypre, HYPRE_IJVectorGetObject(vector, object))?;
            }
        }
        Ok(())
    }

    /// Sets up the levels of the matrix.
    fn set_up(&self) -> Result<(), SolveError> {
        let Self { hypre, solver, assembled: [matrix, rhs, solution], .. } = *self;
        // SAFETY: a solver that was made, and a matrix and vectors that are assembled.
        unsafe {
            call!(hypre, HYPRE_BoomerAMGSetTol(solver, 0.0))?;
            call!(hypre, HYPRE_BoomerAMGSetMaxIter(solver, 1))?;
            call!(hypre, HYPRE_BoomerAMGSetPrintLevel(solver, 0))?;
            call!(hypre, HYPRE_BoomerAMGSetAggNumLevels(solver, AGGRESSIVE))?;
            for (way, smoother) in SMOOTHERS {
                call!(hypre, HYPRE_BoomerAMGSetCycleRelaxType(solver, smoother, way))?;
            }
            call!(hypre, HYPRE_BoomerAMGSetup(solver, matrix, rhs, solution))
        }
    }

    /// `z = M^-1 r` by one cycle from `z = 0`. Collective.
    ///
    /// # Errors
    /// [`SolveError::Library`] when hypre fails.
    ///
    /// # Panics
    /// For vectors of another length than this rank has rows.
    pub(super) fn cycle(&self, r: &[f64], z: &mut [f64]) -> Result<(), SolveError> {
        let Self {
            hypre, solver, assembled: [matrix, rhs, solution], vectors: [rhs_values, solution_values], n, ..
        } = *self;
        assert_eq!([r.len(), z.len()], [n as usize; 2], "as many values as rows");
        let _turn = hypre.turn();
        z.fill(0.0);
        // SAFETY: the solver of this matrix, and values of all rows of this rank, which need no
        // numbers.
        unsafe {
            call!(hypre, HYPRE_IJVectorSetValues(rhs_values, n, null(), r.as_ptr()))?;
            call!(hypre, HYPRE_IJVectorSetValues(solution_values, n, null(), z.as_ptr()))?;
            call!(hypre, HYPRE_BoomerAMGSolve(solver, matrix, rhs, solution))?;
            call!(hypre, HYPRE_IJVectorGetValues(solution_values, n, null(), z.as_mut_ptr()))
        }
    }
}

impl Drop for Hierarchy {
    /// Gives all that was made back. Collective.
    fn drop(&mut self) {
        let functions = &self.hypre.functions;
        let _turn = self.hypre.turn();
        let destroy = [
            (self.solver, functions.HYPRE_BoomerAMGDestroy),
            (self.matrix, functions.HYPRE_IJMatrixDestroy),
            (self.vectors[0], functions.HYPRE_IJVectorDestroy),
            (self.vectors[1], functions.HYPRE_IJVectorDestroy),
        ];
        for (object, destroy) in destroy.into_iter().filter(|(object, _)| !object.is_null()) {
            // SAFETY: made by the library, and given back once. No caller is left to be told of a
            // failure.
            unsafe { destroy(object) };
        }
    }
}
