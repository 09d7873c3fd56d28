//! CUDA C to the code of a device, by the runtime compiler.

use crate::{Compiled, DeviceError, sys};

/// Options under which every float operation means what it says.
const OPTIONS: [&str; 7] = [
    "--std=c++14",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--ptxas-options=-v",
    "--diag-suppress=177",
];

/// Looks for the runtime compiler, as [`compile`] does.
///
/// # Errors
/// [`DeviceError::NotAvailable`] without it.
pub fn find_compiler() -> Result<(), DeviceError> {
    sys::find_compiler()
}

/// Compiles CUDA C for an architecture such as `sm_90`: no header, no fused multiply-add, no fast
/// mathematics.
///
/// The compiler is looked for in the folder `RECOUP_NVRTC` names, in the Python environment
/// `VIRTUAL_ENV` (where `pip install nvidia-cuda-nvrtc==13.0.*` puts it), where the system's
/// libraries are, and in `CUDA_HOME`.
///
/// # Errors
/// [`DeviceError::NotAvailable`] without the compiler, [`DeviceError::Compile`] with its log for a
/// source it refuses.
pub fn compile(source: &str, name: &str, architecture: &str) -> Result<Compiled, DeviceError> {
    find_compiler()?;
    let target = format!("--gpu-architecture={architecture}");
    let options: Vec<&str> = OPTIONS.into_iter().chain([target.as_str()]).collect();
    sys::compile(source, name, &options).map_err(|log| DeviceError::Compile {
        name: name.to_owned(),
        architecture: architecture.to_owned(),
        log,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `None`, and a message, where the compiler is missing.
    fn compiled(source: &str) -> Option<Result<Compiled, DeviceError>> {
        match compile(source, "test.cu", "sm_90") {
            Err(DeviceError::NotAvailable { what, why }) => {
                println!("SKIPPED: {what}: {why}");
                None
            }
            result => Some(result),
        }
    }

    #[test]
    fn a_kernel_becomes_code_without_a_fused_multiply_add() {
        let source = "extern \"C\" __global__ void axpy(double a, double* x, double* y) { *y = a * *x + *y; }";
        let Some(result) = compiled(source) else { return };
        let compiled = result.unwrap();
        assert!(compiled.ptx.contains("axpy") && !compiled.ptx.contains("fma"), "{}", compiled.ptx);
        assert!(compiled.binary.starts_with(b"\x7fELF") && compiled.log.contains("registers"), "{}", compiled.log);
    }

    #[test]
    fn a_source_that_is_none_comes_back_with_the_compilers_words() {
        let Some(result) = compiled("__global__ void broken( {") else { return };
        assert!(matches!(result, Err(DeviceError::Compile { log, .. }) if log.contains("error")));
    }

    #[test]
    fn a_source_with_a_zero_byte_is_an_error() {
        let Some(result) = compiled("a\0b") else { return };
        assert!(matches!(result, Err(DeviceError::Compile { .. })));
    }
}
