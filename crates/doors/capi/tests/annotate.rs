//! Annotated programs: killed by SIGKILL at random versions and started again, they print what the
//! plain program prints.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use recoup::memory::MemoryReader;
use recoup::model::Rng;
use recoup_annotate::annotate;

use crate::build::{compile, has, output, root, strict};

/// Compiles a source as it is, and annotated with small blocks. Returns both programs.
fn plain_and_annotated(source: &str, flags: &[&str], folder: &Path) -> [PathBuf; 2] {
    let with = |more: &[&str]| {
        let mut all = strict("-std=c99");
        all.extend(flags.iter().chain(more).map(|flag| (*flag).to_owned()));
        all
    };
    let plain = folder.join("plain");
    std::fs::create_dir(&plain).unwrap();
    let plain = compile("cc", source, &with(&["-Wno-unknown-pragmas"]), &plain);
    let text = annotate(&root().join(source), &[], &|_| Ok(())).unwrap();
    let options = "interval=1it\"";
    assert!(text.contains(options), "{source} opens its memory with other options");
    let text = text.replace(options, "interval=1it block=512 medium=file\"");
    let annotated = folder.join("annotated.c");
    std::fs::write(&annotated, text).unwrap();
    [plain, compile("cc", annotated.to_str().unwrap(), &with(&[]), folder)]
}

/// Kills a program once the file has a version of this step. Returns whether it was killed.
fn kill_at(child: &mut Child, file: &Path, step: u64) -> bool {
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return false;
        }
        let newest = MemoryReader::open(file).and_then(|reader| reader.newest()).ok().flatten();
        if newest.is_some_and(|view| view.version().step >= step) {
            child.kill().unwrap();
            return !child.wait().unwrap().success();
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Runs a program with kills until one run reaches its end, and compares what it prints with the
/// plain program.
fn survives_kills(source: &str, file: &str, arguments: &[&str], steps: u64) {
    let seed = 31;
    println!("{source}, seed {seed}");
    let mut rng = Rng::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let [plain, annotated] = plain_and_annotated(source, &[], folder.path());
    let words: Vec<&str> = [plain.to_str().unwrap()].iter().chain(arguments).copied().collect();
    let expected = output(&words);
    let file = folder.path().join(file);
    let mut reached = 0;
    let mut kills = 0;
    for _ in 0..6 {
        reached = (reached + 1 + rng.next_u64() % (steps / 6)).min(steps - 1);
        let mut run = Command::new(&annotated);
        let mut child = run.args(arguments).current_dir(folder.path()).stdout(Stdio::null()).spawn().unwrap();
        kills += u32::from(kill_at(&mut child, &file, reached));
    }
    assert!(kills >= 5, "{kills} kills before the end");
    let last = Command::new(&annotated).args(arguments).current_dir(folder.path()).output().unwrap();
    assert!(last.status.success(), "{}", String::from_utf8_lossy(&last.stderr));
    assert_eq!(String::from_utf8(last.stdout).unwrap(), expected, "{source}");
}

#[test]
fn annotated_lu_factors_the_same_bits_after_kills() {
    survives_kills("examples/embed/lu.c", "lu.memory", &["200"], 199);
}

#[test]
fn annotated_pagerank_has_the_same_bits_after_kills() {
    survives_kills("examples/embed/pagerank.c", "pagerank.memory", &["2000"], 150);
}

#[test]
fn annotated_writes_of_every_kind_have_the_same_bits_after_kills() {
    survives_kills("crates/memory/annotate/tests/sources/writes.c", "writes.memory", &["150"], 150);
}

#[test]
fn sanitizers_and_valgrind_find_nothing_in_annotated_programs() {
    let folder = tempfile::tempdir().unwrap();
    let source = "crates/memory/annotate/tests/sources/writes.c";
    let sanitized = folder.path().join("sanitized");
    std::fs::create_dir(&sanitized).unwrap();
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let run = |program: &Path, before: &[&str]| {
        let words: Vec<&str> = before.iter().copied().chain([program.to_str().unwrap(), "30"]).collect();
        let output = Command::new(words[0]).args(&words[1..]).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::remove_file(folder.path().join("writes.memory")).unwrap();
        output.stdout
    };
    let [plain, annotated] = plain_and_annotated(source, &flags, &sanitized);
    let expected = output(&[plain.to_str().unwrap(), "30"]);
    assert_eq!(run(&annotated, &[]), expected.as_bytes());
    if has("valgrind") {
        let [_, annotated] = plain_and_annotated(source, &[], folder.path());
        assert_eq!(run(&annotated, &["valgrind", "-q", "--error-exitcode=9"]), expected.as_bytes());
    }
}
