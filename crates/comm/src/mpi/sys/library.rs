//! The MPI library of the machine, found and loaded when a job starts: nothing of it is needed to
//! build, and one program serves them all.
//!
//! Three binary interfaces are in use. The standard's own (MPI 5.0, chapter 20: `libmpi_abi`), that
//! of Open MPI 4 and 5, and that of MPICH, which Intel MPI, MVAPICH and Cray MPICH share. Functions
//! have the same names and arguments in all. Handles differ: pointers in the first two, C ints in
//! the third, so the constants are the interface's. Here a handle is a `usize` that begins as a
//! constant. A library with ints writes and reads the lower half of it.
#![expect(unsafe_code, reason = "loads a foreign library")]

use std::error::Error as _;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::super::error::MpiError;

/// Names the library to load, where the one that is found is not that of the launcher.
const CHOICE: &str = "RECOUP_MPI";
/// Room for a status of any of the interfaces.
pub(super) type StatusRoom = [u64; 8];

/// Libraries by their usual names, and the interface of each; the standard's first.
const LIBRARIES: [(&str, Interface); 4] = [
    ("libmpi_abi.so.1", Interface::Standard),
    ("libmpi.so.40", Interface::OpenMpi),
    ("libmpi.so.12", Interface::Mpich),
    ("libmpich.so.12", Interface::Mpich),
];

/// The variables in which `mpirun` of Open MPI, launchers that speak PMI, and Slurm's `srun` give
/// the number of processes, and whether Open MPI is likely then.
const SIZES: [(&str, bool); 3] = [("OMPI_COMM_WORLD_SIZE", true), ("PMI_SIZE", false), ("SLURM_STEP_NUM_TASKS", true)];

/// The form of handles and constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interface {
    Standard,
    OpenMpi,
    Mpich,
}

/// Handles and numbers that an interface defines.
#[derive(Debug)]
pub(super) struct Constants {
    pub(super) comm_world: usize,
    pub(super) comm_null: usize,
    pub(super) group_null: usize,
    pub(super) request_null: usize,
    pub(super) message_null: usize,
    pub(super) errors_return: usize,
    pub(super) double: usize,
    pub(super) int64: usize,
    pub(super) uint8: usize,
    pub(super) sum: usize,
    pub(super) min: usize,
    pub(super) status_ignore: usize,
    pub(super) thread_serialized: c_int,
    pub(super) thread_multiple: c_int,
}

/// MPI 5.0, appendix A.
const STANDARD: Constants = Constants {
    comm_world: 0x101,
    comm_null: 0x100,
    group_null: 0x108,
    request_null: 0x180,
    message_null: 0x128,
    errors_return: 0x143,
    double: 0x214,
    int64: 0x258,
    uint8: 0x241,
    sum: 0x21,
    min: 0x22,
    status_ignore: 0,
    thread_serialized: 2048,
    thread_multiple: 4096,
};

/// The same from MPICH 3 to 5.
const MPICH: Constants = Constants {
    comm_world: 0x4400_0000,
    comm_null: 0x0400_0000,
    group_null: 0x0800_0000,
    request_null: 0x2c00_0000,
    message_null: 0x2c00_0000,
    errors_return: 0x5400_0001,
    double: 0x4c00_080b,
    int64: 0x4c00_083a,
    uint8: 0x4c00_013b,
    sum: 0x5800_0003,
    min: 0x5800_0002,
    status_ignore: 1,
    thread_serialized: 2,
    thread_multiple: 3,
};

/// Declares a table of functions, all of which return an error code.
macro_rules! functions {
    ($(#[$words:meta])* $table:ident { $($name:ident($($argument:ty),*);)* }) => {
        $(#[$words])*
        #[derive(Debug)]
        #[expect(non_snake_case, reason = "these are MPI's names")]
        pub(super) struct $table {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl $table {
            /// Looks all of them up; the name of the first that is missing.
            fn find(library: &Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        // SAFETY: MPI gives a function of this name these arguments.
                        let found = unsafe { library.get(stringify!($name).as_bytes()) };
                        *found.map_err(|_| stringify!($name))?
                    },)*
                })
            }
        }
    };
}

functions! {
    /// The functions of MPI 3.0 that are called here.
    Functions {
        MPI_Init_thread(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
        MPI_Finalize();
        MPI_Abort(usize, c_int);
        MPI_Error_class(c_int, *mut c_int);
        MPI_Get_library_version(*mut c_char, *mut c_int);
        MPI_Comm_set_errhandler(usize, usize);
        MPI_Comm_rank(usize, *mut c_int);
        MPI_Comm_size(usize, *mut c_int);
        MPI_Comm_idup(usize, *mut usize, *mut usize);
        MPI_Comm_split(usize, c_int, c_int, *mut usize);
        MPI_Comm_free(*mut usize);
        MPI_Comm_group(usize, *mut usize);
        MPI_Group_translate_ranks(usize, c_int, *const c_int, usize, *mut c_int);
        MPI_Isend(*const c_void, c_int, usize, c_int, c_int, usize, *mut usize);
        MPI_Ibcast(*mut c_void, c_int, usize, c_int, usize, *mut usize);
        MPI_Iallgather(*const c_void, c_int, usize, *mut c_void, c_int, usize, usize, *mut usize);
        MPI_Iallgatherv(*const c_void, c_int, usize, *mut c_void, *const c_int, *const c_int, usize, usize, *mut usize);
        MPI_Iallreduce(*const c_void, *mut c_void, c_int, usize, usize, usize, *mut usize);
        MPI_Ibarrier(usize, *mut usize);
        MPI_Test(*mut usize, *mut c_int, *mut StatusRoom);
        MPI_Improbe(c_int, c_int, usize, *mut c_int, *mut usize, *mut StatusRoom);
        MPI_Get_count(*const StatusRoom, usize, *mut c_int);
        MPI_Imrecv(*mut c_void, c_int, usize, *mut usize, *mut usize);
    }
}

functions! {
    /// The calls that user-level failure mitigation adds to MPI (MPIX), as Open MPI 5 has them.
    Ulfm {
        MPIX_Comm_revoke(usize);
        MPIX_Comm_shrink(usize, *mut usize);
        MPIX_Comm_agree(usize, *mut c_int);
        MPIX_Comm_get_failed(usize, *mut usize);
        MPIX_Comm_is_revoked(usize, *mut c_int);
    }
}

/// A library of MPI.
#[derive(Debug)]
pub(super) struct MpiLibrary {
    pub(super) functions: Functions,
    pub(super) constants: Constants,
    /// The calls that survive a lost rank, in a library that has them.
    pub(super) ulfm: Option<Ulfm>,
    /// The name it was loaded by.
    pub(super) name: PathBuf,
    /// The number of processes that the launcher tells of.
    pub(super) launched: Option<usize>,
}

static LOADED: OnceLock<MpiLibrary> = OnceLock::new();

/// Returns the library, loaded the first time.
///
/// # Errors
/// [`MpiError::NotFound`], [`MpiError::NotLoaded`].
pub(super) fn load() -> Result<&'static MpiLibrary, MpiError> {
    if let Some(loaded) = LOADED.get() {
        return Ok(loaded);
    }
    let found = find()?;
    Ok(LOADED.get_or_init(|| found))
}

/// Returns the library that [`load`] has loaded.
///
/// # Panics
/// Before that.
pub(super) fn mpi() -> &'static MpiLibrary {
    LOADED.get().expect("MPI is loaded before it is called")
}

impl MpiLibrary {
    /// The first line of what it says of itself.
    fn version(&self) -> String {
        // MPI_MAX_LIBRARY_VERSION_STRING is 8192 at most.
        let mut text = vec![0_u8; 1 << 15];
        let mut length = 0;
        // SAFETY: there is room for the text of any library, which may be asked before MPI_Init.
        unsafe { (self.functions.MPI_Get_library_version)(text.as_mut_ptr().cast(), &raw mut length) };
        let end = text.iter().position(|byte| b"\n\0".contains(byte)).unwrap_or(0);
        String::from_utf8_lossy(&text[..end]).trim().to_owned()
    }
}

/// Returns the name of the MPI library that a job would use, and what it says of itself.
///
/// # Errors
/// [`MpiError::NotFound`], [`MpiError::NotLoaded`].
pub fn find_mpi() -> Result<[String; 2], MpiError> {
    let library = load()?;
    Ok([library.name.display().to_string(), library.version()])
}

/// Loads the library that is chosen, or the first there is.
fn find() -> Result<MpiLibrary, MpiError> {
    let launched = SIZES.iter().find_map(|&(name, is_open)| Some((size_in(name)?, is_open)));
    if let Some(path) = std::env::var_os(CHOICE).filter(|path| !path.is_empty()) {
        return open(Path::new(&path), None, launched.map(|(size, _)| size));
    }
    let is_open = launched.is_some_and(|(_, is_open)| is_open);
    let is_likely = |interface| is_open == (interface == Interface::OpenMpi);
    let (likely, others): (Vec<_>, Vec<_>) = LIBRARIES.into_iter().partition(|&(_, interface)| is_likely(interface));
    let places = launcher_folders();
    for (name, interface) in likely.into_iter().chain(others) {
        let beside = places.iter().map(|folder| folder.join(name)).find(|path| path.exists());
        let path = beside.unwrap_or_else(|| name.into());
        match open(&path, Some(interface), launched.map(|(size, _)| size)) {
            // The loader names what it misses: this library, or another that it needs.
            Err(MpiError::NotLoaded { what, .. }) if !path.is_absolute() && what.contains(name) => {}
            opened => return opened,
        }
    }
    Err(MpiError::NotFound { names: LIBRARIES.map(|(name, _)| name).join(", ") })
}

fn size_in(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Folders of libraries next to the programs that started this one: launchers bring their own MPI.
fn launcher_folders() -> Vec<PathBuf> {
    let parent_of = |process: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name, in parentheses, may hold spaces; the state and the parent follow.
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok().filter(|&parent| parent > 1)
    };
    let processes = std::iter::successors(parent_of(&std::process::id()), parent_of);
    let programs = processes.filter_map(|process| std::fs::read_link(format!("/proc/{process}/exe")).ok());
    programs.filter_map(|program| Some(program.parent()?.parent()?.join("lib"))).collect()
}

fn open(path: &Path, interface: Option<Interface>, launched: Option<usize>) -> Result<MpiLibrary, MpiError> {
    let refused = |what: String| MpiError::NotLoaded { library: path.display().to_string(), what };
    // Open MPI's own parts look its functions up among those of the process.
    // SAFETY: an MPI library may be loaded before MPI_Init; what it runs then is its own affair.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
    // What the loader says is the source of the error.
    let library =
        library.map_err(|error| refused(error.source().map_or_else(|| error.to_string(), ToString::to_string)))?;
    let interface = interface.unwrap_or_else(|| interface_of(path, &library));
    if interface == Interface::Mpich && cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64"))) {
        return Err(refused("its handles are ints, which this build does not pass on this processor".to_owned()));
    }
    let constants = match interface {
        Interface::Standard => STANDARD,
        Interface::Mpich => MPICH,
        Interface::OpenMpi => open_mpi(&library).map_err(|name| refused(format!("it has no {name}")))?,
    };
    let functions = Functions::find(&library).map_err(|name| refused(format!("it has no {name}")))?;
    let ulfm = if interface == Interface::OpenMpi { Ulfm::find(&library).ok() } else { None };
    // Its code is called until the process ends.
    std::mem::forget(library);
    Ok(MpiLibrary { functions, constants, ulfm, name: path.to_owned(), launched })
}

/// Open MPI is known by its symbols, the standard's interface by its name.
fn interface_of(path: &Path, library: &Library) -> Interface {
    let is_standard = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libmpi_abi"));
    match address(library, c"ompi_mpi_comm_world") {
        Ok(_) => Interface::OpenMpi,
        Err(_) if is_standard => Interface::Standard,
        Err(_) => Interface::Mpich,
    }
}

/// The constants of Open MPI are addresses of its objects.
fn open_mpi(library: &Library) -> Result<Constants, &'static str> {
    let at = |name| address(library, name);
    Ok(Constants {
        comm_world: at(c"ompi_mpi_comm_world")?,
        comm_null: at(c"ompi_mpi_comm_null")?,
        group_null: at(c"ompi_mpi_group_null")?,
        request_null: at(c"ompi_request_null")?,
        message_null: at(c"ompi_message_null")?,
        errors_return: at(c"ompi_mpi_errors_return")?,
        double: at(c"ompi_mpi_double")?,
        int64: at(c"ompi_mpi_int64_t")?,
        uint8: at(c"ompi_mpi_uint8_t")?,
        sum: at(c"ompi_mpi_op_sum")?,
        min: at(c"ompi_mpi_op_min")?,
        status_ignore: 0,
        thread_serialized: 2,
        thread_multiple: 3,
    })
}

fn address(library: &Library, name: &'static CStr) -> Result<usize, &'static str> {
    // SAFETY: the symbol is looked up and not read.
    let found = unsafe { library.get::<*const c_void>(name.to_bytes_with_nul()) };
    found.map(|found| found.into_raw() as usize).map_err(|_| name.to_str().unwrap_or_default())
}
