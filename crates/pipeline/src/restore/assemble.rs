//! Whole variables: the parts of all ranks, decoded and put together, for those who only look at a
//! version.

use recoup_core::{Distribution, ElementType, FrameRecord, Manifest, Role, VariableRecord};

use super::chain_reader::ChainReader;
use crate::encode::Decoded;
use crate::error::PipelineError;
use crate::staging::{Buffer, PlacedValues, frame_len};

/// A variable of a version, of all ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole {
    /// Name of the variable.
    pub name: String,
    /// Role in the solver.
    pub role: Role,
    /// Extents, fastest first; `[n, 1, 1]` for a vector, and for parts of several ranks that are
    /// no slices of one grid.
    pub dims: [usize; 3],
    /// The values, as many as the extents multiply to.
    pub values: Buffer,
    /// Each two of them are the parts of a complex number.
    pub is_complex: bool,
}

impl Whole {
    /// Returns the type of its elements.
    #[must_use]
    pub fn element(&self) -> ElementType {
        self.values.all().element()
    }
}

impl ChainReader<'_> {
    /// Decodes a variable of a version: the parts of all ranks in the order of their rows; of a
    /// replicated one, one part.
    ///
    /// # Errors
    /// Every frame that is damaged, or was coded against one that is; [`PipelineError::Variable`]
    /// when the version does not hold the variable.
    pub fn whole(&mut self, manifest: &Manifest, name: &str) -> Result<Whole, Vec<PipelineError>> {
        let parts = parts(manifest, name);
        let Some(&first) = parts.first() else {
            let what = "the version does not hold it".to_owned();
            let variable = name.to_owned();
            return Err(vec![PipelineError::Variable { version: manifest.version, variable, rank: 0, what }]);
        };
        let mut values = Buffer::new(first.element);
        let mut damaged = Vec::new();
        for part in &parts {
            match self.variable(manifest, part, None) {
                Ok(Decoded { values: PlacedValues::Host(read), .. }) if damaged.is_empty() => {
                    values.append(read, part.len as usize);
                }
                Ok(_) => {}
                Err(errors) => damaged.extend(errors),
            }
        }
        if !damaged.is_empty() {
            return Err(damaged);
        }
        let parts: Vec<[usize; 3]> = parts.iter().map(|part| part.dims).collect();
        let dims = joined(&parts).unwrap_or([values.all().len(), 1, 1]);
        let is_complex = first.is_complex;
        Ok(Whole { name: first.name.clone(), role: first.role, dims, values, is_complex })
    }

    /// Finds frames whose own bytes are as written, yet do not decode: one line each. Those that
    /// fail their checksum are what [`recoup_core::Store::inspect_damage`] finds.
    pub fn undecodable(&mut self, manifest: &Manifest) -> Vec<String> {
        manifest.frames.iter().filter_map(|frame| self.complaint(manifest, frame)).collect()
    }

    fn complaint(&mut self, manifest: &Manifest, frame: &FrameRecord) -> Option<String> {
        let name = format!("frame {}/{} of rank {}", frame.variable, frame.run, frame.rank);
        let variable = manifest.variables.iter().find(|v| v.name == frame.variable && v.rank == frame.rank);
        let Some(variable) = variable else { return Some(format!("{name}: no such variable")) };
        let mut values = Buffer::new(variable.element);
        values.resize(frame_len(variable));
        match self.frame(manifest.version, variable, frame, values.slice_mut(0, frame_len(variable))) {
            Ok(()) | Err(PipelineError::Store(_)) => None,
            Err(error @ PipelineError::Link { .. }) => Some(error.to_string()),
            Err(error) => Some(format!("{name}: {error}")),
        }
    }
}

/// Returns the extents of parts one behind the other, where all are slices of one grid across its
/// slowest direction.
fn joined(parts: &[[usize; 3]]) -> Option<[usize; 3]> {
    let slowest = (0..3).rev().find(|axis| parts.iter().any(|part| part[*axis] > 1)).unwrap_or(0);
    let mut whole = *parts.first()?;
    whole[slowest] = parts.iter().map(|part| part[slowest]).sum();
    let is_slice = |part: &[usize; 3]| (0..3).all(|axis| axis == slowest || part[axis] == whole[axis]);
    parts.iter().all(is_slice).then_some(whole)
}

/// Returns the parts of a variable that make it whole, in order.
fn parts<'a>(manifest: &'a Manifest, name: &str) -> Vec<&'a VariableRecord> {
    let mut parts: Vec<&VariableRecord> = manifest.variables.iter().filter(|v| v.name == name).collect();
    parts.sort_by_key(|part| match part.distribution {
        Distribution::Rows { first, .. } => (first, part.rank),
        _ => (0, part.rank),
    });
    if parts.first().is_some_and(|part| part.distribution == Distribution::Replicated) {
        parts.truncate(1);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_a_grid_join_and_other_parts_do_not() {
        assert_eq!(joined(&[[5, 4, 2], [5, 4, 1], [5, 4, 3]]), Some([5, 4, 6]));
        assert_eq!(joined(&[[5, 4, 1], [5, 2, 1]]), Some([5, 6, 1]));
        assert_eq!(joined(&[[5, 1, 1], [3, 1, 1]]), Some([8, 1, 1]));
        assert_eq!(joined(&[[5, 4, 2]]), Some([5, 4, 2]));
        assert_eq!(joined(&[[5, 4, 2], [9, 1, 1]]), None);
        assert_eq!(joined(&[[5, 4, 2], [5, 3, 2]]), None);
    }
}
