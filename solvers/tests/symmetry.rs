//! Does the symmetry test tell rounding from an operator that CG cannot solve?

use std::path::Path;

use recoup_comm::Solo;
use recoup_core::Operator;
use recoup_solvers::{Csr, Poisson3d, Pool, System, read_matrix};

fn read(name: &str) -> Csr {
    read_matrix(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/data/{name}.mtx.gz"))).unwrap()
}

fn defect(a: &dyn Operator) -> f64 {
    let b = vec![0.0; a.rows()];
    let pool = Pool::new(2);
    System { a, b: &b, comm: &Solo, pool: &pool }.symmetry_defect().unwrap()
}

/// `||A - A^T||_F / ||A||_F`, entry by entry.
fn exact(a: &Csr) -> f64 {
    let entry = |i: usize, j: usize| {
        let (columns, values) = a.row(i);
        columns.binary_search(&(j as u32)).map_or(0.0, |at| values[at])
    };
    let mut squares = [0.0; 2];
    for i in 0..a.n() {
        let (columns, values) = a.row(i);
        for (&j, value) in columns.iter().zip(values) {
            let mirrored = entry(j as usize, i);
            // An entry without a partner counts for both.
            let weight = if mirrored == 0.0 { 2.0 } else { 1.0 };
            squares[0] += weight * (value - mirrored) * (value - mirrored);
            squares[1] += value * value;
        }
    }
    f64::sqrt(squares[0] / squares[1])
}

#[test]
fn symmetric_operators_have_no_defect() {
    for name in ["bcsstk14", "copter2_lap", "nos7", "sherman1", "wathen_small"] {
        assert_eq!(defect(&read(name)), 0.0, "{name}");
    }
    assert_eq!(defect(&Csr::poisson3d(24)), 0.0);
    assert_eq!(defect(&Poisson3d::new(24)), 0.0);
}

/// One sample of a sum of independent terms lies within a factor of thirty of their root mean
/// square, but for 3 % of all.
#[test]
fn the_defect_of_others_is_about_the_norm_of_what_is_not_symmetric() {
    for name in ["sherman5", "orsirr_1", "add32"] {
        let a = read(name);
        let found = defect(&a);
        let exact = exact(&a);
        println!("{name}: {found:e}, exactly {exact:e}");
        assert!(found > exact / 30.0 && found < 5.0 * exact, "{name}: {found:e}, exactly {exact:e}");
    }
}

#[test]
fn one_entry_that_differs_in_its_sixth_digit_is_found() {
    let a = Csr::poisson3d(16);
    let changed = a.mapped(|row, column, value| if (row, column) == (0, 1) { value * (1.0 + 1e-6) } else { value });
    assert!(defect(&changed.unwrap()) > 0.0);
}
