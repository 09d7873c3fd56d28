//! What the program says when something is missing, wrong or surprising: every message names it,
//! and what to do.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{each_refused, recoup, refused};

const CG: &str = "--poisson3d 8 --method cg --rtol 1e-8 --threads 1";
const SAVE: &str = "--scheme traditional --interval 3it --sync --dir d";

/// Stdout and stderr of a command that ends with `code`.
fn told(arguments: &str, dir: &Path, code: i32) -> (String, String) {
    let output = recoup(arguments, dir);
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(output.status.code(), Some(code), "{arguments}\n{err}");
    (out, err)
}

#[test]
fn what_cannot_work_is_refused_by_name_before_anything_is_solved() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("afile"), "").unwrap();
    let decide = "model decide --mtti 3600 --t-iter 1 --iterations 100 --ckpt 10";
    let cases = [
        (format!("{decide} --bandwidth 5G"), "'--ckpt <DURATION>' cannot be used with '--bandwidth <SIZE>'"),
        ("prune d".to_owned(), "<--keep <K>|--max-bytes <SIZE>>"),
        ("solve --method cg".to_owned(), "<--poisson3d <N>|--matrix <FILE>>"),
        ("solve --poisson3d 4 --matrix a.mtx --method cg".to_owned(), "cannot be used with"),
        ("solve --poisson3d 4 --grid 4x4x4 --method cg".to_owned(), "cannot be used with"),
        ("solve --matrix a.mtx --grid 4x0 --method cg".to_owned(), "the fastest first, as in 40x30x20"),
        (format!("solve {CG} --max-iterations -3"), "'--max-iterations <K>': expected a whole number, 0 or more"),
        ("solve --poisson3d 4 --method cg --rtol -1".to_owned(), "'--rtol <E>': expected a finite number above 0"),
        ("model overhead --mtti -5 --ckpt 1".to_owned(), "'-5' for '--mtti <DURATION>': expected a duration above 0"),
        (format!("solve {CG} --json-file nodir/x"), "--json-file nodir/x: there is no directory nodir"),
        (format!("solve {CG} --json-file ."), "--json-file .: a file expected, a directory found"),
        (format!("compare {CG} --report afile"), "afile is no directory"),
        (format!("{decide} --report afile/below"), "afile is no directory"),
        (format!("run {CG} --scheme lossless --codec zfp --dir d"), "--scheme lossless takes raw, zstd"),
        (format!("run {CG} --scheme lossless --codec increment --dir d"), "chooses it: expected raw, zstd, pco, zfp"),
        (format!("run {CG} --scheme exact --codec qb --dir d"), "--scheme exact takes raw, zstd"),
        (format!("run {CG} {SAVE} --failures flip:3:zzz"), "cg has no variable zzz: it has x, p, rho, r"),
        (format!("compare {CG} --failures flip:3:zzz"), "cg has no variable zzz"),
        (format!("run {CG} {SAVE} --tiers memory,pfs --memory-dir nodir"), "nodir: there is no such directory"),
        ("inspect d --memory-dir nodir".to_owned(), "--memory-dir nodir: there is no such directory"),
        (format!("solve {CG} --omega foo"), "'foo' for '--omega <W>': expected a number"),
        (format!("run {CG} --dir d --interval -5it"), "expected auto, a duration above 0"),
        (format!("run {CG} --dir d --name a/b"), "'a/b' for '--name <NAME>': expected the name of one folder"),
        ("inspect d --name ..".to_owned(), "expected the name of one folder"),
        (format!("solve {CG} --solution b.txt"), "--solution b.txt: expected FILE.npy, FILE.mtx or FILE.h5"),
        (format!("run {CG} --dir x,interval=10it"), ": a directory alone expected, interval=10it found"),
        (
            format!("run {CG} --dir d --time-limit 1h --stop-before 2h"),
            "--stop-before 2 h 00 min leaves no time of --time-limit 1 h 00 min",
        ),
    ];
    for (command, words) in cases {
        let err = refused(&command, dir.path(), 2);
        assert!(err.contains(words), "{command}\n{err}");
        assert!(!err.contains("solving"), "{command}\n{err}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "something was written");
}

#[test]
fn codec_for_bounds_leaves_the_exact_schemes_of_a_comparison_to_zstd() {
    let dir = tempfile::tempdir().unwrap();
    let schemes = "--schemes lossless,lossy --interval 3it --failures at:7";
    told(&format!("compare {CG} --codec zfp {schemes}"), dir.path(), 0);
}

/// A file that cannot be written once the solve is done, as on a full disk, took the results with
/// it.
#[test]
fn results_are_printed_before_a_file_is_written() {
    if !Path::new("/dev/full").exists() {
        eprintln!("SKIPPED: there is no /dev/full");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (out, err) = told(&format!("solve {CG} --json --json-file /dev/full"), dir.path(), 1);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["converged"], true);
    assert!(err.contains("--json-file: /dev/full: no space left"), "{err}");
}

#[test]
fn files_are_read_from_line_1_and_rows_are_counted_from_1() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("empty.mtx", "");
    write("other.mtx", "A\x1b[31mELF\x07 x\n");
    write("zero.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 4.0\n1 2 1.0\n2 1 1.0\n");
    for (file, method, words) in [
        ("none.mtx", "cg", "error: --matrix none.mtx: No such file"),
        ("empty.mtx", "cg", "--matrix empty.mtx, line 1: header"),
        ("other.mtx", "cg", r"A\u{1b}[31mELF\u{7} x found"),
        ("zero.mtx", "cg --rhs none.npy", "error: --rhs none.npy: No such file"),
        ("zero.mtx", "cg --rhs none.mtx", "error: --rhs none.mtx: No such file"),
        ("zero.mtx", "jacobi", "row 2 has 0"),
        ("zero.mtx", "gauss-seidel", "row 2 has 0"),
        ("zero.mtx", "gmres --pc ssor", "row 2 has 0"),
    ] {
        let err = refused(&format!("solve --matrix {file} --method {method}"), dir.path(), 1);
        assert!(err.contains(words) && !err.contains("line 0"), "{file} {method}\n{err}");
    }
}

#[test]
fn failures_that_never_came_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (_, err) = told(&format!("run {CG} {SAVE} --failures at:5,100000"), dir.path(), 0);
    assert!(err.contains("no failure struck at iteration 100000: the solve ended at 1"), "{err}");
    let (_, err) = told(&format!("run {CG} {SAVE} --fresh --failures at:5"), dir.path(), 0);
    assert!(!err.contains("no failure struck"), "{err}");
    // A run that only found its solution said nothing.
    let (_, err) = told(&format!("run {CG} {SAVE} --failures at:100000"), dir.path(), 0);
    assert!(err.contains("no failure struck at iteration 100000: the solve ended at 1"), "{err}");
}

/// `--interval 5it` gave "0 saved" and no reason: GMRES converged within its first cycle.
#[test]
fn an_interval_within_a_cycle_says_why_nothing_was_saved() {
    let dir = tempfile::tempdir().unwrap();
    let gmres = "run --poisson3d 8 --method gmres --rtol 1e-6 --dir d --interval 5it";
    let (out, err) = told(gmres, dir.path(), 0);
    assert!(out.contains("versions  0 saved"), "{out}");
    let expected = "no version was saved every 5 iterations: gmres is saved at the end of a cycle of --restart 30";
    assert!(err.contains(expected) && err.contains("--scheme exact saves after any"), "{err}");
    told("report d --to page", dir.path(), 0);
    assert!(std::fs::read_to_string(dir.path().join("page/index.html")).unwrap().contains("One version took"));
    for more in ["--scheme exact", "--restart 4", "--scheme none"] {
        let (_, err) = told(&format!("{gmres} --fresh {more}"), dir.path(), 0);
        assert!(!err.contains("no version was saved"), "{more}: {err}");
    }
}

#[test]
fn a_run_without_a_status_says_where_to_look() {
    let dir = tempfile::tempdir().unwrap();
    told(&format!("run {CG} {SAVE}"), dir.path(), 0);
    std::fs::remove_file(dir.path().join("d/solve/status.json")).unwrap();
    let err = refused("watch d", dir.path(), 1);
    assert!(err.contains("which only the program `recoup run` writes: `recoup status d` shows its newest"), "{err}");
    let (out, _) = told("status d", dir.path(), 0);
    assert!(out.contains("its program writes no status, as only `recoup run` does"), "{out}");
}

#[test]
fn a_run_says_which_version_it_goes_on_from_and_why_not_from_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    told(&format!("run {CG} {SAVE} --no-save-last --max-iterations 10"), dir.path(), 3);
    let newest = dir.path().join("d/solve/v000000000009/rank-000000.h5");
    let mut bytes = std::fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes.truncate(middle);
    std::fs::write(&newest, bytes).unwrap();
    let (_, err) = told(&format!("run {CG} {SAVE}"), dir.path(), 0);
    assert!(err.contains("version 9 is passed over for version 6: "), "{err}");
    assert_eq!(err.matches("resuming from version 6 in d (--fresh starts from the beginning)").count(), 1, "{err}");
}

#[test]
fn iterate_of_another_methods_version_is_taken_and_both_methods_are_named() {
    let dir = tempfile::tempdir().unwrap();
    told(&format!("run {CG} {SAVE} --no-save-last --max-iterations 10"), dir.path(), 3);
    let other = CG.replace("cg", "bicgstab");
    let (out, err) = told(&format!("run {other} {SAVE} --json"), dir.path(), 0);
    assert!(err.contains("version 9 was saved by cg: bicgstab starts from its iterate alone"), "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&report["resumed_from"], &report["converged"]), (&Value::from(9), &Value::from(true)));
}

#[test]
fn another_problems_versions_are_told_apart_by_size_and_name_first() {
    let dir = tempfile::tempdir().unwrap();
    told(&format!("run {CG} {SAVE} --no-save-last --max-iterations 10"), dir.path(), 3);
    let err = refused(&format!("run {} {SAVE}", CG.replace("poisson3d 8", "poisson3d 9")), dir.path(), 1);
    // Seven entries in each of n^3 rows, but for those that would lie outside of the six faces.
    let sizes = "512 unknowns and 3200 nonzeros there, 729 unknowns and 4617 nonzeros here";
    assert!(err.contains(&format!("of run solve belongs to another problem: another size, {sizes}")), "{err}");
    assert!(!err.contains("hash"), "{err}");
    let err = refused(&format!("run {CG} --rhs-kind random {SAVE}"), dir.path(), 1);
    assert!(err.contains("another problem of the same size (512 unknowns and 3200 nonzeros): another right-hand side"));
}

/// A limit on file sizes stands for a full disk: every version fails in the same way. The signal of
/// the limit ended the program, and so did a small stack.
#[test]
fn failed_versions_are_a_row_and_their_reason_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let solve = CG.replace("poisson3d 8", "poisson3d 16");
    let command =
        format!("ulimit -f 64; ulimit -s 256; exec {} run {solve} {SAVE} --details", env!("CARGO_BIN_EXE_recoup"));
    let output = Command::new("bash").args(["-c", &command]).current_dir(dir.path()).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    let failed =
        out.lines().find(|line| line.starts_with("failed checkpoints")).unwrap_or_else(|| panic!("{out}{err}"));
    assert!(failed.split_whitespace().last().unwrap().parse::<u32>().unwrap() > 1, "{out}");
    assert_eq!(out.lines().filter(|line| line.starts_with("not saved: 3, 6, ")).count(), 1, "{out}");
    assert_eq!((out.matches("not saved").count(), err.matches("does not count").count()), (1, 1), "{out}{err}");
    let brief =
        Command::new("bash").args(["-c", &command.replace("--details", "--fresh")]).current_dir(dir.path()).output();
    let brief = String::from_utf8(brief.unwrap().stdout).unwrap();
    assert!(brief.contains(" failed\n") && brief.contains("note      not saved: 3, 6, "), "{brief}");
}

#[test]
fn machines_without_progress_are_named_by_every_question() {
    let dir = tempfile::tempdir().unwrap();
    for question in [
        "interval --mtti 10 --ckpt 100",
        "overhead --mtti 10 --ckpt 100",
        "bound --mtti 10 --ckpt-traditional 100 --ckpt-lossy 50 --t-iter 1",
        "levels --mtti 10 --ckpt pfs:100 --trials 2",
        "decide --mtti 10 --t-iter 1 --iterations 100 --ckpt 100",
        "simulate --mtti 10 --t-iter 1 --iterations 100 --ckpt 100 --trials 2",
    ] {
        let (out, _) = told(&format!("model {question}"), dir.path(), 0);
        assert!(out.contains("next to no progress on this machine"), "{question}\n{out}");
    }
    // It began a recovery again without end.
    let (out, _) = told("memory advise --cost 100 --mtti 1 --trials 2", dir.path(), 0);
    assert!(out.contains("next to no progress on this machine"), "{out}");
    assert!(!told("model overhead --mtti 3600 --ckpt 100", dir.path(), 0).0.contains("no progress"));
}

/// A wrong option of `exec` was told once a call took ten seconds, and a directory that is not
/// there in the words of the system alone.
#[test]
fn wrong_options_and_places_are_told_at_once_with_the_expected_ones() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = "there is no directory none: expected the --dir of a run";
    told(&format!("run {CG} {SAVE}"), dir.path(), 0);
    let cases = [
        ("exec --dir d --options bogus=1 -- true", 2, "unknown key \"bogus\": expected one of dir, name"),
        ("exec --dir d --options scheme=best -- true", 2, "scheme=best: expected none, traditional"),
        ("exec --dir d --share -1 -- true", 2, "expected a number from 0 to 1"),
        ("status none", 1, nowhere),
        ("inspect none", 1, nowhere),
        ("report none", 1, nowhere),
        // Each said that no run has versions there.
        ("status d/solve", 4, "d/solve is the folder of run solve: expected "),
        ("report d/solve", 4, "/d, with --name solve"),
    ];
    each_refused("", &cases, dir.path());
}

#[test]
fn help_wraps_at_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let first = ["", "solve", "run", "compare", "inspect", "verify", "prune", "export"];
    for command in first.into_iter().chain(["device", "model", "model decide", "tape", "tape bench"]) {
        for help in ["-h", "--help"] {
            let (out, _) = told(&format!("{command} {help}"), dir.path(), 0);
            // clap does not break the line of usage.
            let lines = out.lines().filter(|line| !line.starts_with("Usage: "));
            let longest = lines.max_by_key(|line| line.chars().count()).unwrap();
            assert!(longest.chars().count() <= 80, "{command} {help}: {longest}");
        }
    }
}

#[test]
fn long_version_names_commit_target_features_and_codecs() {
    let dir = tempfile::tempdir().unwrap();
    let (long, _) = told("--version", dir.path(), 0);
    for key in ["commit: ", "target: ", "features: ", "codecs: raw, zstd, pco, zfp"] {
        assert!(long.lines().any(|line| line.starts_with(key)), "{long}");
    }
    assert_eq!(told("-V", dir.path(), 0).0.lines().count(), 1);
}

#[test]
fn listing_of_versions_fits_80_columns_with_3_digits() {
    let dir = tempfile::tempdir().unwrap();
    let lossy = "--scheme lossy --interval 3it --sync --dir d";
    told(&format!("run --poisson3d 16 --rhs-kind random --method cg --rtol 1e-8 {lossy}"), dir.path(), 0);
    let (out, _) = told("inspect d", dir.path(), 0);
    let longest = out.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(longest <= 80, "{longest} columns\n{out}");
    let bounds = out.split_whitespace().filter_map(|word| word.strip_prefix("absolute:"));
    let digits: Vec<usize> = bounds.map(|bound| bound.split('e').next().unwrap().len()).collect();
    assert!(!digits.is_empty() && digits.iter().all(|&digits| digits == "1.23".len()), "{out}");
}

/// A version was used, and the first guess given for the resume ignored without a word.
#[test]
fn a_resume_says_that_its_first_guess_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    told(&format!("solve {CG} --solution x.npy"), dir.path(), 0);
    told(&format!("run {CG} {SAVE} --max-iterations 10"), dir.path(), 3);
    let (_, err) = told(&format!("run {CG} {SAVE} --x0 x.npy"), dir.path(), 0);
    let line = "in d; --x0 is not used (--fresh starts from the beginning)";
    assert_eq!(
        err.lines().filter(|said| said.starts_with("resuming from version ") && said.ends_with(line)).count(),
        1
    );
}

/// Whatever was printed for people ended a resume with a panic, code 101, before its first
/// iteration.
#[test]
fn a_run_does_not_need_its_stderr_and_says_when_its_result_is_lost() {
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let closed = || std::io::pipe().unwrap().1;
    let command = |arguments: &str, dir: &Path, stdout: Stdio, stderr: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
        command.args(arguments.split_whitespace()).current_dir(dir).env("RECOUP_LOG", "debug").stdin(Stdio::null());
        command.stdout(stdout).stderr(stderr).status().unwrap().code()
    };
    for stderr in [&|| full().into(), &|| closed().into()] as [&dyn Fn() -> Stdio; 2] {
        let dir = tempfile::tempdir().unwrap();
        told(&format!("run {CG} {SAVE} --max-iterations 10"), dir.path(), 3);
        assert_eq!(command(&format!("run {CG} {SAVE}"), dir.path(), Stdio::null(), stderr()), Some(0));
        assert_eq!(command(&format!("run {CG} {SAVE} --x0 none.npy"), dir.path(), Stdio::null(), stderr()), Some(2));
        assert_eq!(command(&format!("run {CG} {SAVE} --fresh"), dir.path(), full().into(), stderr()), Some(1));
        told("verify d", dir.path(), 0);
    }
}

/// A program of the library leaves a roll call, and no status.
#[test]
fn ranks_of_a_program_that_wait_for_others_are_shown_without_a_status() {
    let dir = tempfile::tempdir().unwrap();
    told(&format!("run {CG} {SAVE}"), dir.path(), 0);
    let run = dir.path().join("d/solve");
    std::fs::remove_file(run.join("status.json")).unwrap();
    std::fs::create_dir(run.join("roll-call")).unwrap();
    std::fs::write(run.join("roll-call/n1"), "4 ranks\n0 here\n1 here\n0 waits\n1 waits\n").unwrap();
    std::fs::write(run.join("roll-call/n2"), "2 here\n3 here\n").unwrap();
    let (out, _) = told("status d", dir.path(), 0);
    assert!(out.contains("its ranks wait for ranks 2, 3 on n2; said "), "{out}");
    let (out, _) = told("status d --json", dir.path(), 0);
    assert!(out.contains("\"missing_ranks\":[2,3]") && out.contains("\"missing_said_seconds\":"), "{out}");
    told(&format!("run {CG} {SAVE} --fresh"), dir.path(), 0);
    let (out, _) = told("status d", dir.path(), 0);
    assert!(!out.contains("its ranks wait"), "{out}");
}

/// A pipe of that name held up whoever opened it, and a run ignored SIGTERM meanwhile.
#[test]
fn pipes_in_a_runs_directory_are_refused_or_passed_over_at_once() {
    use rustix::fs::{CWD, FileType, mknodat};
    let dir = tempfile::tempdir().unwrap();
    told(&format!("run {CG} {SAVE}"), dir.path(), 0);
    let replace = |name: &str| {
        let path = dir.path().join("d/solve").join(name);
        std::fs::remove_file(&path).ok();
        mknodat(CWD, &path, FileType::Fifo, 0o600.into(), 0).unwrap();
    };
    replace("status.json");
    let (out, _) = told("status d", dir.path(), 0);
    assert!(out.contains("unknown"), "{out}");
    replace("status.json.new");
    replace("history.log");
    told(&format!("run {CG} {SAVE}"), dir.path(), 0);
    replace("lock");
    let err = refused(&format!("run {CG} {SAVE}"), dir.path(), 1);
    assert!(err.contains("open d/solve/lock: a file expected"), "{err}");
}

/// The program aborted when there was no memory for A.
#[test]
fn a_grid_without_memory_for_it_is_refused_with_both_sizes() {
    let dir = tempfile::tempdir().unwrap();
    for (operator, needed) in [("csr", "167.64 GiB"), ("stencil", "29.80 GiB")] {
        let program = env!("CARGO_BIN_EXE_recoup");
        let command =
            format!("ulimit -v 8000000; exec {program} solve --poisson3d 1000 --method cg --operator {operator}");
        let output = Command::new("bash").args(["-c", &command]).current_dir(dir.path()).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{err}");
        let words =
            format!("--poisson3d 1000: A of 1000000000 rows and the vectors of a solve need {needed} of memory, ");
        assert!(err.contains(&words) && err.contains(" are available"), "{err}");
    }
}

/// `--theta 0.1 --scheme traditional` ran without a word, and who asked for it believed it held.
#[test]
fn options_that_do_nothing_are_said_with_what_they_need() {
    let dir = tempfile::tempdir().unwrap();
    let solve = "--poisson3d 6 --method cg";
    for (command, option, need) in [
        (format!("solve {solve} --restart 9"), "--restart", ": it needs --method cg-restarted, gmres and"),
        (format!("solve {solve} --omega 1.2"), "--omega", ": it needs --method jacobi, sor and ssor, or --pc"),
        (format!("run {solve} --scheme none --interval 5it"), "--interval", ": it needs another --scheme"),
        (format!("run {solve} --scheme lossless --dir a --theta 1"), "--theta", ": it needs --scheme lossy"),
        (format!("run {solve} --tiers memory --pfs-every 3"), "--pfs-every", ": it needs --tiers memory,pfs"),
        (format!("run {solve} --dir b --seed 4 --failures at:3"), "--seed", ": it needs failures at random"),
        (format!("run {solve} --dir c --async --scheme none"), "--async", ""),
        ("completions bash --json".to_owned(), "--json", ": this command has no report"),
        (format!("compare {solve} --schemes none,traditional --failures at:3 --codec qb"), "--codec", ""),
    ] {
        let (_, err) = told(&command, dir.path(), 0);
        let expected = format!("{option} does nothing here{need}");
        assert_eq!(err.lines().filter(|line| line.starts_with(&expected)).count(), 1, "{command}: {err}");
    }
    let used = "run --poisson3d 6 --method gmres --restart 9 --scheme lossy --theta 1 --keep 3 --interval 5it --dir d";
    let (_, err) = told(used, dir.path(), 0);
    assert!(!err.contains("does nothing"), "{err}");
}

/// A badly scaled matrix reached the limit in its first iteration, and nothing said what to change.
#[test]
fn a_solve_that_diverged_names_the_option_of_its_limit() {
    let dir = tempfile::tempdir().unwrap();
    let matrix = "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1\n1 2 1e9\n2 2 1\n";
    std::fs::write(dir.path().join("a.mtx"), matrix).unwrap();
    let (out, _) = told("solve --matrix a.mtx --method jacobi", dir.path(), 3);
    assert!(out.replace('\n', " ").contains("; --dtol inf takes the limit away"), "{out}");
}

/// The command it named exported from a directory of another name: `my versions` had no quotes.
#[test]
fn commands_in_hints_can_be_pasted() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_recoup"));
    run.arg("run").args(CG.split_whitespace());
    let output = run.args(["--dir", "my versions"]).current_dir(dir.path()).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    let command = err.lines().find_map(|line| line.split_once(" is the solution: recoup ")).unwrap().1;
    let program = env!("CARGO_BIN_EXE_recoup");
    let pasted = Command::new("sh").args(["-c", &format!("{program} {command}")]).current_dir(dir.path()).output();
    let pasted = pasted.unwrap();
    assert!(pasted.status.success(), "{command}: {}", String::from_utf8_lossy(&pasted.stderr));
    assert!(dir.path().join("x.npy").is_file());
}
