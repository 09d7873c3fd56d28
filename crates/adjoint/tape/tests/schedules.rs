//! Schedules are carried out by a program that checks each action, and their costs are compared
//! with formulas and with the optimum.

#[path = "support/adjoint.rs"]
mod adjoint;
#[path = "support/optimum.rs"]
mod optimum;

use adjoint::{Tally, perform};
use optimum::{TwoLevels, cheapest};
use recoup_tape::schedule::{
    AccessCost, DiskRevolve, HRevolve, Multistage, Revolve, ScheduleAction, ScheduleCosts, ScheduleError, StoreAll,
    extra_steps,
};

/// Costs of 1 for a forward step, then of writes and reads: memory, disk.
fn costs(memory: [f64; 2], disk: [f64; 2]) -> ScheduleCosts {
    let of = |pair: [f64; 2]| AccessCost { write_seconds: pair[0], read_seconds: pair[1] };
    ScheduleCosts { forward_seconds: 1.0, memory: of(memory), disk: of(disk) }
}

/// Costs of machines that differ: halves and wholes, so sums are exact.
fn machines() -> Vec<ScheduleCosts> {
    vec![
        costs([0.0, 0.0], [2.0, 2.0]),
        costs([0.0, 0.0], [1.0, 1.0]),
        costs([0.0, 0.0], [5.0, 1.0]),
        costs([0.0, 0.0], [1.0, 5.0]),
        costs([0.0, 0.0], [0.0, 3.0]),
        costs([0.5, 0.5], [2.0, 2.0]),
        costs([1.0, 0.0], [3.0, 1.0]),
        costs([0.0, 0.0], [20.0, 30.0]),
        ScheduleCosts { forward_seconds: 4.0, ..costs([0.5, 0.25], [3.0, 6.0]) },
        ScheduleCosts { forward_seconds: 0.0, ..costs([1.0, 1.0], [1.0, 1.0]) },
    ]
}

/// Seconds of what was done.
fn seconds(tally: &Tally, costs: &ScheduleCosts) -> f64 {
    let level = |index: usize, cost: AccessCost| {
        tally.writes[index] as f64 * cost.write_seconds + tally.reads[index] as f64 * cost.read_seconds
    };
    tally.forward_steps as f64 * costs.forward_seconds + level(0, costs.memory) + level(1, costs.disk)
}

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
fn multistage_takes_the_forward_steps_of_revolve_and_keeps_to_its_slots() {
    for steps in 1..=60 {
        for memory in 0..=6 {
            for disk in 0..=6 {
                if memory + disk == 0 {
                    continue;
                }
                let tally = perform(steps, Multistage::new(steps, memory, disk).unwrap());
                assert_eq!(tally.forward_steps, Revolve::forward_steps(steps, memory + disk));
                assert!(tally.states_max[0] as u64 <= memory && tally.states_max[1] as u64 <= disk);
                let alone = perform(steps, Revolve::new(steps, memory + disk).unwrap());
                assert_eq!(tally.writes[0] + tally.writes[1], alone.writes[0]);
                assert_eq!(tally.reads[0] + tally.reads[1], alone.reads[0]);
            }
        }
    }
}

#[test]
fn multistage_uses_the_disk_least_for_each_number_of_slots_in_memory() {
    // A slot more in memory takes off the disk the most used of those left there, so each saves at
    // most as much as the one before: the sums of a greedy choice are the least of all choices.
    for steps in [20, 50, 120] {
        for slots in 2..=8 {
            let traffic = |memory: u64| {
                let tally = perform(steps, Multistage::new(steps, memory, slots - memory).unwrap());
                tally.writes[1] + tally.reads[1]
            };
            let saved: Vec<u64> = (1..=slots).map(|memory| traffic(memory - 1) - traffic(memory)).collect();
            assert!(saved.is_sorted_by(|a, b| a >= b), "{steps} steps: {saved:?}");
            assert_eq!(traffic(slots), 0);
        }
    }
}

#[test]
fn h_revolve_is_as_cheap_as_any_program_can_be() {
    // All sequences of actions are searched, in order of their cost.
    for costs in machines() {
        for steps in 1..=7 {
            for memory in 0..=2 {
                for disk in 0..=2 {
                    if memory + disk == 0 {
                        continue;
                    }
                    let schedule = HRevolve::new(steps, memory, disk, &costs).unwrap();
                    let predicted = schedule.seconds();
                    let least = cheapest(steps, [memory, disk], &costs);
                    assert_eq!(predicted, least, "{steps} steps, {memory} and {disk} slots, {costs:?}");
                }
            }
        }
    }
}

#[test]
fn h_revolve_does_what_its_recurrence_promises() {
    for costs in machines() {
        for memory in [0, 1, 2, 3, 5] {
            for disk in [0, 1, 2, 4, 7] {
                if memory + disk == 0 {
                    continue;
                }
                let plain = TwoLevels::new(60, memory as usize, disk as usize, &costs);
                for steps in (1..=20).chain([31, 45, 60]) {
                    let schedule = HRevolve::new(steps, memory, disk, &costs).unwrap();
                    let predicted = schedule.seconds();
                    let tally = perform(steps, schedule);
                    assert_eq!(seconds(&tally, &costs), predicted, "{steps} steps, {memory} and {disk} slots");
                    assert_eq!(predicted, plain.seconds(steps as usize), "{steps} steps, {memory} and {disk} slots");
                    assert!(tally.states_max[0] as u64 <= memory && tally.states_max[1] as u64 <= disk);
                }
            }
        }
    }
}

#[test]
fn h_revolve_is_revolve_where_one_level_costs_nothing() {
    let free = costs([0.0, 0.0], [0.0, 0.0]);
    for steps in [1, 2, 10, 77] {
        for slots in [1, 3, 8] {
            let fewest = Revolve::forward_steps(steps, slots) as f64;
            assert_eq!(HRevolve::new(steps, slots, 0, &free).unwrap().seconds(), fewest);
            assert_eq!(HRevolve::new(steps, 0, slots, &free).unwrap().seconds(), fewest);
            assert_eq!(HRevolve::new(steps, slots, 100, &costs([0.0, 0.0], [1e9, 1e9])).unwrap().seconds(), fewest);
        }
    }
}

#[test]
fn disk_revolve_needs_no_more_than_h_revolve_with_a_slot_for_every_step() {
    for costs in machines().into_iter().filter(|of| of.memory == AccessCost::default()) {
        for memory in 1..=4 {
            for steps in 1..=60 {
                let schedule = DiskRevolve::new(steps, memory, &costs).unwrap();
                let predicted = schedule.seconds();
                let tally = perform(steps, schedule);
                assert_eq!(seconds(&tally, &costs), predicted, "{steps} steps, {memory} slots");
                assert!(tally.states_max[0] as u64 <= memory);
                let bounded = HRevolve::new(steps, memory, steps, &costs).unwrap().seconds();
                assert_eq!(predicted, bounded, "{steps} steps, {memory} slots, {costs:?}");
            }
        }
    }
}

#[test]
fn long_programs_are_planned() {
    let machine = ScheduleCosts { forward_seconds: 0.05, ..costs([0.013, 0.013], [0.4, 0.3]) };
    let two = HRevolve::new(10_000, 64, 800, &machine).unwrap();
    let predicted = two.seconds();
    let tally = perform(10_000, two);
    // Sums of a few ten thousand terms, each rounded once.
    assert!((seconds(&tally, &machine) - predicted).abs() <= 1e-9 * predicted);
    let free = ScheduleCosts { memory: AccessCost::default(), ..machine };
    let endless = DiskRevolve::new(100_000, 64, &free).unwrap();
    let predicted = endless.seconds();
    let tally = perform(100_000, endless);
    assert!((seconds(&tally, &free) - predicted).abs() <= 1e-9 * predicted);
}

#[test]
fn costs_and_sizes_out_of_range_are_named() {
    let negative = costs([0.0, -1.0], [0.0, 0.0]);
    let error = HRevolve::new(10, 1, 1, &negative).unwrap_err();
    assert_eq!(error, ScheduleError::Cost { name: "the cost of a read from memory", value: -1.0 });
    let nan = costs([0.0, 0.0], [f64::NAN, 0.0]);
    assert!(DiskRevolve::new(10, 1, &nan).unwrap_err().to_string().contains("write to disk is NaN"));
    let free = costs([0.0, 0.0], [0.0, 0.0]);
    assert!(matches!(HRevolve::new(1 << 40, 64, 64, &free), Err(ScheduleError::TooLong { .. })));
    assert!(matches!(DiskRevolve::new(1 << 40, 64, &free), Err(ScheduleError::TooLong { .. })));
    assert_eq!(DiskRevolve::new(10, 0, &free).unwrap_err(), ScheduleError::NoSlots { steps: 10 });
    assert_eq!(Multistage::new(10, 0, 0).unwrap_err(), ScheduleError::NoSlots { steps: 10 });
}

#[test]
fn impossible_schedules_are_refused_by_name() {
    assert_eq!(Revolve::new(0, 3).unwrap_err(), ScheduleError::NoSteps);
    assert_eq!(StoreAll::new(0).unwrap_err(), ScheduleError::NoSteps);
    assert_eq!(Revolve::new(2, 0).unwrap_err(), ScheduleError::NoSlots { steps: 2 });
    assert_eq!(perform(1, Revolve::new(1, 0).unwrap()).forward_steps, 1);
}
