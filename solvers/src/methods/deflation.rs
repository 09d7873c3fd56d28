//! Deflation: directions a method keeps A-orthogonal to all that follow.
//!
//! A restarted CG forgets every direction it has searched. A direction saved before the failure
//! gives the most useful one back: the iterate is made optimal over it, and each new direction is
//! kept A-orthogonal to it (M. J. D. Powell 1977, doi 10.1007/BF01593790; E. M. L. Beale 1972; as
//! deflation Y. Saad, M. Yeung, J. Erhel, F. Guyomarc'h 2000, doi 10.1137/S1064829598339761). Any
//! direction is valid, however inaccurate: it costs two vectors and 16 bytes per row and iteration,
//! never the convergence.

use recoup_core::{ExactSum, SolveError};

use crate::Space;
use crate::methods::shared::sum_over_ranks;

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
pub(crate) struct Deflation<S: Space> {
    /// The directions w. [`Deflation::recompute_products`] comes after they are overwritten.
    pub(crate) directions: Vec<S::Vector>,
    /// u of each direction.
    pub(crate) u: Vec<S::Vector>,
    curvatures: Vec<f64>,
    /// `A w` of each, where it is kept.
    images: Option<Vec<S::Vector>>,
    /// The reason why there was no room for saved directions, until a resume reports it.
    refusal: Option<SolveError>,
}

impl<S: Space> Deflation<S> {
    /// Makes a deflation without directions.
    pub(crate) fn new() -> Self {
        Self { directions: Vec::new(), u: Vec::new(), curvatures: Vec::new(), images: None, refusal: None }
    }

    /// Makes a deflation that keeps `A w` too, for [`Deflation::remove_from_product`].
    pub(crate) fn with_images() -> Self {
        Self { images: Some(Vec::new()), ..Self::new() }
    }

    /// Number of directions.
    pub(crate) fn len(&self) -> usize {
        self.directions.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.directions.is_empty()
    }

    /// Makes room for the directions among the variables of a version. A failure is reported by
    /// [`Deflation::recompute_products`].
    pub(crate) fn make_room(&mut self, space: &S, saved: &[&str]) {
        let count = NAMES.iter().filter(|name| saved.contains(name)).count();
        let room: Result<Vec<_>, _> = (0..count).map(|slot| space.zeros(slot)).collect();
        self.refusal = room.as_ref().err().cloned();
        self.directions = room.unwrap_or_default();
        self.forget_products();
    }

    /// Forgets all but the directions themselves.
    fn forget_products(&mut self) {
        self.u.clear();
        self.curvatures.clear();
        self.images.iter_mut().for_each(Vec::clear);
    }

    /// Takes the directions as they are: the same bits as when they were taken up. One product
    /// each. `room` is overwritten.
    pub(crate) fn recompute_products(
        &mut self,
        space: &S,
        inverse: &S::Inverse<'_>,
        room: &mut S::Vector,
    ) -> Result<(), SolveError> {
        if let Some(refusal) = self.refusal.take() {
            return Err(refusal);
        }
        self.forget_products();
        for w in std::mem::take(&mut self.directions) {
            self.take_up(space, inverse, w, room)?;
        }
        Ok(())
    }

    /// Adds a direction, A-orthogonal to those there are; the oldest makes room. Two products. A
    /// direction without curvature of its own is not added.
    pub(crate) fn add(
        &mut self,
        space: &S,
        inverse: &S::Inverse<'_>,
        direction: &S::Vector,
        room: &mut S::Vector,
    ) -> Result<(), SolveError> {
        if self.len() == DIRECTIONS_MAX {
            self.directions.remove(0);
            self.u.remove(0);
            self.curvatures.remove(0);
            self.images.iter_mut().for_each(|images| drop(images.remove(0)));
        }
        let mut w = space.zeros(slot_of_direction(self.len()))?;
        space.copy(direction, &mut w)?;
        let whole = curvature(space, &w, room)?;
        let mut parts = products(space, &self.directions, room)?;
        for (part, curvature) in parts.iter_mut().zip(&self.curvatures) {
            *part /= curvature;
        }
        space.multi_axpy(-1.0, &self.directions, &parts[..self.len()], &mut w)?;
        if curvature(space, &w, room)? > DEPENDENT * whole {
            self.take_up(space, inverse, w, room)?;
        }
        Ok(())
    }

    /// Keeps w where it has curvature.
    fn take_up(
        &mut self,
        space: &S,
        inverse: &S::Inverse<'_>,
        w: S::Vector,
        room: &mut S::Vector,
    ) -> Result<(), SolveError> {
        let curvature = curvature(space, &w, room)?;
        if !(curvature.is_normal() && curvature > 0.0) {
            return Ok(());
        }
        // u = M^-1 A w / (w . A w)
        let mut u = space.zeros(slot_of_direction(self.len()) + 1)?;
        space.precondition(inverse, room, &mut u)?;
        space.divide(curvature, &mut u)?;
        if let Some(images) = &mut self.images {
            let mut image = space.zeros(SLOT_OF_FIRST_IMAGE - self.directions.len())?;
            space.copy(room, &mut image)?;
            images.push(image);
        }
        self.directions.push(w);
        self.u.push(u);
        self.curvatures.push(curvature);
        Ok(())
    }

    /// Makes x optimal over the directions: `x += sum_i (w_i . r / w_i . A w_i) w_i`.
    pub(crate) fn correct(&self, space: &S, r: &S::Vector, x: &mut S::Vector) -> Result<(), SolveError> {
        let parts = products(space, &self.directions, r)?;
        for ((part, curvature), w) in parts.iter().zip(&self.curvatures).zip(&self.directions) {
            space.axpy(part / curvature, w, x)?;
        }
        Ok(())
    }

    /// `u_i . r` over all ranks.
    pub(crate) fn parts(&self, space: &S, r: &S::Vector) -> Result<[f64; DIRECTIONS_MAX], SolveError> {
        products(space, &self.u, r)
    }

    /// Computes this rank's share of `u_i . r`.
    pub(crate) fn local_parts(&self, space: &S, r: &S::Vector, sums: &mut [ExactSum]) -> Result<(), SolveError> {
        if self.is_empty() { Ok(()) } else { space.multi_dot(r, &self.u, sums) }
    }

    /// `z -= sum_i parts_i w_i`, and with it `A z`.
    pub(crate) fn remove_from_product(
        &self,
        space: &S,
        parts: &[f64],
        z: &mut S::Vector,
        az: &mut S::Vector,
    ) -> Result<(), SolveError> {
        if let (Some(images), false) = (&self.images, self.is_empty()) {
            space.multi_axpy(-1.0, &self.directions, parts, z)?;
            space.multi_axpy(-1.0, images, parts, az)?;
        }
        Ok(())
    }
}

/// `v_i . r` over all ranks, for each of `vectors`.
fn products<S: Space>(space: &S, vectors: &[S::Vector], r: &S::Vector) -> Result<[f64; DIRECTIONS_MAX], SolveError> {
    let mut sums = [ExactSum::ZERO; DIRECTIONS_MAX];
    let used = &mut sums[..vectors.len()];
    space.multi_dot(r, vectors, used)?;
    space.host().comm.sum_exact(used)?;
    Ok(sums.map(|sum| sum.rounded()))
}

/// `w . A w`, with `A w` left in `product`.
fn curvature<S: Space>(space: &S, w: &S::Vector, product: &mut S::Vector) -> Result<f64, SolveError> {
    let [curvature] = sum_over_ranks(space, [space.multiply_dot(w, product)?])?;
    Ok(curvature)
}
