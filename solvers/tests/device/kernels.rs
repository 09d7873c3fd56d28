//! All kernels compile for the devices meant, into code that neither contracts nor spills.

use recoup_device::compile;
use recoup_solvers::device::KERNEL_SOURCE;

#[test]
fn kernels_neither_contract_nor_spill() {
    for architecture in ["sm_80", "sm_90"] {
        // The compiler comes with what `make test-all` installs.
        let compiled = compile(KERNEL_SOURCE, "solvers.cuh", architecture).unwrap();
        for inexact in ["fma.rn", "mad.f", "div.full", "div.approx", "rcp.", "ex2", "lg2", ".ftz"] {
            assert!(!compiled.ptx.contains(inexact), "{architecture}: {inexact}");
        }
        let kernels = compiled.ptx.matches(".entry").count();
        let is_spill_line = |line: &&str| line.contains("spill stores");
        let spills: Vec<&str> = compiled.log.lines().filter(is_spill_line).collect();
        assert!(kernels > 20 && spills.len() >= kernels, "{architecture}: {}", compiled.log);
        let is_clean = |line: &&str| line.contains("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads");
        assert!(spills.iter().all(is_clean), "{architecture}: {spills:?}");
    }
}
