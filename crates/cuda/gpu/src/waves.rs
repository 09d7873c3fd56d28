//! Values to encode and to solve with.

/// Values on a grid of `side^3` points: smooth, as converged iterates are, under noise of 1e-4.
pub(crate) fn waves(side: usize) -> Vec<f64> {
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let wave = |at: usize, length: f64| (at as f64 / side as f64 * length).sin();
    let value = |i: usize| wave(i % side, 9.0) + wave(i / side % side, 7.0) + wave(i / (side * side), 5.0);
    (0..side * side * side).map(|i| value(i) + 1e-4 * noise()).collect()
}
