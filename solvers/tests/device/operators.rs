//! Products with A, residuals and Jacobi sweeps.

use recoup_core::{JacobiSweep, Operator};
use recoup_solvers::device::{DeviceOperator, DeviceSweep};
use recoup_solvers::{Csr, Poisson3d};

use super::support::{Both, compare, positive, wave};

/// Compares all passes that take a product with an operator.
fn compare_operator(both: &Both, here: &dyn Operator) {
    let both = &both.for_rows_of(here);
    let passes = &both.passes;
    let there = &DeviceOperator::of(passes.stream(), here).unwrap().unwrap();
    let n = here.rows();
    assert_eq!(there.rows(), n);
    let x = wave(n, 0);
    let b = wave(n, 1);
    let x_there = both.there(&x);
    let b_there = both.there(&b);
    let mut y = vec![0.0; n];
    let mut y_there = both.there(&y);
    here.apply(&x, &mut y).unwrap();
    there.apply(passes, x_there.view(), &mut y_there.view_mut()).unwrap();
    both.compare("apply", &y_there, &y);
    let expected = here.apply_dot(&x, &mut y).unwrap();
    y_there = both.there(&vec![0.0; n]);
    let found = there.apply_dot(passes, x_there.view(), &mut y_there.view_mut()).unwrap();
    compare("apply_dot", &[found], &[expected]);
    both.compare("product of apply_dot", &y_there, &y);
    let expected = here.residual(&b, &x, &mut y).unwrap();
    let found = there.residual(passes, b_there.view(), x_there.view(), &mut y_there.view_mut()).unwrap();
    compare("norm of the residual", &[found], &[expected]);
    both.compare("residual", &y_there, &y);
    compare_sweep(both, here, there);
}

fn compare_sweep(both: &Both, here: &dyn Operator, there: &DeviceOperator) {
    let n = here.rows();
    let diagonal = if here.sweeps_in_place() { here.diagonal().unwrap() } else { positive(n) };
    let inverse_diagonal: Vec<f64> = diagonal.iter().map(|d| d.recip()).collect();
    let b = wave(n, 1);
    let mut x = wave(n, 2);
    let mut target = vec![0.0; n];
    let x_there = both.there(&x);
    let b_there = both.there(&b);
    let inverse_there = both.there(&inverse_diagonal);
    let mut target_there = both.there(&target);
    let sweep =
        DeviceSweep { b: b_there.view(), inverse_diagonal: inverse_there.view(), omega: 0.9, x: x_there.view() };
    let found = there.jacobi_sweep(&both.passes, sweep, &mut target_there.view_mut()).unwrap();
    let sweep = JacobiSweep { b: &b, inverse_diagonal: &inverse_diagonal, omega: 0.9, x: &mut x, target: &mut target };
    let expected = here.jacobi_sweep(sweep).unwrap();
    compare("norm of a sweep", &[found], &[expected]);
    both.compare("sweep", &target_there, if here.sweeps_in_place() { &x } else { &target });
}

#[test]
fn the_stencil_has_the_hosts_bits() {
    Both::with(|both| {
        for side in [1, 2, 7, 12] {
            compare_operator(both, &Poisson3d::new(side));
        }
    });
}

/// A matrix whose rows have `length(row)` entries.
fn matrix(n: usize, length: impl Fn(usize) -> usize) -> Csr {
    let mut row_starts = vec![0];
    let mut columns = Vec::new();
    for row in 0..n {
        let count = length(row).min(n);
        let first = (row * 7) % (n - count + 1);
        columns.extend((first..first + count).map(|column| column as u32));
        row_starts.push(columns.len());
    }
    let values = wave(columns.len(), 3);
    Csr::new(row_starts, columns, values).unwrap()
}

#[test]
fn matrices_have_the_hosts_bits() {
    Both::with(|both| {
        let matrices = [
            Csr::poisson3d(7),
            matrix(1, |_| 1),
            matrix(31, |_| 0),
            matrix(33, |row| row % 4),
            matrix(1025, |row| if row % 97 == 5 { 200 } else { row % 6 }),
            matrix(2100, |row| usize::from(row < 40 || row == 2099) * 9),
        ];
        for here in matrices {
            compare_operator(both, &here);
        }
    });
}
