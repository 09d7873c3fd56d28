//! Solves that ranks share, each on a device: the bits of as many ranks on the host.

use std::sync::Arc;

use recoup_comm::Threads;
use recoup_core::{Comm, Operator};
use recoup_cuda_double::Settings;
use recoup_device::Device;
use recoup_solvers::{
    Csr, DistributedCsr, DistributedPoisson3d, JacobiPreconditioner, LocalRows, Pool, RowPartition, System,
};

use super::lockstep::{Case, compare_steps, convection};
use super::support::{on_device, wave};

/// Steps of a solve that are compared.
const STEPS: u64 = 8;

/// The rows of a rank.
fn own_rows(matrix: &Csr, partition: &RowPartition, rank: usize) -> LocalRows {
    let mut rows = LocalRows { row_starts: vec![0], columns: Vec::new(), values: Vec::new() };
    for row in partition.range(rank) {
        let (columns, values) = matrix.row(row);
        rows.columns.extend_from_slice(columns);
        rows.values.extend_from_slice(values);
        rows.row_starts.push(rows.values.len());
    }
    rows
}

/// Compares a solve on the device of this rank with the same on its threads, step by step.
fn compare_ranks(label: &str, comm: &dyn Comm, a: &dyn Operator, methods: &[&str], device: &Device) {
    let pool = Pool::new(1);
    let first = a.first_row() as usize;
    let b = wave(a.global_rows() as usize, 0)[first..first + a.rows()].to_vec();
    let system = System { a, b: &b, comm, pool: &pool };
    let m = JacobiPreconditioner::new(a).unwrap();
    for name in methods {
        let case = Case::new(name, system, &m);
        let mut there = case.there(device).unwrap();
        compare_steps(&format!("{name}, {label}, rank {}", comm.rank()), &mut *there, &mut *case.here(), STEPS);
    }
}

#[test]
fn ranks_that_share_a_stencil_have_the_bits_of_as_many_on_the_host() {
    for (side, ranks) in [(3, 3), (8, 2), (11, 3)] {
        on_device(&Settings::default(), |device| {
            Threads::launch(ranks, |comm| {
                let a = DistributedPoisson3d::new(comm.dup().unwrap(), side, Arc::new(Pool::new(1)));
                compare_ranks(&format!("side {side}"), &comm, &a, &["cg", "jacobi"], device);
            });
        });
    }
}

/// Rows of a matrix in more than one block, with and without entries beyond.
#[test]
fn ranks_that_share_a_matrix_have_the_bits_of_as_many_on_the_host() {
    for (matrix, unit, ranks) in [(convection(5), 1, 3), (Csr::poisson3d(14), 1, 2)] {
        on_device(&Settings::default(), |device| {
            Threads::launch(ranks, |comm| {
                let partition = RowPartition::even(matrix.n(), unit, ranks);
                let rows = own_rows(&matrix, &partition, comm.rank());
                let pool = Arc::new(Pool::new(1));
                let a = DistributedCsr::new(comm.dup().unwrap(), &partition, &rows, pool).unwrap();
                let methods = ["cg", "jacobi", "gmres", "bicgstab"];
                compare_ranks(&format!("{} rows", matrix.n()), &comm, &a, &methods, device);
            });
        });
    }
}
