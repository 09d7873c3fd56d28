// Predictions within a tile: tile.rs, fitted.rs, and of kernels.rs the differences and sums. Follows qb_cut.cuh.

const u32 PLANE = EDGE * EDGE;
// Values of a further plane that lie on its first row or column; those inside a row; those on the three first faces.
const u32 BORDER = 2 * EDGE - 1;
const u32 INNER = EDGE - 1;
const u32 FACES = PLANE + INNER * BORDER;
// Weights are multiples of 2^-FRACTION.
const u32 FRACTION = 12;
const i64 NARROW_FITTED = 1ll << 18;

// The place of a residual, by its number in the order they are written in.
DEVICE u32 place_of(u32 residual) {
    if (residual < PLANE) return residual;
    if (residual < FACES) {
        const u32 z = 1 + (residual - PLANE) / BORDER, i = (residual - PLANE) % BORDER;
        return z * PLANE + (i < EDGE ? i : (i - INNER) * EDGE);
    }
    const u32 i = residual - FACES, z = 1 + i / (INNER * INNER), y = 1 + i / INNER % INNER;
    return z * PLANE + y * EDGE + 1 + i % INNER;
}

// The inverse of place_of.
DEVICE u32 residual_of(u32 place) {
    const u32 x = place % EDGE, y = place / EDGE % EDGE, z = place / PLANE;
    if (z == 0) return place;
    if (y == 0) return PLANE + (z - 1) * BORDER + x;
    if (x == 0) return PLANE + (z - 1) * BORDER + INNER + y;
    return FACES + ((z - 1) * INNER + y - 1) * INNER + x - 1;
}

// Unsigned integers of the width of a signed one.
template <class I>
struct UnsignedOf;
template <>
struct UnsignedOf<i32> {
    typedef u32 Word;
};
template <>
struct UnsignedOf<i64> {
    typedef u64 Word;
};

// Codes relative to the base of their tile, by place.
struct RelativeCodes {
    const i64* codes;
    u64 base;
    __device__ u64 operator()(u32 place) const { return (u64)codes[place] - base; }
};

// a q[x - 1] + b q[x] + c q[x + 1] in a row, whose ends stand in for their neighbours.
template <class I, class Q>
DEVICE typename UnsignedOf<I>::Word weighted(I a, I b, I c, const Q& q, u32 row, u32 x) {
    typedef typename UnsignedOf<I>::Word U;
    const U left = (U)q(row + (x > 0 ? x - 1 : 0)), right = (U)q(row + (x < EDGE - 1 ? x + 1 : x));
    return (U)a * left + (U)b * (U)q(row + x) + (U)c * right;
}

// The prediction at a place from those before it. Weights are read from places that are known when this is compiled.
template <class I, class Q>
DEVICE I fitted_prediction(const i16* w, const Q& q, u32 place) {
    typedef typename UnsignedOf<I>::Word U;
    const u32 x = place % EDGE, y = place / EDGE % EDGE, z = place / PLANE, row = place - x;
    U sum = 1u << (FRACTION - 1);
    if (row == 0) {
        sum += (U)(x > 0 ? q(place - 1) : 0) << FRACTION;
        return (I)sum >> FRACTION;
    }
    const bool is_first = z == 0;
    const u32 south = y > 0 ? row - EDGE : row - PLANE;
    sum += weighted<I>(is_first ? w[13] : w[0], is_first ? w[14] : w[1], is_first ? w[15] : w[2], q, south, x);
    if (!is_first) {
        const u32 below = row - PLANE;
        sum += weighted<I>(w[3], w[4], w[5], q, y > 0 ? below - EDGE : below, x);
        sum += weighted<I>(w[6], w[7], w[8], q, below, x);
        sum += weighted<I>(w[9], w[10], w[11], q, y < EDGE - 1 ? below + EDGE : below, x);
    }
    sum += (U)(I)(is_first ? w[16] : w[12]) * (U)q(x > 0 ? place - 1 : south);
    return (I)sum >> FRACTION;
}

// The difference at a place along all three axes; nothing stands before the first faces.
template <class I>
DEVICE I tile_difference(const RelativeCodes& q, u32 place) {
    typedef typename UnsignedOf<I>::Word U;
    U difference = 0;
    for (u32 corner = 0; corner < 8; ++corner) {
        const bool is_x = corner & 1, is_y = corner & 2, is_z = corner & 4;
        const bool is_outside = (is_x && place % EDGE == 0) || (is_y && place / EDGE % EDGE == 0) || (is_z && place < PLANE);
        const U code = is_outside ? 0 : (U)q(place - (is_x ? 1 : 0) - (is_y ? EDGE : 0) - (is_z ? PLANE : 0));
        difference += is_x ^ is_y ^ is_z ? 0 - code : code;
    }
    return (I)difference;
}

// The residuals of the warp's group, and its head.
template <class I>
DEVICE Head tile_residuals(const Window& window, const RelativeCodes& q, u64 (&residuals)[OWN]) {
    typename UnsignedOf<I>::Word z[OWN] = {};
    ROLLED for (u32 k = 0; k < OWN; ++k) {
        const u32 place = place_of(warp_of_thread() * GROUP + WARP * k + lane_of_thread());
        const I d = window.is_fitted ? (I)((I)q(place) - fitted_prediction<I>(window.weights, q, place))
                                     : tile_difference<I>(q, place);
        // Registers have no numbers that a loop could count.
        UNROLLED for (u32 own = 0; own < OWN; ++own) z[own] = own == k ? zigzag(d) : z[own];
    }
    UNROLLED for (u32 k = 0; k < OWN; ++k) residuals[k] = z[k];
    Head head = {0, 0, 0, 0, sizeof(I) == 8};
    choose_width(z, head);
    return head;
}

// Whether all codes of a tile lie near its base; all threads of the block come here.
DEVICE bool is_narrow_tile(const Window& window, const RelativeCodes& q) {
    const u64 reach = window.is_fitted ? NARROW_FITTED : NARROW;
    u64 excess = 0;
    for (u32 k = 0; k < OWN; ++k) excess |= q(threadIdx.x + k * THREADS) + reach;
    return !__syncthreads_or(excess >= 2 * reach);
}

// Running sums along the rows and columns of the plane of a warp, whose lanes have its values 32 k + l.
DEVICE void sum_plane(u64 (&d)[OWN]) {
    const u32 lane = lane_of_thread();
    u64 above = 0;
    UNROLLED for (u32 k = 0; k < OWN; ++k) {
        UNROLLED for (u32 distance = 1; distance < EDGE; distance *= 2) {
            const u64 before = __shfl_up_sync(ALL, d[k], distance);
            d[k] += lane % EDGE >= distance ? before : 0;
        }
        // Two rows: the first stands above the second.
        const u64 own = d[k], other = __shfl_xor_sync(ALL, own, EDGE);
        d[k] += above + (lane >= EDGE ? other : 0);
        above += own + other;
    }
}

// Codes relative to the base from differences, which the threads have by place; into `tile`.
DEVICE void tile_sums(u64 (&d)[OWN], u64* tile) {
    const u32 first = warp_of_thread() * GROUP + lane_of_thread();
    sum_plane(d);
    for (u32 k = 0; k < OWN; ++k) tile[first + WARP * k] = d[k];
    __syncthreads();
    if (threadIdx.x < PLANE) {
        u64 sum = 0;
        ROLLED for (u32 place = threadIdx.x; place < BLOCK; place += PLANE) {
            sum += tile[place];
            tile[place] = sum;
        }
    }
}

// Codes by place, some of which are not there yet.
struct PlacedCodes {
    const u64* tile;
    __device__ u64 operator()(u32 place) const { return tile[place]; }
};

// Codes relative to the base from residuals in `tile`, in their place. A place needs x - 1, the row y - 1 up to x + 1
// and the plane z - 1 up to y + 1 and x + 1: so all places with the same x + 2 y + 4 z can be restored at once.
template <class I>
DEVICE void fitted_codes(const Window& window, u64* tile) {
    const u32 row = threadIdx.x, begins = 2 * (row % EDGE) + 4 * (row / EDGE);
    const PlacedCodes q = {tile};
    ROLLED for (u32 turn = 0; turn < 7 * (EDGE - 1) + 1; ++turn) {
        if (row < PLANE && turn >= begins && turn - begins < EDGE) {
            const u32 place = EDGE * row + turn - begins;
            tile[place] += (u64)fitted_prediction<I>(window.weights, q, place);
        }
        __syncthreads();
    }
}
