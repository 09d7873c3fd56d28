//! A forward pass that is killed for real, again and again, continues from the states it has
//! spilled.

#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use recoup_compress::Qb;
use recoup_core::{Bound, Values, ValuesMut};
use recoup_model::Rng;
use recoup_tape::{Tape, TapeBuilder};

/// Real kills of each program.
const KILLS: u32 = 100;
/// Steps of the forward pass.
const STEPS: u64 = 600;
const LEN: usize = 2000;
/// The directory of a child; without it the child's test does nothing.
const DIRECTORY: &str = "RECOUP_TAPE_KILLS";
/// The form of the states of a child.
const FORM: &str = "RECOUP_TAPE_FORM";
/// Set for a child that is not killed. Any other one waits before its last step.
const ENDS: &str = "RECOUP_TAPE_ENDS";

/// One step of a program whose states cannot be told but by computing all steps before.
fn advance(state: &mut [f64]) {
    let last = state[LEN - 1];
    state.rotate_right(1);
    state[0] = last;
    state.iter_mut().for_each(|x| *x = 3.99 * *x * (1.0 - *x));
}

fn first_state() -> Vec<f64> {
    (0..LEN).map(|i| (i as f64 + 1.0) / (LEN as f64 + 2.0)).collect()
}

fn describe(form: &str, directory: &Path) -> TapeBuilder {
    let builder = Tape::builder().host(8 * 8 * LEN as u64).spill(directory).reopen();
    match form {
        "raw" => builder,
        "coded" => builder.codec(Arc::new(Qb::default()), Bound::Lossless),
        "chained" => builder.codec(Arc::new(Qb::default()), Bound::Lossless).key_every(5),
        other => panic!("form {other}"),
    }
}

fn wait_for_the_kill() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Goes forward from the newest state on the tape, then back over all of them.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let form = std::env::var(FORM).unwrap();
    let mut tape = describe(&form, Path::new(&directory)).build().unwrap();
    assert_eq!(tape.damaged(), [], "a kill damages no file");
    let steps = tape.steps().unwrap();
    assert_eq!(steps, (0..steps.len() as u64).collect::<Vec<u64>>(), "no state between others is lost");
    let mut state = first_state();
    if let Some(newest) = steps.last() {
        tape.peek(*newest, ValuesMut::F64(&mut state)).unwrap();
    }
    println!("\nbegins {}", steps.len());
    let ends = std::env::var_os(ENDS).is_some();
    for step in steps.len() as u64..STEPS {
        if step == STEPS - 1 && !ends {
            wait_for_the_kill();
        }
        if step > 0 {
            advance(&mut state);
        }
        tape.push(step, Values::F64(&state)).unwrap();
        std::thread::sleep(Duration::from_micros(if ends { 0 } else { 1000 }));
    }
    tape.save().unwrap();
    println!("\nturns");
    let mut expected = vec![first_state()];
    for step in 1..STEPS as usize {
        let mut state = expected[step - 1].clone();
        advance(&mut state);
        expected.push(state);
    }
    for step in (0..STEPS).rev() {
        assert_eq!(tape.pop(ValuesMut::F64(&mut state)).unwrap(), step);
        assert!(state == expected[step as usize], "step {step} is another state");
    }
    println!("\nends");
}

fn start(form: &str, directory: &Path) -> Child {
    command(form, directory).spawn().unwrap()
}

fn command(form: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kills::child", "--nocapture"]).env(DIRECTORY, directory).env(FORM, form);
    command.stdout(Stdio::piped());
    command
}

/// Lines of a child with this word first.
fn said(child: &mut Child, word: &str) -> Option<String> {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines().map_while(Result::ok);
    lines.into_iter().find_map(|line| line.strip_prefix(word).map(|rest| rest.trim().to_owned()))
}

fn kill_and_go_on(form: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(form.len() as u64);
    let mut kills = 0;
    let mut began = Vec::new();
    while kills < KILLS {
        let mut child = start(form, dir.path());
        let first: u64 = said(&mut child, "begins").unwrap().parse().unwrap();
        began.push(first);
        std::thread::sleep(Duration::from_micros(rng.next_u64() % 8000));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert!(!status.success(), "{form}: it was killed");
        kills += 1;
    }
    assert!(began.is_sorted(), "{form}: a state that was spilled is there after each kill: {began:?}");
    assert!(began[began.len() - 1] > 0, "{form}: no state outlived a kill");
    assert!(began[began.len() / 10] < STEPS - 1, "{form}: nearly all kills were at the end: {began:?}");
    let mut last = command(form, dir.path()).env(ENDS, "1").spawn().unwrap();
    assert!(said(&mut last, "ends").is_some(), "{form}");
    assert!(last.wait().unwrap().success());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{form}: popped states leave no file");
}

#[test]
fn a_forward_pass_that_is_killed_100_times_goes_on_from_its_raw_states() {
    kill_and_go_on("raw");
}

#[test]
fn a_forward_pass_that_is_killed_100_times_goes_on_from_its_coded_states() {
    kill_and_go_on("coded");
}

#[test]
fn a_forward_pass_that_is_killed_100_times_goes_on_from_its_chained_states() {
    kill_and_go_on("chained");
}
