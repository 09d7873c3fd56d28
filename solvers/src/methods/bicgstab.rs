//! BiCGSTAB for general A, preconditioned from the right.
//!
//! Source: H. A. van der Vorst 1992, doi 10.1137/0913035. Departure: the next direction p is formed
//! at the end of a step, so neither v nor alpha nor omega outlive it. When the recurrence's
//! residual meets the tolerance, `b - A x` is computed; if that does not meet it, the method
//! restarts from there, and has stagnated when this no longer halves it.
//!
//! | vectors of length n | count | checkpoint |
//! |---|---|---|
//! | x | 1 | iterate |
//! | p, shadow residual | 2 | saved for a traditional and an exact resume |
//! | r | 1 | saved for an exact resume |
//! | v, t | 2 | rebuilt |
//! | `M^-1 p`, `M^-1 s` (with a preconditioner) | 2 | rebuilt |
//! | b, A, M | - | static |
//!
//! Beside them two scalars: rho, and the true residual norm last found. Every step is a safe
//! point. An exact resume is bitwise; a traditional one recomputes r and rho; a restarted one
//! takes `r = b - A x` for shadow residual and direction. To keep the shadow residual beside a
//! lossy x does not pay. Mean extra iterations of nine recoveries in % of all, fresh and kept,
//! tried apart from this code with diagonal preconditioning to 1e-8: 40^3 Poisson, random b 11 and
//! 11, smooth b 56 and 45, sherman5 21 and 27, orsirr_1 -22 and -14, add32 0 and 0, sherman1 -11
//! and 14.

use recoup_core::{
    BreakdownReason, Iteration, MethodProfile, Progress, Registered, ResidualKind, Resume, Role, SolveError, Status,
};

use crate::kernels::simd::dot_block;
use crate::kernels::vector::{axpy, copy, dot, norm_squared};
use crate::methods::named::{NamedMethod, Setting};
use crate::methods::shared::{FOR_EXACT, FOR_TRADITIONAL, ResidualLimits, global_norm, residual, rhs_norm, start};
use crate::methods::variables::lend_variables;
use crate::{Method, Preconditioner, Stop, System, Vector};

/// First slot of the preconditioned vectors, behind the six that every solve has.
const PRECONDITIONED_SLOT: usize = 6;
/// Position of rho among the scalars.
const RHO: usize = 0;
/// Position of the true residual norm last found among the scalars.
const FOUND: usize = 1;

/// The method.
pub(super) const BICGSTAB: NamedMethod = NamedMethod {
    name: "bicgstab",
    summary: "Stabilised bi-conjugate gradients",
    profile: MethodProfile {
        theta: 0.5,
        lossy_resume: Resume::Traditional,
        restarted_fraction: 0.4,
        deflated_fraction: 0.4,
        continued_share: 1e-4,
        starts_slowly: true,
        is_stationary: false,
    },
    needs: None,
    settings: &[Setting::Preconditioner],
    make: |of| Ok(Box::new(Bicgstab::new(of.system, of.preconditioner, of.x0, of.stop)?)),
};

/// Stabilised bi-conjugate gradients.
pub struct Bicgstab<'a> {
    system: System<'a>,
    preconditioner: &'a dyn Preconditioner,
    limits: ResidualLimits,
    x: Vector,
    r: Vector,
    shadow: Vector,
    p: Vector,
    v: Vector,
    t: Vector,
    /// `M^-1 p` and `M^-1 s`; empty without a preconditioner.
    preconditioned: [Vector; 2],
    scalars: [f64; 2],
    progress: Progress,
}

impl<'a> Bicgstab<'a> {
    /// Starts from `x`.
    ///
    /// # Errors
    /// [`SolveError::Length`] and [`SolveError::NotFinite`] for b or x, [`SolveError::Comm`] when a
    /// rank is lost.
    pub fn new(
        system: System<'a>,
        preconditioner: &'a dyn Preconditioner,
        x: &[f64],
        stop: Stop,
    ) -> Result<Self, SolveError> {
        system.validate(x)?;
        let pool = system.pool;
        let n = x.len();
        let rhs_norm = rhs_norm(&system)?;
        let [r, shadow, p, v, t, mut iterate] = Vector::several(pool, n);
        copy(pool, x, &mut iterate);
        let preconditioned_len = if preconditioner.is_identity() { 0 } else { n };
        let mut solver = Self {
            preconditioner,
            limits: ResidualLimits::new(stop, rhs_norm)?,
            x: iterate,
            r,
            shadow,
            p,
            v,
            t,
            preconditioned: Vector::several_from(pool, preconditioned_len, PRECONDITIONED_SLOT),
            scalars: [0.0, f64::INFINITY],
            progress: start(rhs_norm),
            system,
        };
        solver.resume(0, Resume::Restarted)?;
        solver.limits.set_start(&solver.progress);
        Ok(solver)
    }

    fn break_down(&mut self, scalar: &'static str) -> Result<Progress, SolveError> {
        self.progress.status = Status::Breakdown(BreakdownReason::Vanished { scalar });
        Ok(self.progress)
    }

    /// Restarts from x: `r = b - A x`, shadow residual and direction the same.
    fn restart(&mut self) -> Result<(), SolveError> {
        let pool = self.system.pool;
        let residual_norm = residual(&self.system, &self.x, &mut self.r)?;
        copy(pool, &self.r, &mut self.shadow);
        copy(pool, &self.r, &mut self.p);
        self.scalars = [residual_norm * residual_norm, residual_norm];
        self.limits.record(residual_norm, &mut self.progress);
        Ok(())
    }

    /// Takes the recurrence's residual norm. Where it meets the tolerance or is not a number, the
    /// method restarts from the true residual, which decides.
    fn check_recurrence(&mut self, residual_norm: f64) -> Result<(), SolveError> {
        self.limits.record(residual_norm, &mut self.progress);
        if residual_norm > self.limits.tolerance {
            return Ok(());
        }
        let before = self.scalars[FOUND];
        self.restart()?;
        if self.progress.status == Status::Running && self.progress.residual_norm > 0.5 * before {
            self.progress.status = Status::Breakdown(BreakdownReason::Stagnated);
        }
        Ok(())
    }

    /// `v = A M^-1 p`, and `shadow . v`.
    fn multiply_direction(&mut self) -> Result<f64, SolveError> {
        let system = &self.system;
        apply(system, self.preconditioner, &self.p, &mut self.preconditioned[0], &mut self.v)?;
        let mut product = [dot(system.pool, &self.shadow, &self.v)];
        system.comm.sum(&mut product)?;
        Ok(product[0])
    }

    /// `t = A M^-1 s`, and `t . s` and `t . t`; s stands in r.
    fn multiply_half_residual(&mut self) -> Result<[f64; 2], SolveError> {
        let system = &self.system;
        let t = &mut self.t;
        let s = &self.r;
        apply(system, self.preconditioner, s, &mut self.preconditioned[1], t)?;
        let mut products = system.pool.sum_rows(s.len(), (), |rows, ()| {
            let t = &t[rows.clone()];
            [dot_block(t, &s[rows]), dot_block(t, t)]
        });
        system.comm.sum(&mut products)?;
        Ok(products)
    }

    /// `x += alpha M^-1 p + omega M^-1 s`, `r = s - omega t`; `r . r` and `shadow . r`.
    fn iterate_step(&mut self, alpha: f64, omega: f64) -> Result<[f64; 2], SolveError> {
        let shadow = &self.shadow;
        let t = &self.t;
        let system = &self.system;
        // Without a preconditioner s itself is the second direction, and it is being overwritten by
        // r.
        let is_identity = self.preconditioner.is_identity();
        let [preconditioned_p, preconditioned_s] = &self.preconditioned;
        let first = if is_identity { &self.p } else { preconditioned_p };
        let second = (!is_identity).then_some(preconditioned_s);
        let mut sums = system.pool.sum_rows(t.len(), (&mut self.x[..], &mut self.r[..]), |rows, (x, r)| {
            let p = &first[rows.clone()];
            let t = &t[rows.clone()];
            match second {
                Some(s) => add_two(alpha, p, omega, &s[rows.clone()], x),
                None => add_two(alpha, p, omega, r, x),
            }
            for (r, t) in r.iter_mut().zip(t) {
                *r -= omega * t;
            }
            [dot_block(r, r), dot_block(&shadow[rows], r)]
        });
        system.comm.sum(&mut sums)?;
        Ok(sums)
    }

    /// `p = r + beta (p - omega v)`.
    fn direction_step(&mut self, beta: f64, omega: f64) {
        let r = &self.r;
        let v = &self.v;
        self.system.pool.for_rows(r.len(), &mut self.p[..], |rows, p| {
            for ((p, r), v) in p.iter_mut().zip(&r[rows.clone()]).zip(&v[rows]) {
                *p = r + beta * (*p - omega * v);
            }
        });
    }
}

/// `x += alpha p + omega s`.
fn add_two(alpha: f64, p: &[f64], omega: f64, s: &[f64], x: &mut [f64]) {
    for ((x, p), s) in x.iter_mut().zip(p).zip(s) {
        *x += alpha * p + omega * s;
    }
}

/// `target = A M^-1 source`, keeping `M^-1 source` in `between` where there is a preconditioner.
fn apply(
    system: &System<'_>,
    preconditioner: &dyn Preconditioner,
    source: &[f64],
    between: &mut Vector,
    target: &mut [f64],
) -> Result<(), SolveError> {
    if preconditioner.is_identity() {
        return Ok(system.a.apply(source, target)?);
    }
    preconditioner.apply(system.pool, source, between)?;
    Ok(system.a.apply(between, target)?)
}

impl Registered for Bicgstab<'_> {
    lend_variables! { |solver|
        rows("x", Role::Iterate, solver.x);
        rows("r", FOR_EXACT, solver.r);
        rows("shadow", FOR_TRADITIONAL, solver.shadow);
        rows("p", FOR_TRADITIONAL, solver.p);
        scalars("scalars", FOR_TRADITIONAL, solver.scalars);
    }
}

impl Iteration for Bicgstab<'_> {
    fn progress(&self) -> Progress {
        self.progress
    }

    fn step(&mut self) -> Result<Progress, SolveError> {
        if self.progress.status != Status::Running {
            return Ok(self.progress);
        }
        let rho = self.scalars[RHO];
        if rho == 0.0 {
            return self.break_down("rho");
        }
        // v = A M^-1 p, alpha = rho / (shadow . v)
        let curvature = self.multiply_direction()?;
        if curvature == 0.0 {
            return self.break_down("shadow . v");
        }
        let alpha = rho / curvature;
        // s = r - alpha v
        axpy(self.system.pool, -alpha, &self.v, &mut self.r);
        // t = A M^-1 s, omega = (t . s) / (t . t); a t of zero means that s is.
        let [ts, tt] = self.multiply_half_residual()?;
        let omega = if tt == 0.0 { 0.0 } else { ts / tt };
        // x = x + alpha M^-1 p + omega M^-1 s, r = s - omega t
        let [squared, rho_next] = self.iterate_step(alpha, omega)?;
        self.progress.iteration += 1;
        if !squared.is_finite() {
            self.progress.residual_norm = squared;
            self.progress.status = Status::Breakdown(BreakdownReason::NotFinite);
            return Ok(self.progress);
        }
        // p = r + beta (p - omega v), beta = (rho' / rho) (alpha / omega)
        self.scalars[RHO] = rho_next;
        if omega != 0.0 {
            self.direction_step((rho_next / rho) * (alpha / omega), omega);
        }
        self.check_recurrence(squared.sqrt())?;
        if omega == 0.0 && self.progress.status == Status::Running {
            return self.break_down("omega");
        }
        Ok(self.progress)
    }

    fn resume(&mut self, iteration: u64, how: Resume) -> Result<Progress, SolveError> {
        self.progress.iteration = iteration;
        match how {
            Resume::Deflated => return Err(SolveError::Resume { method: self.name(), how }),
            Resume::Restarted => self.restart()?,
            Resume::Traditional => {
                let residual_norm = residual(&self.system, &self.x, &mut self.r)?;
                let mut rho = [dot(self.system.pool, &self.shadow, &self.r)];
                self.system.comm.sum(&mut rho)?;
                self.scalars[RHO] = rho[0];
                self.check_recurrence(residual_norm)?;
            }
            Resume::Exact => {
                let residual_norm = global_norm(&self.system, norm_squared(self.system.pool, &self.r))?;
                self.check_recurrence(residual_norm)?;
            }
        }
        Ok(self.progress)
    }

    fn residual_kind(&self) -> ResidualKind {
        ResidualKind::Recurrence
    }

    fn method(&self) -> Option<&'static str> {
        Some(crate::Method::name(self))
    }

    fn profile(&self) -> MethodProfile {
        BICGSTAB.profile
    }

    fn tolerance(&self) -> Option<f64> {
        self.limits.relative(&self.progress)
    }
}

impl Method for Bicgstab<'_> {
    fn name(&self) -> &'static str {
        BICGSTAB.name
    }

    fn iterate(&self) -> &[f64] {
        &self.x
    }

    fn bytes_per_iteration(&self) -> f64 {
        let n = self.x.len() as f64;
        let products = 2.0 * (self.system.a.bytes() as f64 + 16.0 * n);
        // shadow . v reads 2; s reads 2, writes 1; t . s, t . t read 2; x and r read 6, write 2; p
        // reads 3, writes 1.
        let vectors = 8.0 * n * (2.0 + 3.0 + 2.0 + 8.0 + 4.0);
        if self.preconditioner.is_identity() {
            return products + vectors;
        }
        products + vectors + 2.0 * (16.0 * n + self.preconditioner.bytes_per_apply() as f64)
    }
}
