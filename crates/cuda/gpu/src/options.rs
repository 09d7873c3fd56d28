//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// The arguments.
#[derive(Debug, Parser)]
#[command(name = "recoup-gpu", about = "Figures of a machine with a CUDA device")]
pub(crate) struct GpuArguments {
    /// The task.
    #[command(subcommand)]
    pub(crate) task: GpuTask,
}

/// The tasks.
#[derive(Debug, Subcommand)]
pub(crate) enum GpuTask {
    /// Measure, and write gpu.json and gpu.md
    Measure {
        /// Folder of both files
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Number of the device
        #[arg(long, value_name = "N", default_value = "0")]
        device: usize,
        /// Smaller vectors and fewer repetitions: a minute, to see that all is well
        #[arg(long)]
        quick: bool,
    },
    /// Compile all kernels ahead, for a machine without NVRTC, where RECOUP_KERNELS names them
    Kernels {
        /// Folder of the compiled kernels
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// The oldest architecture that is to load them, as PTX
        #[arg(long, value_name = "ARCH", default_value = "compute_80")]
        architecture: String,
        /// More sources, files of CUDA C
        sources: Vec<PathBuf>,
    },
}
