//! The calls of recoup.h.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

use recoup::core::{Progress, Resume};
use recoup::options::ParsedOptions;
use recoup::pipeline::KnownNorms;

use crate::callbacks::RecoupComm;
use crate::handle::{Handle, RecoupHandle, RecoupStats};
use crate::lent::lent_comm;
use crate::operator::{CallbackOperator, RECOUP_OPERATOR_ANY_THREAD, RecoupApply};
use crate::protected::{RECOUP_STATIC, RecoupRebuild, Region};
use crate::status::{CallFailure, RECOUP_E_NAME, RECOUP_NO_VERSION, RECOUP_NOT_YET, RECOUP_OK, guarded};

/// Result of recoup_due: it is time to save, and the iterate is enough.
pub const RECOUP_DUE_ITERATE: i32 = 1;
/// Result of recoup_due: it is time to save, with directions and all else that is protected for
/// such a resume.
pub const RECOUP_DUE_DIRECTION: i32 = 2;
/// Opens a handle, and writes it to `handle`. Nothing is read or written yet.
///
/// `options` are words as in "dir=ckpt name=solve scheme=lossy interval=20it", each a flag of the
/// program `recoup run`: dir (the one that must be there), name, scheme, codec, bound, theta,
/// delta, interval, state, keep, max-bytes, key-every, increments (off, hash or auto), mtti (a
/// duration: seconds, or 12h), rtol, pfs-bandwidth (bytes per second, or 1GB/s), tiers (memory,
/// partner:ringD, rs:K+M and pfs, fastest first, as in tiers=memory,partner:ring1,pfs) with
/// memory-dir, node-ranks, pfs-every and drain, method (cg, gmres, jacobi ..: what lossy versions
/// are to keep for it), threads (that copy and decode while the program waits, at most 256), sync,
/// which makes every checkpoint wait until it counts, same_operator=no, which says that A or b
/// change from solve to solve, systems, which says that the run solves many systems
/// (recoup_begin_system), time-limit (recoup_time_left), hang-limit (the wait of ranks for each
/// other after which the job ends with code 75, or RECOUP_HANG_LIMIT), and stay, which keeps the
/// library's thread on the core the process is bound to, where it is bound to a single one. `comm`
/// is NULL for a job of one rank; it is copied, and what it points to must live as long as the
/// handle. Collective.
///
/// RECOUP_E_ARGUMENT, RECOUP_E_OPTIONS.
///
/// # Safety
/// `options` is NULL or a C string, `comm` and `handle` are NULL or point to such a thing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_open(
    options: *const c_char,
    comm: *const RecoupComm,
    handle: *mut RecoupHandle,
) -> i32 {
    let open = || {
        // SAFETY: as the caller promises.
        let options: ParsedOptions = unsafe { text("options", options) }?.parse()?;
        // SAFETY: as the caller promises.
        let raw = unsafe { comm.as_ref() }.copied();
        // SAFETY: the program lends its callbacks as long as the handle lives.
        let lent = unsafe { lent_comm(raw) };
        let lent =
            lent.ok_or_else(|| CallFailure::argument("comm: a callback is missing, or rank and size do not fit"))?;
        Ok(Handle::open(options, lent))
    };
    // SAFETY: as the caller promises.
    unsafe { answer("handle", handle, open) }
}

/// Lends a variable to the handle: `count` values of `type` at `values`, this rank's share.
///
/// `name` has 1 to 64 letters, digits, '_', '-' and '.', the last not first, and is the same on all
/// ranks. The share starts at element `first` of `global`; or `first` is RECOUP_RANK_LOCAL or
/// RECOUP_REPLICATED, and `global` is not looked at. The memory must stay there until the handle is
/// closed; it is read in recoup_step and recoup_checkpoint, and written in recoup_restore.
/// Protecting a name again moves the variable, whose role, type and size stay: another one under
/// its name is RECOUP_E_NAME. `values` may be in the memory of a CUDA device: the library finds
/// that out, and a call then waits for all work that the program has given the device.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_NAME, RECOUP_E_ORDER.
///
/// # Safety
/// `name` is NULL or a C string; `values` has `count` values of `type`, unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_protect(
    handle: RecoupHandle,
    name: *const c_char,
    role: i32,
    r#type: i32,
    values: *mut c_void,
    count: u64,
    first: u64,
    global: u64,
) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        // SAFETY: as the caller promises.
        let name = unsafe { text("name", name) }?;
        check_name(name)?;
        let region = Region::new(name, role, r#type, values, count, first, global)?;
        handle.with(|_, core| {
            let is_started = core.is_started();
            let (this, other) = match role {
                RECOUP_STATIC => (&mut core.statics, &core.protected),
                _ => (&mut core.protected, &core.statics),
            };
            if other.holds(name) {
                return Err(CallFailure::new(RECOUP_E_NAME, format!("variable {name}: taken")));
            }
            this.add(region, is_started)
        })
    })
}

/// Declares that the values of a variable lie on a grid of nx x ny x nz points on this rank, nx
/// fastest: they are then encoded in fewer bytes. The product is the variable's count.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_NAME.
///
/// # Safety
/// `name` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_grid(handle: RecoupHandle, name: *const c_char, nx: u64, ny: u64, nz: u64) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        // SAFETY: as the caller promises.
        let name = unsafe { text("name", name) }?;
        handle.with(|_, core| core.protected.set_grid(name, [nx, ny, nz]))
    })
}

/// Declares that the program announces every write to a variable, from now on, with recoup_touch. A
/// version that is saved exactly then holds what was announced, and no value is read to find that
/// out. A write that is not announced may be missing from versions.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_NAME.
///
/// # Safety
/// `name` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_track(handle: RecoupHandle, name: *const c_char) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        // SAFETY: as the caller promises.
        let name = unsafe { text("name", name) }?;
        handle.with(|_, core| core.protected.track(name))
    })
}

/// Announces that `count` values from value `first` of this rank's share of a tracked variable were
/// written, or will be before the next call that may save. Values beyond the last one are ignored.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_NAME; RECOUP_E_ORDER if it is not tracked.
///
/// # Safety
/// `name` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_touch(handle: RecoupHandle, name: *const c_char, first: u64, count: u64) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        // SAFETY: as the caller promises.
        let name = unsafe { text("name", name) }?;
        handle.with(|_, core| core.protected.touch(name, first, count))
    })
}

/// Gives the problem A x = b: `apply` computes this rank's `rows` rows of y = A x, which are those
/// from `first` of `global`; `rhs` is b and is copied. With it, lossy versions are held to ||b - A
/// x'|| <= (1 + theta) ||r|| by measurement, and recoup_restore refuses the versions of another
/// problem. It takes doubles also where the iterate is of floats, which are widened for it. A
/// complex equation is two rows: x, y and b hold pairs of real and imaginary part.
///
/// Problems are told apart by b and by two products with fixed vectors, taken once. A relative
/// difference of 1024 eps sqrt(global) counts as rounding, or as another number of ranks. With
/// same_operator=no such a version is a first guess, RECOUP_FIRST_GUESS.
///
/// `frobenius` is ||A||_F over all ranks, or 0 when it is not known: it is then estimated, by eight
/// products. `flags` is 0 or RECOUP_OPERATOR_ANY_THREAD.
///
/// In a run with the option systems it is called again for each system: it then waits until the
/// versions under way are made, and is collective. If A changes in place, call recoup_wait before.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_ORDER.
///
/// # Safety
/// `rhs` has `rows` values, unless it is NULL; `apply` reads and writes as many, and may be called
/// until the handle is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_operator(
    handle: RecoupHandle,
    apply: RecoupApply,
    ctx: *mut c_void,
    rows: u64,
    first: u64,
    global: u64,
    rhs: *const f64,
    frobenius: f64,
    flags: u32,
) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        let apply = apply.ok_or_else(|| CallFailure::argument("apply is NULL"))?;
        let is_inside = first.checked_add(rows).is_some_and(|end| end <= global) && global > 0;
        let is_memory = rows < (isize::MAX / 8) as u64 && (rows == 0 || (!rhs.is_null() && rhs.is_aligned()));
        let is_norm = frobenius >= 0.0 && frobenius.is_finite();
        if !is_inside || !is_memory || !is_norm || flags & !RECOUP_OPERATOR_ANY_THREAD != 0 {
            let what =
                format!("operator: rows {first} + {rows} of {global}, rhs {rhs:p}, norm {frobenius}, flags {flags}");
            return Err(CallFailure::argument(what));
        }
        let rows = rows as usize;
        // SAFETY: as the caller promises.
        let rhs = if rows == 0 { &[] } else { unsafe { std::slice::from_raw_parts(rhs, rows) } };
        let thread = Arc::clone(handle.lent.thread());
        let is_free_threaded = flags & RECOUP_OPERATOR_ANY_THREAD != 0;
        // One rank gives all of it, as shares are added.
        let share = if handle.lent.comm().rank() == 0 { frobenius * frobenius } else { 0.0 };
        let frobenius_squared = (frobenius > 0.0).then_some(share);
        let norms = [None, None];
        let operator =
            CallbackOperator { apply, ctx, rows, first, global, is_free_threaded, frobenius_squared, norms, thread };
        handle.with(|this, core| core.set_operator(this, operator, rhs))
    })
}

/// Gives ||A||_inf and ||A||_1 of the operator given before, each 0 if it is not known. Directions
/// are then encoded without a product if recoup_operator has no RECOUP_OPERATOR_ANY_THREAD, and
/// bound=guaranteed is available. Before the first restore or step, or recoup_begin_system. The
/// same on all ranks.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_OPERATOR when no operator was given,
/// RECOUP_E_ORDER.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_operator_norms(handle: RecoupHandle, infinity_norm: f64, one_norm: f64) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        let norms =
            [infinity_norm, one_norm].map(|norm| known("norm", norm)).into_iter().collect::<Result<Vec<_>, _>>()?;
        handle.with(|_, core| core.set_operator_norms([norms[0], norms[1]]))
    })
}

/// Gives norms of the state that the next recoup_step or recoup_checkpoint saves, if the program
/// knows them: ||b - A x||_2 of the iterate and d . A d of the one direction, over all ranks, each
/// 0 if it is not known. Each saves a verified version a product. The bound is then held to the
/// residual norm given, and measured again only if the first one fails. The same on all ranks.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_known(handle: RecoupHandle, residual_norm: f64, direction_squared: f64) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        let residual_norm = known("||b - A x||", residual_norm)?;
        let direction_squared = known("d . A d", direction_squared)?;
        handle.with(|_, core| {
            core.known.residual_norm = residual_norm;
            core.known.direction_squared = direction_squared;
            Ok(())
        })
    })
}

/// Writes 1 to `wants` if recoup_known would save the next version a product, else 0: then the
/// program need not compute the norms. The same on all ranks, after the same calls.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT.
///
/// # Safety
/// `wants` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_wants_known(handle: RecoupHandle, wants: *mut i32) -> i32 {
    let wanted = || Handle::of(handle)?.with(|this, core| Ok(i32::from(core.wants_known(this))));
    // SAFETY: as the caller promises.
    unsafe { answer("wants", wants, wanted) }
}

/// Registers `rebuild`, which is called at the end of every recoup_restore that brought a version
/// back, after those given before it: for state that is recomputed from the variables, or on a
/// device.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT.
///
/// # Safety
/// `rebuild` may be called with `ctx` until the handle is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_on_restore(handle: RecoupHandle, rebuild: RecoupRebuild, ctx: *mut c_void) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        if rebuild.is_none() {
            return Err(CallFailure::argument("rebuild is NULL"));
        }
        handle.with(|_, core| {
            core.add_rebuild(rebuild, ctx);
            Ok(())
        })
    })
}

/// Brings all variables back from the newest version that is whole and of this problem, on all
/// ranks; writes the iteration to continue from, and how: RECOUP_RESTARTED or better, or
/// RECOUP_FIRST_GUESS. `how` may be NULL. After an error no variable that the versions hold has
/// changed. Collective.
///
/// RECOUP_NO_VERSION when there is none, and nothing is written; RECOUP_E_HANDLE,
/// RECOUP_E_ARGUMENT, RECOUP_E_ORDER, RECOUP_E_NAME, RECOUP_E_STORE, RECOUP_E_DAMAGED,
/// RECOUP_E_OTHER_PROBLEM, RECOUP_E_MISMATCH, RECOUP_E_COMM, RECOUP_E_CALLBACK, RECOUP_E_OPERATOR.
///
/// # Safety
/// `iteration` and `how` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_restore(handle: RecoupHandle, iteration: *mut u64, how: *mut i32) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        let iteration = out("iteration", iteration)?;
        let Some((version, code)) = handle.with(|this, core| core.restore(this))? else {
            return Ok(RECOUP_NO_VERSION);
        };
        // SAFETY: not NULL, and the caller's to be written.
        unsafe { iteration.write(version) };
        if !how.is_null() {
            // SAFETY: as above.
            unsafe { how.write(code) };
        }
        Ok(RECOUP_OK)
    })
}

/// Decides after an iteration whether to save, and saves. `residual_norm` and `rhs_norm` are ||r||
/// and ||b||, in any norm, or 0 if there is no such thing. `iteration` counts up from call to call,
/// in each system from 0 again; a restore takes it back. Returns after a copy; the version is made
/// in the background. Collective.
///
/// A version that cannot be made is no error here: the solver continues, and recoup_wait reports
/// it.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_ORDER, RECOUP_E_NAME, RECOUP_E_STORE,
/// RECOUP_E_COMM, RECOUP_E_CALLBACK, RECOUP_E_OPERATOR.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_step(handle: RecoupHandle, iteration: u64, residual_norm: f64, rhs_norm: f64) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        let at = at(iteration, residual_norm, rhs_norm)?;
        handle.with(|this, core| {
            if core.decide(this, at)?.is_some() {
                return core.save(this, at);
            }
            core.known = KnownNorms::default();
            Ok(())
        })
    })
}

/// Writes the seconds left to `seconds`: to the end of the job that RECOUP_JOB_END or
/// SLURM_JOB_END_TIME give in Unix seconds, or of the option time_limit=2h, which counts from
/// recoup_open; the earliest. Infinity if no end is known, 0 once it is over.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT.
///
/// # Safety
/// `seconds` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_time_left(handle: RecoupHandle, seconds: *mut f64) -> i32 {
    let left = || Handle::of(handle)?.with(|_, core| Ok(core.seconds_left()));
    // SAFETY: as the caller promises.
    unsafe { answer("seconds", seconds, left) }
}

/// Writes 1 to `stop` if it is time for the last version, else 0: after the next call there may be
/// no time for it. Called after each iteration that can be saved. The program then calls
/// recoup_checkpoint and recoup_close, and ends; its next start continues from there. The time kept
/// free follows from those of the versions so far; in a batch system it is at least a minute.
/// Draining memory tiers to the directory is not counted. Collective, and the same on all ranks.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_COMM.
///
/// # Safety
/// `stop` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_should_stop(handle: RecoupHandle, stop: *mut i32) -> i32 {
    let is_time = || Handle::of(handle)?.with(|this, core| core.should_stop(this)).map(i32::from);
    // SAFETY: as the caller promises.
    unsafe { answer("stop", stop, is_time) }
}

/// Decides only, as the first half of recoup_step: writes RECOUP_DUE_ITERATE or
/// RECOUP_DUE_DIRECTION to `due` when it is time to save, else 0. For methods whose state must be
/// made ready before it can be saved; recoup_checkpoint then saves it, at this or a later
/// iteration. Collective.
///
/// Codes as of recoup_step.
///
/// # Safety
/// `due` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_due(
    handle: RecoupHandle,
    iteration: u64,
    residual_norm: f64,
    rhs_norm: f64,
    due: *mut i32,
) -> i32 {
    let decide = || {
        let handle = Handle::of(handle)?;
        let at = at(iteration, residual_norm, rhs_norm)?;
        Ok(match handle.with(|this, core| core.decide(this, at))? {
            None => 0,
            Some(plan) if plan.resume == Resume::Restarted => RECOUP_DUE_ITERATE,
            Some(_) => RECOUP_DUE_DIRECTION,
        })
    };
    // SAFETY: as the caller promises.
    unsafe { answer("due", due, decide) }
}

/// Saves now, as recoup_due decided last; otherwise by the scheme, lossless if that is to be
/// decided. Collective.
///
/// Codes as of recoup_step.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_checkpoint(handle: RecoupHandle, iteration: u64, residual_norm: f64, rhs_norm: f64) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        let at = at(iteration, residual_norm, rhs_norm)?;
        handle.with(|this, core| core.save(this, at))
    })
}

/// Waits until all versions taken are made. Collective.
///
/// RECOUP_E_NOT_SAVED if one could not be made since the last call; RECOUP_E_HANDLE,
/// RECOUP_E_ORDER, RECOUP_E_COMM.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_wait(handle: RecoupHandle) -> i32 {
    guarded(|| {
        Handle::of(handle)?.with(|this, core| {
            core.finish(&this.lent)?;
            core.failure()
        })
    })
}

/// Waits until all versions taken are made, for `seconds` at most: 0 only looks, infinity is
/// recoup_wait. One product A x that the call itself makes is not interrupted. Collective, and the
/// same on all ranks.
///
/// RECOUP_NOT_YET if the time was over first: the versions are made on, and the next wait, or
/// recoup_close, waits for them. RECOUP_E_ARGUMENT, and codes as of recoup_wait.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_wait_for(handle: RecoupHandle, seconds: f64) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        if seconds.is_nan() || seconds < 0.0 {
            return Err(CallFailure::argument(format!("seconds {seconds}: expected 0 or more")));
        }
        let timeout = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        handle.with(|this, core| {
            if !core.finish_within(&this.lent, timeout)? {
                return Ok(RECOUP_NOT_YET);
            }
            core.failure().map(|()| RECOUP_OK)
        })
    })
}

/// Writes the counts, bytes and seconds of the versions so far.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_ORDER.
///
/// # Safety
/// `stats` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_stats(handle: RecoupHandle, stats: *mut RecoupStats) -> i32 {
    let found = || Handle::of(handle)?.with(|_, core| Ok(core.stats()));
    // SAFETY: as the caller promises.
    unsafe { answer("stats", stats, found) }
}

/// Says whether the solve has converged, by the program's own test: 1, or 0 if a later start is to
/// continue from its versions. It holds until the next recoup_step, recoup_due or
/// recoup_checkpoint. All ranks say the same. A program that says nothing has converged if the last
/// residual norm is above 0 and at most the option rtol times ||b||, but never in a run with the
/// option systems.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_ORDER.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_converged(handle: RecoupHandle, has_converged: i32) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        if !matches!(has_converged, 0 | 1) {
            return Err(CallFailure::argument(format!("has_converged {has_converged}: expected 0 or 1")));
        }
        handle.with(|_, core| {
            core.set_converged(has_converged == 1);
            Ok(())
        })
    })
}

/// Waits as recoup_wait does, and closes the handle, whatever the code. Its number is never used
/// again. Versions in memory tiers stay for a later start, unless the solve has converged: see
/// recoup_converged. Then the directory gets the newest of them, and memory is freed. With
/// tiers=memory no version is left, and the program has the solution. Collective.
///
/// RECOUP_E_NOT_SAVED if the directory could not get it: memory then stays as it is. Also if the
/// last version that was taken could not be made and recoup_wait has reported that.
/// RECOUP_E_HANDLE, RECOUP_E_ORDER, RECOUP_E_STORE, RECOUP_E_COMM.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_close(handle: RecoupHandle) -> i32 {
    guarded(|| Handle::close(handle).map(|()| RECOUP_OK))
}

/// Returns the place of a solve, as the program gives it.
fn at(iteration: u64, residual_norm: f64, rhs_norm: f64) -> Result<Progress, CallFailure> {
    let is_norm = |norm: f64| norm >= 0.0 && norm.is_finite();
    if !is_norm(residual_norm) || !is_norm(rhs_norm) || iteration > i64::MAX as u64 {
        let found = format!("iteration {iteration}: ||r|| is {residual_norm} and ||b|| is {rhs_norm}");
        return Err(CallFailure::argument(format!("{found}, expected finite numbers from 0 on")));
    }
    Ok(Progress::running(iteration, residual_norm, rhs_norm))
}

/// A number that the program knows; 0 is one that it does not know.
fn known(what: &str, number: f64) -> Result<Option<f64>, CallFailure> {
    let is_one = number >= 0.0 && number.is_finite();
    if is_one { Ok(Some(number).filter(|n| *n > 0.0)) } else { Err(CallFailure::argument(format!("{what}: {number}"))) }
}

/// Checks the place of a result.
pub(crate) fn out<T>(what: &str, target: *mut T) -> Result<*mut T, CallFailure> {
    let is_place = !target.is_null() && target.is_aligned();
    if is_place { Ok(target) } else { Err(CallFailure::argument(format!("{what} is NULL or not aligned"))) }
}

/// Runs the body of a call that writes one result: to `target`, which is looked at first.
///
/// # Safety
/// `target` is NULL or can be written.
pub(crate) unsafe fn answer<T>(what: &str, target: *mut T, body: impl FnOnce() -> Result<T, CallFailure>) -> i32 {
    // SAFETY: as the caller promises.
    unsafe { answer_or(what, target, RECOUP_OK, || body().map(Some)) }
}

/// Does what [`answer`] does, or writes nothing and returns `code_of_none`.
///
/// # Safety
/// `target` is NULL or can be written.
pub(crate) unsafe fn answer_or<T>(
    what: &str,
    target: *mut T,
    code_of_none: i32,
    body: impl FnOnce() -> Result<Option<T>, CallFailure>,
) -> i32 {
    guarded(|| {
        let target = out(what, target)?;
        let Some(result) = body()? else { return Ok(code_of_none) };
        // SAFETY: not NULL, and the caller's to be written.
        unsafe { target.write(result) };
        Ok(RECOUP_OK)
    })
}

/// # Safety
/// `text` is NULL or a C string that lives as long as the call.
pub(crate) unsafe fn text<'a>(what: &str, text: *const c_char) -> Result<&'a str, CallFailure> {
    if text.is_null() {
        return Err(CallFailure::argument(format!("{what} is NULL")));
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| CallFailure::argument(format!("{what} is not UTF-8")))
}

/// Writes a line to room for `capacity` characters, with the zero at its end, and cuts it there.
///
/// # Safety
/// `line` has room for `capacity` characters, unless it is NULL.
pub(crate) unsafe fn write_line(text: &str, line: *mut c_char, capacity: u64) -> Result<(), CallFailure> {
    let target = out("line", line)?;
    let text = text.replace('\0', " ");
    let room = capacity.checked_sub(1).ok_or_else(|| CallFailure::argument("room for no character"))?;
    let len = text.len().min(usize::try_from(room).unwrap_or(usize::MAX));
    // SAFETY: there is room for the characters and the zero.
    unsafe {
        target.copy_from_nonoverlapping(text.as_ptr().cast(), len);
        target.add(len).write(0);
    }
    Ok(())
}

pub(crate) fn check_name(name: &str) -> Result<(), CallFailure> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(is_allowed) {
        let what =
            format!("variable name {name:?}: expected 1 to 64 letters, digits, '_', '-' and '.', the last not first");
        return Err(CallFailure::new(RECOUP_E_NAME, what));
    }
    Ok(())
}
