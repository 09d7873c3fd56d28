// The values of a block: shape.rs, for a piece of a line and for a tile of a grid. Follows qb.cuh.
//
// A block is padded to whole groups with the nearest values. A cut finds the value at a place of the padded block, and
// knows which places are not padding.

const u32 EDGE = 16;
const u32 COEFFICIENTS = 17;

// What the host says of the values of a launch: their number and stride in a line; of a grid its extents, fastest
// first, the distances of its rows and of its planes, and the weights, if it is fitted.
struct Window {
    u64 n;
    u64 row, plane;
    u32 extents[3];
    u32 stride;
    i16 weights[COEFFICIENTS + 1];
    u32 is_fitted;
};

// A piece of a line, from value `first` on.
template <class V>
struct LineCut {
    typedef typename V::Bits Bits;
    static const bool TILED = false;
    u64 first;
    u32 count, stride;

    __device__ LineCut(const Window& w, u32 block) : first((u64)block * BLOCK), count(), stride(w.stride) {
        count = w.n - first < BLOCK ? (u32)(w.n - first) : BLOCK;
    }
    __device__ u32 groups() const { return (count + GROUP - 1) / GROUP; }
    __device__ bool has(u32 place) const { return place < count; }
    // Number of a value among those of the block.
    __device__ u32 rank(u32 place) const { return place; }
    // Distance of a value, or of the one nearest to padding, from the first.
    __device__ u32 index(u32 place) const { return place; }
    __device__ u32 nearest(u32 place) const { return place < count ? place : count - 1; }
};

// A tile of a grid, whose corner is value `first`.
template <class V>
struct TileCut {
    typedef typename V::Bits Bits;
    static const bool TILED = true;
    u64 first, row, plane;
    u32 inside[3], count;
    const Window* window;

    __device__ TileCut(const Window& w, u32 block) : first(), row(w.row), plane(w.plane), inside(), count(), window(&w) {
        const u32 across = (w.extents[0] + EDGE - 1) / EDGE, down = (w.extents[1] + EDGE - 1) / EDGE;
        const u32 x = block % across * EDGE, y = block / across % down * EDGE, z = block / (across * down) * EDGE;
        inside[0] = w.extents[0] - x < EDGE ? w.extents[0] - x : EDGE;
        inside[1] = w.extents[1] - y < EDGE ? w.extents[1] - y : EDGE;
        inside[2] = w.extents[2] - z < EDGE ? w.extents[2] - z : EDGE;
        count = inside[0] * inside[1] * inside[2];
        first = z * plane + y * row + x;
    }
    __device__ u32 groups() const { return GROUPS; }
    __device__ bool has(u32 place) const {
        return place % EDGE < inside[0] && place / EDGE % EDGE < inside[1] && place / (EDGE * EDGE) < inside[2];
    }
    __device__ u32 rank(u32 place) const {
        return (place / (EDGE * EDGE) * inside[1] + place / EDGE % EDGE) * inside[0] + place % EDGE;
    }
    __device__ u64 index(u32 place) const {
        return place / (EDGE * EDGE) * plane + place / EDGE % EDGE * row + place % EDGE;
    }
    __device__ u64 nearest(u32 place) const {
        const u32 x = place % EDGE, y = place / EDGE % EDGE, z = place / (EDGE * EDGE);
        const u32 to_x = x < inside[0] ? x : inside[0] - 1, to_y = y < inside[1] ? y : inside[1] - 1;
        const u32 to_z = z < inside[2] ? z : inside[2] - 1;
        return to_z * plane + to_y * row + to_x;
    }
};
