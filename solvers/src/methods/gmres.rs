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
//! the cycle continues undisturbed.
//!
//! With deflated restarting (GMRES-DR(m, k), R. B. Morgan 2002, doi 10.1137/S1064827599364659) a
//! cycle begins with the k directions the last one was slowest in, and with its residual as the
//! small problem knows it. Departure: that residual is compared with the true one, and where it is
//! not the same any more a cycle begins with `b - A x` alone.
//!
//! | vectors of length n | count | checkpoint |
//! |---|---|---|
//! | x | 1 | iterate |
//! | v carried over (deflated restarting) | k + 1 | exact and traditional at a cycle end; else given up |
//! | basis, in doubles or fewer bits | m + 1 | exact in mid-cycle: the vectors so far, j + 1 after j steps; else rebuilt |
//! | r, work | 2 | rebuilt from x (and v) at a cycle end; free in mid-cycle |
//! | b, A, M | - | static |
//!
//! At a cycle end a restarted and an exact resume of GMRES(m) are the same thing, and bitwise:
//! every cycle begins with `r = b - A x`. In mid-cycle x is that of the cycle's start, so only an
//! exact resume is offered; with it come H, c, the scales and the estimate of the residual. Vectors
//! do not change once they are in the basis: of versions in a row, each has one new one.

mod basis;
mod cycle;
mod estimate;
mod harvest;
mod least_squares;
mod passes;
mod sided;
mod state;

use recoup_core::{
    BreakdownReason, Iteration, MethodProfile, Progress, Registered, ResidualKind, Resume, Role, SafePoint, SolveError,
    Status,
};

pub use basis::BasisStorage;
use cycle::{Cycle, ESTIMATE, names_of};
use estimate::{CycleNumbers, Gain, RecalledNumbers, ResidualEstimate, to_numbers};
use harvest::Start;
use least_squares::hessenberg_len;
pub use passes::GmresPasses;
use sided::SidedPreconditioner;
use state::CycleState;

use crate::methods::named::{MethodInputs, NamedMethod, Setting, table_facts};
use crate::methods::shared::{
    FOR_EXACT, FOR_TRADITIONAL, ResidualLimits, first_iterate, norm, residual, rhs_norm, start,
};
use crate::methods::variables::lend_variables;
use crate::{Method, Preconditioner, Side, Stop, System};

/// First slot of x, r and work: the last ones, as basis vectors take the first.
const SLOTS_BEHIND_BASIS: usize = 13;
/// Factor by which the first look at the true residual comes early from the left, as the ratio
/// behind the estimate drifts.
const LOOK_EARLY: f64 = 2.0;
/// A cycle that lowers the residual by less than this fraction will never end.
const LEAST_GAIN: f64 = 1e-12;
/// Largest relative difference of the norms of a residual carried over from the last cycle and of
/// the true one, with which the former is used. What they differ by themselves is then a twentieth
/// at most, and a cycle that gains a factor of twenty is rare.
const RESIDUAL_GAP: f64 = 1e-3;
/// Ratio of the true residual norm and the estimate at the end of a cycle, above which the next one
/// stores its basis in doubles: rounded vectors have moved it, or, from the left, it has drifted.
const ESTIMATE_GAP: f64 = 2.0;
/// Largest number of directions carried over.
pub const HARVEST_MAX: usize = 16;
/// The name of the small problem over the directions carried over, as a variable.
const START: &str = "h";

/// GMRES(m).
pub(super) const GMRES: NamedMethod = NamedMethod {
    name: "gmres",
    summary: "Generalised minimal residuals, restarted",
    profile: MethodProfile {
        theta: 3.0,
        lossy_resume: Resume::Restarted,
        restarted_fraction: 0.05,
        deflated_fraction: 0.05,
        continued_share: 0.1,
        starts_slowly: false,
        is_stationary: false,
        gains_by_symmetry: false,
    },
    needs: None,
    settings: &[Setting::Preconditioner, Setting::Side, Setting::Restart, Setting::Basis],
    make: |of| Ok(Box::new(Gmres::of_inputs(of.system, of, of.basis)?)),
    #[cfg(feature = "cuda")]
    make_on_device: Some(|system, of| Ok(Box::new(Gmres::of_inputs(system, of, of.basis)?))),
};

/// GMRES with deflated restarting.
pub(super) const GMRES_DR: NamedMethod = NamedMethod {
    name: "gmres-dr",
    summary: "The same with deflated restarting: each cycle begins with --harvest directions of the last one",
    profile: MethodProfile {
        theta: 0.5,
        lossy_resume: Resume::Restarted,
        restarted_fraction: 0.1,
        deflated_fraction: 0.1,
        continued_share: 0.1,
        starts_slowly: false,
        is_stationary: false,
        gains_by_symmetry: true,
    },
    needs: None,
    settings: &[Setting::Preconditioner, Setting::Side, Setting::Restart, Setting::Harvest],
    make: |of| Ok(Box::new(Gmres::of_inputs(of.system, of, BasisStorage::Double)?.deflated(of.harvest)?)),
    #[cfg(feature = "cuda")]
    make_on_device: Some(|system, of| {
        Ok(Box::new(Gmres::of_inputs(system, of, BasisStorage::Double)?.deflated(of.harvest)?))
    }),
};

/// Restarted GMRES.
pub struct Gmres<'a, S: GmresPasses = System<'a>> {
    system: S,
    m: SidedPreconditioner<'a, S>,
    limits: ResidualLimits,
    x: S::Vector,
    r: S::Vector,
    work: S::Vector,
    cycle: Cycle<S>,
    estimate: ResidualEstimate,
    gain: Gain,
    /// Both, as a version in the middle of a cycle holds them.
    numbers: CycleNumbers,
    /// Directions to carry over from cycle to cycle; 0 for GMRES(m).
    wanted: usize,
    progress: Progress,
}

/// Options of GMRES.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GmresOptions {
    /// Restart length m.
    pub restart: usize,
    /// Side of the preconditioner.
    pub side: Side,
    /// Tolerance and divergence limit.
    pub stop: Stop,
}

impl<'a, S: GmresPasses> Gmres<'a, S> {
    /// Starts from `x`.
    ///
    /// # Errors
    /// [`SolveError::Length`] and [`SolveError::NotFinite`] for b or x, [`SolveError::Parameter`]
    /// for a restart length of 0, [`SolveError::Comm`] when a rank is lost, [`SolveError::Device`]
    /// when the place of the vectors fails.
    pub fn new(
        system: S,
        preconditioner: &'a dyn Preconditioner,
        x: &[f64],
        options: GmresOptions,
    ) -> Result<Self, SolveError> {
        Self::with_basis(system, preconditioner, x, options, BasisStorage::Double)
    }

    /// Starts from `x`, with the basis stored in a way of choice.
    ///
    /// # Errors
    /// As [`Gmres::new`], and [`SolveError::Operator`] for floats where vectors are stored on a
    /// device.
    pub fn with_basis(
        system: S,
        preconditioner: &'a dyn Preconditioner,
        x: &[f64],
        options: GmresOptions,
        basis: BasisStorage,
    ) -> Result<Self, SolveError> {
        system.host().validate(x)?;
        let m = options.restart;
        if m == 0 {
            return Err(SolveError::Parameter { what: "restart length", value: 0.0, expected: "at least 1" });
        }
        let rhs_norm = rhs_norm(system.host())?;
        let mut gmres = Self {
            m: SidedPreconditioner::new(&system, preconditioner, options.side)?,
            limits: ResidualLimits::new(options.stop, rhs_norm)?,
            x: first_iterate(&system, x, rhs_norm, SLOTS_BEHIND_BASIS)?,
            r: system.zeros(SLOTS_BEHIND_BASIS + 1)?,
            work: system.zeros(SLOTS_BEHIND_BASIS + 2)?,
            cycle: Cycle::new(&system, m, basis)?,
            estimate: ResidualEstimate { ratio: 1.0, look_at: 0.0 },
            gain: Gain::NONE,
            numbers: CycleNumbers::default(),
            wanted: 0,
            progress: start(rhs_norm),
            system,
        };
        gmres.resume(0, Resume::Restarted)?;
        gmres.limits.set_start(&gmres.progress);
        Ok(gmres)
    }

    fn of_inputs(system: S, of: &MethodInputs<'a>, basis: BasisStorage) -> Result<Self, SolveError> {
        let options = GmresOptions { restart: of.restart, side: of.side, stop: of.stop };
        Self::with_basis(system, of.preconditioner, of.x0, options, basis)
    }

    /// Makes the solve restart with deflation: `directions` of a cycle, or one more where that
    /// would part a pair, are carried over to the next.
    ///
    /// # Errors
    /// [`SolveError::Parameter`] where they leave no room in a cycle, or are more than
    /// [`HARVEST_MAX`]; [`SolveError::Operator`] for a basis in floats.
    pub fn deflated(mut self, directions: usize) -> Result<Self, SolveError> {
        if self.cycle.basis.storage != BasisStorage::Double {
            return Err(SolveError::Operator { method: "deflated restarting", needed: "a basis in doubles" });
        }
        if directions > HARVEST_MAX || directions + 3 > self.cycle.length_max() {
            let expected = "at most 16, and at least 3 fewer than the restart length";
            return Err(SolveError::Parameter { what: "directions carried over", value: directions as f64, expected });
        }
        self.wanted = directions;
        Ok(self)
    }

    /// The line of the table that this solve belongs to.
    fn named(&self) -> &'static NamedMethod {
        if self.wanted > 0 { &GMRES_DR } else { &GMRES }
    }

    /// Records the norm of `b - A x` at a safe point.
    fn record_safe_point(&mut self, residual_norm: f64) {
        self.limits.record(residual_norm, &mut self.progress);
        self.progress.safe_point = SafePoint::Any;
    }

    /// Starts a cycle from x and `r = b - A x`.
    fn start_plain_cycle(&mut self) -> Result<(), SolveError> {
        self.m.precondition_residual(&self.system, &self.r, &mut self.work)?;
        let squared = norm(&self.system, &self.work)?.powi(2);
        self.start_estimate(&[squared.sqrt()]);
        self.cycle.start_from_vector(&self.system, &mut self.work, squared)
    }

    /// Starts a cycle from x and the first basis vectors, of unit length, with the small problem
    /// `start`. Returns false where its residual is not the true one or the problem is singular; a
    /// plain cycle must be started then.
    fn start_deflated_cycle(&mut self, start: &Start) -> Result<bool, SolveError> {
        self.m.precondition_residual(&self.system, &self.r, &mut self.work)?;
        let known = norm(&self.system, &self.work)?;
        let gap = (start.residual.norm() - known).abs();
        if gap.is_nan() || gap > RESIDUAL_GAP * known {
            return Ok(false);
        }
        let gain = self.gain;
        self.start_estimate(start.residual.as_slice());
        if self.progress.status == Status::Running && self.cycle.start_from_carried(start) {
            return Ok(true);
        }
        self.gain = gain;
        self.progress.status = Status::Running;
        Ok(false)
    }

    /// Starts the estimate of a cycle whose residual, preconditioned from the left, is c over its
    /// basis, and ends the solve where the last cycle gained too little.
    fn start_estimate(&mut self, c: &[f64]) {
        let beta = c.iter().map(|c| c * c).sum::<f64>().sqrt();
        let tolerance = self.limits.tolerance;
        let residual_norm = self.progress.residual_norm;
        self.estimate = match self.m.side {
            Side::Left => {
                ResidualEstimate { ratio: residual_norm / beta, look_at: LOOK_EARLY * tolerance * beta / residual_norm }
            }
            Side::Right => ResidualEstimate { ratio: 1.0, look_at: tolerance },
        };
        let before = std::mem::replace(&mut self.gain.beta, beta);
        // What a plain cycle failed to gain a deflated one may, and the other way round; and what
        // one in few bits failed to gain, the one in doubles that follows.
        let is_stalled = beta > before * (1.0 - LEAST_GAIN);
        let has_others = self.wanted > 0 || self.cycle.basis.storage == BasisStorage::Auto;
        let may_stall = has_others && !std::mem::replace(&mut self.gain.has_stalled, is_stalled);
        if beta == 0.0 || !beta.is_finite() {
            self.progress.status = Status::Breakdown(BreakdownReason::NotFinite);
        } else if is_stalled && !may_stall {
            self.progress.status = Status::Breakdown(BreakdownReason::Stagnated);
        }
    }

    /// The next basis vector becomes the preconditioned product of the newest one.
    fn multiply(&mut self) -> Result<(), SolveError> {
        let (v, w) = self.cycle.newest_and_next();
        self.m.multiply(&self.system, v, w, &mut self.work)
    }

    /// The iterate of the columns so far into `work`, its residual into `r`, and the norm of that.
    fn form_iterate(&mut self) -> Result<f64, SolveError> {
        let system = &self.system;
        if self.m.is_applied_from(Side::Right) {
            // x_k = x + M^-1 V y
            system.clear(&mut self.r)?;
            self.cycle.add_minimiser(system, &mut self.r)?;
            system.precondition(&self.m.inverse, &self.r, &mut self.work)?;
            system.xpay(&self.x, 1.0, &mut self.work)?;
        } else {
            // x_k = x + V y
            system.copy(&self.x, &mut self.work)?;
            self.cycle.add_minimiser(system, &mut self.work)?;
        }
        residual(system, &self.work, &mut self.r)
    }

    /// Forms the iterate and its true residual; they end the cycle where it is over or the solve
    /// has converged, and correct the estimate otherwise.
    fn measure_residual(&mut self, is_last: bool) -> Result<(), SolveError> {
        let residual_norm = self.form_iterate()?;
        if is_last || residual_norm <= self.limits.tolerance {
            return self.end_cycle(residual_norm);
        }
        let estimated = self.cycle.residual_norm();
        self.estimate = ResidualEstimate {
            ratio: residual_norm / estimated,
            // Half the way on a logarithmic scale: the ratio drifts, so aiming at the target comes
            // late.
            look_at: estimated * (self.limits.tolerance / residual_norm).sqrt(),
        };
        self.progress.residual_norm = residual_norm;
        Ok(())
    }

    /// Makes the iterate formed in `work` the new x, and starts the next cycle unless the solve has
    /// ended.
    fn end_cycle(&mut self, residual_norm: f64) -> Result<(), SolveError> {
        std::mem::swap(&mut self.x, &mut self.work);
        self.record_safe_point(residual_norm);
        if self.progress.status != Status::Running {
            // The vectors belong to the iterate before.
            self.cycle.state = CycleState::Plain;
            return Ok(());
        }
        let ResidualEstimate { ratio, .. } = self.estimate;
        let is_off = residual_norm > ratio * f64::min(ESTIMATE_GAP * self.cycle.residual_norm(), self.gain.beta);
        self.cycle.plan_next(&self.system, is_off)?;
        let start = self.cycle.carry_over(&self.system, self.wanted)?;
        self.start_cycle(start)
    }

    /// Starts a cycle with the vectors carried over where there are any that fit, and else without.
    fn start_cycle(&mut self, start: Option<Start>) -> Result<(), SolveError> {
        match start {
            Some(start) if self.start_deflated_cycle(&start)? => Ok(()),
            _ => self.start_plain_cycle(),
        }
    }

    /// Continues with a restored cycle of which `columns` steps are done. Returns false where this
    /// solve would not have made it.
    fn resume_within(&mut self, iteration: u64, columns: usize) -> Result<bool, SolveError> {
        let Self { system, m, work, .. } = self;
        if !self.cycle.recall_plan(system)?
            || !self.cycle.recall(system, columns, |v, w| m.multiply(system, v, w, work))?
        {
            return Ok(false);
        }
        let RecalledNumbers { estimate, gain, residual_norm } =
            RecalledNumbers::new(self.numbers, self.limits.tolerance);
        self.estimate = estimate;
        self.gain = gain;
        let Progress { rhs_norm, .. } = self.progress;
        let status = Status::Running;
        self.progress = Progress { iteration, residual_norm, rhs_norm, status, safe_point: SafePoint::Exact };
        Ok(true)
    }
}

impl<S: GmresPasses> Registered for Gmres<'_, S> {
    lend_variables! { |solver|
        rows("x", Role::Iterate, solver.x);
        given(BasisStorage::Double in solver.cycle.basis.storage) {
            each_rows(&solver.cycle.names[0], solver.cycle.state.role(),
                      solver.cycle.basis.doubles[..solver.cycle.state.vectors()]);
        }
        given(BasisStorage::Float | BasisStorage::Auto in solver.cycle.basis.storage) {
            each_of(names_of(&solver.cycle.names, solver.cycle.kinds, solver.cycle.state.vectors(), 0),
                    solver.cycle.state.role(), solver.cycle.basis.mixed.doubles[..]);
            each_of(names_of(&solver.cycle.names, solver.cycle.kinds, solver.cycle.state.vectors(), 1),
                    solver.cycle.state.role(), solver.cycle.basis.mixed.floats[..]);
            each_of(names_of(&solver.cycle.names, solver.cycle.kinds, solver.cycle.state.vectors(), 2),
                    solver.cycle.state.role(), solver.cycle.basis.mixed.halves[..]);
        }
        given(BasisStorage::Auto in solver.cycle.basis.storage) {
            scalars("storages", FOR_EXACT, solver.cycle.plan[..]);
        }
        given(CycleState::Within { columns } in solver.cycle.state) {
            scalars("hessenberg", FOR_EXACT, solver.cycle.small.hessenberg[..hessenberg_len(*columns)]);
            scalars("c", FOR_EXACT, solver.cycle.small.c[..=*columns]);
            scalars("scales", FOR_EXACT, solver.cycle.scales[..=*columns]);
            scalars(ESTIMATE, FOR_EXACT, solver.numbers[..]);
        }
        given(CycleState::Deflated { start, .. } in solver.cycle.state) {
            scalars(START, FOR_TRADITIONAL, start[..]);
        }
    }

    fn make_room(&mut self, saved: &[&str]) {
        self.cycle.make_room(&self.system, saved);
    }
}

impl<S: GmresPasses> Iteration for Gmres<'_, S> {
    table_facts! { |solver| solver.name(), solver.named().profile }

    /// Does one inner iteration; the last of a cycle forms x and begins the next cycle.
    fn step(&mut self) -> Result<Progress, SolveError> {
        if self.progress.status != Status::Running {
            return Ok(self.progress);
        }
        // w = M^-1 A v, orthogonal to the basis
        self.multiply()?;
        let can_grow = self.cycle.extend(&self.system, &mut self.work)?;
        self.progress.iteration += 1;
        self.progress.residual_norm = self.cycle.residual_norm() * self.estimate.ratio;
        self.progress.safe_point = SafePoint::Exact;
        let is_spent = self.cycle.is_spent(self.gain.beta);
        let is_last = !can_grow || self.cycle.is_full() || is_spent;
        if is_last || self.cycle.residual_norm() <= self.estimate.look_at {
            self.measure_residual(is_last)?;
        }
        self.numbers = to_numbers(self.estimate, self.gain, &self.progress, self.limits.tolerance);
        Ok(self.progress)
    }

    /// Continues in the middle of a cycle where a version holds one and an exact resume is asked
    /// for, and else from x: with the vectors carried over where there are any and an exact or
    /// traditional resume is asked for.
    fn resume(&mut self, iteration: u64, how: Resume) -> Result<Progress, SolveError> {
        let is_resumed = match self.cycle.state {
            _ if how == Resume::Restarted => true,
            CycleState::Within { columns } if how == Resume::Exact => {
                if self.resume_within(iteration, columns)? {
                    return Ok(self.progress);
                }
                false
            }
            CycleState::Within { .. } | CycleState::Misfit => false,
            CycleState::Plain | CycleState::Deflated { .. } => how != Resume::Deflated,
        };
        if !is_resumed {
            return Err(SolveError::Resume { method: self.name(), how });
        }
        if how != Resume::Exact || !self.cycle.recall_plan(&self.system)? {
            self.cycle.forget_plan(&self.system)?;
        }
        self.progress.iteration = iteration;
        self.gain = Gain::NONE;
        let residual_norm = residual(&self.system, &self.x, &mut self.r)?;
        self.record_safe_point(residual_norm);
        if self.progress.status != Status::Running {
            self.cycle.state = CycleState::Plain;
            return Ok(self.progress);
        }
        let start = if how == Resume::Restarted { None } else { self.cycle.state.start() };
        self.start_cycle(start)?;
        Ok(self.progress)
    }

    /// At cycle ends, `b - A x` was computed.
    fn residual_kind(&self) -> ResidualKind {
        ResidualKind::True
    }
}

impl<S: GmresPasses> Method for Gmres<'_, S> {
    fn name(&self) -> &'static str {
        self.named().name
    }

    fn iterate(&self) -> Result<Vec<f64>, SolveError> {
        self.system.to_host(&self.x)
    }

    fn cycle_length(&self) -> u64 {
        (self.cycle.length_max() - self.wanted) as u64
    }

    /// The mean over a whole cycle.
    fn bytes_per_iteration(&self) -> f64 {
        let a = self.system.host().a;
        let n = a.rows() as f64;
        let m = self.cycle.length_max() as f64;
        let matrix = a.bytes() as f64;
        let is_identity = self.m.matrix.is_identity();
        let preconditioner = if is_identity { 0.0 } else { 16.0 * n + self.m.matrix.bytes_per_apply() as f64 };
        let k = self.wanted as f64;
        let stored = self.cycle.basis.value_bytes();
        // A v; w . v_i reads j + 2 vectors; w - sum c_i v_i reads j + 2 and writes one; j is (m +
        // k - 1) / 2 on average.
        let vectors = stored * n * (m + k + 1.0);
        // In other numbers the new vector is read and written once more.
        let again = if self.cycle.basis.storage == BasisStorage::Double { 0.0 } else { 16.0 * n };
        let iteration = matrix + 16.0 * n + vectors + 24.0 * n + again;
        // V y reads m vectors beside x and writes x_k twice; the residual; v_0, or V P, which
        // writes k + 1 of m + 1.
        let carried = if self.wanted > 0 { 8.0 * n * (m + k + 2.0) } else { 0.0 };
        let cycle = n * (stored * m + 32.0) + matrix + 24.0 * n + 16.0 * n + 8.0 * n + carried;
        iteration + preconditioner + (cycle + preconditioner) / (m - k)
    }
}
