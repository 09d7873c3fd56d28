//! CUDA C to the code of a device, by the runtime compiler (NVRTC).

mod places;
mod sys;

use std::path::{Path, PathBuf};

use crate::architecture::{Architecture, Capability};
use crate::{Compiled, CudaVersion, DeviceError};
use places::{NAMED, NvrtcPlace};
use sys::Nvrtc;

/// Options under which every float operation means what it says.
pub(crate) const OPTIONS: [&str; 7] = [
    "--std=c++14",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--ptxas-options=-v",
    "--diag-suppress=177",
];

/// The newest release known here; a newer driver makes newer compilers known, too.
const NEWEST: u32 = 13;

/// The runtime compiler.
#[derive(Clone, Debug)]
pub struct Compiler {
    calls: Nvrtc,
    library: PathBuf,
    version: CudaVersion,
    supported: Vec<u32>,
    /// The driver that has to load what is compiled, if one has.
    driver: Option<CudaVersion>,
}

impl Compiler {
    /// Looks for the compiler whose code a driver of version `driver` loads; for any, if `None`.
    ///
    /// It is looked for in the folder `RECOUP_NVRTC` names, in the Python environment `VIRTUAL_ENV`
    /// (where `pip install nvidia-cuda-nvrtc==13.0.*` puts it), in `CUDA_HOME`, and where the
    /// system's libraries are. The named folder comes first. Of the others, the newest comes first
    /// whose major version is not above the driver's.
    ///
    /// # Errors
    /// [`DeviceError::NotAvailable`] if there is none, with those found that do not fit.
    pub fn find(driver: Option<CudaVersion>) -> Result<Self, DeviceError> {
        let newest = driver.map_or(NEWEST, |driver| driver.major);
        let majors: Vec<u32> = (CudaVersion::OLDEST.major..=newest).collect();
        let mut refused = Vec::new();
        for candidate in places::candidates(|name| std::env::var_os(name), &majors) {
            match Self::load(&candidate, driver) {
                Ok(compiler) => return Ok(compiler),
                // A library of the system that is not installed is no news.
                Err(why) if candidate.library.is_absolute() => {
                    refused.push(format!("{}: {why}", candidate.library.display()));
                }
                Err(_) => {}
            }
        }
        let found = if refused.is_empty() { "none found".to_owned() } else { refused.join("; ") };
        let why = format!("{found}; {}", advice(driver));
        Err(DeviceError::NotAvailable { what: "runtime compiler", why })
    }

    fn load(candidate: &NvrtcPlace, driver: Option<CudaVersion>) -> Result<Self, String> {
        check_major(candidate.major, driver)?;
        let calls = Nvrtc::load(&candidate.library, &candidate.parts)?;
        let version = calls.version()?;
        check_major(version.major, driver)?;
        let supported = calls.architectures()?;
        Ok(Self { calls, library: candidate.library.clone(), version, supported, driver })
    }

    /// Returns its version.
    #[must_use]
    pub fn version(&self) -> CudaVersion {
        self.version
    }

    /// Returns its path, or its name where the system's loader found it.
    #[must_use]
    pub fn library(&self) -> &Path {
        &self.library
    }

    /// Returns the architecture to compile for: the device's own, or the highest below it whose PTX
    /// the driver turns into the device's code.
    ///
    /// # Errors
    /// [`DeviceError::NotAvailable`] for a device that is too old for the compiler, and for one
    /// that needs PTX where the driver is too old to read it.
    pub fn architecture(&self, capability: Capability) -> Result<Architecture, DeviceError> {
        let unable = |why: String| DeviceError::NotAvailable { what: "runtime compiler", why };
        let Some(found) = Architecture::choose(capability, &self.supported) else {
            let oldest = self.supported.iter().min().copied().unwrap_or(0);
            let version = self.version;
            return Err(unable(format!(
                "NVRTC {version} compiles for sm_{oldest} and above, the device is of capability {capability}"
            )));
        };
        match (found, self.driver) {
            (Architecture::Virtual(_), Some(driver)) if self.version > driver => Err(unable(format!(
                "NVRTC {} does not know capability {capability}, and a driver of CUDA {driver} reads no PTX of a newer \
                 version; {}",
                self.version,
                advice(Some(driver))
            ))),
            _ => Ok(found),
        }
    }

    /// Compiles CUDA C for an architecture such as `sm_90` (its code and PTX) or `compute_90` (PTX
    /// alone): no header, no fused multiply-add, no fast mathematics.
    ///
    /// # Errors
    /// [`DeviceError::Compile`] with the compiler's log for a source it refuses.
    pub fn compile(&self, source: &str, name: &str, architecture: &str) -> Result<Compiled, DeviceError> {
        let target = format!("--gpu-architecture={architecture}");
        let options: Vec<&str> = OPTIONS.into_iter().chain([target.as_str()]).collect();
        self.calls.compile(source, name, &options).map_err(|log| DeviceError::Compile {
            name: name.to_owned(),
            architecture: architecture.to_owned(),
            log,
        })
    }
}

/// Compiles by any compiler that is there: [`Compiler::find`], [`Compiler::compile`]. What comes of
/// it may be too new for the driver.
///
/// # Errors
/// Those of the two.
pub fn compile(source: &str, name: &str, architecture: &str) -> Result<Compiled, DeviceError> {
    Compiler::find(None)?.compile(source, name, architecture)
}

/// Refuses a compiler that makes nothing this driver loads, or that is too old for the sources.
fn check_major(major: u32, driver: Option<CudaVersion>) -> Result<(), String> {
    match driver {
        Some(driver) if major > driver.major => {
            Err(format!("a driver of CUDA {driver} loads neither code nor PTX of NVRTC {major}"))
        }
        _ if major < CudaVersion::OLDEST.major => Err(format!("NVRTC {major} is too old")),
        _ => Ok(()),
    }
}

/// The advice on getting a compiler that fits.
fn advice(driver: Option<CudaVersion>) -> String {
    let package = match driver {
        Some(CudaVersion { major: 12, minor }) => format!("nvidia-cuda-nvrtc-cu12==12.{minor}.*"),
        _ => "nvidia-cuda-nvrtc==13.0.*".to_owned(),
    };
    let major = driver.map_or(NEWEST, |driver| driver.major.min(NEWEST));
    format!(
        "install the CUDA toolkit, or `pip install {package}` and name the folder of libnvrtc.so.{major} in {NAMED}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const AXPY: &str = "extern \"C\" __global__ void axpy(double a, double* x, double* y) { *y = a * *x + *y; }";

    /// The compiler, which `make test-all` installs: without it these tests fail.
    fn compiler(driver: Option<CudaVersion>) -> Compiler {
        Compiler::find(driver).unwrap()
    }

    #[test]
    fn a_kernel_becomes_code_without_a_fused_multiply_add() {
        let compiler = compiler(None);
        let compiled = compiler.compile(AXPY, "test.cu", "sm_90").unwrap();
        assert!(compiled.ptx.contains("axpy") && !compiled.ptx.contains("fma"), "{}", compiled.ptx);
        assert!(compiled.binary.unwrap().starts_with(b"\x7fELF") && compiled.log.contains("registers"));
    }

    #[test]
    fn a_virtual_architecture_gives_ptx_alone() {
        let compiler = compiler(None);
        let compiled = compiler.compile(AXPY, "test.cu", "compute_90").unwrap();
        assert!(compiled.ptx.contains(".target sm_90") && compiled.ptx.contains("axpy"), "{}", compiled.ptx);
        assert_eq!(compiled.binary, None);
    }

    #[test]
    fn a_source_that_is_none_comes_back_with_the_compilers_words() {
        let compiler = compiler(None);
        let result = compiler.compile("__global__ void broken( {", "test.cu", "sm_90");
        assert!(matches!(result, Err(DeviceError::Compile { log, .. }) if log.contains("error")));
    }

    #[test]
    fn a_source_with_a_zero_byte_and_an_unknown_architecture_are_errors() {
        let compiler = compiler(None);
        assert!(matches!(compiler.compile("a\0b", "test.cu", "sm_90"), Err(DeviceError::Compile { .. })));
        let result = compiler.compile(AXPY, "test.cu", "sm_1");
        assert!(matches!(result, Err(DeviceError::Compile { log, .. }) if !log.is_empty()));
    }

    #[test]
    fn a_device_unknown_to_the_compiler_gets_the_ptx_of_the_highest_one_below() {
        let compiler = compiler(None);
        let choose = |major, minor| compiler.architecture(Capability { major, minor });
        assert_eq!(choose(9, 0), Ok(Architecture::Real(90)));
        assert_eq!(choose(9, 9), Ok(Architecture::Virtual(90)));
        let highest = *compiler.supported.iter().max().unwrap();
        assert_eq!(choose(90, 0), Ok(Architecture::Virtual(highest)));
        let too_old = choose(1, 0).unwrap_err().to_string();
        assert!(too_old.contains("the device is of capability 1.0"), "{too_old}");
    }

    #[test]
    fn a_compiler_newer_than_the_driver_is_refused_with_both_versions() {
        let found = compiler(None);
        let driver = CudaVersion { major: found.version.major - 1, minor: 9 };
        // Another one that fits may be installed, too.
        if let Err(error) = Compiler::find(Some(driver)) {
            let text = error.to_string();
            let expected =
                format!("a driver of CUDA {driver} loads neither code nor PTX of NVRTC {}", found.version.major);
            assert!(text.contains(&expected) && text.contains("RECOUP_NVRTC"), "{text}");
        }
    }

    #[test]
    fn code_of_a_newer_minor_version_is_loaded_and_its_ptx_is_not() {
        let mut compiler = compiler(None);
        compiler.version.minor += 1;
        compiler.driver = Some(CudaVersion { minor: compiler.version.minor - 1, ..compiler.version });
        assert_eq!(compiler.architecture(Capability { major: 9, minor: 0 }), Ok(Architecture::Real(90)));
        let error = compiler.architecture(Capability { major: 9, minor: 9 }).unwrap_err().to_string();
        assert!(error.contains("reads no PTX of a newer version"), "{error}");
    }

    #[test]
    fn advice_names_the_package_of_the_drivers_release() {
        let of = |major, minor| advice(Some(CudaVersion { major, minor }));
        assert!(of(12, 4).contains("nvidia-cuda-nvrtc-cu12==12.4.*") && of(12, 4).contains("libnvrtc.so.12"));
        assert!(of(14, 1).contains("nvidia-cuda-nvrtc==13.0.*") && of(14, 1).contains("libnvrtc.so.13"));
    }
}
