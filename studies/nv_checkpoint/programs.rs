//! The programs of the evaluation, plain and with versions, at any size.

use recoup::memory::Versioned;

use crate::{crack, crack_plain, droplet, droplet_plain, lu, lu_plain, pagerank, pagerank_plain};

/// Seed of every random matrix and graph.
pub(crate) const SEED: u64 = 1;
/// Links of a page.
const LINKS: usize = 16;
/// Level of the coarsest octants.
const COARSEST: u32 = 3;

/// Steps that change a state.
pub(crate) trait Computation {
    /// Takes a step.
    fn advance(&mut self);

    /// A number that differs if a bit of the result differs, but for rare chance.
    fn bits(&self) -> u64;
}

/// A computation whose state has versions.
pub(crate) trait VersionedComputation: Computation + Versioned {}

impl<C: Computation + Versioned> VersionedComputation for C {}

macro_rules! computations {
    ($($state:ty: $step:ident),* $(,)?) => {
        $(impl Computation for $state {
            fn advance(&mut self) {
                self.$step();
            }

            fn bits(&self) -> u64 {
                self.fingerprint()
            }
        })*
    };
}

computations! {
    lu_plain::Lu: eliminate,
    lu::Lu: eliminate,
    droplet_plain::Droplet: step,
    droplet::Droplet: step,
    pagerank_plain::PageRank: step,
    pagerank::PageRank: step,
    crack_plain::Plate: step,
    crack::Plate: step,
}

/// A program of the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Lu,
    Droplet,
    PageRank,
    Crack,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Lu, Self::Droplet, Self::PageRank, Self::Crack];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lu => "LU",
            Self::Droplet => "droplet",
            Self::PageRank => "PageRank",
            Self::Crack => "crack",
        }
    }
}

/// A program at one size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Problem {
    pub(crate) kind: Kind,
    /// Rows of the matrix, level of the finest octants, binary logarithm of the number of pages, or
    /// atoms of a row.
    pub(crate) size: usize,
    pub(crate) steps: u64,
}

impl Problem {
    /// The program as it is.
    pub(crate) fn plain(&self) -> Box<dyn Computation> {
        match self.kind {
            Kind::Lu => Box::new(lu_plain::Lu::new(&lu_plain::random(self.size * self.size, SEED))),
            Kind::Droplet => Box::new(droplet_plain::Droplet::new([COARSEST, self.size as u32])),
            Kind::PageRank => {
                let links = pagerank_plain::links(self.size as u32, LINKS << self.size, SEED);
                Box::new(pagerank_plain::PageRank::new(1 << self.size, &links))
            }
            Kind::Crack => Box::new(crack_plain::Plate::new(self.extents())),
        }
    }

    /// The program with versions.
    pub(crate) fn versioned(&self) -> Box<dyn VersionedComputation> {
        match self.kind {
            Kind::Lu => Box::new(lu::Lu::new(&lu::random(self.size * self.size, SEED))),
            Kind::Droplet => Box::new(droplet::Droplet::new([COARSEST, self.size as u32])),
            Kind::PageRank => {
                let links = pagerank::links(self.size as u32, LINKS << self.size, SEED);
                Box::new(pagerank::PageRank::new(1 << self.size, &links))
            }
            Kind::Crack => Box::new(crack::Plate::new(self.extents())),
        }
    }

    /// Atoms of a row, and rows.
    fn extents(&self) -> [usize; 2] {
        [self.size, self.size * 3 / 5]
    }

    /// The size in words.
    pub(crate) fn size_text(&self) -> String {
        match self.kind {
            Kind::Lu => format!("{0} x {0} numbers", self.size),
            Kind::Droplet => format!("octants of levels {COARSEST} to {}", self.size),
            Kind::PageRank => format!("{} pages, {} links", 1_u64 << self.size, LINKS << self.size),
            Kind::Crack => {
                let [columns, rows] = self.extents();
                // The notch is a quarter of a row.
                format!("{} atoms", columns * rows - columns / 4)
            }
        }
    }
}

/// The sizes of all programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// Those of the figures.
    Full,
    /// Sizes that take no time, and show no more than the form.
    Small,
}

/// Sizes of each program, from the smallest.
pub(crate) const N_SIZES: usize = 3;

impl Sizes {
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Full, Self::Small].into_iter().find(|sizes| sizes.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Small => "small",
        }
    }

    /// Returns a program at one of its sizes. Its steps are a multiple of the versions of a run.
    pub(crate) fn problem(self, kind: Kind, index: usize) -> Problem {
        let sizes: [usize; N_SIZES] = match (self, kind) {
            (Self::Full, Kind::Lu) => [300, 600, 1200],
            (Self::Full, Kind::Droplet) => [5, 6, 7],
            (Self::Full, Kind::PageRank) => [14, 16, 18],
            (Self::Full, Kind::Crack) => [75, 150, 300],
            (Self::Small, Kind::Lu) => [40, 80, 120],
            (Self::Small, Kind::Droplet) => [3, 4, 5],
            (Self::Small, Kind::PageRank) => [8, 9, 10],
            (Self::Small, Kind::Crack) => [20, 30, 40],
        };
        let size = sizes[index];
        let steps = match (self, kind) {
            (_, Kind::Lu) => size as u64,
            (Self::Full, Kind::Crack) => 20,
            (_, Kind::Droplet | Kind::PageRank | Kind::Crack) => 10,
        };
        Problem { kind, size, steps }
    }
}
