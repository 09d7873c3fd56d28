//! The versions of a directory, for inspection: their manifests, their values as NumPy arrays,
//! their damage by name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyTuple};
use recoup::core::{
    Bound as ErrorBound, ElementType, ErrorKind, FrameRecord, KindedError, Manifest, Role, Store, StoreError,
    VersionFiles as _,
};
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::{Buffer, ChainReader, Codecs, PipelineError, Whole};

use crate::{failed, not_held, of_kind, of_other_type, refused};

/// The versions of one run.
#[pyclass(frozen, name = "Directory", module = "recoup")]
pub(crate) struct PyDirectory {
    /// The directory.
    #[pyo3(get)]
    path: PathBuf,
    /// The run.
    #[pyo3(get)]
    name: String,
    store: Arc<Hdf5Store>,
}

#[pymethods]
impl PyDirectory {
    #[new]
    #[pyo3(signature = (path, name))]
    fn new(path: PathBuf, name: Option<String>) -> PyResult<Self> {
        let name = chosen(&path, name)?;
        let store = Hdf5Store::open(&path, &name, Access::Read).map_err(failed)?;
        Ok(Self { path, name, store: Arc::new(store) })
    }

    /// The versions, oldest first.
    fn versions(&self, py: Python<'_>) -> PyResult<Vec<PyVersion>> {
        py.detach(|| {
            let versions = self.store.versions().map_err(failed)?;
            Ok(versions.into_iter().filter_map(|version| PyVersion::new(self.store.clone(), version)).collect())
        })
    }

    /// Versions that were put aside.
    fn set_aside(&self) -> PyResult<Vec<String>> {
        self.store.set_aside().map_err(failed)
    }

    fn __repr__(&self) -> String {
        format!("Directory({:?}, name={:?})", self.path, self.name)
    }
}

/// Returns the run named, or the only one if none is.
fn chosen(path: &Path, name: Option<String>) -> PyResult<String> {
    let mut names = Hdf5Store::names(path).map_err(failed)?;
    let shown = path.display();
    if let (0, Some((dir, run))) = (names.len(), Hdf5Store::run_in(path)) {
        return Err(refused(format!(
            "{shown} is the folder of run {run}: expected {}, with name={run:?}",
            dir.display()
        )));
    }
    match (name, names.len()) {
        (_, 0) => Err(refused(format!("{shown} holds no versions of any run"))),
        (Some(name), _) if names.contains(&name) => Ok(name),
        (Some(name), _) => Err(refused(format!("{shown} holds no run {name}: it holds {}", names.join(", ")))),
        (None, 1) => Ok(names.remove(0)),
        (None, _) => Err(refused(format!("{shown} holds several runs ({}): say which", names.join(", ")))),
    }
}

/// One version.
#[pyclass(frozen, name = "Version", module = "recoup")]
pub(crate) struct PyVersion {
    store: Arc<Hdf5Store>,
    version: u64,
    manifest: Result<Manifest, StoreError>,
}

impl PyVersion {
    /// A version that was listed; `None` where its run has retired it since.
    fn new(store: Arc<Hdf5Store>, version: u64) -> Option<Self> {
        let manifest = match store.manifest(version) {
            Err(StoreError::Missing { .. }) => return None,
            found => found,
        };
        Some(Self { store, version, manifest })
    }

    fn manifest(&self) -> PyResult<&Manifest> {
        self.manifest.as_ref().map_err(failed)
    }

    fn iterate_frames(&self) -> PyResult<impl Iterator<Item = &FrameRecord>> {
        let manifest = self.manifest()?;
        let is_iterate = |f: &&FrameRecord| {
            manifest.variables.iter().any(|v| v.role == Role::Iterate && v.name == f.variable && v.rank == f.rank)
        };
        Ok(manifest.frames.iter().filter(is_iterate))
    }

    /// Decoded variables, each once, in the order they were saved.
    fn read(&self, names: Option<&[String]>) -> PyResult<Vec<Whole>> {
        let manifest = self.manifest()?;
        let held = self.keys()?;
        let missing = names.unwrap_or_default().iter().find(|name| !held.contains(name));
        if let Some(missing) = missing {
            let held = held.join(", ");
            return Err(not_held(format!("version {} does not hold {missing}: it holds {held}", self.version)));
        }
        let wanted = held.iter().filter(|name| names.is_none_or(|names| names.contains(name)));
        let mut reader = ChainReader::new(self.store.as_ref(), Codecs::shared(recoup::compress::codec, 1));
        let damaged = |errors: Vec<PipelineError>| {
            let kind = errors.first().map_or(ErrorKind::Damaged, KindedError::kind);
            of_kind(kind, errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        };
        wanted.map(|name| reader.whole(manifest, name).map_err(damaged)).collect()
    }
}

#[pymethods]
impl PyVersion {
    /// The iteration it was taken at: its number.
    #[getter]
    fn iteration(&self) -> u64 {
        self.version
    }

    /// The reason that the manifest cannot be read; None if it can.
    #[getter]
    fn damage(&self) -> Option<String> {
        self.manifest.as_ref().err().map(ToString::to_string)
    }

    /// The scheme it was saved under.
    #[getter]
    fn scheme(&self) -> PyResult<String> {
        Ok(self.manifest()?.scheme.to_string())
    }

    /// The most faithful resume it holds enough for: restarted, deflated, traditional or exact.
    #[getter]
    fn resume(&self) -> PyResult<String> {
        Ok(self.manifest()?.resume.to_string())
    }

    /// The rule behind the bound of the iterate.
    #[getter]
    fn rule(&self) -> PyResult<String> {
        Ok(self.manifest()?.rule.to_string())
    }

    /// Ranks that wrote it.
    #[getter]
    fn ranks(&self) -> PyResult<usize> {
        Ok(self.manifest()?.ranks)
    }

    /// `||r||` as the method knew it.
    #[getter]
    fn residual_norm(&self) -> PyResult<f64> {
        Ok(self.manifest()?.residual.norm)
    }

    /// `||b||`.
    #[getter]
    fn rhs_norm(&self) -> PyResult<f64> {
        Ok(self.manifest()?.residual.rhs_norm)
    }

    /// `||b - A x||` of what was saved, where it was computed.
    #[getter]
    fn true_residual_norm(&self) -> PyResult<Option<f64>> {
        Ok(self.manifest()?.residual.true_norm)
    }

    /// `||b - A x'||` of what is restored, where it was computed.
    #[getter]
    fn verified_residual_norm(&self) -> PyResult<Option<f64>> {
        Ok(self.manifest()?.residual.verified_norm)
    }

    /// `||r||` of each column of a block, as its method knew it; else empty.
    #[getter]
    fn column_norms(&self) -> PyResult<Vec<f64>> {
        Ok(self.manifest()?.columns.iter().map(|column| column.norm).collect())
    }

    /// `||b - A x'||` of what is restored of each column of a block, where it was computed.
    #[getter]
    fn verified_column_norms(&self) -> PyResult<Vec<Option<f64>>> {
        Ok(self.manifest()?.columns.iter().map(|column| column.verified_norm).collect())
    }

    /// The system it belongs to, where the run solves many.
    #[getter]
    fn system(&self) -> PyResult<Option<u64>> {
        Ok(self.manifest()?.system.map(|system| system.index))
    }

    /// Encodings tried until the verified residual was small enough.
    #[getter]
    fn tries(&self) -> PyResult<u32> {
        Ok(self.manifest()?.residual.tries)
    }

    /// Error bound of the iterate: lossless, absolute:V or pointwise:V.
    #[getter]
    fn bound(&self) -> PyResult<String> {
        let first = self.iterate_frames()?.next();
        Ok(first.map_or(ErrorBound::Lossless, |frame| frame.bound).to_string())
    }

    /// Largest error of the iterate.
    #[getter]
    fn achieved_error(&self) -> PyResult<f64> {
        Ok(self.iterate_frames()?.map(|frame| frame.achieved_error).fold(0.0, f64::max))
    }

    /// Bytes of all values.
    #[getter]
    fn raw_bytes(&self) -> PyResult<u64> {
        Ok(self.manifest()?.raw_bytes())
    }

    /// Bytes of all payloads.
    #[getter]
    fn payload_bytes(&self) -> PyResult<u64> {
        Ok(self.manifest()?.payload_bytes())
    }

    /// Raw bytes over encoded bytes; above 1 is good.
    #[getter]
    fn ratio(&self) -> PyResult<f64> {
        Ok(self.manifest()?.ratio())
    }

    /// Versions it is coded against.
    #[getter]
    fn parents(&self) -> PyResult<Vec<u64>> {
        Ok(self.manifest()?.parents().into_iter().collect())
    }

    /// Its variables, each once for every rank.
    #[getter]
    fn variables(&self) -> PyResult<Vec<PyVariable>> {
        let manifest = self.manifest()?;
        Ok(manifest.variables.iter().map(|record| PyVariable::new(manifest, record)).collect())
    }

    /// The decoded variables as arrays.
    #[pyo3(signature = (names=None))]
    fn arrays<'py>(&self, py: Python<'py>, names: Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyDict>> {
        let names = names.map(|names| names.extract::<Vec<String>>()).transpose();
        let names = names.map_err(|_| of_other_type("names: expected a list of names of arrays, as [\"x\"]"))?;
        let arrays = PyDict::new(py);
        for whole in py.detach(|| self.read(names.as_deref()))? {
            let values = array(py, whole.values, whole.dims)?;
            let values = if whole.is_complex { as_complex(&values)? } else { values };
            arrays.set_item(whole.name, values)?;
        }
        Ok(arrays)
    }

    /// One decoded variable as an array.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let expected =
            || format!("version {}: expected the name of an array, as [\"x\"], given {name:?}", self.version);
        name.extract::<&str>().map_err(|_| of_other_type(expected()))?;
        self.arrays(py, Some(PyList::new(py, [name])?.into_any()))?.as_any().get_item(name)
    }

    /// The names of its variables, in the order they were saved.
    fn keys(&self) -> PyResult<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        for record in &self.manifest()?.variables {
            if !names.contains(&record.name) {
                names.push(record.name.clone());
            }
        }
        Ok(names)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.keys()?)?.try_iter()
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.keys()?.len())
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        let keys = self.keys()?;
        Ok(name.extract::<String>().is_ok_and(|name| keys.contains(&name)))
    }

    /// A version that cannot be read is one, too.
    fn __bool__(&self) -> bool {
        true
    }

    /// Its place is pickled, and the version read there again.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let path = self.store.version_path(self.version);
        let root = path.parent();
        let place = (root.and_then(Path::parent), root.and_then(Path::file_name));
        let directory = py.import("recoup")?.getattr("open")?.call1(place)?;
        (py.import("operator")?.getattr("getitem")?, (directory, self.version)).into_pyobject(py)
    }

    /// Everything that is not as it was written, or does not decode: one line each.
    fn verify(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| {
            let found = self.store.inspect_damage(self.version);
            let mut lines: Vec<String> = match found {
                Ok(found) => found.iter().map(ToString::to_string).collect(),
                Err(error) => vec![error.to_string()],
            };
            match &self.manifest {
                Ok(manifest) => {
                    let mut reader = ChainReader::new(self.store.as_ref(), Codecs::shared(recoup::compress::codec, 1));
                    lines.extend(reader.undecodable(manifest));
                }
                Err(error) if lines.is_empty() => lines.push(error.to_string()),
                Err(_) => {}
            }
            lines
        })
    }

    fn __repr__(&self) -> String {
        match &self.manifest {
            Ok(manifest) => format!(
                "Version(iteration={}, scheme='{}', ratio={:.2}, residual_norm={:e})",
                self.version,
                manifest.scheme,
                manifest.ratio(),
                manifest.residual.norm
            ),
            Err(damage) => format!("Version(iteration={}, damage={damage:?})", self.version),
        }
    }
}

/// One variable of one rank.
#[pyclass(frozen, get_all, name = "Variable", module = "recoup")]
pub(crate) struct PyVariable {
    /// Its name.
    name: String,
    /// The rank that owns it.
    rank: usize,
    /// Role in the solver: iterate, direction, dynamic, recomputed or static.
    role: String,
    /// NumPy type of its values.
    dtype: &'static str,
    /// Values on this rank.
    len: u64,
    /// Codec of its first frame.
    codec: String,
    /// Error bound of its first frame.
    bound: String,
    /// Largest error of its values.
    achieved_error: f64,
    /// Bytes of its payloads.
    payload_bytes: u64,
}

impl PyVariable {
    fn new(manifest: &Manifest, record: &recoup::core::VariableRecord) -> Self {
        let ours = |f: &&FrameRecord| f.variable == record.name && f.rank == record.rank;
        let frames: Vec<&FrameRecord> = manifest.frames.iter().filter(ours).collect();
        Self {
            name: record.name.clone(),
            rank: record.rank,
            role: role(record.role).to_owned(),
            dtype: if record.is_complex { complex_dtype(record.element) } else { dtype(record.element) },
            len: if record.is_complex { record.len / 2 } else { record.len },
            codec: frames.first().map(|f| f.codec.to_string()).unwrap_or_default(),
            bound: frames.first().map_or(ErrorBound::Lossless, |f| f.bound).to_string(),
            achieved_error: frames.iter().map(|f| f.achieved_error).fold(0.0, f64::max),
            payload_bytes: frames.iter().map(|f| f.payload_bytes).sum(),
        }
    }
}

#[pymethods]
impl PyVariable {
    fn __repr__(&self) -> String {
        let Self { name, rank, role, len, codec, bound, .. } = self;
        format!("Variable({name:?}, rank={rank}, role={role:?}, len={len}, codec={codec:?}, bound={bound:?})")
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Iterate => "iterate",
        Role::Direction => "direction",
        Role::Dynamic => "dynamic",
        Role::Recomputed { .. } => "recomputed",
        Role::Static => "static",
    }
}

fn dtype(element: ElementType) -> &'static str {
    match element {
        ElementType::F64 => "float64",
        ElementType::F32 => "float32",
        ElementType::I64 => "int64",
        ElementType::Bytes => "uint8",
    }
}

fn complex_dtype(parts: ElementType) -> &'static str {
    if parts == ElementType::F32 { "complex64" } else { "complex128" }
}

/// Views pairs of numbers along the fastest axis as complex ones.
fn as_complex<'py>(pairs: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let is_single = pairs.getattr("itemsize")?.extract::<usize>()? == 4;
    pairs.call_method1("view", (complex_dtype(if is_single { ElementType::F32 } else { ElementType::F64 }),))
}

/// The values as an array in C order of their extents, which are given fastest first.
fn array<'py>(py: Python<'py>, values: Buffer, dims: [usize; 3]) -> PyResult<Bound<'py, PyAny>> {
    let axes = dims.iter().rposition(|&extent| extent != 1).map_or(1, |last| last + 1);
    let shape: Vec<usize> = dims[..axes].iter().rev().copied().collect();
    Ok(match values {
        Buffer::F64(values) => values.into_pyarray(py).reshape(shape)?.into_any(),
        Buffer::F32(values) => values.into_pyarray(py).reshape(shape)?.into_any(),
        Buffer::I64(values) => values.into_pyarray(py).reshape(shape)?.into_any(),
        Buffer::Bytes(values) => values.into_pyarray(py).reshape(shape)?.into_any(),
    })
}
