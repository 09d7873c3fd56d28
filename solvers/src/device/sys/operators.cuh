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
    __device__ double row(const double* x, u32 i) const {
        u64 entry = starts[i / SLICE] + i % SLICE;
        double total = 0.0;
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
DEVICE void apply_dot(const A& a, u32 n, const double* __restrict__ x, double* __restrict__ y, double* sums) {
    BlockRows rows(n);
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
DEVICE void residual(const A& a, u32 n, const double* __restrict__ b, const double* __restrict__ x,
                     double* __restrict__ r, double* sums) {
    BlockRows rows(n);
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
    extern "C" __global__ void NAME##_apply_dot(FORM a, u32 n, const double* x, double* y, double* sums) {          \
        apply_dot(a, n, x, y, sums);                                                                                \
    }                                                                                                               \
    extern "C" __global__ void NAME##_residual(FORM a, u32 n, const double* b, const double* x, double* r,          \
                                               double* sums) {                                                      \
        residual(a, n, b, x, r, sums);                                                                              \
    }

OPERATOR_KERNELS(stencil, Stencil)
OPERATOR_KERNELS(slices, Slices)

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
