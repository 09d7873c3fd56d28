//! BiCGSTAB for general A, preconditioned from the right.
//!
//! Source: H. A. van der Vorst 1992, doi 10.1137/0913035. Departure: the next direction p is formed
//! at the end of a step, so neither v nor alpha nor omega outlive it. When the recurrence's
//! residual meets the tolerance, `b - A x` is computed; if that does not meet it, the method
//! restarts from there, and has stagnated when this no longer halves it. When rho or `shadow . v`
//! is rounding alone, or omega 0, it restarts from x with another shadow residual,
//! [`RESTARTS_MAX`] times at most.
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
//! Beside them two scalars, rho and the true residual norm last found, and from the first restart
//! for the sake of a scalar on the number of those. Every step is a safe point. An exact resume is
//! bitwise; a traditional one recomputes r and rho; a restarted one takes `r = b - A x` for shadow
//! residual and direction. To keep the shadow residual beside a lossy x does not pay. Mean extra
//! iterations of nine recoveries in % of all, fresh and kept, tried apart from this code with
//! diagonal preconditioning to 1e-8: 40^3 Poisson, random b 11 and 11, smooth b 56 and 45, sherman5
//! 21 and 27, orsirr_1 -22 and -14, add32 0 and 0, sherman1 -11 and 14.

mod passes;

use recoup_core::{
    BreakdownReason, Iteration, MethodProfile, Progress, Registered, ResidualKind, Resume, Role, SolveError, Status,
};

pub use passes::{BicgstabPasses, HalfSteps};

use crate::methods::named::{MethodInputs, NamedMethod, Setting, table_facts};
use crate::methods::shared::{
    FOR_EXACT, FOR_TRADITIONAL, ResidualLimits, first_iterate, norm, residual, rhs_norm, start, sum_over_ranks,
};
use crate::methods::variables::lend_variables;
use crate::{Method, Preconditioner, Space, Stop, System};

/// First slot of the preconditioned vectors, behind the six that every solve has.
const PRECONDITIONED_SLOT: usize = 6;
/// Restarts for the sake of scalars that vanished, before the method gives up.
const RESTARTS_MAX: u32 = 10;
/// The name of their number as a variable.
const RESTARTS: &str = "restarts";
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
        gains_by_symmetry: true,
    },
    needs: None,
    settings: &[Setting::Preconditioner],
    make: |of| Ok(Box::new(Bicgstab::of_inputs(of.system, of)?)),
    #[cfg(feature = "cuda")]
    make_on_device: Some(|system, of| Ok(Box::new(Bicgstab::of_inputs(system, of)?))),
};

/// Stabilised bi-conjugate gradients.
pub struct Bicgstab<'a, S: BicgstabPasses = System<'a>> {
    system: S,
    preconditioner: &'a dyn Preconditioner,
    inverse: S::Inverse<'a>,
    limits: ResidualLimits,
    x: S::Vector,
    r: S::Vector,
    shadow: S::Vector,
    p: S::Vector,
    v: S::Vector,
    t: S::Vector,
    preconditioned: Option<HalfStepDirections<S::Vector>>,
    /// `||shadow||`.
    shadow_norm: f64,
    scalars: [f64; 2],
    /// Restarts so far for the sake of scalars that vanished, where there were any.
    restarts: Option<[f64; 1]>,
    progress: Progress,
}

/// The directions of both half steps, where there is a preconditioner.
struct HalfStepDirections<V> {
    /// `M^-1 p`.
    p: V,
    /// `M^-1 s`.
    s: V,
}

impl<'a, S: BicgstabPasses> Bicgstab<'a, S> {
    /// Starts from `x`.
    ///
    /// # Errors
    /// [`SolveError::Length`] and [`SolveError::NotFinite`] for b or x, [`SolveError::Comm`] when a
    /// rank is lost, [`SolveError::Device`] when the place of the vectors fails.
    pub fn new(system: S, preconditioner: &'a dyn Preconditioner, x: &[f64], stop: Stop) -> Result<Self, SolveError> {
        system.host().validate(x)?;
        let rhs_norm = rhs_norm(system.host())?;
        let preconditioned = if preconditioner.is_identity() {
            None
        } else {
            let p = system.zeros(PRECONDITIONED_SLOT)?;
            Some(HalfStepDirections { p, s: system.zeros(PRECONDITIONED_SLOT + 1)? })
        };
        let mut solver = Self {
            preconditioner,
            inverse: system.inverse(preconditioner)?,
            limits: ResidualLimits::new(stop, rhs_norm)?,
            r: system.zeros(0)?,
            shadow: system.zeros(1)?,
            p: system.zeros(2)?,
            v: system.zeros(3)?,
            t: system.zeros(4)?,
            x: first_iterate(&system, x, rhs_norm, 5)?,
            preconditioned,
            shadow_norm: 0.0,
            scalars: [0.0, f64::INFINITY],
            restarts: None,
            progress: start(rhs_norm),
            system,
        };
        solver.resume(0, Resume::Restarted)?;
        solver.limits.set_start(&solver.progress);
        Ok(solver)
    }

    fn of_inputs(system: S, of: &MethodInputs<'a>) -> Result<Self, SolveError> {
        Self::new(system, of.preconditioner, of.x0, of.stop)
    }

    /// Restarts from x: `r = b - A x`, shadow residual and direction the same.
    fn restart(&mut self) -> Result<(), SolveError> {
        let residual_norm = residual(&self.system, &self.x, &mut self.r)?;
        self.system.copy(&self.r, &mut self.shadow)?;
        self.system.copy(&self.r, &mut self.p)?;
        self.shadow_norm = residual_norm;
        self.scalars = [residual_norm * residual_norm, residual_norm];
        self.limits.record(residual_norm, &mut self.progress);
        Ok(())
    }

    /// Restarts from x because `scalar` vanished, with the shadow residual `r + v ||r|| / ||v||`,
    /// `v = A M^-1 r`, or their difference where `r . v < 0`. Its products with r and v are at
    /// least `||r||^2` and `||r|| ||v||`, so the next step has a rho and a `shadow . v`.
    fn replace_shadow(&mut self, scalar: &'static str) -> Result<(), SolveError> {
        let [restarts] = self.restarts.unwrap_or_default();
        self.restart()?;
        if self.progress.status != Status::Running {
            return Ok(());
        }
        let [r_v, v_v] = self.multiply_direction()?;
        if restarts >= f64::from(RESTARTS_MAX) || v_v == 0.0 {
            let reason = BreakdownReason::Vanished { scalar, restarts: restarts as u32 };
            self.progress.status = Status::Breakdown(reason);
            return Ok(());
        }
        self.restarts = Some([restarts + 1.0]);
        let scale = (self.progress.residual_norm / v_v.sqrt()).copysign(r_v);
        self.system.axpy(scale, &self.v, &mut self.shadow)?;
        self.shadow_norm = norm(&self.system, &self.shadow)?;
        self.recompute_rho()
    }

    fn recompute_rho(&mut self) -> Result<(), SolveError> {
        [self.scalars[RHO]] = sum_over_ranks(&self.system, [self.system.dot(&self.shadow, &self.r)?])?;
        Ok(())
    }

    /// `v = A M^-1 p` and `alpha = rho / (shadow . v)`, with another shadow residual where one of
    /// these is 0 but for rounding; `None` where the solve has ended.
    fn step_length(&mut self) -> Result<Option<f64>, SolveError> {
        while self.progress.status == Status::Running {
            let rho = self.scalars[RHO];
            // Behind the last restart, noise is better than no step.
            let can_restart = self.restarts.is_none_or(|[restarts]| restarts < f64::from(RESTARTS_MAX));
            let rounding = if can_restart { f64::EPSILON * self.shadow_norm } else { 0.0 };
            if rho.abs() <= rounding * self.progress.residual_norm {
                self.replace_shadow("rho")?;
                continue;
            }
            let [curvature, v_v] = self.multiply_direction()?;
            let has_vanished = curvature.abs() <= rounding * v_v.sqrt();
            if !has_vanished {
                return Ok(Some(rho / curvature));
            }
            self.replace_shadow("shadow . v")?;
        }
        Ok(None)
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

    /// `v = A M^-1 p`, and `shadow . v` and `v . v`.
    fn multiply_direction(&mut self) -> Result<[f64; 2], SolveError> {
        let system = &self.system;
        let between = self.preconditioned.as_mut().map(|of| &mut of.p);
        let source = preconditioned(system, &self.inverse, &self.p, between)?;
        sum_over_ranks(system, system.multiply_dots(source, &self.shadow, &mut self.v)?)
    }

    /// `t = A M^-1 s`, and `t . s` and `t . t`; s stands in r.
    fn multiply_half_residual(&mut self) -> Result<[f64; 2], SolveError> {
        let system = &self.system;
        let s = &self.r;
        let between = self.preconditioned.as_mut().map(|of| &mut of.s);
        let source = preconditioned(system, &self.inverse, s, between)?;
        sum_over_ranks(system, system.multiply_dots(source, s, &mut self.t)?)
    }

    /// `x += alpha M^-1 p + omega M^-1 s`, `r = s - omega t`; `r . r` and `shadow . r`.
    fn iterate_step(&mut self, alpha: f64, omega: f64) -> Result<[f64; 2], SolveError> {
        let half_steps = HalfSteps {
            p: self.preconditioned.as_ref().map_or(&self.p, |of| &of.p),
            s: self.preconditioned.as_ref().map(|of| &of.s),
            t: &self.t,
            shadow: &self.shadow,
        };
        let local = self.system.iterate_step(alpha, omega, &half_steps, &mut self.x, &mut self.r)?;
        sum_over_ranks(&self.system, local)
    }
}

/// `M^-1 source`, in `target` where there is a preconditioner.
fn preconditioned<'v, S: Space>(
    system: &S,
    inverse: &S::Inverse<'_>,
    source: &'v S::Vector,
    target: Option<&'v mut S::Vector>,
) -> Result<&'v S::Vector, SolveError> {
    let Some(target) = target else { return Ok(source) };
    system.precondition(inverse, source, target)?;
    Ok(target)
}

impl<S: BicgstabPasses> Registered for Bicgstab<'_, S> {
    lend_variables! { |solver|
        rows("x", Role::Iterate, solver.x);
        rows("r", FOR_EXACT, solver.r);
        rows("shadow", FOR_TRADITIONAL, solver.shadow);
        rows("p", FOR_TRADITIONAL, solver.p);
        scalars("scalars", FOR_TRADITIONAL, solver.scalars);
        given(Some(restarts) in solver.restarts) {
            scalars(RESTARTS, FOR_TRADITIONAL, restarts[..]);
        }
    }

    fn make_room(&mut self, saved: &[&str]) {
        self.restarts = saved.contains(&RESTARTS).then_some([0.0]);
    }
}

impl<S: BicgstabPasses> Iteration for Bicgstab<'_, S> {
    table_facts! { |solver| solver.name(), BICGSTAB.profile }

    fn step(&mut self) -> Result<Progress, SolveError> {
        if self.progress.status != Status::Running {
            return Ok(self.progress);
        }
        // v = A M^-1 p, alpha = rho / (shadow . v)
        let Some(alpha) = self.step_length()? else { return Ok(self.progress) };
        let rho = self.scalars[RHO];
        // s = r - alpha v
        self.system.axpy(-alpha, &self.v, &mut self.r)?;
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
            let beta = (rho_next / rho) * (alpha / omega);
            self.system.direction_step(beta, omega, &self.r, &self.v, &mut self.p)?;
        }
        self.check_recurrence(squared.sqrt())?;
        if omega == 0.0 && self.progress.status == Status::Running {
            self.replace_shadow("omega")?;
        }
        Ok(self.progress)
    }

    fn resume(&mut self, iteration: u64, how: Resume) -> Result<Progress, SolveError> {
        self.progress.iteration = iteration;
        self.shadow_norm = norm(&self.system, &self.shadow)?;
        match how {
            Resume::Deflated => return Err(SolveError::Resume { method: self.name(), how }),
            Resume::Restarted => {
                self.restarts = None;
                self.restart()?;
            }
            Resume::Traditional => {
                let residual_norm = residual(&self.system, &self.x, &mut self.r)?;
                self.recompute_rho()?;
                self.check_recurrence(residual_norm)?;
            }
            Resume::Exact => {
                let residual_norm = norm(&self.system, &self.r)?;
                self.check_recurrence(residual_norm)?;
            }
        }
        Ok(self.progress)
    }

    fn residual_kind(&self) -> ResidualKind {
        ResidualKind::Recurrence
    }
}

impl<S: BicgstabPasses> Method for Bicgstab<'_, S> {
    fn name(&self) -> &'static str {
        BICGSTAB.name
    }

    fn iterate(&self) -> Result<Vec<f64>, SolveError> {
        self.system.to_host(&self.x)
    }

    fn bytes_per_iteration(&self) -> f64 {
        let a = self.system.host().a;
        let n = a.rows() as f64;
        let products = 2.0 * (a.bytes() as f64 + 16.0 * n);
        // shadow . v reads 2; s reads 2, writes 1; t . s, t . t stand next to their product; x and
        // r read 5, write 2; p reads 3, writes 1.
        let vectors = 8.0 * n * (2.0 + 3.0 + 7.0 + 4.0);
        if self.preconditioner.is_identity() {
            return products + vectors;
        }
        // t . s, t . t read 2, and x reads another vector than r.
        products + vectors + 24.0 * n + 2.0 * (16.0 * n + self.preconditioner.bytes_per_apply() as f64)
    }
}
