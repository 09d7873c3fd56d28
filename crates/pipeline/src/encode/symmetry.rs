//! Errors that cost more iterations than their size says: those that break a symmetry, and smooth
//! ones.
//!
//! A symmetry of values on a grid is to equal their reflection, or themselves with two axes
//! exchanged. CG, started on a symmetric problem, never leaves the vectors that share the symmetry,
//! and converges as if the problem had only their few eigenvalues. A codec that rounds each value
//! for itself gives equal values equal errors and keeps the symmetry. One whose errors depend on
//! the place breaks it, and a recovery then needs the iterations of the whole spectrum, whatever
//! the size of the errors: white noise of the same bound costs the same. Stationary methods and
//! restarted GMRES gain nothing by a symmetry, and lose nothing without it.
//!
//! Of a smooth field, a codec that predicts values by decoded ones leaves smooth errors. They
//! hardly show in the residual, which the verified bound is held to, and CG wins them back last.
//! After a restart that is not seen, since the whole search space is lost anyway. After a deflated
//! one, which loses next to nothing under white errors, they are nearly all that a recovery costs.

use recoup_core::CodecId;

/// Points that are compared with their images.
const SAMPLES: u64 = 64;
/// The part of the bound that values may differ by from their images.
const ALIKE: f64 = 0.125;

/// Returns whether a codec rounds each value for itself: equal values have equal errors, and those
/// of neighbours have nothing to do with each other.
pub(crate) fn rounds_alone(codec: CodecId) -> bool {
    !matches!(codec, CodecId::Pyramid | CodecId::Sz3 | CodecId::Zfp)
}

/// Returns whether a sample of the values on a grid, fastest extent first, equals its reflection
/// across the middle of an axis, or its image with two axes exchanged, to a part of `bound`. Values
/// that do not differ by more than `bound` have no symmetry that could be lost.
pub(crate) fn is_symmetric(values: &[f64], dims: [usize; 3], bound: f64) -> bool {
    let points: Vec<[usize; 3]> = (0..SAMPLES).map(|number| point(number, dims)).collect();
    let value = |[x, y, z]: [usize; 3]| values[x + dims[0] * (y + dims[1] * z)];
    let [min, max] = [f64::min, f64::max].map(|of| points.iter().map(|point| value(*point)).fold(f64::NAN, of));
    // An image names for each axis the one its coordinate comes from, and whether it is reflected.
    let holds = |image: [(usize, bool); 3]| {
        points.iter().all(|point| {
            let coordinate = |(from, is_reflected): (usize, bool)| match is_reflected {
                true => dims[from] - 1 - point[from],
                false => point[from],
            };
            (value(*point) - value(image.map(coordinate))).abs() <= ALIKE * bound
        })
    };
    let is_reflection = |axis: usize| dims[axis] > 1 && holds(std::array::from_fn(|a| (a, a == axis)));
    let is_exchange = |(a, b): (usize, usize)| {
        let mut image = [(0, false), (1, false), (2, false)];
        image.swap(a, b);
        dims[a] == dims[b] && dims[a] > 1 && holds(image)
    };
    let is_image = (0..3).any(is_reflection) || [(0, 1), (0, 2), (1, 2)].into_iter().any(is_exchange);
    max - min > bound && is_image
}

/// A point of the sample, spread over the grid without a pattern.
fn point(number: u64, dims: [usize; 3]) -> [usize; 3] {
    let mixed = recoup_core::mix(number + 1);
    std::array::from_fn(|axis| ((mixed >> (21 * axis) & 0x1f_ffff) as usize * dims[axis]) >> 21)
}

#[cfg(test)]
mod tests {
    use recoup_core::{Bound, Context, Values, ValuesMut};

    use super::*;

    const DIMS: [usize; 3] = [12, 10, 9];
    const CUBE: [usize; 3] = [8, 8, 8];

    fn on_grid(dims: [usize; 3], f: impl Fn(f64, f64, f64) -> f64) -> Vec<f64> {
        let at = |i: usize, axis: usize| i as f64 / (dims[axis] - 1) as f64 - 0.5;
        let n = dims.iter().product();
        (0..n)
            .map(|i: usize| f(at(i % dims[0], 0), at(i / dims[0] % dims[1], 1), at(i / dims[0] / dims[1], 2)))
            .collect()
    }

    #[test]
    fn each_reflection_and_each_exchange_of_axes_is_a_symmetry() {
        for values in [
            on_grid(DIMS, |x, y, z| x * x + y + 2.0 * z),
            on_grid(DIMS, |x, y, z| x + y * y + 2.0 * z),
            on_grid(DIMS, |x, y, z| x + y + z * z),
        ] {
            assert!(is_symmetric(&values, DIMS, 1e-6));
        }
        for values in [
            on_grid(CUBE, |x, y, z| x + y + x * y * z),
            on_grid(CUBE, |x, y, z| x + z + 2.0 * y),
            on_grid(CUBE, |x, y, z| y + z - 3.0 * x),
        ] {
            assert!(is_symmetric(&values, CUBE, 1e-6));
        }
    }

    #[test]
    fn fields_without_a_symmetry_have_none() {
        let lopsided = on_grid(CUBE, |x, y, z| x + 2.0 * y + 4.0 * z + x * y);
        assert!(!is_symmetric(&lopsided, CUBE, 1e-3));
        // Within the bound all values are equal.
        assert!(!is_symmetric(&lopsided, CUBE, 100.0));
        assert!(!is_symmetric(&[1.0; 512], CUBE, 1e-3));
        assert!(!is_symmetric(&[2.0], [1, 1, 1], 1e-3));
        assert!(!is_symmetric(&[f64::NAN; 512], CUBE, 1e-3));
    }

    /// A hill with the reflections of a box, bit for bit.
    fn hill(dims: [usize; 3]) -> Vec<f64> {
        let along = |i: usize, extent: usize| {
            let t = (2 * i + 1) as f64 / extent as f64 - 1.0;
            1.0 - t * t
        };
        let [x, y, z] = dims;
        (0..x * y * z).map(|i| along(i % x, x) * along(i / x % y, y) * along(i / x / y, z)).collect()
    }

    const CODECS: [CodecId; 4] = [CodecId::Qb, CodecId::Pco, CodecId::Pyramid, CodecId::Zfp];

    /// Values on a grid after a codec that kept an absolute bound.
    fn decoded(id: CodecId, values: &[f64], dims: [usize; 3], bound: f64) -> Vec<f64> {
        let codec = recoup_compress::codec(id).unwrap();
        let context = Context::grid(dims);
        let mut payload = Vec::new();
        let encoded = codec.encode(Values::F64(values), Bound::Absolute(bound), &context, &mut payload).unwrap();
        assert!(!encoded.stored_raw, "{id}");
        let mut decoded = vec![0.0; values.len()];
        codec.decode(&payload, encoded.bound, &context, ValuesMut::F64(&mut decoded)).unwrap();
        decoded
    }

    #[test]
    fn codecs_keep_a_symmetry_exactly_where_they_are_said_to() {
        // No two extents are the same: pyramids may keep an exchange of axes.
        let dims = [16, 14, 10];
        for id in CODECS {
            // 2^-20 of the bound: only equal errors pass.
            let is_kept = is_symmetric(&decoded(id, &hill(dims), dims, 1e-3), dims, 1e-3 / 1048576.0);
            assert_eq!(is_kept, rounds_alone(id), "{id}");
        }
    }

    #[test]
    fn errors_of_codecs_are_smooth_exactly_where_they_are_said_to_be() {
        let dims = [32, 32, 32];
        let values = on_grid(dims, |x, y, z| (3.0 * x + 1.0).sin() * (4.0 * y).cos() + (5.0 * z - x * y).sin());
        for id in CODECS {
            let decoded = decoded(id, &values, dims, 1e-3);
            let errors: Vec<f64> = values.iter().zip(&decoded).map(|(x, decoded)| decoded - x).collect();
            // The correlation of errors of neighbours across the slowest axis.
            let products: f64 = errors.iter().zip(&errors[dims[0] * dims[1]..]).map(|(a, b)| a * b).sum();
            let correlation = products / errors.iter().map(|e| e * e).sum::<f64>();
            assert_eq!(correlation < 0.25, rounds_alone(id), "{id}: {correlation}");
        }
    }
}
