//! The calls of CUDA 12.2 that the double does not have: each fails and is named in the account.

mod sys;
