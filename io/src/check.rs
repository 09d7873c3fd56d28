//! Conditions that every manifest must satisfy, asserted before it is written and after it is read.
//!
//! A manifest whose checksum holds can still lie: lengths that do not add up, frames that overlap,
//! a file outside the directory. Nothing is allocated or opened on the word of one that does. See
//! FORMAT.md.

use std::collections::{BTreeMap, BTreeSet};

use recoup_core::{Distribution, FORMAT_VERSION, FrameRecord, Manifest, PARTS_FORMAT_VERSION, Storage, VariableRecord};

type Lie = String;

/// Checks that `manifest` is one of `version` and consistent in itself.
pub fn check(manifest: &Manifest, version: u64) -> Result<(), Lie> {
    check_part(manifest, version)?;
    // Whatever is done for each rank is then bounded by what is listed.
    check_ranks(manifest, manifest.ranks)?;
    check_rows(manifest.variables.iter().map(|v| RowsPart {
        name: &v.name,
        len: v.len,
        distribution: v.distribution,
    }))?;
    check_files(manifest)
}

/// Checks that as many ranks as expected have a variable.
pub(crate) fn check_ranks(manifest: &Manifest, expected: usize) -> Result<(), Lie> {
    let found = manifest.variables.iter().map(|variable| variable.rank).collect::<BTreeSet<_>>().len();
    require(found == expected, || format!("{expected} ranks, but only {found} of them have a variable"))
}

/// Checks the part that one rank has of a version, as [`check`] does for all.
pub fn check_rank(part: &Manifest, version: u64, rank: usize) -> Result<(), Lie> {
    require(part.format == FORMAT_VERSION, || format!("format version {} found", part.format))?;
    check_part(part, version)?;
    require(!part.variables.is_empty(), || format!("rank {rank} has no variable"))?;
    let foreign = part.variables.iter().find(|variable| variable.rank != rank);
    foreign.map_or(Ok(()), |v| Err(format!("variable {} of rank {} in the part of rank {rank}", v.name, v.rank)))?;
    check_files(part)
}

/// Checks the variables and frames of some of the ranks of a version, as [`check`] does for all.
pub(crate) fn check_part(manifest: &Manifest, version: u64) -> Result<(), Lie> {
    check_head(manifest, version)?;
    check_variables(manifest)?;
    check_frames(manifest)
}

/// Checks what the manifest says besides its variables, frames and files.
pub(crate) fn check_head(manifest: &Manifest, version: u64) -> Result<(), Lie> {
    let is_known = (FORMAT_VERSION..=PARTS_FORMAT_VERSION).contains(&manifest.format);
    require(is_known, || format!("format version {} found", manifest.format))?;
    require(manifest.version == version, || format!("version {version} expected, {} found", manifest.version))?;
    require(manifest.ranks > 0, || "no ranks".to_owned())
}

/// Returns whether `name` can be a file or a variable: letters, digits, `_`, `.` and `-`, not
/// starting with a dot.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    !name.is_empty() && name.len() <= 200 && !name.starts_with('.') && name.chars().all(allowed)
}

fn require(holds: bool, lie: impl FnOnce() -> Lie) -> Result<(), Lie> {
    if holds { Ok(()) } else { Err(lie()) }
}

fn product(extents: [usize; 3]) -> Option<u64> {
    extents.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent as u64))
}

fn check_variables(manifest: &Manifest) -> Result<(), Lie> {
    let mut seen = BTreeSet::new();
    for v in &manifest.variables {
        let at = |what: &str| format!("variable {} of rank {}: {what}", v.name, v.rank);
        require(is_plain_name(&v.name), || at("not a name"))?;
        require(v.rank < manifest.ranks, || at(&format!("only {} ranks", manifest.ranks)))?;
        require(seen.insert((v.rank, &v.name)), || at("listed twice"))?;
        require(product(v.dims) == Some(v.len), || at("extents do not multiply to its length"))?;
        let frame_len = product(v.frame_dims);
        let bytes = frame_len.and_then(|len| len.checked_mul(v.element.size() as u64));
        require(bytes.is_some_and(|bytes| bytes < u64::from(u32::MAX)), || at("frames of 4 GiB or more"))?;
        require(v.len == 0 || frame_len != Some(0), || at("frames of length 0"))?;
    }
    Ok(())
}

fn check_frames(manifest: &Manifest) -> Result<(), Lie> {
    let mut of_variable: BTreeMap<(usize, &str), Vec<&FrameRecord>> = BTreeMap::new();
    for frame in &manifest.frames {
        of_variable.entry((frame.rank, &frame.variable)).or_default().push(frame);
    }
    for v in &manifest.variables {
        check_runs(v, &of_variable.remove(&(v.rank, v.name.as_str())).unwrap_or_default())?;
    }
    for frame in &manifest.frames {
        let at = |what: &str| format!("frame {}/{} of rank {}: {what}", frame.variable, frame.run, frame.rank);
        let parents = &frame.parents;
        require(parents.len() <= 1, || at("coded against several versions"))?;
        require(parents.iter().all(|&parent| parent < manifest.version), || at("coded against no older version"))?;
        let alone = parents.is_empty() || frame.storage == Storage::Coded;
        require(alone, || at("raw values coded against another version"))?;
    }
    match of_variable.keys().next() {
        None => Ok(()),
        Some((rank, name)) => Err(format!("frames of a variable that is not listed: {name} of rank {rank}")),
    }
}

/// The frames of one variable follow each other and cover it exactly.
fn check_runs(variable: &VariableRecord, frames: &[&FrameRecord]) -> Result<(), Lie> {
    let frame_len = product(variable.frame_dims).unwrap_or(0);
    let mut next = 0;
    for (run, frame) in frames.iter().enumerate() {
        let at = |what: String| format!("frame {}/{run} of rank {}: {what}", variable.name, variable.rank);
        require(frame.run == run, || at(format!("run {} found", frame.run)))?;
        require(frame.start == next, || at(format!("start {next} expected, {} found", frame.start)))?;
        let full = frame_len.min(variable.len.saturating_sub(next));
        require(frame.len == full, || at(format!("length {full} expected, {} found", frame.len)))?;
        let raw_bytes = frame_len * variable.element.size() as u64;
        let bytes = frame.payload_bytes;
        require(bytes < u64::from(u32::MAX), || at(format!("less than 4 GiB expected, {bytes} bytes found")))?;
        let fits = frame.storage == Storage::Coded || frame.payload_bytes == raw_bytes;
        require(fits, || at(format!("{raw_bytes} raw bytes expected, {} found", frame.payload_bytes)))?;
        require(frame.achieved_error >= 0.0, || at("negative error".to_owned()))?;
        next += frame.len;
    }
    let name = &variable.name;
    let rank = variable.rank;
    let len = variable.len;
    require(next == len, || format!("variable {name} of rank {rank}: frames hold {next} of {len} values"))
}

/// Rows of a variable: those of a rank, or of ranks whose rows follow each other.
pub(crate) struct RowsPart<'a> {
    pub(crate) name: &'a str,
    pub(crate) len: u64,
    pub(crate) distribution: Distribution,
}

/// The parts of a variable spread by rows cover its global rows exactly.
pub(crate) fn check_rows<'a>(all: impl Iterator<Item = RowsPart<'a>>) -> Result<(), Lie> {
    let mut parts: BTreeMap<&str, Vec<(u64, u64, u64)>> = BTreeMap::new();
    for part in all {
        if let Distribution::Rows { first, global } = part.distribution {
            parts.entry(part.name).or_default().push((first, part.len, global));
        }
    }
    for (name, mut rows) in parts {
        rows.sort_unstable();
        let global = rows[0].2;
        let mut next = 0_u64;
        for (first, len, of) in rows {
            require(of == global, || format!("variable {name}: {global} and {of} global rows"))?;
            require(first == next, || format!("variable {name}: row {next} expected, {first} found"))?;
            next = first.checked_add(len).ok_or_else(|| format!("variable {name}: too many rows"))?;
        }
        require(next == global, || format!("variable {name}: ranks hold {next} of {global} rows"))?;
    }
    Ok(())
}

/// Every frame and every part of the manifest lies inside a listed file, and none overlaps another.
pub(crate) fn check_files(manifest: &Manifest) -> Result<(), Lie> {
    let has_parts = manifest.format == PARTS_FORMAT_VERSION;
    let mut files = BTreeMap::new();
    let mut taken: BTreeSet<(&str, u64, u64)> = BTreeSet::new();
    for file in &manifest.files {
        let at = |what: &str| format!("file {}: {what}", file.name);
        require(is_plain_name(&file.name), || at("not a name"))?;
        require(files.insert(&file.name, file).is_none(), || at("listed twice"))?;
        let Some(part) = &file.part else { continue };
        require(has_parts, || at("a part of the manifest in a version without parts"))?;
        let end = part.offset.checked_add(part.bytes).filter(|end| *end <= file.bytes);
        let end = end.ok_or_else(|| at("its part of the manifest ends behind it"))?;
        taken.insert((&file.name, part.offset, end));
    }
    for frame in &manifest.frames {
        let at = |what: &str| format!("frame {}/{} of rank {}: {what}", frame.variable, frame.run, frame.rank);
        let place = frame.place.as_ref().ok_or_else(|| at("no place"))?;
        let file = files.get(&place.file).ok_or_else(|| at("its file is not listed"))?;
        require(file.part.is_some() == has_parts, || at("its file has no part of the manifest"))?;
        let end = place.offset.checked_add(frame.payload_bytes);
        require(end.is_some_and(|end| end <= file.bytes), || at("beyond the end of its file"))?;
        if frame.payload_bytes > 0 {
            let fresh = taken.insert((&place.file, place.offset, place.offset + frame.payload_bytes));
            require(fresh, || at("lies where another frame lies"))?;
        }
    }
    let overlap = taken.iter().zip(taken.iter().skip(1)).find(|(a, b)| a.0 == b.0 && b.1 < a.2);
    match overlap {
        None => Ok(()),
        Some((a, b)) => Err(format!("file {}: frames at {} and {} overlap", a.0, a.1, b.1)),
    }
}

#[cfg(test)]
mod tests {
    use recoup_core::{FileRecord, PartRecord, Place};
    use recoup_testkit::store_suite::SampleVersion;

    use super::*;

    const PART: PartRecord =
        PartRecord { offset: 0, bytes: 1, crc32c: 0, rows: None, globals: None, names: None, parents: Vec::new() };

    /// A sample whose frames lie back to back in one file.
    fn placed() -> Manifest {
        let mut manifest = SampleVersion::new(7, 2).manifest(Vec::new());
        let mut offset = 0;
        for frame in &mut manifest.frames {
            frame.place = Some(Place { file: "f".into(), offset });
            offset += frame.payload_bytes;
        }
        manifest.files = vec![FileRecord::new("f", offset, 0)];
        manifest
    }

    #[test]
    fn every_lie_is_named() {
        assert_eq!(check(&placed(), 7), Ok(()));
        assert!(check(&placed(), 8).unwrap_err().contains("version 8 expected, 7 found"));
        type Tell = fn(&mut Manifest);
        let lies: [(&str, Tell); 25] = [
            ("its own parent", |m| m.frames[0].parents = vec![7]),
            ("two parents", |m| m.frames[0].parents = vec![5, 6]),
            ("raw, with a parent", |m| {
                m.frames[0].storage = Storage::Raw;
                m.frames[0].parents = vec![6];
            }),
            ("format", |m| m.format = 3),
            ("parts that are nowhere", |m| m.format = 2),
            ("a part of the other format", |m| m.files[0].part = Some(PART)),
            ("a part behind the end", |m| {
                (m.format, m.files[0].part) = (2, Some(PartRecord { offset: m.files[0].bytes, ..PART }));
            }),
            ("a part on a frame", |m| (m.format, m.files[0].part) = (2, Some(PART))),
            ("ranks", |m| m.ranks = 1),
            ("ranks without variables", |m| m.ranks = 1_000_000_000),
            ("length", |m| m.variables[0].len += 1),
            ("frame extents", |m| m.variables[0].frame_dims[0] += 1),
            ("enormous frame", |m| m.variables[0].frame_dims = [usize::MAX, 2, 1]),
            ("name", |m| m.variables[0].name = "../x".into()),
            ("variable twice", |m| m.variables.push(m.variables[0].clone())),
            ("frame missing", |m| drop(m.frames.remove(1))),
            ("frame twice", |m| m.frames.insert(1, m.frames[0].clone())),
            ("frame length", |m| m.frames[0].len += 1),
            ("payload length", |m| m.frames[0].payload_bytes += 8),
            ("enormous payload", |m| {
                let last = m.frames.last_mut().unwrap();
                let file = &mut m.files[0];
                (last.storage, last.payload_bytes, file.bytes) = (Storage::Coded, 1 << 50, 1 << 51);
            }),
            ("overlap", |m| m.frames[1].place.as_mut().unwrap().offset -= 1),
            ("no place", |m| m.frames[0].place = None),
            ("foreign file", |m| m.frames[0].place.as_mut().unwrap().file = "g".into()),
            ("short file", |m| m.files[0].bytes -= 1),
            ("path", |m| m.files[0].name = "../f".into()),
        ];
        for (what, tell) in lies {
            let mut manifest = placed();
            tell(&mut manifest);
            assert!(check(&manifest, 7).is_err(), "{what}");
        }
    }

    #[test]
    fn a_part_is_one_rank_s_and_lies_in_its_files() {
        let mut part = placed();
        part.variables.retain(|variable| variable.rank == 1);
        part.frames.retain(|frame| frame.rank == 1);
        assert_eq!(check_rank(&part, 7, 1), Ok(()));
        assert!(check_rank(&part, 7, 0).unwrap_err().contains("rank 1 in the part of rank 0"));
        assert!(check_rank(&Manifest { files: Vec::new(), ..part.clone() }, 7, 1).unwrap_err().contains("its file"));
        let empty = Manifest { variables: Vec::new(), frames: Vec::new(), ..part };
        assert!(check_rank(&empty, 7, 1).unwrap_err().contains("no variable"));
    }

    #[test]
    fn rows_must_tile_the_global_rows() {
        let mut manifest = placed();
        let Distribution::Rows { first, .. } = &mut manifest.variables.last_mut().unwrap().distribution else {
            panic!("the last variable of the sample is spread by rows");
        };
        *first += 1;
        assert!(check(&manifest, 7).unwrap_err().contains("row"));
    }
}
