//! Molecular dynamics in two dimensions: a plate with a notch is torn, and a crack runs through it.
//!
//! Atoms attract and repel each other as Lennard-Jones says, cut off at 2.5 and shifted to zero
//! there, in units of mass, depth and width. They move by velocity Verlet (Swope et al.,
//! doi:10.1063/1.442716). The plate starts as a perfect lattice whose upper half moves up and whose
//! lower half moves down.
//!
//! `cargo run --release -p recoup-examples --example crack -- --memory crack.memory`

mod keep; // plain:

use std::error::Error;

use recoup::memory::Versioned; // plain:

/// Atoms of a row, and rows.
const EXTENTS: [usize; 2] = [40, 24];
const STEPS: u64 = 1000;
const TIME_STEP: f64 = 0.004;
const CUT: f64 = 2.5;
/// Distance at which two atoms neither attract nor repel each other: 2^(1/6).
const BOND: f64 = 1.122_462_048_309_373;
/// Velocity of the upper and the lower edge.
const PULL: f64 = 1.5;

/// Vectors of all atoms.
type Vectors = Vec<[f64; 2]>;

/// The plate after some steps.
#[derive(Versioned)] // plain:
pub(crate) struct Plate {
    #[versioned(counter)] // plain:
    step: u64,
    places: Vectors,
    velocities: Vectors,
    /// Forces at these places.
    #[versioned(skip = forces(&self.places).forces)] // plain:
    forces: Vectors,
}

impl Plate {
    /// Makes a plate of rows of atoms: their length, and their number.
    pub(crate) fn new(extents: [usize; 2]) -> Self {
        let places = lattice(extents);
        let middle = places.iter().map(|place| place[1]).sum::<f64>() / places.len() as f64;
        let highest = places.iter().map(|place| place[1] - middle).fold(0.0, f64::max);
        let velocities = places.iter().map(|place| [0.0, PULL * (place[1] - middle) / highest]).collect();
        let forces = forces(&places).forces;
        Self { step: 0, places, velocities, forces }
    }

    pub(crate) fn step(&mut self) {
        // v = v + dt/2 f,  x = x + dt v,  f = f(x),  v = v + dt/2 f
        self.kick();
        for (place, velocity) in self.places.iter_mut().zip(&self.velocities) {
            (0..2).for_each(|axis| place[axis] += TIME_STEP * velocity[axis]);
        }
        self.forces = forces(&self.places).forces;
        self.kick();
        self.step += 1;
    }

    fn kick(&mut self) {
        for (velocity, force) in self.velocities.iter_mut().zip(&self.forces) {
            (0..2).for_each(|axis| velocity[axis] += TIME_STEP / 2.0 * force[axis]);
        }
    }

    fn kinetic_energy(&self) -> f64 {
        self.velocities.iter().map(|v| (v[0] * v[0] + v[1] * v[1]) / 2.0).sum()
    }

    fn energy(&self) -> f64 {
        self.kinetic_energy() + forces(&self.places).energy
    }

    /// Bonds of the lattice that are half as long again.
    fn broken_bonds(&self, lattice: &Vectors) -> usize {
        let distance =
            |places: &Vectors, [i, j]: [usize; 2]| (places[i][0] - places[j][0]).hypot(places[i][1] - places[j][1]);
        let pairs = (0..lattice.len()).flat_map(|i| (0..i).map(move |j| [i, j]));
        let bonds = pairs.filter(|pair| distance(lattice, *pair) < 1.01 * BOND);
        bonds.filter(|pair| distance(&self.places, *pair) > 1.5 * BOND).count()
    }

    /// Returns a number that differs if a bit of the places differs, but for rare chance.
    pub(crate) fn fingerprint(&self) -> u64 {
        let hash = |hash: u64, value: &f64| (hash ^ value.to_bits()).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        self.places.as_flattened().iter().fold(0, hash)
    }
}

/// Places of the lattice in which neighbours neither attract nor repel each other. The notch is a
/// quarter of the middle row.
fn lattice(extents: [usize; 2]) -> Vectors {
    let [columns, rows] = extents;
    let place = |index: usize| {
        let [x, y] = [index % columns, index / columns];
        [BOND * (x as f64 + (y % 2) as f64 / 2.0), BOND * 0.75_f64.sqrt() * y as f64]
    };
    let is_notch = |index: &usize| index / columns == rows / 2 && index % columns < columns / 4;
    (0..columns * rows).filter(|index| !is_notch(index)).map(place).collect()
}

/// Forces on all atoms, and the energy of all pairs.
struct Interactions {
    forces: Vectors,
    energy: f64,
}

/// Adds up the forces of all pairs that are close. Atoms are sorted into cells as wide as the
/// cut-off, so a pair lies in one cell or in two neighbours.
fn forces(places: &[[f64; 2]]) -> Interactions {
    let least = |axis: usize| places.iter().map(|place| place[axis]).fold(f64::INFINITY, f64::min);
    let most = |axis: usize| places.iter().map(|place| place[axis]).fold(f64::NEG_INFINITY, f64::max);
    let corner = [least(0), least(1)];
    let cell_of = |place: &[f64; 2]| [0, 1].map(|axis| ((place[axis] - corner[axis]) / CUT) as usize);
    let [width, height] = cell_of(&[most(0), most(1)]).map(|last| last + 1);
    let mut cells = vec![Vec::new(); width * height];
    for (atom, place) in places.iter().enumerate() {
        let [x, y] = cell_of(place);
        cells[y * width + x].push(atom);
    }
    let mut found = Interactions { forces: vec![[0.0; 2]; places.len()], energy: 0.0 };
    for (atom, place) in places.iter().enumerate() {
        let [x, y] = cell_of(place);
        for row in y.saturating_sub(1)..(y + 2).min(height) {
            let near = row * width + x.saturating_sub(1)..row * width + (x + 2).min(width);
            for other in cells[near].iter().flatten().copied().filter(|other| *other > atom) {
                found.add_pair([atom, other], [0, 1].map(|axis| place[axis] - places[other][axis]));
            }
        }
    }
    found
}

impl Interactions {
    fn add_pair(&mut self, pair: [usize; 2], apart: [f64; 2]) {
        let square = apart[0] * apart[0] + apart[1] * apart[1];
        if square >= CUT * CUT {
            return;
        }
        // u = 4 (r^-12 - r^-6) - u(cut),  f = 24 (2 r^-12 - r^-6) / r^2  x
        let energy = |sixth: f64| 4.0 * (sixth * sixth - sixth);
        let sixth = square.powi(-3);
        let strength = 24.0 * (2.0 * sixth * sixth - sixth) / square;
        self.energy += energy(sixth) - energy(CUT.powi(-6));
        for (axis, distance) in apart.iter().enumerate() {
            self.forces[pair[0]][axis] += strength * distance;
            self.forces[pair[1]][axis] -= strength * distance;
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut plate = Plate::new(EXTENTS);
    let first = [plate.kinetic_energy(), plate.energy()];
    let mut keep = keep::Keep::resume("crack", &mut plate)?; // plain:
    while plate.step < STEPS {
        plate.step();
        keep.save_if_due(&mut plate)?; // plain:
    }
    // For a spring of w = sqrt(stiffness), Verlet keeps an energy that differs from this one by at
    // most (w dt)^2 / 4 of it. The stiffest wave of the lattice has w^2 = 6 u'' = 343.
    let allowed = 343.0 * TIME_STEP * TIME_STEP / 4.0;
    let error = (plate.energy() - first[1]).abs() / first[0];
    println!(
        "{STEPS} steps, {} bonds broken, bits {:016x}",
        plate.broken_bonds(&lattice(EXTENTS)),
        plate.fingerprint()
    );
    println!("energy changed by {error:.1e} of that of the first motion, at most {allowed:.1e} expected");
    if error <= allowed { Ok(()) } else { Err("energy was not kept".into()) }
}
