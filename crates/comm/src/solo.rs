//! One rank: every collective call is done before it begins.

use recoup_core::{Comm, CommError, ExactSum};

/// The communicator of a job of one rank.
#[derive(Clone, Copy, Debug, Default)]
pub struct Solo;

impl Comm for Solo {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn sum_exact_while(&self, _sums: &mut [ExactSum], work: &mut dyn FnMut()) -> Result<(), CommError> {
        work();
        Ok(())
    }

    fn min(&self, value: i64) -> Result<i64, CommError> {
        Ok(value)
    }

    fn broadcast(&self, _root: usize, _bytes: &mut Vec<u8>) -> Result<(), CommError> {
        Ok(())
    }

    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        Ok(vec![bytes.to_vec()])
    }

    fn exchange(&self, sends: &[(usize, &[f64])], receives: &mut [(usize, &mut [f64])]) -> Result<(), CommError> {
        for ((rank, values), (_, target)) in sends.iter().zip(receives) {
            if values.len() != target.len() {
                return Err(CommError::Length { rank: *rank, expected: target.len(), found: values.len() });
            }
            target.copy_from_slice(values);
        }
        Ok(())
    }

    fn exchange_bytes(&self, sends: &[(usize, &[u8])], from: &[usize]) -> Result<Vec<Vec<u8>>, CommError> {
        assert_eq!(sends.len(), from.len(), "the only rank receives what it sends");
        Ok(sends.iter().map(|(_, bytes)| bytes.to_vec()).collect())
    }

    fn barrier(&self) -> Result<(), CommError> {
        Ok(())
    }

    fn dup(&self) -> Result<Box<dyn Comm>, CommError> {
        Ok(Box::new(*self))
    }
}
