//! Functions of the C library that a loop may call.

/// Functions that write nothing of the program's memory, and return the same again after a restart.
const READERS: [&str; 57] = [
    "abort", "abs", "acos", "acosh", "asin", "asinh", "assert", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign",
    "cos", "cosh", "erf", "erfc", "exit", "exp", "exp2", "expm1", "fabs", "fabsf", "fdim", "fflush", "floor", "fma",
    "fmax", "fmin", "fmod", "fprintf", "fputs", "hypot", "labs", "ldexp", "llabs", "lgamma", "log", "log10", "log1p",
    "log2", "memcmp", "pow", "printf", "putchar", "puts", "rint", "round", "sin", "sinh", "sqrt", "sqrtf", "strcmp",
    "strlen", "tan", "tanh", "trunc",
];

/// The function that glibc's `assert` calls.
const ASSERT: &str = "__assert_fail";

/// Functions that write to their first argument alone.
const WRITERS: [&str; 3] = ["memcpy", "memmove", "memset"];

/// Returns the arguments that a function of the library writes to; `None` for one that is not
/// known.
pub(crate) fn written_by_library(name: &str) -> Option<&'static [usize]> {
    match name {
        ASSERT => Some(&[]),
        _ if READERS.contains(&name) => Some(&[]),
        _ if WRITERS.contains(&name) => Some(&[0]),
        _ => None,
    }
}
