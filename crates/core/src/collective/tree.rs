//! Bytes of all ranks to rank 0, and from there to each, along a tree: rank 0 alone holds them all,
//! and no rank sends or receives more than log P messages.

use std::ops::Range;

use crate::{Comm, CommError};

/// Bytes of the length before each part.
const LENGTH_BYTES: usize = size_of::<u64>();

/// Sends the bytes of every rank to rank 0, which returns them in rank order; the other ranks
/// return none. Collective.
///
/// # Errors
/// As [`Comm::exchange_bytes`].
pub fn collect_bytes(comm: &dyn Comm, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>, CommError> {
    let place = TreePlace::of(comm);
    let mut bundle = Vec::new();
    push(&mut bundle, mine);
    if !place.children.is_empty() {
        let firsts: Vec<usize> = place.children.iter().map(|ranks| ranks.start).collect();
        bundle.extend(comm.exchange_bytes(&[], &firsts)?.concat());
    }
    match place.parent {
        Some(parent) => comm.exchange_bytes(&[(parent, &bundle)], &[]).map(|_| None),
        None => Ok(Some(parts(&bundle).into_iter().map(|part| bundle[part].to_vec()).collect())),
    }
}

/// Sends each rank the bytes that rank 0 has for it, in rank order, which it returns; what the
/// other ranks pass is dropped, and a rank for which there are none gets no bytes. Collective.
///
/// # Errors
/// As [`Comm::exchange_bytes`].
pub fn hand_out_bytes(comm: &dyn Comm, all: &[Vec<u8>]) -> Result<Vec<u8>, CommError> {
    let place = TreePlace::of(comm);
    let mut bundle = Vec::new();
    match place.parent {
        Some(parent) => bundle = comm.exchange_bytes(&[], &[parent])?.concat(),
        None => all.iter().for_each(|part| push(&mut bundle, part)),
    }
    let parts = parts(&bundle);
    let start = |rank: usize| parts.get(rank - comm.rank()).map_or(bundle.len(), |part| part.start - LENGTH_BYTES);
    let bundle_of = |ranks: &Range<usize>| (ranks.start, &bundle[start(ranks.start)..start(ranks.end)]);
    let sends: Vec<(usize, &[u8])> = place.children.iter().map(bundle_of).collect();
    if !sends.is_empty() {
        comm.exchange_bytes(&sends, &[])?;
    }
    Ok(parts.first().map(|part| bundle[part.clone()].to_vec()).unwrap_or_default())
}

/// The neighbours of a rank in the tree.
struct TreePlace {
    /// The rank above; none above rank 0.
    parent: Option<usize>,
    /// The ranks below, each with those below it, which follow it.
    children: Vec<Range<usize>>,
}

impl TreePlace {
    fn of(comm: &dyn Comm) -> Self {
        let rank = comm.rank();
        let size = comm.size();
        // Below a rank are those up to the next that differs in a higher bit.
        let reach = if rank == 0 { size.next_power_of_two() } else { 1 << rank.trailing_zeros() };
        let below = (0..reach.ilog2()).map(|step| rank + (1 << step)..size.min(rank + (2 << step)));
        Self { parent: rank.checked_sub(reach), children: below.filter(|ranks| ranks.start < size).collect() }
    }
}

fn push(bundle: &mut Vec<u8>, part: &[u8]) {
    bundle.extend((part.len() as u64).to_le_bytes());
    bundle.extend(part);
}

/// Returns where the parts of a bundle are; what is cut short ends the list.
fn parts(bundle: &[u8]) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut end = 0;
    while let Some((length, rest)) = bundle[end..].split_first_chunk::<LENGTH_BYTES>() {
        let length = u64::from_le_bytes(*length) as usize;
        if length > rest.len() {
            break;
        }
        all.push(end + LENGTH_BYTES..end + LENGTH_BYTES + length);
        end += LENGTH_BYTES + length;
    }
    all
}
