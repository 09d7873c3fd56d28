//! Lines of code, and those in which two programs differ.

/// Lines of code: neither blank nor a comment, and without the mark that `build.rs` looks for.
pub(crate) fn code(text: &str) -> Vec<&str> {
    let lines = text.lines().map(|line| line.split(" // plain:").next().unwrap_or(line).trim());
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).collect()
}

/// Counts the lines that differ, by a longest common subsequence. Lines that take the place of
/// others count once.
pub(crate) fn changed_lines(before: &[&str], after: &[&str]) -> usize {
    let mut common = vec![vec![0_usize; after.len() + 1]; before.len() + 1];
    for i in (0..before.len()).rev() {
        for j in (0..after.len()).rev() {
            let skipped = common[i + 1][j].max(common[i][j + 1]);
            common[i][j] = if before[i] == after[j] { common[i + 1][j + 1] + 1 } else { skipped };
        }
    }
    let mut at = [0, 0];
    let mut hunk = [0_usize, 0];
    let mut changed = 0;
    while at[0] < before.len() || at[1] < after.len() {
        let [i, j] = at;
        if i < before.len() && j < after.len() && before[i] == after[j] {
            changed += hunk[0].max(hunk[1]);
            hunk = [0, 0];
            at = [i + 1, j + 1];
        } else {
            let side = usize::from(i == before.len() || (j < after.len() && common[i][j + 1] >= common[i + 1][j]));
            hunk[side] += 1;
            at[side] += 1;
        }
    }
    changed + hunk[0].max(hunk[1])
}
