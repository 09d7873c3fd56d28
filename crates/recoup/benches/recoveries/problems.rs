//! The problems of the table: real matrices of the tests and model problems, each the same on every
//! machine.

use std::path::Path;

use recoup::solvers::{Csr, random_value, read_matrix};

/// Kind of a problem, as far as methods care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Symmetric positive definite.
    Spd,
    /// Not symmetric.
    Nonsymmetric,
    /// Symmetric with eigenvalues of both signs.
    Indefinite,
    /// Symmetric positive semidefinite, with b in the range of A.
    Singular,
}

impl Kind {
    /// Its name in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Spd => "spd",
            Self::Nonsymmetric => "nonsymmetric",
            Self::Indefinite => "indefinite",
            Self::Singular => "singular",
        }
    }
}

/// `A x = b`.
pub(crate) struct Problem {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) matrix: Csr,
    pub(crate) rhs: Vec<f64>,
}

/// All of them.
pub(crate) fn all() -> Vec<Problem> {
    let file = |name: &'static str, kind| problem(name, kind, matrix_of_tests(name));
    vec![
        problem("poisson3d-14", Kind::Spd, Csr::poisson3d(14)),
        file("bcsstk14", Kind::Spd),
        file("nos7", Kind::Spd),
        file("wathen_small", Kind::Spd),
        // As published, sherman1 is negative definite.
        problem("-sherman1", Kind::Spd, negated(&matrix_of_tests("sherman1"))),
        file("sherman5", Kind::Nonsymmetric),
        file("orsirr_1", Kind::Nonsymmetric),
        file("add32", Kind::Nonsymmetric),
        problem("convection-40", Kind::Nonsymmetric, convection_diffusion(40, 0.9)),
        problem("helmholtz-36", Kind::Indefinite, helmholtz(36, 0.055)),
        problem("neumann-40", Kind::Singular, neumann(40)),
        problem("ring-1500", Kind::Singular, ring(1500)),
    ]
}

/// A random right-hand side; of a singular problem without its part along the constants, which A
/// never reaches.
fn problem(name: &'static str, kind: Kind, matrix: Csr) -> Problem {
    let mut rhs: Vec<f64> = (0..matrix.n()).map(|row| random_value(7, row as u64)).collect();
    if kind == Kind::Singular {
        let mean = rhs.iter().sum::<f64>() / rhs.len() as f64;
        rhs.iter_mut().for_each(|b| *b -= mean);
    }
    Problem { name, kind, matrix, rhs }
}

fn matrix_of_tests(name: &str) -> Csr {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    read_matrix(&data.join(format!("{name}.mtx.gz"))).unwrap()
}

/// A matrix from its entries by rows, which need not be in order.
fn from_rows(rows: impl Iterator<Item = Vec<(usize, f64)>>) -> Csr {
    let mut starts = vec![0];
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for mut row in rows {
        row.sort_by_key(|(column, _)| *column);
        columns.extend(row.iter().map(|(column, _)| *column as u32));
        values.extend(row.iter().map(|(_, value)| *value));
        starts.push(columns.len());
    }
    Csr::new(starts, columns, values).unwrap()
}

/// `-A`.
fn negated(matrix: &Csr) -> Csr {
    from_rows((0..matrix.n()).map(|row| {
        let (columns, values) = matrix.row(row);
        columns.iter().zip(values).map(|(column, value)| (*column as usize, -value)).collect()
    }))
}

/// The neighbours of a point of an m by m grid: west, east, south, north.
fn neighbours(m: usize, point: usize) -> [Option<usize>; 4] {
    let i = point % m;
    let j = point / m;
    [
        (i > 0).then(|| point - 1),
        (i + 1 < m).then(|| point + 1),
        (j > 0).then(|| point - m),
        (j + 1 < m).then(|| point + m),
    ]
}

/// Convection and diffusion on an m by m grid by central differences; `peclet` is the cell Peclet
/// number of the wind, which blows along both axes: at 1 the operator is as far from symmetric as
/// central differences allow.
fn convection_diffusion(m: usize, peclet: f64) -> Csr {
    let weights = [-1.0 - peclet, -1.0 + peclet, -1.0 - peclet, -1.0 + peclet];
    from_rows((0..m * m).map(|point| {
        let mut row = vec![(point, 4.0)];
        row.extend(neighbours(m, point).into_iter().zip(weights).filter_map(|(to, weight)| Some((to?, weight))));
        row
    }))
}

/// `-Laplace u - k^2 u` on an m by m grid, `shift = (k h)^2`: a few eigenvalues are negative.
fn helmholtz(m: usize, shift: f64) -> Csr {
    from_rows((0..m * m).map(|point| {
        let mut row = vec![(point, 4.0 - shift)];
        row.extend(neighbours(m, point).into_iter().flatten().map(|to| (to, -1.0)));
        row
    }))
}

/// The Laplacian of an m by m grid with Neumann boundaries.
fn neumann(m: usize) -> Csr {
    from_rows((0..m * m).map(|point| {
        let near: Vec<usize> = neighbours(m, point).into_iter().flatten().collect();
        let mut row = vec![(point, near.len() as f64)];
        row.extend(near.into_iter().map(|to| (to, -1.0)));
        row
    }))
}

/// The Laplacian of a ring of n vertices with random weights and a few chords.
fn ring(n: usize) -> Csr {
    let weight = |edge: usize| 1.0 + random_value(11, edge as u64).abs();
    let mut rows: Vec<Vec<(usize, f64)>> = vec![Vec::new(); n];
    let mut join = |a: usize, b: usize, w: f64| {
        rows[a].push((b, -w));
        rows[b].push((a, -w));
    };
    (0..n).for_each(|vertex| join(vertex, (vertex + 1) % n, weight(vertex)));
    (0..n / 2).step_by(7).for_each(|vertex| join(vertex, vertex + n / 2, 0.1 * weight(n + vertex)));
    for (vertex, row) in rows.iter_mut().enumerate() {
        let degree = -row.iter().map(|(_, value)| value).sum::<f64>();
        row.push((vertex, degree));
    }
    from_rows(rows.into_iter())
}
