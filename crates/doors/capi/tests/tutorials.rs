//! The tutorials of docs/start for programs in C run as they are printed, with an installed prefix.

use std::path::Path;
use std::process::Command;

use crate::build::{has, library_folder, output, root};

/// The script of a page: its first block fenced as `bash`.
fn script(page: &str) -> String {
    let page = std::fs::read_to_string(root().join(page)).unwrap();
    let block = page.split("```bash\n").nth(1).and_then(|rest| rest.split_once("```"));
    block.expect("the page has a script").0.to_owned()
}

/// A home with recoup in `.local`, where the tutorials look for it, and the sources they compile.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let words =
        [format!("PREFIX={}", home.path().join(".local").display()), format!("BUILT={}", library_folder().display())];
    output(&["make", "-C", root().to_str().unwrap(), "install-library", &words[0], &words[1]]);
    std::os::unix::fs::symlink(root().join("examples"), home.path().join("examples")).unwrap();
    home
}

/// Runs a script in a home; what it printed.
fn run(script: &str, home: &Path) -> String {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "200", "bash", "-c", script]).current_dir(home).env("HOME", home);
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
        command.env(name, "1").env(format!("{name}_CONFIRM"), "1");
    }
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{script}\n{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    printed
}

/// The number behind each place of a word.
fn numbers(text: &str, word: &str) -> Vec<u64> {
    let behind = text.split(word).skip(1).filter_map(|rest| rest.trim_start().split([',', ' ', '\n']).next());
    behind.map(|number| number.parse().unwrap_or_else(|_| panic!("{number:?} behind {word:?}: {text}"))).collect()
}

#[test]
fn tutorial_for_a_solver_of_ones_own_runs_as_printed() {
    if !has("cc") || !has("pkg-config") || !has("make") {
        return;
    }
    let home = home();
    let printed = run(&script("docs/start/own-code.md"), home.path());
    // What the killed run has printed may be lost with it.
    let starts = numbers(&printed, "starts at");
    assert!(starts.first() == Some(&0) && starts.last() == Some(&30), "{printed}");
    let iterations = numbers(&printed, "iterations ");
    assert!(iterations.len() == 2 && iterations[0] == iterations[1], "{printed}");
}

/// A restart from `x` alone forgets the directions that CG has searched: the same kills take 106
/// iterations instead of 59.
#[test]
fn own_lossy_cg_keeps_its_iterations_through_thirteen_kills() {
    if !has("cc") || !has("pkg-config") || !has("make") {
        return;
    }
    let page = std::fs::read_to_string(root().join("docs/start/own-cg.md")).unwrap();
    let program = std::fs::read_to_string(root().join("examples/embed/cg.c")).unwrap();
    let lines =
        page.split("```c\n").nth(1).and_then(|block| block.split("```").next()).expect("the page has lines of C");
    lines.lines().for_each(|line| assert!(program.contains(line), "cg.c lacks: {line}"));
    let printed = run(&script("docs/start/own-cg.md"), home().path());
    assert_eq!(printed.matches("killed").count(), 13, "{printed}");
    let iterations = numbers(&printed, "iterations ");
    // What a version's error adds to the residual is at most a tenth of that at the end:
    // `continued_share`.
    assert!(iterations.len() == 2 && iterations[1] <= iterations[0] + 1, "{printed}");
}

/// Places of the Debian package are those of the sources here.
#[test]
fn program_of_the_page_on_apt_is_killed_and_resumes() {
    if !has("cc") || !has("pkg-config") || !has("make") {
        return;
    }
    let page = std::fs::read_to_string(root().join("docs/install/apt.md")).unwrap();
    let link = page.split_once("\n## Link a program\n").expect("the page links a program").1;
    let block = link.split("```").nth(1).and_then(|block| block.strip_prefix("sh\n")).expect("it has commands");
    let lines = block.lines().filter(|line| !line.starts_with("apt-get ")).collect::<Vec<_>>().join("\n");
    let home = home();
    let local = home.path().join(".local/lib");
    let paths = format!("export PKG_CONFIG_PATH={0}/pkgconfig LD_LIBRARY_PATH={0}\n", local.display());
    let printed = run(&(paths + &lines.replace("/usr/share/doc/recoup/examples/", "examples/embed/")), home.path());
    // Versions hold the iterations that the interval names, and the newest may not be there yet.
    let starts = numbers(&printed, "starts at");
    assert!(starts.last() == Some(&20), "{printed}");
    assert!(printed.contains("killed after 25 steps"), "{printed}");
}

#[test]
fn tutorial_for_petsc_runs_as_printed() {
    let knows_petsc = Command::new("pkg-config").args(["--exists", "PETSc"]).status().is_ok_and(|it| it.success());
    if !knows_petsc || !has("mpicc") || !has("mpirun") || !has("make") {
        eprintln!("SKIPPED: the tutorial needs PETSc, make and MPI");
        return;
    }
    let home = home();
    let printed = run(&script("docs/start/petsc.md"), home.path());
    assert_eq!(numbers(&printed, "from "), [0, 40], "{printed}");
    let iterations = numbers(&printed, "iterations ");
    // Iterations of the solve that come again after a restart are not counted twice. `recoup
    // inspect` expects at most 15.5 extra ones from this version. Whichever codec wins on this
    // machine, the scatter is large: 16^3 to 32^3, killed after 30 and 50, took 0 to 13 with QB, 0
    // to 10 with pco, 0 to 14 with pyramids.
    assert!(iterations.len() == 2 && iterations[1] <= iterations[0] + 15, "{printed}");
}

/// libveloc-client over the library that cargo has just built, in a home.
fn install_veloc(home: &Path) {
    let client = home.join("veloc-client");
    let script = root().join("scripts/veloc-client.sh");
    output(&[
        script.to_str().unwrap(),
        library_folder().join("librecoup_c.so").to_str().unwrap(),
        client.to_str().unwrap(),
    ]);
    let words = [format!("PREFIX={}", home.join(".local").display()), format!("VELOC={}", client.display())];
    output(&["make", "-C", root().to_str().unwrap(), "install-veloc", &words[0], &words[1]]);
}

/// Puts the program beside the library of a home, where cargo has built it.
fn install_program(home: &Path) -> bool {
    let program = library_folder().ancestors().map(|folder| folder.join("recoup")).find(|file| file.is_file());
    let Some(program) = program else { return false };
    std::os::unix::fs::symlink(program, home.join(".local/bin/recoup")).unwrap();
    true
}

#[test]
fn tutorial_for_veloc_runs_as_printed() {
    if !has("cc") || !has("make") {
        return;
    }
    let home = home();
    install_veloc(home.path());
    let page = std::fs::read_to_string(root().join("docs/start/veloc.md")).unwrap();
    let program = page.split("```c\n").nth(1).and_then(|rest| rest.split_once("```")).expect("the page has a program");
    std::fs::write(home.path().join("step.c"), program.0).unwrap();
    // Places of the page are in the home.
    let mut script = script("docs/start/veloc.md").replace("/tmp/", &format!("{}/", home.path().display()));
    if !install_program(home.path()) {
        eprintln!("SKIPPED: lines that call recoup, which `cargo build -p recoup-cli` makes");
        script = script
            .lines()
            .filter(|line| !line.starts_with("recoup "))
            .fold(String::new(), |all, line| all + line + "\n");
    }
    let printed = run(&script, home.path());
    assert_eq!(numbers(&printed, "from step "), [0, 5], "{printed}");
}
