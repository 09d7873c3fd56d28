//! Schedules are carried out by a program that checks each action, and their costs are compared
//! with formulas and with the optimum.

#[path = "support/adjoint.rs"]
mod adjoint;

use adjoint::{Tally, perform};
use recoup_tape::schedule::{Revolve, ScheduleAction, ScheduleError, StoreAll, extra_steps};

#[test]
fn store_all_takes_each_step_once_and_keeps_all_records() {
    for steps in [1, 2, 3, 100] {
        let tally = perform(steps, StoreAll::new(steps).unwrap());
        let expected = Tally { forward_steps: steps, records_max: steps as usize, ..Tally::default() };
        assert_eq!(tally, expected);
    }
}

#[test]
fn revolve_takes_the_fewest_forward_steps_and_never_more_slots() {
    for steps in 1..=150 {
        for slots in 1..=20 {
            let tally = perform(steps, Revolve::new(steps, slots).unwrap());
            assert_eq!(tally.forward_steps, steps + extra_steps(steps, slots), "{steps} steps, {slots} slots");
            assert_eq!(tally.forward_steps, Revolve::forward_steps(steps, slots));
            assert!(tally.states_max[0] as u64 <= slots.min(steps - 1), "{steps} steps, {slots} slots");
            assert_eq!([tally.writes[1], tally.reads[1], tally.records_max as u64], [0, 0, 1]);
        }
    }
}

#[test]
fn revolve_of_many_steps_is_a_stream() {
    // A billion steps and 40 slots: the stream begins at once and holds no more than its slots.
    let mut stream = Revolve::new(1_000_000_000, 40).unwrap();
    let written = stream.by_ref().take(1000).filter(|of| matches!(of, ScheduleAction::Write { .. })).count();
    assert!(written >= 40);
    let begin = Revolve::new(1_000_000_000, 40).unwrap().take_while(|of| !matches!(of, ScheduleAction::Reverse { .. }));
    assert!(begin.count() <= 2 * 40 + 1);
}

#[test]
fn impossible_schedules_are_refused_by_name() {
    assert_eq!(Revolve::new(0, 3).unwrap_err(), ScheduleError::NoSteps);
    assert_eq!(StoreAll::new(0).unwrap_err(), ScheduleError::NoSteps);
    assert_eq!(Revolve::new(2, 0).unwrap_err(), ScheduleError::NoSlots { steps: 2 });
    assert_eq!(perform(1, Revolve::new(1, 0).unwrap()).forward_steps, 1);
}
