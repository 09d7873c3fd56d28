//! The words of a choice: why the best schedule was chosen, and why each other one was not.

use std::fmt;

use super::choice::{ScheduleCandidate, ScheduleChoice, SchedulePlan, readable_bytes};
use super::kind::ScheduleKind;
use super::problem::StateForm;

impl ScheduleChoice {
    /// Returns the reasons of the choice, in sentences.
    #[must_use]
    pub fn why(&self) -> String {
        let best = self.best;
        let work = match best.recomputed_steps {
            0 => "computes nothing again".to_owned(),
            again => format!("computes {again} forward steps in addition to {}", best.forward_steps - again),
        };
        let disk = match best.disk_bytes_max {
            0 => String::new(),
            bytes => format!(" and {} on disk", readable_bytes(bytes)),
        };
        let is_alone = self.candidates.iter().filter(|of| of.outcome.is_ok()).count() == 1;
        let rank = if is_alone { "is the only schedule that fits" } else { "takes the least time" };
        format!(
            "{} {rank}: {:.3} s. It {work}, with {} of states in memory{disk}. {}",
            name(best.kind, best.form),
            best.seconds,
            readable_bytes(best.memory_bytes_max),
            self.on_storing_all(),
        )
        .trim_end()
        .to_owned()
    }

    /// Says why not everything is stored raw, the first question of every user.
    fn on_storing_all(&self) -> String {
        let raw = (ScheduleKind::StoreAll, StateForm::Raw);
        match self.candidates.iter().find(|of| (of.kind, of.form) == raw) {
            Some(of) if !self.is_best(of) => format!("Storing all states raw: {}.", self.reason(of)),
            _ => String::new(),
        }
    }

    /// Returns whether a candidate is the one chosen.
    #[must_use]
    pub fn is_best(&self, candidate: &ScheduleCandidate) -> bool {
        (candidate.kind, candidate.form) == (self.best.kind, self.best.form)
    }

    /// Returns the reason for which a candidate was chosen or not.
    #[must_use]
    pub fn reason(&self, candidate: &ScheduleCandidate) -> String {
        match &candidate.outcome {
            _ if self.is_best(candidate) => "chosen".to_owned(),
            Err(refusal) => refusal.to_string(),
            Ok(plan) if plan.seconds == self.best.seconds => "as fast, and less simple".to_owned(),
            Ok(plan) => format!("{:.3} s slower", plan.seconds - self.best.seconds),
        }
    }
}

fn name(kind: ScheduleKind, form: StateForm) -> String {
    format!("{kind} with {form} states")
}

/// A line for each candidate, and the reasons of the choice below.
impl fmt::Display for ScheduleChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [again, memory, disk] = ["again", "memory", "disk"];
        writeln!(f, "{:<26} {:>14} {again:>10} {memory:>11} {disk:>11}  reason", "schedule", "seconds")?;
        for candidate in &self.candidates {
            let name = name(candidate.kind, candidate.form);
            let reason = self.reason(candidate);
            match candidate.outcome {
                Ok(SchedulePlan { seconds, recomputed_steps, memory_bytes_max, disk_bytes_max, .. }) => writeln!(
                    f,
                    "{name:<26} {seconds:>14.3} {recomputed_steps:>10} {:>11} {:>11}  {reason}",
                    readable_bytes(memory_bytes_max),
                    readable_bytes(disk_bytes_max),
                )?,
                Err(_) => writeln!(f, "{name:<26} {:>14} {:>10} {:>11} {:>11}  {reason}", "-", "-", "-", "-")?,
            }
        }
        writeln!(f, "{}", self.why())
    }
}
