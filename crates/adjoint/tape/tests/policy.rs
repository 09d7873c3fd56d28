//! Rules of the policy, one event after the other.

use recoup_tape::{
    Eviction, Extent, Growth, LevelSettings, Location, PlaceError, Registration, StateId, TapeAction, TapeEvent,
    TapePolicy, TapeSettings, TapeWork, TouchMode, Touching, WorkId,
};

fn level(bytes: u64, growth: Growth) -> LevelSettings {
    LevelSettings { bytes, growth, is_coded: false }
}

fn policy(levels: Vec<LevelSettings>, eviction: Eviction) -> TapePolicy {
    TapePolicy::new(TapeSettings { levels, eviction })
}

fn copies(actions: &[TapeAction]) -> Vec<(WorkId, Location, Location)> {
    let copy = |action: &TapeAction| match *action {
        TapeAction::Start { id, work: TapeWork::Copy { source, target, .. } } => Some((id, source, target)),
        _ => None,
    };
    actions.iter().filter_map(copy).collect()
}

fn replies(actions: &[TapeAction]) -> Vec<Result<StateId, PlaceError>> {
    let reply = |action: &TapeAction| match action {
        TapeAction::Reply(reply) => Some(reply.clone()),
        TapeAction::Start { .. } | TapeAction::Discard { .. } => None,
    };
    actions.iter().filter_map(reply).collect()
}

fn push(policy: &mut TapePolicy, bytes: u64) -> Vec<TapeAction> {
    policy.handle(TapeEvent::Push { bytes, interval_seconds: 1.0 })
}

fn end(policy: &mut TapePolicy, work: WorkId, is_done: bool) -> Vec<TapeAction> {
    let failure = (!is_done).then(|| "refused".to_owned());
    policy.handle(TapeEvent::Ended { work, failure, written_bytes: None, seconds: 1.0 })
}

/// Pushes a state and ends its copy; returns what is started then.
fn pushed(policy: &mut TapePolicy, bytes: u64) -> Vec<TapeAction> {
    let begun = push(policy, bytes);
    let (store, source, _) = copies(&begun)[0];
    assert_eq!(source, Location::Program);
    end(policy, store, true)
}

const fn at(level: usize, start: u64) -> Location {
    Location::Level { level, start }
}

const fn discard(level: usize, start: u64) -> TapeAction {
    TapeAction::Discard { level, extent: Extent { start, bytes: 10 } }
}

#[test]
fn write_waits_for_the_drain_of_the_state_it_evicts() {
    let mut policy = policy(vec![level(20, Growth::Ready), level(90, Growth::Ready)], Eviction::Fifo);
    let drain = copies(&pushed(&mut policy, 10))[0];
    assert_eq!((drain.1, drain.2), (at(0, 0), at(1, 0)));
    pushed(&mut policy, 10);
    assert_eq!(push(&mut policy, 10), [], "the cache is full, and nothing is drained");
    let after = copies(&end(&mut policy, drain.0, true));
    assert_eq!((after[0].1, after[0].2), (Location::Program, at(0, 0)), "the oldest has left");
    assert_eq!((after[1].1, after[1].2), (at(0, 10), at(1, 10)), "the next one is drained");
}

#[test]
fn nothing_leaves_before_all_memory_is_mapped() {
    let mapped = Growth::Mapped { chunk_bytes: 10 };
    let mut policy = policy(vec![level(20, mapped), level(90, Growth::Ready)], Eviction::Fifo);
    let extends = policy.start();
    assert!(matches!(extends[..], [TapeAction::Start { work: TapeWork::Extend { level: 0, to: 10 }, .. }]));
    assert_eq!(push(&mut policy, 10), [], "no memory yet");
    let begun = end(&mut policy, WorkId(0), true);
    let (store, _, target) = copies(&begun)[0];
    assert_eq!(target, at(0, 0));
    let is_extend = |action: &&TapeAction| matches!(action, TapeAction::Start { work: TapeWork::Extend { .. }, .. });
    let Some(TapeAction::Start { id: extend, .. }) = begun.iter().find(is_extend) else { panic!("{begun:?}") };
    let drain = copies(&end(&mut policy, store, true))[0].0;
    let _ = end(&mut policy, drain, true);
    assert_eq!(push(&mut policy, 10), [], "the state is drained, but the second chunk is not mapped");
    let begun = end(&mut policy, *extend, true);
    assert_eq!(copies(&begun)[0].2, at(0, 10), "the first place is still in use");
}

#[test]
fn consumed_states_leave_at_once_and_the_next_ones_come() {
    let mut policy = policy(vec![level(10, Growth::Ready), level(90, Growth::Ready)], Eviction::Fifo);
    let drain = copies(&pushed(&mut policy, 10))[0].0;
    let _ = push(&mut policy, 10);
    let store = copies(&end(&mut policy, drain, true))[0].0;
    let drain = copies(&end(&mut policy, store, true))[0].0;
    let give = copies(&policy.handle(TapeEvent::Pop { id: StateId(1) }))[0];
    assert_eq!((give.1, give.2), (at(0, 0), Location::Program));
    assert_eq!(copies(&end(&mut policy, give.0, true)), [], "the drain still reads its place");
    let fetch = copies(&end(&mut policy, drain, true))[0];
    assert_eq!((fetch.1, fetch.2), (at(1, 0), at(0, 0)));
    assert_eq!(policy.n_states(), 1);
}

/// A state that was dropped while it was fetched kept its file when the tape ended before the copy.
#[test]
fn a_tape_that_ends_starts_nothing_more_and_gives_up_the_places_of_states_that_left() {
    let mut policy = policy(vec![level(10, Growth::Ready), level(90, Growth::Ready)], Eviction::Fifo);
    let drain = copies(&pushed(&mut policy, 10))[0].0;
    let _ = end(&mut policy, drain, true);
    let drain = copies(&pushed(&mut policy, 10))[0].0;
    let _ = end(&mut policy, drain, true);
    assert_eq!(policy.handle(TapeEvent::Forget { id: StateId(1) })[..1], [discard(0, 0)]);
    let fetch = copies(&policy.handle(TapeEvent::Turn))[0];
    assert_eq!((fetch.1, fetch.2), (at(1, 0), at(0, 0)));
    assert_eq!(policy.handle(TapeEvent::Forget { id: StateId(0) }), [], "its copy is under way");
    assert!(policy.is_leaving());
    assert_eq!(policy.handle(TapeEvent::Close), []);
    assert_eq!(end(&mut policy, fetch.0, true), [discard(0, 0), discard(1, 0)]);
    assert!(!policy.is_leaving());
}

#[test]
fn state_that_is_not_there_in_time_is_given_from_the_level_that_has_it() {
    let mut policy = policy(vec![level(10, Growth::Ready), level(90, Growth::Ready)], Eviction::Fifo);
    let drain = copies(&pushed(&mut policy, 10))[0].0;
    let _ = push(&mut policy, 10);
    let store = copies(&end(&mut policy, drain, true))[0].0;
    let _ = end(&mut policy, store, true);
    let give = copies(&policy.handle(TapeEvent::Pop { id: StateId(0) }))[0];
    assert_eq!((give.1, give.2), (at(1, 0), Location::Program));
}

/// A state was given up with the device that could not be read any more, although the host had it.
#[test]
fn a_copy_that_cannot_be_read_is_given_up_for_the_one_below() {
    let mut policy = policy(vec![level(10, Growth::Ready), level(90, Growth::Ready)], Eviction::Fifo);
    let drain = copies(&pushed(&mut policy, 10))[0].0;
    let _ = end(&mut policy, drain, true);
    let give = copies(&policy.handle(TapeEvent::Pop { id: StateId(0) }))[0];
    assert_eq!(give.1, at(0, 0));
    let after = end(&mut policy, give.0, false);
    assert_eq!(replies(&after), [], "the call continues");
    let give = copies(&after)[0];
    assert_eq!((give.1, give.2), (at(1, 0), Location::Program));
    assert_eq!(replies(&end(&mut policy, give.0, true)), [Ok(StateId(0))]);
    assert_eq!(policy.n_states(), 0);
}

/// Three copies up that failed kept a state from ever being drained.
#[test]
fn states_that_cannot_come_nearer_can_still_be_kept() {
    let levels = vec![level(10, Growth::Ready), level(20, Growth::Ready), level(90, Growth::Ready)];
    let mut policy = policy(levels, Eviction::Fifo);
    let drain = copies(&pushed(&mut policy, 10))[0].0;
    let deeper = copies(&end(&mut policy, drain, true))[0].0;
    let drain = copies(&pushed(&mut policy, 10))[0].0;
    let _ = end(&mut policy, drain, true);
    let _ = policy.handle(TapeEvent::Forget { id: StateId(1) });
    let mut fetch = copies(&policy.handle(TapeEvent::Turn));
    for _ in 0..3 {
        assert_eq!((fetch[0].1, fetch[0].2), (at(1, 0), at(0, 0)));
        fetch = copies(&end(&mut policy, fetch[0].0, false));
    }
    assert_eq!(fetch, [], "it is given up");
    let _ = end(&mut policy, deeper, false);
    let drain = copies(&policy.handle(TapeEvent::Keep));
    assert_eq!((drain[0].1, drain[0].2), (at(1, 0), at(2, 10)));
    assert_eq!(replies(&end(&mut policy, drain[0].0, true)), [Ok(StateId(0))]);
}

#[test]
fn known_order_keeps_what_is_popped_next() {
    for (eviction, first) in [(Eviction::Fifo, 0), (Eviction::KnownOrder, 1)] {
        let mut policy = policy(vec![level(20, Growth::Ready), level(90, Growth::Ready)], eviction);
        let _ = policy.handle(TapeEvent::Announce(vec![StateId(0), StateId(2), StateId(1)]));
        for _ in 0..2 {
            let drain = copies(&pushed(&mut policy, 10))[0].0;
            let _ = end(&mut policy, drain, true);
        }
        let store = copies(&push(&mut policy, 10))[0];
        assert_eq!(store.2, at(0, 10 * first), "{eviction:?}");
    }
}

#[test]
fn states_go_to_the_next_level_where_copies_down_fail_three_times() {
    let mut policy = policy(vec![level(10, Growth::Ready), level(90, Growth::Ready)], Eviction::Fifo);
    let mut drains = copies(&pushed(&mut policy, 10));
    assert_eq!(push(&mut policy, 100), [TapeAction::Reply(Err(PlaceError::TooLarge { bytes: 100, largest: 90 }))]);
    let mut n_tried = 0;
    while let Some((drain, _, _)) = drains.first() {
        n_tried += 1;
        assert!(n_tried <= 3, "bounded attempts");
        drains = copies(&end(&mut policy, *drain, false));
    }
    let store = copies(&push(&mut policy, 10))[0];
    assert!(matches!(store.2, Location::Level { level: 1, .. }), "the next level takes what the first one cannot");
    assert_eq!(policy.n_states(), 2);
}

#[test]
fn last_level_that_is_full_is_an_error_and_not_a_wait() {
    let mut policy = policy(vec![level(10, Growth::Ready)], Eviction::Fifo);
    assert_eq!(replies(&pushed(&mut policy, 10)), [Ok(StateId(0))]);
    assert_eq!(replies(&push(&mut policy, 10)), [Err(PlaceError::Full { bytes: 10 })]);
    assert_eq!(policy.n_states(), 1);
}

#[test]
fn pages_are_touched_between_copies_and_registered_after_the_last() {
    let touching = Touching::Fixed(TouchMode::Sequential);
    let paged = Growth::Paged { touching, registration: Registration::Whole, ahead_bytes: u64::MAX };
    let mut policy = policy(vec![level(10, Growth::Ready), level(20 << 20, paged)], Eviction::Fifo);
    let touch = policy.start();
    assert!(matches!(touch[..], [TapeAction::Start { work: TapeWork::Touch { level: 1, .. }, .. }]));
    let drain = copies(&pushed(&mut policy, 10))[0].0;
    assert_eq!(end(&mut policy, WorkId(0), true), [], "no touching during a copy");
    let touch = end(&mut policy, drain, true);
    let [TapeAction::Start { id, work: TapeWork::Touch { to, .. } }] = touch[..] else { panic!("{touch:?}") };
    assert_eq!(to, 20 << 20);
    let pin = end(&mut policy, id, true);
    assert!(matches!(pin[..], [TapeAction::Start { work: TapeWork::Pin { level: 1, to }, .. }] if to == 20 << 20));
}
