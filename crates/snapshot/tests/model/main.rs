//! The zone table under every order of the steps of a few threads: a model checker takes them all,
//! and finds a read of memory that another thread may write.

mod modelled;
mod sync;
mod sys;
#[path = "../../src/table.rs"]
#[expect(dead_code, reason = "marks are made between writes, by one thread: no orders to try")]
mod table;

use loom::sync::Arc;
use loom::thread;

use modelled::{Modelled, ZONES};

/// Runs a model under all orders, and prints their number.
fn all_orders(name: &str, model: impl Fn() + Sync + Send + 'static) {
    orders(name, None, model);
}

/// Runs a model under all orders in which threads are stopped at most so often before they wait.
fn orders(name: &str, preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let orders = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&orders);
    let mut checker = loom::model::Builder::new();
    checker.preemption_bound = preemptions;
    checker.check(move || {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        model();
    });
    let orders = orders.load(std::sync::atomic::Ordering::Relaxed);
    println!("{name}: {orders} orders");
    assert!(orders > 1, "{name}: one order only");
}

#[test]
fn a_fetch_gives_frozen_values_whatever_a_writer_does() {
    all_orders("writer and fetch", || {
        let memory = Arc::new(Modelled::new());
        let copy = memory.freeze();
        let writer = Arc::clone(&memory);
        let writer = thread::spawn(move || (0..ZONES).for_each(|zone| writer.write(zone, 7)));
        for zone in 0..ZONES {
            assert_eq!(memory.fetch(copy, zone), Some(0));
            assert_eq!(memory.fetch(copy, zone), None, "a zone is given once");
        }
        writer.join().unwrap();
    });
}

#[test]
fn two_writers_of_one_zone_keep_one_duplicate() {
    all_orders("two writers", || {
        let memory = Arc::new(Modelled::new());
        let copy = memory.freeze();
        let second = Arc::clone(&memory);
        let second = thread::spawn(move || second.write_half(0, 2));
        memory.write_half(0, 1);
        second.join().unwrap();
        assert_eq!(memory.fetch(copy, 0), Some(0));
    });
}

#[test]
fn each_of_two_copies_has_the_values_of_its_moment() {
    all_orders("two copies", || {
        let memory = Arc::new(Modelled::new());
        let first = memory.freeze();
        let fetch = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || assert_eq!(memory.fetch(first, 0), Some(0)))
        };
        memory.write(0, 7);
        let second = memory.freeze();
        memory.write(0, 8);
        assert_eq!(memory.fetch(second, 0), Some(7));
        fetch.join().unwrap();
    });
}

#[test]
fn a_copy_may_end_while_a_writer_keeps_its_zones() {
    all_orders("writer and end", || {
        let memory = Arc::new(Modelled::new());
        let copy = memory.freeze();
        let writer = Arc::clone(&memory);
        let writer = thread::spawn(move || (0..ZONES).for_each(|zone| writer.write(zone, 7)));
        assert_eq!(memory.fetch(copy, 0), Some(0));
        memory.release(copy);
        writer.join().unwrap();
        // The next copy has the place of the first, and knows nothing of it.
        let next = memory.freeze();
        assert_eq!(next, copy);
        memory.write(1, 9);
        assert_eq!(memory.fetch(next, 1), Some(7));
        assert_eq!(memory.fetch(next, 0), Some(7));
    });
}
