//! Several right-hand sides, `A X = B`: one solve for each column, all of them advanced together.
//!
//! Source: the methods themselves. Departure from block methods (D. P. O'Leary 1980, doi
//! 10.1016/0024-3795(80)90247-5): columns share no search space, so no small matrix can lose its
//! rank when columns become dependent, and a column gives the bits it gives alone.
//!
//! | vectors of length n | count | checkpoint |
//! |---|---|---|
//! | those of the method | one set for each column | as of the method, `.` and the column behind their names |
//!
//! A column that has converged is not touched again. An iteration is one step of every other
//! column. Progress is that of the column with the largest relative residual.

use recoup_core::{
    BreakdownReason, Iteration, MethodProfile, Progress, Registered, Resume, SafePoint, SolveError, Status, Variable,
    VariableMut, mix,
};

/// Solves of the columns of `A X = B`, advanced together.
pub struct Columns<I> {
    solves: Vec<I>,
    names: Vec<ColumnNames>,
    iteration: u64,
}

/// The names of the variables of one column, `x.0` of column 0, and the revision they are of.
struct ColumnNames {
    revision: u64,
    names: Vec<String>,
}

impl<I: Iteration> Columns<I> {
    /// Advances these solves together, one for each column: of one method, with one operator.
    ///
    /// # Errors
    /// [`SolveError::Parameter`] for no columns.
    pub fn new(solves: Vec<I>) -> Result<Self, SolveError> {
        if solves.is_empty() {
            return Err(SolveError::Parameter { what: "number of columns", value: 0.0, expected: "1 or more" });
        }
        let names = solves.iter().enumerate().map(|(column, solve)| ColumnNames::of(solve, column)).collect();
        Ok(Self { solves, names, iteration: 0 })
    }

    /// Returns the solves of the columns, in order.
    #[must_use]
    pub fn solves(&self) -> &[I] {
        &self.solves
    }

    fn running(&self) -> impl Iterator<Item = &I> {
        self.solves.iter().filter(|solve| solve.progress().status == Status::Running)
    }

    /// Takes the names of variables that have come or gone.
    fn rename(&mut self) {
        for (column, (solve, names)) in self.solves.iter().zip(&mut self.names).enumerate() {
            if names.revision != solve.revision() {
                *names = ColumnNames::of(solve, column);
            }
        }
    }

    /// Returns the state of all columns together.
    fn status(&self) -> Status {
        let broken = self.solves.iter().find_map(|solve| broken(&solve.progress()));
        match broken {
            Some(reason) => Status::Breakdown(reason),
            None if self.running().next().is_none() => Status::Converged,
            None => Status::Running,
        }
    }
}

impl ColumnNames {
    fn of(solve: &impl Registered, column: usize) -> Self {
        let names = solve.variables().iter().map(|variable| format!("{}.{column}", variable.name)).collect();
        Self { revision: solve.revision(), names }
    }
}

fn broken(progress: &Progress) -> Option<BreakdownReason> {
    if let Status::Breakdown(reason) = progress.status { Some(reason) } else { None }
}

/// Returns the checkpoints that two columns admit together.
fn weaker(a: SafePoint, b: SafePoint) -> SafePoint {
    match (a, b) {
        (SafePoint::No, _) | (_, SafePoint::No) => SafePoint::No,
        (SafePoint::Exact, _) | (_, SafePoint::Exact) => SafePoint::Exact,
        (SafePoint::Any, SafePoint::Any) => SafePoint::Any,
    }
}

impl<I: Iteration> Registered for Columns<I> {
    fn variables(&self) -> Vec<Variable<'_>> {
        let columns = self.solves.iter().zip(&self.names).enumerate();
        let named = columns.flat_map(|(column, (solve, names))| {
            let pairs = solve.variables().into_iter().zip(&names.names);
            pairs.map(move |(variable, name)| Variable { name, column: Some(column), ..variable })
        });
        named.collect()
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        let columns = self.solves.iter_mut().zip(&self.names);
        let named = columns.flat_map(|(solve, names)| {
            let pairs = solve.variables_mut().into_iter().zip(&names.names);
            pairs.map(|(variable, name)| VariableMut { name, ..variable })
        });
        named.collect()
    }

    fn revision(&self) -> u64 {
        self.solves.iter().fold(0, |all, solve| mix(all ^ solve.revision()))
    }

    fn make_room(&mut self, saved: &[&str]) {
        for (column, solve) in self.solves.iter_mut().enumerate() {
            let ending = format!(".{column}");
            let own: Vec<&str> = saved.iter().filter_map(|name| name.strip_suffix(ending.as_str())).collect();
            solve.make_room(&own);
        }
        self.rename();
    }
}

impl<I: Iteration> Iteration for Columns<I> {
    fn progress(&self) -> Progress {
        let all = self.solves.iter().map(Iteration::progress);
        let worst = all.reduce(|a, b| if b.relative_residual() <= a.relative_residual() { a } else { b });
        let safe_point = self.running().map(|solve| solve.progress().safe_point).fold(SafePoint::Any, weaker);
        let worst = worst.unwrap_or_else(|| unreachable!("there is at least one column"));
        Progress { iteration: self.iteration, status: self.status(), safe_point, ..worst }
    }

    fn step(&mut self) -> Result<Progress, SolveError> {
        if self.status() == Status::Running {
            let running = self.solves.iter_mut().filter(|solve| solve.progress().status == Status::Running);
            for solve in running {
                solve.step()?;
            }
            self.iteration += 1;
            self.rename();
        }
        Ok(self.progress())
    }

    fn resume(&mut self, iteration: u64, how: Resume) -> Result<Progress, SolveError> {
        for solve in &mut self.solves {
            solve.resume(iteration, how)?;
        }
        self.iteration = iteration;
        self.rename();
        Ok(self.progress())
    }

    fn column_norms(&self, norms: &mut Vec<f64>) {
        norms.extend(self.solves.iter().map(|solve| solve.progress().residual_norm));
    }

    fn method(&self) -> Option<&'static str> {
        self.solves.first().and_then(Iteration::method)
    }

    fn profile(&self) -> MethodProfile {
        self.solves.first().map_or(MethodProfile::UNKNOWN, Iteration::profile)
    }

    fn tolerance(&self) -> Option<f64> {
        self.solves.iter().filter_map(Iteration::tolerance).reduce(f64::min)
    }

    fn has_sound_directions(&self) -> Result<bool, SolveError> {
        for solve in self.running() {
            if !solve.has_sound_directions()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
