//! Conjugate gradients for symmetric positive definite A, preconditioned, plain or restarted every
//! so often.
//!
//! Source: M. R. Hestenes, E. Stiefel 1952, doi 10.6028/jres.049.044; preconditioned form as in Y.
//! Saad, Iterative Methods for Sparse Linear Systems 2003, algorithm 9.1, doi
//! 10.1137/1.9780898718003. Departures: three passes per iteration (product with `p . A p`; r with
//! its norms; x and p together, so that p is read once), and when the recurrence meets the
//! tolerance the true residual is measured: it decides, and where it fails it replaces r and the
//! recurrence continues (H. A. van der Vorst, Q. Ye 2000, doi 10.1137/S1064827599353865).
//!
//! | vectors of length n | count | checkpoint |
//! |---|---|---|
//! | x | 1 | iterate |
//! | p | 1 | direction, saved from a deflated resume on |
//! | w, u of deflated resumes | 2 each | w: direction, as p; u: not needed |
//! | rho (a scalar) | - | recomputed, saved from a traditional resume on |
//! | r | 1 | recomputed, saved for an exact resume |
//! | q | 1 | not needed |
//! | z | 0, or 1 with a preconditioner that is no diagonal | not needed |
//! | b, A, M | - | static |
//!
//! An exact resume is bitwise (the recurrence's r is not `b - A x` as computed, so r is needed); a
//! traditional one recomputes r: the same count, other bits; a restarted one begins with `p = z`. A
//! deflated one does so too, and keeps all later directions A-orthogonal to the saved p and to
//! those of earlier recoveries ([`crate::DIRECTIONS_MAX`] of them): 16 bytes per row and iteration
//! for each. Every step is a safe point.

mod passes;

use recoup_core::{
    BreakdownReason, ExactSum, Iteration, MethodProfile, Progress, Registered, ResidualKind, Resume, Role, SolveError,
    Status,
};

pub use passes::{CgPasses, DeflatedParts, PreconditionedResidual};

use crate::methods::deflation::{DIRECTIONS_MAX, Deflation, NAMES};
use crate::methods::named::{MethodInputs, NamedMethod, Need, Setting, table_facts};
use crate::methods::shared::{
    FOR_EXACT, FOR_TRADITIONAL, ResidualLimits, first_iterate, norm, residual, rhs_norm, start, sum_over_ranks,
};
use crate::methods::variables::lend_variables;
use crate::{Method, Preconditioner, Stop, System};

/// Slot of z, behind x, r, p and q.
const Z_SLOT: usize = 4;

/// Largest sound relative defect of products that are 0 in exact arithmetic: far above the effect
/// of rounding, far below defects that slow the method down.
const DIRECTION_DEFECT_MAX: f64 = 0.01;

/// Times the true residual may replace the recurrence's before the solve counts as stagnated.
const REPLACEMENTS_MAX: u32 = 10;

/// Largest factor between true and recurred residual with which the recurrence continues; beyond,
/// the method restarts from x.
const REPLACEMENT_GAP: f64 = 2.0;

/// The plain method.
pub(super) const CG: NamedMethod = NamedMethod {
    name: "cg",
    summary: "Conjugate gradients",
    profile: MethodProfile {
        theta: 0.5,
        lossy_resume: Resume::Deflated,
        restarted_fraction: 0.4,
        deflated_fraction: 0.1,
        continued_share: 0.1,
        starts_slowly: true,
        is_stationary: false,
        gains_by_symmetry: true,
    },
    needs: Some(Need::Symmetry),
    settings: &[Setting::Preconditioner],
    make: |of| Ok(Box::new(Cg::of_inputs(of.system, of)?)),
    #[cfg(feature = "cuda")]
    make_on_device: Some(|system, of| Ok(Box::new(Cg::of_inputs(system, of)?))),
};

/// The entry of restarted CG.
pub(super) const CG_RESTARTED: NamedMethod = NamedMethod {
    name: "cg-restarted",
    summary: "Conjugate gradients, restarted every --restart iterations",
    profile: MethodProfile {
        theta: 0.5,
        lossy_resume: Resume::Deflated,
        restarted_fraction: 0.1,
        deflated_fraction: 0.0,
        continued_share: 0.1,
        starts_slowly: false,
        is_stationary: false,
        gains_by_symmetry: true,
    },
    needs: Some(Need::Symmetry),
    settings: &[Setting::Preconditioner, Setting::Restart],
    make: |of| Ok(Box::new(Cg::of_inputs(of.system, of)?.restarted_every(of.restart as u64)?)),
    #[cfg(feature = "cuda")]
    make_on_device: Some(|system, of| Ok(Box::new(Cg::of_inputs(system, of)?.restarted_every(of.restart as u64)?))),
};

/// Preconditioned conjugate gradients.
pub struct Cg<'a, S: CgPasses = System<'a>> {
    system: S,
    preconditioner: &'a dyn Preconditioner,
    inverse: S::Inverse<'a>,
    limits: ResidualLimits,
    x: S::Vector,
    r: S::Vector,
    p: S::Vector,
    q: S::Vector,
    /// z, where it is stored.
    z: Option<S::Vector>,
    rho: [f64; 1],
    deflation: Deflation<S>,
    safeguards: Safeguards,
    progress: Progress,
}

/// Sums over all ranks that one step takes from the new residual.
struct Sums {
    /// `||r||^2`.
    r_r: f64,
    /// `r . z`, the next rho.
    r_z: f64,
    /// Part of each deflated direction in z.
    deflated: [f64; DIRECTIONS_MAX],
}

/// Length of the longest row of sums: `r . r`, `r . z`, and one for each deflated direction.
const SUMS_MAX: usize = 2 + DIRECTIONS_MAX;

/// State of the checks that leave a healthy solve as it is.
#[derive(Default)]
struct Safeguards {
    /// `beta (p' . q)` of the last step, while q is still `A p'` and p came from p'.
    energy: Option<f64>,
    /// Times the true residual replaced the recurrence's.
    replacements: u32,
    /// Iterations between two restarts of the restarted method.
    period: Option<u64>,
}

impl<'a, S: CgPasses> Cg<'a, S> {
    /// Starts from `x0`.
    ///
    /// # Errors
    /// [`SolveError::Length`] and [`SolveError::NotFinite`] for bad vectors, [`SolveError::Comm`]
    /// when a rank is lost, [`SolveError::Device`] when the place of the vectors fails.
    pub fn new(system: S, preconditioner: &'a dyn Preconditioner, x0: &[f64], stop: Stop) -> Result<Self, SolveError> {
        system.host().validate(x0)?;
        let rhs_norm = rhs_norm(system.host())?;
        let stores_z = !preconditioner.is_identity() && preconditioner.diagonal().is_none();
        let mut cg = Self {
            preconditioner,
            inverse: system.inverse(preconditioner)?,
            limits: ResidualLimits::new(stop, rhs_norm)?,
            x: first_iterate(&system, x0, rhs_norm, 0)?,
            r: system.zeros(1)?,
            p: system.zeros(2)?,
            q: system.zeros(3)?,
            z: stores_z.then(|| system.zeros(Z_SLOT)).transpose()?,
            rho: [0.0],
            deflation: Deflation::new(),
            safeguards: Safeguards::default(),
            progress: start(rhs_norm),
            system,
        };
        cg.restart()?;
        cg.limits.set_start(&cg.progress);
        Ok(cg)
    }

    fn of_inputs(system: S, of: &MethodInputs<'a>) -> Result<Self, SolveError> {
        Self::new(system, of.preconditioner, of.x0, of.stop)
    }

    /// Makes the solve restart from x after every `period` iterations.
    ///
    /// # Errors
    /// [`SolveError::Parameter`] for a period of 0.
    pub fn restarted_every(mut self, period: u64) -> Result<Self, SolveError> {
        if period == 0 {
            return Err(SolveError::Parameter { what: "restart length", value: 0.0, expected: "1 or more" });
        }
        self.safeguards.period = Some(period);
        Ok(self)
    }

    /// Restarts from x and the deflated directions: x optimal over these, r = b - A x, p = z,
    /// rho = r . z.
    fn restart(&mut self) -> Result<(), SolveError> {
        self.recompute_residual()?;
        self.safeguards.energy = None;
        self.store_z()?;
        let z = PreconditionedResidual { r: &self.r, inverse: &self.inverse, stored: self.z.as_ref() };
        self.rho = sum_over_ranks(&self.system, [self.system.preconditioned_dot(&z)?])?;
        // p = z, A-orthogonal to the deflated directions
        let parts = self.deflation.parts(&self.system, &self.r)?;
        let deflated = DeflatedParts { directions: &self.deflation.directions, parts: &parts };
        self.system.first_direction(&z, &deflated, &mut self.p)
    }

    /// x optimal over the deflated directions, which no later step changes, and `r = b - A x`.
    fn recompute_residual(&mut self) -> Result<(), SolveError> {
        let mut residual_norm = residual(&self.system, &self.x, &mut self.r)?;
        if !self.deflation.is_empty() {
            self.deflation.correct(&self.system, &self.r, &mut self.x)?;
            residual_norm = residual(&self.system, &self.x, &mut self.r)?;
        }
        self.limits.record(residual_norm, &mut self.progress);
        Ok(())
    }

    /// `z = M^-1 r`, where z is stored.
    fn store_z(&mut self) -> Result<(), SolveError> {
        let Some(z) = &mut self.z else { return Ok(()) };
        self.system.precondition(&self.inverse, &self.r, z)
    }

    /// `q = A p` and `p . q`, or the reason why no step can follow.
    fn product_step(&mut self) -> Result<Result<f64, BreakdownReason>, SolveError> {
        let [rho] = self.rho;
        if rho.is_nan() || rho <= 0.0 {
            return Ok(Err(BreakdownReason::Vanished { scalar: "rho", restarts: 0 }));
        }
        let local = self.system.multiply_dot(&self.p, &mut self.q)?;
        let [curvature] = sum_over_ranks(&self.system, [local])?;
        Ok(if !curvature.is_finite() {
            Err(BreakdownReason::NotFinite)
        } else if curvature <= 0.0 {
            Err(BreakdownReason::NotPositiveDefinite { curvature })
        } else {
            Ok(curvature)
        })
    }

    /// `r = r - alpha q`, `z = M^-1 r`, and the sums of both.
    fn residual_step(&mut self, alpha: f64) -> Result<Sums, SolveError> {
        let mut all = [ExactSum::ZERO; SUMS_MAX];
        let sums = &mut all[..2 + self.deflation.len()];
        self.system.residual_step(alpha, &self.q, &self.inverse, &self.deflation.u, &mut self.r, sums)?;
        self.store_z()?;
        if let Some(z) = &self.z {
            sums[1] = self.system.dot(&self.r, z)?;
        }
        self.system.host().comm.sum_exact(sums)?;
        let [r_r, r_z, deflated @ ..] = all.map(|sum| sum.rounded());
        Ok(Sums { r_r, r_z, deflated })
    }

    /// `x = x + alpha p` and `p = z + beta p`, A-orthogonal to the deflated directions.
    fn iterate_step(&mut self, alpha: f64, beta: f64, parts: &[f64]) -> Result<(), SolveError> {
        let z = PreconditionedResidual { r: &self.r, inverse: &self.inverse, stored: self.z.as_ref() };
        let deflated = DeflatedParts { directions: &self.deflation.directions, parts };
        self.system.iterate_step(alpha, beta, &z, &deflated, &mut self.x, &mut self.p)
    }

    /// Takes the recurrence's residual norm; at the tolerance the true residual decides, and
    /// replaces r if it fails.
    fn check_recurrence(&mut self, residual_norm: f64) -> Result<(), SolveError> {
        self.limits.record(residual_norm, &mut self.progress);
        if !self.progress.is_converged() {
            return Ok(());
        }
        self.safeguards.energy = None;
        let true_norm = residual(&self.system, &self.x, &mut self.q)?;
        self.limits.record(true_norm, &mut self.progress);
        if self.progress.status != Status::Running {
            return Ok(());
        }
        self.safeguards.replacements += 1;
        if self.safeguards.replacements > REPLACEMENTS_MAX {
            self.progress.status = Status::Breakdown(BreakdownReason::Stagnated);
        } else if true_norm <= REPLACEMENT_GAP * residual_norm {
            std::mem::swap(&mut self.r, &mut self.q);
        } else {
            // p and rho belong to another residual.
            self.restart()?;
        }
        Ok(())
    }

    /// Restarts after each period, in the restarted method.
    fn restart_if_due(&mut self) -> Result<(), SolveError> {
        let is_due = self.safeguards.period.is_some_and(|period| self.progress.iteration.is_multiple_of(period));
        if is_due && self.progress.status == Status::Running { self.restart() } else { Ok(()) }
    }

    /// The line of the table that this solve belongs to.
    fn named(&self) -> &'static NamedMethod {
        if self.safeguards.period.is_some() { &CG_RESTARTED } else { &CG }
    }

    /// Ends the solve without a step.
    fn break_down(&mut self, reason: BreakdownReason) -> Progress {
        self.progress.status = Status::Breakdown(reason);
        self.progress
    }
}

impl<S: CgPasses> Registered for Cg<'_, S> {
    lend_variables! { |solver|
        rows("x", Role::Iterate, solver.x);
        rows("p", Role::Direction, solver.p);
        scalars("rho", FOR_TRADITIONAL, solver.rho);
        rows("r", FOR_EXACT, solver.r);
        each_rows(&NAMES, Role::Direction, solver.deflation.directions);
    }

    fn make_room(&mut self, saved: &[&str]) {
        self.deflation.make_room(&self.system, saved);
    }
}

impl<S: CgPasses> Iteration for Cg<'_, S> {
    // One name: restarted or not, the same variables mean the same.
    table_facts! { |solver| CG.name, solver.named().profile }

    fn step(&mut self) -> Result<Progress, SolveError> {
        if self.progress.status != Status::Running {
            return Ok(self.progress);
        }
        // q = A p, alpha = rho / (p . q)
        let curvature = match self.product_step()? {
            Ok(curvature) => curvature,
            Err(reason) => return Ok(self.break_down(reason)),
        };
        let alpha = self.rho[0] / curvature;
        // r = r - alpha q, z = M^-1 r, beta = rho' / rho with rho' = r . z
        let sums = self.residual_step(alpha)?;
        let beta = sums.r_z / self.rho[0];
        // x = x + alpha p, p = z + beta p
        self.iterate_step(alpha, beta, &sums.deflated)?;
        self.rho = [sums.r_z];
        self.safeguards.energy = Some(beta * curvature);
        self.progress.iteration += 1;
        self.check_recurrence(sums.r_r.sqrt())?;
        self.restart_if_due()?;
        Ok(self.progress)
    }

    fn resume(&mut self, iteration: u64, how: Resume) -> Result<Progress, SolveError> {
        self.progress.iteration = iteration;
        self.safeguards.replacements = 0;
        self.safeguards.energy = None;
        self.deflation.recompute_products(&self.system, &self.inverse, &mut self.q)?;
        match how {
            Resume::Exact => {
                let recurrence_norm = norm(&self.system, &self.r)?;
                self.check_recurrence(recurrence_norm)?;
            }
            Resume::Traditional => self.recompute_residual()?,
            Resume::Restarted => self.restart()?,
            // Directions kept A-orthogonal from one side only would keep the method from
            // converging.
            Resume::Deflated if self.system.host().symmetry_defect()? > 0.0 => self.restart()?,
            Resume::Deflated => {
                self.deflation.add(&self.system, &self.inverse, &self.p, &mut self.q)?;
                self.restart()?;
            }
        }
        Ok(self.progress)
    }

    fn residual_kind(&self) -> ResidualKind {
        ResidualKind::Recurrence
    }

    /// Compares two products with their values in exact arithmetic. With p' the direction before,
    /// `p = z + beta p'`: r is orthogonal to p', so that `r . p = rho`, and p to `q = A p'`. The
    /// defect of the first relative to rho stays what it is from step to step and scales all later
    /// step lengths: a large one makes the method crawl, one below -1/2 diverge. That of the
    /// second, relative to `beta (p' . q)`, is `r . z' / rho`. A defect that rounding or an
    /// operator that is not symmetric explains is no corruption.
    fn has_sound_directions(&self) -> Result<bool, SolveError> {
        let [rho] = self.rho;
        let local = [self.system.dot(&self.r, &self.p)?, self.system.dot(&self.p, &self.q)?];
        let [along, conjugate] = sum_over_ranks(&self.system, local)?;
        let of_conjugacy = self.safeguards.energy.map_or(0.0, |energy| conjugate.abs() / energy);
        let defect = ((along - rho).abs() / rho).max(of_conjugacy);
        if defect <= DIRECTION_DEFECT_MAX {
            return Ok(true);
        }
        let is_rounding = defect <= DIRECTION_DEFECT_MAX + self.defect_of_rounding()?;
        Ok(is_rounding || self.system.host().symmetry_defect()? > 0.0)
    }
}

impl<S: CgPasses> Cg<'_, S> {
    /// The defect that rounding can have made of the directions. Each entry of the recurrence's
    /// residual is off by about `eps sqrt(k) (|A| |x| + |b|)` after k steps (H. A. van der Vorst,
    /// Q. Ye 2000, doi 10.1137/S1064827599353865), with a random sign; the product of these errors
    /// with p, over rho, is the defect. None is explained where the entries of A are not known.
    fn defect_of_rounding(&self) -> Result<f64, SolveError> {
        let System { a, b, .. } = self.system.host();
        let x = self.system.to_host(&self.x)?;
        let p = self.system.to_host(&self.p)?;
        let mut magnitudes = vec![0.0; p.len()];
        let known = a.abs_apply(&x, &mut magnitudes).transpose()?;
        let squares = magnitudes.iter().zip(*b).zip(&p).map(|((ax, b), p)| ((ax + b.abs()) * p).powi(2));
        let unknown = f64::from(u8::from(known.is_none()));
        let [squares, unknown] = sum_over_ranks(&self.system, [squares.collect(), unknown.into()])?;
        if unknown > 0.0 {
            return Ok(0.0);
        }
        let steps = self.progress.iteration.max(1) as f64;
        Ok(f64::EPSILON * (steps * squares).sqrt() / self.rho[0])
    }
}

impl<S: CgPasses> Method for Cg<'_, S> {
    fn name(&self) -> &'static str {
        self.named().name
    }

    fn iterate(&self) -> Result<Vec<f64>, SolveError> {
        self.system.to_host(&self.x)
    }

    fn bytes_per_iteration(&self) -> f64 {
        let a = self.system.host().a;
        // the product: p, q; the residual step: q, r, r; the iterate step: x, x, p, p, r
        let always = 2 + 3 + 5;
        // each deflated direction: u with r, w with p
        let deflated = 2 * self.deflation.len() as u64;
        // M's pass: r, z, and the product: r, z; or D with both steps
        let of_z = match &self.z {
            Some(_) => 2 + 2,
            None if self.preconditioner.is_identity() => 0,
            None => 2,
        };
        let of_m = if self.z.is_some() { self.preconditioner.bytes_per_apply() } else { 0 };
        let arrays = always + deflated + of_z;
        (a.bytes() + arrays * 8 * a.rows() as u64 + of_m) as f64
    }
}
