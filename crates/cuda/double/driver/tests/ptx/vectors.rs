//! Kernels of vectors as the runtime compiler writes them, against loops on the host.

use cuda_double::ptx::{Arena, Arguments, INSTRUCTIONS_MAX, Launch, Module, run};
use recoup_device::compile;

const SOURCE: &str = include_str!("vectors.cu");

/// The kernels; the compiler comes with what `make test` installs, and without it this fails.
fn module(architecture: &str) -> Module {
    Module::parse(&compile(SOURCE, "vectors.cu", architecture).unwrap().ptx).unwrap()
}

/// A launch of one of the kernels.
struct Kernels<'a> {
    module: &'a Module,
    arena: Arena,
    seed: u64,
}

impl Kernels<'_> {
    fn launch(&mut self, name: &str, grid: [u32; 3], block: [u32; 3], arguments: &Arguments) {
        let globals: Vec<u64> = self.module.globals().iter().map(|global| self.arena.upload(&global.initial)).collect();
        let launch = Launch {
            kernel: self.module.kernel(name).unwrap(),
            grid,
            block,
            dynamic_shared_bytes: 0,
            parameters: arguments.bytes(),
            globals: &globals,
            seed: self.seed,
            instructions_max: INSTRUCTIONS_MAX,
        };
        run(&launch, &mut self.arena).unwrap_or_else(|fault| panic!("{fault}"));
    }

    fn upload(&mut self, values: &[f64]) -> u64 {
        self.arena.upload(&values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
    }

    fn upload_words(&mut self, values: &[u32]) -> u64 {
        self.arena.upload(&values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
    }

    fn bits(&self, address: u64) -> Vec<u64> {
        self.arena.bytes(address).as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
    }
}

/// Numbers of all magnitudes, with zeros of both signs and denormals (splitmix64, doi
/// 10.1145/2714064.2660195).
fn values(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    let value = |i: usize, bits: u64| match i % 13 {
        3 => -0.0,
        7 => f64::from_bits(bits >> 20),
        9 => (bits as i64 as f64) * 1e-300,
        _ => (bits >> 11) as f64 / (1u64 << 53) as f64 - 0.5,
    };
    (0..n).map(|i| value(i, next())).collect()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// Runs a test for three architectures, which the compiler writes in two dialects, and some seeds.
fn each(test: impl Fn(&mut Kernels<'_>)) {
    for architecture in ["sm_80", "sm_90", "sm_120"] {
        let module = module(architecture);
        for seed in 0..3 {
            test(&mut Kernels { module: &module, arena: Arena::default(), seed });
        }
    }
}

#[test]
fn axpy_and_quotients_and_roots_have_the_hosts_bits() {
    each(|kernels| {
        for n in [1, 31, 256, 257, 5000] {
            let x = values(n, 1);
            let y = values(n, 2);
            let grid = [(n as u32).div_ceil(256), 1, 1];
            let [from, into] = [&x, &y].map(|values| kernels.upload(values));
            let arguments = Arguments::default().double_word(n as u64).real(-1.7).double_word(from).double_word(into);
            kernels.launch("axpy", grid, [256, 1, 1], &arguments);
            let expected: Vec<f64> = x.iter().zip(&y).map(|(x, y)| -1.7 * x + y).collect();
            assert_eq!(kernels.bits(into), bits(&expected), "axpy of {n}");
            let target = kernels.arena.allocate(8 * n);
            let into = kernels.upload(&y);
            let arguments = Arguments::default().word(n as u32).double_word(from).double_word(into).double_word(target);
            kernels.launch("divide", grid, [256, 1, 1], &arguments);
            let expected: Vec<f64> = x.iter().zip(&y).map(|(x, y)| (x / (y.abs() + 0.25)).abs().sqrt() / 3.0).collect();
            assert_eq!(kernels.bits(target), bits(&expected), "divide of {n}");
        }
    });
}

/// The sum of a block of 256 threads as the kernel makes it: lanes, a tree in each warp, a tree
/// over the warps.
fn host_dot(x: &[f64], y: &[f64], blocks: usize) -> Vec<f64> {
    let stride = blocks * 256;
    let tree = |mut sums: Vec<f64>| {
        while sums.len() > 1 {
            let (low, high) = sums.split_at(sums.len() / 2);
            sums = low.iter().zip(high).map(|(a, b)| a + b).collect();
        }
        sums[0]
    };
    let thread = |first: usize| (first..x.len()).step_by(stride).fold(0.0, |sum, i| sum + x[i] * y[i]);
    let block = |block: usize| {
        let warps = (0..8).map(|warp| tree((0..32).map(|lane| thread(block * 256 + warp * 32 + lane)).collect()));
        tree(warps.collect())
    };
    (0..blocks).map(block).collect()
}

#[test]
fn dot_by_shuffles_has_the_bits_of_the_same_tree_on_the_host() {
    each(|kernels| {
        for (n, blocks) in [(1, 1), (255, 1), (1000, 2), (20_001, 3)] {
            let x = values(n, 3);
            let y = values(n, 4);
            let [a, b] = [&x, &y].map(|values| kernels.upload(values));
            let sums = kernels.arena.allocate(8 * blocks);
            let arguments = Arguments::default().word(n as u32).double_word(a).double_word(b).double_word(sums);
            kernels.launch("dot", [blocks as u32, 1, 1], [256, 1, 1], &arguments);
            assert_eq!(kernels.bits(sums), bits(&host_dot(&x, &y, blocks)), "{n} in {blocks} blocks");
        }
    });
}

/// A matrix in slices of 32 rows: entry k of 32 rows side by side, rows padded to the longest of
/// their slice.
struct Slices {
    starts: Vec<u32>,
    widths: Vec<u32>,
    columns: Vec<u32>,
    entries: Vec<f64>,
}

fn slices(rows: usize) -> Slices {
    let mut matrix = Slices { starts: Vec::new(), widths: Vec::new(), columns: Vec::new(), entries: Vec::new() };
    let length = |row: usize| row * 7 % 11;
    for first in (0..rows).step_by(32) {
        let width = (first..(first + 32).min(rows)).map(length).max().unwrap();
        matrix.starts.push(matrix.entries.len() as u32);
        matrix.widths.push(width as u32);
        for k in 0..width {
            for row in first..first + 32 {
                let is_there = row < rows && k < length(row);
                matrix.columns.push(if is_there { (row * 31 + k * 17) as u32 % rows as u32 } else { 0 });
                matrix.entries.push(if is_there { 1.0 / (1 + row + 3 * k) as f64 - 0.01 } else { 0.0 });
            }
        }
    }
    matrix
}

#[test]
fn a_matrix_in_slices_of_32_rows_has_the_bits_of_sums_in_order() {
    each(|kernels| {
        for rows in [1, 32, 33, 1000] {
            let x = values(rows, 5);
            let matrix = slices(rows);
            let [starts, widths, columns] =
                [&matrix.starts, &matrix.widths, &matrix.columns].map(|words| kernels.upload_words(words));
            let [entries, from] = [&matrix.entries, &x].map(|values| kernels.upload(values));
            let target = kernels.arena.allocate(8 * rows);
            let arguments = Arguments::default().word(rows as u32).double_word(starts).double_word(widths);
            let arguments = arguments.double_word(columns).double_word(entries).double_word(from).double_word(target);
            kernels.launch("slices", [(rows as u32).div_ceil(128), 1, 1], [128, 1, 1], &arguments);
            let row = |row: usize| {
                let first = matrix.starts[row / 32] as usize + row % 32;
                let places = (0..matrix.widths[row / 32] as usize).map(|k| first + 32 * k);
                places.fold(0.0, |sum, at| sum + matrix.entries[at] * x[matrix.columns[at] as usize])
            };
            let expected: Vec<f64> = (0..rows).map(row).collect();
            assert_eq!(kernels.bits(target), bits(&expected), "{rows} rows");
        }
    });
}

/// The 7-point stencil; the order of the sum is that of the kernel.
fn host_stencil(sizes: [usize; 3], x: &[f64]) -> Vec<f64> {
    let [nx, ny, nz] = sizes;
    let at = |i: usize, j: usize, k: usize| (k * ny + j) * nx + i;
    let mut y = Vec::with_capacity(x.len());
    for k in 0..nz {
        for j in 0..ny {
            for i in 0..nx {
                let mut sum = 6.0 * x[at(i, j, k)];
                if k > 0 {
                    sum -= x[at(i, j, k - 1)];
                }
                if j > 0 {
                    sum -= x[at(i, j - 1, k)];
                }
                if i > 0 {
                    sum -= x[at(i - 1, j, k)];
                }
                if i < nx - 1 {
                    sum -= x[at(i + 1, j, k)];
                }
                if j < ny - 1 {
                    sum -= x[at(i, j + 1, k)];
                }
                if k < nz - 1 {
                    sum -= x[at(i, j, k + 1)];
                }
                y.push(sum);
            }
        }
    }
    y
}

#[test]
fn the_stencil_of_seven_points_has_the_hosts_bits() {
    each(|kernels| {
        for sizes in [[1, 1, 1], [8, 4, 4], [17, 9, 5]] {
            let x = values(sizes.iter().product(), 6);
            let from = kernels.upload(&x);
            let target = kernels.arena.allocate(8 * x.len());
            let [nx, ny, nz] = sizes.map(|n| n as u32);
            let arguments = Arguments::default().word(nx).word(ny).word(nz).double_word(from).double_word(target);
            let grid = [nx.div_ceil(8), ny.div_ceil(4), nz.div_ceil(4)];
            kernels.launch("stencil", grid, [8, 4, 4], &arguments);
            assert_eq!(kernels.bits(target), bits(&host_stencil(sizes, &x)), "{sizes:?}");
        }
    });
}

#[test]
fn atomics_constants_local_arrays_and_jump_tables_of_the_compiler_run() {
    each(|kernels| {
        let n = 100usize;
        let x = values(n, 7);
        let from = kernels.upload(&x);
        let [target, count] = [8 * n, 4].map(|bytes| kernels.arena.allocate(bytes));
        kernels.arena.write(count, &[0; 4]);
        let arguments = Arguments::default().word(n as u32).double_word(from).double_word(target).double_word(count);
        kernels.launch("mixed", [2, 1, 1], [64, 1, 1], &arguments);
        let weights = [1.0, -2.5, 3.25, 0.5];
        let expected = (0..n).map(|i| {
            let window: Vec<f64> = (0..8).map(|k| x[(i + k * k) % n] * weights[k % 4]).collect();
            let taken = window[(i * 5) % 8];
            match i % 7 {
                0 => taken.mul_add(2.0, 1.0),
                1 => taken.round_ties_even(),
                2 => f64::from(taken as f32),
                3 => taken.max(0.125),
                4 => f64::from((taken * 1000.0) as i32 / (1 + i as i32)),
                5 => (taken * 64.0).round(),
                _ => -taken,
            }
        });
        assert_eq!(kernels.bits(target), bits(&expected.collect::<Vec<f64>>()));
        let positive = x.iter().filter(|x| **x > 0.0).count() as u32;
        assert_eq!(kernels.arena.bytes(count), positive.to_le_bytes());
    });
}
