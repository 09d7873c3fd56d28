//! Programs of six kinds below `recoup exec` and `recoup.run`, killed until they end: inside
//! solves, between them, and in saves.

use std::process::{Command, Output};

use recoup_testkit::Random;

use super::petsc_exec::{CG, COMPLEX, Counts, HEAT, Plain, assert_near, compiled, stdout};

const KILLS: usize = 500;

/// The log may change no digit. A solve resumed within leaves another residual of 1e-8 ||b||: of 24
/// solves at most, whose matrices have condition numbers below 41 or no eigenvalue below 1.
const RELATIVE: f64 = 24.0 * 41.0 * 1e-8;

/// A program under kills.
struct Victim {
    plain: Plain,
    arguments: String,
    ranks: usize,
    /// The Python of a program that uses SciPy.
    python: Option<String>,
    /// Without recoup.
    expected: String,
    /// Products, norms and writes of a run that is not killed.
    n_events: usize,
    kills: usize,
    replayed: u32,
    resumed: u32,
}

impl Victim {
    fn of(plain: Option<Plain>, arguments: &str, ranks: usize) -> Option<Self> {
        let mut victim = Self {
            plain: plain?,
            arguments: arguments.to_owned(),
            ranks,
            python: None,
            expected: String::new(),
            n_events: 0,
            kills: 0,
            replayed: 0,
            resumed: 0,
        };
        victim.expected = stdout(&victim.plain.start(ranks, arguments, None).output().unwrap());
        Some(victim)
    }

    fn scipy() -> Option<Self> {
        let python = std::env::var("RECOUP_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let plain = Plain::script(&python, "heat_scipy.py", "recoup.run, scipy");
        Self::of(plain, "", 1).map(|victim| Self { python: Some(python), ..victim })
    }

    fn start(&self, options: &[&str]) -> Command {
        let Some(python) = &self.python else {
            return self.plain.start(self.ranks, &self.arguments, Some(options));
        };
        let mut words: Vec<String> = [python, "-m", "recoup.run", "--dir", "log"].map(str::to_owned).into();
        words.extend(options.iter().map(|option| (*option).to_owned()));
        words.push(self.plain.program.split_whitespace().nth(1).unwrap().to_owned());
        self.plain.command(&words)
    }

    /// Runs until it ends, or is killed at an event of a rank.
    fn run(&self, kill: Option<&mut Random>, options: &[&str]) -> (Output, usize) {
        let file = self.plain.log().with_file_name("events");
        std::fs::remove_file(&file).ok();
        let mut command = self.start(options);
        command.env("LD_PRELOAD", self.plain.log().with_file_name("kill.so")).env("KILL_FILE", &file);
        if let Some(random) = kill {
            command.env("KILL_AT", (1 + random.below(self.n_events)).to_string());
            command.env("KILL_RANK", random.below(self.ranks).to_string());
            // Ranks that outlive their launcher may wait for each other without an end.
            if self.ranks == 1 && random.below(2) == 0 {
                command.env("KILL_PARENT", "1");
            }
        }
        let output = command.output().unwrap();
        let n_events = std::fs::read_to_string(&file).map_or(1, |text| text.trim().parse().unwrap());
        (output, n_events)
    }

    /// Kills one run after the other until one ends, and compares what that has printed.
    fn storm(&mut self, random: &mut Random) {
        let has_versions = random.below(2) == 0;
        let mut options = vec!["--share", "1"];
        if has_versions {
            let versions = if self.python.is_some() { ["--interval", "5it"] } else { ["--options", "interval=5it"] };
            options.extend(["--after", "0"].into_iter().chain(versions));
        }
        let output = loop {
            let (output, n_events) = self.run(Some(random), &options);
            if n_events > 0 {
                break output;
            }
            self.kills += 1;
        };
        assert!(output.status.success(), "{}: {output:?}", self.arguments);
        if has_versions {
            assert_near(&stdout(&output), &self.expected, RELATIVE);
        } else {
            assert_eq!(stdout(&output), self.expected, "{}: {output:?}", self.arguments);
        }
        let counts = Counts::of(&output);
        self.replayed += counts.replayed;
        self.resumed += counts.resumed;
    }
}

#[test]
#[ignore = "many minutes: part of make soak"]
fn petsc_and_scipy_programs_survive_five_hundred_kills() {
    let seed = 20_261_129;
    let complex = || Plain::of(HEAT, COMPLEX);
    let steps = "-ts_type beuler -ts_monitor -ksp_rtol 1e-10";
    let victims = [
        Victim::of(Plain::heat(), CG, 1),
        Victim::of(Plain::heat(), CG, 2),
        Victim::of(complex(), CG, 2),
        Victim::of(Plain::of("loop.F90", "PETSc"), "-ksp_rtol 1e-8", 1),
        Victim::of(Plain::script("/usr/bin/python3", "heat.py", "petsc4py.PETSc"), CG, 1),
        Victim::of(Plain::of("steps.c", "PETSc"), steps, 1),
        Victim::scipy(),
    ];
    let mut victims: Vec<Victim> = victims.into_iter().flatten().collect();
    let Some(first) = victims.first() else { return };
    println!("{} programs, seed {seed}", victims.len());
    let killer = first.plain.log().with_file_name("kill.so");
    compiled("kill.c", "PETSc", &killer).unwrap();
    for victim in &mut victims {
        let own = victim.plain.log().with_file_name("kill.so");
        if own != killer {
            std::fs::copy(&killer, own).unwrap();
        }
        victim.n_events = victim.run(None, &["--share", "1"]).1;
    }
    let mut random = Random(seed);
    let mut kills = 0;
    while kills < KILLS {
        let index = random.below(victims.len());
        victims[index].storm(&mut random);
        kills = victims.iter().map(|victim| victim.kills).sum();
        println!("{kills} kills: {}", victims[index].arguments);
    }
    for victim in &victims {
        let Victim { kills, replayed, resumed, n_events, ranks, arguments, .. } = victim;
        println!(
            "{kills} kills, {replayed} answered, {resumed} resumed, {n_events} events: {ranks} ranks, {arguments}"
        );
        assert!(*kills > 0 && *replayed > 0, "the kills fall between solves as well");
    }
    assert!(victims.iter().any(|victim| victim.resumed > 0), "the kills fall inside solves");
}
