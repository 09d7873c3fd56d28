//! Throwaway: prints a hash of every lent variable of every step.
#[path = "../tests/shared/variants.rs"]
mod variants;
use recoup_comm::Solo;
use recoup_core::{Lent, Operator, Resume, Status, Values};
use recoup_solvers::*;
fn hash(solver: &dyn Method) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325_u64;
    for v in solver.variables() {
        for b in v.name.bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
        }
        let Lent::Near(Values::F64(values)) = v.values else { panic!() };
        for x in values {
            h = (h ^ x.to_bits()).wrapping_mul(0x0100_0000_01b3).rotate_left(5);
        }
    }
    h ^ solver.progress().residual_norm.to_bits() ^ solver.bytes_per_iteration().to_bits() ^ solver.revision()
}
fn main() {
    let pool = std::sync::Arc::new(Pool::new(2));
    let csr = Csr::poisson3d(17).with_pool(pool.clone());
    let st = Poisson3d::new(17).with_pool(pool.clone());
    let ors = read_matrix(std::path::Path::new("tests/data/orsirr_1.mtx.gz")).unwrap().with_pool(pool.clone());
    for (name, a, rows) in [("csr", &csr as &dyn Operator, &csr), ("stencil", &st, &csr), ("orsirr", &ors, &ors)] {
        let b = RightHandSide::Random { seed: 3 }.build(a).unwrap();
        let x0 = vec![0.0; b.len()];
        let jac = JacobiPreconditioner::new(a).unwrap();
        let blocks = BlockJacobi::new(rows, 16).unwrap();
        let system = System { a, b: &b, comm: &Solo, pool: &pool };
        for variant in variants::variants(&[&Identity as &dyn Preconditioner, &jac, &blocks]) {
            let mut s = variant.solver(system, rows, &x0, Stop::at(1e-9));
            let mut h = 0_u64;
            for step in 0..120_u64 {
                let p = match s.step() {
                    Ok(p) => p,
                    Err(e) => {
                        println!("{name} {} {step}: {e}", variant.describe());
                        break;
                    }
                };
                h = h.rotate_left(7) ^ hash(&*s);
                let how = match step {
                    10 => Resume::Restarted,
                    20 => Resume::Traditional,
                    30 => Resume::Deflated,
                    40 => Resume::Deflated,
                    50 => Resume::Exact,
                    _ => continue,
                };
                if !p.is_safe_point || p.status != Status::Running {
                    continue;
                }
                if s.resume(step, how).is_err() {
                    h ^= 1;
                }
                if how == Resume::Deflated {
                    h ^= hash(&*s);
                    let sound = s.has_sound_directions().unwrap();
                    h ^= u64::from(sound);
                }
            }
            println!("{name} {}: {h:016x} {:?}", variant.describe(), s.progress());
        }
    }
}
