//! The reasons why a monitor of the system does not work.

/// The reason why the system does not see writes for us.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoMonitor {
    /// The call is answered by EPERM though the kernel allows it to all users.
    #[error("userfaultfd is forbidden (EPERM): by a seccomp filter, as containers have, or a security module")]
    Forbidden,
    /// The kernel allows the call to privileged users only.
    #[error("userfaultfd is for privileged users only: vm.unprivileged_userfaultfd is 0")]
    Unprivileged,
    /// There is no such call.
    #[error("this system has no userfaultfd")]
    NotThere,
    /// There is the call, and not all of it.
    #[error("the kernel has no {feature}: Linux {since} has")]
    OldKernel {
        /// The missing part.
        feature: &'static str,
        /// The first kernel that has it.
        since: &'static str,
    },
    /// A page was written, and the system did not say so, or not in time.
    #[error("the system did not notice a write to a page")]
    Unnoticed,
    /// A call failed for another reason.
    #[error("{call}: {error}")]
    System {
        /// The call.
        call: &'static str,
        /// Its answer.
        error: std::io::ErrorKind,
    },
}

#[cfg(target_os = "linux")]
impl NoMonitor {
    /// Names the call that failed.
    pub(crate) fn system(call: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |error| Self::System { call, error: error.kind() }
    }
}
