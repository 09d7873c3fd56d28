//! Do versions of an older program come back, once it has other variables?

use std::path::Path;

use recoup::core::Scheme;
use recoup::pipeline::{PipelineError, Session, Variables};
use recoup_testkit::progress;

use crate::support::plan;

fn session(dir: &Path) -> Session {
    recoup::open(dir).plan(plan(Scheme::Exact)).keep(9).build().unwrap()
}

/// Saves the state of the program as it was: u and w.
fn save_old(dir: &Path) {
    let mut session = session(dir);
    let mut u = [1.0, 2.0, 3.0];
    let mut w = [7];
    let owner = Variables::new().dynamic("u", &mut u).counter("w", &mut w);
    session.checkpoint(plan(Scheme::Exact), progress(40), &[&owner]).unwrap();
    session.wait().unwrap();
}

/// Adding one variable to a program made all its versions unreadable.
#[test]
fn versions_of_an_older_program_come_back_by_declaration() {
    let dir = tempfile::tempdir().unwrap();
    save_old(dir.path());
    let mut session = session(dir.path());
    let mut velocity = [0.0; 3];
    let mut added = [-1.0; 2];
    let mut restore = |session: &mut Session| {
        let mut owner = Variables::new().dynamic("velocity", &mut velocity).dynamic("added", &mut added);
        let restored = session.restore_with(&mut [&mut owner]);
        restored.map(|restored| (restored.unwrap(), velocity, added))
    };
    let lacks = |error: PipelineError, name: &str| match error {
        PipelineError::Lacks { version: 40, variable, held } => variable == name && held == ["u", "w"],
        _ => false,
    };
    assert!(lacks(restore(&mut session).unwrap_err(), "velocity"));
    session.changes().renamed("velocity", "u");
    assert!(lacks(restore(&mut session).unwrap_err(), "added"));
    session.changes().may_lack("added");
    session.changes().dropped("w");
    let (restored, velocity, added) = restore(&mut session).unwrap();
    assert_eq!((restored.version, restored.defaults), (40, vec!["added".to_owned()]));
    assert_eq!((velocity, added), ([1.0, 2.0, 3.0], [-1.0; 2]));
}

/// A new variable of the name that another one had before is not given that one's values.
#[test]
fn a_former_name_belongs_to_the_variable_that_was_renamed() {
    let dir = tempfile::tempdir().unwrap();
    save_old(dir.path());
    let mut session = session(dir.path());
    session.changes().renamed("velocity", "u");
    session.changes().may_lack("u");
    let mut velocity = [0.0; 3];
    let mut u = [9.0; 3];
    let mut owner = Variables::new().dynamic("velocity", &mut velocity).dynamic("u", &mut u);
    let restored = session.restore_with(&mut [&mut owner]).unwrap().unwrap();
    assert_eq!((restored.defaults, velocity, u), (vec!["u".to_owned()], [1.0, 2.0, 3.0], [9.0; 3]));
    // The version after it has both under their names, and stands alone.
    let owner = Variables::new().dynamic("velocity", &mut velocity).dynamic("u", &mut u);
    session.checkpoint(plan(Scheme::Exact), progress(41), &[&owner]).unwrap();
    session.wait().unwrap();
    let mut owner = Variables::new().dynamic("velocity", &mut velocity).dynamic("u", &mut u);
    let restored = session.restore_with(&mut [&mut owner]).unwrap().unwrap();
    assert_eq!((restored.version, restored.defaults.len(), velocity, u), (41, 0, [1.0, 2.0, 3.0], [9.0; 3]));
}
