//! All kernels compile for the devices meant, into code whose bytes are the host's.

use recoup_compress::cuda_source;
use recoup_device::compile;

/// Bytes each kernel spills, as the assembler's log tells.
fn spills(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.contains("spill stores")).collect()
}

fn compile_all(architecture: &str, cut: &str) {
    for lattice in ["Absolute", "Relative", "Exact"] {
        for element in ["F64", "F32"] {
            let label = format!("{lattice} of {element} by {cut} for {architecture}");
            let compiled = compile(&cuda_source(lattice, element, cut), "qb.cuh", architecture).unwrap();
            for kernel in ["qb_encode", "qb_decode", "qb_scan", "qb_compact"] {
                assert!(compiled.ptx.contains(&format!(".entry {kernel}(")), "{label}: no {kernel}");
            }
            // What contracts, approximates or comes from a mathematical library.
            for inexact in ["fma.rn", "mad.f", "div.full", "div.approx", "rcp.", "ex2", "lg2", ".ftz"] {
                assert!(!compiled.ptx.contains(inexact), "{label}: {inexact}");
            }
            let spills = spills(&compiled.log);
            assert_eq!(spills.len(), 4, "{label}: {}", compiled.log);
            let is_clean =
                |line: &&str| line.contains("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads");
            assert!(spills.iter().all(is_clean), "{label}: {spills:?}");
        }
    }
}

#[test]
fn kernels_of_lines_for_sm_80_neither_contract_nor_spill() {
    compile_all("sm_80", "LineCut");
}

#[test]
fn kernels_of_tiles_for_sm_80_neither_contract_nor_spill() {
    compile_all("sm_80", "TileCut");
}

#[test]
fn kernels_of_lines_for_sm_90_neither_contract_nor_spill() {
    compile_all("sm_90", "LineCut");
}

#[test]
fn kernels_of_tiles_for_sm_90_neither_contract_nor_spill() {
    compile_all("sm_90", "TileCut");
}
