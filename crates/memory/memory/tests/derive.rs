//! Structs that derive `Versioned`: what is in their versions, and what a restore makes of them.

use std::path::PathBuf;

use recoup_memory::{
    Memory, MemoryError, MemoryReader, Versioned, VersionedArray, VersionedElement, VersionedGraph, VersionedOctree,
};

/// Particles of one kind.
#[derive(Versioned, Debug, Default)]
#[versioned(crate = recoup_memory)]
struct Particles {
    #[versioned(counter)]
    pushes: u64,
    places: Vec<[f64; 2]>,
    charges: VersionedArray<f32>,
}

/// A field of each kind.
#[derive(Versioned, Debug)]
#[versioned(crate = recoup_memory, block = "512", keep = 3)]
struct Plasma {
    #[versioned(counter)]
    step: u64,
    time: f64,
    ions: Particles,
    electrons: Particles,
    metric: [[i32; 3]; 2],
    mesh: VersionedOctree<f64, 2>,
    #[versioned(name = "links")]
    web: VersionedGraph<u8, f64>,
    #[versioned(skip)]
    scratch: Vec<f64>,
    #[versioned(skip = self.ions.places.len() + self.electrons.places.len())]
    n_particles: usize,
    #[versioned(constant)]
    title: &'static str,
}

impl Plasma {
    fn new() -> Self {
        let particles = |n: usize| Particles {
            pushes: 0,
            places: (0..n).map(|i| [i as f64, -0.5]).collect(),
            charges: vec![1.0; n].into(),
        };
        Self {
            step: 0,
            time: 0.0,
            ions: particles(100),
            electrons: particles(300),
            metric: [[1, 0, 0], [0, 1, 0]],
            mesh: VersionedOctree::new("mesh", 1.0),
            web: VersionedGraph::new("web", 3, &[(0, 1), (1, 2)]),
            scratch: vec![3.0],
            n_particles: 400,
            title: "a test",
        }
    }

    /// Changes each kind of field.
    fn advance(&mut self) {
        self.step += 1;
        self.time += 0.125;
        self.ions.pushes += 2;
        self.ions.places[7] = [self.time, f64::NAN];
        self.electrons.charges.write(5..6)[0] -= 0.25;
        self.electrons.places.push([self.time; 2]);
        self.metric[1][2] -= 1;
        let leaf = self.mesh.leaves().last().unwrap();
        self.mesh.refine(leaf);
        self.web.set(1, self.step as u8, self.time);
        self.n_particles += 1;
    }
}

fn file(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("state.memory")
}

/// The bytes of all arrays by their names, as a version has them.
fn names(memory: &Memory) -> Vec<String> {
    memory.versions().pop().unwrap().structures.into_iter().map(|structure| structure.name).collect()
}

/// All that a version of a plasma holds, in a form that has bits.
fn bits(plasma: &Plasma) -> (u64, Vec<u64>, String) {
    let places = [&plasma.ions.places, &plasma.electrons.places].into_iter();
    let floats = places.flat_map(|places| places.as_flattened()).chain([&plasma.time]);
    let rest = (
        plasma.ions.pushes,
        &plasma.ions.charges[..],
        &plasma.electrons.charges[..],
        plasma.metric,
        plasma.mesh.leaves().map(|leaf| plasma.mesh.key(leaf)).collect::<Vec<u64>>(),
        plasma.web.states().to_vec(),
        plasma.web.targets(1).to_vec(),
    );
    (plasma.step, floats.map(|x| x.to_bits()).collect(), format!("{rest:?}"))
}

#[test]
fn a_state_of_every_kind_of_field_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let mut plasma = Plasma::new();
    let mut memory = Memory::resume(&file(&folder), &mut plasma).unwrap();
    assert_eq!((plasma.step, plasma.title), (0, "a test"), "a state without a version stays as it is");
    for _ in 0..5 {
        plasma.advance();
        memory.commit_state(&mut plasma).unwrap();
    }
    let expected = "step time ions.pushes ions.places ions.charges electrons.pushes electrons.places electrons.charges \
                    metric mesh.keys mesh.first_children mesh.data mesh.free links.offsets links.targets links.states \
                    links.data";
    assert_eq!(names(&memory).join(" "), expected);
    let steps: Vec<u64> = memory.versions().iter().map(|version| version.step).collect();
    assert_eq!(steps, [3, 4, 5], "the file keeps as many versions as the state says, and shows its steps");
    assert_eq!(memory.block_bytes(), 512);
    drop(memory);

    let mut again = Plasma { title: "another start", ..Plasma::new() };
    let mut memory = Memory::resume(&file(&folder), &mut again).unwrap();
    assert_eq!(bits(&again), bits(&plasma));
    assert_eq!((again.scratch, again.n_particles, again.title), (vec![], 405, "another start"));
    let mut older = Plasma::new();
    let version = memory.restore(3, &mut [&mut older]).unwrap();
    assert_eq!((version.step, older.step, older.n_particles, older.electrons.places.len()), (3, 3, 403, 303));
}

#[test]
fn plain_values_are_stored_where_they_have_changed_and_shared_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let mut plasma = Plasma::new();
    let mut memory = Memory::resume(&file(&folder), &mut plasma).unwrap();
    memory.commit_state(&mut plasma).unwrap();
    plasma.ions.places[99][0] = -0.0;
    plasma.electrons.places.resize(301, [0.0; 2]);
    // Another process has no marks, and still shares what is the same.
    drop(memory);
    let mut memory = Memory::open(&file(&folder), Plasma::memory_options()).unwrap();
    memory.commit_state(&mut plasma).unwrap();
    let versions = memory.versions();
    let new = |name: &str| versions[1].structures.iter().find(|found| found.name == name).unwrap().new_blocks;
    // 16 bytes a place, 32 places a block: the last of 4, and the last of 10.
    assert_eq!([new("ions.places"), new("electrons.places"), new("metric"), new("time")], [1, 1, 0, 0]);
}

#[test]
fn views_show_the_fields_of_an_old_version_in_this_process_and_in_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut plasma = Plasma::new();
    let mut memory = Memory::resume(&file(&folder), &mut plasma).unwrap();
    for _ in 0..3 {
        plasma.advance();
        memory.commit_state(&mut plasma).unwrap();
    }
    let reader = MemoryReader::open(&file(&folder)).unwrap();
    for view in [memory.view(2).unwrap(), reader.view(2).unwrap()] {
        let old = view.of::<Plasma>();
        let electrons = old.electrons.fields();
        assert_eq!((old.step.load().unwrap(), old.time.load().unwrap()), (2, 0.25));
        assert_eq!((electrons.places.n_values().unwrap(), electrons.charges.n_values().unwrap()), (302, 300));
        let mut two = [[0.0; 2]; 2];
        electrons.places.read(299, &mut two).unwrap();
        assert_eq!(two, [[299.0, -0.5], [0.125; 2]]);
        assert!(matches!(electrons.places.read(301, &mut two), Err(MemoryError::Range { .. })));
        assert_eq!(electrons.charges.load().unwrap()[5], 0.5);
        assert_eq!(old.metric.load().unwrap(), [[1, 0, 0], [0, 1, -2]]);
        assert_eq!((old.mesh.load().unwrap().n_nodes(), old.web.load().unwrap().states()[1]), (9, 2));
        assert_eq!(format!("{:?}", old.ions.fields().pushes), "FieldView { name: \"ions.pushes\", .. }");
    }
    let mut copy = Plasma::new();
    reader.newest().unwrap().unwrap().fill(&mut [&mut copy]).unwrap();
    assert_eq!(bits(&copy), bits(&plasma));
}

/// A state with as many values as its type says.
#[derive(Versioned, Debug)]
#[versioned(crate = recoup_memory)]
struct Sized<T: VersionedElement, const N: usize>
where
    T: Versioned,
{
    first: VersionedArray<T>,
    values: [f64; N],
}

#[test]
fn a_version_of_another_length_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut three = Sized { first: vec![1_u8].into(), values: [1.0, 2.0, 3.0] };
    let mut memory = Memory::resume(&file(&folder), &mut three).unwrap();
    assert_eq!(memory.commit_state(&mut three).unwrap(), 1);
    assert_eq!(memory.versions()[0].step, 1, "a state that counts nothing is counted by its versions");
    let mut four = Sized { first: vec![2_u8].into(), values: [4.0; 4] };
    let refused = memory.restore(1, &mut [&mut four]).unwrap_err();
    assert_eq!(refused.to_string(), "structure values: 4 values expected, 3 found");
    assert_eq!((four.first[0], four.values), (2, [4.0; 4]));
    let mut pairs = Pairs::default();
    let refused = memory.restore(1, &mut [&mut pairs]).unwrap_err();
    assert_eq!(refused.to_string(), "structure values: 4 values expected, 3 found");
    let view = memory.view(1).unwrap().of::<Sized<u8, 3>>();
    assert_eq!((view.first.load().unwrap()[..].to_vec(), view.values.load().unwrap()), (vec![1], [1.0, 2.0, 3.0]));
}

/// The same field with values of another shape.
#[derive(Versioned, Debug, Default)]
#[versioned(crate = recoup_memory)]
struct Pairs {
    values: Vec<[f64; 2]>,
}

#[test]
fn two_fields_of_one_name_in_a_version_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = Clashing::default();
    let mut memory = Memory::resume(&file(&folder), &mut state).unwrap();
    let refused = memory.commit_state(&mut state).unwrap_err();
    assert_eq!(refused.to_string(), "two structures are called inner.values");
}

#[test]
fn parts_that_neither_a_field_nor_the_program_names_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut memory = Memory::open(&file(&folder), Plasma::memory_options()).unwrap();
    let nameless: [&mut dyn Versioned; 4] = [
        &mut vec![1.0],
        &mut VersionedArray::<u8>::default(),
        &mut VersionedGraph::<u8, f64>::default(),
        &mut VersionedOctree::<f64, 2>::default(),
    ];
    for part in nameless {
        let refused = memory.commit(1, &mut [part]).unwrap_err();
        assert_eq!(refused.to_string(), "a name has 1 to 255 bytes, 0 found");
    }
    assert_eq!(memory.versions(), []);
}

/// A name that is that of a field of a field.
#[derive(Versioned, Debug, Default)]
#[versioned(crate = recoup_memory)]
struct Clashing {
    inner: Pairs,
    #[versioned(name = "inner.values")]
    other: Vec<f64>,
}
