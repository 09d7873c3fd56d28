//! Vector kernels: slices and scalars in, sums in a fixed order out.
