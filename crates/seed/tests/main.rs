//! Does a seed repeat a run, and does no crash break an invariant?
