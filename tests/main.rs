//! Questions about the whole, one module each.

mod bounds;
mod damage;
mod disk_full;
mod golden;
mod readers;
mod refusal;
mod rollback;
mod support;
mod verdict;
