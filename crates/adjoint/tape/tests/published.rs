//! The published evaluation (Maurya et al., HiPC 2022) in virtual time.

use recoup_tape::TouchMode;
use recoup_tape::simulated::{Approach, MachineScenario, NodeRates, PinningTurns, UNIFORM_BYTES};

fn pushes(scenario: &MachineScenario, approach: Approach) -> f64 {
    scenario.run(approach).expect("the states fit").push_seconds
}

fn whole(touching: TouchMode, turns: PinningTurns) -> Approach {
    Approach::Whole { touching: Some(touching), turns }
}

/// A quarter of the published size, for tests that run many of them.
fn quarter(rates: NodeRates, interval_seconds: f64) -> MachineScenario {
    let states = vec![vec![UNIFORM_BYTES; 64]; 8];
    let base = MachineScenario::large_host(rates, 8, interval_seconds);
    MachineScenario { device_bytes: 1 << 30, host_bytes: 8 << 30, states, ..base }
}

#[test]
fn cache_that_grows_waits_76_percent_less_than_direct_allocation() {
    let scenario = MachineScenario::large_device(NodeRates::a100(), 8, 0.02);
    let direct = scenario.run(Approach::Direct).expect("the states fit");
    let grown = scenario.run(Approach::PUBLISHED).expect("the states fit");
    let less = 1.0 - grown.push_seconds / direct.push_seconds;
    assert!((less - 0.76).abs() <= 0.01, "Figure 4b: {less}");
    let less = 1.0 - grown.total_seconds() / direct.total_seconds();
    assert!((less - 0.63).abs() <= 0.03, "Figure 4c: {less}");
}

#[test]
fn eight_processes_gain_what_figure_6a_says() {
    let scenario = MachineScenario::large_host(NodeRates::a100(), 8, 0.02);
    let gain = pushes(&scenario, Approach::Direct) / pushes(&scenario, Approach::PUBLISHED);
    assert!((gain / 27.8 - 1.0).abs() <= 0.15, "Figure 6a: {gain}");
}

#[test]
fn a_run_repeats_exactly() {
    let scenario = quarter(NodeRates::a100(), 0.01);
    let run = || scenario.run_each(Approach::PUBLISHED).expect("the states fit");
    assert_eq!(run(), run());
}

#[test]
fn touching_between_copies_waits_less_beyond_a_crossing_and_the_model_chooses_the_better() {
    for (interval_seconds, is_sequential_better) in [(0.005, false), (0.02, false), (0.04, true), (0.05, true)] {
        let scenario = MachineScenario::large_host(NodeRates::a100(), 8, interval_seconds);
        let sequential = pushes(&scenario, whole(TouchMode::Sequential, PinningTurns::Serial));
        let concurrent = pushes(&scenario, whole(TouchMode::Concurrent, PinningTurns::Serial));
        assert_eq!(sequential < concurrent, is_sequential_better, "{interval_seconds} s: {sequential} {concurrent}");
        let chosen = pushes(&scenario, Approach::PUBLISHED);
        assert!(chosen <= 1.01 * sequential.min(concurrent), "{interval_seconds} s: {chosen}");
    }
}

/// Growing memory gains over direct preparation, and turns over registration by all at once, with
/// any rate within half of its value.
#[test]
fn orders_hold_with_each_rate_halved_and_raised_by_half() {
    let fields: [fn(&mut NodeRates) -> &mut f64; 11] = [
        |rates| &mut rates.device_copy,
        |rates| &mut rates.map_process,
        |rates| &mut rates.map_node,
        |rates| &mut rates.link_registered,
        |rates| &mut rates.link_unregistered,
        |rates| &mut rates.untouched_copy,
        |rates| &mut rates.touch,
        |rates| &mut rates.together,
        |rates| &mut rates.pin,
        |rates| &mut rates.pin_untouched,
        |rates| &mut rates.spill,
    ];
    for (field_index, field) in fields.iter().enumerate() {
        for factor in [0.5, 1.5] {
            let mut rates = NodeRates::a100();
            *field(&mut rates) *= factor;
            let name = format!("rate {field_index} times {factor}");
            for interval_seconds in [0.01, 0.05] {
                let scenario = quarter(rates.clone(), interval_seconds);
                let direct = pushes(&scenario, Approach::Direct);
                let serial = pushes(&scenario, whole(TouchMode::Concurrent, PinningTurns::Serial));
                let parallel = pushes(&scenario, whole(TouchMode::Concurrent, PinningTurns::Parallel));
                let published = pushes(&scenario, Approach::PUBLISHED);
                let chunked = pushes(&scenario, Approach::Chunked);
                assert!(published < direct, "{name}: {published} {direct}");
                assert!(serial <= parallel, "{name}: {serial} {parallel}");
                assert!(chunked < direct, "{name}: {chunked} {direct}");
            }
            let device = MachineScenario { device_bytes: 8 << 30, host_bytes: 0, ..quarter(rates, 0.02) };
            assert!(pushes(&device, Approach::PUBLISHED) < pushes(&device, Approach::Direct), "{name}");
        }
    }
}
