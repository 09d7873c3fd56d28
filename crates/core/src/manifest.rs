//! The manifest: the list of frames that make a version, written last.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    Bound, BoundRule, CodecId, Distribution, ElementType, Fingerprint, FrameRecord, Measured, Prediction, Resume, Role,
    Scheme, Storage,
};

/// Version of the on-disk format of a version whose manifest is one text; see FORMAT.md.
pub const FORMAT_VERSION: u32 = 1;

/// Version of the on-disk format of a version whose manifest is in parts, one in each file.
pub const PARTS_FORMAT_VERSION: u32 = 2;

/// The contents of a version. FORMAT.md states every field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the format: 1, or 2 where the manifest is in parts; a newer one is refused by
    /// name.
    pub format: u32,
    /// Name of the run.
    pub name: String,
    /// The version: the iteration it was taken at.
    pub version: u64,
    /// Ranks that wrote it.
    pub ranks: usize,
    /// The problem it belongs to; `None` when the session was given no operator.
    pub fingerprint: Option<Fingerprint>,
    /// Nonzeros of A, where a solver that names its method saved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonzeros: Option<u64>,
    /// The method that saved it, where it says its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The scheme it was saved by.
    pub scheme: Scheme,
    /// The most faithful resume it holds enough for.
    pub resume: Resume,
    /// The rule behind the bound of the iterate.
    pub rule: BoundRule,
    /// The residual, before and after.
    pub residual: ResidualRecord,
    /// The residuals of the columns of a block, in order; empty where the problem has one
    /// right-hand side. Of a block, `residual` is that of the column with the most left to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ResidualRecord>,
    /// The system of the run it belongs to, where the run solves one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<SystemRecord>,
    /// Extra iterations that a recovery from it was expected to cost when it was saved; `None`
    /// where that was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_iterations_predicted: Option<Prediction>,
    /// The costs the run had measured when it was saved; `None` where its policy does not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// The variables of all ranks.
    pub variables: Vec<VariableRecord>,
    /// The frames of all ranks: by rank, then variable, then run.
    pub frames: Vec<FrameRecord>,
    /// The files of the version.
    pub files: Vec<FileRecord>,
}

impl Manifest {
    /// Makes the manifest of a version without variables, saved exactly.
    #[must_use]
    pub fn new(name: &str, version: u64, ranks: usize) -> Self {
        Self {
            format: FORMAT_VERSION,
            name: name.to_owned(),
            version,
            ranks,
            fingerprint: None,
            nonzeros: None,
            method: None,
            scheme: Scheme::Exact,
            resume: Resume::Exact,
            rule: BoundRule::Fixed(Bound::Lossless),
            residual: ResidualRecord::default(),
            columns: Vec::new(),
            system: None,
            extra_iterations_predicted: None,
            measured: None,
            variables: Vec::new(),
            frames: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Values' bytes before encoding.
    #[must_use]
    pub fn raw_bytes(&self) -> u64 {
        self.variables.iter().map(|v| v.len * v.element.size() as u64).sum()
    }

    /// Bytes of all payloads.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        self.frames.iter().map(|f| f.payload_bytes).sum()
    }

    /// The versions some frame is coded against, ascending; none when every frame stands alone.
    /// Parts that are not here say so of theirs.
    #[must_use]
    pub fn parents(&self) -> BTreeSet<u64> {
        let of_parts = self.files.iter().filter_map(|file| file.part.as_ref()).flat_map(|part| &part.parents);
        self.frames.iter().filter_map(FrameRecord::parent).chain(of_parts.copied()).collect()
    }

    /// Returns whether this is the top of a manifest whose parts are not here, and which says what
    /// is in each.
    #[must_use]
    pub fn is_top(&self) -> bool {
        let is_told = |file: &FileRecord| file.part.as_ref().is_none_or(|part| part.rows.is_some());
        self.format == PARTS_FORMAT_VERSION && self.variables.is_empty() && self.files.iter().all(is_told)
    }

    /// Raw bytes divided by encoded bytes, above 1 is good.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.raw_bytes() as f64 / self.payload_bytes().max(1) as f64
    }
}

/// One system of a run that solves many, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemRecord {
    /// Its number, as the program counts them.
    pub index: u64,
    /// Version number of its start: a version's number less this is the iteration of the solve.
    pub start: u64,
}

/// Norms stored with a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResidualRecord {
    /// `||r||` as the method knew it.
    pub norm: f64,
    /// `||b||`.
    pub rhs_norm: f64,
    /// `||b - A x||` of what was staged, where it was computed.
    pub true_norm: Option<f64>,
    /// `||b - A x'||` of what was encoded, where it was computed.
    pub verified_norm: Option<f64>,
    /// Encodings tried until the verified residual was small enough.
    pub tries: u32,
    /// The solve had met its tolerance, and the iterate is here bit for bit: the version holds the
    /// solution.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_converged: bool,
}

/// One variable of one rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariableRecord {
    /// Name of the variable.
    pub name: String,
    /// The rank that owns it.
    pub rank: usize,
    /// Role in the solver.
    pub role: Role,
    /// The type of its elements.
    pub element: ElementType,
    /// Elements on this rank.
    pub len: u64,
    /// Extents of the grid of this rank's elements, fastest first.
    pub dims: [usize; 3],
    /// Interleaved unknowns per point.
    pub stride: usize,
    /// The two unknowns of a point are the real and the imaginary part of a complex number.
    #[serde(default, rename = "complex", skip_serializing_if = "std::ops::Not::not")]
    pub is_complex: bool,
    /// Extents of one frame, fastest first; a frame's payload always holds their product.
    pub frame_dims: [usize; 3],
    /// Distribution over the ranks.
    pub distribution: Distribution,
    /// Column of the right-hand side it belongs to, from 0, where the problem has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

impl VariableRecord {
    /// Makes the record of a rank's own `len` values, in one frame.
    #[must_use]
    pub fn new(name: &str, rank: usize, role: Role, element: ElementType, len: usize) -> Self {
        Self {
            name: name.to_owned(),
            rank,
            role,
            element,
            len: len as u64,
            dims: [len, 1, 1],
            stride: 1,
            is_complex: false,
            frame_dims: [len, 1, 1],
            distribution: Distribution::RankLocal,
            column: None,
        }
    }

    /// Makes the record of frame `run` of this variable, whose payload is the memory of its values.
    #[must_use]
    pub fn raw_frame(&self, run: usize, payload: &[u8], crc32c: u32) -> FrameRecord {
        let frame_len = self.frame_dims.iter().product::<usize>() as u64;
        let start = run as u64 * frame_len;
        FrameRecord {
            variable: self.name.clone(),
            rank: self.rank,
            run,
            start,
            len: (self.len - start).min(frame_len),
            codec: CodecId::Raw,
            storage: Storage::Coded,
            bound: Bound::Lossless,
            achieved_error: 0.0,
            payload_bytes: payload.len() as u64,
            crc32c,
            parents: Vec::new(),
            place: None,
        }
    }
}

/// One file of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Name of the file inside the version's directory.
    pub name: String,
    /// Length of the file.
    pub bytes: u64,
    /// CRC-32C of all bytes that belong to no frame, in file order.
    pub structure_crc32c: u32,
    /// Variables that other readers see as encoded bytes only, because no registered filter opens
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opaque: Vec<String>,
    /// The part of the manifest that is in the file, where it is in parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartRecord>,
}

impl FileRecord {
    /// Makes the record of a file without encoded bytes.
    #[must_use]
    pub fn new(name: impl Into<String>, bytes: u64, structure_crc32c: u32) -> Self {
        Self { name: name.into(), bytes, structure_crc32c, opaque: Vec::new(), part: None }
    }
}

/// A part of a manifest in the file of its ranks: their variables and frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRecord {
    /// First byte of its text in the file.
    pub offset: u64,
    /// Bytes of its text.
    pub bytes: u64,
    /// CRC-32C of its text.
    pub crc32c: u32,
    /// For each number of global rows, the first row of a range with all rows of its ranks, and the
    /// length of the range; none in versions of builds that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<Vec<u64>>,
    /// The numbers of global rows of its variables, ascending; absent where they are those of the
    /// first part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub globals: Option<Vec<u64>>,
    /// A checksum of the names of its variables; absent where it is that of the first part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<u32>,
    /// The versions that its frames are coded against, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<u64>,
}

/// Consecutive rows of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRange {
    /// The first row.
    pub first: u64,
    /// Rows.
    pub len: u64,
    /// Rows of all ranks.
    pub global: u64,
}

impl RowRange {
    /// Returns whether a row is in both.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        let end = |range: &Self| range.first.saturating_add(range.len);
        self.global == other.global && self.first.max(other.first) < end(self).min(end(other))
    }
}
