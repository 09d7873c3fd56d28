//! Passes over vectors, and the fused ones of CG and BiCGSTAB.

use recoup_core::ExactSum;
use recoup_device::DeviceVec;
use recoup_solvers::device::{BicgstabVectors, CgInverse, IterateStep};
use recoup_solvers::{BLOCK, CHUNKS_MAX, DeflatedParts, Pool, Vector, vector};

use super::support::{Both, LENGTHS, compare, positive, wave};

/// `x . y`.
fn dot(pool: &Pool, x: &[f64], y: &[f64]) -> ExactSum {
    vector::dot(pool, x.len(), x, y)
}

#[test]
fn sums_have_the_hosts_bits() {
    Both::with(|both| {
        for n in [0].into_iter().chain(LENGTHS).chain([CHUNKS_MAX * BLOCK + 1029]) {
            let x = wave(n, 0);
            let y = wave(n, 1);
            let found = both.passes.dot(both.there(&x).view(), both.there(&y).view()).unwrap();
            compare("dot", &[found], &[dot(&both.pool, &x, &y)]);
        }
        for n in LENGTHS {
            let d = positive(n);
            let r = wave(n, 2);
            let z: Vec<f64> = r.iter().zip(&d).map(|(r, d)| r / d).collect();
            let sum = both.passes.scaled_dot(both.there(&d).view(), both.there(&r).view()).unwrap();
            compare("scaled dot", &[sum], &[dot(&both.pool, &r, &z)]);
        }
    });
}

#[test]
fn updates_have_the_hosts_bits() {
    Both::with(|both| {
        let Both { passes, pool } = both;
        for n in LENGTHS {
            let x = wave(n, 0);
            let d = positive(n);
            let mut y = wave(n, 1);
            let x_there = both.there(&x);
            let d_there = both.there(&d);
            let mut y_there = both.there(&y);
            vector::axpy(pool, -0.3, &x, &mut y);
            passes.axpy(-0.3, x_there.view(), &mut y_there.view_mut()).unwrap();
            both.compare("axpy", &y_there, &y);
            vector::xpay(pool, &x, 0.7, &mut y);
            passes.xpay(x_there.view(), 0.7, &mut y_there.view_mut()).unwrap();
            both.compare("xpay", &y_there, &y);
            vector::scaled_copy(pool, 3.3, &x, &mut y);
            passes.scaled_copy(3.3, x_there.view(), &mut y_there.view_mut()).unwrap();
            both.compare("scaled_copy", &y_there, &y);
            let z: Vec<f64> = x.iter().zip(&d).map(|(x, d)| x / d).collect();
            passes.divide(x_there.view(), d_there.view(), &mut y_there.view_mut()).unwrap();
            both.compare("divide", &y_there, &z);
            passes.divide_by(0.37, &mut y_there.view_mut()).unwrap();
            both.compare("divide_by", &y_there, &z.iter().map(|z| z / 0.37).collect::<Vec<_>>());
            passes.copy(x_there.view(), &mut y_there.view_mut()).unwrap();
            both.compare("copy", &y_there, &x);
        }
    });
}

#[test]
fn passes_over_many_vectors_have_the_hosts_bits() {
    Both::with(|both| {
        for (n, count) in LENGTHS.into_iter().zip([0, 1, 3, 4, 5, 8, 10, 31]) {
            compare_many(both, n, count);
        }
        // More than one table of vectors.
        compare_many(both, 1025, 39);
    });
}

fn compare_many(both: &Both, n: usize, count: usize) {
    let Both { passes, pool } = both;
    let basis: Vec<Vec<f64>> = (0..count).map(|j| wave(n, j)).collect();
    let there = both.all_there(&basis);
    let mut w = wave(n, 99);
    let mut w_there = both.there(&w);
    let mut expected = vec![ExactSum::from(1.0); count];
    let mut found = vec![ExactSum::from(2.0); count];
    vector::multi_dot(pool, n, &w, &basis, &mut expected);
    passes.multi_dot(w_there.view(), &there, &mut found).unwrap();
    compare("multi_dot", &found, &expected);
    let h: Vec<f64> = (0..count).map(|j| 0.1 + j as f64 * 0.7).collect();
    let expected = vector::multi_axpy_norm(pool, n, -1.5, &basis, &h, &mut w);
    let found = passes.multi_axpy_norm(-1.5, &there, &h, &mut w_there.view_mut()).unwrap();
    compare("norm of multi_axpy", &[found], &[expected]);
    both.compare("multi_axpy_norm", &w_there, &w);
    vector::multi_axpy(pool, 0.3, &basis, &h, &mut w);
    passes.multi_axpy(0.3, &there, &h, &mut w_there.view_mut()).unwrap();
    both.compare("multi_axpy", &w_there, &w);
}

#[test]
fn combined_vectors_have_the_hosts_bits() {
    Both::with(|both| {
        for (n, count, made) in [(1, 1, 1), (17, 6, 5), (1025, 21, 18), (130, 9, 1), (64, 4, 0)] {
            let basis: Vec<Vec<f64>> = (0..count).map(|j| wave(n, j)).collect();
            let columns: Vec<Vec<f64>> = (0..made).map(|j| wave(count, 50 + j)).collect();
            let mut there = both.all_there(&basis);
            let mut here: Vec<Vector> = basis.iter().map(|v| Vector::copy_of(&both.pool, v, 0)).collect();
            vector::combine(&both.pool, &columns, &mut here);
            let mut targets: Vec<_> = there.iter_mut().map(DeviceVec::view_mut).collect();
            both.passes.combine(&columns, &mut targets).unwrap();
            for (there, here) in there.iter().zip(&here) {
                both.compare("combine", there, here);
            }
        }
    });
}

/// `z = M^-1 r` of the host.
fn preconditioned(diagonal: Option<&[f64]>, r: &[f64]) -> Vec<f64> {
    match diagonal {
        Some(diagonal) => r.iter().zip(diagonal).map(|(r, d)| r / d).collect(),
        None => r.to_vec(),
    }
}

#[test]
fn steps_of_cg_have_the_hosts_bits() {
    Both::with(|both| {
        let Both { passes, pool } = both;
        for (case, n) in LENGTHS.into_iter().enumerate() {
            let deflated = case % 4;
            let diagonal = (case % 2 == 1).then(|| positive(n));
            let diagonal_there = diagonal.as_ref().map(|d| both.there(d));
            let inverse = diagonal_there.as_ref().map_or(CgInverse::Identity, |d| CgInverse::Diagonal(d.view()));
            let u: Vec<Vec<f64>> = (0..deflated).map(|j| wave(n, 10 + j)).collect();
            let u_there = both.all_there(&u);
            let q = wave(n, 1);
            let mut r = wave(n, 2);
            let mut r_there = both.there(&r);
            // r = r - alpha q
            vector::axpy(pool, -0.37, &q, &mut r);
            let z = preconditioned(diagonal.as_deref(), &r);
            let mut expected = vec![dot(pool, &r, &r), dot(pool, &r, &z)];
            expected.extend(u.iter().map(|u| dot(pool, u, &r)));
            let mut found = vec![ExactSum::ZERO; 2 + deflated];
            let q_there = both.there(&q);
            let target = &mut r_there.view_mut();
            passes.cg_residual_step(0.37, q_there.view(), inverse, &u_there, target, &mut found).unwrap();
            both.compare("residual step", &r_there, &r);
            compare("sums of the residual step", &found, &expected);
            // x = x + alpha p, p = z + beta p - sum_i parts_i w_i
            let mut x = wave(n, 3);
            let mut p = wave(n, 4);
            let mut x_there = both.there(&x);
            let mut p_there = both.there(&p);
            let parts = [0.3, -0.7, 11.0, 5.0];
            let deflated = DeflatedParts { directions: &u_there, parts: &parts };
            vector::axpy(pool, 0.37, &p, &mut x);
            vector::xpay(pool, &z, 0.9, &mut p);
            u.iter().zip(parts).for_each(|(u, part)| vector::axpy(pool, -part, u, &mut p));
            let step = IterateStep { alpha: 0.37, beta: 0.9 };
            let [x_target, p_target] = [&mut x_there.view_mut(), &mut p_there.view_mut()];
            passes.cg_iterate_step(step, r_there.view(), inverse, &deflated, x_target, p_target).unwrap();
            both.compare("x of the iterate step", &x_there, &x);
            both.compare("p of the iterate step", &p_there, &p);
            // p = z - sum_i parts_i w_i
            vector::copy(pool, &z, &mut p);
            u.iter().zip(parts).for_each(|(u, part)| vector::axpy(pool, -part, u, &mut p));
            passes.cg_restart_direction(r_there.view(), inverse, &deflated, &mut p_there.view_mut()).unwrap();
            both.compare("direction of a restart", &p_there, &p);
        }
    });
}

#[test]
fn steps_of_bicgstab_have_the_hosts_bits() {
    Both::with(|both| {
        let Both { passes, pool } = both;
        for (case, n) in LENGTHS.into_iter().enumerate() {
            let [p, t, shadow, v] = [0, 1, 2, 3].map(|phase| wave(n, phase));
            let [p_there, t_there, shadow_there, v_there] = [&p, &t, &shadow, &v].map(|values| both.there(values));
            let mut x = wave(n, 4);
            let mut r = wave(n, 5);
            let mut x_there = both.there(&x);
            let mut r_there = both.there(&r);
            let products = passes.bicgstab_products(t_there.view(), r_there.view()).unwrap();
            compare("products", &products, &[dot(pool, &t, &r), dot(pool, &t, &t)]);
            let s = (case % 2 == 1).then(|| wave(n, 6));
            let s_there = s.as_ref().map(|s| both.there(s));
            let second = s.as_ref().unwrap_or(&r);
            let [alpha, omega, beta] = [0.7, -0.3, 1.9];
            x.iter_mut().zip(&p).zip(second).for_each(|((x, p), s)| *x += alpha * p + omega * s);
            vector::axpy(pool, -omega, &t, &mut r);
            let expected = [dot(pool, &r, &r), dot(pool, &shadow, &r)];
            let sources = BicgstabVectors {
                p: p_there.view(),
                s: s_there.as_ref().map(DeviceVec::view),
                t: t_there.view(),
                shadow: shadow_there.view(),
            };
            let [x_target, r_target] = [&mut x_there.view_mut(), &mut r_there.view_mut()];
            let sums = passes.bicgstab_iterate_step(alpha, omega, sources, x_target, r_target).unwrap();
            compare("sums of the iterate step", &sums, &expected);
            both.compare("x of the iterate step", &x_there, &x);
            both.compare("r of the iterate step", &r_there, &r);
            let direction: Vec<f64> = x.iter().zip(&r).zip(&v).map(|((p, r), v)| r + beta * (p - omega * v)).collect();
            let target = &mut x_there.view_mut();
            passes.bicgstab_direction_step(beta, omega, r_there.view(), v_there.view(), target).unwrap();
            both.compare("direction step", &x_there, &direction);
        }
    });
}
