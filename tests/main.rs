//! Questions about the whole, one module each.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod bounded;
mod bounds;
mod chains;
mod codec_selection;
mod corruption;
mod crashes;
mod damage;
mod decoders;
mod deflation;
mod disk_full;
mod evolving;
mod faults;
mod golden;
mod golden_cases;
mod increments;
mod last;
mod lost_place;
mod many_ranks;
mod memory_files;
mod memory_tiers;
mod mid_cycle;
mod mutations;
mod one_rank;
mod pyramid_streams;
mod qb_cases;
mod qb_streams;
mod ranks;
mod readers;
mod recurrences;
mod refusal;
mod regions;
mod rollback;
mod support;
mod tape_files;
mod verdict;
