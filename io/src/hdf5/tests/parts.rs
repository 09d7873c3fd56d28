//! Manifests in parts, one in each file.

use recoup_core::{FORMAT_VERSION, PARTS_FORMAT_VERSION, PartRecord, RowRange};

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
    let top = rooted.top(9).unwrap();
    for at in part.offset..part.offset + part.bytes {
        let byte = bytes[at as usize];
        file.write_all_at(&[byte ^ (1 << (at % 8))], at).unwrap();
        let refusals = [refusal(&rooted), rooted.parts(&top, &BTreeSet::from([2]), &[]).unwrap_err().to_string()];
        for refusal in refusals {
            assert!(refusal.contains(&record.name) && refusal.contains("checksum"), "byte {at}: {refusal}");
        }
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

/// The files whose parts are read for these ranks and rows of 100: no others are needed.
fn read_for(rooted: &Rooted, ranks: &[usize], rows: &[(u64, u64)]) -> Vec<String> {
    let top = rooted.top(9).unwrap();
    let rows: Vec<RowRange> = rows.iter().map(|&(first, len)| RowRange { first, len, global: 100 }).collect();
    let ranks = ranks.iter().copied().collect();
    let files: Vec<String> = rooted.parts(&top, &ranks, &rows).unwrap().files.into_iter().map(|f| f.name).collect();
    let seen = Rooted::new();
    fs::create_dir(seen.store.version_path(9)).unwrap();
    let path = |store: &Hdf5Store, name: &String| store.version_path(9).join(name);
    files.iter().for_each(|name| fs::hard_link(path(&rooted.store, name), path(&seen.store, name)).unwrap());
    seen.parts(&top, &ranks, &rows).unwrap();
    files
}

#[test]
fn parts_are_read_of_the_ranks_and_rows_that_are_asked_for_and_no_others() {
    let (rooted, sample) = published(9);
    assert!(rooted.top(9).unwrap().is_top());
    let [first, second, third] = ["ranks-000000-000001.h5", "ranks-000002-000003.h5", "ranks-000004-000004.h5"];
    assert_eq!(read_for(&rooted, &[0], &[]), [first]);
    assert_eq!(read_for(&rooted, &[2, 4], &[]), [second, third]);
    assert_eq!(read_for(&rooted, &[0], &[(20, 20)]), [first]);
    assert_eq!(read_for(&rooted, &[0], &[(39, 2)]), [first, second]);
    assert_eq!(read_for(&rooted, &[4], &[(79, 1)]), [second, third]);
    assert_eq!(read_for(&rooted, &[3], &[(40, 0), (0, 1)]), [first, second]);
    let found = rooted.parts(&rooted.top(9).unwrap(), &BTreeSet::from([3]), &[]).unwrap();
    let whole = rooted.manifest(9).unwrap();
    let is_its = |rank: usize| [2, 3].contains(&rank);
    let variables: Vec<_> = whole.variables.into_iter().filter(|variable| is_its(variable.rank)).collect();
    let frames: Vec<_> = whole.frames.into_iter().filter(|frame| is_its(frame.rank)).collect();
    assert_eq!((found.variables, found.frames), (variables, frames));
    sample.assert_whole(&rooted);
}

/// A rank learns of a variable that others have.
#[test]
fn the_first_part_with_other_variables_is_read_by_all() {
    let rooted = Rooted::of(PARTS);
    let mut sample = SampleVersion::new(9, 8);
    sample.parts.retain(|part| part.record.name != "note" || part.record.rank > 3);
    sample.publish(&rooted).unwrap();
    let names = |ranks: &[usize]| read_for(&rooted, ranks, &[]);
    assert_eq!(names(&[0]), ["ranks-000000-000001.h5", "ranks-000004-000005.h5"]);
    assert_eq!(names(&[6]), ["ranks-000000-000001.h5", "ranks-000006-000007.h5"]);
}

#[test]
fn tops_that_lie_about_what_is_in_their_parts_are_refused_by_name() {
    fn part(manifest: &mut Manifest) -> &mut PartRecord {
        manifest.files[1].part.as_mut().unwrap()
    }
    type Lie = fn(&mut Manifest);
    let lies: [Lie; 6] = [
        |m| part(m).rows = Some(Vec::new()),
        |m| part(m).rows.as_mut().unwrap()[0] += 1,
        |m| part(m).rows.as_mut().unwrap()[1] -= 1,
        |m| part(m).globals = Some(vec![101]),
        |m| part(m).names = Some(7),
        |m| part(m).parents = vec![8],
    ];
    for lie in lies {
        let (rooted, _) = published(9);
        tell(&rooted, lie);
        let top = rooted.top(9).unwrap();
        let refusals = [refusal(&rooted), rooted.parts(&top, &BTreeSet::from([3]), &[]).unwrap_err().to_string()];
        for refusal in refusals {
            assert!(refusal.contains(&top.files[1].name) && refusal.contains("other rows"), "{refusal}");
        }
    }
    let tops: [(&str, Lie); 3] = [
        ("of ranks 4 to 4, rank 2 expected", |m| drop(m.files.remove(1))),
        ("no part of the manifest", |m| m.files[1].part = None),
        ("ends behind it", |m| part(m).bytes = 1 << 40),
    ];
    for (expected, lie) in tops {
        let (rooted, _) = published(9);
        tell(&rooted, lie);
        let error = rooted.top(9).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

/// Versions of builds that did not write what is in each part are read whole.
#[test]
fn a_version_whose_top_does_not_say_what_is_in_its_parts_is_read_whole() {
    let (rooted, sample) = published(9);
    tell(&rooted, |manifest| {
        for part in manifest.files.iter_mut().filter_map(|file| file.part.as_mut()) {
            *part = PartRecord { rows: None, globals: None, names: None, ..part.clone() };
        }
    });
    assert_eq!(rooted.top(9).unwrap(), rooted.manifest(9).unwrap());
    sample.assert_whole(&rooted);
}
