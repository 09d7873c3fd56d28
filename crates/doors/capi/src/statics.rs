//! Static variables: one version of a run of their own, next to the versions that need it.

use recoup::Builder;
use recoup::comm::LentComm;
use recoup::core::{Comm, Progress, Registered, Scheme};
use recoup::options::ParsedOptions;
use recoup::pipeline::{Outcome, Session, VariableChanges};

use crate::protected::ProtectedRegions;
use crate::status::{CallFailure, RECOUP_E_DAMAGED, RECOUP_E_NOT_SAVED};

/// The end of the run's name.
const SUFFIX: &str = ".static";

fn builder(options: &ParsedOptions) -> Builder {
    let name = format!("{}{SUFFIX}", options.name());
    options.builder(false).name(&name).scheme(Scheme::Lossless).keep(1)
}

fn open(options: &ParsedOptions, comm: &dyn Comm) -> Result<Session, CallFailure> {
    Ok(builder(options).build_on(comm)?)
}

/// Removes their version in memory. Collective.
pub(crate) fn forget_memory(options: &ParsedOptions, lent: &LentComm) -> Result<(), CallFailure> {
    Ok(builder(options).forget_memory(lent.comm())?)
}

/// Saves them, in place of those that another run left. Collective, inside a call of the program.
pub(crate) fn save(options: &ParsedOptions, lent: &LentComm, statics: &ProtectedRegions) -> Result<(), CallFailure> {
    let mut session = open(options, lent.comm())?;
    session.start_over()?;
    let plan = options.builder(false).plan_of(Scheme::Lossless);
    let owners: [&dyn Registered; 1] = [statics];
    session.checkpoint(plan, Progress::running(0, 0.0, 0.0), &owners)?;
    lent.finish(|| session.outstanding().map_or(true, |n| n == 0))?;
    match session.take_outcomes().pop() {
        Some(Outcome::Failed { kind, message, .. }) => {
            let message = format!("static variables: {message}");
            Err(CallFailure { code: RECOUP_E_NOT_SAVED, kind, message })
        }
        _ => Ok(()),
    }
}

/// Restores them. Returns the names of those that were not there yet. Collective, inside a call of
/// the program.
pub(crate) fn restore(
    options: &ParsedOptions,
    lent: &LentComm,
    statics: &mut ProtectedRegions,
    changes: &VariableChanges,
) -> Result<Vec<String>, CallFailure> {
    let mut session = open(options, lent.comm())?;
    session.changes().clone_from(changes);
    let names: Vec<String> = statics.variables().iter().map(|variable| variable.name.to_owned()).collect();
    match session.restore_with(&mut [statics])? {
        Some(restored) => Ok(restored.defaults),
        None if names.iter().all(|name| changes.has_default(name)) => Ok(names),
        None => Err(CallFailure::new(RECOUP_E_DAMAGED, "the static variables of this run are not there")),
    }
}
