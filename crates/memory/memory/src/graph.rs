//! Graphs with versions: rows of targets, and two values of each vertex.

use crate::array::VersionedArray;
use crate::element::VersionedElement;
use crate::structure::{ArrayList, Versioned};

/// A graph in the memory of the process: the targets of each vertex in compressed rows, a state and
/// data of each vertex. All four arrays are in one version together, so a state never meets the
/// data of another step.
///
/// ```
/// use recoup_memory::VersionedGraph;
///
/// let mut web = VersionedGraph::<u8, f64>::new("web", 3, &[(0, 1), (0, 2), (2, 0)]);
/// assert_eq!(web.targets(0), [1, 2]);
/// web.set(1, 1, 0.5);
/// assert_eq!((web.states()[1], web.data()[1]), (1, 0.5));
/// ```
#[derive(Clone, Debug)]
pub struct VersionedGraph<S: VersionedElement, D: VersionedElement> {
    /// Begin of the row of each vertex, and the end of the last.
    offsets: VersionedArray<u64>,
    targets: VersionedArray<u32>,
    states: VersionedArray<S>,
    data: VersionedArray<D>,
}

impl<S: VersionedElement, D: VersionedElement> VersionedGraph<S, D> {
    /// Makes a graph of edges from one vertex to another; states and data are zeros. Its arrays are
    /// called `NAME.offsets`, `NAME.targets`, `NAME.states` and `NAME.data`; in a field of a state,
    /// the field takes the place of the name.
    ///
    /// # Panics
    /// If an edge names a vertex that the graph does not have.
    #[must_use]
    pub fn new(name: &str, n_vertices: usize, edges: &[(u32, u32)]) -> Self {
        let mut graph = Self {
            offsets: VersionedArray::zeros(format!("{name}.offsets"), 1),
            targets: VersionedArray::zeros(format!("{name}.targets"), 0),
            states: VersionedArray::zeros(format!("{name}.states"), 0),
            data: VersionedArray::zeros(format!("{name}.data"), 0),
        };
        graph.set_edges(n_vertices, edges);
        graph
    }

    /// Number of vertices.
    #[must_use]
    pub fn n_vertices(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of edges.
    #[must_use]
    pub fn n_edges(&self) -> usize {
        self.targets.len()
    }

    /// Targets of the edges of a vertex, in the order of the edges.
    #[must_use]
    pub fn targets(&self, vertex: usize) -> &[u32] {
        &self.targets[self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize]
    }

    /// States of all vertices.
    #[must_use]
    pub fn states(&self) -> &[S] {
        &self.states
    }

    /// Data of all vertices.
    #[must_use]
    pub fn data(&self) -> &[D] {
        &self.data
    }

    /// Sets state and data of a vertex.
    ///
    /// # Panics
    /// If the graph does not have the vertex.
    pub fn set(&mut self, vertex: usize, state: S, data: D) {
        self.states.write(vertex..vertex + 1)[0] = state;
        self.data.write(vertex..vertex + 1)[0] = data;
    }

    /// Takes other edges in the place of all. Vertices that stay keep state and data; those of new
    /// ones are zeros. Rows that stay where they were are not marked.
    ///
    /// # Panics
    /// If an edge names a vertex that the graph does not have.
    pub fn set_edges(&mut self, n_vertices: usize, edges: &[(u32, u32)]) {
        let is_vertex = |vertex: u32| (vertex as usize) < n_vertices;
        let stray = edges.iter().find(|(from, to)| !is_vertex(*from) || !is_vertex(*to));
        assert!(stray.is_none(), "edge {stray:?} of a graph of {n_vertices} vertices");
        let mut offsets = vec![0_u64; n_vertices + 1];
        edges.iter().for_each(|(from, _)| offsets[*from as usize + 1] += 1);
        (0..n_vertices).for_each(|vertex| offsets[vertex + 1] += offsets[vertex]);
        let mut next = offsets.clone();
        let mut targets = vec![0; edges.len()];
        for (from, to) in edges {
            let place = &mut next[*from as usize];
            targets[*place as usize] = *to;
            *place += 1;
        }
        self.offsets.assign(&offsets);
        self.targets.assign(&targets);
        self.states.resize(n_vertices, S::zeroed());
        self.data.resize(n_vertices, D::zeroed());
    }

    /// Returns whether the arrays fit together: those of a version that a graph has committed do.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let ends = self.offsets.first() == Some(&0) && self.offsets.last() == Some(&(self.targets.len() as u64));
        let n_vertices = self.offsets.len().wrapping_sub(1);
        let fits = self.states.len() == n_vertices && self.data.len() == n_vertices;
        ends && fits && self.offsets.is_sorted() && self.targets.iter().all(|target| (*target as usize) < n_vertices)
    }
}

/// Makes a graph without vertices and without a name, for a field of a state: the field names it.
impl<S: VersionedElement, D: VersionedElement> Default for VersionedGraph<S, D> {
    fn default() -> Self {
        Self {
            offsets: vec![0].into(),
            targets: VersionedArray::default(),
            states: VersionedArray::default(),
            data: VersionedArray::default(),
        }
    }
}

impl<S: VersionedElement, D: VersionedElement> Versioned for VersionedGraph<S, D> {
    fn list_arrays<'a>(&'a mut self, arrays: &mut ArrayList<'a>) {
        arrays.part("offsets", &mut self.offsets);
        arrays.part("targets", &mut self.targets);
        arrays.part("states", &mut self.states);
        arrays.part("data", &mut self.data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_the_targets_in_the_order_of_the_edges() {
        let edges = [(2, 0), (0, 1), (2, 2), (0, 0), (2, 1)];
        let mut graph = VersionedGraph::<u8, f32>::new("g", 4, &edges);
        assert_eq!((graph.n_vertices(), graph.n_edges()), (4, 5));
        assert_eq!(
            [0, 1, 2, 3].map(|vertex| graph.targets(vertex).to_vec()),
            [vec![1, 0], vec![], vec![0, 2, 1], vec![]]
        );
        graph.set(3, 9, 1.5);
        graph.set_edges(5, &edges[..2]);
        assert_eq!((graph.states(), graph.data()[3], graph.n_edges()), (&[0, 0, 0, 9, 0][..], 1.5, 2));
        assert!(graph.is_sound());
    }

    #[test]
    #[should_panic(expected = "of a graph of 2 vertices")]
    fn an_edge_to_no_vertex_is_refused() {
        let _ = VersionedGraph::<u8, u8>::new("g", 2, &[(0, 2)]);
    }
}
