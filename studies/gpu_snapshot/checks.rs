//! Tests: the numbers of docs/gpu-snapshot, the agreement of formula and simulation, the monitor by
//! hand, and the programs whose writes are traced.

mod monitored;
mod numbers;
mod traced;
