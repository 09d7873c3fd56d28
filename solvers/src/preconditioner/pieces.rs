//! Rows of a factored matrix in pieces that threads share, with all entries of A.
//!
//! Pieces are contiguous rows, eliminated one after the other: the first from its first row to its
//! last, the second from its last to its first, and so on in turn. So each piece waits for another
//! at one end only: two neighbours begin at the rows between them, or meet there (twisted and
//! vdV orders: H. A. van der Vorst 1987, doi 10.1016/0167-8191(87)90006-1; why they cost few
//! iterations: I. S. Duff, G. A. Meurant 1989, doi 10.1007/BF01932738). The number of pieces
//! follows from A alone: bits do not depend on threads.
//!
//! A solve is five passes of all pieces: odd pieces begin; even ones go down their rows, and odd
//! ones as far as they can; odd ones end, and begin the way up; and so on. Values that a neighbour
//! needs are handed over in a halo, between passes.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::order::{CoupledEntry, is_turned};
use crate::Pool;
use crate::kernels::simd::reduce_by_products_block;

/// The two ways of a solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SolveWay {
    /// With L: pieces wait for those before them.
    Down,
    /// With U: pieces wait for those behind them.
    Up,
}

/// Rows of a piece, solved in steps of a row or a few: down all steps, then up all steps.
pub trait PieceSteps: Send + Sync {
    /// Number of rows.
    fn rows(&self) -> usize;

    /// Number of steps on one way.
    fn steps(&self, way: SolveWay) -> usize;

    /// The rows of a step.
    fn rows_at(&self, way: SolveWay, step: usize) -> Range<usize>;

    /// Begins these rows of z on one way, so that what couples them with other pieces can be taken
    /// off; their steps follow, and know that.
    fn begin(&self, way: SolveWay, rows: Range<usize>, r: &[f64], z: &mut [f64]);

    /// Computes the rows of z of a step on the way down, from those of r, or of z where they were
    /// begun, and the z of steps before.
    fn step_down(&self, step: usize, is_begun: bool, r: &[f64], z: &mut [f64]);

    /// Computes the rows of z of a step on the way up, from their values so far.
    fn step_up(&self, step: usize, is_begun: bool, z: &mut [f64]);

    /// Bytes that are kept.
    fn bytes(&self) -> u64;

    /// Bytes that are read on both ways.
    fn bytes_per_apply(&self) -> u64;
}

/// The entries of rows of a piece in columns of the piece before or behind, in strips: of rows in
/// a row, with one entry each, whose values in the halo lie in a row, too.
#[derive(Debug, Default)]
struct Coupling {
    strips: Vec<Strip>,
    values: Vec<f64>,
}

/// Some rows, and where the values that they are coupled with begin in the halo.
#[derive(Clone, Copy, Debug)]
struct Strip {
    row: usize,
    rows: usize,
    place: usize,
}

impl Coupling {
    /// The entries of a piece that begins at `first`; the halo has the columns from `column` on at
    /// `place`.
    fn new(entries: &[CoupledEntry], first: usize, column: usize, place: usize) -> Self {
        let mut made = Self::default();
        let mut entries = entries.to_vec();
        entries.sort_by_key(|entry| (entry.column.wrapping_sub(entry.row), entry.row));
        for CoupledEntry { row, column: of, value } in entries {
            let new = Strip { row: row - first, rows: 1, place: place + of - column };
            match made.strips.last_mut() {
                Some(last) if [last.row, last.place].map(|at| at + last.rows) == [new.row, new.place] => last.rows += 1,
                _ => made.strips.push(new),
            }
            made.values.push(value);
        }
        made
    }

    /// The rows that are coupled, and those between.
    fn rows(&self) -> Range<usize> {
        let first = self.strips.iter().map(|strip| strip.row).min().unwrap_or(0);
        first..self.strips.iter().map(|strip| strip.row + strip.rows).max().unwrap_or(0)
    }

    /// Takes what couples the rows of z with others off.
    fn take_off(&self, halo: &[f64], z: &mut [f64]) {
        let mut values = &self.values[..];
        for strip in &self.strips {
            let (own, others) = values.split_at(strip.rows);
            reduce_by_products_block(own, &halo[strip.place..], &mut z[strip.row..strip.row + strip.rows]);
            values = others;
        }
    }

    fn bytes(&self) -> u64 {
        (size_of::<Strip>() * self.strips.len() + 8 * self.values.len()) as u64
    }
}

/// Rows whose values a neighbour needs, and where they lie in the halo.
#[derive(Clone, Debug, Default)]
struct Export {
    rows: Range<usize>,
    place: usize,
}

/// One way of a piece, and what it has to do with its neighbours.
#[derive(Debug)]
struct PieceWay {
    /// Entries in columns that a neighbour solves before.
    coupling: Coupling,
    /// The steps with such rows, and their rows.
    coupled: Range<usize>,
    coupled_rows: Range<usize>,
    /// Rows that a neighbour waits for, and the first step behind them.
    export: Export,
    sent: usize,
    steps: usize,
}

/// A piece: its rows, and both ways, the one down first.
#[derive(Debug)]
struct Piece<P> {
    sweeps: P,
    /// Its rows are eliminated from the last to the first.
    is_turned: bool,
    ways: [PieceWay; 2],
}

/// The passes of a solve, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// Odd pieces begin the way down.
    Begin,
    /// All pieces go down.
    Down,
    /// Odd pieces end the way down and begin the way up.
    Turn,
    /// All pieces go up.
    Up,
    /// Odd pieces end the way up.
    End,
    /// All pieces go down and up: nothing couples them.
    Whole,
}

impl PieceWay {
    fn new<P: PieceSteps>(sweeps: &P, way: SolveWay, coupling: Coupling, export: Export) -> Self {
        let steps = sweeps.steps(way);
        let touching = |rows: &Range<usize>| {
            let touches = |step: &usize| {
                let of = sweeps.rows_at(way, *step);
                of.start < rows.end && rows.start < of.end
            };
            let first = (0..steps).find(touches).unwrap_or(steps);
            first..(first..steps).rev().find(touches).map_or(first, |step| step + 1)
        };
        let coupled = touching(&coupling.rows());
        let sent = touching(&export.rows).end;
        let sent = if export.rows.is_empty() { 0 } else { sent };
        let all = coupled.clone().map(|step| sweeps.rows_at(way, step));
        let coupled_rows = all.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0);
        Self { coupling, coupled, coupled_rows, export, sent, steps }
    }
}

impl<P: PieceSteps> Piece<P> {
    /// The steps of a pass on both ways.
    fn steps_of(&self, pass: Pass) -> [Range<usize>; 2] {
        let [down, up] = &self.ways;
        let [begun, met] = if self.is_turned { [down.sent, down.coupled.start] } else { [0, down.steps] };
        let [begun_up, met_up] = if self.is_turned { [up.sent, up.coupled.start] } else { [0, up.steps] };
        match pass {
            Pass::Begin => [0..begun, 0..0],
            Pass::Down => [begun..met, 0..0],
            Pass::Turn => [met..down.steps, 0..begun_up],
            Pass::Up => [0..0, begun_up..met_up],
            Pass::End => [0..0, met_up..up.steps],
            Pass::Whole => [0..down.steps, 0..up.steps],
        }
    }
}

/// The rows of a piece in a pass.
struct PieceTurn<'a, P> {
    piece: &'a Piece<P>,
    steps: [Range<usize>; 2],
    r: &'a [f64],
    z: &'a mut [f64],
}

impl<P: PieceSteps> PieceTurn<'_, P> {
    /// Begins the rows that are coupled with those of a neighbour, on a way that comes to them.
    fn begin(&mut self, way: SolveWay, halo: &[f64]) {
        let PieceWay { coupling, coupled, coupled_rows, .. } = &self.piece.ways[way as usize];
        if !coupled.is_empty() && self.steps[way as usize].contains(&coupled.start) {
            self.piece.sweeps.begin(way, coupled_rows.clone(), self.r, self.z);
            coupling.take_off(halo, self.z);
        }
    }

    /// Takes the steps of the pass.
    fn take(mut self, halo: &[f64]) {
        for way in [SolveWay::Down, SolveWay::Up] {
            self.begin(way, halo);
            let coupled = &self.piece.ways[way as usize].coupled;
            for step in self.steps[way as usize].clone() {
                let is_begun = coupled.contains(&step);
                match way {
                    SolveWay::Down => self.piece.sweeps.step_down(step, is_begun, self.r, self.z),
                    SolveWay::Up => self.piece.sweeps.step_up(step, is_begun, self.z),
                }
            }
        }
    }
}

/// All pieces of a matrix, or of several along a diagonal.
#[derive(Debug)]
pub struct Pieces<P> {
    pieces: Vec<Piece<P>>,
    /// First row of each piece, and the number of rows.
    starts: Vec<usize>,
    /// Values that pieces hand over.
    halo: Mutex<Vec<f64>>,
}

impl<P: PieceSteps> Pieces<P> {
    /// All rows in one piece.
    pub(super) fn whole(sweeps: P) -> Self {
        let starts = vec![0, sweeps.rows()];
        Self::coupled(vec![(sweeps, [vec![], vec![]])], starts)
    }

    /// Pieces that begin at these rows, and what couples each, on the way down with the one before
    /// it, and on the way up with the one behind.
    pub(super) fn coupled(made: Vec<(P, [Vec<CoupledEntry>; 2])>, starts: Vec<usize>) -> Self {
        let mut halo_len = 0;
        let mut parts = [0, 1].map(|way| {
            let mut couplings = Vec::with_capacity(made.len());
            let mut exports = vec![Export::default(); made.len()];
            for (piece, entries) in made.iter().map(|(_, entries)| &entries[way]).enumerate() {
                let columns = || entries.iter().map(|entry| entry.column);
                let wanted = columns().min().unwrap_or(0)..columns().max().map_or(0, |column| column + 1);
                couplings.push(Coupling::new(entries, starts[piece], wanted.start, halo_len));
                if let Some(first) =
                    starts.iter().rposition(|&start| start <= wanted.start).filter(|_| !wanted.is_empty())
                {
                    let [from, end] = [wanted.start, wanted.end].map(|row| row - starts[first]);
                    exports[first] = Export { rows: from..end, place: halo_len };
                }
                halo_len += wanted.len();
            }
            couplings.into_iter().zip(exports)
        });
        let made = made.into_iter().enumerate().map(|(index, (sweeps, _))| {
            let [down, up] = &mut parts;
            let way = |way, part: Option<(Coupling, Export)>| {
                let (coupling, export) = part.unwrap_or_default();
                PieceWay::new(&sweeps, way, coupling, export)
            };
            let ways = [way(SolveWay::Down, down.next()), way(SolveWay::Up, up.next())];
            Piece { ways, is_turned: is_turned(index), sweeps }
        });
        Self { pieces: made.collect(), starts, halo: Mutex::new(vec![0.0; halo_len]) }
    }

    /// The pieces of several matrices, one behind the other.
    pub(super) fn joined(all: impl IntoIterator<Item = Self>) -> Self {
        let mut joined = Self { pieces: vec![], starts: vec![0], halo: Mutex::default() };
        for Self { mut pieces, starts, mut halo } in all {
            let to = joined.halo.get_mut().unwrap_or_else(PoisonError::into_inner);
            for way in pieces.iter_mut().flat_map(|piece| &mut piece.ways) {
                way.export.place += to.len();
                way.coupling.strips.iter_mut().for_each(|strip| strip.place += to.len());
            }
            to.append(halo.get_mut().unwrap_or_else(PoisonError::into_inner));
            let first = joined.rows();
            joined.pieces.extend(pieces);
            joined.starts.extend(starts[1..].iter().map(|start| first + start));
        }
        joined
    }

    /// Rows of all pieces.
    fn rows(&self) -> usize {
        self.starts[self.pieces.len()]
    }

    /// `z = M^-1 r`.
    pub(super) fn apply(&self, pool: &Pool, r: &[f64], z: &mut [f64]) {
        let mut halo = self.halo.lock().unwrap_or_else(PoisonError::into_inner);
        if halo.is_empty() {
            return self.pass(pool, Pass::Whole, &halo, r, z);
        }
        for pass in [Pass::Begin, Pass::Down, Pass::Turn, Pass::Up, Pass::End] {
            self.pass(pool, pass, &halo, r, z);
            self.hand_over(pass, z, &mut halo);
        }
    }

    /// Takes the steps of a pass of all pieces.
    fn pass(&self, pool: &Pool, pass: Pass, halo: &[f64], r: &[f64], z: &mut [f64]) {
        pool.for_pieces(&self.starts, z, |run, mut z| {
            for index in run {
                let piece = &self.pieces[index];
                let rows = self.starts[index]..self.starts[index + 1];
                let (own, others) = z.split_at_mut(rows.len());
                z = others;
                let steps = piece.steps_of(pass);
                PieceTurn { piece, steps, r: &r[rows], z: own }.take(halo);
            }
        });
    }

    /// Puts values that neighbours wait for into the halo, after the pass that has made them.
    fn hand_over(&self, pass: Pass, z: &[f64], halo: &mut [f64]) {
        for (index, piece) in self.pieces.iter().enumerate() {
            for (steps, way) in piece.steps_of(pass).into_iter().zip(&piece.ways) {
                if steps.start < way.sent && way.sent <= steps.end {
                    let Export { rows, place } = &way.export;
                    let first = self.starts[index];
                    let values = &z[first + rows.start..first + rows.end];
                    halo[*place..place + values.len()].copy_from_slice(values);
                }
            }
        }
    }

    /// Bytes that are kept.
    pub(super) fn bytes(&self) -> u64 {
        self.coupling_bytes() + self.pieces.iter().map(|piece| piece.sweeps.bytes()).sum::<u64>()
    }

    /// Bytes that a solve reads.
    pub(super) fn bytes_per_apply(&self) -> u64 {
        self.coupling_bytes() + self.pieces.iter().map(|piece| piece.sweeps.bytes_per_apply()).sum::<u64>()
    }

    fn coupling_bytes(&self) -> u64 {
        self.pieces.iter().flat_map(|piece| &piece.ways).map(|way| way.coupling.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use recoup_core::SolveError;

    use super::*;
    use crate::preconditioner::order::{PieceOrder, cut};
    use crate::{Csr, Ic0, Ilu0, Preconditioner, RowSweeps, random_value};

    /// The 7-point Laplacian, and with flow along the last direction.
    fn matrices(n: usize) -> [Csr; 2] {
        let a = Csr::poisson3d(n);
        let flowing = a.mapped(|row, column, value| value + 0.4 * (column as f64 - row as f64).signum()).unwrap();
        [a, flowing]
    }

    fn made(inner: &str, a: &Csr, order: PieceOrder) -> Result<Box<dyn Preconditioner>, SolveError> {
        Ok(match inner {
            "ic0" => Box::new(Ic0::in_order(a, order)?),
            _ => Box::new(Ilu0::in_order(a, order)?),
        })
    }

    fn random(n: usize) -> Vec<f64> {
        (0..n as u64).map(|row| random_value(5, row)).collect()
    }

    /// The matrix whose rows stand in the order.
    fn reordered(a: &Csr, order: &PieceOrder) -> Csr {
        let mut starts = vec![0];
        let mut all = Vec::new();
        let mut entries = Vec::new();
        for position in 0..a.n() {
            order.fetch(a, order.piece(position), position, &mut entries);
            all.append(&mut entries);
            starts.push(all.len());
        }
        let (columns, values) = all.into_iter().map(|(column, value)| (column as u32, value)).unzip();
        Csr::new(starts, columns, values).unwrap()
    }

    /// Pieces of the same factors as one piece of the reordered matrix, on any number of threads.
    #[test]
    fn pieces_are_the_factors_of_the_reordered_matrix_with_the_same_bits_on_any_number_of_threads() {
        for a in matrices(12) {
            let n = a.n();
            let r = random(n);
            for inner in ["ic0", "ilu0"] {
                if inner == "ic0" && a != Csr::poisson3d(12) {
                    continue;
                }
                for pieces in [1, 2, 3, 4] {
                    let order = || PieceOrder { starts: cut(n, 144, pieces) };
                    let whole = made(inner, &reordered(&a, &order()), PieceOrder { starts: vec![0, n] }).unwrap();
                    let turned = |x: &[f64]| (0..n).map(|row| x[order().turned(row)]).collect::<Vec<f64>>();
                    let mut expected = vec![0.0; n];
                    whole.apply(&Pool::new(1), &turned(&r), &mut expected).unwrap();
                    let m = made(inner, &a, order()).unwrap();
                    let solved = |threads| {
                        let mut z = vec![f64::NAN; n];
                        m.apply(&Pool::new(threads), &r, &mut z).unwrap();
                        z
                    };
                    let alone = solved(1);
                    for (z, expected) in alone.iter().zip(turned(&expected)) {
                        // M is an M-matrix whose inverse sums to below 100 in each row; 8 products
                        // below 10 of each row in each of two solves.
                        assert!((z - expected).abs() <= 100.0 * 160.0 * f64::EPSILON, "{inner}: {z} {expected}");
                    }
                    for threads in 2..=8 {
                        let same = solved(threads).iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits());
                        assert!(same, "{inner}, {pieces} pieces on {threads} threads");
                    }
                }
            }
        }
    }

    /// A piece behind blocks of one piece is the first of its own block.
    #[test]
    fn joined_blocks_are_solved_as_each_alone() {
        let r = random(12 * 144);
        let of =
            |pieces| Ilu0::in_order(&Csr::poisson3d(12), PieceOrder { starts: cut(12 * 144, 144, pieces) }).unwrap();
        let all = [1, 2, 3, 1, 2];
        let joined = Pieces::joined(all.map(|pieces| of(pieces).into_pieces()));
        let mut found = vec![0.0; all.len() * r.len()];
        joined.apply(&Pool::new(2), &r.repeat(all.len()), &mut found);
        for (pieces, found) in all.into_iter().zip(found.chunks(r.len())) {
            let mut alone = vec![0.0; r.len()];
            of(pieces).apply(&Pool::new(1), &r, &mut alone).unwrap();
            assert!(found.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits()), "{pieces} pieces");
        }
    }

    /// Rows of two pieces that need each other's at both ends, or those of a third, would
    /// never be solved.
    #[test]
    fn neighbours_wait_for_other_rows_than_they_are_waited_for() {
        for a in matrices(33) {
            let pieces = Ilu0::new(&a).unwrap().into_pieces();
            assert_eq!(pieces.pieces.len(), 8);
            for piece in pieces.pieces.iter().skip(1).step_by(2) {
                assert!(piece.ways.iter().all(|way| way.sent <= way.coupled.start));
            }
        }
    }
}
