//! Versions of several ranks, each of which knows its own part alone.

use recoup_core::{Clock as _, ElementType, FileRecord, PartRecord, Place, Role};
use recoup_testkit::store_suite::publish_on_ranks;

use super::super::blocks::SUPERBLOCK_BYTES;
use super::*;

/// The bytes of a version are those that one process writes which has all parts.
#[test]
fn each_rank_gives_its_own_part_whoever_shares_its_file() {
    for ranks in [1, 2, 5, 8] {
        for (ranks_per_file, in_parts) in [1, 2, 3, usize::MAX].map(|each| [(each, false), (each, true)]).concat() {
            let layout = Layout { ranks_per_file, in_parts };
            let dirs = [quick_directory(), quick_directory()];
            let open = |dir: &tempfile::TempDir, access| {
                Ok::<_, StoreError>(layout.of(Hdf5Store::open(dir.path(), RUN, access)?))
            };
            let access = |rank| if rank == 0 { Access::Write } else { Access::Join };
            let mut sample = SampleVersion::new(6, ranks);
            publish_on_ranks(&sample, |rank| open(&dirs[0], access(rank))).unwrap();
            sample.publish(&open(&dirs[1], Access::Write).unwrap()).unwrap();
            let stores = dirs.each_ref().map(|dir| open(dir, Access::Read).unwrap());
            sample.assert_whole(&stores[0]);
            assert_eq!(stores[0].inspect_damage(6).unwrap(), []);
            let manifest = stores[0].manifest(6).unwrap();
            assert_eq!(manifest, stores[1].manifest(6).unwrap(), "{ranks} ranks, {layout:?}");
            for file in &manifest.files {
                let [one, other] = stores.each_ref().map(|store| fs::read(store.version_path(6).join(&file.name)));
                assert!(one.unwrap() == other.unwrap(), "{}: {ranks} ranks, {layout:?}", file.name);
            }
        }
    }
}

/// The ranks' frames begin at whole pages, and what lies between them counts too.
#[test]
fn flipped_bits_of_a_shared_file_are_named() {
    let rooted = Rooted::of(Layout { ranks_per_file: usize::MAX, in_parts: false });
    SampleVersion::new(9, 3).publish(&rooted).unwrap();
    let whole = rooted.manifest(9).unwrap();
    let record = whole.files.iter().find(|file| file.name == "ranks-000000-000002.h5").unwrap();
    let manifest = Manifest { files: vec![record.clone()], ..whole.clone() };
    let version = rooted.store.version_path(9);
    let bytes = fs::read(version.join(&record.name)).unwrap();
    let file = File::options().write(true).open(version.join(&record.name)).unwrap();
    // Every byte, and in turn each of its bits.
    for at in 0..bytes.len() {
        file.write_all_at(&[bytes[at] ^ (1 << (at % 8))], at as u64).unwrap();
        let found = damage::inspect(&version, &manifest);
        let hit = whole.frames.iter().find(|frame| {
            let place = frame.place.as_ref().unwrap();
            (place.offset..place.offset + frame.payload_bytes).contains(&(at as u64))
        });
        match (&found[..], hit) {
            ([Damage::Frame { frame, .. }], Some(hit)) => assert_eq!(**frame, *hit),
            ([Damage::File { file, .. }], None) => assert_eq!(file, &record.name),
            other => panic!("byte {at}: {other:?}"),
        }
        file.write_all_at(&bytes[at..=at], at as u64).unwrap();
    }
    assert_eq!(rooted.inspect_damage(9).unwrap(), []);
}

/// A manifest of four variables, one value on each rank, in files of `per_file` ranks.
fn wide_manifest(ranks: usize, per_file: usize) -> Manifest {
    let mut manifest = Manifest::new(RUN, 6, ranks);
    for rank in 0..ranks {
        let first = rank - rank % per_file;
        let file = match per_file {
            1 => rank_file::file_name(rank),
            _ => format!("ranks-{first:06}-{:06}.h5", ranks.min(first + per_file) - 1),
        };
        for name in ["x", "r", "p", "z"] {
            let distribution = Distribution::Rows { first: rank as u64, global: ranks as u64 };
            let record = VariableRecord::new(name, rank, Role::Dynamic, ElementType::F64, 1);
            let mut frame = record.raw_frame(0, &[0; 8], 0x1234_5678);
            let offset = SUPERBLOCK_BYTES + 8 * (manifest.frames.len() % (4 * per_file)) as u64;
            frame.place = Some(Place { file: file.clone(), offset });
            manifest.frames.push(frame);
            manifest.variables.push(VariableRecord { distribution, ..record });
        }
        if rank == first {
            manifest.files.push(FileRecord::new(file, 4096 * per_file as u64, 0x1234_5678));
        }
    }
    manifest
}

/// What rank 0 is told of the files of this manifest.
fn digests(manifest: &Manifest, per_file: usize) -> Vec<Vec<u8>> {
    let digest = |(index, file): (usize, &FileRecord)| {
        let ranks = index * per_file..(index + 1) * per_file;
        let parts = index_part::parts_of_file(manifest, &ranks, &[]).into_index().collect();
        let rows = Some(vec![ranks.start as u64, per_file as u64]);
        let globals = Some(vec![manifest.ranks as u64]);
        let names = Some(0x1234_5678);
        let bytes = 1234 * per_file as u64;
        let part = PartRecord { offset: 4096, bytes, crc32c: 0x1234_5678, rows, globals, names, parents: Vec::new() };
        let file = FileRecord { part: Some(part), ..file.clone() };
        serde_json::to_vec(&[index_part::FileDigest { name: RUN.to_owned(), version: 6, file, parts }]).unwrap()
    };
    manifest.files.iter().enumerate().map(digest).collect()
}

#[test]
#[ignore = "prints what rank 0 takes for a manifest, by the number of ranks"]
fn work_of_rank_0() {
    const PER_FILE: usize = 128;
    let clock = crate::SystemClock::new();
    let mut before = clock.now();
    let mut passed = |each: usize| {
        let now = clock.now();
        1e6 * (now - std::mem::replace(&mut before, now)).as_secs_f64() / each as f64
    };
    println!("ranks, bytes of the manifest a rank, microseconds a rank to check and seal, for version.h5, to read");
    for ranks in [1_000, 10_000, 100_000] {
        let manifest = wide_manifest(ranks, 1);
        let index = VersionIndex { parts: index_part::parts_of_ranks(&manifest), manifest };
        passed(ranks);
        check(&index.manifest, 6).unwrap();
        let text = envelope::seal(&index.manifest).unwrap();
        let sealed = passed(ranks);
        version_file::version_file(&index);
        let indexed = passed(ranks);
        envelope::open(text.as_bytes()).unwrap();
        let read = passed(ranks);
        println!("{ranks:>7} {:>6} {sealed:>8.1} {indexed:>8.1} {read:>8.1}", text.len() / ranks);
    }
    println!(
        "in parts: ranks, bytes of a digest, bytes of the manifest a file, microseconds a file, for version.h5, to read"
    );
    for ranks in [1_280, 12_800, 102_400] {
        let manifest = wide_manifest(ranks, PER_FILE);
        let digests = digests(&manifest, PER_FILE);
        let files = digests.len();
        let head = manifest.head();
        passed(files);
        let index = VersionIndex::of_digests(&head, &digests).unwrap();
        let read = passed(files);
        let (_, record) = version_file::version_file(&index);
        let indexed = passed(files);
        let text = envelope::seal(&index.with_file(record).unwrap()).unwrap();
        let sealed = read + passed(files);
        part::check_top(&envelope::open(text.as_bytes()).unwrap(), 6).unwrap();
        let opened = passed(files);
        let [digest, of_file] = [digests[0].len(), text.len() / files];
        println!("{ranks:>7} {digest:>6} {of_file:>6} {sealed:>8.1} {indexed:>8.1} {opened:>8.1}");
    }
}
