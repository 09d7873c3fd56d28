//! Memory of this machine.

/// Returns the bytes of memory that the machine has; the most there can be where it does not tell.
pub(crate) fn host_memory_bytes() -> u64 {
    #[cfg(target_os = "linux")]
    {
        let system = rustix::system::sysinfo();
        system.totalram as u64 * u64::from(system.mem_unit)
    }
    #[cfg(not(target_os = "linux"))]
    u64::MAX
}
