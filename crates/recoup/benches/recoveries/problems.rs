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
    /// Solved with the diagonal as preconditioner.
    pub(crate) is_scaled: bool,
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

/// Further problems for `auto`, where restarts are dear or the residual falls in steps.
pub(crate) fn slow_starters() -> Vec<Problem> {
    let spd = |name, matrix| problem(name, Kind::Spd, matrix);
    let unscaled = |name, matrix| Problem { is_scaled: false, ..problem(name, Kind::Spd, matrix) };
    vec![
        unscaled("tying-24", tied_sheets(24)),
        spd("scaled-tying-24", tied_sheets(24)),
        unscaled("inclusions-36", inclusions(36)),
        spd("scaled-inclusions-36", inclusions(36)),
        spd("anisotropic-36", anisotropic(36)),
        spd("plate-20", plate(20)),
        spd("tree-1500", tree(1500)),
        problem("saddle-18", Kind::Nonsymmetric, saddle(18)),
        problem("shear-36", Kind::Nonsymmetric, shear(36)),
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
    Problem { name, kind, matrix, rhs, is_scaled: true }
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

/// The Laplacian of a network of conductors: two ends and a conductance each, and what leads from
/// each vertex to the ground.
fn network(edges: &[(usize, usize, f64)], ground: &[f64]) -> Csr {
    let mut rows: Vec<Vec<(usize, f64)>> = vec![Vec::new(); ground.len()];
    for &(a, b, weight) in edges {
        rows[a].push((b, -weight));
        rows[b].push((a, -weight));
    }
    for (vertex, row) in rows.iter_mut().enumerate() {
        let degree = -row.iter().map(|(_, value)| value).sum::<f64>();
        row.push((vertex, degree + ground[vertex]));
    }
    from_rows(rows.into_iter())
}

/// The Laplacian of a ring of n vertices with random weights and a few chords.
fn ring(n: usize) -> Csr {
    let weight = |edge: usize| 1.0 + random_value(11, edge as u64).abs();
    let ring = (0..n).map(|vertex| (vertex, (vertex + 1) % n, weight(vertex)));
    let chords = (0..n / 2).step_by(7).map(|vertex| (vertex, vertex + n / 2, 0.1 * weight(n + vertex)));
    network(&ring.chain(chords).collect::<Vec<_>>(), &vec![0.0; n])
}

/// A random tree of n vertices with conductances over two decades, grounded at its root.
fn tree(n: usize) -> Csr {
    let random = |seed, vertex: usize| random_value(seed, vertex as u64).abs();
    let parent = |vertex: usize| ((random(13, vertex) * vertex as f64) as usize).min(vertex - 1);
    let edges = (1..n).map(|vertex| (parent(vertex), vertex, 100f64.powf(random(17, vertex))));
    let ground: Vec<f64> = (0..n).map(|vertex| f64::from(u8::from(vertex == 0))).collect();
    network(&edges.collect::<Vec<_>>(), &ground)
}

/// The edges of an m by m grid whose points begin at `first`, with the conductance of each.
fn grid(m: usize, first: usize, conductance: impl Fn(usize, usize) -> f64) -> Vec<(usize, usize, f64)> {
    let edge = |a: usize, b: usize| (first + a, first + b, conductance(a, b));
    let edges = |point: usize| neighbours(m, point).into_iter().flatten().filter(move |&to| to > point);
    (0..m * m).flat_map(|point| edges(point).map(move |to| (point, to))).map(|(a, b)| edge(a, b)).collect()
}

/// What leads from the points of an m by m grid to a boundary of zeros.
fn boundary(m: usize) -> Vec<f64> {
    (0..m * m).map(|point| neighbours(m, point).into_iter().filter(Option::is_none).count() as f64).collect()
}

/// Two membranes of m by m points, tied along a line by penalties over four decades: contact.
fn tied_sheets(m: usize) -> Csr {
    let springs = (0..m).map(|j| ((m - 1) * m + j, m * m + j, 10f64.powf(1.0 + 4.0 * j as f64 / (m - 1) as f64)));
    let edges = [grid(m, 0, |_, _| 1.0), grid(m, m * m, |_, _| 1.0), springs.collect()].concat();
    network(&edges, &[boundary(m), boundary(m)].concat())
}

/// Diffusion on an m by m grid with nine square inclusions that conduct 10^4 times as well.
fn inclusions(m: usize) -> Csr {
    let is_inside = |at: usize| (at % (m / 3)) * 4 / m == 0 && (at % (m / 3)) > m / 12;
    let conducts = |point: usize| if is_inside(point % m) && is_inside(point / m) { 1e4 } else { 1.0 };
    network(&grid(m, 0, |a, b| f64::min(conducts(a), conducts(b))), &boundary(m))
}

/// Diffusion on an m by m grid, a hundred times slower along the second axis.
fn anisotropic(m: usize) -> Csr {
    let ground: Vec<f64> = boundary(m);
    network(
        &grid(m, 0, |a, b| if b - a == 1 { 1.0 } else { 0.01 }),
        &ground.iter().map(|g| 0.01 * g).collect::<Vec<_>>(),
    )
}

/// A bent plate, the square of the Laplacian on an m by m grid.
fn plate(m: usize) -> Csr {
    let laplacian = network(&grid(m, 0, |_, _| 1.0), &boundary(m));
    from_rows((0..m * m).map(|point| {
        let mut row: Vec<(usize, f64)> = Vec::new();
        let (columns, values) = laplacian.row(point);
        for (&middle, factor) in columns.iter().zip(values) {
            let (columns, values) = laplacian.row(middle as usize);
            for (&column, value) in columns.iter().zip(values) {
                match row.iter_mut().find(|(other, _)| *other == column as usize) {
                    Some((_, sum)) => *sum += factor * value,
                    None => row.push((column as usize, factor * value)),
                }
            }
        }
        row
    }))
}

/// A Stokes flow on an m by m grid, `[A B; -B' C]`: two velocities, and a pressure that is held
/// together by a small part C of its Laplacian.
fn saddle(m: usize) -> Csr {
    const STABILISATION: f64 = 0.05;
    const GRADIENT: [f64; 4] = [-0.5, 0.5, -0.5, 0.5];
    let points = m * m;
    from_rows((0..3 * points).map(|row| {
        let unknown = row / points;
        let point = row % points;
        let part = if unknown == 2 { STABILISATION } else { 1.0 };
        let mut entries = vec![(row, 4.0 * part)];
        for (direction, to) in neighbours(m, point).into_iter().enumerate() {
            let Some(to) = to else { continue };
            entries.push((unknown * points + to, -part));
            let axis = direction / 2;
            // A velocity meets the gradient along its axis, the pressure both divergences.
            match unknown {
                2 => entries.push((axis * points + to, GRADIENT[direction])),
                _ if unknown == axis => entries.push((2 * points + to, GRADIENT[direction])),
                _ => {}
            }
        }
        entries
    }))
}

/// Convection and diffusion on an m by m grid in a wind along the first axis that grows with the
/// second, by upwind differences.
fn shear(m: usize) -> Csr {
    from_rows((0..m * m).map(|point| {
        let wind = 4.0 * (point / m) as f64 / m as f64;
        let weights = [1.0 + wind, 1.0, 1.0, 1.0];
        let mut row = vec![(point, 4.0 + wind)];
        row.extend(neighbours(m, point).into_iter().zip(weights).filter_map(|(to, weight)| Some((to?, -weight))));
        row
    }))
}
