//! Tiles of 16^3 values of a grid, and the order their residuals are written in.

/// Extent of a tile along each axis.
pub(super) const EDGE: usize = 16;
/// Values of a tile.
pub(super) const TILE: usize = EDGE * EDGE * EDGE;

/// Values of a tile's first plane, and of each further one that lie on its first row or column.
const PLANE: usize = EDGE * EDGE;
const BORDER: usize = 2 * EDGE - 1;
/// Values inside: neither first plane nor row nor column.
const INNER: usize = EDGE - 1;
const FACES: usize = PLANE + INNER * BORDER;

/// Residuals by place into the order they are written in: first those on the tile's three first
/// faces, which are predicted from fewer neighbours and are larger, then the interior; each by
/// ascending place.
pub(super) fn arrange<W: Copy>(tile: &[W; TILE], arranged: &mut [W; TILE]) {
    let (faces, interior) = arranged.split_at_mut(FACES);
    let (first, borders) = faces.split_at_mut(PLANE);
    let planes = tile.as_chunks::<PLANE>().0;
    first.copy_from_slice(&planes[0]);
    let borders = borders.as_chunks_mut::<BORDER>().0.iter_mut();
    let inner_planes = interior.as_chunks_mut::<{ INNER * INNER }>().0;
    for ((plane, border), inner) in planes[1..].iter().zip(borders).zip(inner_planes) {
        border[..EDGE].copy_from_slice(&plane[..EDGE]);
        let rows = plane.as_chunks::<EDGE>().0[1..].iter().zip(inner.as_chunks_mut::<INNER>().0);
        for ((row, inner), first) in rows.zip(&mut border[EDGE..]) {
            *first = row[0];
            inner.copy_from_slice(&row[1..]);
        }
    }
}

/// Undoes [`arrange`].
pub(super) fn put_back<W: Copy>(arranged: &[W; TILE], tile: &mut [W; TILE]) {
    let (faces, interior) = arranged.split_at(FACES);
    let (first, borders) = faces.split_at(PLANE);
    let planes = tile.as_chunks_mut::<PLANE>().0;
    planes[0].copy_from_slice(first);
    let borders = borders.as_chunks::<BORDER>().0.iter();
    let inner_planes = interior.as_chunks::<{ INNER * INNER }>().0;
    for ((plane, border), inner) in planes[1..].iter_mut().zip(borders).zip(inner_planes) {
        plane[..EDGE].copy_from_slice(&border[..EDGE]);
        let rows = plane.as_chunks_mut::<EDGE>().0[1..].iter_mut().zip(inner.as_chunks::<INNER>().0);
        for ((row, inner), first) in rows.zip(&border[EDGE..]) {
            row[0] = *first;
            row[1..].copy_from_slice(inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_come_before_the_interior_each_by_ascending_place() {
        let places: [i64; TILE] = std::array::from_fn(|place| place as i64);
        let mut arranged = [0; TILE];
        arrange(&places, &mut arranged);
        let is_on_face = |place: i64| {
            let place = place as usize;
            place.is_multiple_of(EDGE) || (place / EDGE).is_multiple_of(EDGE) || place < PLANE
        };
        let (faces, interior) = arranged.split_at(FACES);
        assert!(faces.iter().all(|place| is_on_face(*place)) && faces.is_sorted());
        assert!(!interior.iter().any(|place| is_on_face(*place)) && interior.is_sorted());
        let mut back = [0; TILE];
        put_back(&arranged, &mut back);
        assert_eq!(back, places);
    }
}
