//! Does a CG solve, plain or pipelined, continue from a lossy direction with fewer iterations than
//! from the iterate alone?

use recoup_core::{Iteration, Operator, Resume, Status};
use recoup_solvers::{
    Cg, Csr, Ic0, Identity, JacobiPreconditioner, Method, PipelinedCg, Preconditioner, RightHandSide, Stop,
    random_value,
};
use recoup_testkit::{doubles, set_doubles};

use crate::problem::Problem;

/// The tolerance of every solve here. At 1e-8 rounding decides whether bcsstk14 takes 312
/// iterations or 321.
const STOP: Stop = Stop::at(1e-9);
/// Allowed growth of the residual, and error of the direction in the energy norm, of a lossy
/// version.
const THETA: f64 = 0.5;
const DELTA: f64 = 0.05;

impl Problem {
    fn read_smooth(name: &str) -> Self {
        Self::read(name).with_threads(2)
    }

    fn random_poisson(n: usize) -> Self {
        Self::with_rhs(Csr::poisson3d(n), RightHandSide::Random { seed: 7 }).with_threads(2)
    }

    /// The Laplacian of an n by n grid with no flux through its boundary: constants are in its null
    /// space.
    fn neumann(n: usize) -> Self {
        let mut rows = vec![0];
        let mut columns = Vec::new();
        let mut values = Vec::new();
        for row in 0..n * n {
            let i = row % n;
            let j = row / n;
            let neighbours = [
                (j > 0, row.wrapping_sub(n)),
                (i > 0, row.wrapping_sub(1)),
                (i + 1 < n, row + 1),
                (j + 1 < n, row + n),
            ];
            let neighbours: Vec<usize> =
                neighbours.into_iter().filter(|(is_inside, _)| *is_inside).map(|(_, row)| row).collect();
            let mut entries: Vec<(usize, f64)> = neighbours.iter().map(|&column| (column, -1.0)).collect();
            entries.push((row, neighbours.len() as f64));
            entries.sort_unstable_by_key(|entry| entry.0);
            columns.extend(entries.iter().map(|entry| entry.0 as u32));
            values.extend(entries.iter().map(|entry| entry.1));
            rows.push(columns.len());
        }
        let random = RightHandSide::Random { seed: 3 };
        let mut problem = Self::with_rhs(Csr::new(rows, columns, values).unwrap(), random).with_threads(2);
        let mean = problem.b.iter().sum::<f64>() / problem.b.len() as f64;
        problem.b.iter_mut().for_each(|b| *b -= mean);
        problem
    }

    fn solver<'a>(&'a self, method: &str, m: &'a dyn Preconditioner) -> Box<dyn Method + 'a> {
        let system = self.system();
        let start = self.zeros();
        match method {
            "cg" => Box::new(Cg::new(system, m, &start, STOP).unwrap()),
            _ => Box::new(PipelinedCg::new(system, m, &start, STOP).unwrap()),
        }
    }

    /// `sqrt(v . A v)` and `||A v||`.
    fn norms(&self, v: &[f64]) -> [f64; 2] {
        let mut product = vec![0.0; v.len()];
        let squared = self.a.apply_dot(v, &mut product).unwrap();
        [squared.rounded().max(0.0).sqrt(), product.iter().map(|value| value * value).sum::<f64>().sqrt()]
    }

    /// What a lossy version makes of a state: x and the directions with errors as large as its
    /// bounds allow.
    fn spoil(&self, state: &mut State, residual_norm: f64, seed: u64) {
        for (index, (name, values)) in state.iter_mut().enumerate() {
            let error: Vec<f64> = (0..values.len() as u64).map(|row| random_value(seed + index as u64, row)).collect();
            let [energy, image] = self.norms(&error);
            let scale = match name.as_str() {
                "x" => ((1.0 + THETA).powi(2) - 1.0).sqrt() * residual_norm / image,
                "p" => DELTA * self.norms(values)[0] / energy,
                // Directions of earlier recoveries do not change between versions.
                _ => 0.0,
            };
            values.iter_mut().zip(&error).for_each(|(value, error)| *value += scale * error);
        }
    }
}

/// The variables of a version, by name.
type State = Vec<(String, Vec<f64>)>;

fn saved(solver: &dyn Iteration, how: Resume) -> State {
    let variables = solver.variables();
    variables.iter().filter(|v| v.role.is_saved_for(how)).map(|v| (v.name.to_owned(), doubles(v.values))).collect()
}

/// Overwrites a fresh solver with a version, and everything else with NaN.
fn resume(solver: &mut dyn Iteration, state: &State, iteration: u64, how: Resume) {
    let names: Vec<&str> = state.iter().map(|(name, _)| name.as_str()).collect();
    solver.make_room(&names);
    for variable in &mut solver.variables_mut() {
        let nans = vec![f64::NAN; variable.values.as_borrowed().len()];
        let found = state.iter().find(|(name, _)| name == variable.name);
        set_doubles(&mut variable.values, found.map_or(&nans, |(_, values)| values));
    }
    solver.resume(iteration, how).unwrap();
}

/// Steps to the end, or to an iteration; the residual norms on the way.
fn run(solver: &mut dyn Iteration, to: u64) -> Vec<f64> {
    let mut history = Vec::new();
    while solver.progress().status == Status::Running && solver.progress().iteration < to {
        history.push(solver.step().unwrap().residual_norm);
    }
    if to == u64::MAX {
        assert!(solver.progress().is_converged(), "{:?}", solver.progress());
    }
    history
}

/// Iterations of a solve that loses its state after each of these, and continues from a lossy
/// version.
fn iterations(problem: &Problem, by: (&str, &dyn Preconditioner), failures: &[u64], how: Resume) -> u64 {
    let (method, m) = by;
    let mut solver = problem.solver(method, m);
    for &at in failures {
        run(&mut *solver, at);
        let mut state = saved(&*solver, how);
        problem.spoil(&mut state, solver.progress().residual_norm, at);
        solver = problem.solver(method, m);
        resume(&mut *solver, &state, at, how);
    }
    run(&mut *solver, u64::MAX);
    solver.progress().iteration
}

/// Mean of the extra iterations of one recovery at nine instants, as a part of those of the
/// undisturbed solve.
fn extra(problem: &Problem, by: (&str, &dyn Preconditioner), how: Resume) -> f64 {
    let undisturbed = iterations(problem, by, &[], how);
    let at = |tenth| iterations(problem, by, &[undisturbed * tenth / 10], how) as f64;
    (1..=9).map(at).sum::<f64>() / 9.0 / undisturbed as f64 - 1.0
}

#[test]
fn a_deflated_recovery_halves_the_extra_iterations_of_a_restart() {
    for (name, problem) in
        [("poisson3d 32, random", Problem::random_poisson(32)), ("bcsstk14", Problem::read_smooth("bcsstk14"))]
    {
        let [_, deflated, restarted] = extras(name, &problem);
        assert!(restarted > 0.05, "{name}: {restarted}");
        assert!(deflated <= 0.5 * restarted, "{name}: {deflated}, restarted {restarted}");
    }
}

/// On this singular matrix the error of x costs what it costs, with a direction and without.
#[test]
fn a_deflated_recovery_costs_the_pipelined_method_what_it_costs_the_plain_one() {
    let [of_cg, deflated, _] = extras("Neumann 40x40", &Problem::neumann(40));
    // Both do the same steps but for rounding, and the plain method's direction is one step ahead.
    assert!((deflated - of_cg).abs() <= 0.03, "{deflated}, of cg {of_cg}");
}

/// Extra iterations of a deflated recovery of CG and of pipelined CG, and of a restart of the
/// latter.
fn extras(name: &str, problem: &Problem) -> [f64; 3] {
    let m = JacobiPreconditioner::new(&problem.a).unwrap();
    let cases = [("cg", Resume::Deflated), ("pipecg", Resume::Deflated), ("pipecg", Resume::Restarted)];
    let extras = cases.map(|(method, how)| extra(problem, (method, &m), how));
    let [of_cg, deflated, restarted] = extras.map(|part| format!("{:.2} %", 100.0 * part));
    println!("{name}: cg deflated {of_cg}, pipecg deflated {deflated}, restarted {restarted}");
    extras
}

#[test]
fn every_recovery_keeps_its_direction() {
    let problem = Problem::random_poisson(24);
    for m in [&Identity as &dyn Preconditioner, &Ic0::new(&problem.a).unwrap()] {
        let undisturbed = iterations(&problem, ("pipecg", m), &[], Resume::Deflated);
        // More recoveries than directions are kept.
        let failures: Vec<u64> = (1..=10).map(|k| k * undisturbed / 11).collect();
        let [plain, deflated] =
            [Resume::Restarted, Resume::Deflated].map(|how| iterations(&problem, ("pipecg", m), &failures, how));
        println!("{}: undisturbed {undisturbed}, restarted {plain}, deflated {deflated}", m.name());
        assert!(plain as f64 > 1.3 * undisturbed as f64, "{}: {plain} after {undisturbed}", m.name());
        assert!((deflated - undisturbed) as f64 <= 0.3 * (plain - undisturbed) as f64, "{}: {deflated}", m.name());
    }
}

/// What was deflated once is deflated in the same bits after an exact resume, and as often after a
/// traditional one.
#[test]
fn other_resumes_of_a_deflated_solve_keep_their_promises() {
    let problem = Problem::random_poisson(16);
    let jacobi = JacobiPreconditioner::new(&problem.a).unwrap();
    let ic = Ic0::new(&problem.a).unwrap();
    for (method, m) in
        [("cg", &jacobi as &dyn Preconditioner), ("pipecg", &Identity), ("pipecg", &jacobi), ("pipecg", &ic)]
    {
        let mut solver = problem.solver(method, m);
        for at in [6, 11] {
            run(&mut *solver, at);
            let state = saved(&*solver, Resume::Deflated);
            solver = problem.solver(method, m);
            resume(&mut *solver, &state, at, Resume::Deflated);
        }
        run(&mut *solver, 18);
        let [exact, traditional] = [Resume::Exact, Resume::Traditional].map(|how| saved(&*solver, how));
        assert!(exact.iter().any(|(name, _)| name == "w1"), "two directions");
        let rest = run(&mut *solver, u64::MAX);
        let mut resumed = problem.solver(method, m);
        resume(&mut *resumed, &exact, 18, Resume::Exact);
        assert_eq!(run(&mut *resumed, u64::MAX), rest, "{method}, {}: exact", m.name());
        let mut resumed = problem.solver(method, m);
        resume(&mut *resumed, &traditional, 18, Resume::Traditional);
        let count = run(&mut *resumed, u64::MAX).len();
        assert!(count.abs_diff(rest.len()) <= 1, "{method}, {}: traditional {count} of {}", m.name(), rest.len());
    }
}
