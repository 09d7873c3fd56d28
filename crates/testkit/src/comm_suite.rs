//! The suite that every communicator must pass. Each rank calls [`run`] with its own.
#![expect(clippy::disallowed_methods, reason = "the suite of communicators")]

use recoup_core::{Comm, CommError, are_alike, collect_bytes, gather_unlike, hand_out_bytes, wrapping_sums};

/// Runs all checks, on any number of ranks; all ranks call it together.
///
/// # Panics
/// When the communicator breaks a promise of [`Comm`].
pub fn run(comm: &dyn Comm) {
    let lost = "no rank is lost in this suite";
    sum_is_rounded_once(comm).expect(lost);
    min_and_max_are_over_all_ranks(comm).expect(lost);
    broadcast_comes_from_every_root(comm).expect(lost);
    gather_is_in_rank_order(comm).expect(lost);
    exchange_keeps_order_and_partners(comm).expect(lost);
    exchange_names_a_wrong_length(comm).expect(lost);
    exchange_does_the_work_meanwhile_once(comm).expect(lost);
    bytes_of_any_length_arrive_in_the_order_asked(comm).expect(lost);
    bytes_come_into_room_that_is_there_or_are_refused(comm).expect(lost);
    all_ranks_exchange_bytes_with_all(comm).expect(lost);
    bytes_do_not_mix_with_values(comm).expect(lost);
    bytes_of_all_ranks_reach_rank_0_in_order_and_return(comm).expect(lost);
    numbers_are_added_and_values_compared_over_all_ranks(comm).expect(lost);
    dup_does_not_mix_with_its_parent(comm).expect(lost);
    comm.barrier().expect(lost);
}

/// Values whose sum depends on the order in which it is rounded.
fn awkward(rank: usize) -> [f64; 2] {
    [[1e16, 1.0, -1e16, 3.0, 0.1][rank % 5], 0.1 * (rank as f64 + 1.0)]
}

fn sum_is_rounded_once(comm: &dyn Comm) -> Result<(), CommError> {
    // Multiples of 2^-56 up to 1e16: as integers they are added without rounding.
    let scale = 2_f64.powi(56);
    let exact = |index: usize| (0..comm.size()).map(|rank| (awkward(rank)[index] * scale) as i128).sum::<i128>();
    let expected = [0, 1].map(|index| exact(index) as f64 / scale);
    for _ in 0..20 {
        let mut values = awkward(comm.rank());
        comm.sum(&mut values)?;
        assert_eq!(
            values.map(f64::to_bits),
            expected.map(f64::to_bits),
            "sum differs from the nearest to the exact one"
        );
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
    let rank = comm.rank();
    let size = comm.size();
    let left = (rank + size - 1) % size;
    let right = (rank + 1) % size;
    for round in 0..5 {
        let own = [rank as f64, f64::from(round)];
        let mut from_left = [-1.0; 2];
        let mut second = [-1.0];
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

/// More values than a transport sends at once unasked.
fn exchange_does_the_work_meanwhile_once(comm: &dyn Comm) -> Result<(), CommError> {
    let rank = comm.rank();
    let size = comm.size();
    let left = (rank + size - 1) % size;
    let right = (rank + 1) % size;
    for length in [1, 40_000] {
        let own = vec![rank as f64; length];
        let mut target = vec![-1.0; length];
        let mut times = 0;
        comm.exchange_while(&[(right, &own)], &mut [(left, &mut target)], &mut || times += 1)?;
        assert_eq!((times, target), (1, vec![left as f64; length]));
    }
    Ok(())
}

/// Any length, none and a long one included: more than a transport sends at once unasked.
fn bytes_of_any_length_arrive_in_the_order_asked(comm: &dyn Comm) -> Result<(), CommError> {
    let rank = comm.rank();
    let size = comm.size();
    let left = (rank + size - 1) % size;
    let right = (rank + 1) % size;
    for length in [0, 1, 7, 4096, 3_000_001] {
        let bytes_of = |rank: usize| -> Vec<u8> { (0..length).map(|k| (k % 251 + rank) as u8).collect() };
        let own = bytes_of(rank);
        let received = comm.exchange_bytes(&[(right, &own), (right, b"second"), (right, b"")], &[left, left, left])?;
        assert_eq!(received.len(), 3);
        assert!(received[0] == bytes_of(left), "{length} bytes from rank {left} are not what it sent");
        assert_eq!((received[1].as_slice(), received[2].as_slice()), (b"second".as_slice(), b"".as_slice()));
    }
    assert_eq!(comm.exchange_bytes(&[], &[])?, Vec::<Vec<u8>>::new());
    Ok(())
}

/// Other communicators than that of MPI have no calls for it, and copy.
fn bytes_come_into_room_that_is_there_or_are_refused(comm: &dyn Comm) -> Result<(), CommError> {
    let rank = comm.rank();
    let size = comm.size();
    let left = (rank + size - 1) % size;
    let right = (rank + 1) % size;
    for length in [0, 1, 4096, 3_000_000] {
        let own = vec![rank as u8; length + rank];
        let mut room = vec![u8::MAX; length + size];
        let lengths = comm.exchange_bytes_into(&[(right, &own)], &mut [(left, &mut room)])?;
        assert_eq!(lengths, [length + left]);
        let is_there = |(i, &byte): (usize, &u8)| byte == if i < length + left { left as u8 } else { u8::MAX };
        assert!(room.iter().enumerate().all(is_there), "{length} bytes from rank {left}");
        let found = length + 1;
        let wrong = CommError::Length { rank: left, expected: length, found };
        let refused = comm.exchange_bytes_into(&[(right, &vec![0; found])], &mut [(left, &mut room[..length])]);
        assert_eq!(refused, Err(wrong));
    }
    Ok(())
}

fn all_ranks_exchange_bytes_with_all(comm: &dyn Comm) -> Result<(), CommError> {
    let rank = comm.rank();
    let size = comm.size();
    let message = |from: usize, to: usize| vec![(16 * from + to) as u8; from + 3 * to];
    let messages: Vec<Vec<u8>> = (0..size).map(|to| message(rank, to)).collect();
    let sends: Vec<(usize, &[u8])> = messages.iter().enumerate().map(|(to, bytes)| (to, bytes.as_slice())).collect();
    let from: Vec<usize> = (0..size).rev().collect();
    let expected: Vec<Vec<u8>> = from.iter().map(|&from| message(from, rank)).collect();
    assert_eq!(comm.exchange_bytes(&sends, &from)?, expected);
    Ok(())
}

fn bytes_of_all_ranks_reach_rank_0_in_order_and_return(comm: &dyn Comm) -> Result<(), CommError> {
    for length in [0, 1, 1000] {
        let bytes_of = |rank: usize| vec![rank as u8; rank * length];
        let expected: Vec<Vec<u8>> = (0..comm.size()).map(bytes_of).collect();
        let found = collect_bytes(comm, &bytes_of(comm.rank()))?;
        let mine = hand_out_bytes(comm, found.as_deref().unwrap_or_default())?;
        assert_eq!(mine, bytes_of(comm.rank()), "handed out");
        assert_eq!(found, (comm.rank() == 0).then_some(expected));
    }
    Ok(())
}

fn numbers_are_added_and_values_compared_over_all_ranks(comm: &dyn Comm) -> Result<(), CommError> {
    let numbers = |rank: usize| [u64::MAX - rank as u64, rank as u64, (rank as u64) << 40];
    let add = |sums: [u64; 3], rank| std::array::from_fn(|index| numbers(rank)[index].wrapping_add(sums[index]));
    assert_eq!(wrapping_sums(comm, numbers(comm.rank()))?, (0..comm.size()).fold([0; 3], add));
    assert!(are_alike(comm, &"the same")?);
    for other in 0..comm.size() {
        let mine = usize::from(comm.rank() == other);
        assert_eq!(are_alike(comm, &mine)?, comm.size() == 1, "rank {other} has another value");
        let all: Vec<usize> = (0..comm.size()).map(|rank| usize::from(rank == other)).collect();
        assert_eq!(gather_unlike(comm, &mine)?, all);
    }
    Ok(())
}

fn bytes_do_not_mix_with_values(comm: &dyn Comm) -> Result<(), CommError> {
    let rank = comm.rank();
    let size = comm.size();
    if size == 1 {
        return Ok(());
    }
    let left = (rank + size - 1) % size;
    let right = (rank + 1) % size;
    comm.exchange(&[(right, &[1.5])], &mut [])?;
    let received = comm.exchange_bytes(&[(right, b"bytes")], &[left])?;
    let mut value = [0.0];
    comm.exchange(&[], &mut [(left, &mut value)])?;
    assert_eq!((received, value), (vec![b"bytes".to_vec()], [1.5]));
    Ok(())
}

fn dup_does_not_mix_with_its_parent(comm: &dyn Comm) -> Result<(), CommError> {
    let first = comm.dup()?;
    let second = comm.dup()?;
    assert_eq!((first.rank(), first.size()), (comm.rank(), comm.size()));
    let next = (comm.rank() + 1) % comm.size();
    let before = (comm.rank() + comm.size() - 1) % comm.size();
    if comm.size() > 1 {
        // Sent in one order, received in another: only the communicator tells the messages apart.
        first.exchange(&[(next, &[1.0])], &mut [])?;
        second.exchange(&[(next, &[2.0])], &mut [])?;
        comm.exchange(&[(next, &[0.0])], &mut [])?;
        let mut a = [-1.0];
        let mut b = [-1.0];
        let mut c = [-1.0];
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
