//! Static variables: one version of a run of their own, beside the versions that need it.

use recoup::Builder;
use recoup::core::{Comm, Progress, Registered, Scheme, Status};
use recoup::pipeline::{Outcome, Session};

use crate::lent::Lent;
use crate::options::Options;
use crate::protected::Protected;
use crate::status::{Failure, RECOUP_E_DAMAGED, RECOUP_E_NOT_SAVED};

/// What the run's name ends in.
const SUFFIX: &str = ".static";

fn builder(options: &Options) -> Builder {
    let name = format!("{}{SUFFIX}", options.name());
    options.builder(false).name(&name).scheme(Scheme::Lossless).keep(1)
}

fn open(options: &Options, comm: &dyn Comm) -> Result<Session, Failure> {
    Ok(builder(options).build_on(comm)?)
}

/// Removes what they have in memory. Collective.
pub(crate) fn forget_memory(options: &Options, lent: &Lent) -> Result<(), Failure> {
    Ok(builder(options).forget_memory(lent.comm())?)
}

/// Saves them, in place of what another run left there. Collective, inside a call of the program.
pub(crate) fn save(options: &Options, lent: &Lent, statics: &Protected) -> Result<(), Failure> {
    let mut session = open(options, lent.comm())?;
    session.start_over()?;
    let plan = options.builder(false).plan_of(Scheme::Lossless);
    let (iteration, residual_norm, rhs_norm) = (0, 0.0, 0.0);
    let progress = Progress { iteration, residual_norm, rhs_norm, status: Status::Running, is_safe_point: true };
    let owners: [&dyn Registered; 1] = [statics];
    session.checkpoint(plan, progress, &owners)?;
    lent.finish(|| session.outstanding().map_or(true, |n| n == 0))?;
    match session.take_outcomes().pop() {
        Some(Outcome::Failed { message, .. }) => {
            Err(Failure::new(RECOUP_E_NOT_SAVED, format!("static variables: {message}")))
        }
        _ => Ok(()),
    }
}

/// Brings them back. Collective, inside a call of the program.
pub(crate) fn restore(options: &Options, lent: &Lent, statics: &mut Protected) -> Result<(), Failure> {
    let mut session = open(options, lent.comm())?;
    match session.restore_with(&mut [statics])? {
        Some(_) => Ok(()),
        None => Err(Failure::new(RECOUP_E_DAMAGED, "the static variables of this run are not there")),
    }
}
