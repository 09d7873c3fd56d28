//! GMRES(m) for general A, preconditioned from the left or the right.
//!
//! Source: Y. Saad, M. H. Schultz 1986, doi 10.1137/0907058. Departures: the basis is
//! orthogonalised by classical Gram-Schmidt, all products in one pass over the new vector and all
//! updates in another, which also gives the new norm. Where the new vector has lost more than nine
//! tenths of its length, both passes run again (selective reorthogonalisation, J. W. Daniel, W. B.
//! Gragg, L. Kaufman, G. W. Stewart 1976, doi 10.1090/S0025-5718-1976-0431641-8). Basis vectors
//! keep the length they come with; their norms enter the small problem instead, which saves a pass.
//!
//! Converged means the true residual `||b - A x||`. Mid-cycle only an estimate is known: from the
//! right that of the small problem, from the left the same times `||r|| / ||M^-1 r||` as last
//! measured. When it reaches the tolerance the iterate is formed aside and measured; if it fails,
//! the cycle goes on undisturbed.
//!
//! With deflated restarting (GMRES-DR(m, k), R. B. Morgan 2002, doi 10.1137/S1064827599364659) a
//! cycle begins with the k directions the last one was slowest in, and with its residual as the
//! small problem knows it. Departure: that residual is compared with the true one, and where it is
//! not the same any more a cycle begins with `b - A x` alone.
//!
//! | vectors of length n | count | checkpoint |
//! |---|---|---|
//! | x | 1 | iterate |
//! | v (deflated restarting) | k + 1 | exact and traditional: with them the cycle begins anew; else given up |
//! | basis, r, work | m + 3 | rebuilt from x (and v) at a cycle end |
//! | b, A, M | - | static |
//!
//! Safe points are cycle ends. There a restarted and an exact resume of GMRES(m) are the same
//! thing, and bitwise: every cycle begins with `r = b - A x`.

mod harvest;
mod least_squares;

use nalgebra::DVectorView;
use recoup_core::{
    BreakdownReason, Distribution, Iteration, MethodProfile, Progress, Registered, ResidualKind, Resume, Role,
    SolveError, Status, Values, ValuesMut, Variable, VariableMut,
};

use harvest::{Start, harvest};
use least_squares::LeastSquares;

use crate::kernels::vector::{combine, copy, multi_axpy, multi_dot, scaled_copy, xpay};
use crate::methods::shared::{Limits, norm, residual, rhs_norm, start, vector_variable};
use crate::{Method, Preconditioner, Stop, System, Vector};

/// A new basis vector shorter than this part of `A v` is orthogonalised again.
const REORTHOGONALISE_BELOW: f64 = 0.1;
/// Squared lengths of basis vectors outside this range are brought back to 1.
const LENGTH_SQUARED: std::ops::Range<f64> = 1e-100..1e100;
/// From the left the first look at the true residual comes this factor early, as the ratio behind
/// the estimate drifts.
const LOOK_EARLY: f64 = 2.0;
/// A cycle that lowers the residual by less than this fraction will never end.
const LEAST_GAIN: f64 = 1e-12;
/// A residual carried over from the last cycle is taken for the true one when their norms differ by
/// no more than this part. What they differ by themselves is then a twentieth at most, and a cycle
/// that gains a factor of twenty is rare.
const RESIDUAL_GAP: f64 = 1e-3;
/// Directions carried over at most.
pub const HARVEST_MAX: usize = 16;
/// Names of the carried vectors as variables: a pair more than asked for, and the residual's.
const NAMES: [&str; HARVEST_MAX + 2] = [
    "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17",
];
/// The name of the small problem they belong to.
const START: &str = "h";

/// Where the preconditioner stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `M^-1 A x = M^-1 b`.
    Left,
    /// `A M^-1 u = b`, `x = M^-1 u`.
    Right,
}

/// Restarted GMRES.
pub struct Gmres<'a> {
    system: System<'a>,
    preconditioner: &'a dyn Preconditioner,
    side: Side,
    limits: Limits,
    x: Vector,
    /// `v_j / scales_j`, orthogonal; the scales make them unit vectors.
    basis: Vec<Vector>,
    scales: Vec<f64>,
    r: Vector,
    work: Vector,
    products: Vec<f64>,
    coefficients: Vec<f64>,
    small: LeastSquares,
    /// `||r|| / (estimate)` as last measured.
    ratio: f64,
    /// The estimate, in the norm of the small problem, at which to look at the true residual.
    look_at: f64,
    /// Norm of the preconditioned residual at the start of the cycle.
    beta: f64,
    /// The last cycle gained nothing.
    has_stalled: bool,
    /// Directions to carry over from cycle to cycle; 0 for GMRES(m).
    wanted: usize,
    /// Vectors this cycle began with beside its residual's.
    kept: usize,
    /// The small problem it began with, as numbers in a row; empty without such vectors.
    start: Vec<f64>,
    progress: Progress,
}

/// How GMRES is to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GmresOptions {
    /// Restart length m.
    pub restart: usize,
    /// Where the preconditioner stands.
    pub side: Side,
    /// When it ends.
    pub stop: Stop,
}

impl<'a> Gmres<'a> {
    /// How GMRES(m) takes lossy recoveries.
    pub const PROFILE: MethodProfile = MethodProfile {
        theta: 3.0,
        lossy_resume: Resume::Restarted,
        restarted_fraction: 0.05,
        deflated_fraction: 0.05,
        continued_share: 0.1,
        starts_slowly: false,
        is_stationary: false,
    };

    /// How GMRES with deflated restarting takes lossy recoveries.
    pub const DEFLATED_PROFILE: MethodProfile = MethodProfile {
        theta: 0.5,
        lossy_resume: Resume::Restarted,
        restarted_fraction: 0.1,
        deflated_fraction: 0.1,
        continued_share: 0.1,
        starts_slowly: false,
        is_stationary: false,
    };

    /// Starts from `x`.
    ///
    /// # Errors
    /// [`SolveError::Length`] and [`SolveError::NotFinite`] for b or x, [`SolveError::Parameter`]
    /// for a restart length of 0, [`SolveError::Comm`] when a rank is lost.
    pub fn new(
        system: System<'a>,
        preconditioner: &'a dyn Preconditioner,
        x: &[f64],
        options: GmresOptions,
    ) -> Result<Self, SolveError> {
        system.validate(x)?;
        let m = options.restart;
        if m == 0 {
            return Err(SolveError::Parameter { what: "restart length", value: 0.0, expected: "at least 1" });
        }
        let (pool, n) = (system.pool, x.len());
        pool.reserve_sums(m + 1);
        let rhs_norm = rhs_norm(&system)?;
        let mut gmres = Self {
            preconditioner,
            side: options.side,
            limits: Limits::new(options.stop, rhs_norm)?,
            x: Vector::copy_of(pool, x, 13),
            basis: Vector::basis(pool, n, m + 1),
            scales: vec![1.0; m + 1],
            r: Vector::zeros(pool, n, 14),
            work: Vector::zeros(pool, n, 15),
            products: vec![0.0; m + 1],
            coefficients: vec![0.0; m + 1],
            small: LeastSquares::new(m),
            ratio: 1.0,
            look_at: 0.0,
            beta: f64::INFINITY,
            has_stalled: false,
            wanted: 0,
            kept: 0,
            start: Vec::new(),
            progress: start(rhs_norm),
            system,
        };
        gmres.resume(0, Resume::Restarted)?;
        gmres.limits.set_start(&gmres.progress);
        Ok(gmres)
    }

    /// The same solve with deflated restarting: `directions` of a cycle, or one more where that
    /// would part a pair, are carried over to the next.
    ///
    /// # Errors
    /// [`SolveError::Parameter`] where they leave no room in a cycle, or are more than
    /// [`HARVEST_MAX`].
    pub fn deflated(mut self, directions: usize) -> Result<Self, SolveError> {
        if directions > HARVEST_MAX || directions + 3 > self.restart_length() {
            let expected = "at most 16, and at least 3 fewer than the restart length";
            return Err(SolveError::Parameter { what: "directions carried over", value: directions as f64, expected });
        }
        self.wanted = directions;
        Ok(self)
    }

    fn restart_length(&self) -> usize {
        self.basis.len() - 1
    }

    /// Records the norm of `b - A x` at a safe point.
    fn record_safe_point(&mut self, residual_norm: f64) {
        self.limits.record(residual_norm, &mut self.progress);
        self.progress.is_safe_point = true;
    }

    /// Starts a cycle from x and `r = b - A x`.
    fn begin_cycle(&mut self) -> Result<(), SolveError> {
        (self.kept, self.start) = (0, Vec::new());
        self.precondition_residual()?;
        std::mem::swap(&mut self.basis[0], &mut self.work);
        let squared = norm(&self.system, &self.basis[0])?.powi(2);
        self.begin_small(&[squared.sqrt()]);
        self.set_length(0, squared);
        Ok(())
    }

    /// Starts a cycle from x and the first basis vectors, of unit length, with the small problem
    /// `start`. False where it does not hold, and nothing else was changed.
    fn begin_deflated(&mut self, start: &Start) -> Result<bool, SolveError> {
        self.precondition_residual()?;
        let known = norm(&self.system, &self.work)?;
        let gap = (start.residual.norm() - known).abs();
        if gap.is_nan() || gap > RESIDUAL_GAP * known {
            return Ok(false);
        }
        let before = (self.beta, self.has_stalled);
        self.begin_small(start.residual.as_slice());
        let h = &start.hessenberg;
        let is_regular = (0..start.kept()).all(|j| self.small.push(&h.column(j).as_slice()[..=j], h[(j + 1, j)]));
        if !is_regular || self.progress.status != Status::Running {
            ((self.beta, self.has_stalled), self.progress.status) = (before, Status::Running);
            return Ok(false);
        }
        self.scales[..=start.kept()].fill(1.0);
        (self.kept, self.start) = (start.kept(), start.to_vec());
        Ok(true)
    }

    /// r, or `M^-1 r` from the left, into `work`.
    fn precondition_residual(&mut self) -> Result<(), SolveError> {
        let pool = self.system.pool;
        match self.side {
            Side::Left if !self.preconditioner.is_identity() => {
                self.preconditioner.apply(pool, &self.r, &mut self.work)?;
            }
            Side::Left | Side::Right => copy(pool, &self.r, &mut self.work),
        }
        Ok(())
    }

    /// Starts the small problem of a cycle whose residual, preconditioned from the left, is c over
    /// its basis.
    fn begin_small(&mut self, c: &[f64]) {
        let beta = c.iter().map(|c| c * c).sum::<f64>().sqrt();
        let before = std::mem::replace(&mut self.beta, beta);
        self.small.restart(c);
        (self.ratio, self.look_at) = match self.side {
            Side::Left => (
                self.progress.residual_norm / beta,
                LOOK_EARLY * self.limits.tolerance * beta / self.progress.residual_norm,
            ),
            Side::Right => (1.0, self.limits.tolerance),
        };
        // What a plain cycle failed to gain a deflated one may, and the other way round.
        let is_stalled = beta > before * (1.0 - LEAST_GAIN);
        let may_stall = self.wanted > 0 && !std::mem::replace(&mut self.has_stalled, is_stalled);
        if beta == 0.0 || !beta.is_finite() {
            self.progress.status = Status::Breakdown(BreakdownReason::NotFinite);
        } else if is_stalled && !may_stall {
            self.progress.status = Status::Breakdown(BreakdownReason::Stagnated);
        }
    }

    /// The first vectors of the next cycle in place of the first of this one, and its small
    /// problem; `None` where this cycle leaves none.
    fn carry_over(&mut self) -> Result<Option<Start>, SolveError> {
        if self.wanted == 0 || self.small.columns() < self.restart_length() {
            return Ok(None);
        }
        let Some(found) = harvest(&self.small.hessenberg(), &self.small.left(), self.wanted) else { return Ok(None) };
        let column =
            |column: DVectorView<'_, f64>| column.iter().zip(&self.scales).map(|(c, scale)| c * scale).collect();
        let columns: Vec<Vec<f64>> = found.columns.column_iter().map(column).collect();
        combine(self.system.pool, &columns, &mut self.basis);
        Ok(Some(found.start))
    }

    /// Notes the length of basis vector `j`, and brings it to 1 where its square might over- or
    /// underflow.
    fn set_length(&mut self, j: usize, squared: f64) {
        self.scales[j] = 1.0 / squared.sqrt();
        if squared > 0.0 && !LENGTH_SQUARED.contains(&squared) {
            scaled_copy(self.system.pool, self.scales[j], &self.basis[j], &mut self.work);
            std::mem::swap(&mut self.basis[j], &mut self.work);
            self.scales[j] = 1.0;
        }
    }

    /// Basis vector j + 1 becomes the preconditioned product of basis vector j.
    fn multiply(&mut self, j: usize) -> Result<(), SolveError> {
        let (a, pool) = (self.system.a, self.system.pool);
        let (known, rest) = self.basis.split_at_mut(j + 1);
        let (v, w) = (&known[j], &mut rest[0]);
        if self.preconditioner.is_identity() {
            // w = A v
            return Ok(a.apply(v, w)?);
        }
        match self.side {
            Side::Left => {
                // w = M^-1 A v
                a.apply(v, &mut self.work)?;
                self.preconditioner.apply(pool, &self.work, w)
            }
            Side::Right => {
                // w = A M^-1 v
                self.preconditioner.apply(pool, v, &mut self.work)?;
                Ok(a.apply(&self.work, w)?)
            }
        }
    }

    /// Takes the part along the first j + 1 basis vectors from vector j + 1 and adds it to
    /// `products`, in units of the basis vectors as they are stored. Squared lengths: what is left,
    /// and what was taken.
    fn orthogonalise(&mut self, j: usize) -> Result<(f64, f64), SolveError> {
        let (known, rest) = self.basis.split_at_mut(j + 1);
        let (w, coefficients) = (&mut rest[0], &mut self.coefficients[..=j]);
        // c_i = (w . v_i) / (v_i . v_i)
        multi_dot(self.system.pool, w, known, coefficients);
        self.system.comm.sum(coefficients)?;
        let mut taken = 0.0;
        for ((c, scale), product) in coefficients.iter_mut().zip(&self.scales).zip(&mut self.products) {
            taken += (*c * scale).powi(2);
            *c *= scale * scale;
            *product += *c;
        }
        // w = w - sum_i c_i v_i
        let mut left = [multi_axpy(self.system.pool, -1.0, (known, coefficients), w)];
        self.system.comm.sum(&mut left)?;
        Ok((left[0], taken))
    }

    /// Adds a column to the small problem. False when the basis cannot grow further.
    fn extend(&mut self, j: usize) -> Result<bool, SolveError> {
        self.multiply(j)?;
        self.products[..=j].fill(0.0);
        let (mut left, taken) = self.orthogonalise(j)?;
        let whole = left + taken;
        if left < REORTHOGONALISE_BELOW.powi(2) * whole {
            left = self.orthogonalise(j)?.0;
        }
        // A breakdown that is a success: A v lies in the space already.
        let is_exhausted = left <= (f64::EPSILON * f64::EPSILON) * whole;
        self.set_length(j + 1, left);
        // h_ij = scale_j c_i / scale_i turns stored vectors into unit vectors.
        let (scale, below) = (self.scales[j], if is_exhausted { 0.0 } else { left.sqrt() });
        for (product, own) in self.products[..=j].iter_mut().zip(&self.scales) {
            *product *= scale / own;
        }
        let is_regular = self.small.push(&self.products[..=j], scale * below);
        Ok(is_regular && !is_exhausted)
    }

    /// The iterate of the columns so far into `work`, its residual into `r`, and the norm of that.
    fn form_iterate(&mut self) -> Result<f64, SolveError> {
        let (pool, k) = (self.system.pool, self.small.columns());
        self.small.solve(&mut self.coefficients);
        for (y, scale) in self.coefficients[..k].iter_mut().zip(&self.scales) {
            *y *= scale;
        }
        let combination = (&self.basis[..k], &self.coefficients[..k]);
        if self.side == Side::Right && !self.preconditioner.is_identity() {
            // x_k = x + M^-1 V y
            pool.for_rows(self.r.len(), &mut self.r[..], |_, r| r.fill(0.0));
            multi_axpy(pool, 1.0, combination, &mut self.r);
            self.preconditioner.apply(pool, &self.r, &mut self.work)?;
            xpay(pool, &self.x, 1.0, &mut self.work);
        } else {
            // x_k = x + V y
            copy(pool, &self.x, &mut self.work);
            multi_axpy(pool, 1.0, combination, &mut self.work);
        }
        residual(&self.system, &self.work, &mut self.r)
    }

    /// The iterate formed aside becomes x, and the next cycle starts unless all is done.
    fn end_cycle(&mut self, residual_norm: f64) -> Result<(), SolveError> {
        std::mem::swap(&mut self.x, &mut self.work);
        self.record_safe_point(residual_norm);
        if self.progress.status != Status::Running {
            return Ok(());
        }
        if let Some(start) = self.carry_over()?
            && self.begin_deflated(&start)?
        {
            return Ok(());
        }
        self.begin_cycle()
    }
}

impl Registered for Gmres<'_> {
    fn variables(&self) -> Vec<Variable<'_>> {
        let role = Role::Recomputed { saved_for: Resume::Traditional };
        let mut variables = vec![vector_variable(&self.system, "x", Role::Iterate, &self.x)];
        if self.kept > 0 {
            let carried = NAMES.iter().zip(&self.basis[..=self.kept]);
            variables.extend(carried.map(|(name, v)| vector_variable(&self.system, name, role, v)));
            variables.push(Variable::new(START, role, Values::F64(&self.start), Distribution::Replicated));
        }
        variables
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        let mut variables = vec![VariableMut { name: "x", values: ValuesMut::F64(&mut self.x) }];
        if self.kept > 0 {
            let carried = NAMES.iter().zip(&mut self.basis[..=self.kept]);
            variables.extend(carried.map(|(name, v)| VariableMut { name, values: ValuesMut::F64(v) }));
            variables.push(VariableMut { name: START, values: ValuesMut::F64(&mut self.start) });
        }
        variables
    }

    fn make_room(&mut self, saved: &[&str]) {
        let carried = NAMES.iter().take(self.restart_length()).filter(|name| saved.contains(name)).count();
        self.kept = carried.saturating_sub(1);
        self.start = vec![0.0; if self.kept > 0 { (self.kept + 1) * (self.kept + 1) } else { 0 }];
    }
}

impl Iteration for Gmres<'_> {
    fn progress(&self) -> Progress {
        self.progress
    }

    /// One inner iteration; the last of a cycle forms x and begins the next cycle.
    fn step(&mut self) -> Result<Progress, SolveError> {
        if self.progress.status != Status::Running {
            return Ok(self.progress);
        }
        let columns = self.small.columns();
        let can_grow = self.extend(columns)?;
        self.progress.iteration += 1;
        let estimate = self.small.residual_norm();
        self.progress.residual_norm = estimate * self.ratio;
        self.progress.is_safe_point = false;
        let is_last = !can_grow || self.small.columns() == self.restart_length();
        if is_last || estimate <= self.look_at {
            let residual_norm = self.form_iterate()?;
            if is_last || residual_norm <= self.limits.tolerance {
                self.end_cycle(residual_norm)?;
            } else {
                self.ratio = residual_norm / estimate;
                // Half the way on a logarithmic scale: the ratio drifts, so aiming at the target
                // comes late.
                self.look_at = estimate * (self.limits.tolerance / residual_norm).sqrt();
                self.progress.residual_norm = residual_norm;
            }
        }
        Ok(self.progress)
    }

    /// From x alone, and from the vectors carried over where there are any and an exact or
    /// traditional resume is asked for: these two are the same here.
    fn resume(&mut self, iteration: u64, how: Resume) -> Result<Progress, SolveError> {
        if how == Resume::Deflated {
            return Err(SolveError::Resume { method: self.name(), how });
        }
        self.progress.iteration = iteration;
        (self.beta, self.has_stalled) = (f64::INFINITY, false);
        let residual_norm = residual(&self.system, &self.x, &mut self.r)?;
        self.record_safe_point(residual_norm);
        if self.progress.status != Status::Running {
            return Ok(self.progress);
        }
        let start = Start::from_slice(self.kept, &self.start).filter(|_| self.kept > 0 && how > Resume::Deflated);
        let is_deflated = match start {
            Some(start) => self.begin_deflated(&start)?,
            None => false,
        };
        if !is_deflated {
            self.begin_cycle()?;
        }
        Ok(self.progress)
    }

    /// Safe points are cycle ends, where `b - A x` was computed.
    fn residual_kind(&self) -> ResidualKind {
        ResidualKind::True
    }

    fn method(&self) -> Option<&'static str> {
        Some(crate::Method::name(self))
    }

    fn profile(&self) -> MethodProfile {
        if self.wanted > 0 { Self::DEFLATED_PROFILE } else { Self::PROFILE }
    }

    fn tolerance(&self) -> Option<f64> {
        self.limits.relative(&self.progress)
    }
}

impl Method for Gmres<'_> {
    fn name(&self) -> &'static str {
        if self.wanted > 0 { "gmres-dr" } else { "gmres" }
    }

    fn iterate(&self) -> &[f64] {
        &self.x
    }

    /// The mean over a whole cycle.
    fn bytes_per_iteration(&self) -> f64 {
        let (n, m) = (self.x.len() as f64, self.restart_length() as f64);
        let matrix = self.system.a.bytes() as f64;
        let is_identity = self.preconditioner.is_identity();
        let preconditioner = if is_identity { 0.0 } else { 16.0 * n + self.preconditioner.bytes_per_apply() as f64 };
        let k = self.wanted as f64;
        // A v; w . v_i reads j + 2 vectors; w - sum c_i v_i reads j + 2 and writes one; j is (m +
        // k - 1) / 2 on average.
        let iteration = matrix + 16.0 * n + 4.0 * n * (m + k + 3.0) + 4.0 * n * (m + k + 5.0);
        // V y reads m vectors beside x and writes x_k twice; the residual; v_0, or V P, which
        // writes k + 1 of m + 1.
        let carried = if self.wanted > 0 { 8.0 * n * (m + k + 2.0) } else { 0.0 };
        let cycle = 8.0 * n * (m + 4.0) + matrix + 24.0 * n + 16.0 * n + 8.0 * n + carried;
        iteration + preconditioner + (cycle + preconditioner) / (m - k)
    }
}
