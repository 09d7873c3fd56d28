//! The file other readers open first: every variable whole, over the files of all ranks. See
//! FORMAT.md.

use std::collections::BTreeMap;

use recoup_core::{Distribution, ElementType, FileRecord, Manifest, VariableRecord};

use super::VERSION_FILE;
use super::blocks::{Mapping, SUPERBLOCK_BYTES, Tail, mappings};
use super::encode::{self, Attribute, Datatype, GroupLink, LinkTarget, UNDEFINED};
use super::rank_file::{extents, text};
use super::shared_file::FilesByRank;

/// The file's bytes and its record.
pub(super) fn version_file(manifest: &Manifest) -> (Vec<u8>, FileRecord) {
    let mut tail = Tail::at(SUPERBLOCK_BYTES);
    let files = FilesByRank::of(manifest);
    let variables = variables(manifest, &files, &mut tail);
    let variables = tail.object(&encode::group(&variables, &[]));
    let ranks: Vec<GroupLink> =
        (0..manifest.ranks).map(|rank| there(&rank.to_string(), files.name(rank), format!("/ranks/{rank}"))).collect();
    let ranks = tail.object(&encode::group(&ranks, &[]));
    let links = [GroupLink::here("variables", variables), GroupLink::here("ranks", ranks)];
    let root = tail.object(&encode::group(&links, &attributes(manifest)));
    let (mut bytes, tail) = tail.finish(root);
    bytes.extend(tail);
    let record = FileRecord {
        name: VERSION_FILE.to_owned(),
        bytes: bytes.len() as u64,
        structure_crc32c: crc32c::crc32c(&bytes),
        opaque: Vec::new(),
    };
    (bytes, record)
}

fn there(name: &str, file: String, path: String) -> GroupLink {
    GroupLink { name: name.to_owned(), target: LinkTarget::There { file, path } }
}

/// One name per variable that other readers can see whole.
fn variables(manifest: &Manifest, files: &FilesByRank<'_>, tail: &mut Tail) -> Vec<GroupLink> {
    let mut parts: BTreeMap<&str, Vec<&VariableRecord>> = BTreeMap::new();
    for variable in &manifest.variables {
        parts.entry(&variable.name).or_default().push(variable);
    }
    let mut links = Vec::new();
    for (name, parts) in parts {
        let element = parts[0].element;
        let is_opaque = |part: &VariableRecord| files.record(part.rank).is_some_and(|f| f.opaque.contains(&part.name));
        if parts.iter().any(|part| is_opaque(part) || part.element != element) {
            continue;
        }
        match parts[0].distribution {
            Distribution::Rows { global, .. } => {
                links.push(GroupLink::here(name, virtual_dataset(files, &parts, global, tail)));
            }
            Distribution::Replicated => {
                links.push(there(name, files.name(parts[0].rank), dataset_path(parts[0])));
            }
            Distribution::RankLocal => {}
        }
    }
    links
}

fn dataset_path(part: &VariableRecord) -> String {
    format!("/ranks/{}/{}", part.rank, part.name)
}

/// A dataset of all global rows, each rank's part in its place; gives its address.
fn virtual_dataset(files: &FilesByRank<'_>, parts: &[&VariableRecord], global: u64, tail: &mut Tail) -> u64 {
    let element = parts[0].element;
    let parts: Vec<&VariableRecord> = parts.iter().copied().filter(|part| part.len > 0).collect();
    let slab = slab(&parts, global);
    let slab_len: u64 = slab.iter().product();
    let whole = |rows: u64| -> Vec<u64> { std::iter::once(rows / slab_len).chain(slab.iter().copied()).collect() };
    let mapping = |part: &&VariableRecord| {
        let mut target_start = vec![0; slab.len() + 1];
        target_start[0] = first_row(part) / slab_len;
        Mapping {
            file: files.name(part.rank),
            dataset: dataset_path(part),
            extents: extents(part.dims),
            target_start,
            target_extents: whole(part.len),
        }
    };
    let list: Vec<Mapping> = parts.iter().map(mapping).collect();
    let mut messages = encode::described(Datatype::from(element), &whole(global));
    messages.push(encode::fill(&nothing(element)));
    messages.push(match list.is_empty() {
        true => encode::contiguous(UNDEFINED, 0),
        false => encode::virtual_layout(tail.heap(&mappings(&list)), 1),
    });
    tail.object(&messages)
}

fn first_row(part: &VariableRecord) -> u64 {
    match part.distribution {
        Distribution::Rows { first, .. } => first,
        _ => 0,
    }
}

/// The extents every part shares below the slowest, slowest first, when the parts stack up to one
/// grid; none when they do not, and the variable is a vector.
fn slab(parts: &[&VariableRecord], global: u64) -> Vec<u64> {
    let axes = parts.iter().map(|part| extents(part.dims).len()).max().unwrap_or(1);
    let shared: Vec<usize> = parts.first().map(|part| part.dims[..axes - 1].to_vec()).unwrap_or_default();
    let len = shared.iter().product::<usize>() as u64;
    let stacks = |part: &&VariableRecord| {
        part.dims[..axes - 1] == shared
            && part.dims[axes..].iter().all(|&e| e == 1)
            && first_row(part).is_multiple_of(len)
    };
    if parts.iter().all(stacks) && global.is_multiple_of(len) {
        shared.iter().rev().map(|&extent| extent as u64).collect()
    } else {
        Vec::new()
    }
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

fn attributes(manifest: &Manifest) -> Vec<Attribute> {
    let residual = &manifest.residual;
    let mut attributes = vec![
        Attribute::count("format", u64::from(manifest.format)),
        Attribute::text("name", &manifest.name),
        Attribute::count("iteration", manifest.version),
        Attribute::count("ranks", manifest.ranks as u64),
        Attribute::text("scheme", &manifest.scheme.to_string()),
        Attribute::text("resume", &manifest.resume.to_string()),
        Attribute::text("rule", &text(&manifest.rule)),
        Attribute::float("residual_norm", residual.norm),
        Attribute::float("rhs_norm", residual.rhs_norm),
    ];
    let norms = [("true_residual_norm", residual.true_norm), ("verified_residual_norm", residual.verified_norm)];
    attributes.extend(norms.into_iter().filter_map(|(name, norm)| Some(Attribute::float(name, norm?))));
    if let Some(fingerprint) = manifest.fingerprint {
        attributes.push(Attribute::count("fingerprint_operator", fingerprint.operator));
        attributes.push(Attribute::count("fingerprint_rhs", fingerprint.rhs));
        attributes.push(Attribute::count("fingerprint_rows", fingerprint.rows));
    }
    attributes
}
