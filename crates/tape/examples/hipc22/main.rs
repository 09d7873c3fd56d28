//! Figures of Maurya et al. (HiPC 2022) in virtual time.
use recoup_tape::simulated::*;
use recoup_tape::*;
fn main() {
    let a = NodeRates::a100();
    for ms in [5.0, 10.0, 20.0, 40.0] {
        for n in [1, 8] {
            let s = MachineScenario::large_device(a.clone(), n, ms * 1e-3);
            let d = s.run(Approach::Direct).unwrap();
            let o = s.run(Approach::PUBLISHED).unwrap();
            println!(
                "4 n={n} {ms} ms: direct {:.3} {:.3} ours {:.3} {:.3}: {:.1} % {:.1} %",
                d.push_seconds,
                d.total_seconds(),
                o.push_seconds,
                o.total_seconds(),
                100.0 * (1.0 - o.push_seconds / d.push_seconds),
                100.0 * (1.0 - o.total_seconds() / d.total_seconds())
            );
        }
    }
    let show = |what: &str, s: &MachineScenario| {
        let d = s.run(Approach::Direct).unwrap();
        print!("{what}: direct {:.2}/{:.2}", d.push_seconds, d.total_seconds());
        let w = |touching, turns| Approach::Whole { touching, turns };
        for (name, ap) in [
            ("publ", Approach::PUBLISHED),
            ("chunk", Approach::Chunked),
            ("memset", Approach::Memset { touch: 3e9, pin: 10e9 }),
            ("seq", w(Some(TouchMode::Sequential), PinningTurns::Serial)),
            ("con", w(Some(TouchMode::Concurrent), PinningTurns::Serial)),
            ("never", w(Some(TouchMode::Never), PinningTurns::Serial)),
            ("par", w(None, PinningTurns::Parallel)),
        ] {
            let o = s.run(ap).unwrap();
            print!(
                "  {name} {:.2}/{:.2} x{:.1}/{:.1} c{}",
                o.push_seconds,
                o.total_seconds(),
                d.push_seconds / o.push_seconds,
                d.total_seconds() / o.total_seconds(),
                o.n_concurrent
            );
        }
        println!();
    };
    for n in [1, 2, 4, 8] {
        show(&format!("6 n={n}"), &MachineScenario::large_host(a.clone(), n, 0.02));
    }
    for ms in [5.0, 10.0, 20.0, 30.0, 35.0, 40.0, 50.0, 80.0, 100.0] {
        show(&format!("5 {ms}"), &MachineScenario::large_host(a.clone(), 8, ms * 1e-3));
    }
}
