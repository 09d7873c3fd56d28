//! Directories of versions, opened to be looked at: which runs they hold, and one version decoded.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use recoup::core::{ElementType, FrameRecord, Manifest, Store, ValuesMut, VariableRecord};
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::{ChainReader, PipelineError};

/// Which versions are meant.
#[derive(Args, Debug)]
pub(crate) struct DirectoryArgs {
    /// Directory of the versions (what `run` calls --dir).
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,

    /// Only this run [default: all in the directory].
    #[arg(long)]
    pub(crate) name: Option<String>,
}

impl DirectoryArgs {
    /// The names of the runs meant.
    ///
    /// # Errors
    /// When the directory cannot be read or holds no run.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let names = Hdf5Store::names(&self.dir)?;
        match &self.name {
            None if names.is_empty() => bail!("{} holds no versions of any run", self.dir.display()),
            None => Ok(names),
            Some(name) if names.contains(name) => Ok(vec![name.clone()]),
            Some(name) => bail!("{} holds no run {name}: {}", self.dir.display(), known(&names)),
        }
    }

    /// The one run meant.
    ///
    /// # Errors
    /// As [`DirectoryArgs::names`], and when there are several.
    pub(crate) fn one_name(&self) -> Result<String> {
        let mut names = self.names()?;
        match (names.pop(), names.is_empty()) {
            (Some(name), true) => Ok(name),
            (Some(name), false) => {
                names.push(name);
                bail!("{} holds several runs ({}): say which with --name", self.dir.display(), names.join(", "))
            }
            (None, _) => bail!("{} holds no versions of any run", self.dir.display()),
        }
    }

    /// Opens one run to look at it.
    ///
    /// # Errors
    /// When it is not ours.
    pub(crate) fn open(&self, name: &str) -> Result<Hdf5Store> {
        open(&self.dir, name)
    }
}

/// Opens one run to look at it.
///
/// # Errors
/// When it is not ours.
pub(crate) fn open(dir: &Path, name: &str) -> Result<Hdf5Store> {
    Ok(Hdf5Store::open(dir, name, Access::Read)?)
}

fn known(names: &[String]) -> String {
    if names.is_empty() { "it holds none at all".to_owned() } else { format!("it holds {}", names.join(", ")) }
}

/// Decoded values.
#[derive(Clone, Debug)]
pub(crate) enum Decoded {
    /// IEEE doubles.
    F64(Vec<f64>),
    /// IEEE singles.
    F32(Vec<f32>),
    /// Signed 64-bit integers.
    I64(Vec<i64>),
    /// Plain bytes.
    Bytes(Vec<u8>),
}

impl Decoded {
    /// Room for `len` elements.
    pub(crate) fn zeros(element: ElementType, len: usize) -> Self {
        match element {
            ElementType::F64 => Self::F64(vec![0.0; len]),
            ElementType::F32 => Self::F32(vec![0.0; len]),
            ElementType::I64 => Self::I64(vec![0; len]),
            _ => Self::Bytes(vec![0; len]),
        }
    }

    /// All values, to be overwritten.
    pub(crate) fn as_mut(&mut self) -> ValuesMut<'_> {
        match self {
            Self::F64(v) => ValuesMut::F64(v),
            Self::F32(v) => ValuesMut::F32(v),
            Self::I64(v) => ValuesMut::I64(v),
            Self::Bytes(v) => ValuesMut::Bytes(v),
        }
    }

    /// All values.
    pub(crate) fn values(&self) -> recoup::core::Values<'_> {
        match self {
            Self::F64(v) => recoup::core::Values::F64(v),
            Self::F32(v) => recoup::core::Values::F32(v),
            Self::I64(v) => recoup::core::Values::I64(v),
            Self::Bytes(v) => recoup::core::Values::Bytes(v),
        }
    }

    /// Keeps the first `len` elements.
    pub(crate) fn truncate(&mut self, len: usize) {
        match self {
            Self::F64(v) => v.truncate(len),
            Self::F32(v) => v.truncate(len),
            Self::I64(v) => v.truncate(len),
            Self::Bytes(v) => v.truncate(len),
        }
    }

    /// Adds the elements of `other`, which are of the same type.
    pub(crate) fn append(&mut self, other: Self) {
        match (self, other) {
            (Self::F64(v), Self::F64(o)) => v.extend(o),
            (Self::F32(v), Self::F32(o)) => v.extend(o),
            (Self::I64(v), Self::I64(o)) => v.extend(o),
            (Self::Bytes(v), Self::Bytes(o)) => v.extend(o),
            _ => unreachable!("parts of one variable are of one type"),
        }
    }
}

/// A reader of a run's values.
pub(crate) fn reader(store: &dyn Store) -> ChainReader<'_> {
    ChainReader::new(store, recoup::compress::codec)
}

/// Reads and decodes one frame: the values it stands for, its padding dropped.
///
/// # Errors
/// When the frame is damaged, or one it was coded against.
pub(crate) fn decode_frame(
    reader: &mut ChainReader<'_>,
    version: u64,
    variable: &VariableRecord,
    frame: &FrameRecord,
) -> Result<Decoded, PipelineError> {
    let mut decoded = Decoded::zeros(variable.element, variable.frame_dims.iter().product());
    reader.frame(version, variable, frame, decoded.as_mut())?;
    decoded.truncate(frame.len as usize);
    Ok(decoded)
}

/// One variable of one rank, whole.
///
/// # Errors
/// When a frame is damaged, or one it was coded against.
pub(crate) fn decode_variable(store: &dyn Store, manifest: &Manifest, variable: &VariableRecord) -> Result<Decoded> {
    let mut frames: Vec<&FrameRecord> =
        manifest.frames.iter().filter(|f| f.variable == variable.name && f.rank == variable.rank).collect();
    frames.sort_by_key(|frame| frame.run);
    let (mut whole, mut reader) = (Decoded::zeros(variable.element, 0), reader(store));
    for frame in frames {
        let decoded = decode_frame(&mut reader, manifest.version, variable, frame)
            .with_context(|| format!("frame {}/{} of rank {}", frame.variable, frame.run, frame.rank))?;
        whole.append(decoded);
    }
    Ok(whole)
}
