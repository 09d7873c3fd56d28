//! The cost of one checkpoint to PETSc's CG: blocks of 20 iterations with a checkpoint, compared
//! with their neighbours in the same run, which have none. The time of the saving calls is taken
//! off the neighbours. What the machine does besides changes too slowly to matter then, as it does
//! from one run to the next.

use std::path::Path;

use anyhow::{Context, Result};

use super::{WORKERS, mpirun};

/// The ways of saving, with their options; `DIR` is where.
const SAVERS: [(&str, &str); 5] = [
    ("no saving", ""),
    ("by hand, page cache", "-by_hand DIR"),
    ("by hand, past it", "-by_hand DIR -direct"),
    ("recoup, x as it is", "-ckpt DIR scheme=traditional codec=raw state=x"),
    ("recoup, x lossy and verified", "-ckpt DIR scheme=lossy state=x"),
];

/// Relative residual at which a run ends: behind convergence, versions are lossless. Every other
/// block of 20 iterations has a version.
const TOLERANCE: &str = "1e-8";

/// Prints the extra milliseconds and the ratios, on one rank, its second core free, and a rank on
/// each.
pub(super) fn print(program: &Path, sizes: &[u32], rounds: usize) -> Result<()> {
    println!("| grid | ranks | saved by | blocks | extra ms | over a block without: mean | quartiles |");
    println!("|---|---|---|---|---|---|---|");
    for size in sizes {
        for ranks in ["1", WORKERS] {
            let mut found = SAVERS.map(|_| Vec::new());
            for _ in 0..rounds.max(1) {
                for ((_, how), found) in SAVERS.iter().zip(&mut found) {
                    found.extend(compared(&blocks(program, ranks, *size, how)?));
                }
            }
            for ((saver, _), found) in SAVERS.iter().zip(&found) {
                let (extra, ratios): (Vec<f64>, Vec<f64>) = found.iter().copied().unzip();
                let [low, high] = quartiles(&ratios);
                let (mean, error) = trimmed_mean(&ratios);
                let blocks = found.len();
                let (extra, _) = trimmed_mean(&extra);
                println!(
                    "| {size}^3 | {ranks} | {saver} | {blocks} | {:.1} | {mean:.3} +- {error:.3} | {low:.3} to {high:.3} |",
                    1e3 * extra
                );
            }
        }
    }
    Ok(())
}

/// One block of iterations.
#[derive(Clone, Copy)]
struct Block {
    seconds: f64,
    /// Seconds in the calls that save.
    in_calls: f64,
}

impl Block {
    fn of_line(line: &str) -> Option<Self> {
        let (seconds, in_calls) = line.strip_prefix("block ")?.split_once(' ')?;
        Some(Self { seconds: seconds.parse().ok()?, in_calls: in_calls.parse().ok()? })
    }

    /// Returns the time without checkpoints.
    fn alone(self) -> f64 {
        self.seconds - self.in_calls
    }
}

/// The blocks of one run.
fn blocks(program: &Path, ranks: &str, size: u32, how: &str) -> Result<Vec<Block>> {
    let directory = tempfile::tempdir()?;
    let mut command = mpirun(ranks, program);
    command.args(["-n", &size.to_string(), "-ksp_type", "cg", "-pc_type", "jacobi", "-ksp_rtol", TOLERANCE]);
    let place = directory.path().display().to_string();
    match how.split_once("DIR") {
        Some(("-ckpt ", options)) => command.args(["-ckpt", &format!("dir={place} interval=40it{options}")]),
        _ => command.args(how.replace("DIR", &place).split_whitespace()),
    };
    let output = command.output().context("mpirun")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let blocks: Vec<Block> = text.lines().filter_map(Block::of_line).collect();
    let failed = || format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    (!blocks.is_empty()).then_some(blocks).with_context(failed)
}

/// Extra seconds and ratio of every block with a version, against the mean of the two beside it
/// without their calls.
fn compared(blocks: &[Block]) -> Vec<(f64, f64)> {
    let inner = blocks.windows(3).enumerate().filter(|(first, _)| first % 2 == 1);
    inner
        .map(|(_, beside)| {
            let without = (beside[0].alone() + beside[2].alone()) / 2.0;
            (beside[1].seconds - without, beside[1].seconds / without)
        })
        .collect()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

fn quartiles(values: &[f64]) -> [f64; 2] {
    let values = sorted(values);
    [1, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

/// Mean of the middle eight tenths, and the half-width of its 95 % interval (Tukey and McLaughlin
/// 1963).
fn trimmed_mean(values: &[f64]) -> (f64, f64) {
    let values = sorted(values);
    let n = values.len();
    let cut = values.len() / 10;
    let kept = &values[cut..n - cut];
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    // The variance of the values with those cut off moved to where the cut is.
    let moved = values.iter().map(|value| value.clamp(kept[0], kept[kept.len() - 1]));
    let winsorised = moved.clone().sum::<f64>() / n as f64;
    let variance = moved.map(|value| (value - winsorised).powi(2)).sum::<f64>() / n.saturating_sub(1).max(1) as f64;
    (mean, 1.96 * (variance / n as f64).sqrt() / (1.0 - 2.0 * cut as f64 / n as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_with_a_version_are_every_other_one_from_the_third() {
        // The first has none before it, and iteration 0 takes no version.
        let blocks = [9.0, 1.5, 3.0, 1.5, 4.0, 3.5, 9.0].map(|seconds| Block { seconds, in_calls: 0.5 });
        assert_eq!(compared(&blocks), [(2.0, 3.0), (2.0, 2.0)]);
    }

    #[test]
    fn a_line_has_a_block_and_its_calls() {
        let block = Block::of_line("block 0.110000 0.000500").unwrap();
        assert_eq!((block.seconds, block.in_calls), (0.11, 0.0005));
        assert!(Block::of_line("block 0.1").is_none());
    }

    #[test]
    fn a_trimmed_mean_leaves_out_both_ends() {
        let values: Vec<f64> = (0..20).map(f64::from).chain([1e9, -1e9]).collect();
        let (mean, error) = trimmed_mean(&values);
        assert!((mean - 9.5).abs() < 1e-9 && error < 5.0, "{mean} {error}");
    }
}
