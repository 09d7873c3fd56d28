//! The interface of codecs: values to bytes and back, within a bound.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Bound, DeviceSnapshot, ElementType, ErrorKind, KindedError, Values, ValuesMut, short_number};

/// The use of a codec for an error bound.
#[derive(Clone, Copy, PartialEq)]
enum BoundUse {
    /// No use: every bit is stored, under any bound.
    None,
    /// Bytes are saved with a bound and without.
    Either,
    /// Little or nothing is saved for values that must not change.
    Needed,
}

/// Defines [`CodecId`] from one line per codec: its variant, its name in manifests and on the
/// command line, and its use for a bound.
macro_rules! codecs {
    ($($(#[doc = $doc:literal])+ $variant:ident => $name:literal, $bound:ident;)+) => {
        /// The codecs a manifest may name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum CodecId {$(
            $(#[doc = $doc])+
            #[serde(rename = $name)]
            $variant,
        )+}

        impl CodecId {
            /// All codecs this version of recoup knows, built or not.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name used in manifests and on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {$(
                    Self::$variant => $name,
                )+}
            }

            fn bound_use(self) -> BoundUse {
                match self {$(
                    Self::$variant => BoundUse::$bound,
                )+}
            }
        }
    };
}

codecs! {
    /// Little-endian values as they are.
    Raw => "raw", None;
    /// Byte shuffle and zstd.
    Zstd => "zstd", None;
    /// Pcodec; under a bound, on an integer lattice first.
    Pco => "pco", Either;
    /// zfp, accuracy or reversible mode.
    Zfp => "zfp", Needed;
    /// SZ3 (built with feature `sz3`).
    Sz3 => "sz3", Needed;
    /// Our own: quantised blocks, bounds proven for every value.
    Qb => "qb", Needed;
    /// Our own, for smooth grids: interpolated level by level, and entropy-coded.
    Pyramid => "pyramid", Needed;
    /// The runs of values that differ from the version before.
    Increment => "increment", None;
}

impl CodecId {
    /// Returns whether the codec is made for bounds and offers little or nothing for values that
    /// must not change.
    #[must_use]
    pub fn needs_bound(self) -> bool {
        self.bound_use() == BoundUse::Needed
    }

    /// Returns whether the codec can encode under a bound other than [`Bound::Lossless`].
    #[must_use]
    pub fn is_lossy(self) -> bool {
        self.bound_use() != BoundUse::None
    }

    /// Refuses a bound with a codec that loses nothing: whoever names both expects fewer bytes than
    /// there will be.
    ///
    /// # Errors
    /// [`CodecError::LosesNothing`].
    pub fn check_bound(self, bound: Bound) -> CodecResult<()> {
        if bound != Bound::Lossless && !self.is_lossy() {
            return Err(CodecError::LosesNothing { codec: self });
        }
        Ok(())
    }

    /// Refuses a codec that is made for bounds where no bit may change.
    ///
    /// # Errors
    /// [`CodecError::NeedsBound`].
    pub fn check_exact(self) -> CodecResult<()> {
        if self.needs_bound() { Err(CodecError::NeedsBound { codec: self }) } else { Ok(()) }
    }

    /// Reads the name of a codec that a user may choose: one that codes a version on its own.
    ///
    /// # Errors
    /// [`CodecError::Unknown`], with the names, and [`CodecError::OfIncrements`].
    pub fn chosen(text: &str) -> CodecResult<Self> {
        match text.parse()? {
            Self::Increment => Err(CodecError::OfIncrements),
            id => Ok(id),
        }
    }

    /// The codecs that a user may choose for versions of which no bit may change, as a sentence
    /// lists them.
    #[must_use]
    pub fn exact_names() -> String {
        Self::names(|id| id != Self::Increment && !id.needs_bound())
    }

    /// The names of those that `fits` picks.
    fn names(fits: impl Fn(Self) -> bool) -> String {
        let names: Vec<_> = Self::ALL.into_iter().filter(|&id| fits(id)).map(Self::name).collect();
        match names.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            _ => names.concat(),
        }
    }
}

impl fmt::Display for CodecId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CodecId {
    type Err = CodecError;

    fn from_str(text: &str) -> CodecResult<Self> {
        Self::ALL.into_iter().find(|id| id.name() == text).ok_or_else(|| CodecError::Unknown { name: text.to_owned() })
    }
}

/// The surroundings of the values to be coded: their arrangement, and the version before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Context<'a> {
    /// Extents of the values, fastest first; their product is the number of values. `[n, 1, 1]`
    /// when there is no grid.
    pub dims: [usize; 3],
    /// Interleaved unknowns per point; 1 for a plain vector.
    pub stride: usize,
    /// The relation of the frame to the version before.
    pub chain: Chain<'a>,
    /// Bytes per second at which what is encoded will be written, where a codec shall weigh its own
    /// time against fewer bytes; `None` where bytes alone count.
    pub bandwidth: Option<f64>,
    /// Threads a codec may work on, the caller's among them; what it writes does not depend on
    /// them.
    pub threads: usize,
}

impl<'a> Context<'a> {
    /// `n` values in a row, alone.
    #[must_use]
    pub fn flat(n: usize) -> Self {
        Self::grid([n, 1, 1])
    }

    /// Values on a grid, alone.
    #[must_use]
    pub fn grid(dims: [usize; 3]) -> Self {
        Self { dims, stride: 1, chain: Chain::Alone, bandwidth: None, threads: 1 }
    }

    /// Returns the same values as a link of a chain.
    #[must_use]
    pub fn chained(self, chain: Chain<'a>) -> Self {
        Self { chain, ..self }
    }

    /// A sample from the middle of the values: at least `values` of them, or all, as a box of the
    /// same grid. Whole slices of the slowest direction, beginning with the first unknown of a
    /// point; where they are, and their extents.
    #[must_use]
    pub fn middle(&self, values: usize) -> (Range<usize>, [usize; 3]) {
        let slowest = self.dims.iter().rposition(|&extent| extent > 1).unwrap_or(0);
        let slice = self.dims[..slowest].iter().product::<usize>().max(1);
        let mut taken = self.dims;
        taken[slowest] = values.div_ceil(slice).min(self.dims[slowest]);
        let start = (self.dims[slowest] - taken[slowest]) / 2 * slice;
        let start = start - start % self.stride.max(1);
        (start..start + taken[slowest] * slice, taken)
    }
}

/// The relation of a frame to the version before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Chain<'a> {
    /// The frame is coded alone, and no other frame will be coded against it.
    Alone,
    /// The frame is coded alone; later frames may be coded against it.
    Start,
    /// The frame may be coded against its parent, and later frames against the frame.
    Follow(Parent<'a>),
    /// The frame differs from its parent where that is told, and nowhere else.
    /// [`CodecId::Increment`] needs no more; other codecs take the frame as the first of a chain.
    Changed(KnownChanges<'a>),
}

impl<'a> Chain<'a> {
    /// The frame coded against, if any.
    #[must_use]
    pub fn parent(&self) -> Option<Parent<'a>> {
        match self {
            Self::Follow(parent) => Some(*parent),
            Self::Alone | Self::Start | Self::Changed(_) => None,
        }
    }
}

/// The changes of a frame since its parent, whose values were not kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownChanges<'a> {
    /// Runs of values that cover every change: ascending, not empty, and at least one value apart.
    pub runs: &'a [Range<usize>],
    /// The first 16 bytes of the BLAKE3 hash of the parent's payload.
    pub hash: [u8; 16],
    /// The values of the runs are compressed where that takes fewer bytes.
    pub packs: bool,
}

/// The frame of the version before: what a decoder gave back, which encoder and decoder both have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parent<'a> {
    /// The decoded values, as many and of the same type as those to be coded.
    pub values: Values<'a>,
    /// The first 16 bytes of the BLAKE3 hash of its payload: two frames that differ in one bit are
    /// told apart.
    pub hash: [u8; 16],
}

/// A frame of values that are stored elsewhere: as many as the extents of its [`Context`] multiply
/// to. Its parent, which is stored there too, takes the place of one in [`Context::chain`].
#[derive(Clone, Copy, Debug)]
pub struct DeviceFrame<'a> {
    /// The variable.
    pub values: &'a dyn DeviceSnapshot,
    /// The first value of the frame.
    pub start: usize,
    /// The same frame of the version before, where this one may be coded against it.
    pub parent: Option<DeviceParent<'a>>,
}

/// The frame of the version before, at the same place of its variable; see [`Parent`].
#[derive(Clone, Copy, Debug)]
pub struct DeviceParent<'a> {
    /// The decoded values of the whole variable.
    pub values: &'a dyn DeviceSnapshot,
    /// The first 16 bytes of the BLAKE3 hash of the frame's payload.
    pub hash: [u8; 16],
}

/// One HDF5 filter of the pipeline that opens a payload, as registered with the HDF Group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Registered filter number.
    pub id: u32,
    /// The filter's client data; the same for all frames of one dataset.
    pub values: Vec<u32>,
}

/// An encoder's account of its payload.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    /// The bound the payload was coded under, which the decoder is to be given: the one asked for,
    /// or the absolute one it came down to for this source.
    pub bound: Bound,
    /// The largest `|x' - x|` over finite values; 0 when lossless.
    pub achieved_error: f64,
    /// The payload is raw little-endian values (the codec could not hold some value within the
    /// bound, or would have grown them): decode it as [`CodecId::Raw`].
    pub stored_raw: bool,
    /// The HDF5 filters the values went through, in the order applied when writing, where
    /// registered ones exist; empty when raw values, or when no registered filter opens the
    /// payload.
    pub filters: Vec<Filter>,
    /// The payload was coded against the parent of [`Context::chain`] and cannot be decoded without
    /// it.
    pub follows: bool,
}

impl Encoded {
    /// Coded by itself under `bound`, which is also the best known of its error; no filter opens
    /// it.
    #[must_use]
    pub fn under(bound: Bound) -> Self {
        Self { bound, achieved_error: bound.value(), stored_raw: false, filters: Vec::new(), follows: false }
    }
}

/// The result of a call of a codec.
pub type CodecResult<T = Encoded> = Result<T, CodecError>;

/// A codec: pure, stateless, the same bytes for the same input on every machine.
pub trait Codec: Send + Sync {
    /// The identifier of the codec.
    fn id(&self) -> CodecId;

    /// Returns whether the codec ever codes a frame against the one before. If not, that frame need
    /// not be kept for it.
    fn can_follow(&self) -> bool {
        false
    }

    /// Appends the encoded `source` to `target`, which is cleared first.
    ///
    /// Holds `bound` for every value. A codec without a lossy mode stores exactly under any bound.
    ///
    /// # Errors
    /// [`CodecError::Bound`] for a bound that is none, [`CodecError::Shape`] when `context.dims`
    /// does not multiply to the number of values, [`CodecError::Element`] for an unsupported type,
    /// [`CodecError::Foreign`] when the library underneath refuses.
    fn encode(&self, source: Values<'_>, bound: Bound, context: &Context, target: &mut Vec<u8>) -> CodecResult;

    /// Returns whether this codec encodes and decodes where `values` rest: frames are fetched for
    /// any other codec, and what it decodes is put there.
    fn reaches(&self, _values: &dyn DeviceSnapshot) -> bool {
        false
    }

    /// Encodes a frame where its values are stored: the payload [`Codec::encode`] makes of them.
    /// [`Context::chain`] says whether the frame is in a chain; its parent is that of the source.
    /// `None` where this codec does not reach the place, or has no way to encode such a frame
    /// there; the caller fetches the values then.
    ///
    /// # Errors
    /// Those of [`Codec::encode`].
    fn encode_on_device(
        &self,
        _source: &DeviceFrame<'_>,
        _bound: Bound,
        _context: &Context,
        _target: &mut Vec<u8>,
    ) -> Option<CodecResult> {
        None
    }

    /// Decodes a payload to where values are stored, from `start` on; `parent` is that of
    /// [`DeviceFrame`]. `None` where this codec does not reach the place; the caller decodes here,
    /// and puts the values there.
    ///
    /// # Errors
    /// Those of [`Codec::decode`].
    fn decode_on_device(
        &self,
        _source: &[u8],
        _bound: Bound,
        _context: &Context,
        _parent: Option<DeviceParent<'_>>,
        _target: &mut dyn DeviceSnapshot,
        _start: usize,
    ) -> Option<CodecResult<()>> {
        None
    }

    /// Fills `target` from the payload in `source`; `bound` and `context` are [`Encoded::bound`]
    /// and what `encode` was given.
    ///
    /// Never panics and never takes more memory than the input earned, whatever `source` holds.
    ///
    /// # Errors
    /// [`CodecError::Damaged`] when the payload is not what `encode` writes for this many values.
    fn decode(&self, source: &[u8], bound: Bound, context: &Context, target: ValuesMut<'_>) -> CodecResult<()>;
}

/// The errors of codecs.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CodecError {
    /// No codec of this name.
    #[error("unknown codec {name}: expected {}", CodecId::names(|_| true))]
    Unknown {
        /// The name given.
        name: String,
    },
    /// The codec exists but is not in this build.
    #[error("codec {codec} is not in this build: rebuild with feature {feature}")]
    NotBuilt {
        /// The codec.
        codec: CodecId,
        /// The cargo feature that adds it.
        feature: &'static str,
    },
    /// The codec that increments choose where a version follows another.
    #[error("codec increment is chosen by the option increments: name the codec of versions that stand alone")]
    OfIncrements,
    /// A bound for a codec that stores every bit.
    #[error("codec {codec} loses nothing: leave the bound out, or choose a codec that takes one, such as qb")]
    LosesNothing {
        /// The codec.
        codec: CodecId,
    },
    /// A codec for bounds, for values that must not change.
    #[error(
        "codec {codec} saves bytes under an error bound only: lossless and exact versions take {}",
        CodecId::exact_names()
    )]
    NeedsBound {
        /// The codec.
        codec: CodecId,
    },
    /// The bound is negative, NaN or infinite.
    #[error("error bound {}: expected a finite number that is not negative", short_number(*.value))]
    Bound {
        /// The bound given.
        value: f64,
    },
    /// The extents do not multiply to the number of values.
    #[error("extents multiply to {expected} values, {found} found")]
    Shape {
        /// Product of the extents.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// The codec does not take this element type.
    #[error("codec {codec} does not take {element} values")]
    Element {
        /// The codec.
        codec: CodecId,
        /// The type given.
        element: ElementType,
    },
    /// The payload was coded against another frame, which the decoder was not given.
    #[error("codec {codec}: coded against a parent frame that is not the one given")]
    Parent {
        /// The codec.
        codec: CodecId,
    },
    /// Some blocks of the payload are not what the encoder wrote; all others were decoded.
    #[error("codec {codec}: damaged payload, {} of {total} blocks, the first is {}", blocks.len(), blocks[0])]
    Blocks {
        /// The codec.
        codec: CodecId,
        /// The damaged blocks, ascending; at least one.
        blocks: Vec<usize>,
        /// Blocks of the payload.
        total: usize,
    },
    /// The payload is not what the encoder writes.
    #[error("codec {codec}: damaged payload, {what}")]
    Damaged {
        /// The codec.
        codec: CodecId,
        /// The part that does not fit.
        what: &'static str,
    },
    /// The library underneath refused.
    #[error("codec {codec}: {message}")]
    Foreign {
        /// The codec.
        codec: CodecId,
        /// The library's own words.
        message: String,
    },
}

impl KindedError for CodecError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Parent { .. } | Self::Blocks { .. } | Self::Damaged { .. } => ErrorKind::Damaged,
            _ => ErrorKind::Codec,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_has_one_name_for_manifests_command_line_and_messages() {
        for id in CodecId::ALL {
            assert_eq!(id.name().parse(), Ok(id));
            assert_eq!(serde_json::to_string(&id).unwrap(), format!("{:?}", id.name()));
        }
        let error = "lz4".parse::<CodecId>().unwrap_err().to_string();
        assert!(error.starts_with("unknown codec lz4: expected raw, zstd, pco, zfp"), "{error}");
        assert!(error.ends_with(" or increment"), "{error}");
    }

    /// The program refused pairs that C took, and Python had words of its own.
    #[test]
    fn every_codec_takes_a_bound_or_loses_nothing_and_never_neither() {
        for id in CodecId::ALL {
            assert!(id.check_bound(Bound::Lossless).is_ok());
            let takes_bound = id.check_bound(Bound::Absolute(1e-3)).is_ok();
            assert!(takes_bound || id.check_exact().is_ok(), "{id}");
        }
        assert_eq!(CodecId::chosen("increment"), Err(CodecError::OfIncrements));
        let refused = CodecId::Zstd.check_bound(Bound::Range(1e-3)).unwrap_err().to_string();
        assert!(refused.starts_with("codec zstd loses nothing"), "{refused}");
    }

    #[test]
    fn a_sample_is_a_box_of_the_grid_inside_the_values() {
        let shapes = [
            ([0, 1, 1], 1),
            ([100, 1, 1], 1),
            ([1 << 20, 1, 1], 3),
            ([100, 100, 301], 1),
            ([64, 64, 64], 1),
            ([50_000, 2, 1], 1),
        ];
        for (dims, stride) in shapes {
            let n: usize = dims.iter().product();
            for wanted in [1, n / 8, n, 10 * n] {
                let (range, taken) = Context { stride, ..Context::grid(dims) }.middle(wanted);
                assert_eq!(range.len(), taken.iter().product::<usize>(), "{dims:?}");
                assert!(range.end <= n && range.start % stride == 0, "{dims:?}");
                assert!(range.len() >= wanted.min(n), "{dims:?}");
            }
        }
    }
}
