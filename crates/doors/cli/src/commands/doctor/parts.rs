//! The programs and libraries that recoup works with.

use std::path::{Path, PathBuf};

use recoup::cache::MEMORY_DIR;
use recoup::comm::find_mpi;
use recoup::solvers::find_hypre;

use super::check::{PartCheck, PartState};
use super::directory::FileSystemSpace;
use crate::commands::{device, exec};
use crate::output::bytes;
use crate::printable::shell_word;

/// The HDF5 plugin, as the Makefile installs it.
const PLUGIN: &str = "librecoup_h5plugin.so";
/// The folder HDF5 looks into where no variable names others.
const PLUGIN_DIR: &str = "/usr/local/hdf5/lib/plugin";
/// Memory for versions that a container gives if not asked for more.
const MEMORY_LOW: u64 = 64 << 20;

/// Looks at all parts but monitors, limits and directories.
pub(super) fn checks() -> Vec<PartCheck> {
    vec![mpi(), hypre(), petsc(), plugin(), cuda(), slurm(), memory()]
}

fn mpi() -> PartCheck {
    let launcher = ["mpirun", "mpiexec"].into_iter().find_map(on_path);
    let costs = "--mpi is refused: a solve has one process with its threads. The C library and PETSc use the MPI of the \
                 program either way";
    let [name, version] = match find_mpi() {
        Ok(found) => found,
        Err(error) => {
            let remedy = "if a solve needs several nodes, install MPI, or load its module";
            return PartCheck::yes("MPI", error.to_string()).lacking(PartState::No, costs, remedy);
        }
    };
    match launcher {
        Some(path) => PartCheck::yes("MPI", format!("{version}, {name}; {}", path.display())),
        None => PartCheck::yes("MPI", format!("{version}, {name}; no mpirun on the path")).lacking(
            PartState::No,
            "no job of several ranks can be started",
            "install the launcher of this MPI, load its module, or start jobs by srun",
        ),
    }
}

fn hypre() -> PartCheck {
    match find_hypre() {
        Ok([name, version]) => PartCheck::yes("hypre", format!("{version}, {name}")),
        Err(error) => PartCheck::yes("hypre", error.to_string()).lacking(
            PartState::No,
            "--pc amg is refused: elliptic problems take more iterations under the other preconditioners",
            "for large elliptic problems install hypre (Debian: libhypre-dev), or load its module",
        ),
    }
}

fn petsc() -> PartCheck {
    let found = exec::petsc_libraries();
    let has_compiler = on_path("cc").is_some();
    let names: Vec<String> = found.iter().map(|library| library.display().to_string()).collect();
    let costs = "recoup exec runs PETSc programs without saving their solves";
    if found.is_empty() {
        let remedy = "install PETSc with its headers and pkg-config (Debian: petsc-dev pkgconf), or set PETSC_DIR and PETSC_ARCH";
        let check = PartCheck::yes("PETSc", "pkg-config, PETSC_DIR and /usr/lib/petscdir name none");
        return check.lacking(PartState::No, costs, remedy);
    }
    let check = PartCheck::yes("PETSc", names.join(", "));
    if has_compiler { check } else { check.lacking(PartState::No, costs, "install a C compiler: there is no cc") }
}

fn plugin() -> PartCheck {
    let variable = std::env::var_os("HDF5_PLUGIN_PATH");
    let searched: Vec<PathBuf> =
        variable.as_ref().map_or_else(|| vec![PLUGIN_DIR.into()], |list| std::env::split_paths(list).collect());
    let holds = |folder: &PathBuf| folder.join(PLUGIN).exists();
    if let Some(folder) = searched.iter().find(|folder| holds(folder)) {
        return PartCheck::yes("HDF5 plugin", folder.join(PLUGIN).display().to_string());
    }
    let program = std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
    let beside = program.parent().unwrap_or(Path::new("/"));
    let installed = [beside.join("../lib/hdf5/plugin"), beside.to_owned()].into_iter().find(holds);
    let costs = "h5py, h5dump and other readers of HDF5 cannot open variables saved by qb or pyramid; recoup can";
    let missing = match variable {
        Some(_) => format!("no folder of HDF5_PLUGIN_PATH has {PLUGIN}"),
        None => format!("no {PLUGIN} in {PLUGIN_DIR}"),
    };
    let remedy = match installed.and_then(|folder| folder.canonicalize().ok()) {
        Some(folder) => format!("export HDF5_PLUGIN_PATH={}", shell_word(&folder.to_string_lossy())),
        None => {
            "make install puts it into PREFIX/lib/hdf5/plugin; recoup export writes plain HDF5 without it".to_owned()
        }
    };
    PartCheck::yes("HDF5 plugin", missing).lacking(PartState::No, costs, remedy)
}

fn cuda() -> PartCheck {
    match device::usable() {
        Ok(names) => PartCheck::yes("CUDA", names.join(", ")),
        Err(why) => PartCheck::yes("CUDA", why).lacking(
            PartState::No,
            "--device is refused: solves, codecs and tapes use the processor",
            "nothing without a GPU; recoup device says what each part needs",
        ),
    }
}

fn slurm() -> PartCheck {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let costs = "the end of a job is not known: a run that is not stopped by a signal loses what came after its last \
                 version";
    match (variable("SLURM_JOB_ID"), variable("SLURM_JOB_END_TIME"), on_path("sbatch")) {
        (Some(job), Some(_), _) => PartCheck::yes("Slurm", format!("in job {job}, whose end is known")),
        (Some(job), None, _) => PartCheck::yes("Slurm", format!("in job {job}, without SLURM_JOB_END_TIME")).lacking(
            PartState::Low,
            costs,
            "give --time-limit, or ask for a signal: #SBATCH --signal=USR1@300",
        ),
        (None, _, Some(path)) => PartCheck::yes("Slurm", format!("{}, outside a job", path.display())),
        (None, _, None) => PartCheck::yes("Slurm", "no sbatch on the path").lacking(
            PartState::No,
            costs,
            "nothing without a batch system; with another one, give --time-limit",
        ),
    }
}

fn memory() -> PartCheck {
    let remedy = "give --memory-dir DIR with a folder in memory; for a container --shm-size 8g, or --ipc host";
    let Some(space) = FileSystemSpace::of(Path::new(MEMORY_DIR)) else {
        return PartCheck::yes("memory tiers", format!("there is no {MEMORY_DIR}")).lacking(
            PartState::No,
            "--tiers memory is refused: every version waits for the disk",
            remedy,
        );
    };
    let [free, total] = [space.free_bytes, space.total_bytes].map(|size| bytes(size as f64));
    let kind = space.file_system.as_deref().unwrap_or("unknown file system");
    let check = PartCheck::yes("memory tiers", format!("{MEMORY_DIR}, {kind}, {free} free of {total}"));
    if space.free_bytes <= MEMORY_LOW {
        return check.lacking(PartState::Low, "--tiers memory fails for versions that do not fit", remedy);
    }
    if space.file_system.as_deref().is_some_and(|kind| kind != "tmpfs" && kind != "ramfs") {
        return check.lacking(PartState::Low, "--tiers memory is as slow as that disk", remedy);
    }
    check
}

/// Returns the program of this name that a shell would start.
fn on_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let is_program = |path: &PathBuf| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(is_program)
}
