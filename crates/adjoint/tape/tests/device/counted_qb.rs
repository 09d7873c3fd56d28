//! QB for tests: beside the values of one device, for as long as a test wants it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use recoup_compress::{Qb, QbCuda};
use recoup_core::{
    Bound, Codec, CodecId, CodecResult, Context, DeviceFrame, DeviceParent, DeviceSnapshot, Values, ValuesMut,
};
use recoup_device::DeviceError;

/// QB as [`Qb`] is: on the device for values that are stored there, and on the host for others. It
/// counts both, and takes little memory of the device, which it gives back.
pub(crate) struct CountedQb {
    host: Qb,
    device: QbCuda,
    n_host: AtomicU64,
    n_held: AtomicU64,
}

impl CountedQb {
    pub(crate) fn open() -> Arc<Self> {
        Self::try_open().unwrap()
    }

    /// Opens the device, which may fail.
    pub(crate) fn try_open() -> Result<Arc<Self>, DeviceError> {
        let device = QbCuda::with_slices(0, 1)?;
        Ok(Arc::new(Self { host: Qb::default(), device, n_host: AtomicU64::new(0), n_held: AtomicU64::new(0) }))
    }

    /// Returns the states that were encoded here, and there.
    pub(crate) fn counts(&self) -> [u64; 2] {
        [&self.n_host, &self.n_held].map(|count| count.load(Ordering::Relaxed))
    }
}

impl Codec for CountedQb {
    fn id(&self) -> CodecId {
        self.host.id()
    }

    fn encode(&self, source: Values<'_>, bound: Bound, context: &Context, target: &mut Vec<u8>) -> CodecResult {
        self.n_host.fetch_add(1, Ordering::Relaxed);
        self.host.encode(source, bound, context, target)
    }

    fn decode(&self, source: &[u8], bound: Bound, context: &Context, target: ValuesMut<'_>) -> CodecResult<()> {
        self.host.decode(source, bound, context, target)
    }

    fn reaches(&self, values: &dyn DeviceSnapshot) -> bool {
        self.device.reaches(values)
    }

    fn encode_on_device(
        &self,
        source: &DeviceFrame<'_>,
        bound: Bound,
        context: &Context,
        target: &mut Vec<u8>,
    ) -> Option<CodecResult> {
        let encoded = self.device.encode_on_device(source, bound, context, target);
        self.n_held.fetch_add(u64::from(matches!(encoded, Some(Ok(_)))), Ordering::Relaxed);
        encoded
    }

    fn decode_on_device(
        &self,
        source: &[u8],
        bound: Bound,
        context: &Context,
        parent: Option<DeviceParent<'_>>,
        target: &mut dyn DeviceSnapshot,
        start: usize,
    ) -> Option<CodecResult<()>> {
        self.device.decode_on_device(source, bound, context, parent, target, start)
    }
}
