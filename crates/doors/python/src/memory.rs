//! A versioned memory of NumPy arrays, and its versions as NumPy arrays.
//!
//! Each call that works lets the interpreter go. A process forked from the one that opened a memory
//! shares its lock on the file, so every call there is an error.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::MutexGuard;

use numpy::PyUntypedArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use recoup::core::KindedError;
use recoup::memory::{
    ArrayTracking, KeptVersion, MappedValues, MediumKind, Memory, MemoryError, MemoryOptions, MemoryReader, SavePolicy,
    Saver, StructureSummary, VersionView, Versioned,
};
use recoup::model::units::{bytes, duration};

use crate::memory_array::{LentStructure, MemoryArray, dtype, type_string};
use crate::options::quantity;
use crate::own_state::OwnState;
use crate::{failed, not_held, of_kind, refused};

/// Keyword arguments of `Memory.open`, by their names.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct MemoryArguments {
    keep: usize,
    block_bytes: String,
    medium: String,
    policy: String,
    mtti: Option<String>,
}

impl MemoryArguments {
    fn options(&self) -> PyResult<MemoryOptions> {
        let medium = match self.medium.as_str() {
            "auto" => MediumKind::Auto,
            "file" => MediumKind::File,
            "map" => MediumKind::Map,
            other => return Err(refused(format!("medium {other}: expected auto, file or map"))),
        };
        if self.keep == 0 {
            return Err(refused("keep is 0, expected 1 or more"));
        }
        let block_bytes = usize::try_from(quantity("block_bytes", &self.block_bytes, bytes)?).unwrap_or(usize::MAX);
        Ok(MemoryOptions { keep: self.keep, block_bytes, medium })
    }

    fn policy(&self) -> PyResult<SavePolicy> {
        let policy: SavePolicy = self.policy.parse().map_err(refused)?;
        Ok(match &self.mtti {
            Some(mtti) => policy.with_mtti(quantity("mtti", mtti, duration)?),
            None => policy,
        })
    }
}

/// A memory and what is known of the program's arrays.
struct OpenedMemory {
    memory: Memory,
    saver: Saver,
    /// Marks of each array.
    marks: BTreeMap<String, ArrayTracking>,
}

/// The memory that `Memory` of the Python half wraps.
#[pyclass(frozen, name = "Memory", module = "recoup._native")]
pub(crate) struct PyMemory {
    /// `None` once it is closed.
    opened: OwnState<Option<OpenedMemory>>,
}

/// Arrays of a call, by their names.
type NamedArrays<'py> = Vec<(String, Bound<'py, PyUntypedArray>)>;

impl PyMemory {
    fn locked(&self) -> PyResult<MutexGuard<'_, Option<OpenedMemory>>> {
        self.opened.locked("memory", "opened", "open it there with read_only=True")
    }

    /// Calls `ask`, which does not wait.
    fn asked<T>(&self, ask: impl FnOnce(&mut OpenedMemory) -> PyResult<T>) -> PyResult<T> {
        ask(self.locked()?.as_mut().ok_or_else(|| refused("the memory is closed"))?)
    }

    /// Lends arrays to `work`, which is called without the interpreter.
    fn lent<T: Send>(
        &self,
        py: Python<'_>,
        arrays: &NamedArrays<'_>,
        work: impl FnOnce(&mut Memory, &mut Saver, &mut [LentStructure<'_>]) -> Result<T, MemoryError> + Send,
    ) -> PyResult<T> {
        let mut borrowed =
            arrays.iter().map(|(name, array)| MemoryArray::of(name, array)).collect::<PyResult<Vec<_>>>()?;
        self.asked(|OpenedMemory { memory, saver, marks }| {
            if let Some((name, _)) = arrays.iter().find(|(name, _)| !marks.contains_key(name)) {
                return Err(not_held(format!("there is no array {name}")));
            }
            let mut lent = Vec::with_capacity(arrays.len());
            for ((name, _), array) in arrays.iter().zip(&mut borrowed) {
                // Taken out for the time of the call, since each is lent on its own.
                let tracking = marks.remove(name).unwrap_or_default();
                lent.push(LentStructure::new(name, array.kind(), array.bytes_mut()?, tracking));
            }
            let result = py.detach(|| work(memory, saver, &mut lent));
            marks.extend(lent.into_iter().map(LentStructure::into_marks));
            result.map_err(raised)
        })
    }
}

fn as_state<'a>(lent: &'a mut [LentStructure<'_>]) -> Vec<&'a mut dyn Versioned> {
    lent.iter_mut().map(|structure| structure as &mut dyn Versioned).collect()
}

#[pymethods]
impl PyMemory {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, options: MemoryArguments) -> PyResult<Self> {
        let policy = options.policy()?;
        let chosen = options.options()?;
        let memory = py.detach(|| Memory::open(&path, chosen));
        let memory = memory.map_err(|error| of_kind(error.kind(), format!("{}: {error}", path.display())))?;
        let opened = OpenedMemory { memory, saver: Saver::new(policy), marks: BTreeMap::new() };
        Ok(Self { opened: OwnState::new(Some(opened)) })
    }

    /// Adds an array. Its values are compared at each commit unless it is marked.
    fn add(&self, name: String, array: &Bound<'_, PyUntypedArray>, is_marked: bool) -> PyResult<()> {
        MemoryArray::of(&name, array)?.bytes_mut()?;
        self.asked(|opened| {
            let mut tracking = ArrayTracking::default();
            if !is_marked {
                tracking.compare();
            }
            opened.marks.insert(name, tracking);
            Ok(())
        })
    }

    /// Marks bytes of an array.
    fn touch(&self, name: &str, start: usize, end: usize) -> PyResult<()> {
        self.asked(|opened| {
            let tracking = opened.marks.get_mut(name);
            tracking.ok_or_else(|| not_held(format!("there is no array {name}")))?.touch(start..end);
            Ok(())
        })
    }

    /// Commits the arrays, if a version is due or in any case. Returns the number of the version.
    fn commit(&self, py: Python<'_>, step: u64, arrays: NamedArrays<'_>, only_if_due: bool) -> PyResult<Option<u64>> {
        self.lent(py, &arrays, |memory, saver, lent| {
            let mut state = as_state(lent);
            if only_if_due {
                saver.commit_if_due(memory, step, &mut state)
            } else {
                saver.commit(memory, step, &mut state).map(Some)
            }
        })
    }

    /// Fills the arrays with a version, or with the newest one that is whole.
    fn restore(
        &self,
        py: Python<'_>,
        number: Option<u64>,
        arrays: NamedArrays<'_>,
    ) -> PyResult<Option<PyMemoryVersion>> {
        self.asked(|opened| check_lengths(&opened.memory.versions(), number, &arrays))?;
        let restored = self.lent(py, &arrays, |memory, saver, lent| {
            let mut state = as_state(lent);
            let restored = match number {
                Some(number) => memory.restore(number, &mut state).map(Some),
                None => memory.restore_newest(&mut state),
            };
            saver.restart();
            restored
        })?;
        Ok(restored.map(PyMemoryVersion::from))
    }

    /// Returns the versions that can be read, the oldest first.
    fn versions(&self) -> PyResult<Vec<PyMemoryVersion>> {
        self.asked(|opened| Ok(opened.memory.versions().into_iter().map(PyMemoryVersion::from).collect()))
    }

    /// Looks at a version.
    fn view(&self, number: u64) -> PyResult<PyMemoryView> {
        self.asked(|opened| opened.memory.view(number).map(|view| PyMemoryView { view }).map_err(raised))
    }

    /// Returns damage in words.
    fn findings(&self) -> PyResult<Vec<String>> {
        self.asked(|opened| Ok(opened.memory.findings().iter().map(ToString::to_string).collect()))
    }

    /// Returns the last answer of the policy in words.
    fn decision(&self) -> PyResult<Option<String>> {
        self.asked(|opened| Ok(opened.saver.decision().map(|decision| decision.to_string())))
    }

    /// Returns the expected time of a commit of the arrays now, in seconds.
    fn cost(&self, py: Python<'_>, arrays: NamedArrays<'_>) -> PyResult<f64> {
        self.lent(py, &arrays, |memory, saver, lent| {
            Ok(saver.cost().seconds(&memory.pending_work(&mut as_state(lent))))
        })
    }

    /// Closes the file.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let opened = self.locked()?.take();
        py.detach(|| drop(opened));
        Ok(())
    }
}

/// Makes the exception of an error of a memory.
fn raised(error: MemoryError) -> PyErr {
    if matches!(error, MemoryError::NoVersion { .. }) { not_held(error) } else { failed(error) }
}

/// Compares the lengths of arrays with those of the versions that a restore may take, since an
/// array of NumPy cannot change its length.
fn check_lengths(versions: &[KeptVersion], number: Option<u64>, arrays: &NamedArrays<'_>) -> PyResult<()> {
    for version in versions.iter().filter(|version| number.is_none_or(|number| number == version.number)) {
        for (name, array) in arrays {
            let len = MemoryArray::of(name, array)?.bytes_mut()?.len();
            let misfit = |structure: &&StructureSummary| structure.name == *name && structure.bytes != len as u64;
            if let Some(structure) = version.structures.iter().find(misfit) {
                let found = structure.bytes;
                let version = version.number;
                return Err(refused(format!("array {name}: {len} bytes, in version {version} it has {found}")));
            }
        }
    }
    Ok(())
}

/// Looks at the versions of a file that a program may continue writing.
#[pyclass(frozen, name = "MemoryReader", module = "recoup._native")]
pub(crate) struct PyMemoryReader {
    reader: MemoryReader,
}

#[pymethods]
impl PyMemoryReader {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let reader = py.detach(|| MemoryReader::open(&path));
        Ok(Self { reader: reader.map_err(|error| of_kind(error.kind(), format!("{}: {error}", path.display())))? })
    }

    /// Returns the versions that are kept now, the oldest first, and damage in words.
    fn versions(&self, py: Python<'_>) -> PyResult<(Vec<PyMemoryVersion>, Vec<String>)> {
        let (versions, findings) = py.detach(|| self.reader.versions()).map_err(failed)?;
        let findings = findings.iter().map(ToString::to_string).collect();
        Ok((versions.into_iter().map(PyMemoryVersion::from).collect(), findings))
    }

    /// Looks at a version, or at the newest one, if there is one.
    fn view(&self, py: Python<'_>, number: Option<u64>) -> PyResult<Option<PyMemoryView>> {
        let view = py.detach(|| match number {
            Some(number) => self.reader.view(number).map(Some),
            None => self.reader.newest(),
        });
        Ok(view.map_err(raised)?.map(|view| PyMemoryView { view }))
    }
}

/// A version of a memory.
#[pyclass(frozen, get_all, name = "MemoryVersion", module = "recoup")]
pub(crate) struct PyMemoryVersion {
    /// Its number: 1 for the first of the file, one more for each commit.
    number: u64,
    /// The program's own number of it.
    step: u64,
    /// Bytes of all values.
    bytes: u64,
    /// NumPy type and number of values of each array, by its name.
    arrays: BTreeMap<String, (&'static str, u64)>,
}

impl From<KeptVersion> for PyMemoryVersion {
    fn from(version: KeptVersion) -> Self {
        let bytes = version.bytes();
        let of = |structure: StructureSummary| (structure.name, (dtype(structure.kind), structure.len));
        let arrays = version.structures.into_iter().map(of).collect();
        Self { number: version.number, step: version.step, bytes, arrays }
    }
}

#[pymethods]
impl PyMemoryVersion {
    fn __repr__(&self) -> String {
        format!("MemoryVersion(number={}, step={}, bytes={})", self.number, self.step, self.bytes)
    }
}

/// A version that is read.
#[pyclass(frozen, name = "MemoryView", module = "recoup._native")]
pub(crate) struct PyMemoryView {
    view: VersionView,
}

#[pymethods]
impl PyMemoryView {
    /// Returns what the version holds.
    fn version(&self) -> PyMemoryVersion {
        self.view.version().into()
    }

    /// Maps the values of a structure, where they need not be read.
    fn mapped(&self, py: Python<'_>, name: &str) -> PyResult<Option<PyMappedValues>> {
        let mapped = py.detach(|| self.view.mapped(name)).map_err(failed)?;
        Ok(mapped.map(|values| PyMappedValues { values }))
    }

    /// Reads all values of a structure into an array of its type and length.
    fn read(&self, py: Python<'_>, name: &str, out: &Bound<'_, PyUntypedArray>) -> PyResult<()> {
        let mut array = MemoryArray::of(name, out)?;
        let kind = array.kind();
        let target = array.bytes_mut()?;
        py.detach(|| self.view.read_kind(name, kind, 0, target)).map_err(failed)
    }

    /// Reads every block, and names damage in words.
    fn verify(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let findings = py.detach(|| self.view.verify()).map_err(failed)?;
        Ok(findings.iter().map(ToString::to_string).collect())
    }
}

/// Values of a version that are mapped. NumPy makes a read-only array of them, and the array keeps
/// this alive.
#[pyclass(frozen, name = "MappedValues", module = "recoup._native")]
pub(crate) struct PyMappedValues {
    values: MappedValues,
}

#[pymethods]
impl PyMappedValues {
    /// Describes the values by NumPy's array interface, version 3.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let kind = self.values.kind();
        let bytes = self.values.bytes();
        let description = PyDict::new(py);
        description.set_item("version", 3)?;
        description.set_item("typestr", type_string(kind))?;
        description.set_item("shape", (bytes.len() / kind.bytes(),))?;
        // The second says that the values are read-only.
        description.set_item("data", (bytes.as_ptr().addr(), true))?;
        Ok(description)
    }
}
