//! The host's space with notes: which vectors each pass writes.
//!
//! [`TracedSpace`] passes every call on to the space of [`System`] and records the vectors that it
//! wrote: all rows, from first to last. Methods in it are unchanged.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use recoup::core::{Borrowed, BorrowedMut, ExactSum, SolveError};
use recoup::solvers::{
    CgPasses, DeflatedParts, GmresPasses, JacobiPasses, PreconditionedResidual, Preconditioner, Space, System, Vector,
};

use crate::trace::{KernelWork, Recorder};

/// Where the vectors lie, and what was written.
#[derive(Default)]
pub(crate) struct TracedMemory {
    pub(crate) recorder: Recorder,
    /// Place of each vector in the memory of the device, by its address here.
    places: BTreeMap<usize, Range<u64>>,
}

impl TracedMemory {
    /// Memory in which this was allocated already.
    pub(crate) fn new(recorder: Recorder) -> Self {
        Self { recorder, ..Self::default() }
    }

    /// Returns where values lie in the memory of the device; `None` for values of no vector.
    pub(crate) fn place(&self, values: &[f64]) -> Option<Range<u64>> {
        self.places.get(&values.as_ptr().addr()).cloned()
    }
}

/// The space of the host, with notes.
#[derive(Clone, Copy)]
pub(crate) struct TracedSpace<'a> {
    pub(crate) system: System<'a>,
    pub(crate) memory: &'a RefCell<TracedMemory>,
}

impl TracedSpace<'_> {
    fn vector_bytes(&self) -> f64 {
        8.0 * self.system.a.rows() as f64
    }

    fn matrix_bytes(&self) -> f64 {
        self.system.a.bytes() as f64
    }

    /// Records a pass over `n_vectors`, read or written, that writes these.
    fn note(&self, n_vectors: usize, other_bytes: f64, written: &[&Vector]) {
        let mut memory = self.memory.borrow_mut();
        let places: Vec<Range<u64>> = written.iter().filter_map(|vector| memory.place(vector)).collect();
        assert_eq!(places.len(), written.len(), "every vector comes from `zeros`");
        let moved_bytes = self.vector_bytes().mul_add(n_vectors as f64, other_bytes);
        // Two operations for each value that is read.
        memory.recorder.stream(KernelWork { moved_bytes, flops: moved_bytes / 4.0 }, &places);
    }
}

/// Passes of the host's space with notes: vectors that are read or written, other bytes, and the
/// vectors that are written.
macro_rules! traced {
    ($self:ident: $($pass:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?,
      $vectors:expr, $other:expr, [$($written:ident),*];)*) => {
        $(
            fn $pass(&$self, $($argument: $kind),*) -> traced!(@ $($result)?) {
                $self.note($vectors, $other, &[$($written),*]);
                $self.system.$pass($($argument),*)
            }
        )*
    };
    (@) => { Result<(), SolveError> };
    (@ $result:ty) => { Result<$result, SolveError> };
}

impl Space for TracedSpace<'_> {
    type Vector = Vector;
    type Inverse<'m> = &'m dyn Preconditioner;

    fn host(&self) -> &System<'_> {
        &self.system
    }

    fn inverse<'m>(&self, preconditioner: &'m dyn Preconditioner) -> Result<Self::Inverse<'m>, SolveError> {
        self.system.inverse(preconditioner)
    }

    fn zeros(&self, slot: usize) -> Result<Vector, SolveError> {
        let vector = self.system.zeros(slot)?;
        let mut memory = self.memory.borrow_mut();
        let place = memory.recorder.allocate(8 * vector.len() as u64);
        memory.places.insert(vector.as_ptr().addr(), place);
        Ok(vector)
    }

    fn fetch(&self, source: &Vector, target: &mut [f64]) -> Result<(), SolveError> {
        self.system.fetch(source, target)
    }

    fn lend(vector: &Vector) -> Borrowed<'_> {
        <System<'_> as Space>::lend(vector)
    }

    fn lend_mut(vector: &mut Vector) -> BorrowedMut<'_> {
        <System<'_> as Space>::lend_mut(vector)
    }

    traced! { self:
        load(source: &[f64], target: &mut Vector), 1, 0.0, [target];
        multiply(x: &Vector, y: &mut Vector), 2, self.matrix_bytes(), [y];
        multiply_dot(x: &Vector, y: &mut Vector) -> ExactSum, 2, self.matrix_bytes(), [y];
        residual(x: &Vector, r: &mut Vector) -> ExactSum, 3, self.matrix_bytes(), [r];
        precondition(inverse: &Self::Inverse<'_>, r: &Vector, z: &mut Vector), 2, 0.0, [z];
        clear(target: &mut Vector), 1, 0.0, [target];
        copy(x: &Vector, target: &mut Vector), 2, 0.0, [target];
        axpy(alpha: f64, x: &Vector, y: &mut Vector), 3, 0.0, [y];
        xpay(x: &Vector, beta: f64, y: &mut Vector), 3, 0.0, [y];
        divide(divisor: f64, y: &mut Vector), 2, 0.0, [y];
        dot(x: &Vector, y: &Vector) -> ExactSum, 2, 0.0, [];
        multi_dot(w: &Vector, basis: &[Vector], h: &mut [ExactSum]), 1 + basis.len(), 0.0, [];
        multi_axpy(alpha: f64, basis: &[Vector], h: &[f64], w: &mut Vector), 2 + basis.len(), 0.0, [w];
        multi_axpy_norm(alpha: f64, basis: &[Vector], h: &[f64], w: &mut Vector) -> ExactSum,
            2 + basis.len(), 0.0, [w];
    }
}

/// What CG needs of `M^-1 r`.
type Residual<'r, 'm> = PreconditionedResidual<'r, Vector, &'m dyn Preconditioner>;

impl CgPasses for TracedSpace<'_> {
    traced! { self:
        residual_step(alpha: f64, q: &Vector, inverse: &Self::Inverse<'_>, u: &[Vector], r: &mut Vector,
            sums: &mut [ExactSum]), 3 + u.len(), 0.0, [r];
        iterate_step(alpha: f64, beta: f64, z: &Residual<'_, '_>, deflated: &DeflatedParts<'_, Vector>,
            x: &mut Vector, p: &mut Vector), 5 + deflated.directions.len(), 0.0, [x, p];
        first_direction(z: &Residual<'_, '_>, deflated: &DeflatedParts<'_, Vector>, p: &mut Vector),
            2 + deflated.directions.len(), 0.0, [p];
        preconditioned_dot(z: &Residual<'_, '_>) -> ExactSum, 2, 0.0, [];
    }
}

impl GmresPasses for TracedSpace<'_> {
    fn reserve_sums(&self, sums: usize) -> Result<(), SolveError> {
        self.system.reserve_sums(sums)
    }

    traced! { self:
        scaled_copy(alpha: f64, x: &Vector, target: &mut Vector), 2, 0.0, [target];
    }

    fn combine(&self, columns: &[Vec<f64>], basis: &mut [Vector]) -> Result<(), SolveError> {
        let written: Vec<&Vector> = basis.iter().take(columns.len()).collect();
        self.note(basis.len() + columns.len(), 0.0, &written);
        self.system.combine(columns, basis)
    }
}

impl JacobiPasses for TracedSpace<'_> {
    fn sweep(
        &self,
        inverse_diagonal: &Vector,
        omega: f64,
        x: &mut Vector,
        room: &mut Vector,
    ) -> Result<ExactSum, SolveError> {
        self.note(4, self.matrix_bytes(), &[room]);
        let squared = self.system.sweep(inverse_diagonal, omega, x, room)?;
        if self.system.a.sweeps_in_place() {
            // A device has no order of rows: it writes the next iterate into the room, and both
            // change roles. The host's sweep has left the vectors where they were.
            let places = &mut self.memory.borrow_mut().places;
            let of_x = places.remove(&x.as_ptr().addr());
            let of_room = places.remove(&room.as_ptr().addr());
            places.extend(of_x.map(|place| (room.as_ptr().addr(), place)));
            places.extend(of_room.map(|place| (x.as_ptr().addr(), place)));
        }
        Ok(squared)
    }
}
