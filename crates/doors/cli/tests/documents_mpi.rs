//! The lines of the documents that start MPI jobs.

#[path = "documents.rs"]
mod documents;
