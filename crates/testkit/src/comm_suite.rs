//! What every communicator must do. Each rank calls [`run`] with its own.

use recoup_core::{Comm, CommError};

/// Runs all checks, on any number of ranks; all ranks call it together.
///
/// # Panics
/// When the communicator breaks a promise of [`Comm`].
pub fn run(comm: &dyn Comm) {
    let lost = "no rank is lost in this suite";
    sum_is_in_rank_order(comm).expect(lost);
    min_and_max_are_over_all_ranks(comm).expect(lost);
    broadcast_comes_from_every_root(comm).expect(lost);
    gather_is_in_rank_order(comm).expect(lost);
    exchange_keeps_order_and_partners(comm).expect(lost);
    exchange_names_a_wrong_length(comm).expect(lost);
    dup_does_not_mix_with_its_parent(comm).expect(lost);
    comm.barrier().expect(lost);
}

/// Values whose sum depends on the order, so that any other order shows.
fn awkward(rank: usize) -> [f64; 2] {
    [[1e16, 1.0, -1e16, 3.0, 0.1][rank % 5], 0.1 * (rank as f64 + 1.0)]
}

fn sum_is_in_rank_order(comm: &dyn Comm) -> Result<(), CommError> {
    let expected = (1..comm.size()).map(awkward).fold(awkward(0), |sum, part| [sum[0] + part[0], sum[1] + part[1]]);
    for _ in 0..20 {
        let mut values = awkward(comm.rank());
        comm.sum(&mut values)?;
        assert_eq!(values.map(f64::to_bits), expected.map(f64::to_bits), "sum differs from the sum in rank order");
    }
    comm.sum(&mut [])
}

fn min_and_max_are_over_all_ranks(comm: &dyn Comm) -> Result<(), CommError> {
    let value = 7 - comm.rank() as i64;
    assert_eq!(comm.min(value)?, 8 - comm.size() as i64);
    assert_eq!(comm.max(value)?, 7);
    Ok(())
}

fn broadcast_comes_from_every_root(comm: &dyn Comm) -> Result<(), CommError> {
    for root in 0..comm.size() {
        let mut bytes = vec![comm.rank() as u8; comm.rank() + 1];
        comm.broadcast(root, &mut bytes)?;
        assert_eq!(bytes, vec![root as u8; root + 1]);
    }
    Ok(())
}

fn gather_is_in_rank_order(comm: &dyn Comm) -> Result<(), CommError> {
    let all = comm.gather(&vec![comm.rank() as u8; comm.rank()])?;
    let expected: Vec<Vec<u8>> = (0..comm.size()).map(|rank| vec![rank as u8; rank]).collect();
    assert_eq!(all, expected);
    Ok(())
}

fn exchange_keeps_order_and_partners(comm: &dyn Comm) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    for round in 0..5 {
        let own = [rank as f64, f64::from(round)];
        let (mut from_left, mut second) = ([-1.0; 2], [-1.0]);
        comm.exchange(&[(right, &own), (right, &[-2.5])], &mut [(left, &mut from_left), (left, &mut second)])?;
        assert_eq!((from_left, second), ([left as f64, f64::from(round)], [-2.5]));
    }
    comm.exchange(&[], &mut [])
}

fn exchange_names_a_wrong_length(comm: &dyn Comm) -> Result<(), CommError> {
    let own = comm.rank();
    let result = comm.exchange(&[(own, &[1.0, 2.0])], &mut [(own, &mut [0.0])]);
    assert_eq!(result, Err(CommError::Length { rank: own, expected: 1, found: 2 }));
    comm.barrier()
}

fn dup_does_not_mix_with_its_parent(comm: &dyn Comm) -> Result<(), CommError> {
    let (first, second) = (comm.dup()?, comm.dup()?);
    assert_eq!((first.rank(), first.size()), (comm.rank(), comm.size()));
    let (next, before) = ((comm.rank() + 1) % comm.size(), (comm.rank() + comm.size() - 1) % comm.size());
    if comm.size() > 1 {
        // Sent in one order, received in another: only the communicator tells the messages apart.
        first.exchange(&[(next, &[1.0])], &mut [])?;
        second.exchange(&[(next, &[2.0])], &mut [])?;
        comm.exchange(&[(next, &[0.0])], &mut [])?;
        let (mut a, mut b, mut c) = ([-1.0], [-1.0], [-1.0]);
        comm.exchange(&[], &mut [(before, &mut a)])?;
        second.exchange(&[], &mut [(before, &mut b)])?;
        first.exchange(&[], &mut [(before, &mut c)])?;
        assert_eq!((a, b, c), ([0.0], [2.0], [1.0]));
    }
    let nested = second.dup()?;
    assert_eq!(nested.min(comm.rank() as i64)?, 0);
    first.barrier()?;
    nested.barrier()
}
