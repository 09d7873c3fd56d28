//! A graph in compressed rows, with a state and data of each vertex.

/// Targets of the edges of each vertex, one vertex after the other.
pub(crate) struct Graph {
    /// Begin of the row of each vertex, and the end of the last.
    offsets: Vec<usize>,
    targets: Vec<u32>,
    states: Vec<u8>,
    data: Vec<f64>,
}

impl Graph {
    /// Makes a graph of edges from one vertex to another; states and data are zeros.
    pub(crate) fn new(n_vertices: usize, edges: &[(u32, u32)]) -> Self {
        let mut offsets = vec![0; n_vertices + 1];
        edges.iter().for_each(|(from, _)| offsets[*from as usize + 1] += 1);
        (0..n_vertices).for_each(|vertex| offsets[vertex + 1] += offsets[vertex]);
        let mut next = offsets.clone();
        let mut targets = vec![0; edges.len()];
        for (from, to) in edges {
            let place = &mut next[*from as usize];
            targets[*place] = *to;
            *place += 1;
        }
        Self { offsets, targets, states: vec![0; n_vertices], data: vec![0.0; n_vertices] }
    }

    pub(crate) fn n_vertices(&self) -> usize {
        self.states.len()
    }

    pub(crate) fn n_edges(&self) -> usize {
        self.targets.len()
    }

    pub(crate) fn targets(&self, vertex: usize) -> &[u32] {
        &self.targets[self.offsets[vertex]..self.offsets[vertex + 1]]
    }

    pub(crate) fn states(&self) -> &[u8] {
        &self.states
    }

    pub(crate) fn data(&self) -> &[f64] {
        &self.data
    }

    pub(crate) fn set(&mut self, vertex: usize, state: u8, data: f64) {
        self.states[vertex] = state;
        self.data[vertex] = data;
    }
}
