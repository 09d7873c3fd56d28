//! Tiers take the fast road of their stores: ranks that begin in any order, and drafts that know
//! their last variable.

use std::sync::Arc;

use recoup_cache::{Tiers, WhenBusy};
use recoup_core::{NextBegin, Store, Tier, Tiered};
use recoup_testkit::crashing_store::{Crash, CrashingStore};
use recoup_testkit::decorator_suite::Recorder;
use recoup_testkit::store_suite::SampleVersion;

fn row(fast: Arc<dyn Store>, slow: Arc<dyn Store>) -> Tiers {
    let tier = |name: &str, store| Tier { name: name.to_owned(), store, every: 1, keep: 1, max_bytes: None };
    Tiers::new(vec![tier("fast", fast), tier("slow", slow)], 0)
}

/// They used to answer for their stores, so that every version through tiers was written in more
/// pieces and steps.
#[test]
fn every_tier_learns_which_variable_is_the_last() {
    for is_behind in [false, true] {
        let fast = Recorder::new();
        let slow = Recorder::new();
        let tiers = row(Arc::new(fast.clone()), Arc::new(slow.clone()));
        let tiers = if is_behind { tiers.behind(WhenBusy::Wait) } else { tiers };
        assert_eq!(SampleVersion::new(1, 1).publish(&tiers).unwrap(), NextBegin::AnyOrder);
        tiers.finish();
        assert!(fast.was_asked("last write") && slow.was_asked("last write"), "behind: {is_behind}");
    }
}

/// A version counts if any tier has it. The first tier may then hold what a failure left there,
/// which rank 0 clears.
#[test]
fn ranks_begin_in_order_in_a_tier_that_lacks_the_version_before() {
    // The store is asked for its versions, and then refuses to begin.
    let fast = Arc::new(CrashingStore::new(Recorder::new(), Crash::At(1)));
    let tiers = row(fast, Arc::new(Recorder::new()));
    assert_eq!(SampleVersion::new(1, 1).publish(&tiers).unwrap(), NextBegin::RankZeroFirst);
    assert_eq!(SampleVersion::new(2, 1).publish(&tiers).unwrap(), NextBegin::AnyOrder);
}
