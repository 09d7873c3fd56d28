//! What a comparison shows: the same numbers on the terminal, in the JSON and on the page, and
//! pages that fit their screen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{command, json, printed};

/// Declared rates throughout, so that two runs give the same numbers.
const COMPARE: &str = "compare --poisson3d 12 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --threads 1 \
                       --failures inject --mtti 150 --virtual-time --t-iter 5 --pfs-bandwidth 2000 --codec-rate 1e9 \
                       --trials 3";

/// A number with its unit as it is shown, and how far from it the number itself may lie: half its
/// last digit.
#[derive(Clone, Copy, Debug)]
struct Shown {
    value: f64,
    off_by: f64,
}

impl Shown {
    fn of(text: &str) -> Self {
        if let Some((hours, minutes)) = text.split_once(" h ") {
            let minutes: f64 = minutes.trim_end_matches(" min").parse().unwrap();
            return Self { value: 3600.0 * hours.parse::<f64>().unwrap() + 60.0 * minutes, off_by: 30.0 };
        }
        if let Some((minutes, seconds)) = text.split_once(" min ") {
            let seconds: f64 = seconds.trim_end_matches(" s").parse().unwrap();
            return Self { value: 60.0 * minutes.parse::<f64>().unwrap() + seconds, off_by: 0.5 };
        }
        let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
        let unit = match unit {
            "" | "s" | "B" => 1.0,
            "%" => 0.01,
            "ms" => 1e-3,
            "us" => 1e-6,
            "KiB" => 1024.0,
            other => panic!("unit {other} of {text}"),
        };
        let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        Self { value: number.parse::<f64>().unwrap() * unit, off_by: 0.5 * unit * 0.1_f64.powi(decimals as i32) }
    }

    fn stands_for(self, value: f64) -> bool {
        // One rounding of the product, one of the digits.
        (self.value - value).abs() <= self.off_by * (1.0 + 1e-9) + 2.0 * f64::EPSILON * value.abs()
    }
}

/// Columns by their names and the JSON's keys.
const KEYS: [(&str, &str); 11] = [
    ("overhead", "overhead_fraction"),
    ("expected", "expected_overhead_fraction"),
    ("time", "seconds_total"),
    ("executed", "iterations_executed"),
    ("done again", "iterations_lost"),
    ("failures", "failures"),
    ("recoveries", "recoveries"),
    ("checkpoints", "checkpoints"),
    ("extra each", "extra_iterations_mean"),
    ("version", "version_bytes"),
    ("ratio", "ratio_mean"),
];

/// The numbers of a column in the JSON: a median with its ends, or a mean and half the width of its
/// interval.
fn numbers(run: &Value, column: &str) -> Vec<Value> {
    let key = KEYS.iter().find(|(name, _)| *name == column).unwrap_or_else(|| panic!("no key of {column}")).1;
    match run.get(format!("{key}_spread")) {
        Some(spread) => ["median", "least", "most"].map(|end| spread[end].clone()).to_vec(),
        None => vec![run[key].clone(), run[format!("{key}_ci95")].clone()],
    }
}

/// Compares one cell, `12.34 %` or `12.34 % +- 1.20 %` or `12.34 % | 9.80 % to 15.00 %` or `-`,
/// with the JSON. Returns how many numbers it held.
fn check(cell: &str, expected: &[Value], column: &str) -> usize {
    if cell == "-" {
        assert!(expected[0].is_null(), "{column}: {expected:?}");
        return 0;
    }
    let texts: Vec<&str> =
        cell.split(" +- ").flat_map(|text| text.split(" | ")).flat_map(|text| text.split(" to ")).collect();
    assert!(texts.len() <= expected.len(), "{column}: {cell}");
    for (text, value) in texts.iter().zip(expected) {
        let value = value.as_f64().unwrap_or_else(|| panic!("{column}: {cell} of {expected:?}"));
        assert!(Shown::of(text).stands_for(value), "{column}: {text} stands for {value}");
    }
    texts.len()
}

/// The cells of a scheme on the terminal, in the JSON.
fn on_terminal(run: &Value, none: &Value) -> [Value; 6] {
    let overhead = numbers(run, "overhead");
    let time = |of: &Value| numbers(of, "time")[0].as_f64().unwrap();
    let saved = if run["scheme"] == "none" { Value::Null } else { Value::from(time(none) - time(run)) };
    let [median, least, most] = overhead.try_into().unwrap();
    [median, least, most, Value::from(time(run)), saved, run["ratio_mean"].clone()]
}

/// The cells of a line whose columns are apart by two blanks or more.
fn cells(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn terminal_json_and_page_show_the_same_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let json = json(&format!("{COMPARE} --report page"), dir.path(), 0);
    let runs = json["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 6);
    let terminal = printed(COMPARE, dir.path(), 0);
    let page = std::fs::read_to_string(dir.path().join("page/index.html")).unwrap();
    let header = cells(terminal.lines().next().unwrap());
    let mut compared = 0;
    for run in runs {
        let scheme = run["scheme"].as_str().unwrap();
        let line = terminal.lines().find(|line| cells(line).first() == Some(&scheme)).unwrap();
        let row = cells(line);
        assert_eq!(header, ["scheme", "overhead", "least", "most", "time", "saved", "ratio"], "{line}");
        let expected = on_terminal(run, &runs[0]);
        assert_eq!(row.len(), header.len(), "{line}");
        let shown = row[1..].iter().zip(&expected).zip(&header[1..]);
        compared +=
            shown.map(|((cell, value), column)| check(cell, std::slice::from_ref(value), column)).sum::<usize>();
        let row =
            page.split(&format!("<th scope=\"row\">{scheme}</th>")).nth(1).unwrap().split("</tr>").next().unwrap();
        for cell in row.split("<td data-name=\"").skip(1) {
            let (column, rest) = cell.split_once("\">").unwrap();
            let text = rest.replace("<small>&plusmn;", " +-").replace("<small>", " | ").replace("</small>", "");
            compared += check(text.replace("</td>", "").trim(), &numbers(run, column), column);
        }
        let parts = ["checkpoints", "lost_work", "recoveries", "extra_iterations", "other"];
        let sum: f64 = parts.iter().map(|part| run[format!("overhead_{part}")].as_f64().unwrap()).sum();
        // A dozen roundings of means below 10.
        assert!((sum - run["overhead_fraction"].as_f64().unwrap()).abs() <= 1e-13, "{run}");
    }
    // Six schemes: six numbers on the terminal, and eleven on the page, most with an interval.
    assert!(compared > 6 * 25, "{compared} numbers");
    let position = |scheme: &Value| terminal.find(&format!("\n{} ", scheme.as_str().unwrap())).unwrap();
    let mut sorted: Vec<&Value> = runs.iter().collect();
    sorted.sort_by_key(|run| position(&run["scheme"]));
    let medians: Vec<f64> = sorted.iter().map(|run| numbers(run, "overhead")[0].as_f64().unwrap()).collect();
    assert!(medians.is_sorted(), "the cheapest comes first: {medians:?}\n{terminal}");
    assert!(terminal.contains("\nWhat auto decided under the first seed:\nfrom "), "{terminal}");
    for sentence in json["verdict"].as_array().unwrap() {
        let sentence = sentence.as_str().unwrap();
        assert!(terminal.replace('\n', " ").contains(sentence), "{terminal}");
        assert!(page.contains(&sentence.replace("+-", "&plusmn;")), "{sentence}");
    }
    let figures: Value = serde_json::from_slice(&std::fs::read(dir.path().join("page/figures.json")).unwrap()).unwrap();
    assert_eq!(figures["runs"], json["runs"]);
}

/// What the browser makes of a page, without a screen.
fn dumped(browser: &Path, page: &str) -> String {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1600,4000"])
        .args(["--allow-file-access-from-files", "--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(page)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A browser that starts here; `None` where there is none.
fn browser() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    found.filter(|program| program.is_file()).find(|program| dumped(program, "data:text/html,<p>here").contains("here"))
}

/// Shows each page in frames of several widths, and writes what it measured into the document.
const MEASURE: &str = include_str!("report/measure.html");

/// What the browser measured on these pages of a folder.
fn measured(browser: &Path, folder: &Path, pages: &[&str]) -> Vec<Value> {
    std::fs::write(folder.join("measure.html"), MEASURE.replace("PAGES", &format!("{pages:?}"))).unwrap();
    let dom = dumped(browser, &format!("file://{}", folder.join("measure.html").display()));
    let found = dom.split("\"FOUND").nth(1).and_then(|rest| rest.split("END").next());
    let found = found.unwrap_or_else(|| panic!("{dom}"));
    let text = found.split('%').enumerate().fold(Vec::new(), |mut bytes, (index, piece)| {
        let plain = if index == 0 { piece } else { &piece[2..] };
        bytes.extend((index > 0).then(|| u8::from_str_radix(&piece[..2], 16).unwrap()));
        bytes.extend_from_slice(plain.as_bytes());
        bytes
    });
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn pages_fit_phones_and_screens_and_their_text_can_be_read() {
    let Some(browser) = browser() else {
        eprintln!("SKIPPED: pages are looked at with Chromium, and none starts here");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    printed(&format!("{COMPARE} --report reports/cg"), dir.path(), 0);
    let fixed = COMPARE.replace("--failures inject --mtti 150", "--failures at:5,12").replace(" --trials 3", "");
    printed(&format!("{fixed} --schemes none,traditional,lossy --report reports/fixed"), dir.path(), 0);
    let index = json("report reports", dir.path(), 0);
    assert_eq!(index["comparisons"], serde_json::json!(["cg", "fixed"]));
    let pages = ["index.html", "cg/index.html", "fixed/index.html"];
    let found = measured(&browser, &dir.path().join("reports"), &pages);
    let mut seen = BTreeMap::<&str, usize>::new();
    for page in &found {
        let number = |key: &str| page[key].as_f64().unwrap();
        assert!(number("scroll") <= number("width") && number("rightmost") <= number("width"), "cut off: {page}");
        assert!(number("smallest") >= 11.0, "too small to read: {page}");
        assert_eq!(page["cut"], serde_json::json!([]), "{page}");
        // Something was measured.
        assert!(number("rightmost") > 0.5 * number("width") && number("smallest") < 16.0, "{page}");
        *seen.entry(page["page"].as_str().unwrap()).or_default() += 1;
    }
    assert_eq!(seen.into_values().collect::<Vec<_>>(), [3, 3, 3]);
}

#[test]
fn index_without_a_comparison_says_how_to_make_one() {
    let dir = tempfile::tempdir().unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_recoup")).args(["report", "."]).current_dir(dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("recoup compare .. --report ./NAME"));
}

#[test]
fn comparison_that_is_stopped_keeps_its_finished_trials() {
    let dir = tempfile::tempdir().unwrap();
    let endless = COMPARE.replace("--trials 3", "--trials 100000");
    // On a busy machine the first trial may take its time.
    for wait in (1..7).map(|doubled| std::time::Duration::from_millis(500 << doubled)) {
        let mut child = command(&format!("{endless} --schemes traditional,lossy --json"), dir.path());
        let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(wait);
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(75), "{stderr}");
        if stderr.contains("before the first trial ended") || stderr.contains("undisturbed") {
            continue;
        }
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(report["runs"][0]["trials"].as_u64().unwrap() > 0, "{report}");
        assert!(report["notes"][0].as_str().unwrap().contains("of 200000 runs were finished"), "{}", report["notes"]);
        return;
    }
    panic!("no trial ended within a minute");
}
