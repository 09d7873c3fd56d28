//! The pages of docs/install end with a solve that is killed and resumed. `make packages` follows
//! whole pages in fresh roots; this runs the lines that need the program alone, once.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use recoup_testkit::folders::newest_version;

/// Pages whose solve is not one of the program, and the one that leads to the others.
const OTHERS: [&str; 2] = ["dealii.md", "README.md"];
/// What stands before the solve that is killed, and what stands behind it.
const KILL: &str = "timeout --signal=KILL 3 ";
const KILLED: &str = " || echo killed";

/// The pages of docs/install.
fn pages() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/install");
    let mut pages: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.retain(|page| !OTHERS.contains(&page.file_name().unwrap().to_str().unwrap()));
    pages.sort();
    pages
}

/// The lines of the first block below `Kill a solve` of a page, each command on one line, without
/// the name of a container.
fn lines(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let below = text.split_once("\n## Kill a solve, and resume it\n").unwrap_or_else(|| panic!("{}", page.display())).1;
    let block = below.split("```").nth(1).unwrap();
    let (_, block) = block.split_once('\n').unwrap();
    let block = block.replace("\\\n", " ").replace("apptainer run recoup.sif ", "recoup ");
    block.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// The program with the words of a line.
fn recoup(line: &str, folder: &Path) -> Command {
    let words = line.strip_prefix("recoup ").unwrap_or_else(|| panic!("a line without recoup: {line}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
    command.args(words.split(' ')).current_dir(folder).stdin(Stdio::null());
    command
}

/// Starts a solve, and kills it when it has versions. On a slow machine the 3 seconds of the page
/// could be over before that.
fn kill(line: &str, folder: &Path) {
    let mut child = recoup(line, folder).stderr(Stdio::null()).spawn().unwrap();
    while newest_version(&folder.join("versions/solve")).is_none() {
        assert!(child.try_wait().unwrap().is_none(), "it ended without a version: {line}");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "it ended before it was killed: {line}");
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn every_page_of_installing_has_the_same_solve_and_it_resumes() {
    let pages = pages();
    assert!(pages.len() >= 6, "{pages:?}");
    let longest = pages.iter().map(|page| lines(page)).max_by_key(Vec::len).unwrap();
    let (killed, others) = longest.split_first().unwrap();
    for page in &pages {
        let lines = lines(page);
        assert_eq!(lines[0], *killed, "{}", page.display());
        assert!(lines.iter().all(|line| longest.contains(line)), "{}: {lines:?}", page.display());
    }
    let solve = killed.strip_prefix(KILL).and_then(|line| line.strip_suffix(KILLED)).expect("the page kills a solve");
    assert!(others.iter().any(|line| line == solve), "no line is the killed one again: {longest:?}");

    let folder = tempfile::tempdir().unwrap();
    kill(solve, folder.path());
    for line in others {
        let output = recoup(line, folder.path()).output().unwrap();
        let said = text(&output);
        assert!(output.status.success(), "{line}\n{said}");
        if line == solve {
            assert!(said.contains("resuming from version") && said.contains("converged"), "{said}");
        }
    }
}
