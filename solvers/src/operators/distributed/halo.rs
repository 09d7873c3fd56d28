//! Values of other ranks' rows, and the work that is done while they travel.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use recoup_core::{Comm, CommError, ExactSum};

use crate::{Pool, SummedRows};

/// The rows that this rank sends, and the numbers of values that it receives; and the rows that
/// need none.
#[derive(Debug, Default)]
pub(super) struct HaloPlan {
    /// Partner, and the rows it gets, ascending.
    pub(super) sends: Vec<(usize, Vec<u32>)>,
    /// Partner, and how many values it sends.
    pub(super) receives: Vec<(usize, usize)>,
    /// A run of whole chunks whose rows need no halo.
    pub(super) inside: Range<usize>,
}

/// A plan, and the communicator that carries it out.
pub(crate) struct Halo {
    plan: Arc<HaloPlan>,
    link: Mutex<HaloLink>,
}

struct HaloLink {
    comm: Box<dyn Comm>,
    outgoing: Vec<f64>,
    incoming: Vec<f64>,
}

impl Halo {
    pub(super) fn new(plan: Arc<HaloPlan>, comm: Box<dyn Comm>) -> Self {
        let outgoing = plan.sends.iter().map(|(_, rows)| rows.len()).sum();
        let incoming = plan.receives.iter().map(|(_, count)| count).sum();
        let link = HaloLink { comm, outgoing: vec![0.0; outgoing], incoming: vec![0.0; incoming] };
        Self { plan, link: Mutex::new(link) }
    }

    /// Returns the same halo on another communicator of the same ranks.
    pub(crate) fn over(&self, comm: Box<dyn Comm>) -> Self {
        Self::new(Arc::clone(&self.plan), comm)
    }

    /// Exchanges values of `x`, does `work` meanwhile, and gives what came to `then`.
    pub(super) fn exchange<R>(
        &self,
        x: &[f64],
        work: &mut dyn FnMut(),
        then: impl FnOnce(&[f64]) -> R,
    ) -> Result<R, CommError> {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        link.exchange(&self.plan, x, work)?;
        Ok(then(&link.incoming))
    }

    /// Exchanges values of `x`, and gives `x` and what came to `then`.
    pub(super) fn exchange_and_change<R>(
        &self,
        x: &mut [f64],
        then: impl FnOnce(&mut [f64], &[f64]) -> R,
    ) -> Result<R, CommError> {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        link.exchange(&self.plan, x, &mut || {})?;
        Ok(then(x, &link.incoming))
    }

    /// Returns the rows whose values are sent, for all partners in order.
    #[cfg(feature = "cuda")]
    pub(crate) fn sent_rows(&self) -> Vec<u32> {
        self.plan.sends.iter().flat_map(|(_, rows)| rows.iter().copied()).collect()
    }

    /// Returns the number of values that come.
    #[cfg(feature = "cuda")]
    pub(crate) fn received(&self) -> usize {
        self.plan.receives.iter().map(|(_, count)| count).sum()
    }

    /// Exchanges the values of [`Halo::sent_rows`], which `fill` brings, and gives what came to
    /// `then`. Where `fill` fails, zeros are sent: no rank waits for another.
    #[cfg(feature = "cuda")]
    pub(crate) fn exchange_filled<E: From<CommError>>(
        &self,
        fill: impl FnOnce(&mut [f64]) -> Result<(), E>,
        then: impl FnOnce(&[f64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        let filled = fill(&mut link.outgoing);
        if filled.is_err() {
            link.outgoing.fill(0.0);
        }
        link.travel(&self.plan, &mut || {})?;
        filled?;
        then(&link.incoming)
    }

    /// Calls `block` for blocks of rows with these rows of `target`, and sums what it adds to its
    /// last argument: for the rows that need no halo while the halo travels.
    pub(super) fn sum(
        &self,
        pool: &Pool,
        chunk_rows: usize,
        x: &[f64],
        target: &mut [f64],
        sums: &mut [ExactSum],
        block: impl Fn(Range<usize>, &[f64], &mut [f64], &mut [f64]) + Sync,
    ) -> Result<(), CommError> {
        let inside = &self.plan.inside;
        let (before, rest) = target.split_at_mut(inside.start);
        let (middle, after) = rest.split_at_mut(inside.len());
        let add = |first: usize, part: &mut [f64], halo: &[f64], sums: &mut [ExactSum]| {
            let summed = SummedRows { rows: part.len(), chunk_rows };
            pool.add_rows_into(summed, part, sums, |rows, part, sums| {
                block(rows.start + first..rows.end + first, halo, part, sums);
            });
        };
        sums.iter_mut().for_each(ExactSum::clear);
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        link.exchange(&self.plan, x, &mut || add(inside.start, middle, &[], sums))?;
        add(0, before, &link.incoming, sums);
        add(inside.end, after, &link.incoming, sums);
        Ok(())
    }
}

impl HaloLink {
    fn exchange(&mut self, plan: &HaloPlan, x: &[f64], work: &mut dyn FnMut()) -> Result<(), CommError> {
        let rows = plan.sends.iter().flat_map(|(_, rows)| rows);
        self.outgoing.iter_mut().zip(rows).for_each(|(value, &row)| *value = x[row as usize]);
        self.travel(plan, work)
    }

    /// Sends what is outgoing, receives what is incoming, and does `work` meanwhile.
    fn travel(&mut self, plan: &HaloPlan, work: &mut dyn FnMut()) -> Result<(), CommError> {
        let Self { comm, outgoing, incoming } = self;
        let mut sends = Vec::new();
        let mut receives = Vec::new();
        let mut unsent = &outgoing[..];
        let mut unfilled = &mut incoming[..];
        for (partner, rows) in &plan.sends {
            let (values, rest) = unsent.split_at(rows.len());
            sends.push((*partner, values));
            unsent = rest;
        }
        for (partner, count) in &plan.receives {
            let (values, rest) = unfilled.split_at_mut(*count);
            receives.push((*partner, values));
            unfilled = rest;
        }
        comm.exchange_while(&sends, &mut receives, work)
    }
}
