//! Sources that are annotated, and sources that are refused with their lines.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use recoup_annotate::AnnotateError;

/// Annotates, where the words of the memory are none's concern.
fn annotate(source: &Path, flags: &[String]) -> Result<String, AnnotateError> {
    recoup_annotate::annotate(source, flags, &|_| Ok(()))
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sources")
}

/// The text of a small program is as it was looked at, byte for byte.
#[test]
fn emitted_text_is_the_frozen_one() {
    let emitted = annotate(&sources().join("writes.c"), &[]).unwrap();
    let frozen = std::fs::read_to_string(sources().join("writes.annotated.c")).unwrap();
    let named = |text: &str| text.lines().filter(|line| !line.starts_with("#line")).collect::<Vec<_>>().join("\n");
    assert_eq!(named(&emitted), named(&frozen));
}

/// A program whose loop has these statements, on lines 20 and below.
fn with_loop(statements: &str) -> String {
    format!(
        "#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define PUT(i) a[i] = 0
extern double outside(double *values);
static double total, *kept;
static double sum_of(const double *x, int n) {{ double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }}
static void add(double x) {{ total += x; }}
static void keep(double *x) {{ kept = x; }}
static void clear(double *x) {{ double *y = x; *y = 0; }}
static void move(double *x, double *y) {{ x = y; x[0] = 1; }}
static int depth(int n) {{ return n > 0 ? depth(n - 1) : 0; }}
int main(void) {{
int n = 100, count = 0; double *a = malloc(800), *b = malloc(800), *alias = a; double (*f)(double) = 0; (void)f;
#pragma recoup memory(\"file=f\")
#pragma recoup versioned(a, n)
#pragma recoup loop(k)
for (int k = 0; k < n; k++) {{
double own = 0, list[3] = {{0}}; static int runs; (void)runs; (void)own; (void)list;
{statements}
}}
(void)alias; (void)b; (void)count; return (int)(sum_of(a, n) + total + *kept) + depth(1); }}
"
    )
}

/// Returns what is wrong with a source, by line.
fn refused(source: &str) -> Vec<(usize, String)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("source.c");
    std::fs::write(&file, source).unwrap();
    match annotate(&file, &[]) {
        Err(AnnotateError::Refused { refusals, .. }) => {
            refusals.into_iter().map(|refusal| (refusal.line, refusal.what)).collect()
        }
        Ok(text) => panic!("not refused: {text}"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn writes_that_cannot_be_announced_are_refused_with_their_line() {
    for (statements, what) in [
        ("count++;", "count is written in the loop, and is neither versioned nor its own"),
        ("runs = k;", "runs is written in the loop"),
        ("total = 1;", "total is written in the loop"),
        ("b[k] = 1;", "a write through b, which may point to a versioned array"),
        ("alias[k] = 1;", "a write through alias"),
        ("double *row = a + k; row[0] = 1;", "a write through row"),
        ("*(double *)(void *)a = 1;", "a write to a place that cannot be seen"),
        ("a = b;", "a gets other memory while it is versioned"),
        ("free(a);", "a gets other memory while it is versioned"),
        ("a[count++] = 1;", "the place that is written is found by a write or a call"),
        ("PUT(k);", "a is written by a macro"),
        ("outside(a);", "outside is called, and is not known"),
        ("a[k] = rand();", "rand is called, and is not known"),
        ("a[k] = f(1);", "a pointer names the function that is called"),
        ("add(1);", "add is called, and writes total in line 8"),
        ("keep(a);", "keep is called, and writes kept in line 9"),
        ("clear(a);", "clear is called, and writes through y in line 10"),
        ("own = depth(3);", "depth calls itself"),
        ("memcpy(b, a, 8);", "a write through b"),
        ("move(b, a);", "move is called, and gives a parameter another address in line 11"),
        ("double **p = &a; (void)p;", "a gets other memory while it is versioned"),
        ("__atomic_store_n(&count, 1, __ATOMIC_SEQ_CST);", "an atomic access, which cannot be followed"),
        ("goto end; end:;", "a jump, which cannot be followed"),
        ("__asm__ volatile(\"\");", "assembly, which cannot be followed"),
        ("\n#pragma omp parallel for\nfor (int i = 0; i < n; i++) a[i] = 1;", "a pragma of another tool"),
    ] {
        let found = refused(&with_loop(statements));
        let line = if statements.contains("omp") { 21 } else { 20 };
        assert!(found.iter().any(|(at, text)| *at == line && text.contains(what)), "{statements}: {found:?}");
    }
    let all = refused(&with_loop("count++;\nb[k] = 1;"));
    assert_eq!(all.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [20, 21]);
}

#[test]
fn writes_of_an_iteration_and_calls_that_only_read_are_not_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("source.c");
    let statements = "own += sum_of(a, n); list[1] = sum_of(list, 3); memset(list, 0, sizeof list); printf(\"%d\", n);";
    std::fs::write(&file, with_loop(statements)).unwrap();
    let text = annotate(&file, &[]).unwrap();
    assert!(text.contains(statements), "{text}");
    // A function that the program vouches for.
    let source = with_loop("own = outside(a);").replace("loop(k)", "loop(k) calls(outside)");
    std::fs::write(&file, source).unwrap();
    annotate(&file, &[]).unwrap();
}

#[test]
fn directives_that_fit_nothing_are_refused_with_their_line() {
    let good = with_loop("a[k] = 1;");
    for (from, to, line, what) in [
        ("loop(k)", "loop(j)", 17, "does not begin by giving the variable of loop(name) its first value"),
        ("#pragma recoup loop(k)", "", 1, "#pragma recoup loop(name) is missing"),
        ("loop(k)", "loop(k)\ncount = 0;", 17, "loop(name) stands before a for statement"),
        ("loop(k)", "loop(k)\n#pragma recoup loop(k)", 18, "a second loop"),
        ("#pragma recoup memory(\"file=f\")", "", 1, "memory(\"options\") is missing"),
        ("loop(k)", "memory(\"file=g\")", 17, "a second memory"),
        ("versioned(a, n)", "versioned(a)", 16, "a needs its number of values"),
        ("versioned(a, n)", "versioned(n, 1)", 16, "n has its number in its type"),
        ("versioned(a, n)", "versioned(f, 1)", 16, "values of type double (*)(double) have no versions"),
        ("versioned(a, n)", "versioned(kept, n)", 16, "kept is a pointer of the file"),
        ("versioned(a, n)", "versioned(z, n)", 16, "z is no variable of main or of the file"),
        ("versioned(a, n)", "versioned(a, n)\n#pragma recoup versioned(a, n)", 17, "a is versioned already"),
        ("#pragma recoup versioned(a, n)", "", 17, "memory and at least one versioned stand before loop"),
        ("a[k] = 1;", "\n#pragma recoup versioned(b, n)\n", 21, "directives stand in main, in none of its blocks"),
        ("static double total", "#pragma recoup versioned(total)\nstatic double total", 6, "directives stand in main"),
        ("versioned(a, n)", "save(a)", 16, "expected memory"),
    ] {
        let found = refused(&good.replacen(from, to, 1));
        assert!(found.iter().any(|(at, text)| *at == line && text.contains(what)), "{to}: {found:?}");
    }
    let found = refused(&with_loop("a[(int)k] = 1;").replacen("int k = 0", "double k = 0", 1));
    assert_eq!(found, [(17, "k is no integer of 8, 32 or 64 bits".to_owned())]);
}

#[test]
fn words_of_the_memory_are_refused_with_the_line_of_their_directive() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("source.c");
    std::fs::write(&file, with_loop("a[k] = 1;")).unwrap();
    let refuse = |words: &str| Err(format!("{words} is refused"));
    let error = recoup_annotate::annotate(&file, &[], &refuse).unwrap_err().to_string();
    assert!(error.ends_with("source.c:15: memory: file=f is refused"), "{error}");
}

#[test]
fn errors_name_the_file_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("source.c");
    let message = || annotate(&file, &[]).unwrap_err().to_string();
    assert!(message().contains("source.c: No such file"), "{}", message());
    assert!(annotate(folder.path(), &[]).unwrap_err().to_string().contains("a file expected"));
    std::fs::write(&file, "int main(void) { return x; }\n").unwrap();
    assert!(message().contains("clang refuses") && message().contains("source.c:1:25: error"), "{}", message());
    std::fs::write(&file, with_loop("count++;")).unwrap();
    assert!(message().contains("source.c:20: count is written"), "{}", message());
    // Flags are those of the compilation.
    std::fs::write(&file, with_loop("a[k] = VALUE;")).unwrap();
    assert!(annotate(&file, &["-DVALUE=3".to_owned()]).is_ok() && message().contains("VALUE"));
}

/// The text was waited for without an end.
#[test]
fn a_pipe_is_no_source() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("source.c");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Whoever reads the pipe gets a text, and another error: nothing here waits.
    let written = pipe.clone();
    std::thread::spawn(move || std::fs::write(written, "#pragma recoup nothing\n"));
    let error = annotate(&pipe, &[]).unwrap_err().to_string();
    assert!(error.contains("source.c: a file expected, a directory, pipe or device found"), "{error}");
}
