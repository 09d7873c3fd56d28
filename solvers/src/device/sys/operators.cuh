// Products with A and the passes that take one: the 7-point Laplacian, and rows in slices.

// The Laplacian on a cube of this side, the first direction fastest.
struct Stencil {
    u32 side;

    // Row i of A x: terms in ascending column order; absent neighbours are 0.
    __device__ double row(const double* x, u32 i) const {
        u32 plane = side * side;
        u32 column = i % side;
        u32 line = i / side % side;
        u32 height = i / plane;
        double below = height > 0 ? x[i - plane] : 0.0;
        double front = line > 0 ? x[i - side] : 0.0;
        double west = column > 0 ? x[i - 1] : 0.0;
        double east = column + 1 < side ? x[i + 1] : 0.0;
        double back = line + 1 < side ? x[i + side] : 0.0;
        double above = height + 1 < side ? x[i + plane] : 0.0;
        return 0.0 - below - front - west + 6.0 * x[i] - east - back - above;
    }
};

// Rows of a slice, whose entries number k stand next to each other.
const u32 SLICE = 32;

// A matrix in slices of 32 rows: entry k of row i stands at `starts[i / 32] + 32 k + i % 32`.
struct Slices {
    const u64* starts;
    const u32* lengths;
    const u32* columns;
    const double* values;

    // Row i of A x, in column order.
    __device__ double row(const double* x, u32 i) const { return row_from(0.0, x, i); }

    // The same, added to `total` entry by entry.
    __device__ double row_from(double total, const double* x, u32 i) const {
        u64 entry = starts[i / SLICE] + i % SLICE;
        for (u32 left = lengths[i]; left > 0; left--) {
            total += values[entry] * x[columns[entry]];
            entry += SLICE;
        }
        return total;
    }
};

// y = A x
template <class A>
DEVICE void apply(const A& a, u32 n, const double* x, double* y) {
    u32 i = own_row();
    if (i < n) y[i] = a.row(x, i);
}

// y = A x; x . y
template <class A>
DEVICE void apply_dot(const A& a, Rows all, const double* __restrict__ x, double* __restrict__ y, double* sums) {
    BlockRows rows(all);
    double lane = 0.0;
    for (u32 i = rows.begin + rows.lane; i < rows.end; i += LANES) {
        double product = a.row(x, i);
        y[i] = product;
        lane += x[i] * product;
    }
    rows.add_up(0, lane, sums);
}

// r = b - A x; r . r
template <class A>
DEVICE void residual(const A& a, Rows all, const double* __restrict__ b, const double* __restrict__ x,
                     double* __restrict__ r, double* sums) {
    BlockRows rows(all);
    double lane = 0.0;
    for (u32 i = rows.begin + rows.lane; i < rows.end; i += LANES) {
        double value = b[i] - a.row(x, i);
        r[i] = value;
        lane += value * value;
    }
    rows.add_up(0, lane, sums);
}

#define OPERATOR_KERNELS(NAME, FORM)                                                                                \
    extern "C" __global__ void NAME##_apply(FORM a, u32 n, const double* x, double* y) { apply(a, n, x, y); }       \
    extern "C" __global__ void NAME##_apply_dot(FORM a, Rows all, const double* x, double* y, double* sums) {       \
        apply_dot(a, all, x, y, sums);                                                                                \
    }                                                                                                               \
    extern "C" __global__ void NAME##_residual(FORM a, Rows all, const double* b, const double* x, double* r,       \
                                               double* sums) {                                                      \
        residual(a, all, b, x, r, sums);                                                                              \
    }

OPERATOR_KERNELS(stencil, Stencil)
OPERATOR_KERNELS(slices, Slices)

// Some planes of a cube: what lies around them has come from the ranks next to this one.
struct Slab {
    const double* below;
    const double* above;
    u32 side;
    u32 planes;
};

// y = A x for the planes of a slab, the planes beside them absent at the boundary
extern "C" __global__ void slab_apply(Slab a, u32 n, const double* x, double* y) {
    u32 i = own_row();
    if (i >= n) return;
    u32 plane = a.side * a.side;
    u32 column = i % a.side;
    u32 line = i / a.side % a.side;
    u32 height = i / plane;
    double below = height > 0 ? x[i - plane] : a.below ? a.below[i] : 0.0;
    double front = line > 0 ? x[i - a.side] : 0.0;
    double west = column > 0 ? x[i - 1] : 0.0;
    double east = column + 1 < a.side ? x[i + 1] : 0.0;
    double back = line + 1 < a.side ? x[i + a.side] : 0.0;
    double above = height + 1 < a.planes ? x[i + plane] : a.above ? a.above[i % plane] : 0.0;
    y[i] = 0.0 - below - front - west + 6.0 * x[i] - east - back - above;
}

// Entries of rows in columns of other ranks: those of row `rows[k]` stand from `starts[k]` to `starts[k + 1]`.
struct Beyond {
    const u32* rows;
    const u64* starts;
    const u32* columns;
    const double* values;
    // Columns below this one come before those of this rank.
    u64 low;
};

// y = A x for the rows that have such entries, in column order
extern "C" __global__ void apply_beyond(Slices a, Beyond b, u32 count, const double* x, const double* halo,
                                        double* y) {
    u32 k = own_row();
    if (k >= count) return;
    u64 entry = b.starts[k];
    u64 end = b.starts[k + 1];
    u32 i = b.rows[k];
    double total = 0.0;
    for (; entry < end && b.columns[entry] < b.low; entry++) total += b.values[entry] * halo[b.columns[entry]];
    total = a.row_from(total, x, i);
    for (; entry < end; entry++) total += b.values[entry] * halo[b.columns[entry]];
    y[i] = total;
}

// The values of some rows, one after the other.
extern "C" __global__ void gather(u32 count, const u32* rows, const double* x, double* target) {
    u32 k = own_row();
    if (k < count) target[k] = x[rows[k]];
}

// The squares of each plane, in the order of the host's sweep: in eight lanes, point x of every line in lane x mod 8, the
// lines in order, then the lanes in order. Eight threads a plane.
extern "C" __global__ void plane_squares(u32 side, u32 planes, const double* r, double* sums) {
    u32 thread = own_row();
    u32 plane = thread / HALF;
    u32 lane = thread % HALF;
    double own = 0.0;
    if (plane < planes) {
        const double* values = r + plane * side * side;
        for (u32 line = 0; line < side; line++) {
            for (u32 x = lane; x < side; x += HALF) own += values[line * side + x] * values[line * side + x];
        }
    }
    double total = 0.0;
    for (u32 other = 0; other < HALF; other++) total += __shfl_sync(ALL, own, other, HALF);
    if (plane < planes && lane == 0) sums[plane] = total;
}
