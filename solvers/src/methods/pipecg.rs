//! Pipelined conjugate gradients for symmetric positive definite A: one reduction per iteration,
//! with the preconditioner and the product done while it is on its way.
//!
//! Source: P. Ghysels, W. Vanroose 2014, algorithm 4, doi 10.1016/j.parco.2013.06.001. The iterates
//! are those of CG in exact arithmetic. What CG multiplies in every step is carried along by
//! recurrences here (u, w, s, q, z). Rounding errors grow in them, so the plain method ends at a
//! larger residual. Departures: `||r||` goes through the same reduction; when the
//! residual has fallen by [`FALL`], and when it meets the tolerance but the true one does not, r
//! and all that follows from x and p are recomputed, which brings the accuracy of CG back (S.
//! Cools, E. F. Yetkin, E. Agullo, L. Giraud, W. Vanroose 2018, doi 10.1137/17M1117872, replace by
//! an estimate of the gap instead).
//!
//! | vectors of length n | count | checkpoint |
//! |---|---|---|
//! | x | 1 | iterate |
//! | p | 1 | direction, saved from a deflated resume on |
//! | w, u, `A w` of deflated resumes | 3 each | w: direction, as p; the others: not needed |
//! | r, `w = A u`, `s = A p`, `z = A q` | 4 | recomputed, saved for an exact resume |
//! | `n = A m` | 1 | not needed |
//! | `u = M^-1 r`, `q = M^-1 s` (with a preconditioner or deflated directions) | 2 | recomputed, saved for an exact resume |
//! | `m = M^-1 w` (the same) | 1 | not needed |
//! | six scalars | - | recomputed, saved from a traditional resume on |
//! | b, A, M | - | static |
//!
//! An exact resume is bitwise; a traditional one computes everything from x and p: the same count,
//! other bits; a restarted one begins with `p = u`. A deflated one does so too, with x optimal over
//! the saved p and those of earlier recoveries ([`crate::DIRECTIONS_MAX`] of them), and `P M^-1` in
//! place of `M^-1`: P makes what it is applied to A-orthogonal to them. What P takes out of m, and
//! with it out of n, follows from sums over w that travel with the others: still one reduction, and
//! 24 bytes per row and iteration for each direction, and 40 for all. Every step is a safe point.
//! The residual norm reported is the recurrence's, whose distance from the true one no bound of
//! CG's explains: [`recoup_core::ResidualKind::Unknown`].

use std::ops::Range;

use recoup_core::{BreakdownReason, ExactSum, Iteration, Progress, Registered, Resume, Role, SolveError, Status};

use crate::kernels::simd::{dot_block, pursue_block};
use crate::methods::cg::CG;
use crate::methods::deflation::{DIRECTIONS_MAX, Deflation, NAMES};
use crate::methods::named::{NamedMethod, Need, Setting, table_facts};
use crate::methods::shared::{FOR_EXACT, FOR_TRADITIONAL, ResidualLimits, first_iterate, residual, rhs_norm, start};
use crate::methods::variables::lend_variables;
use crate::{Method, Preconditioner, Stop, System, Vector};

/// Fall of the residual norm after which the residual is recomputed: its error is a multiple of eps
/// times the largest one since.
const FALL: f64 = 1e-4;

/// Times the true residual may miss the tolerance that the recurrence's meets, before the solve
/// counts as stagnated.
const MISSES_MAX: u32 = 10;

/// First slot of the preconditioned vectors, behind the seven that every solve has.
const PRECONDITIONED_SLOT: usize = 7;

/// `r . u`, `w . u` and `r . r`, which one reduction brings.
const SUMS: usize = 3;
/// Positions among the scalars behind these: `r . u` and alpha of the step before, and the largest
/// residual norm since r was computed.
const GAMMA_BEFORE: usize = 3;
const ALPHA_BEFORE: usize = 4;
const PEAK: usize = 5;

/// The method.
pub(super) const PIPECG: NamedMethod = NamedMethod {
    name: "pipecg",
    summary: "Pipelined conjugate gradients: one reduction per iteration, hidden behind the product",
    profile: CG.profile,
    needs: Some(Need::Symmetry),
    settings: &[Setting::Preconditioner],
    make: |of| Ok(Box::new(PipelinedCg::new(of.system, of.preconditioner, of.x0, of.stop)?)),
    #[cfg(feature = "cuda")]
    make_on_device: None,
};

/// Pipelined conjugate gradients.
pub struct PipelinedCg<'a> {
    system: System<'a>,
    preconditioner: &'a dyn Preconditioner,
    limits: ResidualLimits,
    x: Vector,
    r: Vector,
    w: Vector,
    s: Vector,
    p: Vector,
    z: Vector,
    n: Vector,
    preconditioned: Option<Preconditioned>,
    deflation: Deflation<System<'a>>,
    scalars: [f64; 6],
    misses: u32,
    progress: Progress,
}

/// `M^-1`, or `P M^-1`, of r, s and w.
struct Preconditioned {
    u: Vector,
    q: Vector,
    m: Vector,
}

impl Preconditioned {
    fn new(system: &System<'_>) -> Self {
        let [u, q, m] = Vector::several_from(system.pool, system.a.rows(), PRECONDITIONED_SLOT);
        Self { u, q, m }
    }
}

impl<'a> PipelinedCg<'a> {
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
        let x = first_iterate(&system, x0, rhs_norm, 0)?;
        let [r, w, s, p, z, n] = Vector::several_from(system.pool, x0.len(), 1);
        let preconditioned = (!preconditioner.is_identity()).then(|| Preconditioned::new(&system));
        let mut solver = Self {
            system,
            preconditioner,
            limits: ResidualLimits::new(stop, rhs_norm)?,
            x,
            r,
            w,
            s,
            p,
            z,
            n,
            preconditioned,
            deflation: Deflation::with_images(),
            scalars: [0.0; 6],
            misses: 0,
            progress: start(rhs_norm),
        };
        solver.restart()?;
        solver.limits.set_start(&solver.progress);
        Ok(solver)
    }

    /// Deflated directions part u from r where there is no preconditioner, too.
    fn keep_preconditioned(&mut self) {
        if !self.deflation.is_empty() && self.preconditioned.is_none() {
            self.preconditioned = Some(Preconditioned::new(&self.system));
        }
    }

    /// Restarts from x alone: nothing came before.
    fn restart(&mut self) -> Result<(), SolveError> {
        for vector in [&mut self.s, &mut self.p, &mut self.z] {
            vector.fill(0.0);
        }
        if let Some(preconditioned) = &mut self.preconditioned {
            preconditioned.q.fill(0.0);
        }
        self.scalars[GAMMA_BEFORE] = f64::INFINITY;
        self.scalars[ALPHA_BEFORE] = 1.0;
        self.recompute_residual()
    }

    /// Recomputes from x and p: `r = b - A x`, and everything that follows from both.
    fn replace(&mut self) -> Result<(), SolveError> {
        let system = &self.system;
        // s = A p, q = P M^-1 s, z = A q
        system.a.apply(&self.p, &mut self.s)?;
        let mut q = self.preconditioned.as_mut().map(|of| &mut of.q);
        multiply(system, self.preconditioner, &self.s, q.as_deref_mut(), &mut self.z)?;
        project(system, &self.deflation, &self.s, q, &mut self.z)?;
        self.recompute_residual()
    }

    /// x optimal over the deflated directions, `r = b - A x`, `u = P M^-1 r`, `w = A u`, and the
    /// sums.
    fn recompute_residual(&mut self) -> Result<(), SolveError> {
        let system = &self.system;
        let mut residual_norm = residual(system, &self.x, &mut self.r)?;
        if !self.deflation.is_empty() {
            self.deflation.correct(system, &self.r, &mut self.x)?;
            residual_norm = residual(system, &self.x, &mut self.r)?;
        }
        let mut u = self.preconditioned.as_mut().map(|of| &mut of.u);
        multiply(system, self.preconditioner, &self.r, u.as_deref_mut(), &mut self.w)?;
        project(system, &self.deflation, &self.r, u, &mut self.w)?;
        self.limits.record(residual_norm, &mut self.progress);
        self.scalars[PEAK] = residual_norm;
        let r = &self.r[..];
        let w = &self.w[..];
        let u = self.preconditioned.as_ref().map_or(r, |of| &of.u);
        let block = |rows: Range<usize>, ()| sums_block(&r[rows.clone()], &u[rows.clone()], &w[rows]);
        let sums = system.pool.sum_rows(system.rows(), (), block);
        self.reduce(sums)
    }

    /// The sums over all ranks; `m = M^-1 w` and `n = A m` meanwhile. They say what P takes out of
    /// m and n.
    fn reduce(&mut self, sums: [ExactSum; SUMS]) -> Result<(), SolveError> {
        let system = &self.system;
        let preconditioner = self.preconditioner;
        let w = &self.w;
        let n = &mut self.n;
        let mut m = self.preconditioned.as_mut().map(|of| &mut of.m);
        let mut all = [ExactSum::ZERO; SUMS + DIRECTIONS_MAX];
        let all = &mut all[..SUMS + self.deflation.len()];
        all[..SUMS].copy_from_slice(&sums);
        self.deflation.local_parts(system, w, &mut all[SUMS..])?;
        let mut worked = Ok(());
        system.comm.sum_exact_while(all, &mut || {
            worked = multiply(system, preconditioner, w, m.as_deref_mut(), n);
        })?;
        let mut rounded = [0.0; SUMS + DIRECTIONS_MAX];
        rounded.iter_mut().zip(&*all).for_each(|(value, sum)| *value = sum.rounded());
        let (sums, parts) = rounded[..all.len()].split_at(SUMS);
        self.scalars[..SUMS].copy_from_slice(sums);
        if let Some(m) = m {
            self.deflation.remove_from_product(system, parts, m, n)?;
        }
        worked
    }

    /// Advances in one pass the four directions and what they change; returns this rank's part of
    /// the sums.
    fn advance(&mut self, alpha: f64, beta: f64) -> [ExactSum; SUMS] {
        let System { pool, .. } = self.system;
        let rows = self.system.rows();
        let n = &self.n[..];
        let x = self.x.rows_mut();
        let p = self.p.rows_mut();
        let r = self.r.rows_mut();
        let s = self.s.rows_mut();
        let w = self.w.rows_mut();
        let z = self.z.rows_mut();
        let Some(Preconditioned { u, q, m }) = &mut self.preconditioned else {
            return pool.sum_rows(rows, ((x, p), (r, s), (w, z)), |rows, ((x, p), (r, s), (w, z))| {
                pursue_block(alpha, beta, r, p, x);
                pursue_block(-alpha, beta, w, s, r);
                pursue_block(-alpha, beta, &n[rows], z, w);
                sums_block(r, r, w)
            });
        };
        let u = u.rows_mut();
        let q = q.rows_mut();
        let m = &m[..];
        pool.sum_rows(rows, ((x, p), (r, s), (w, z), (u, q)), |rows, ((x, p), (r, s), (w, z), (u, q))| {
            // p = u + beta p, x = x + alpha p
            pursue_block(alpha, beta, u, p, x);
            // q = m + beta q, u = u - alpha q
            pursue_block(-alpha, beta, &m[rows.clone()], q, u);
            // s = w + beta s, r = r - alpha s
            pursue_block(-alpha, beta, w, s, r);
            // z = n + beta z, w = w - alpha z
            pursue_block(-alpha, beta, &n[rows], z, w);
            sums_block(r, u, w)
        })
    }

    /// Takes the recurrence's residual norm; at the tolerance the true residual decides.
    fn check_recurrence(&mut self) -> Result<(), SolveError> {
        let residual_norm = self.scalars[SUMS - 1].sqrt();
        self.limits.record(residual_norm, &mut self.progress);
        self.scalars[PEAK] = self.scalars[PEAK].max(residual_norm);
        match self.progress.status {
            Status::Running if residual_norm < FALL * self.scalars[PEAK] => self.replace(),
            Status::Converged => {
                // n is recomputed if the solve continues.
                let true_norm = residual(&self.system, &self.x, &mut self.n)?;
                self.limits.record(true_norm, &mut self.progress);
                if self.progress.status != Status::Running {
                    return Ok(());
                }
                self.misses += 1;
                if self.misses <= MISSES_MAX {
                    return self.replace();
                }
                self.progress.status = Status::Breakdown(BreakdownReason::Stagnated);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The step length and the share of the direction before; or why there are none.
    fn factors(&self) -> Result<[f64; 2], BreakdownReason> {
        let [gamma, delta, _, gamma_before, alpha_before, _] = self.scalars;
        if gamma.is_nan() || gamma <= 0.0 {
            return Err(BreakdownReason::Vanished { scalar: "gamma", restarts: 0 });
        }
        // beta = gamma / gamma', alpha = gamma / (delta - beta gamma / alpha')
        let beta = gamma / gamma_before;
        let curvature = delta - beta * gamma / alpha_before;
        if !curvature.is_finite() {
            return Err(BreakdownReason::NotFinite);
        }
        if curvature <= 0.0 {
            return Err(BreakdownReason::NotPositiveDefinite { curvature });
        }
        Ok([gamma / curvature, beta])
    }
}

/// `product = A M^-1 source`, with `M^-1 source` in `between` where there is a preconditioner.
fn multiply(
    system: &System<'_>,
    preconditioner: &dyn Preconditioner,
    source: &[f64],
    between: Option<&mut Vector>,
    product: &mut [f64],
) -> Result<(), SolveError> {
    let Some(between) = between else { return Ok(system.a.apply(source, product)?) };
    preconditioner.apply(system.pool, source, between)?;
    Ok(system.a.apply(between, product)?)
}

/// `between = P between` for `between = M^-1 source`, and `product = A between` again.
fn project<'a>(
    system: &System<'a>,
    deflation: &Deflation<System<'a>>,
    source: &Vector,
    between: Option<&mut Vector>,
    product: &mut Vector,
) -> Result<(), SolveError> {
    if let (Some(between), false) = (between, deflation.is_empty()) {
        let parts = deflation.parts(system, source)?;
        deflation.remove_from_product(system, &parts[..deflation.len()], between, product)?;
    }
    Ok(())
}

/// `r . u`, `w . u` and `r . r` of one block.
fn sums_block(r: &[f64], u: &[f64], w: &[f64]) -> [f64; SUMS] {
    [dot_block(r, u), dot_block(w, u), dot_block(r, r)]
}

impl Registered for PipelinedCg<'_> {
    lend_variables! { |solver|
        rows("x", Role::Iterate, solver.x);
        rows("p", Role::Direction, solver.p);
        scalars("scalars", FOR_TRADITIONAL, solver.scalars);
        rows("r", FOR_EXACT, solver.r);
        rows("w", FOR_EXACT, solver.w);
        rows("s", FOR_EXACT, solver.s);
        rows("z", FOR_EXACT, solver.z);
        given(Some(preconditioned) in solver.preconditioned) {
            rows("u", FOR_EXACT, preconditioned.u);
            rows("q", FOR_EXACT, preconditioned.q);
        }
        each_rows(&NAMES, Role::Direction, solver.deflation.directions);
    }

    fn make_room(&mut self, saved: &[&str]) {
        self.deflation.make_room(&self.system, saved);
        if self.preconditioner.is_identity() {
            self.preconditioned = None;
            self.keep_preconditioned();
        }
    }
}

impl Iteration for PipelinedCg<'_> {
    table_facts! { |solver| solver.name(), PIPECG.profile }

    fn step(&mut self) -> Result<Progress, SolveError> {
        if self.progress.status != Status::Running {
            return Ok(self.progress);
        }
        let [alpha, beta] = match self.factors() {
            Ok(factors) => factors,
            Err(reason) => {
                self.progress.status = Status::Breakdown(reason);
                return Ok(self.progress);
            }
        };
        let gamma = self.scalars[0];
        let sums = self.advance(alpha, beta);
        self.reduce(sums)?;
        self.scalars[GAMMA_BEFORE] = gamma;
        self.scalars[ALPHA_BEFORE] = alpha;
        self.progress.iteration += 1;
        self.check_recurrence()?;
        Ok(self.progress)
    }

    fn resume(&mut self, iteration: u64, how: Resume) -> Result<Progress, SolveError> {
        self.progress.iteration = iteration;
        self.misses = 0;
        self.deflation.recompute_products(&self.system, &self.preconditioner, &mut self.n)?;
        match how {
            // Directions kept A-orthogonal from one side only would keep the method from
            // converging.
            Resume::Deflated if self.system.symmetry_defect()? > 0.0 => self.restart()?,
            Resume::Deflated => {
                self.deflation.add(&self.system, &self.preconditioner, &self.p, &mut self.n)?;
                self.keep_preconditioned();
                self.restart()?;
            }
            Resume::Restarted => self.restart()?,
            Resume::Traditional => self.replace()?,
            Resume::Exact => {
                let mut m = self.preconditioned.as_mut().map(|of| &mut of.m);
                multiply(&self.system, self.preconditioner, &self.w, m.as_deref_mut(), &mut self.n)?;
                project(&self.system, &self.deflation, &self.w, m, &mut self.n)?;
                self.check_recurrence()?;
            }
        }
        Ok(self.progress)
    }
}

impl Method for PipelinedCg<'_> {
    fn name(&self) -> &'static str {
        PIPECG.name
    }

    fn iterate(&self) -> Result<Vec<f64>, SolveError> {
        Ok(self.x.to_vec())
    }

    fn bytes_per_iteration(&self) -> f64 {
        // product: in and out; pass: n, and each of x p, r s, w z read and written; with M also m,
        // u q, and M's own w and m
        let arrays = if self.preconditioned.is_some() { 2 + 13 + 5 + 2 } else { 2 + 13 };
        // each direction: u, w and A w read; once for all of them: w read, m and n read and written
        let arrays = arrays + 3 * self.deflation.len() as u64 + if self.deflation.is_empty() { 0 } else { 5 };
        let vectors = arrays * 8 * self.x.len() as u64;
        let preconditioner = if self.preconditioned.is_some() { self.preconditioner.bytes_per_apply() } else { 0 };
        (self.system.a.bytes() + vectors + preconditioner) as f64
    }
}
