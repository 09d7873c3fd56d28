//! Tables 1 and 2: every rate of Table 1 as it follows from Table 2, beside the published one.

use crate::Failed;
use crate::lab::Lab;
use crate::published::{SystemColumn, TABLE1, node};
use crate::sheet::Sheet;

/// Bytes per second of a GPU's own link, which the text does not state: the row of Table 1 below 8
/// GPUs for each CPU has it.
pub(crate) const LINK_OF_GPU: f64 = 8e9;
/// Exaflops of the system that has the rate of Table 2 to its file system. The text does not state
/// them; the row of Table 1 has this value.
pub(crate) const PFS_EXAFLOPS: f64 = 0.192;

/// Rates of a column by Table 2, GB/s: to the memories of CPUs, to disks, to the file system.
pub(crate) fn rates(column: &SystemColumn) -> [f64; 3] {
    let pcie = (node::PCIE * column.nodes).min(LINK_OF_GPU * column.gpus);
    let peak = exaflops(column);
    let pfs = node::PFS * node::PFS_GROWTH.powf((peak / PFS_EXAFLOPS).log2());
    [pcie, node::DISK * column.nodes, pfs].map(|rate| rate / 1e9)
}

/// Peak of all chips of a column.
pub(crate) fn exaflops(column: &SystemColumn) -> f64 {
    let [cpu, gpu] = node::FLOPS;
    (cpu * column.cpus + gpu * column.gpus) / 1e18
}

pub(crate) fn make(_: &Lab) -> Result<Sheet, Failed> {
    let title = "Tables 1 and 2: rates of each system in GB/s, by Table 2 and as Table 1 has them";
    let mut sheet = Sheet { title: title.to_owned(), ..Sheet::default() };
    let row = |column: &SystemColumn| {
        let mut row = vec![column.exaflops.to_string(), column.gpus_per_cpu.to_string()];
        for (here, published) in rates(column).iter().zip([column.pcie, column.local, column.pfs]) {
            row.extend([*here, published].map(|rate| format!("{rate:.3e}")));
        }
        row
    };
    let rows: Vec<Vec<String>> = TABLE1.iter().map(row).collect();
    sheet.table(&["exaflops", "GPUs a CPU", "PCIe", "", "disk", "", "file system", ""], &rows);
    sheet.say("Failures per second of one part, by Table 1: each row over the number of parts.");
    let failures = |column: &SystemColumn| {
        let [gpu, cpu, node] = column.failures;
        let each = [gpu / column.gpus, cpu / column.cpus, node / column.nodes];
        let mut row = vec![column.exaflops.to_string(), column.gpus_per_cpu.to_string()];
        row.extend(each.map(|rate| format!("{rate:.3e}")));
        row
    };
    let rows: Vec<Vec<String>> = TABLE1.iter().map(failures).collect();
    sheet.table(&["exaflops", "GPUs a CPU", "GPU", "CPU", "node"], &rows);
    sheet.say("A CPU fails less often at low densities. The text does not say why.");
    sheet.limits.push("4 GPUs and 2 CPUs a node (Table 2) and 3 GPUs a CPU (text): no column of Table 1 has either.");
    Ok(sheet)
}
