//! Deflation: directions a method keeps A-orthogonal to all that follow.
//!
//! A restarted CG forgets every direction it has searched. A direction saved before the failure
//! gives the most useful one back: the iterate is made optimal over it, and each new direction is
//! kept A-orthogonal to it (M. J. D. Powell 1977, doi 10.1007/BF01593790; E. M. L. Beale 1972; as
//! deflation Y. Saad, M. Yeung, J. Erhel, F. Guyomarc'h 2000, doi 10.1137/S1064829598339761). Any
//! direction is valid, however inaccurate: it costs two vectors and 16 bytes per row and iteration,
//! never the convergence.

use std::ops::Range;

use recoup_core::SolveError;

use crate::kernels::simd::{axpy_block, dot_block};
use crate::kernels::vector::{axpy, multi_axpy, multi_dot};
use crate::{Pool, Preconditioner, System, Vector};

/// Largest number of directions kept; the oldest makes room.
pub const DIRECTIONS_MAX: usize = 8;

/// Names of the directions as variables.
pub(crate) const NAMES: [&str; DIRECTIONS_MAX] = ["w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"];

/// A direction whose curvature falls below this part when the others are taken out of it adds
/// nothing.
const DEPENDENT: f64 = 1e-10;

/// Slot of `A w` of the first direction; the others go down from there.
const SLOT_OF_FIRST_IMAGE: usize = 15;

/// Slot of the direction at this position; its u has the next one.
fn slot_of_direction(index: usize) -> usize {
    2 * index
}

/// A-orthogonal directions w, and `u = M^-1 A w / (w . A w)` of each: `u . r` is what of w is in
/// `M^-1 r`.
#[derive(Debug, Default)]
pub(crate) struct Deflation {
    /// The directions w. [`Deflation::recompute_products`] comes after they are overwritten.
    pub(crate) directions: Vec<Vector>,
    u: Vec<Vector>,
    curvatures: Vec<f64>,
    /// `A w` of each, where it is kept.
    images: Option<Vec<Vector>>,
}

impl Deflation {
    /// Makes a deflation that keeps `A w` too, for [`Deflation::remove_from_product`].
    pub(crate) fn with_images() -> Self {
        Self { images: Some(Vec::new()), ..Self::default() }
    }

    /// Number of directions.
    pub(crate) fn len(&self) -> usize {
        self.directions.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.directions.is_empty()
    }

    /// Room for the directions among the variables of a version.
    pub(crate) fn make_room(&mut self, system: &System<'_>, saved: &[&str]) {
        let count = NAMES.iter().filter(|name| saved.contains(name)).count();
        self.directions = Vector::basis(system.pool, system.a.rows(), count);
        self.forget_products();
    }

    /// Forgets all but the directions themselves.
    fn forget_products(&mut self) {
        self.u.clear();
        self.curvatures.clear();
        self.images.iter_mut().for_each(Vec::clear);
    }

    /// Takes the directions as they are: the same bits as when they were taken up. One product
    /// each.
    pub(crate) fn recompute_products(
        &mut self,
        system: &System<'_>,
        preconditioner: &dyn Preconditioner,
        room: &mut [f64],
    ) -> Result<(), SolveError> {
        self.forget_products();
        for w in std::mem::take(&mut self.directions) {
            self.take_up(system, preconditioner, w, room)?;
        }
        Ok(())
    }

    /// Adds a direction, A-orthogonal to those there are; the oldest makes room. Two products. A
    /// direction without curvature of its own is not added.
    pub(crate) fn add(
        &mut self,
        system: &System<'_>,
        preconditioner: &dyn Preconditioner,
        direction: &[f64],
        room: &mut [f64],
    ) -> Result<(), SolveError> {
        if self.len() == DIRECTIONS_MAX {
            self.directions.remove(0);
            self.u.remove(0);
            self.curvatures.remove(0);
            self.images.iter_mut().for_each(|images| drop(images.remove(0)));
        }
        let mut w = Vector::copy_of(system.pool, direction, slot_of_direction(self.len()));
        let whole = curvature(system, &w, room)?;
        let mut parts = self.products(system, &self.directions, room)?;
        for (part, curvature) in parts.iter_mut().zip(&self.curvatures) {
            *part /= curvature;
        }
        multi_axpy(system.pool, -1.0, &self.directions, &parts[..self.len()], &mut w);
        if curvature(system, &w, room)? > DEPENDENT * whole {
            self.take_up(system, preconditioner, w, room)?;
        }
        Ok(())
    }

    /// Keeps w where it has curvature.
    fn take_up(
        &mut self,
        system: &System<'_>,
        preconditioner: &dyn Preconditioner,
        w: Vector,
        room: &mut [f64],
    ) -> Result<(), SolveError> {
        let curvature = curvature(system, &w, room)?;
        if !(curvature.is_normal() && curvature > 0.0) {
            return Ok(());
        }
        let mut u = Vector::zeros(system.pool, w.len(), slot_of_direction(self.len()) + 1);
        preconditioner.apply(system.pool, room, &mut u)?;
        system.pool.for_rows(w.len(), &mut u[..], |_, u| u.iter_mut().for_each(|u| *u /= curvature));
        if let Some(images) = &mut self.images {
            images.push(Vector::copy_of(system.pool, room, SLOT_OF_FIRST_IMAGE - self.directions.len()));
        }
        self.directions.push(w);
        self.u.push(u);
        self.curvatures.push(curvature);
        Ok(())
    }

    /// Makes x optimal over the directions: `x += sum_i (w_i . r / w_i . A w_i) w_i`.
    pub(crate) fn correct(&self, system: &System<'_>, r: &[f64], x: &mut [f64]) -> Result<(), SolveError> {
        let parts = self.products(system, &self.directions, r)?;
        for ((part, curvature), w) in parts.iter().zip(&self.curvatures).zip(&self.directions) {
            axpy(system.pool, part / curvature, w, x);
        }
        Ok(())
    }

    /// `u_i . r` over all ranks.
    pub(crate) fn parts(&self, system: &System<'_>, r: &[f64]) -> Result<[f64; DIRECTIONS_MAX], SolveError> {
        self.products(system, &self.u, r)
    }

    /// Adds this rank's share of `u_i . r` over a block of rows to `sums`.
    pub(crate) fn add_parts(&self, rows: &Range<usize>, r: &[f64], sums: &mut [f64]) {
        for (u, sum) in self.u.iter().zip(sums) {
            *sum += dot_block(&u[rows.clone()], r);
        }
    }

    /// `p -= sum_i parts_i w_i` over a block of rows.
    pub(crate) fn remove_parts(&self, rows: &Range<usize>, parts: &[f64], p: &mut [f64]) {
        for (w, part) in self.directions.iter().zip(parts) {
            axpy_block(-part, &w[rows.clone()], p);
        }
    }

    /// Computes this rank's share of `u_i . r`.
    pub(crate) fn local_parts(&self, pool: &Pool, r: &[f64], sums: &mut [f64]) {
        if !self.is_empty() {
            multi_dot(pool, r, &self.u, sums);
        }
    }

    /// `z -= sum_i parts_i w_i`, and with it `A z`.
    pub(crate) fn remove_from_product(&self, pool: &Pool, parts: &[f64], z: &mut [f64], az: &mut [f64]) {
        if let (Some(images), false) = (&self.images, self.is_empty()) {
            multi_axpy(pool, -1.0, &self.directions, parts, z);
            multi_axpy(pool, -1.0, images, parts, az);
        }
    }

    fn products(
        &self,
        system: &System<'_>,
        vectors: &[Vector],
        r: &[f64],
    ) -> Result<[f64; DIRECTIONS_MAX], SolveError> {
        let mut sums = [0.0; DIRECTIONS_MAX];
        let used = &mut sums[..vectors.len()];
        multi_dot(system.pool, r, vectors, used);
        system.comm.sum(used)?;
        Ok(sums)
    }
}

/// `w . A w`, with `A w` left in `product`.
fn curvature(system: &System<'_>, w: &[f64], product: &mut [f64]) -> Result<f64, SolveError> {
    let mut sum = [system.a.apply_dot(w, product)?];
    system.comm.sum(&mut sum)?;
    Ok(sum[0])
}
