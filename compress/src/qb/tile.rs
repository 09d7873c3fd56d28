//! Tiles of 16^3 values of a grid, and the order their residuals are written in.

use super::kernels::Int;

/// Extent of a tile along each axis.
pub(super) const EDGE: usize = 16;
/// Values of a tile.
pub(super) const TILE: usize = EDGE * EDGE * EDGE;

/// Places of a tile in the order residuals are written: first those on its three first faces, which are
/// predicted from fewer neighbours and are larger, then the interior; each by ascending place.
pub(super) static ORDER: [u16; TILE] = order();

const fn order() -> [u16; TILE] {
    let mut order = [0; TILE];
    let (mut face, mut interior) = (0, TILE - (EDGE - 1) * (EDGE - 1) * (EDGE - 1));
    let mut place = 0;
    while place < TILE {
        let on_face = place % EDGE == 0 || place / EDGE % EDGE == 0 || place / (EDGE * EDGE) == 0;
        let next = if on_face { &mut face } else { &mut interior };
        order[*next] = place as u16;
        *next += 1;
        place += 1;
    }
    order
}

/// Residuals by place into the order of writing.
pub(super) fn arrange<I: Int>(tile: &[I; TILE], arranged: &mut [I; TILE]) {
    for (target, place) in arranged.iter_mut().zip(&ORDER) {
        *target = tile[usize::from(*place) % TILE];
    }
}

/// Undoes [`arrange`].
pub(super) fn put_back<I: Int>(arranged: &[I; TILE], tile: &mut [I; TILE]) {
    for (value, place) in arranged.iter().zip(&ORDER) {
        tile[usize::from(*place) % TILE] = *value;
    }
}
