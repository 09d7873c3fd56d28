//! Iterations like those of CG on a grid.

use crate::vectors::Written;

/// Bytes of x, r and p together.
const STATE_BYTES: usize = 512 << 20;
/// Values of one vector.
pub(crate) const LEN: usize = STATE_BYTES / 3 / size_of::<f64>();
/// Distance of neighbours in the second and the third direction of the grid.
const STRIDES: [usize; 2] = [280, 280 * 280];

/// x, r and p of a solver that is never done, in the order in which it writes them.
pub(crate) struct Iterated<V> {
    pub(crate) vectors: [V; 3],
    q: Vec<f64>,
    threads: usize,
}

impl<V: Written> Iterated<V> {
    pub(crate) fn new(mut vectors: [V; 3], threads: usize) -> Self {
        let ones = vec![1.0; LEN];
        vectors.iter_mut().for_each(|vector| vector.update(threads, &ones, |_, one| one));
        Self { vectors, q: ones, threads }
    }

    /// One iteration: five passes, of which three write what is saved.
    pub(crate) fn iterate(&mut self) {
        let Self { vectors: [x, r, p], q, threads } = self;
        // q = A p
        stencil(*threads, p, q);
        // x = x + alpha p
        x.update(*threads, p, |x, p| x + 1e-3 * p);
        // r = r - alpha q
        r.update(*threads, q, |r, q| r - 1e-3 * q);
        // beta = r . r
        let beta = 0.5 / (1.0 + std::hint::black_box(r.iter().fold(0.0, |sum, r| sum + r * r)));
        // p = r + beta p
        p.update(*threads, r, |p, r| r + beta * p);
    }
}

/// `q = A p` for a stencil of seven points; the ends of the grid are left out.
fn stencil(threads: usize, p: &[f64], q: &mut [f64]) {
    let [row, plane] = STRIDES;
    let rows = LEN.div_ceil(threads);
    std::thread::scope(|scope| {
        for (part, q) in q.chunks_mut(rows).enumerate() {
            let work = move || {
                let first = part * rows;
                for (i, q) in (first..first + q.len()).zip(q).filter(|(i, _)| (plane..LEN - plane).contains(i)) {
                    let neighbours = p[i - 1] + p[i + 1] + p[i - row] + p[i + row] + p[i - plane] + p[i + plane];
                    *q = 6.0 * p[i] - neighbours;
                }
            };
            if part + 1 == threads { work() } else { drop(scope.spawn(work)) }
        }
    });
}
