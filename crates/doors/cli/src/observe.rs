//! A run seen from outside while it continues: its progress, its log, its status file, its saves,
//! and the end that a batch system has set for it.

pub(crate) mod deadline;
pub(crate) mod history;
pub(crate) mod observers;
pub(crate) mod progress;
pub(crate) mod residual_log;
pub(crate) mod saves;
pub(crate) mod solver;
pub(crate) mod status_file;
pub(crate) mod steps;
