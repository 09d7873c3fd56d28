//! Conjugate gradients for symmetric positive definite A, preconditioned, plain or restarted every
//! so often.
//!
//! Source: M. R. Hestenes, E. Stiefel 1952, doi 10.6028/jres.049.044; preconditioned form as in Y.
//! Saad, Iterative Methods for Sparse Linear Systems 2003, algorithm 9.1, doi
//! 10.1137/1.9780898718003. Departures: three passes per iteration (product with `p . A p`; r with
//! its norms; x and p together, so that p is read once), and when the recurrence meets the
//! tolerance the true residual is measured: it decides, and where it fails it replaces r and the
//! recurrence goes on (H. A. van der Vorst, Q. Ye 2000, doi 10.1137/S1064827599353865).
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

mod inverse;

use recoup_core::{
    BreakdownReason, Iteration, MethodProfile, Progress, Registered, ResidualKind, Resume, Role, SolveError, Status,
};

use inverse::Inverse;

use crate::kernels::simd::reduce_block;
use crate::kernels::vector::{copy, dot};
use crate::methods::deflation::{DIRECTIONS_MAX, Deflation, NAMES};
use crate::methods::named::{NamedMethod, Need, Setting};
use crate::methods::shared::{FOR_EXACT, FOR_TRADITIONAL, ResidualLimits, norm, residual, rhs_norm, start};
use crate::methods::variables::lend_variables;
use crate::{Method, Preconditioner, Stop, System, Vector};

/// Largest sound relative defect of products that are 0 in exact arithmetic: far above the effect
/// of rounding, far below defects that slow the method down.
const DIRECTION_DEFECT_MAX: f64 = 0.01;

/// Times the true residual may replace the recurrence's before the solve counts as stagnated.
const REPLACEMENTS_MAX: u32 = 10;

/// Largest factor between true and recurred residual with which the recurrence goes on; beyond, the
/// method restarts from x.
const REPLACEMENT_GAP: f64 = 2.0;

/// The plain method.
pub(super) const CG: NamedMethod = NamedMethod {
    name: "cg",
    summary: "Conjugate gradients",
    profile: MethodProfile {
        theta: 0.5,
        lossy_resume: Resume::Deflated,
        restarted_fraction: 0.4,
        deflated_fraction: 0.25,
        continued_share: 0.1,
        starts_slowly: true,
        is_stationary: false,
    },
    needs: Some(Need::Symmetry),
    settings: &[Setting::Preconditioner],
    make: |of| Ok(Box::new(Cg::new(of.system, of.preconditioner, of.x0, of.stop)?)),
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
    },
    needs: Some(Need::Symmetry),
    settings: &[Setting::Preconditioner, Setting::Restart],
    make: |of| {
        let cg = Cg::new(of.system, of.preconditioner, of.x0, of.stop)?;
        Ok(Box::new(cg.restarted_every(of.restart as u64)?))
    },
};

/// Preconditioned conjugate gradients.
pub struct Cg<'a> {
    system: System<'a>,
    preconditioner: &'a dyn Preconditioner,
    inverse: Inverse<'a>,
    limits: ResidualLimits,
    x: Vector,
    r: Vector,
    p: Vector,
    q: Vector,
    rho: [f64; 1],
    deflation: Deflation,
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

impl<'a> Cg<'a> {
    /// Starts from `x0`.
    ///
    /// # Errors
    /// [`SolveError::Length`] and [`SolveError::NotFinite`] for bad vectors, [`SolveError::Comm`]
    /// when a rank is lost.
    pub fn new(
        system: System<'a>,
        preconditioner: &'a dyn Preconditioner,
        x0: &[f64],
        stop: Stop,
    ) -> Result<Self, SolveError> {
        system.validate(x0)?;
        let rhs_norm = rhs_norm(&system)?;
        let [x, r, p, q] = Vector::several(system.pool, x0.len());
        let mut cg = Self {
            preconditioner,
            inverse: Inverse::new(preconditioner, system.pool, x0.len()),
            limits: ResidualLimits::new(stop, rhs_norm)?,
            x,
            r,
            p,
            q,
            rho: [0.0],
            deflation: Deflation::default(),
            safeguards: Safeguards::default(),
            progress: start(rhs_norm),
            system,
        };
        copy(system.pool, x0, &mut cg.x);
        cg.restart()?;
        cg.limits.set_start(&cg.progress);
        Ok(cg)
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
        let pool = self.system.pool;
        self.apply_general_inverse()?;
        self.rho = self.sum_over_ranks([self.inverse.dot(pool, &self.r)])?;
        let r = &self.r[..];
        let inverse = &self.inverse;
        let deflation = &self.deflation;
        let deflated = deflation.parts(&self.system, r)?;
        // p = z, A-orthogonal to the deflated directions
        pool.for_rows(r.len(), &mut self.p[..], |rows, p| {
            inverse.copy_rows(&rows, &r[rows.clone()], p);
            deflation.remove_parts(&rows, &deflated, p);
        });
        Ok(())
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

    /// Sums `local` over all ranks.
    fn sum_over_ranks<const K: usize>(&self, mut local: [f64; K]) -> Result<[f64; K], SolveError> {
        self.system.comm.sum(&mut local)?;
        Ok(local)
    }

    /// `z = M^-1 r` where z is stored. Returns whether it is.
    fn apply_general_inverse(&mut self) -> Result<bool, SolveError> {
        let Inverse::General(z) = &mut self.inverse else { return Ok(false) };
        self.preconditioner.apply(self.system.pool, &self.r, z)?;
        Ok(true)
    }

    /// `q = A p` and `p . q`, or the reason why no step can follow.
    fn product_step(&mut self) -> Result<Result<f64, BreakdownReason>, SolveError> {
        let [rho] = self.rho;
        if rho.is_nan() || rho <= 0.0 {
            return Ok(Err(BreakdownReason::Vanished { scalar: "rho" }));
        }
        let local = self.system.a.apply_dot(&self.p, &mut self.q)?;
        let [curvature] = self.sum_over_ranks([local])?;
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
        let pool = self.system.pool;
        let q = &self.q[..];
        let inverse = &self.inverse;
        let deflation = &self.deflation;
        let mut all = [0.0; SUMS_MAX];
        let sums = &mut all[..2 + deflation.len()];
        pool.sum_rows_into(q.len(), &mut self.r[..], sums, |rows, r, sums| {
            reduce_block(alpha, &q[rows.clone()], r);
            let [r_r, r_z] = inverse.dots_block(&rows, r);
            sums[0] += r_r;
            sums[1] += r_z;
            deflation.add_parts(&rows, r, &mut sums[2..]);
        });
        if self.apply_general_inverse()? {
            sums[1] = self.inverse.dot(pool, &self.r);
        }
        self.system.comm.sum(sums)?;
        let [r_r, r_z, deflated @ ..] = all;
        Ok(Sums { r_r, r_z, deflated })
    }

    /// `x = x + alpha p` and `p = z + beta p`, A-orthogonal to the deflated directions.
    fn iterate_step(&mut self, alpha: f64, beta: f64, deflated: &[f64]) {
        let r = &self.r[..];
        let inverse = &self.inverse;
        let deflation = &self.deflation;
        self.system.pool.for_rows(r.len(), (&mut self.x[..], &mut self.p[..]), |rows, (x, p)| {
            inverse.descend_rows(alpha, beta, &rows, &r[rows.clone()], x, p);
            deflation.remove_parts(&rows, deflated, p);
        });
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

impl Registered for Cg<'_> {
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

impl Iteration for Cg<'_> {
    fn progress(&self) -> Progress {
        self.progress
    }

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
        self.iterate_step(alpha, beta, &sums.deflated);
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
        self.deflation.recompute_products(&self.system, self.preconditioner, &mut self.q)?;
        match how {
            Resume::Exact => {
                let recurrence_norm = norm(&self.system, &self.r)?;
                self.check_recurrence(recurrence_norm)?;
            }
            Resume::Traditional => self.recompute_residual()?,
            Resume::Restarted => self.restart()?,
            // Directions kept A-orthogonal from one side only would keep the method from
            // converging.
            Resume::Deflated if self.system.symmetry_defect()? > 0.0 => self.restart()?,
            Resume::Deflated => {
                self.deflation.add(&self.system, self.preconditioner, &self.p, &mut self.q)?;
                self.restart()?;
            }
        }
        Ok(self.progress)
    }

    fn residual_kind(&self) -> ResidualKind {
        ResidualKind::Recurrence
    }

    /// One name: restarted or not, the same variables mean the same.
    fn method(&self) -> Option<&'static str> {
        Some(CG.name)
    }

    fn profile(&self) -> MethodProfile {
        self.named().profile
    }

    fn tolerance(&self) -> Option<f64> {
        self.limits.relative(&self.progress)
    }

    /// Compares two products with their values in exact arithmetic. With p' the direction before,
    /// `p = z + beta p'`: r is orthogonal to p', so that `r . p = rho`, and p to `q = A p'`. The
    /// defect of the first relative to rho stays what it is from step to step and scales all later
    /// step lengths: a large one makes the method crawl, one below -1/2 diverge. That of the
    /// second, relative to `beta (p' . q)`, is `r . z' / rho`. A defect that rounding or an
    /// operator that is not symmetric explains is no corruption.
    fn has_sound_directions(&self) -> Result<bool, SolveError> {
        let pool = self.system.pool;
        let [rho] = self.rho;
        let [along, conjugate] = self.sum_over_ranks([dot(pool, &self.r, &self.p), dot(pool, &self.p, &self.q)])?;
        let of_conjugacy = self.safeguards.energy.map_or(0.0, |energy| conjugate.abs() / energy);
        let defect = ((along - rho).abs() / rho).max(of_conjugacy);
        if defect <= DIRECTION_DEFECT_MAX {
            return Ok(true);
        }
        let is_rounding = defect <= DIRECTION_DEFECT_MAX + self.defect_of_rounding()?;
        Ok(is_rounding || self.system.symmetry_defect()? > 0.0)
    }
}

impl Cg<'_> {
    /// The defect that rounding can have made of the directions. Each entry of the recurrence's
    /// residual is off by about `eps sqrt(k) (|A| |x| + |b|)` after k steps (H. A. van der Vorst,
    /// Q. Ye 2000, doi 10.1137/S1064827599353865), with a random sign; the product of these errors
    /// with p, over rho, is the defect. None is explained where the entries of A are not known.
    fn defect_of_rounding(&self) -> Result<f64, SolveError> {
        let b = self.system.b;
        let p = &self.p[..];
        let mut magnitudes = vec![0.0; p.len()];
        let known = self.system.a.abs_apply(&self.x, &mut magnitudes).transpose()?;
        let squares = magnitudes.iter().zip(b).zip(p).map(|((ax, b), p)| ((ax + b.abs()) * p).powi(2));
        let [squares, unknown] = self.sum_over_ranks([squares.sum(), f64::from(u8::from(known.is_none()))])?;
        if unknown > 0.0 {
            return Ok(0.0);
        }
        let steps = self.progress.iteration.max(1) as f64;
        Ok(f64::EPSILON * (steps * squares).sqrt() / self.rho[0])
    }
}

impl Method for Cg<'_> {
    fn name(&self) -> &'static str {
        self.named().name
    }

    fn iterate(&self) -> &[f64] {
        &self.x
    }

    fn bytes_per_iteration(&self) -> f64 {
        let n = self.x.len();
        // the product: p, q; each deflated direction: u with r, w with p
        let arrays = 2 + 2 * self.deflation.len() as u64;
        let vectors = arrays * 8 * n as u64 + self.inverse.bytes_per_iteration(self.preconditioner, n);
        (self.system.a.bytes() + vectors) as f64
    }
}
