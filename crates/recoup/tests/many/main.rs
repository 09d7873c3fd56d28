//! Many right-hand sides and many systems: one block, or one run that solves one after the other.

mod blocks;
mod complex;
mod systems;
