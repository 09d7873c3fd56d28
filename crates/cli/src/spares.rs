//! Runs that go on when a rank is killed: spares take its place, or the others close up.
//!
//! Every process does the same: it computes or waits, until all are done or one is lost; then those alive share the
//! places anew, make problem, solver and session anew, and go on from the newest version.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use recoup::model::Rng;
use rustix::process::{Signal, getpid, kill_process};

use crate::ranks;

/// The end of this process by its own hand, at an instant the seed names.
pub(crate) struct Doom {
    is_called_off: Arc<AtomicBool>,
}

/// Which processes die, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dooms {
    /// Mean seconds between two deaths.
    pub(crate) mtti_seconds: f64,
    /// Seed of both.
    pub(crate) seed: u64,
    /// Spare processes: as many die, or where there are none all but one of the others.
    pub(crate) spares: usize,
}

impl Dooms {
    /// When each process that dies does so, of `places` that compute at the beginning: pairs of process and seconds.
    fn victims(&self, places: usize) -> Vec<(usize, f64)> {
        let most = if self.spares > 0 { self.spares.min(places) } else { places - 1 };
        let (mut rng, mut seconds) = (Rng::new(self.seed), 0.0);
        let mut victims: Vec<(usize, f64)> = Vec::new();
        while victims.len() < most {
            seconds += rng.exponential(self.mtti_seconds);
            let process = (rng.next_u64() % places as u64) as usize;
            if victims.iter().all(|(earlier, _)| *earlier != process) {
                victims.push((process, seconds));
            }
        }
        victims
    }
}

impl Doom {
    /// Lets a thread kill this process when its instant comes.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub(crate) fn await_instant(dooms: Dooms, places: usize, process: usize) -> Result<Self> {
        let is_called_off = Arc::new(AtomicBool::new(false));
        let victim = dooms.victims(places).into_iter().find(|(victim, _)| *victim == process);
        if let Some((_, seconds)) = victim {
            let is_called_off = is_called_off.clone();
            let wait = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
            let die = move || {
                std::thread::sleep(wait);
                while is_called_off.load(Ordering::Acquire) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                // A process that may not kill itself lives on.
                let _killed = kill_process(getpid(), Signal::KILL);
            };
            std::thread::Builder::new().name("doom".to_owned()).spawn(die).context("starting a thread")?;
        }
        Ok(Self { is_called_off })
    }

    fn call_off(&self, is_called_off: bool) {
        self.is_called_off.store(is_called_off, Ordering::Release);
    }
}

/// Computes with `life`, which is told how many processes were lost before, or waits as a spare, until all is done.
/// `None` for a spare that was not needed.
///
/// # Errors
/// Those of `life` that no loss explains, exit 5 where a loss cannot be survived.
pub(crate) fn outlive<T>(doom: Option<&Doom>, mut life: impl FnMut(u64) -> Result<T>) -> Result<Option<T>> {
    let mut losses = 0;
    loop {
        let outcome = if ranks::is_spare() { Ok(None) } else { life(losses).map(Some) };
        if let Some(doom) = doom {
            doom.call_off(outcome.is_ok() && !ranks::is_spare());
        }
        match outcome {
            Ok(outcome) => {
                if ranks::rest()? {
                    return Ok(outcome);
                }
            }
            Err(error) if !ranks::has_lost() => return Err(error),
            Err(error) => tracing::warn!("a rank is lost: {error:#}"),
        }
        losses = ranks::repair()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_its_victims_once_each_and_no_more_than_can_be_replaced() {
        for (spares, places, expected) in [(2, 4, 2), (9, 3, 3), (0, 4, 3), (0, 1, 0)] {
            let dooms = Dooms { mtti_seconds: 2.0, seed: 5, spares };
            let victims = dooms.victims(places);
            assert_eq!(victims.len(), expected);
            assert_eq!(victims, dooms.victims(places));
            let mut ids: Vec<usize> = victims.iter().map(|(process, _)| *process).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), expected);
            assert!(ids.iter().all(|id| *id < places) && victims.windows(2).all(|w| w[0].1 < w[1].1));
        }
    }
}
