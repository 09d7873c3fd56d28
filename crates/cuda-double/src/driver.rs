//! The driver's side: contexts, memory, streams, events, modules.
