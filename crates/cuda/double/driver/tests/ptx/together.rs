//! Threads together: shuffles, votes, reductions, barriers, and what goes wrong at them.

use super::harness::{Trial, kernel, kernel_with};
use cuda_double::ptx::DeviceFault;

/// What the threads leave of `%r0`, or of `%p0`, with order 0 and with another, which must agree.
fn left(body: &str, threads: u32) -> Vec<u64> {
    let store = "cvt.u64.u32 %d0, %r0; st.global.u64 [%o], %d0;";
    let text = kernel(&format!("{body}\n{store}"));
    let found = Trial::new(&text, threads).run().unwrap_or_else(|fault| panic!("{body}: {fault}"));
    let again = Trial { seed: 77, ..Trial::new(&text, threads) }.run().unwrap();
    assert_eq!(found, again, "{body}");
    found
}

/// The same for each lane of a warp.
fn lanes(body: &str, expected: impl Fn(u64) -> u64) {
    let found = left(body, 32);
    let wrong = (0..32).find(|lane| found[*lane as usize] != expected(*lane));
    assert_eq!(wrong, None, "{body}: {found:x?}");
}

#[test]
fn shuffles_stay_within_their_segments() {
    lanes("shfl.sync.up.b32 %r0, %t, 3, 0, -1;", |lane| if lane >= 3 { lane - 3 } else { lane });
    lanes("shfl.sync.down.b32 %r0, %t, 3, 31, -1;", |lane| if lane < 29 { lane + 3 } else { lane });
    lanes("shfl.sync.bfly.b32 %r0, %t, 5, 31, -1;", |lane| lane ^ 5);
    lanes("shfl.sync.idx.b32 %r0, %t, 9, 31, -1;", |_| 9);
    // A distance counts modulo 32.
    lanes("shfl.sync.up.b32 %r0, %t, 35, 0, -1;", |lane| if lane >= 3 { lane - 3 } else { lane });
    lanes("shfl.sync.idx.b32 %r0, %t, 41, 31, -1;", |_| 9);
    // Segments of 8 lanes: bits 8 to 12 of the limits.
    let eight = 24 << 8;
    lanes(&format!("shfl.sync.up.b32 %r0, %t, 3, {eight}, -1;"), |l| if l % 8 >= 3 { l - 3 } else { l });
    lanes(&format!("shfl.sync.down.b32 %r0, %t, 3, {}, -1;", eight | 7), |l| if l % 8 < 5 { l + 3 } else { l });
    lanes(&format!("shfl.sync.idx.b32 %r0, %t, 2, {}, -1;", eight | 7), |l| l / 8 * 8 + 2);
    lanes(&format!("shfl.sync.bfly.b32 %r0, %t, 8, {}, -1;", eight | 7), |l| if l % 16 < 8 { l } else { l - 8 });
    // A last lane before the end of the segment.
    lanes("shfl.sync.down.b32 %r0, %t, 1, 15, -1;", |l| if l < 15 { l + 1 } else { l });
    lanes("shfl.sync.idx.b32 %r0, %t, 20, 15, -1;", |l| l);
}

#[test]
fn a_shuffle_says_whether_its_source_was_within() {
    lanes("shfl.sync.up.b32 %r1|%p0, %t, 4, 0, -1; selp.u32 %r0, 1, 0, %p0;", |lane| u64::from(lane >= 4));
    lanes("shfl.sync.down.b32 %r1|%p0, %t, 4, 31, -1; selp.u32 %r0, 1, 0, %p0;", |lane| u64::from(lane < 28));
    lanes("shfl.sync.idx.b32 _|%p0, %t, %t, 15, -1; selp.u32 %r0, 1, 0, %p0;", |lane| u64::from(lane < 16));
}

#[test]
fn votes_count_the_lanes_of_the_mask_only() {
    let odd = "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 1; setp.lt.u32 %p2, %t, 8;";
    lanes(&format!("{odd} vote.sync.ballot.b32 %r0, %p1, -1;"), |_| 0xaaaa_aaaa);
    lanes(&format!("{odd} vote.sync.ballot.b32 %r0, !%p1, -1;"), |_| 0x5555_5555);
    lanes(&format!("{odd} vote.sync.any.pred %p3, %p2, -1; selp.u32 %r0, 1, 0, %p3;"), |_| 1);
    // Lanes 0 to 7 vote by themselves, and so do the others.
    let halves = format!(
        "{odd} mov.u32 %r0, 9; @!%p2 bra OTHERS; vote.sync.any.pred %p3, %p2, 0xff; bra.uni END;\
         OTHERS: vote.sync.any.pred %p3, %p2, 0xffffff00; END: selp.u32 %r0, 1, 0, %p3;"
    );
    lanes(&halves, |lane| u64::from(lane < 8));
}

#[test]
fn reductions_are_those_of_their_type() {
    lanes("redux.sync.add.u32 %r0, %t, -1;", |_| 496);
    lanes("redux.sync.or.b32 %r0, %t, -1;", |_| 31);
    lanes("mov.u32 %r1, -1; redux.sync.add.u32 %r0, %r1, -1;", |_| 0xffff_ffe0);
}

#[test]
fn lanes_that_meet_at_different_instructions_with_equal_qualifiers() {
    lanes(
        "setp.lt.u32 %p1, %t, 16; @%p1 bra LOW; shfl.sync.bfly.b32 %r0, %t, 16, 31, -1; bra.uni END;\
         LOW: shfl.sync.bfly.b32 %r0, %t, 16, 31, -1; END:",
        |lane| lane ^ 16,
    );
}

#[test]
fn ended_lanes_and_lanes_that_never_were_are_not_waited_for() {
    let found = left("shfl.sync.bfly.b32 %r0, %t, 1, 31, -1; redux.sync.add.u32 %r0, %r0, -1;", 10);
    assert_eq!(found, [45; 10]);
    let text = kernel(
        "mov.u64 %d0, 3; st.global.u64 [%o], %d0; setp.lt.u32 %p1, %t, 4; @%p1 ret; redux.sync.add.u32 %r0, 1, -1;\
         bar.sync 0; cvt.u64.u32 %d0, %r0; st.global.u64 [%o], %d0;",
    );
    let found = Trial::new(&text, 32).run().unwrap();
    assert!(found[..4].iter().all(|x| *x == 3) && found[4..].iter().all(|x| *x == 28), "{found:?}");
}

#[test]
fn a_value_of_a_lane_that_is_not_there_is_a_number_no_kernel_makes() {
    // Lanes 10 and 11 are not there: nothing is wrong as long as what came from them is not used.
    let shuffle = "shfl.sync.down.b32 %r6|%p1, %t, 2, 31, -1; mov.u32 %r0, 1;";
    assert_eq!(left(shuffle, 10), [1; 10]);
    let unset = 0xa5a5_a5a5;
    assert_eq!(left(&format!("{shuffle} mov.u32 %r0, %r6;"), 10), [2, 3, 4, 5, 6, 7, 8, 9, unset, unset]);
    // A guard that leaves it out.
    let guarded =
        "setp.lt.u32 %p2, %t, 8; mov.u32 %r0, 0; shfl.sync.down.b32 %r6, %t, 2, 31, -1; @%p2 add.s32 %r0, %r6, 1;";
    assert_eq!(left(guarded, 10), [3, 4, 5, 6, 7, 8, 9, 10, 0, 0]);
}

#[test]
fn a_lane_outside_its_own_mask_is_a_fault() {
    for body in
        ["bar.warp.sync 0xfffffffe;", "vote.sync.any.pred %p0, %p1, 0xfffffffe;", "shfl.sync.up.b32 %r0, %t, 1, 0, 2;"]
    {
        let fault = Trial::new(&kernel(body), 32).run().unwrap_err();
        assert!(matches!(fault.fault, DeviceFault::Mask { lane: 0, .. }), "{body}: {fault}");
    }
}

#[test]
fn lanes_that_wait_for_each_other_are_a_deadlock_by_line_and_number() {
    let text = kernel("setp.lt.u32 %p1, %t, 4; @%p1 bra LOW;\nbar.warp.sync -1;\nret;\nLOW: bar.sync 0;");
    let lines: Vec<usize> = ["bar.warp", "bar.sync"]
        .iter()
        .map(|needle| text.lines().position(|line| line.contains(needle)).unwrap() + 1)
        .collect();
    let DeviceFault::Deadlock { waiting } = Trial::new(&text, 40).fault() else { panic!("no deadlock") };
    // Lanes 32 to 39 are a warp of their own, which meets and ends.
    assert_eq!(waiting, format!("line {}: threads 4 to 31; line {}: threads 0 to 3", lines[0], lines[1]));
    // Masks or qualifiers that differ never meet.
    for body in [
        "setp.lt.u32 %p1, %t, 16; selp.b32 %r1, -1, 0x7fffffff, %p1; setp.eq.u32 %p2, %t, 31; @%p2 ret; bar.warp.sync %r1;",
        "setp.lt.u32 %p1, %t, 16; @%p1 bra LOW; vote.sync.any.pred %p2, %p1, -1; ret; LOW: redux.sync.or.b32 %r2, %t, -1;",
    ] {
        assert!(matches!(Trial::new(&kernel(body), 32).fault(), DeviceFault::Deadlock { .. }), "{body}");
    }
}

#[test]
fn barriers_gather_predicates_of_all_threads() {
    for (most, expected) in [(50, 1), (0, 0)] {
        let body = format!("setp.lt.u32 %p1, %t, {most}; bar.red.or.pred %p2, 1, %p1; selp.u32 %r0, 1, 0, %p2;");
        assert_eq!(left(&body, 96), [expected; 96]);
    }
}

#[test]
fn barriers_that_no_block_has_or_that_do_not_agree_are_faults() {
    assert_eq!(Trial::new(&kernel("bar.sync 16;"), 32).fault(), DeviceFault::Barrier { number: 16 });
    for (body, threads) in [
        // One warp comes to a barrier at two places.
        ("setp.lt.u32 %p1, %t, 4; @%p1 bra LOW; bar.sync 0; ret; LOW: bar.sync 0;", 32),
        // One of two warps brings a predicate.
        ("setp.lt.u32 %p1, %t, 32; @%p1 bra LOW; bar.sync 0; ret; LOW: bar.red.or.pred %p2, 0, %p1;", 64),
    ] {
        assert!(matches!(Trial::new(&kernel(body), threads).fault(), DeviceFault::Disagreement { .. }), "{body}");
    }
}

#[test]
fn a_missing_barrier_shows_with_some_seed() {
    let declarations = ".shared .align 8 .b8 room[512];";
    let body = |barrier: &str| {
        format!(
            "mov.u64 %d6, room; mul.wide.u32 %d7, %t, 8; add.s64 %d8, %d6, %d7; cvt.u64.u32 %d1, %t; st.shared.u64 [%d8], %d1;\
             {barrier} xor.b32 %r1, %t, 63; mul.wide.u32 %d7, %r1, 8; add.s64 %d8, %d6, %d7; ld.shared.u64 %d0, [%d8]; st.global.u64 [%o], %d0;"
        )
    };
    let results = |barrier: &str| {
        let text = kernel_with("", declarations, &body(barrier));
        let runs = (0..8).map(|seed| Trial { seed, ..Trial::new(&text, 64) }.run().unwrap());
        runs.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(results("bar.sync 0;"), 1);
    assert!(results("") > 1);
}

#[test]
fn a_warp_has_32_lanes() {
    lanes("mad.lo.u32 %r0, %ntid.x, 100, WARP_SZ;", |_| 3232);
}
