//! The calls by which a test sets the double and asks it for its account.

mod sys;
