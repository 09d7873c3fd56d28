//! The driver's error codes, with the names and numbers of its interface.

/// Declares the codes the double gives out or can be told to give out.
macro_rules! statuses {
    ($($name:ident = $code:literal, $full:literal, $text:literal;)*) => {
        /// A reason for which the driver refuses a call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
        #[repr(u32)]
        pub enum CudaStatus {
            $(
                #[doc = $text]
                #[error("{}: {}", $full, $text)]
                $name = $code,
            )*
        }

        impl CudaStatus {
            /// All codes.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the name that `cuGetErrorName` gives, with the zero byte that ends it.
            pub fn c_name(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($full, "\0"),)*
                }
            }

            /// Returns the text that `cuGetErrorString` gives, with the zero byte that ends it.
            pub fn c_text(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($text, "\0"),)*
                }
            }
        }
    };
}

statuses! {
    InvalidValue = 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument";
    OutOfMemory = 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory";
    NotInitialized = 3, "CUDA_ERROR_NOT_INITIALIZED", "the driver is not initialised";
    StubLibrary = 34, "CUDA_ERROR_STUB_LIBRARY", "the library is a stub, no driver";
    DeviceUnavailable = 46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "the device is not available";
    NoDevice = 100, "CUDA_ERROR_NO_DEVICE", "no device is found";
    InvalidDevice = 101, "CUDA_ERROR_INVALID_DEVICE", "no device of that number";
    InvalidImage = 200, "CUDA_ERROR_INVALID_IMAGE", "the image of a module is invalid";
    InvalidContext = 201, "CUDA_ERROR_INVALID_CONTEXT", "invalid context";
    NoBinaryForGpu = 209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no binary for this device";
    EccUncorrectable = 214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable memory error";
    InvalidPtx = 218, "CUDA_ERROR_INVALID_PTX", "the PTX does not compile";
    UnsupportedPtxVersion = 222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX is newer than the driver";
    OperatingSystem = 304, "CUDA_ERROR_OPERATING_SYSTEM", "a call of the system failed";
    InvalidHandle = 400, "CUDA_ERROR_INVALID_HANDLE", "invalid handle";
    NotFound = 500, "CUDA_ERROR_NOT_FOUND", "a symbol is not found";
    NotReady = 600, "CUDA_ERROR_NOT_READY", "the work is not done";
    IllegalAddress = 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal address was accessed";
    LaunchOutOfResources = 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "a launch asks for too many resources";
    ContextIsDestroyed = 709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "the context is destroyed";
    HostMemoryAlreadyRegistered = 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "host memory is registered already";
    HostMemoryNotRegistered = 713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "host memory is not registered";
    IllegalInstruction = 715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was met";
    MisalignedAddress = 716, "CUDA_ERROR_MISALIGNED_ADDRESS", "a misaligned address was accessed";
    LaunchFailed = 719, "CUDA_ERROR_LAUNCH_FAILED", "a kernel failed";
    NotSupported = 801, "CUDA_ERROR_NOT_SUPPORTED", "the call is not supported";
    Unknown = 999, "CUDA_ERROR_UNKNOWN", "an unknown error";
}

impl CudaStatus {
    /// Returns its number.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// Returns the status of a number, if the double knows it.
    pub fn of(code: u32) -> Option<Self> {
        Self::ALL.iter().copied().find(|status| status.code() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_comes_back_from_its_code() {
        for status in CudaStatus::ALL {
            assert_eq!(CudaStatus::of(status.code()), Some(*status));
            assert!(status.c_name().starts_with("CUDA_ERROR_") && status.c_name().ends_with('\0'), "{status}");
        }
        assert_eq!(CudaStatus::of(0), None);
    }
}
