//! The choice of a schedule by measured numbers: by hand where a hand can, and by properties.

use recoup_model::Rng;
use recoup_tape::schedule::{
    AccessCost, AdjointProblem, CodedState, PlanRefusal, ReverseNeeds, Revolve, ScheduleChoice, ScheduleError,
    ScheduleKind, ScheduleTally, StateForm, StateStorage,
};

const GIB: u64 = 1 << 30;

/// 1000 steps of 10 ms, states of 1 GiB, memory that costs nothing, and a disk of 1 s for a state.
fn problem() -> AdjointProblem {
    AdjointProblem {
        steps: 1000,
        forward_seconds: 0.01,
        reverse_seconds: 0.02,
        reverse_needs: ReverseNeeds::StepData,
        state_bytes: GIB,
        coded: None,
        memory: StateStorage { bytes: 10 * GIB, access: AccessCost::default() },
        disk: StateStorage { bytes: 0, access: AccessCost { write_seconds: 1.0, read_seconds: 1.0 } },
    }
}

fn chosen(choice: &ScheduleChoice) -> (ScheduleKind, StateForm) {
    (choice.best.kind, choice.best.form)
}

fn near(found: f64, expected: f64) {
    // Sums of a few thousand terms, each rounded once.
    assert!((found - expected).abs() <= 1e-10 * expected, "{found}, expected {expected}");
}

#[test]
fn everything_is_stored_raw_where_it_fits() {
    let choice = AdjointProblem { memory: StateStorage { bytes: 1000 * GIB, ..problem().memory }, ..problem() };
    let choice = choice.choose().unwrap();
    assert_eq!(chosen(&choice), (ScheduleKind::StoreAll, StateForm::Raw));
    near(choice.best.seconds, 1000.0 * 0.03);
    assert_eq!(choice.best.recomputed_steps, 0);
    assert_eq!([choice.best.memory_bytes_max, choice.best.disk_bytes_max], [1000 * GIB, 0]);
}

#[test]
fn a_codec_that_makes_everything_fit_wins_over_computing_again() {
    let coded = CodedState { bytes: GIB / 100, encode_seconds: 0.001, decode_seconds: 0.001 };
    let choice = AdjointProblem { coded: Some(coded), ..problem() }.choose().unwrap();
    assert_eq!(chosen(&choice), (ScheduleKind::StoreAll, StateForm::Coded));
    near(choice.best.seconds, 1000.0 * 0.032);
    // A codec slower than the steps it saves is not used.
    let slow = CodedState { encode_seconds: 1.0, ..coded };
    let choice = AdjointProblem { coded: Some(slow), ..problem() }.choose().unwrap();
    assert_eq!(chosen(&choice), (ScheduleKind::Revolve, StateForm::Raw));
}

#[test]
fn revolve_is_chosen_in_memory_alone_with_the_seconds_of_its_formula() {
    let choice = problem().choose().unwrap();
    assert_eq!(chosen(&choice), (ScheduleKind::Revolve, StateForm::Raw));
    let steps = Revolve::forward_steps(1000, 10);
    near(choice.best.seconds, steps as f64 * 0.01 + 20.0);
    assert_eq!(choice.best.recomputed_steps, steps - 1000);
    assert_eq!(choice.best.memory_bytes_max, 10 * GIB);
    // Where the state is enough, the steps that only make data are not taken.
    let state = AdjointProblem { reverse_needs: ReverseNeeds::State, ..problem() }.choose().unwrap();
    near(state.best.seconds, (steps - 1000) as f64 * 0.01 + 20.0);
    assert_eq!(state.best.recomputed_steps, steps - 1000 - 999);
}

#[test]
fn the_disk_is_used_where_steps_cost_more() {
    let disk = StateStorage { bytes: 100 * GIB, ..problem().disk };
    let cheap_steps = AdjointProblem { disk, ..problem() }.choose().unwrap();
    assert_eq!(cheap_steps.best.disk_bytes_max, 0, "a state on disk costs 200 steps");
    let dear_steps = AdjointProblem { disk, forward_seconds: 1.0, ..problem() }.choose().unwrap();
    assert!(dear_steps.best.disk_bytes_max > 0);
    assert!(dear_steps.best.seconds < problem_with_forward(1.0).choose().unwrap().best.seconds);
}

/// What was predicted is what the actions cost.
#[test]
fn actions_of_a_plan_do_the_work_that_was_predicted() {
    for seed in 0..100 {
        let problem = random_problem(&mut Rng::new(seed));
        let best = problem.choose().unwrap().best;
        let tally = ScheduleTally::of(problem.actions(&best).unwrap());
        if best.kind == ScheduleKind::StoreAll {
            assert_eq!((tally.forward_steps, best.recomputed_steps), (problem.steps, 0), "seed {seed}");
            continue;
        }
        // Where the state is enough, the program leaves out the steps that only make data.
        let left_out = if problem.reverse_needs == ReverseNeeds::State { problem.steps } else { 0 };
        assert_eq!(tally.forward_steps - left_out, best.forward_steps, "seed {seed}");
        let form_bytes = match best.form {
            StateForm::Raw => problem.state_bytes,
            StateForm::Coded => problem.coded.unwrap().bytes,
        };
        let peaks = [tally.memory.states_max, tally.disk.states_max].map(|states| states * form_bytes);
        assert_eq!(peaks, [best.memory_bytes_max, best.disk_bytes_max], "seed {seed}");
    }
}

fn problem_with_forward(forward_seconds: f64) -> AdjointProblem {
    AdjointProblem { forward_seconds, ..problem() }
}

#[test]
fn states_that_do_not_fit_memory_go_to_disk_before_anything_is_computed_again() {
    let disk = StateStorage { bytes: 990 * GIB, access: AccessCost { write_seconds: 1e-4, read_seconds: 1e-4 } };
    let choice = AdjointProblem { disk, ..problem() }.choose().unwrap();
    assert_eq!(chosen(&choice), (ScheduleKind::StoreAll, StateForm::Raw));
    near(choice.best.seconds, 30.0 + 990.0 * 2e-4);
    let smaller = StateStorage { bytes: 989 * GIB, ..disk };
    let choice = AdjointProblem { disk: smaller, ..problem() }.choose().unwrap();
    let raw = &choice.candidates[0];
    assert_eq!(raw.outcome, Err(PlanRefusal::TooLarge { needed: 1000 * GIB, available: 999 * GIB }));
    assert_eq!(choice.reason(raw), "needs 1000.0 GiB for states, memory and disk have room for 999.0 GiB");
}

/// A number of `low` .. `high`, by its logarithm.
fn log_uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    let share = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    low * (high / low).powf(share)
}

fn random_problem(rng: &mut Rng) -> AdjointProblem {
    let memory = log_uniform(rng, 1e-5, 1e-2);
    let disk = memory * log_uniform(rng, 1.0, 1e3);
    let ratio = log_uniform(rng, 1.0, 50.0);
    let of = |seconds: f64| AccessCost { write_seconds: seconds, read_seconds: seconds };
    let coded = CodedState {
        bytes: (1e9 / ratio) as u64,
        encode_seconds: log_uniform(rng, 1e-4, 1.0),
        decode_seconds: log_uniform(rng, 1e-4, 1.0),
    };
    AdjointProblem {
        steps: log_uniform(rng, 1.0, 600.0) as u64,
        forward_seconds: log_uniform(rng, 1e-3, 1.0),
        reverse_seconds: log_uniform(rng, 1e-3, 1.0),
        reverse_needs: [ReverseNeeds::State, ReverseNeeds::StepData][rng.next_u64() as usize % 2],
        state_bytes: 1_000_000_000,
        coded: Some(coded).filter(|_| !rng.next_u64().is_multiple_of(4)),
        memory: StateStorage { bytes: log_uniform(rng, 1e9, 1e12) as u64, access: of(memory) },
        disk: StateStorage { bytes: log_uniform(rng, 1e8, 1e13) as u64, access: of(disk) },
    }
}

#[test]
fn choices_of_random_problems_are_the_cheapest_that_fit_and_explain_the_others() {
    for seed in 0..300 {
        let problem = random_problem(&mut Rng::new(seed));
        let choice = problem.choose().unwrap();
        let text = choice.to_string();
        for of in &choice.candidates {
            assert!(text.contains(&format!("{} with {} states", of.kind, of.form)), "seed {seed}\n{text}");
            assert!(text.contains(&choice.reason(of)), "seed {seed}\n{text}");
            let Ok(plan) = of.outcome else { continue };
            assert!(plan.seconds >= choice.best.seconds, "seed {seed}\n{text}");
            assert!(plan.memory_bytes_max <= problem.memory.bytes && plan.disk_bytes_max <= problem.disk.bytes);
            let h_revolve = problem.plan(ScheduleKind::HRevolve, of.form).unwrap();
            let restarts = of.kind != ScheduleKind::StoreAll;
            // No schedule of restarts is cheaper, but for rounding.
            assert!(!restarts || h_revolve.seconds <= plan.seconds * (1.0 + 1e-10), "seed {seed}\n{text}");
        }
        assert!(text.ends_with(&format!("{}\n", choice.why())));
    }
}

#[test]
fn more_room_and_better_codecs_never_make_the_best_slower() {
    for seed in 0..100 {
        let before = random_problem(&mut Rng::new(seed));
        let seconds = before.choose().unwrap().best.seconds * (1.0 + 1e-10);
        let more = |storage: StateStorage| StateStorage { bytes: storage.bytes * 2, ..storage };
        let faster = before.coded.map(|of| CodedState { encode_seconds: of.encode_seconds / 2.0, ..of });
        let smaller = before.coded.map(|of| CodedState { bytes: of.bytes / 2, ..of });
        for after in [
            AdjointProblem { memory: more(before.memory), ..before },
            AdjointProblem { disk: more(before.disk), ..before },
            AdjointProblem { coded: faster, ..before },
            AdjointProblem { coded: smaller, ..before },
        ] {
            assert!(after.choose().unwrap().best.seconds <= seconds, "seed {seed}: {after:?}");
        }
    }
}

#[test]
fn numbers_that_no_program_has_are_refused_by_name() {
    let nan = AdjointProblem { reverse_seconds: f64::NAN, ..problem() };
    assert!(nan.choose().unwrap_err().to_string().contains("the cost of a reverse step is NaN"));
    assert_eq!(AdjointProblem { state_bytes: 0, ..problem() }.choose().unwrap_err(), ScheduleError::NoBytes.into());
    let empty = AdjointProblem { memory: StateStorage::default(), ..problem() };
    assert_eq!(empty.choose().unwrap_err(), ScheduleError::NoSlots { steps: 1000 }.into());
    let long = AdjointProblem { steps: 1 << 40, ..problem() }.choose();
    assert!(matches!(long, Err(PlanRefusal::Uncounted { steps, .. }) if steps == 1 << 40));
    assert_eq!("revolver".parse::<ScheduleKind>().unwrap_err().to_string().split(':').count(), 2);
}
