//! A program of VELOC's interface: a region and a file of each rank, saved in scratch and copied to
//! persistent storage.

use std::collections::BTreeMap;
use std::time::Duration;

use recoup::core::Comm;
use recoup_veloc::{Client, Config, MemoryRegion};

use crate::choices::Chance;
use crate::disk::{Promise, PromiseKind};
use crate::live::promise;
use crate::other_process::inspect;
use crate::ranks::{AnyError, EarlyEnd, launch};
use crate::run_story::{RankState, SharedStory, told};
use crate::sys;

/// The name of all checkpoints.
const NAME: &str = "wave";
/// The directory of the file system.
const PERSISTENT: &str = "/seed/persistent";
/// The same directory with the name, from the top of the disk.
pub(crate) const VERSIONS: &str = "persistent/wave";
/// The directories of all nodes: in memory that is lost with its node, two folders down as all
/// memory is, or on a disk.
const SCRATCH: [&str; 2] = ["/seed/memory/veloc/scratch", "/seed/scratch"];
/// The file that each rank writes itself.
const FILE: &str = "step.txt";
/// Steps of a whole run.
const STEPS: u64 = 6;
/// Values of a rank.
const VALUES: usize = 200;

/// A program, as a seed chooses it.
#[derive(Clone, Debug)]
pub(crate) struct ClientChoices {
    pub(crate) ranks: usize,
    scratch: &'static str,
    scratch_versions: usize,
    pub(crate) max_versions: usize,
    is_asynchronous: bool,
    has_copies: bool,
    /// Steps after which the program waits for the copy.
    waits_every: u64,
    /// The values of all steps follow from it.
    seed: u64,
}

impl ClientChoices {
    pub(crate) fn drawn(chance: &mut Chance) -> Self {
        Self {
            ranks: chance.one_of(&[1, 2, 2, 3, 4]),
            scratch: chance.one_of(&SCRATCH),
            scratch_versions: 1 + chance.below(3) as usize,
            max_versions: 1 + chance.below(3) as usize,
            is_asynchronous: chance.is_in(48 << 10),
            has_copies: chance.is_in(56 << 10),
            waits_every: 1 + chance.below(4),
            seed: chance.next(),
        }
    }

    fn config(&self) -> Config {
        Config {
            scratch: self.scratch.into(),
            persistent: PERSISTENT.into(),
            asynchronous: self.is_asynchronous,
            scratch_versions: Some(self.scratch_versions),
            max_versions: Some(self.max_versions),
            persistent_interval: self.has_copies.then_some(Duration::ZERO),
            watchdog_interval: Duration::from_secs(60),
            lossy: BTreeMap::new(),
        }
    }
}

/// One rank of a run.
struct ClientRank<'a> {
    choices: &'a ClientChoices,
    client: Client,
    values: Vec<u64>,
    step: u64,
}

/// Runs to the last step, or for some steps: from the newest version on.
pub(crate) fn run(choices: &ClientChoices, end: EarlyEnd, story: &SharedStory) -> Result<(), String> {
    let run_rank = |comm: Box<dyn Comm>| {
        let client = Client::of_ranks(comm, Ok(choices.config()))?;
        ClientRank { choices, client, values: vec![0; VALUES], step: 0 }.run(end.stops_after, story)
    };
    launch(choices.ranks, end.loss, run_rank)?;
    inspect(story, PERSISTENT, NAME).map_err(|error| error.to_string())
}

impl ClientRank<'_> {
    fn run(mut self, stops_after: Option<u64>, story: &SharedStory) -> Result<(), AnyError> {
        let rank = self.client.rank();
        let restored = self.restart()?;
        told(story).restored.insert(rank, restored.map(|version| (version, self.state())));
        let first = restored.map_or(0, |version| version + 1);
        let last = stops_after.map_or(STEPS, |after| STEPS.min(first + after));
        for step in first..last {
            self.advance(step);
            told(story).states.entry((step, rank)).or_default().push(self.state());
            self.checkpoint()?;
            self.promise(PromiseKind::Saved);
            if !self.choices.is_asynchronous || step % self.choices.waits_every == 0 {
                self.client.wait()?;
                self.promise_copy();
            }
        }
        self.client.wait()?;
        if last > first {
            self.promise_copy();
        }
        Ok(self.client.finalize(true)?)
    }

    fn promise_copy(&self) {
        if self.choices.has_copies {
            self.promise(PromiseKind::Durable);
        }
    }

    fn promise(&self, kind: PromiseKind) {
        if self.client.rank() == 0 {
            promise(Promise { kind, version: self.step });
        }
    }

    /// Changes some values, always the same ones in the same step.
    fn advance(&mut self, step: u64) {
        let mut chance = Chance::new(self.choices.seed ^ self.client.rank() as u64, step);
        for _ in 0..3 {
            let place = chance.below(VALUES as u64) as usize;
            self.values[place] = chance.next();
        }
        self.step = step;
    }

    fn state(&self) -> RankState {
        RankState { x: [&self.values[..], &[self.step]].concat(), residual_squared: 0.0 }
    }

    fn protect(&mut self) -> Result<(), recoup_veloc::Error> {
        let region = MemoryRegion::new(self.values.as_mut_ptr().cast(), VALUES, size_of::<u64>())?;
        self.client.protect(None, 0, region)
    }

    /// Takes a checkpoint of this step.
    fn checkpoint(&mut self) -> Result<(), AnyError> {
        self.client.checkpoint_begin(NAME, self.step as i32)?;
        let taken = self.take();
        self.client.checkpoint_end(taken.is_ok())?;
        taken
    }

    fn take(&mut self) -> Result<(), AnyError> {
        self.protect()?;
        let path = self.client.route(FILE)?;
        std::fs::write(path, self.step.to_string())?;
        Ok(sys::take_all(&mut self.client, &self.values)?)
    }

    /// Restores the newest version that is whole on all ranks.
    fn restart(&mut self) -> Result<Option<u64>, AnyError> {
        let Some(version) = self.client.restart_test(NAME, 0)? else { return Ok(None) };
        self.client.restart_begin(NAME, version as i32)?;
        let recovered = self.recover();
        self.client.restart_end(recovered.is_ok())?;
        recovered.map(|()| Some(version))
    }

    fn recover(&mut self) -> Result<(), AnyError> {
        self.protect()?;
        sys::recover_all(&self.client, &mut self.values)?;
        let path = self.client.route(FILE)?;
        self.step = std::fs::read_to_string(path)?.parse()?;
        Ok(())
    }
}
