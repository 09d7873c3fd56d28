//! The documents run: every command block of README, docs and help, as it is printed, in order, in
//! one folder.
//!
//! Rules. A block is fenced as `sh`; of a help text, the lines below `Example` that begin with a
//! command of [`RUN`] and those that continue from them. `/tmp/` and `/usr/local/` mean places in
//! the folder, which has links to the repository's `tests` and `crates`. What builds or installs
//! ([`SKIPPED`]) is left out, and so is what this machine has no program for. `--with-ft` needs
//! an Open MPI that survives lost ranks, whose `mpirun` says nothing by its exit code then: an
//! error the program prints counts. Lines that ask for a CUDA device get the double of one. Any
//! other first word is an error: a new kind of line needs a rule here.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fmt::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use recoup_testkit::mpirun;

/// First words of lines that run.
const RUN: [&str; 6] = ["recoup", "mpirun", "h5dump", "python3", "export", "newest="];
/// First words of lines that build or install.
const SKIPPED: [&str; 8] =
    ["make", "cargo", "scripts/with-env.sh", "scripts/bootstrap.sh", "pip", "mpicc", "cc", "ctest"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// The documents people read, with commands or without.
fn documents() -> Vec<PathBuf> {
    let mut found = vec!["README.md", "BENCHMARKS.md", "CONTRIBUTING.md", "crates/doors/python/README.md"]
        .into_iter()
        .map(|name| root().join(name))
        .collect::<Vec<_>>();
    let of_docs =
        ["gpu-snapshot", "hipc22", "nv-checkpoint", "paper", "science", "start"].map(|folder| format!("docs/{folder}"));
    for folder in
        of_docs.iter().map(String::as_str).chain(["docs", "crates/doors/capi/docs", "crates/doors/veloc/docs"])
    {
        let files = std::fs::read_dir(root().join(folder)).unwrap().flatten().map(|entry| entry.path());
        found.extend(files.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    found
}

/// The commands of the blocks fenced as `sh`, lines that continue joined to those they belong to.
/// Whole scripts, fenced as `bash`, have tests of their own.
fn commands(markdown: &str) -> Vec<String> {
    let mut is_inside = false;
    let mut lines = Vec::new();
    for line in markdown.lines() {
        match line.strip_prefix("```") {
            Some(language) => is_inside = !is_inside && language == "sh",
            None if is_inside => lines.push(line),
            None => {}
        }
    }
    joined(&lines)
}

/// The commands below `Example` in a help text.
fn examples(help: &str) -> Vec<String> {
    let below = help.lines().skip_while(|line| !line.contains("Example"));
    let mut lines: Vec<&str> = Vec::new();
    for line in below.map(str::trim) {
        let goes_on = lines.last().is_some_and(|last| last.ends_with('\\'));
        let has_word = line.split(' ').next().is_some_and(|word| RUN.contains(&word));
        if goes_on || has_word {
            lines.push(line);
        }
    }
    joined(&lines)
}

fn joined(lines: &[&str]) -> Vec<String> {
    let text = lines.join("\n").replace("\\\n", " ");
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// Whether a line is to run in this build, on this machine.
fn runs(line: &str, place: &Path) -> bool {
    let first = line.split([' ', '\t']).next().unwrap();
    let first = if first.starts_with("newest=") { "newest=" } else { first };
    if SKIPPED.contains(&first) {
        return false;
    }
    assert!(
        RUN.contains(&first),
        "{line}\nno rule says what becomes of {first}: see crates/doors/cli/tests/documents.rs"
    );
    let is_here = match first {
        _ if asks_for_a_device(line) && !cfg!(feature = "cuda") => false,
        "mpirun" if line.contains("--with-ft") => mpirun::surviving().is_some(),
        "mpirun" => mpirun::is_there(),
        "h5dump" => has("h5dump --version", place),
        "python3" => has("python3 -c 'import numpy, h5py'", place),
        _ => true,
    };
    if !is_here {
        eprintln!("SKIPPED: {line}");
    }
    is_here
}

fn has(command: &str, place: &Path) -> bool {
    let mut shell = shell(command, place);
    shell.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

/// A shell in the folder, with the program, the plugin and what MPI needs to run there.
fn shell(script: &str, place: &Path) -> Command {
    let mut shell = Command::new("bash");
    let path = std::env::var("PATH").unwrap_or_default();
    shell.args(["-e", "-c", script]).current_dir(place).stdin(Stdio::null());
    shell.env("PATH", format!("{}:{path}", place.join("bin").display())).env("COLUMNS", "80");
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
        shell.env(name, "1").env(format!("{name}_CONFIRM"), "1");
    }
    shell
}

/// What stands for `mpirun`: more ranks than cores, a limit of time, and the MPI that survives lost
/// ranks where that is asked for.
fn start_jobs() -> String {
    let surviving = mpirun::surviving().unwrap_or_default();
    let folder = surviving.display();
    format!(
        "#!/bin/bash\n\
         others=$(PATH=${{PATH#*:}} command -v mpirun)\n\
         case \" $* \" in *\" --with-ft \"*) ;; *) exec timeout 100 \"$others\" --oversubscribe \"$@\" ;; esac\n\
         export LD_LIBRARY_PATH={folder}/lib OPAL_PREFIX={folder}\n\
         timeout 100 {folder}/bin/mpirun --oversubscribe --bind-to none \"$@\" 2> >(tee \"$0.said\" >&2)\n\
         [ $? != 124 ] && ! grep -q '^error: ' \"$0.said\"\n"
    )
}

/// An empty folder with all that the lines name.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for folder in ["tmp", "bin", "usr/local/lib/hdf5/plugin"] {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    symlink(env!("CARGO_BIN_EXE_recoup"), at("bin/recoup")).unwrap();
    std::fs::write(at("bin/mpirun"), start_jobs()).unwrap();
    std::fs::set_permissions(at("bin/mpirun"), std::fs::Permissions::from_mode(0o755)).unwrap();
    for folder in ["tests", "crates"] {
        symlink(root().join(folder), at(folder)).unwrap();
    }
    std::fs::create_dir(at("driver")).unwrap();
    symlink(recoup_cuda_double::Double::path(), at("driver/libcuda.so")).unwrap();
    // Built beside the program, as a dependency of these tests.
    let built = Path::new(env!("CARGO_BIN_EXE_recoup")).parent().unwrap().join("deps/librecoup_h5plugin.so");
    if built.exists() {
        symlink(built, at("usr/local/lib/hdf5/plugin/librecoup_h5plugin.so")).unwrap();
    }
    place
}

/// Whether a line asks for a CUDA device: it gets the double of one.
fn asks_for_a_device(line: &str) -> bool {
    line.contains(" --device") || line == "recoup device"
}

/// Runs what is to run, in one shell, and names the first line that fails.
fn run_all(name: &str, lines: &[String], place: &Path) {
    let mut script = String::new();
    for line in lines.iter().filter(|line| runs(line, place)) {
        let here = |folder: &str| format!("{}/{folder}/", place.display());
        let line = line.replace("/tmp/", &here("tmp")).replace("/usr/local/", &here("usr/local"));
        let line = if asks_for_a_device(&line) { format!("LD_LIBRARY_PATH={} {line}", here("driver")) } else { line };
        // The line itself comes last on stderr where it fails.
        writeln!(script, "line='{}'; {line}", line.replace('\'', "'\\''")).unwrap();
    }
    let trap = "trap 'code=$?; [ $code = 0 ] || echo \"ended with $code: $line\" >&2' EXIT";
    let output = shell(&format!("{trap}\n{script}"), place).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}\n{}\n{stderr}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn commands_in_the_documents_run_as_printed() {
    for document in documents() {
        let lines = commands(&std::fs::read_to_string(&document).unwrap());
        if !lines.is_empty() {
            run_all(&document.display().to_string(), &lines, place().path());
        }
    }
}

#[test]
fn examples_in_the_help_run_as_printed() {
    let place = place();
    for command in [
        "solve",
        "run",
        "compare",
        "inspect",
        "verify",
        "export",
        "prune",
        "device",
        "model interval",
        "model overhead",
        "model bound",
        "model stationary",
        "model levels",
        "model scale",
        "model decide",
        "model simulate",
        "tape bench",
    ] {
        let [lines, wide] = ["80", "100"].map(|columns| {
            let of =
                |depth| shell(&format!("COLUMNS={columns} recoup {command} {depth}"), place.path()).output().unwrap();
            let [long, short] = ["--help", "-h"].map(|depth| examples(&String::from_utf8(of(depth).stdout).unwrap()));
            let others = short.into_iter().filter(|line| !long.contains(line)).collect();
            [long.clone(), others].concat()
        });
        assert!(!lines.is_empty(), "{command}: no example found in its help");
        assert_eq!(lines, wide, "{command}: a line of its examples is longer than a terminal and is broken");
        run_all(command, &lines, place.path());
    }
}

/// The figures of the picture in an SVG: the overhead of each scheme on each problem, as median,
/// least and most, in the order in which they are drawn.
fn pictured(path: &Path) -> Vec<(String, [f64; 3])> {
    let svg = std::fs::read_to_string(path).unwrap();
    let (_, described) = svg.split_once("<desc>\n").unwrap();
    let mut problem = "";
    let mut found = Vec::new();
    for line in described.split_once("</desc>").unwrap().0.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            [name] => problem = name,
            [scheme, median, least, most] => {
                let numbers = [median, least, most].map(|number| number.parse().unwrap());
                found.push((format!("{problem} {scheme}"), numbers));
            }
            _ => panic!("{line}"),
        }
    }
    found
}

/// The README shows the picture next to the command that draws it. Its trials are in virtual time,
/// under seeds and declared rates: another machine may round differently, and no median leaves the
/// range of the trials.
#[test]
fn picture_of_the_readme_has_the_figures_that_its_command_draws() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains("(docs/overview.svg)") && readme.contains("make demo "), "{readme}");
    let report = tempfile::tempdir().unwrap();
    let mut demo = Command::new("sh");
    demo.arg(root().join("scripts/demo.sh")).env("RECOUP", env!("CARGO_BIN_EXE_recoup")).env("RTM", "true");
    let output = demo.env("REPORT", report.path()).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let [shown, drawn] = [root().join("docs/overview.svg"), report.path().join("overview.svg")].map(|at| pictured(&at));
    assert_eq!(shown.len(), 5 * 6, "{shown:?}");
    assert!(shown.chunks(6).all(|schemes| schemes.is_sorted_by(|a, b| a.1[0] <= b.1[0])), "{shown:?}");
    for (name, [median, least, most]) in &shown {
        let found = drawn.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("{name}: {drawn:?}")).1;
        assert!(least <= median && median <= most, "{name}");
        assert!((*least..=*most).contains(&found[0]), "{name}: {found:?} drawn, {median} ({least} to {most}) shown");
        assert!((found[1]..=found[2]).contains(median), "{name}: {found:?} drawn, {median} shown");
    }
}
