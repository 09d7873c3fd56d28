//! The parts that the whole variables of `version.h5` are made of.
//!
//! A part is the dataset of one rank. Where the manifest is in parts, it is all rows of a variable
//! in one file, as the first rank of the file describes them: no rank then knows more of the others
//! than that.

use std::collections::BTreeMap;
use std::ops::Range;

use recoup_core::{Distribution, ElementType, FileRecord, Manifest, VariableRecord};
use serde::{Deserialize, Serialize};

use super::blocks::{Mapping, Tail, mappings};
use super::encode::{self, Datatype, UNDEFINED};
use super::rank_file::extents;
use crate::check::RowsPart;

/// A part of a variable.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct IndexPart {
    pub(super) name: String,
    /// The rank that has it, or the first of its file.
    pub(super) rank: usize,
    pub(super) element: ElementType,
    pub(super) len: u64,
    pub(super) distribution: Distribution,
    /// Extents of the grid of its first rank that has values.
    dims: [usize; 3],
    /// The most axes of a grid of its ranks.
    axes: usize,
    /// Leading extents that all these grids share.
    common: usize,
    /// The rows are one dataset of their file.
    is_joined: bool,
}

impl IndexPart {
    fn of_rank(variable: &VariableRecord) -> Self {
        let VariableRecord { rank, element, len, distribution, dims, .. } = *variable;
        let name = variable.name.clone();
        let axes = extents(dims).len();
        Self { name, rank, element, len, distribution, dims, axes, common: dims.len(), is_joined: false }
    }

    /// Returns the path of its dataset in its file.
    pub(super) fn dataset(&self) -> String {
        let Self { name, rank, .. } = self;
        if self.is_joined { format!("/variables/{name}") } else { format!("/ranks/{rank}/{name}") }
    }

    /// Returns the extents of its dataset, slowest first.
    pub(super) fn extents(&self) -> Vec<u64> {
        if self.is_joined { vec![self.len] } else { extents(self.dims) }
    }

    pub(super) fn rows(&self) -> RowsPart<'_> {
        RowsPart { name: &self.name, len: self.len, distribution: self.distribution }
    }

    pub(super) fn first_row(&self) -> u64 {
        match self.distribution {
            Distribution::Rows { first, .. } => first,
            _ => 0,
        }
    }
}

/// Returns the parts of all ranks.
pub(super) fn parts_of_ranks(manifest: &Manifest) -> Vec<IndexPart> {
    manifest.variables.iter().map(IndexPart::of_rank).collect()
}

/// A file with a part of the manifest, as the rank that wrote it describes it to rank 0.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FileDigest {
    pub(super) name: String,
    pub(super) version: u64,
    pub(super) file: FileRecord,
    pub(super) parts: Vec<IndexPart>,
}

/// The rows of a variable in one file: what all ranks of the job see of them, and the parts of the
/// file's ranks, whose rows count from the first of the file.
pub(super) struct JoinedRows {
    pub(super) whole: IndexPart,
    pub(super) parts: Vec<IndexPart>,
}

/// The parts of the variables in one file.
#[derive(Default)]
pub(super) struct FileParts {
    /// Rows that follow each other from rank to rank.
    pub(super) joined: Vec<JoinedRows>,
    /// Parts of single ranks: where rows do not follow, of a replicated variable the first.
    pub(super) apart: Vec<IndexPart>,
}

impl FileParts {
    /// Returns what all ranks of the job see of the file.
    pub(super) fn into_index(self) -> impl Iterator<Item = IndexPart> {
        self.joined.into_iter().map(|rows| rows.whole).chain(self.apart)
    }
}

/// Returns the parts of the variables of these ranks. Those in `opaque` have no datasets that could
/// be joined.
pub(super) fn parts_of_file(manifest: &Manifest, ranks: &Range<usize>, opaque: &[String]) -> FileParts {
    let mut by_name: BTreeMap<&str, Vec<IndexPart>> = BTreeMap::new();
    for variable in manifest.variables.iter().filter(|variable| ranks.contains(&variable.rank)) {
        by_name.entry(&variable.name).or_default().push(IndexPart::of_rank(variable));
    }
    let mut found = FileParts::default();
    for (name, mut parts) in by_name {
        let is_alike = |like: fn(&Distribution) -> bool| {
            parts.iter().all(|part| part.element == parts[0].element && like(&part.distribution))
        };
        if is_alike(|of| matches!(of, Distribution::RankLocal)) {
            continue;
        }
        if is_alike(|of| matches!(of, Distribution::Replicated)) {
            parts.truncate(1);
        } else if !opaque.iter().any(|opaque| opaque == name)
            && let Some(rows) = joined(&parts, ranks.start)
        {
            found.joined.push(rows);
            continue;
        }
        found.apart.extend(parts);
    }
    found
}

/// Joins parts whose rows follow each other.
fn joined(parts: &[IndexPart], rank: usize) -> Option<JoinedRows> {
    let first_of = |part: &IndexPart| match part.distribution {
        Distribution::Rows { first, global } => Some((first, global)),
        _ => None,
    };
    let (first, global) = first_of(&parts[0])?;
    let mut len = 0_u64;
    let mut moved = Vec::new();
    for part in parts {
        if part.element != parts[0].element || first_of(part) != Some((first.checked_add(len)?, global)) {
            return None;
        }
        moved.push(IndexPart { distribution: Distribution::Rows { first: len, global }, ..part.clone() });
        len = len.checked_add(part.len)?;
    }
    let dims = parts.iter().find(|part| part.len > 0).unwrap_or(&parts[0]).dims;
    let grids = || parts.iter().filter(|part| part.len > 0);
    let common = |part: &IndexPart| part.dims.iter().zip(dims).take_while(|(one, other)| *one == other).count();
    let whole = IndexPart {
        rank,
        len,
        dims,
        axes: grids().map(|part| part.axes).max().unwrap_or(1),
        common: grids().map(common).min().unwrap_or(dims.len()),
        is_joined: true,
        ..parts[0].clone()
    };
    Some(JoinedRows { whole, parts: moved })
}

/// The extents every part shares below the slowest, slowest first, when the parts stack up to one
/// grid of `global` values; none when they do not, and the variable is a vector.
pub(super) fn slab(parts: &[&IndexPart], global: u64) -> Vec<u64> {
    let parts = || parts.iter().filter(|part| part.len > 0);
    let below = parts().map(|part| part.axes).max().unwrap_or(1) - 1;
    let shared: Vec<usize> = parts().next().map(|part| part.dims[..below].to_vec()).unwrap_or_default();
    let len = shared.iter().product::<usize>() as u64;
    let stacks = |part: &&IndexPart| {
        part.common >= below && part.dims[..below] == shared && part.first_row().is_multiple_of(len)
    };
    if parts().all(stacks) && global.is_multiple_of(len) {
        shared.iter().rev().map(|&extent| extent as u64).collect()
    } else {
        Vec::new()
    }
}

/// A dataset of these rows, each part in its place, as a grid of slabs with these extents; gives
/// its address.
pub(super) fn virtual_dataset(
    parts: &[&IndexPart],
    file: impl Fn(&IndexPart) -> String,
    slab: &[u64],
    rows: u64,
    tail: &mut Tail,
) -> u64 {
    let element = parts[0].element;
    let slab_len: u64 = slab.iter().product();
    let whole = |rows: u64| -> Vec<u64> { std::iter::once(rows / slab_len).chain(slab.iter().copied()).collect() };
    let mapping = |part: &&IndexPart| {
        let mut target_start = vec![0; slab.len() + 1];
        target_start[0] = part.first_row() / slab_len;
        Mapping {
            file: file(part),
            dataset: part.dataset(),
            extents: part.extents(),
            target_start,
            target_extents: whole(part.len),
        }
    };
    let list: Vec<Mapping> = parts.iter().filter(|part| part.len > 0).map(mapping).collect();
    let mut messages = encode::described(Datatype::from(element), &whole(rows));
    messages.push(encode::fill(&nothing(element)));
    messages.push(match list.is_empty() {
        true => encode::contiguous(UNDEFINED, 0),
        false => encode::virtual_layout(tail.heap(&mappings(&list)), 1),
    });
    tail.object(&messages)
}

/// Returns the value a reader sees where a rank's file is missing: NaN where there is one, else
/// zero.
fn nothing(element: ElementType) -> Vec<u8> {
    match element {
        ElementType::F64 => f64::NAN.to_le_bytes().to_vec(),
        ElementType::F32 => f32::NAN.to_le_bytes().to_vec(),
        ElementType::I64 | ElementType::Bytes => Vec::new(),
    }
}
