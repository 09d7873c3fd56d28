//! What is lost with ranks, nodes and bits, and what comes back.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod job;

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use recoup_cache::{NodeStore, Protection, WhenBusy};
use recoup_comm::{Solo, Threads};
use recoup_core::{Comm, Distribution, ErrorKind, NextCall, Note, Store, Tiered};
use recoup_io::{MemoryStore, PrivateDir, Throttle};
use recoup_testkit::crashing_store::{Crash, CrashingStore};
use recoup_testkit::store_suite::{SampleVersion, store_suite};

use job::*;

#[test]
fn a_node_s_memory_passes_the_store_suite() {
    let machine = machine();
    let next = std::cell::Cell::new(0);
    store_suite(|| {
        next.set(next.get() + 1);
        NodeStore::new(node(machine.path(), next.get()), 0)
    });
}

#[test]
fn versions_outlive_their_process() {
    let machine = machine();
    let job = Job::new(3, &[]);
    job.save(machine.path(), &[5, 10]);
    assert_eq!(job.restored(machine.path()), (vec![5, 10], BTreeSet::new()));
}

#[test]
fn a_lost_rank_comes_back_from_its_partner_and_is_guarded_again() {
    let machine = machine();
    let job = Job::new(4, &[RING]);
    job.save(machine.path(), &[5, 10]);
    // One after the other: each settle has to restore the copies, too.
    for lost in [2, 3, 0] {
        lose(machine.path(), &[lost]);
        let (versions, notes) = job.restored(machine.path());
        assert_eq!(versions, [5, 10]);
        let source = format!("a copy on rank {}", (lost + 1) % 4);
        let expected = [5, 10].map(|version| Note::Repaired { version, rank: lost, source: source.clone() });
        assert_eq!(notes, BTreeSet::from(expected));
    }
}

#[test]
fn a_rank_lost_with_its_only_partner_costs_the_version_on_all_ranks() {
    let machine = machine();
    let job = Job::new(4, &[RING]);
    job.save(machine.path(), &[5]);
    lose(machine.path(), &[1, 2]);
    let (versions, notes) = job.restored(machine.path());
    assert_eq!(versions, [] as [u64; 0]);
    assert_eq!(notes, BTreeSet::from([Note::Dropped { version: 5, what: "the part of rank 1 is lost".into() }]));
}

#[test]
fn a_rank_lost_with_its_only_partner_comes_back_from_the_erasure_set() {
    let machine = machine();
    let job = Job::new(6, &[RING, Protection::Erasure { data: 4, parity: 2 }]);
    job.save(machine.path(), &[5, 10]);
    lose(machine.path(), &[1, 2]);
    let (versions, notes) = job.restored(machine.path());
    assert_eq!(versions, [5, 10]);
    // Rank 2's copy is on rank 3; rank 1's was on rank 2.
    let sum = "its erasure set".to_owned();
    assert!(notes.contains(&Note::Repaired { version: 10, rank: 1, source: sum }), "{notes:?}");
    assert!(notes.contains(&Note::Repaired { version: 10, rank: 2, source: "a copy on rank 3".into() }), "{notes:?}");
}

#[test]
fn any_losses_an_erasure_set_stands_come_back_and_one_more_does_not() {
    for (ranks, data, parity) in [(2, 4, 1), (4, 4, 1), (5, 4, 1), (6, 4, 2), (9, 4, 1), (7, 4, 3)] {
        let job = Job::new(ranks, &[Protection::Erasure { data, parity }]);
        let whole = machine();
        job.save(whole.path(), &[7]);
        for first in 0..ranks {
            for second in first..ranks {
                let lost = BTreeSet::from([first, second]);
                // One group is sure to stand as many losses as it has parity rows.
                if lost.len() > parity {
                    continue;
                }
                let lost: Vec<usize> = lost.into_iter().collect();
                lose(whole.path(), &lost);
                let (versions, notes) = job.restored(whole.path());
                assert_eq!((versions, notes.len()), (vec![7], lost.len()), "{ranks} ranks, {data}+{parity}, {lost:?}");
            }
        }
    }
    let job = Job::new(5, &[Protection::Erasure { data: 4, parity: 1 }]);
    let machine = machine();
    job.save(machine.path(), &[7]);
    lose(machine.path(), &[1, 4]);
    assert_eq!(job.restored(machine.path()).0, [] as [u64; 0]);
}

#[test]
fn a_lost_node_costs_nothing_where_copies_and_sums_are_on_others() {
    for guard in [RING, Protection::Erasure { data: 3, parity: 1 }] {
        let job = Job { per_node: 2, ..Job::new(8, &[guard]) };
        for lost in 0..4 {
            let machine = machine();
            job.save(machine.path(), &[3]);
            lose(machine.path(), &[lost]);
            let (versions, notes) = job.restored(machine.path());
            assert_eq!((versions, notes.len()), (vec![3], 2));
        }
    }
}

#[test]
fn a_flipped_bit_is_a_lost_part_and_comes_back() {
    for guard in [RING, Protection::Erasure { data: 2, parity: 1 }] {
        let machine = machine();
        let job = Job::new(3, &[guard]);
        job.save(machine.path(), &[5]);
        let payloads = payloads(machine.path(), 1, 1, 5, 1);
        for part in [payloads.clone(), payloads.with_file_name("manifest-000001")] {
            flip(&part);
            let (versions, notes) = job.restored(machine.path());
            assert_eq!((versions, notes.len()), (vec![5], 1), "{notes:?}");
            assert_eq!(job.restored(machine.path()), (vec![5], BTreeSet::new()));
        }
    }
}

/// A rank dies while parts travel: the version counts nowhere, and the one before is whole.
#[test]
fn a_failed_commit_leaves_the_version_before_whole() {
    for guards in [vec![RING], vec![Protection::Erasure { data: 2, parity: 1 }], vec![]] {
        let machine = machine();
        let job = Job::new(3, &guards);
        job.save(machine.path(), &[5]);
        let results = Threads::launch(3, |comm| {
            let store = job.store(machine.path(), comm.rank());
            if comm.rank() == 1 {
                store.begin(10, 1).unwrap().seal().unwrap();
                comm.lose();
                return Ok(());
            }
            publish(&store, 10, &comm)
        });
        assert!(results[0].is_err() && results[2].is_err());
        assert_eq!(job.restored(machine.path()).0, [5]);
        job.save(machine.path(), &[10]);
        assert_eq!(job.restored(machine.path()).0, [5, 10]);
    }
}

/// Killed between the marks of a commit: some ranks have the version, some only its draft.
#[test]
fn a_version_marked_on_some_ranks_counts_on_all_or_on_none() {
    let machine = machine();
    let job = Job::new(3, &[]);
    job.save(machine.path(), &[5, 10]);
    fs::remove_file(payloads(machine.path(), 2, 2, 10, 2).with_file_name("commit")).unwrap();
    assert_eq!(job.restored(machine.path()).0, [5]);
}

#[test]
fn versions_of_any_number_of_ranks_are_read_on_any_other() {
    for (saved, settled) in [(4, 2), (2, 4), (4, 3), (5, 1), (1, 3)] {
        for per_node in [1, 2] {
            let machine = machine();
            let guards: &[Protection] = &[];
            Job { per_node, ..Job::new(saved, guards) }.save(machine.path(), &[5, 10]);
            // Ranks that are no more leave their shelves to those of their node; a node without any
            // is lost.
            let job = Job { per_node: 8, ..Job::new(settled, guards) };
            let all = node(machine.path(), 0);
            for other in 1..saved.div_ceil(per_node) {
                for rank in fs::read_dir(node(machine.path(), other)).unwrap().map(Result::unwrap) {
                    let from = rank.path();
                    let to = all.join(rank.file_name());
                    let moved = std::process::Command::new("mv").args([&from, &to]).status().unwrap();
                    assert!(moved.success());
                }
            }
            assert_eq!(job.restored(machine.path()), (vec![5, 10], BTreeSet::new()), "{saved} to {settled}");
        }
    }
}

/// A job without spares closes up again and again: its rest must survive the next loss at once.
#[test]
fn ranks_that_close_up_stand_the_next_loss_too() {
    for guard in [RING, Protection::Erasure { data: 3, parity: 1 }] {
        for first in 0..4 {
            for second in (0..4).filter(|&second| second != first) {
                let machine = machine();
                let job = Job::new(4, std::slice::from_ref(&guard));
                job.save(machine.path(), &[5, 10]);
                let mut alive: Vec<usize> = (0..4).collect();
                for lost in [first, second] {
                    alive.retain(|&node| node != lost);
                    lose(machine.path(), &[lost]);
                    let (versions, _) = job.restored_on(machine.path(), &alive);
                    assert_eq!(versions, [5, 10], "{guard}: nodes {first}, then {second} lost");
                }
                // One rank alone keeps the whole version, and has no partner to guard it with.
                let last = alive[0];
                lose(machine.path(), &[alive[1]]);
                assert_eq!(job.restored_on(machine.path(), &[last]).0, [5, 10]);
            }
        }
    }
}

/// A spare brings its own node: what the lost process had is found by those of its node that are
/// left, or with a partner.
#[test]
fn a_spare_finds_the_part_of_its_place_on_the_node_that_is_left_or_with_the_partner() {
    for (guards, nodes, holder) in [(&[][..], [0, 0, 1, 2], 2), (&[RING], [0, 0, 2, 2], 1)] {
        let machine = machine();
        let job = Job { per_node: 2, ..Job::new(4, guards) };
        job.save(machine.path(), &[5]);
        let (versions, notes) = job.restored_on(machine.path(), &nodes);
        assert_eq!(versions, [5]);
        let source = format!("a copy on rank {holder}");
        assert!(notes.contains(&Note::Repaired { version: 5, rank: 3, source }), "{nodes:?}: {notes:?}");
    }
}

/// Shelves were looked for under the place of a host in the list, which a lost host shifts: all
/// copies were there, and the job began again at 0 without a word.
#[test]
fn parts_are_found_on_any_host_whatever_its_place_in_the_list() {
    let old: FolderName = |_, place| format!("node-{place:06}");
    let new: FolderName = |host, place| format!("node-h{host}-{place:06}");
    for (name, guards, back) in [
        (old, &[RING][..], [6, 7, 8]),
        (new, &[RING], [6, 7, 8]),
        (new, &[Protection::Erasure { data: 4, parity: 2 }], [8, 6, 7]),
        (new, &[], [7, 5, 6]),
    ] {
        let machine = machine();
        let job = Job { per_node: 2, ..Job::new(6, guards) };
        let host = |host: usize| machine.path().join(format!("host-{host}"));
        Threads::launch(6, |comm| {
            let store = job.store_at(machine.path(), &[5, 6, 7], name, comm.rank());
            [5, 10].iter().for_each(|&version| publish(&store, version, &comm).unwrap());
        });
        if !guards.is_empty() {
            fs::remove_dir_all(host(5)).unwrap();
        }
        Threads::launch(6, |comm| {
            let store = job.store_at(machine.path(), &back, new, comm.rank());
            store.prepare_restore(&comm, &|manifest| needed_by_all(manifest, &comm)).unwrap();
            assert_eq!(store.versions().unwrap(), [5, 10], "back on {back:?}");
            assert_readable(&store, 10, &comm);
            publish(&store, 15, &comm).unwrap();
            assert_readable(&store, 15, &comm);
        });
        for (place, back) in back.into_iter().enumerate() {
            let shelves =
                fs::read_dir(host(back)).unwrap().flat_map(|node| fs::read_dir(node.unwrap().path()).unwrap());
            let mut shelves: Vec<_> = shelves.map(|shelf| shelf.unwrap().file_name().into_string().unwrap()).collect();
            shelves.sort();
            let used = [2 * place, 2 * place + 1].map(|rank| format!("rank-{rank:06}"));
            assert_eq!(shelves, used, "shelves that no rank uses go with the next version");
        }
    }
}

/// Ranks that are left after a loss may be too few for a guard: versions continue without it.
#[test]
fn ranks_too_few_for_their_guards_save_without_them() {
    let machine = machine();
    let job = Job::new(2, &[RING, Protection::Erasure { data: 1, parity: 1 }]);
    publish(&job.store(machine.path(), 0).forgiving(), 5, &Solo).unwrap();
    assert_eq!(job.restored_on(machine.path(), &[0]).0, [5]);
    assert!(publish(&job.store(machine.path(), 0), 6, &Solo).is_err());
}

#[test]
fn guards_come_round_as_often_as_asked_and_chains_do_not_outgrow_them() {
    let machine = machine();
    let job = Job { guards: vec![(RING, 3)], ..Job::new(2, &[]) };
    Threads::launch(2, |comm| {
        let store = job.store(machine.path(), comm.rank());
        for version in 1..=7 {
            let is_guarded = (version - 1) % 3 == 0;
            // A guarded version may only follow a guarded one.
            assert_eq!(store.can_follow(version, version - 1), version > 1 && !is_guarded);
            publish(&store, version, &comm).unwrap();
            assert_eq!(store.parts(version).len(), if is_guarded { 5 } else { 3 });
        }
    });
    lose(machine.path(), &[0]);
    assert_eq!(job.restored(machine.path()).0, [1, 4, 7]);
}

#[test]
fn guards_that_the_ranks_cannot_keep_are_refused_by_name() {
    for (guard, named) in [(RING, "partner copies"), (Protection::Erasure { data: 4, parity: 1 }, "erasure set 4+1")] {
        let machine = machine();
        let job = Job::new(1, &[guard]);
        let refused = publish(&job.store(machine.path(), 0), 1, &Solo).unwrap_err().to_string();
        assert!(refused.contains(named), "{refused}");
    }
}

#[test]
fn tiers_pass_the_store_suite() {
    let machine = machine();
    let next = std::cell::Cell::new(0);
    store_suite(|| {
        next.set(next.get() + 1);
        tiers(&Job::new(1, &[]), &machine.path().join(next.get().to_string()), 0, &MemoryStore::new(), 1)
    });
}

#[test]
fn each_tier_takes_its_versions_and_the_fastest_that_is_whole_gives_them_back() {
    let machine = machine();
    let pfs = MemoryStore::new();
    let job = Job::new(3, &[]);
    Threads::launch(3, |comm| {
        let store = tiers(&job, machine.path(), comm.rank(), &pfs, 3);
        (1..=5).for_each(|version| publish(&store, version, &comm).unwrap());
        assert_eq!(store.tiers()[0].store.versions().unwrap(), [1, 2, 3, 4, 5]);
        assert_eq!(store.tiers()[1].store.versions().unwrap(), [1, 4]);
    });
    let settle = |damage: &dyn Fn()| {
        damage();
        let results = Threads::launch(3, |comm| {
            let store = tiers(&job, machine.path(), comm.rank(), &pfs, 3);
            store.prepare_restore(&comm, &|manifest| needed_by_all(manifest, &comm)).unwrap();
            let newest = *store.versions().unwrap().last().unwrap();
            assert_readable(&store, newest, &comm);
            let notes = store.take_notes();
            let read = |note: &Note| matches!(note, Note::Read { version, .. } if *version == newest);
            let read: Vec<Note> = notes.iter().filter(|n| read(n)).cloned().collect();
            (newest, read)
        });
        results.into_iter().map(|(version, notes)| (version, notes[0].to_string())).collect::<Vec<_>>()
    };
    assert_eq!(settle(&|| ()), vec![(5, "version 5 read from memory".to_owned()); 3]);
    // One rank's memory is gone and nothing guards it: all ranks go to the file system together.
    assert_eq!(settle(&|| lose(machine.path(), &[1])), vec![(4, "version 4 read from pfs".to_owned()); 3]);
    lose(machine.path(), &[0, 2]);
    assert_eq!(settle(&|| ()), vec![(4, "version 4 read from pfs".to_owned()); 3]);
}

/// The slow tier cannot continue before the gate is open: what returns before did not wait for it.
/// Meanwhile the ranks make other collective calls on the communicator they publish with.
#[test]
fn versions_count_before_the_slow_tier_has_them_and_those_it_is_too_busy_for_are_named() {
    let machine = machine();
    let pfs = MemoryStore::new();
    let gate = Arc::new(Gate::default());
    let job = Job::new(3, &[RING]);
    let slow = pfs.clone().with_throttle(Throttle::new(1.0, gate.clone()));
    Threads::launch(3, |comm| {
        let store = tiers(&job, machine.path(), comm.rank(), &slow, 1).behind(WhenBusy::Skip);
        for version in [1, 2] {
            publish(&store, version, &comm).unwrap();
            assert_eq!(comm.max(comm.rank() as i64), Ok(2));
        }
        assert_eq!(store.tiers()[0].store.versions().unwrap(), [1, 2]);
        // A worker that gives up a draft of its own leaves the drain's alone.
        store.discard_drafts().unwrap();
        assert!(pfs.versions().unwrap().is_empty());
        comm.barrier().unwrap();
        gate.open();
        store.finish();
        publish(&store, 3, &comm).unwrap();
        store.finish();
        assert_eq!(store.tiers()[1].store.versions().unwrap(), [1, 3]);
        let what = "the one before is still on its way there".to_owned();
        let kind = ErrorKind::GivenUp;
        assert_eq!(store.take_notes(), [Note::Unwritten { version: 2, tier: "pfs".to_owned(), what, kind }]);
    });
}

#[test]
fn versions_that_wait_for_the_slow_tier_all_come_to_it() {
    let machine = machine();
    let pfs = MemoryStore::new();
    let gate = Arc::new(Gate::default());
    let job = Job::new(2, &[]);
    let slow = pfs.clone().with_throttle(Throttle::new(1.0, gate.clone()));
    Threads::launch(2, |comm| {
        let store = tiers(&job, machine.path(), comm.rank(), &slow, 1).behind(WhenBusy::Wait);
        publish(&store, 1, &comm).unwrap();
        gate.open();
        (2..=4).for_each(|version| publish(&store, version, &comm).unwrap());
        // Dropped without another word, it finishes.
    });
    assert_eq!(pfs.versions().unwrap(), [1, 2, 3, 4]);
}

#[test]
fn a_drain_that_fails_on_one_rank_fails_on_all_and_its_tier_is_due_again() {
    let machine = machine();
    let pfs = MemoryStore::new();
    let job = Job::new(3, &[]);
    Threads::launch(3, |comm| {
        let crash = if comm.rank() == 1 { Crash::At(1) } else { Crash::Never };
        let failing = Arc::new(CrashingStore::new(pfs.clone(), crash));
        let memory = job.store(machine.path(), comm.rank());
        let store = tiers_over(memory, failing, 3, comm.rank()).behind(WhenBusy::Skip);
        for version in 1..=4 {
            // Without waiting, versions 2 and 3 might find the drain busy.
            publish(&store, version, &comm).unwrap();
            store.finish();
        }
        assert_eq!(store.tiers()[0].store.versions().unwrap(), [1, 2, 3, 4]);
        let unwritten = |note: &Note| matches!(note, Note::Unwritten { version: 1, tier, kind: ErrorKind::Io, .. } if tier == "pfs");
        let notes = store.take_notes();
        assert!(notes.iter().all(unwritten) && notes.len() == 1, "{notes:?}");
    });
    // That 1 failed is known to all when 2 is published, so 3 comes in its place; 4 is the fourth.
    assert_eq!(pfs.versions().unwrap(), [3, 4]);
}

#[test]
fn a_chain_goes_on_in_the_slow_tier_while_its_parent_is_on_its_way() {
    let machine = machine();
    let pfs = MemoryStore::new();
    let store = tiers(&Job::new(1, &[]), machine.path(), 0, &pfs, 1).behind(WhenBusy::Wait);
    publish(&store, 1, &Solo).unwrap();
    assert!(store.can_follow(2, 1));
    store.finish();
    store.prepare_restore(&Solo, &|manifest| needed_by_all(manifest, &Solo)).unwrap();
    assert!(store.can_follow(2, 1));
}

/// A restart removed the mark of each version and wrote it again. A second kill in between took
/// away the newest version, which the program had been told of.
#[test]
fn a_restart_leaves_the_marks_of_versions_as_they_are() {
    use std::os::unix::fs::MetadataExt as _;
    let machine = machine();
    let job = Job::new(2, &[RING]);
    job.save(machine.path(), &[1, 2]);
    let mark = |rank: usize, version: u64| {
        let path = node(machine.path(), rank).join(format!("rank-{rank:06}/v{version:012}/commit"));
        fs::metadata(path).unwrap().ino()
    };
    let marks = || [(0, 1), (0, 2), (1, 1), (1, 2)].map(|(rank, version)| mark(rank, version));
    let before = marks();
    assert_eq!(job.restored(machine.path()).0, [1, 2]);
    assert_eq!(marks(), before);
}

/// Each shelf had the manifest of all ranks: gigabytes on a node of a large job.
#[test]
fn a_rank_keeps_its_own_part_of_the_manifest_alone() {
    let shelf_bytes = |ranks: usize| {
        let machine = machine();
        let job = Job::new(ranks, &[RING]);
        job.save(machine.path(), &[5]);
        let of_rank = |rank: usize| {
            let version = node(machine.path(), rank).join(format!("rank-{rank:06}/v000000000005"));
            fs::read_dir(version).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>()
        };
        (0..ranks).map(of_rank).max().unwrap()
    };
    let [few, many] = [3, 15].map(shelf_bytes);
    // Numbers of more digits: of ranks, rows and bytes, in two parts of six variables each.
    assert!(many < few + 100, "{few} bytes of 3 ranks, {many} of 15");
}

/// Overlapping rows would only be found when the version is needed.
#[test]
fn rows_that_are_not_those_of_the_whole_are_refused_on_all_ranks_before_the_version_counts() {
    let machine = machine();
    let job = Job::new(3, &[RING]);
    job.save(machine.path(), &[5]);
    let refused = Threads::launch(3, |comm| {
        let rank = comm.rank();
        let store = job.store(machine.path(), rank);
        let mut sample = SampleVersion::new(10, 3);
        for part in sample.parts.iter_mut().filter(|part| part.record.rank == 1 && part.record.name == "x") {
            part.record.distribution = Distribution::Rows { first: 19, global: 60 };
        }
        let mut own = sample.of_rank(rank);
        let mut draft = store.begin(10, rank).unwrap();
        own.parts.iter_mut().for_each(|part| draft.write(&part.record, &mut part.frames, NextCall::Write).unwrap());
        let files = draft.seal().unwrap().files;
        store.publish(&own.manifest(files), &comm).unwrap_err().to_string()
    });
    assert!(refused.iter().all(|words| words.contains("variable x: row 20 expected, 19 found")), "{refused:?}");
    assert_eq!(job.restored(machine.path()), (vec![5], BTreeSet::new()));
}

/// Memory rarely outlives the build that wrote it. Its versions are of no use then, and are named.
#[test]
fn versions_of_an_older_build_are_passed_over_by_name() {
    let machine = machine();
    let job = Job::new(2, &[RING]);
    job.save(machine.path(), &[5, 10]);
    for rank in 0..2 {
        let mark = br#"{"sequence":1,"guards":1}"#;
        let trailer = [&crc32c::crc32c(mark).to_le_bytes()[..], &(mark.len() as u64).to_le_bytes()].concat();
        let text = [&mark[..], b"rcpt", &trailer].concat();
        fs::write(payloads(machine.path(), rank, rank, 10, rank).with_file_name("commit"), text).unwrap();
    }
    let (versions, notes) = job.restored(machine.path());
    assert_eq!(versions, [5]);
    let what = "kept in memory by another build of recoup, in another form".to_owned();
    assert_eq!(notes, BTreeSet::from([Note::Dropped { version: 10, what }]));
    assert_eq!(job.restored(machine.path()), (vec![5], BTreeSet::new()), "it is gone");
}

/// The pace knows nothing of the slow tier at first, and on rank 0 alone what it took later.
#[test]
fn rank_0_chooses_intervals_for_all_from_the_seconds_of_versions() {
    for when_busy in [None, Some(WhenBusy::Wait)] {
        let machine = machine();
        let pfs = MemoryStore::new();
        let job = Job::new(3, &[]);
        Threads::launch(3, |comm| {
            let rank = comm.rank();
            let pace = move |seconds: &[Option<f64>]| {
                assert!(rank == 0 && seconds[0].is_some_and(|seconds| seconds > 0.0));
                if seconds[1].is_some() { vec![1, 3] } else { vec![1, 1] }
            };
            let store = tiers(&job, machine.path(), rank, &pfs, 1).paced(Arc::new(pace));
            let store = if let Some(when_busy) = when_busy { store.behind(when_busy) } else { store };
            assert_eq!(store.tiers()[1].every, 1);
            for version in 1..=7 {
                publish(&store, version, &comm).unwrap();
                store.finish();
            }
            assert_eq!(store.tiers()[1].every, 3);
        });
        // Written behind, the first is known to all when the second, which was due before, is
        // published.
        let expected: &[u64] = if when_busy.is_some() { &[1, 2, 4, 7] } else { &[1, 4, 7] };
        assert_eq!(pfs.versions().unwrap(), expected);
    }
}

/// One node's directory lets others in: every rank refuses to continue, and names it, instead of
/// starting from less.
#[test]
fn memory_that_others_may_reach_is_refused_by_all_ranks() {
    use std::os::unix::fs::PermissionsExt;
    let machine = machine();
    let job = Job::new(2, &[RING]);
    job.save(machine.path(), &[1]);
    let open = node(machine.path(), 1);
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    let words = Threads::launch(2, |comm| {
        let store = job.store(machine.path(), comm.rank());
        store.prepare_restore(&comm, &|manifest| needed_by_all(manifest, &comm)).unwrap_err().to_string()
    });
    let named = format!("{} is open to other users (mode 0755", open.display());
    assert!(words.iter().all(|words| words.contains(&named)), "{words:?}");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(job.restored(machine.path()).0, [1]);
}

/// Whoever owns the directory above moves ours away and makes a link to his own.
#[test]
#[expect(clippy::disallowed_methods, reason = "the rename is another user's")]
fn a_directory_exchanged_during_a_run_is_not_written_to() {
    let machine = machine();
    let [path, away, theirs] = ["run", "away", "theirs"].map(|name| machine.path().join(name));
    fs::create_dir(&theirs).unwrap();
    let store = NodeStore::within(Arc::new(PrivateDir::make(&path).unwrap()), "node-0", 0);
    publish(&store, 1, &Solo).unwrap();
    fs::rename(&path, &away).unwrap();
    std::os::unix::fs::symlink(&theirs, &path).unwrap();
    publish(&store, 2, &Solo).unwrap();
    assert_eq!(store.versions().unwrap(), [1, 2]);
    assert_eq!((fs::read_dir(&theirs).unwrap().count(), fs::read_dir(&away).unwrap().count()), (0, 1));
}
