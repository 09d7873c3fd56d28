//! Values that are stored elsewhere, in a place made for tests: it counts calls, fails the call it
//! is told to fail, and can be lost.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use recoup_core::{
    DeviceSnapshot, DeviceValues, DeviceValuesError, DeviceValuesErrorKind, ElementType, Values, ValuesMut,
};

use crate::values::{bytes_of, fill};

/// A place for values, shared by all that are stored there.
#[derive(Debug, Default)]
pub struct TestDevice {
    calls: AtomicU64,
    fail_at: AtomicU64,
    is_lost: AtomicBool,
    /// The name of the last call that was made to fail.
    failed: Mutex<Option<&'static str>>,
}

impl TestDevice {
    /// Returns the number of calls so far.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Returns the name of the call that was made to fail last, and forgets it.
    pub fn take_failed(&self) -> Option<&'static str> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Lets one call fail, counted from the first of all; 0 for none.
    pub fn fail_at(&self, call: u64) {
        self.fail_at.store(call, Ordering::SeqCst);
    }

    /// Loses the place: every later call fails.
    pub fn lose(&self) {
        self.is_lost.store(true, Ordering::SeqCst);
    }

    /// Counts a call.
    fn call(&self, name: &'static str, kind: DeviceValuesErrorKind) -> Result<(), DeviceValuesError> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if self.is_lost.load(Ordering::SeqCst) {
            return Err(DeviceValuesError {
                message: format!("{name}: the place is lost"),
                kind: DeviceValuesErrorKind::Lost,
            });
        }
        if call == self.fail_at.load(Ordering::SeqCst) {
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
            return Err(DeviceValuesError { message: format!("{name}: made to fail"), kind });
        }
        Ok(())
    }
}

/// Values that are stored in an [`TestDevice`]. A frozen copy shares them until they change.
#[derive(Debug)]
pub struct TestDeviceVec {
    place: Arc<TestDevice>,
    element: ElementType,
    bytes: Mutex<Arc<Vec<u8>>>,
}

impl TestDeviceVec {
    /// Makes a copy of `values` in a place.
    pub fn new(place: &Arc<TestDevice>, values: Values<'_>) -> Self {
        let bytes = Mutex::new(Arc::new(bytes_of(values)));
        Self { place: Arc::clone(place), element: values.element(), bytes }
    }

    /// Overwrites the values as their owner does, which copies made before do not see.
    ///
    /// # Panics
    /// For values of another type or number.
    pub fn set(&self, values: Values<'_>) {
        let bytes = bytes_of(values);
        let mut own = self.bytes();
        assert!(values.element() == self.element && bytes.len() == own.len(), "values of the same shape");
        *own = Arc::new(bytes);
    }

    /// Returns the values as little-endian bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.bytes().to_vec()
    }

    fn bytes(&self) -> MutexGuard<'_, Arc<Vec<u8>>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the values, the last of them repeated until there are `padded_len`.
    fn padded(&self, padded_len: usize) -> Arc<Vec<u8>> {
        let own = Arc::clone(&self.bytes());
        let size = self.element.size();
        assert!(padded_len * size >= own.len(), "a copy has no fewer values than its source");
        let Some(last) = own.len().checked_sub(size).filter(|_| own.len() < padded_len * size) else { return own };
        let padding = own[last..].iter().cycle().take(padded_len * size - own.len());
        Arc::new(own.iter().chain(padding).copied().collect())
    }

    fn copy(&self, bytes: Arc<Vec<u8>>) -> Box<dyn DeviceSnapshot> {
        Box::new(TestDeviceCopy { place: Arc::clone(&self.place), element: self.element, bytes })
    }
}

impl DeviceValues for TestDeviceVec {
    fn element(&self) -> ElementType {
        self.element
    }

    fn len(&self) -> usize {
        self.bytes().len() / self.element.size()
    }

    fn snapshot(
        &self,
        padded_len: usize,
        _earlier: Option<Box<dyn DeviceSnapshot>>,
    ) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError> {
        self.place.call("hold", DeviceValuesErrorKind::NoRoom)?;
        Ok(self.copy(self.padded(padded_len)))
    }

    fn alloc(&self, padded_len: usize) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError> {
        self.place.call("room", DeviceValuesErrorKind::NoRoom)?;
        Ok(self.copy(Arc::new(vec![0xA5; padded_len * self.element.size()])))
    }

    fn overwrite(&mut self, held: &dyn DeviceSnapshot) -> Result<(), DeviceValuesError> {
        self.place.call("overwrite", DeviceValuesErrorKind::Failed)?;
        let Some(held) = held.as_any().downcast_ref::<TestDeviceCopy>() else {
            return Err(DeviceValuesError {
                message: "values of another place".to_owned(),
                kind: DeviceValuesErrorKind::Failed,
            });
        };
        let mut own = self.bytes();
        *own = Arc::new(held.bytes[..own.len()].to_vec());
        Ok(())
    }
}

/// A frozen copy of an [`TestDeviceVec`].
#[derive(Debug)]
pub struct TestDeviceCopy {
    place: Arc<TestDevice>,
    element: ElementType,
    bytes: Arc<Vec<u8>>,
}

impl TestDeviceCopy {
    /// Returns the values as little-endian bytes, to a codec that knows the place.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Overwrites values from `start` on, as a codec does that knows the place.
    pub fn set(&mut self, start: usize, source: Values<'_>) {
        let source = bytes_of(source);
        let start = start * self.element.size();
        Arc::make_mut(&mut self.bytes)[start..start + source.len()].copy_from_slice(&source);
    }
}

impl DeviceSnapshot for TestDeviceCopy {
    fn element(&self) -> ElementType {
        self.element
    }

    fn len(&self) -> usize {
        self.bytes.len() / self.element.size()
    }

    fn fetch(&self, start: usize, target: ValuesMut<'_>) -> Result<(), DeviceValuesError> {
        self.place.call("fetch", DeviceValuesErrorKind::Failed)?;
        fill(&self.bytes[start * self.element.size()..], target);
        Ok(())
    }

    fn put(&mut self, start: usize, source: Values<'_>) -> Result<(), DeviceValuesError> {
        self.place.call("put", DeviceValuesErrorKind::Failed)?;
        self.set(start, source);
        Ok(())
    }

    fn is_alike(&self, other: &dyn DeviceSnapshot) -> bool {
        let other = other.as_any().downcast_ref::<Self>();
        other.is_some_and(|other| {
            Arc::ptr_eq(&self.place, &other.place)
                && self.element == other.element
                && self.bytes.len() == other.bytes.len()
        })
    }

    fn alloc(&self) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError> {
        self.place.call("room", DeviceValuesErrorKind::NoRoom)?;
        let bytes = Arc::new(vec![0xA5; self.bytes.len()]);
        Ok(Box::new(Self { place: Arc::clone(&self.place), element: self.element, bytes }))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
