//! A complex iterate from Rust: parts that lie together, an operator of two real rows for each
//! equation, exact bit for bit and lossy within the measured bound.

use std::path::Path;
use std::sync::Arc;

use recoup::core::{
    CommError, Distribution, Operator, Progress, Registered, Role, Scheme, Values, ValuesMut, Variable, VariableMut,
};
use recoup::pipeline::Session;

const EQUATIONS: usize = 3000;
const THETA: f64 = 0.25;

/// `(2.5 + 0.5 i) x` less its neighbours, whose phases turn: a Helmholtz line with damping.
struct DampedLine;

impl Operator for DampedLine {
    fn rows(&self) -> usize {
        2 * EQUATIONS
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        let turn = [0.9, 0.3];
        let at = |equation: usize| [x[2 * equation], x[2 * equation + 1]];
        for (equation, y) in y.chunks_exact_mut(2).enumerate() {
            let mut sum = times([2.5, 0.5], at(equation));
            let neighbours = [equation.checked_sub(1), Some(equation + 1).filter(|next| *next < EQUATIONS)];
            for neighbour in neighbours.into_iter().flatten() {
                let part = times(turn, at(neighbour));
                sum = [sum[0] - part[0], sum[1] - part[1]];
            }
            y.copy_from_slice(&sum);
        }
        Ok(())
    }
}

/// The product of two complex numbers.
fn times(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

struct ComplexIterate(Vec<f64>);

impl Registered for ComplexIterate {
    fn variables(&self) -> Vec<Variable<'_>> {
        let rows = Distribution::Rows { first: 0, global: self.0.len() as u64 };
        vec![Variable { stride: 2, ..Variable::new("x", Role::Iterate, Values::F64(&self.0), rows) }]
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        vec![VariableMut::new("x", ValuesMut::F64(&mut self.0))]
    }
}

fn right_hand_side() -> Arc<[f64]> {
    (0..2 * EQUATIONS).map(|row| (0.01 * row as f64).sin()).collect()
}

fn open(dir: &Path, scheme: Scheme) -> Session {
    recoup::open(dir).system(Arc::new(DampedLine), right_hand_side()).scheme(scheme).theta(THETA).build().unwrap()
}

fn residual_norm(x: &[f64]) -> f64 {
    let mut residual = vec![0.0; x.len()];
    DampedLine.residual(&right_hand_side(), x, &mut residual).unwrap().sqrt()
}

#[test]
fn complex_iterates_come_back_bit_for_bit_or_within_their_measured_bound() {
    for scheme in [Scheme::Exact, Scheme::Lossy] {
        let dir = tempfile::tempdir().unwrap();
        // Amplitude and phase vary slowly.
        let wave = |at: usize| (1.0 + 0.001 * at as f64, 0.004 * at as f64);
        let parts = (0..EQUATIONS).map(wave).flat_map(|(size, phase)| [size * phase.cos(), size * phase.sin()]);
        let owner = ComplexIterate(parts.collect());
        let norm = residual_norm(&owner.0);
        let progress = Progress::running(4, norm, norm);
        let plan = recoup::open(dir.path()).theta(THETA).plan_of(scheme);
        let mut session = open(dir.path(), scheme);
        session.checkpoint(plan, progress, &[&owner]).unwrap();
        drop(session);
        let mut back = ComplexIterate(vec![0.0; 2 * EQUATIONS]);
        let restored = open(dir.path(), scheme).restore_with(&mut [&mut back]).unwrap().unwrap();
        assert_eq!(restored.version, 4);
        let is_same = back.0.iter().zip(&owner.0).all(|(back, own)| back.to_bits() == own.to_bits());
        assert_eq!(is_same, scheme == Scheme::Exact);
        assert!(residual_norm(&back.0) <= (1.0 + THETA) * norm, "{scheme}");
    }
}
