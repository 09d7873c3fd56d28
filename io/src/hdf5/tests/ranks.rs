//! Versions of several ranks, each of which knows its own part alone.

use recoup_core::{Clock as _, ElementType, FileRecord, Place, Role};
use recoup_testkit::store_suite::publish_on_ranks;

use super::super::blocks::SUPERBLOCK_BYTES;
use super::*;

/// The bytes of a version are those that one process writes which has all parts.
#[test]
fn each_rank_gives_its_own_part_whoever_shares_its_file() {
    for ranks in [1, 2, 5, 8] {
        for per_file in [1, 2, 3, usize::MAX] {
            let dirs = [quick_directory(), quick_directory()];
            let open = |dir: &tempfile::TempDir, access| {
                Ok::<_, StoreError>(Hdf5Store::open(dir.path(), RUN, access)?.with_ranks_per_file(per_file))
            };
            let access = |rank| if rank == 0 { Access::Write } else { Access::Join };
            let mut sample = SampleVersion::new(6, ranks);
            publish_on_ranks(&sample, |rank| open(&dirs[0], access(rank))).unwrap();
            sample.publish(&open(&dirs[1], Access::Write).unwrap()).unwrap();
            let stores = dirs.each_ref().map(|dir| open(dir, Access::Read).unwrap());
            sample.assert_whole(&stores[0]);
            assert_eq!(stores[0].inspect_damage(6).unwrap(), []);
            let manifest = stores[0].manifest(6).unwrap();
            assert_eq!(manifest, stores[1].manifest(6).unwrap(), "{ranks} ranks, {per_file} to a file");
            for file in &manifest.files {
                let [one, other] = stores.each_ref().map(|store| fs::read(store.version_path(6).join(&file.name)));
                assert!(one.unwrap() == other.unwrap(), "{}: {ranks} ranks, {per_file} to a file", file.name);
            }
        }
    }
}

#[test]
#[ignore = "prints what rank 0 takes for a manifest, by the number of ranks"]
fn work_of_rank_0() {
    let clock = crate::SystemClock::new();
    println!("ranks, bytes of the manifest a rank, microseconds a rank to check and seal, for version.h5, to read");
    for ranks in [1_000, 10_000, 100_000] {
        let mut manifest = Manifest::new(RUN, 6, ranks);
        for rank in 0..ranks {
            for name in ["x", "r", "p", "z"] {
                let distribution = Distribution::Rows { first: rank as u64, global: ranks as u64 };
                let record = VariableRecord::new(name, rank, Role::Dynamic, ElementType::F64, 1);
                let mut frame = record.raw_frame(0, &[0; 8], 0x1234_5678);
                let offset = SUPERBLOCK_BYTES + 8 * (manifest.frames.len() as u64 % 4);
                frame.place = Some(Place { file: rank_file::file_name(rank), offset });
                manifest.frames.push(frame);
                manifest.variables.push(VariableRecord { distribution, ..record });
            }
            let name = rank_file::file_name(rank);
            manifest.files.push(FileRecord { name, bytes: 4096, structure_crc32c: 0x1234_5678, opaque: Vec::new() });
        }
        let mut before = clock.now();
        let mut passed = || {
            let now = clock.now();
            1e6 * (now - std::mem::replace(&mut before, now)).as_secs_f64() / ranks as f64
        };
        check(&manifest, 6).unwrap();
        let text = envelope::seal(&manifest).unwrap();
        let sealed = passed();
        version_file::version_file(&manifest);
        let indexed = passed();
        envelope::open(text.as_bytes()).unwrap();
        let read = passed();
        println!("{ranks:>7} {:>6} {sealed:>8.1} {indexed:>8.1} {read:>8.1}", text.len() / ranks);
    }
}
