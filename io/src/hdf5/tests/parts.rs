//! Manifests in parts, one in each file.

use recoup_core::{FORMAT_VERSION, PARTS_FORMAT_VERSION};

use super::*;

/// A version of five ranks, two to a file.
fn published(version: u64) -> (Rooted, SampleVersion) {
    let rooted = Rooted::of(PARTS);
    let mut sample = SampleVersion::new(version, 5);
    sample.publish(&rooted).unwrap();
    (rooted, sample)
}

fn top(rooted: &Rooted, version: u64) -> Manifest {
    envelope::open(&fs::read(rooted.store.version_path(version).join(MANIFEST)).unwrap()).unwrap()
}

/// Changes the manifest without its parts, under the checksum that is right for it.
fn tell(rooted: &Rooted, lie: impl FnOnce(&mut Manifest)) {
    let mut told = top(rooted, 9);
    lie(&mut told);
    fs::write(rooted.store.version_path(9).join(MANIFEST), envelope::seal(&told).unwrap()).unwrap();
}

/// What the store and an inspection say of a version whose manifest is damaged.
fn refusal(rooted: &Rooted) -> String {
    let error = rooted.manifest(9).unwrap_err();
    assert!(matches!(error, StoreError::Manifest { version: 9, .. }), "{error}");
    let damage = rooted.inspect_damage(9).unwrap();
    assert!(matches!(&damage[..], [Damage::Manifest { what }] if error.to_string().contains(what)), "{damage:?}");
    error.to_string()
}

#[test]
fn the_manifest_lists_files_and_each_file_has_the_part_of_its_ranks() {
    let (rooted, sample) = published(9);
    let files = |manifest: &Manifest| -> Vec<String> { manifest.files.iter().map(|file| file.name.clone()).collect() };
    let top = top(&rooted, 9);
    let whole = rooted.manifest(9).unwrap();
    let expected = ["ranks-000000-000001.h5", "ranks-000002-000003.h5", "ranks-000004-000004.h5", VERSION_FILE];
    assert_eq!(files(&top), expected);
    assert_eq!((top.format, top.variables.len(), top.frames.len()), (PARTS_FORMAT_VERSION, 0, 0));
    let head = Manifest { variables: Vec::new(), frames: Vec::new(), files: Vec::new(), ..whole.clone() };
    assert_eq!(whole.head(), head);
    assert_eq!(whole, Manifest { variables: whole.variables.clone(), frames: whole.frames.clone(), ..top });
    sample.assert_whole(&rooted);
    let version = rooted.store.version_path(9);
    let bytes: u64 = fs::read_dir(&version).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    let counted = rooted.links(9).unwrap().bytes;
    assert!((bytes..bytes + 10).contains(&counted), "{counted} of {bytes} bytes counted");
    assert_eq!(whole.part_of(3).format, FORMAT_VERSION, "a rank's part is a manifest of its own");
    let path = version.join(expected[1]);
    let text = hdf5_metno::File::open(path).unwrap().dataset("manifest").unwrap().read_raw::<u8>().unwrap();
    let part: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let ranks: Vec<u64> = part["frames"].as_array().unwrap().iter().map(|f| f["rank"].as_u64().unwrap()).collect();
    assert!(ranks.contains(&2) && ranks.contains(&3) && ranks.iter().all(|rank| [2, 3].contains(rank)), "{ranks:?}");
}

/// Up to 255 ranks nothing changes where files are shared.
#[test]
fn ranks_that_share_files_have_one_manifest_until_there_are_256() {
    for (ranks, format) in [(255, 1), (256, 2)] {
        let rooted = Rooted::of(Layout { ranks_per_file: 64, in_parts: false });
        let mut sample = SampleVersion::of_one_variable(9, ranks, 1);
        sample.publish(&rooted).unwrap();
        sample.assert_whole(&rooted);
        assert_eq!(top(&rooted, 9).format, format, "{ranks} ranks");
    }
}

/// A rank of the top of a manifest has a few bytes, where it had more than a kilobyte.
#[test]
fn the_top_of_a_manifest_has_at_most_100_bytes_of_a_rank() {
    for (ranks, ranks_per_file) in [(256, 2), (256, 4), (1024, 64)] {
        let rooted = Rooted::of(Layout { ranks_per_file, in_parts: false });
        SampleVersion::new(9, ranks).publish(&rooted).unwrap();
        let bytes = fs::metadata(rooted.store.version_path(9).join(MANIFEST)).unwrap().len();
        assert!(bytes <= 100 * ranks as u64, "{bytes} bytes of {ranks} ranks, {ranks_per_file} to a file");
    }
}

#[test]
fn every_flipped_byte_of_a_part_is_named_with_its_file() {
    let (rooted, _) = published(9);
    let record = rooted.manifest(9).unwrap().files[1].clone();
    let part = record.part.unwrap();
    let path = rooted.store.version_path(9).join(&record.name);
    let bytes = fs::read(&path).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    for at in part.offset..part.offset + part.bytes {
        let byte = bytes[at as usize];
        file.write_all_at(&[byte ^ (1 << (at % 8))], at).unwrap();
        let refusal = refusal(&rooted);
        assert!(refusal.contains(&record.name) && refusal.contains("checksum"), "byte {at}: {refusal}");
        file.write_all_at(&[byte], at).unwrap();
    }
    assert_eq!(rooted.inspect_damage(9).unwrap(), []);
}

#[test]
fn parts_that_are_missing_or_cut_short_or_of_another_version_are_named() {
    let (rooted, _) = published(9);
    SampleVersion::new(8, 5).publish(&rooted).unwrap();
    let record = rooted.manifest(9).unwrap().files[1].clone();
    let path = rooted.store.version_path(9).join(&record.name);
    let bytes = fs::read(&path).unwrap();
    let part = record.part.unwrap();
    for len in [0, part.offset, part.offset + part.bytes - 1] {
        fs::write(&path, &bytes[..len as usize]).unwrap();
        let refusal = refusal(&rooted);
        assert!(refusal.contains(&record.name) && refusal.contains("file ends at"), "{len} bytes: {refusal}");
    }
    fs::remove_file(&path).unwrap();
    assert!(refusal(&rooted).contains(&record.name), "{}", refusal(&rooted));
    std::os::unix::fs::symlink("elsewhere", &path).unwrap();
    assert!(refusal(&rooted).contains("symbolic link"), "{}", refusal(&rooted));
    fs::remove_file(&path).unwrap();
    // The file of the same ranks in another version, first under its own digest.
    let other = rooted.store.version_path(8).join(&record.name);
    fs::copy(&other, &path).unwrap();
    assert!(refusal(&rooted).contains("checksum"), "{}", refusal(&rooted));
    let its = rooted.manifest(8).unwrap().files[1].clone();
    tell(&rooted, |manifest| manifest.files[1] = its);
    let refusal = refusal(&rooted);
    assert!(refusal.contains(&record.name) && refusal.contains("of version 8 of solve"), "{refusal}");
}

#[test]
fn manifests_that_lie_about_their_parts_are_refused_by_name() {
    type Lie = fn(&mut Manifest);
    let lies: [(&str, Lie); 7] = [
        ("format version 2 expected, 3 found", |m| m.format = 3),
        ("only 0 of them have a variable", |m| m.format = 1),
        ("only 3 of them have a variable", |m| drop(m.files.remove(1))),
        ("listed twice", |m| m.files.push(m.files[1].clone())),
        ("together expected", |m| m.files[1].part.as_mut().unwrap().bytes = 1 << 40),
        ("together expected", |m| m.files.iter_mut().filter_map(|f| f.part.as_mut()).for_each(|p| p.bytes = u64::MAX)),
        ("in a manifest that is in parts", |m| {
            m.variables = SampleVersion::new(9, 5).manifest(Vec::new()).variables;
        }),
    ];
    for (expected, lie) in lies {
        let (rooted, _) = published(9);
        tell(&rooted, lie);
        assert!(refusal(&rooted).contains(expected), "{expected}: {}", refusal(&rooted));
    }
}

/// Rows of which no file knows all are still compared over all files.
#[test]
fn rows_that_two_files_have_or_none_are_not_published() {
    for len in [19, 21] {
        let rooted = Rooted::of(PARTS);
        let mut sample = SampleVersion::new(9, 5);
        let x = sample.parts.iter_mut().filter(|part| part.record.name == "x" && part.record.rank >= 2);
        for part in x {
            part.record.distribution =
                Distribution::Rows { first: 2 * len + 20 * (part.record.rank as u64 - 2), global: 100 };
        }
        let error = sample.publish(&rooted).unwrap_err().to_string();
        assert!(error.contains("variable x: row 40 expected"), "{error}");
        assert_eq!(entries(&rooted.store.root).unwrap(), [LOCK], "a draft is left");
    }
}

/// Rows that do not follow the ranks, and grids of which ranks have one plane or several.
#[test]
fn libhdf5_reads_whole_variables_whose_rows_do_not_follow_the_ranks() {
    let rooted = Rooted::of(PARTS);
    let mut sample = SampleVersion::new(9, 4);
    let order = [0, 3, 1, 2];
    for part in sample.parts.iter_mut().filter(|part| part.record.name == "x") {
        part.record.distribution = Distribution::Rows { first: 20 * order[part.record.rank], global: 80 };
    }
    sample.publish(&rooted).unwrap();
    sample.assert_whole(&rooted);
    let mut expected = vec![0.0; 80];
    for part in sample.parts.iter().filter(|part| part.record.name == "x") {
        let first = 20 * order[part.record.rank] as usize;
        expected[first..first + 20].copy_from_slice(&part.values);
    }
    let file = hdf5_metno::File::open(rooted.store.version_path(9).join(VERSION_FILE)).unwrap();
    assert_eq!(file.dataset("variables/x").unwrap().read_raw::<f64>().unwrap(), expected);
    assert_eq!(file.dataset("variables/grid").unwrap().shape(), [20, 3, 4]);
}
