//! Error bounds of the iterate that follow the residual, and the search of the verified rule.
//!
//! With `x' = x + e` the residual of the decoded iterate is `r' = r - A e`, so every rule bounds
//! `||A e||`, and all but Theorem 3 aim at `||r'|| <= (1 + theta) ||r||`.
//!
//! **Theorem 3 of Tao et al. 2018** (doi 10.1145/3208040.3208050) sets the pointwise relative bound
//! to `||r|| / ||b||`. Its proof needs `||A e|| <= eb ||A x||`, which a pointwise bound does not
//! give: on `A = [[1, -1], [-1, 1 + d]]`, `x = (1, 1)` the product `A x = (0, d)` is as small as d,
//! while `e = eb (1, -1)` gives `||A e|| > 2 eb`. The same cancellation is what a discretised
//! Laplacian does to a smooth field, and the ratio grows with the square of the grid's extent. True
//! is `||A e|| <= eb || |A| |x| ||`, the corrected rule here. The published rule stays available
//! under its name.
//!
//! Worst residual jump `||b - A x'|| / ||b - A x||` of CG on the 3D Poisson problem, a version
//! every second iteration (`cargo test --release -p recoup-tests residual_jumps -- --ignored
//! --nocapture`):
//!
//! | grid | Theorem 3, b = ones | corrected, b = ones | theta 1 | corrected, random b | theta 1 |
//! |---|---|---|---|---|---|
//! | 8^3 | 6.8 | 1.03 | 1.08 | 1.03 | 1.05 |
//! | 16^3 | 22.8 | 1.04 | 1.05 | 1.01 | 1.04 |
//! | 32^3 | 79.0 | 1.02 | 1.04 | 1.01 | 1.03 |
//! | 48^3 | 165 | 1.01 | 1.04 | 1.01 | 1.03 |
//! | 64^3 | 296 | 1.01 | 1.04 | 1.01 | 1.03 |
//!
//! Twice the extent, 3.4 to 3.7 times Theorem 3's jump: it grows with the square of the grid's
//! extent, as the ratio above does. The corrected rule is proven to stay below `1 + theta` and
//! stays far below, because errors of all signs do not add up: below 1.05 on every grid at the
//! theta CG has by default, 0.5, and at theta 1 where there are enough of them. On 8^3 under ones
//! there are not, the 48 symmetries of the cube leave 20 different values.

use recoup_core::{Bound, BoundRule};

/// Norms of one state of a solve. All are 2-norms, over all ranks; a norm the operator cannot give
/// is `None`. A solver that measures its residual in another norm gives all of them in that norm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norms {
    /// `||r||`, r = b - A x.
    pub residual: f64,
    /// `||b||`.
    pub rhs: f64,
    /// `||x||`.
    pub iterate: f64,
    /// Unknowns on all ranks.
    pub n: u64,
    /// `||A||_F`: exact, or estimated as the root of the mean of `||A z||^2` over random signs z.
    pub frobenius: Option<f64>,
    /// A bound on `||A||_2`, such as `sqrt(||A||_1 ||A||_inf)`.
    pub spectral_bound: Option<f64>,
    /// `|| |A| |x| ||`.
    pub abs_product: Option<f64>,
}

/// A rule needs a norm that the operator cannot give.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("bound {rule} needs {needed}, which this operator does not offer")]
pub struct MissingNorm {
    /// The rule.
    pub rule: BoundRule,
    /// The norm.
    pub needed: &'static str,
}

/// The bound of the iterate under `rule`; for the verified rule its first guess.
///
/// Lossless under every rule but the fixed ones and Theorem 3 when the residual is at the
/// attainable accuracy ([`is_at_attainable_accuracy`]) or zero.
///
/// # Errors
/// [`MissingNorm`] when the operator does not give what the rule needs.
pub fn bound(rule: BoundRule, norms: &Norms, theta: f64) -> Result<Bound, MissingNorm> {
    let need = |norm: Option<f64>, needed| norm.ok_or(MissingNorm { rule, needed });
    let follows = match rule {
        BoundRule::Fixed(fixed) => return Ok(fixed),
        BoundRule::Theorem3 => return Ok(lossy(Bound::Pointwise(norms.residual / norms.rhs))),
        // theta ||r|| / || |A| |x| ||
        BoundRule::Corrected => {
            Bound::Pointwise(theta * norms.residual / need(norms.abs_product, "the norm of |A| |x|")?)
        }
        // theta ||r|| / (||A|| sqrt(n)), because |e_i| <= eb gives ||e|| <= eb sqrt(n).
        BoundRule::Guaranteed => {
            let spectral = need(norms.spectral_bound, "a bound on ||A||")?;
            Bound::Absolute(theta * norms.residual / (spectral * (norms.n as f64).sqrt()))
        }
        BoundRule::Statistical | BoundRule::Verified => {
            Bound::Absolute(statistical(norms.residual, need(norms.frobenius, "||A||_F")?, theta))
        }
    };
    Ok(if is_at_attainable_accuracy(norms) { Bound::Lossless } else { lossy(follows) })
}

/// `sqrt((1 + theta)^2 - 1) sqrt(3) ||r|| / ||A||_F`: errors spread evenly over `[-eb, eb]` have
/// variance `eb^2 / 3`, so the mean of `||A e||^2` is `eb^2 ||A||_F^2 / 3`, and that of `||r'||^2`
/// is `||r||^2 + ||A e||^2`.
fn statistical(residual: f64, frobenius: f64, theta: f64) -> f64 {
    growth(theta) * 3f64.sqrt() * residual / frobenius
}

/// `sqrt((1 + theta)^2 - 1)`: the `||A e|| / ||r||` that makes the residual jump by `1 + theta`,
/// when the error does not know the residual.
pub(crate) fn growth(theta: f64) -> f64 {
    (theta * (2.0 + theta)).sqrt()
}

/// A bound that allows nothing, or is no number, is lossless.
fn lossy(bound: Bound) -> Bound {
    if bound.value() > 0.0 && bound.value().is_finite() { bound } else { Bound::Lossless }
}

/// The residual is within rounding of what double precision can reach:
/// `||r|| <= 100 eps ||A|| ||x||` (van der Vorst and Ye, SIAM J. Sci. Comput. 22(3), 2000,
/// doi 10.1137/S1064827599353865). False when `||A||` is not known.
#[must_use]
pub fn is_at_attainable_accuracy(norms: &Norms) -> bool {
    // ||A||_F bounds ||A||_2 too, so the smaller of the two is the sharper test.
    let known = [norms.spectral_bound, norms.frobenius].into_iter().flatten().reduce(f64::min);
    known.is_some_and(|norm| norms.residual <= 100.0 * f64::EPSILON * norm * norms.iterate)
}

/// The result of measuring a try of the verified rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// `||b - A x'|| <= (1 + theta) ||r||` holds: the version counts.
    Accepted,
    /// The inequality does not hold: encode again under this bound.
    Retry(Bound),
}

/// The search of the verified rule: learns from accepted versions, so that the first guess of the
/// next one nearly always holds.
///
/// The measured jump `j` gives `||A e|| / ||r|| = sqrt(j^2 - 1)`, which is proportional to the
/// bound. What is kept from version to version is that proportion, `gain = sqrt(j^2 - 1) / (eb /
/// ||r||)`; the first of all guesses takes it from the statistical rule, `||A||_F / sqrt(3)`. A
/// codec whose error is far below its bound lowers it, fast until a guess was refused once and
/// slowly afterwards: codecs that work in steps (zfp keeps whole bit planes) have gains that jump
/// by a factor 2 with the bound, and the largest of them is the one to expect.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedSearch {
    theta: f64,
    /// `sqrt(j^2 - 1) ||r|| / eb` as last measured; `None` before the first version.
    gain: Option<f64>,
    /// Part of the allowed growth that guesses aim at.
    margin: f64,
    /// Tries of the version under way.
    tries: u32,
    /// A guess was refused, in any version.
    has_been_refused: bool,
}

/// The resolution of a measured residual norm, as a part of it: where less growth is allowed, the
/// bound is as statistics or experience say, and only what can be seen of its error is refused.
const RESOLUTION: f64 = 1e-9;
/// Tries of one version after which the search gives up being lossy.
const TRIES_MAX: u32 = 5;
/// Aims, as a part of the allowed growth: at the start, and the range they move in.
const MARGIN_START: f64 = 0.9;
const MARGIN_RANGE: std::ops::RangeInclusive<f64> = 0.6..=0.95;
/// The least part of the known gain that one version may leave of it: before any refusal, and
/// after.
const GAIN_KEPT_FRESH: f64 = 0.5;
const GAIN_KEPT: f64 = 0.97;

impl VerifiedSearch {
    /// A search that has seen nothing, for residuals allowed to grow to `(1 + theta) ||r||`.
    #[must_use]
    pub fn new(theta: f64) -> Self {
        Self { theta, gain: None, margin: MARGIN_START, tries: 0, has_been_refused: false }
    }

    /// Residuals may grow to `(1 + theta) ||r||` from now on: what was learnt of the gain stays.
    pub fn aim(&mut self, theta: f64) {
        self.theta = theta;
    }

    /// The first bound to try for a version.
    ///
    /// # Errors
    /// [`MissingNorm`] before anything was learnt, when the operator has no Frobenius norm.
    pub fn first(&mut self, norms: &Norms) -> Result<Bound, MissingNorm> {
        self.tries = 0;
        if is_at_attainable_accuracy(norms) {
            return Ok(Bound::Lossless);
        }
        let gain = match (self.gain, norms.frobenius) {
            (Some(gain), _) => gain,
            (None, Some(frobenius)) => frobenius / 3f64.sqrt(),
            (None, None) => return Err(MissingNorm { rule: BoundRule::Verified, needed: "||A||_F" }),
        };
        self.gain = Some(gain);
        Ok(lossy(Bound::Absolute(self.margin * growth(self.theta) * norms.residual / gain)))
    }

    /// Judges a try: `||r||` of what was staged, the bound tried, and `||b - A x'||` measured.
    ///
    /// A lossless try is always accepted: it cannot be better. After 5 tries the answer is to store
    /// without loss.
    pub fn judge(&mut self, residual: f64, tried: Bound, measured: f64) -> Verdict {
        self.tries += 1;
        let Bound::Absolute(eb) = tried else { return Verdict::Accepted };
        let jump = measured / residual;
        let grown = (jump * jump - 1.0).max(0.0).sqrt();
        let allowed = growth(self.theta);
        let is_accepted = measured <= (1.0 + self.theta.max(RESOLUTION)) * residual;
        if self.theta >= RESOLUTION {
            self.learn(grown * residual / eb, is_accepted);
        }
        if is_accepted {
            return Verdict::Accepted;
        }
        if self.tries >= TRIES_MAX || !grown.is_finite() {
            return Verdict::Retry(Bound::Lossless);
        }
        // The aim for the growth just measured, and always a real step down.
        let shrink = (self.margin * allowed / grown).min(0.9);
        Verdict::Retry(lossy(Bound::Absolute(eb * shrink)))
    }

    /// An accepted first try says the margin may grow a little; a refusal, that it was too bold.
    fn learn(&mut self, gain: f64, is_accepted: bool) {
        self.has_been_refused |= !is_accepted;
        let kept = match (self.tries, self.has_been_refused) {
            (1, false) => GAIN_KEPT_FRESH,
            (1, true) => GAIN_KEPT,
            _ => 1.0,
        };
        // A jump below 1 hides the gain in the part of the error along r; what is kept covers that
        // too.
        let floor = self.gain.map_or(0.0, |known| known * kept);
        if gain.is_finite() && gain.max(floor) > 0.0 {
            self.gain = Some(gain.max(floor));
        }
        let step = match (is_accepted, self.tries) {
            (true, 1) => 1.01,
            (true, _) => 1.0,
            (false, _) => 0.9,
        };
        self.margin = (self.margin * step).clamp(*MARGIN_RANGE.start(), *MARGIN_RANGE.end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    /// A small sparse matrix by rows of (column, value).
    struct Sparse(Vec<Vec<(usize, f64)>>);

    impl Sparse {
        fn random(rng: &mut Rng, n: usize) -> Self {
            let row = |rng: &mut Rng, i: usize| {
                let mut entries = vec![(i, 4.0 + rng.uniform())];
                for _ in 0..4 {
                    let j = (rng.next_u64() % n as u64) as usize;
                    if entries.iter().all(|(column, _)| *column != j) {
                        entries.push((j, 2.0 * rng.uniform() - 1.0));
                    }
                }
                entries
            };
            Self((0..n).map(|i| row(rng, i)).collect())
        }

        /// 7-point Laplacian on an m^3 grid, Dirichlet.
        fn poisson(m: usize) -> Self {
            let row = |i: usize| {
                let x = i % m;
                let y = i / m % m;
                let z = i / (m * m);
                let mut entries = vec![(i, 6.0)];
                for (position, stride) in [(x, 1), (y, m), (z, m * m)] {
                    entries.extend((position > 0).then(|| (i - stride, -1.0)));
                    entries.extend((position + 1 < m).then(|| (i + stride, -1.0)));
                }
                entries
            };
            Self((0..m * m * m).map(row).collect())
        }

        fn apply(&self, x: &[f64]) -> Vec<f64> {
            self.0.iter().map(|row| row.iter().map(|&(j, a)| a * x[j]).sum()).collect()
        }

        fn abs_apply(&self, x: &[f64]) -> Vec<f64> {
            self.0.iter().map(|row| row.iter().map(|&(j, a)| a.abs() * x[j].abs()).sum()).collect()
        }

        fn norms(&self, x: &[f64], b: &[f64]) -> Norms {
            let rows = self.0.iter().map(|row| row.iter().map(|(_, a)| a.abs()).sum()).fold(0.0, f64::max);
            let mut columns = vec![0.0; self.0.len()];
            self.0.iter().flatten().for_each(|&(j, a)| columns[j] += a.abs());
            Norms {
                residual: norm(&self.residual(x, b)),
                rhs: norm(b),
                iterate: norm(x),
                n: self.0.len() as u64,
                frobenius: Some(self.0.iter().flatten().map(|(_, a)| a * a).sum::<f64>().sqrt()),
                spectral_bound: Some((rows * columns.iter().copied().fold(0.0, f64::max)).sqrt()),
                abs_product: Some(norm(&self.abs_apply(x))),
            }
        }

        fn residual(&self, x: &[f64], b: &[f64]) -> Vec<f64> {
            self.apply(x).iter().zip(b).map(|(ax, b)| b - ax).collect()
        }

        fn transposed_apply(&self, y: &[f64]) -> Vec<f64> {
            let mut result = vec![0.0; y.len()];
            for (row, y) in self.0.iter().zip(y) {
                row.iter().for_each(|&(j, a)| result[j] += a * y);
            }
            result
        }
    }

    fn norm(v: &[f64]) -> f64 {
        v.iter().map(|v| v * v).sum::<f64>().sqrt()
    }

    /// The size of each entry of an error at the very edge of the bound.
    fn edge(bound: Bound, x: &[f64]) -> Vec<f64> {
        x.iter().map(|x| if let Bound::Pointwise(e) = bound { e * x.abs() } else { bound.value() }).collect()
    }

    /// The residual norm after the worst error found: signs against r, then climbing in ||r - A
    /// e||.
    fn worst(a: &Sparse, x: &[f64], b: &[f64], bound: Bound) -> f64 {
        let r = a.residual(x, b);
        let size = edge(bound, x);
        let mut target = r.clone();
        let mut found = 0.0f64;
        for _ in 0..20 {
            let direction = a.transposed_apply(&target);
            let e: Vec<f64> = direction.iter().zip(&size).map(|(d, s)| if *d > 0.0 { -s } else { *s }).collect();
            target = r.iter().zip(a.apply(&e)).map(|(r, ae)| r - ae).collect();
            found = found.max(norm(&target));
        }
        found
    }

    fn random_vector(rng: &mut Rng, n: usize) -> Vec<f64> {
        (0..n).map(|_| 2.0 * rng.uniform() - 1.0).collect()
    }

    #[test]
    fn guaranteed_and_corrected_hold_for_adversarial_errors_on_random_systems() {
        for seed in 0..60 {
            let mut rng = Rng::new(seed);
            let n = 20 + seed as usize;
            let a = Sparse::random(&mut rng, n);
            let x = random_vector(&mut rng, n);
            let noise = random_vector(&mut rng, n);
            // A right-hand side close to A x, so that the residual is small as late in a solve.
            let b: Vec<f64> = a.apply(&x).iter().zip(noise).map(|(ax, noise)| ax + 1e-3 * noise).collect();
            let norms = a.norms(&x, &b);
            for theta in [0.1, 0.5, 3.0] {
                for rule in [BoundRule::Guaranteed, BoundRule::Corrected] {
                    let bound = bound(rule, &norms, theta).unwrap();
                    assert_ne!(bound, Bound::Lossless);
                    // Norms and products of n terms carry a relative rounding of about n eps.
                    let allowed = (1.0 + theta) * norms.residual * (1.0 + 4.0 * n as f64 * f64::EPSILON);
                    let found = worst(&a, &x, &b, bound);
                    assert!(found <= allowed, "seed {seed} {rule} theta {theta}: {found} > {allowed}");
                }
            }
        }
    }

    /// The residual jump under Theorem 3's bound with errors of alternating sign, the iterate
    /// smooth and the relative residual 1e-4.
    fn theorem3_jump(m: usize) -> f64 {
        let a = Sparse::poisson(m);
        let wave = |i: usize| (std::f64::consts::PI * (i + 1) as f64 / (m + 1) as f64).sin();
        let x: Vec<f64> = (0..m * m * m).map(|i| wave(i % m) * wave(i / m % m) * wave(i / (m * m))).collect();
        let b: Vec<f64> = a.apply(&x).iter().map(|ax| ax * (1.0 + 1e-4)).collect();
        let norms = a.norms(&x, &b);
        let size = edge(bound(BoundRule::Theorem3, &norms, 0.5).unwrap(), &x);
        let sign = |i: usize| if (i % m + i / m % m + i / (m * m)).is_multiple_of(2) { 1.0 } else { -1.0 };
        let decoded: Vec<f64> = x.iter().zip(&size).enumerate().map(|(i, (x, s))| x + sign(i) * s).collect();
        norm(&a.residual(&decoded, &b)) / norms.residual
    }

    #[test]
    fn theorem3_lets_the_residual_jump_with_the_square_of_the_grid() {
        // A smooth x has A x = 3 (pi / (m + 1))^2 x to leading order, an alternating error A e = 12
        // e: the jump is (12 / 3) ((m + 1) / pi)^2, far above the (1 + eb) + 1 of the published
        // proof.
        for m in [8usize, 16, 32] {
            let expected = 4.0 * ((m + 1) as f64 / std::f64::consts::PI).powi(2);
            let jump = theorem3_jump(m);
            assert!(jump > 10.0 && (jump / expected - 1.0).abs() < 0.1, "grid {m}: {jump}, expected {expected}");
        }
    }

    #[test]
    fn statistical_bound_keeps_the_mean_for_errors_spread_evenly() {
        let mut rng = Rng::new(3);
        let a = Sparse::poisson(12);
        let n = 12 * 12 * 12;
        let x = random_vector(&mut rng, n);
        let noise = random_vector(&mut rng, n);
        let b: Vec<f64> = a.apply(&x).iter().zip(noise).map(|(ax, noise)| ax + 1e-4 * noise).collect();
        let norms = a.norms(&x, &b);
        let eb = bound(BoundRule::Statistical, &norms, 0.5).unwrap().value();
        let squares = (0..40).map(|_| {
            let decoded: Vec<f64> = x.iter().map(|x| x + eb * (2.0 * rng.uniform() - 1.0)).collect();
            (norm(&a.residual(&decoded, &b)) / norms.residual).powi(2)
        });
        let mean = squares.sum::<f64>() / 40.0;
        // One draw of ||r'||^2 spreads by about 2 / sqrt(n) of itself; the mean of 40 by sqrt(40)
        // less.
        assert!((mean / 2.25 - 1.0).abs() <= 5.0 * 2.0 / ((n * 40) as f64).sqrt(), "{mean}");
    }

    #[test]
    fn residual_at_the_attainable_accuracy_is_stored_without_loss() {
        let mut rng = Rng::new(1);
        let a = Sparse::random(&mut rng, 50);
        let x = random_vector(&mut rng, 50);
        let norms = a.norms(&x, &a.apply(&x));
        assert!(is_at_attainable_accuracy(&norms));
        for rule in [BoundRule::Verified, BoundRule::Statistical, BoundRule::Guaranteed, BoundRule::Corrected] {
            assert_eq!(bound(rule, &norms, 0.5), Ok(Bound::Lossless));
        }
        assert_eq!(VerifiedSearch::new(0.5).first(&norms), Ok(Bound::Lossless));
        let far = Norms { residual: 1.0, ..norms };
        assert!(!is_at_attainable_accuracy(&far));
    }

    #[test]
    fn missing_norm_is_named() {
        let norms = Norms {
            residual: 1.0,
            rhs: 1.0,
            iterate: 1.0,
            n: 4,
            frobenius: None,
            spectral_bound: None,
            abs_product: None,
        };
        let message = bound(BoundRule::Corrected, &norms, 0.5).unwrap_err().to_string();
        assert!(message.contains("corrected") && message.contains("|A| |x|"), "{message}");
        assert!(VerifiedSearch::new(0.5).first(&norms).is_err());
        assert_eq!(bound(BoundRule::Theorem3, &norms, 0.5), Ok(Bound::Pointwise(1.0)));
        assert_eq!(bound(BoundRule::Fixed(Bound::Range(1e-3)), &norms, 0.5), Ok(Bound::Range(1e-3)));
    }

    /// A codec whose error follows its bound somehow.
    #[derive(Clone, Copy, Debug)]
    enum Errors {
        /// In proportion, off from the statistical guess by this factor.
        Proportional(f64),
        /// The largest power of two below, as codecs that keep whole bit planes.
        Stepped,
    }

    /// Mean tries per version, and mean of bound over the best bound that would have been accepted,
    /// when the real gain wanders as the iterate's shape does.
    fn search_forty_versions(seed: u64, theta: f64, errors: Errors) -> (f64, f64) {
        let mut rng = Rng::new(seed);
        let mut search = VerifiedSearch::new(theta);
        let mut residual = 1.0f64;
        let mut true_gain = 3.0;
        let mut tries = 0;
        let mut boldness = 0.0;
        for _ in 0..40 {
            let norms = Norms {
                residual,
                rhs: 1.0,
                iterate: 1.0,
                n: 1000,
                frobenius: Some(3.0 * 3f64.sqrt()),
                spectral_bound: None,
                abs_product: None,
            };
            let mut tried = search.first(&norms).unwrap();
            loop {
                tries += 1;
                let error = match errors {
                    Errors::Proportional(factor) => factor * tried.value(),
                    Errors::Stepped => 2f64.powf(tried.value().log2().floor()),
                };
                let grown = true_gain * error / residual * (1.0 + 0.01 * (2.0 * rng.uniform() - 1.0));
                let measured = residual * (1.0 + grown * grown).sqrt();
                match search.judge(residual, tried, measured) {
                    Verdict::Accepted => {
                        boldness += grown / growth(theta);
                        break;
                    }
                    Verdict::Retry(next) => tried = next,
                }
            }
            true_gain *= 1.0 + 0.04 * (2.0 * rng.uniform() - 1.0);
            residual *= 0.8;
        }
        (f64::from(tries) / 40.0, boldness / 40.0)
    }

    fn mean_over_seeds(theta: f64, errors: Errors) -> (f64, f64) {
        let runs: Vec<(f64, f64)> = (0..50).map(|seed| search_forty_versions(seed, theta, errors)).collect();
        (runs.iter().map(|run| run.0).sum::<f64>() / 50.0, runs.iter().map(|run| run.1).sum::<f64>() / 50.0)
    }

    #[test]
    fn verified_search_needs_about_1_1_tries_and_wastes_little_of_the_bound() {
        for theta in [0.5, 3.0] {
            // The first guess may be off by a factor 2 up and 5 down: errors are not spread evenly.
            for factor in [0.2, 0.5, 1.0, 2.0] {
                let (tries, boldness) = mean_over_seeds(theta, Errors::Proportional(factor));
                assert!(tries <= 1.1 && boldness >= 0.75, "theta {theta}, factor {factor}: {tries} {boldness}");
            }
            // Steps of two leave half of the bound unused at worst, 0.72 of it on average at best.
            let (tries, boldness) = mean_over_seeds(theta, Errors::Stepped);
            assert!(tries <= 1.1 && boldness >= 0.5, "theta {theta}, stepped: {tries} {boldness}");
        }
    }

    #[test]
    fn search_that_cannot_succeed_ends_lossless() {
        let mut search = VerifiedSearch::new(0.5);
        let mut tried = Bound::Absolute(1.0);
        for _ in 0..5 {
            match search.judge(1.0, tried, 1e9) {
                Verdict::Retry(next) => tried = next,
                Verdict::Accepted => break,
            }
        }
        assert_eq!(tried, Bound::Lossless);
        assert_eq!(search.judge(1.0, tried, 2.0), Verdict::Accepted);
    }
}
