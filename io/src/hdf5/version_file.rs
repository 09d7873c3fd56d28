//! The file other readers open first: every variable whole, over the files of all ranks. See
//! FORMAT.md.

use std::collections::BTreeMap;

use recoup_core::{Distribution, FileRecord, Manifest, PARTS_FORMAT_VERSION};

use super::VERSION_FILE;
use super::blocks::{SUPERBLOCK_BYTES, Tail};
use super::encode::{self, Attribute, GroupLink, LinkTarget};
use super::files_by_rank::FilesByRank;
use super::index_part::{IndexPart, slab, virtual_dataset};
use super::rank_file::text;
use super::version_index::VersionIndex;

/// The file's bytes and its record.
pub(super) fn version_file(index: &VersionIndex) -> (Vec<u8>, FileRecord) {
    let VersionIndex { manifest, parts } = index;
    let mut tail = Tail::at(SUPERBLOCK_BYTES);
    let files = FilesByRank::of(manifest);
    let variables = variables(parts, &files, &mut tail);
    let variables = tail.object(&encode::group(&variables, &[]));
    let ranks: Vec<GroupLink> = if manifest.format == PARTS_FORMAT_VERSION {
        files.names().map(|(ranks, file)| there(&ranks, file, "/ranks".to_owned())).collect()
    } else {
        let of_rank = |rank: usize| there(&rank.to_string(), files.name(rank), format!("/ranks/{rank}"));
        (0..manifest.ranks).map(of_rank).collect()
    };
    let ranks = tail.object(&encode::group(&ranks, &[]));
    let links = [GroupLink::here("variables", variables), GroupLink::here("ranks", ranks)];
    let root = tail.object(&encode::group(&links, &attributes(manifest)));
    let (mut bytes, tail) = tail.finish(root);
    bytes.extend(tail);
    let record = FileRecord::new(VERSION_FILE, bytes.len() as u64, crc32c::crc32c(&bytes));
    (bytes, record)
}

fn there(name: &str, file: String, path: String) -> GroupLink {
    GroupLink { name: name.to_owned(), target: LinkTarget::There { file, path } }
}

/// One name per variable that other readers can see whole.
fn variables(all: &[IndexPart], files: &FilesByRank<'_>, tail: &mut Tail) -> Vec<GroupLink> {
    let mut parts: BTreeMap<&str, Vec<&IndexPart>> = BTreeMap::new();
    for part in all {
        parts.entry(&part.name).or_default().push(part);
    }
    let mut links = Vec::new();
    for (name, parts) in parts {
        let element = parts[0].element;
        let is_opaque = |part: &IndexPart| files.record(part.rank).is_some_and(|f| f.opaque.contains(&part.name));
        if parts.iter().any(|part| is_opaque(part) || part.element != element) {
            continue;
        }
        match parts[0].distribution {
            Distribution::Rows { global, .. } => {
                let slab = slab(&parts, global);
                let file = |part: &IndexPart| files.name(part.rank);
                links.push(GroupLink::here(name, virtual_dataset(&parts, file, &slab, global, tail)));
            }
            Distribution::Replicated => {
                links.push(there(name, files.name(parts[0].rank), parts[0].dataset()));
            }
            Distribution::RankLocal => {}
        }
    }
    links
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
