// Passes over vectors: those of kernels/vector.rs, with their names.

extern "C" __global__ void dot(Rows all, const double* x, const double* y, double* sums) {
    BlockRows rows(all);
    double lane = 0.0;
    for (u32 i = rows.begin + rows.lane; i < rows.end; i += LANES) lane += x[i] * y[i];
    rows.add_up(0, lane, sums);
}

// r . D^-1 r
extern "C" __global__ void scaled_dot(Rows all, const double* diagonal, const double* r, double* sums) {
    BlockRows rows(all);
    double lane = 0.0;
    for (u32 i = rows.begin + rows.lane; i < rows.end; i += LANES) lane += r[i] * (r[i] / diagonal[i]);
    rows.add_up(0, lane, sums);
}

// y = y + alpha x
extern "C" __global__ void axpy(u32 n, double alpha, const double* x, double* y) {
    u32 i = own_row();
    if (i < n) y[i] += alpha * x[i];
}

// y = x + beta y
extern "C" __global__ void xpay(u32 n, const double* x, double beta, double* y) {
    u32 i = own_row();
    if (i < n) y[i] = x[i] + beta * y[i];
}

// target = alpha x
extern "C" __global__ void scaled_copy(u32 n, double alpha, const double* x, double* target) {
    u32 i = own_row();
    if (i < n) target[i] = alpha * x[i];
}

// z = D^-1 r
extern "C" __global__ void divide(u32 n, const double* r, const double* diagonal, double* z) {
    u32 i = own_row();
    if (i < n) z[i] = r[i] / diagonal[i];
}

// u = u / divisor
extern "C" __global__ void divide_by(u32 n, double divisor, double* u) {
    u32 i = own_row();
    if (i < n) u[i] /= divisor;
}

// r = x + omega D^-1 r
extern "C" __global__ void relax(u32 n, double omega, const double* inverse_diagonal, const double* x, double* r) {
    u32 i = own_row();
    if (i < n) r[i] = x[i] + omega * inverse_diagonal[i] * r[i];
}

// h_j = w . v_j: groups of four vectors in eight lanes, two vectors for each half of the threads; the others in sixteen.
extern "C" __global__ void multi_dot(Rows all, const double* w, Vectors basis, u32 count, double* sums) {
    BlockRows rows(all);
    u32 lane = rows.lane % HALF;
    u32 whole = count / 4 * 4;
    for (u32 four = 0; four < whole; four += 4) {
        u32 first = four + rows.lane / HALF * 2;
        const double* u = basis.v[first];
        const double* v = basis.v[first + 1];
        double of_u = 0.0;
        double of_v = 0.0;
        for (u32 i = rows.begin + lane; i < rows.end; i += HALF) {
            of_u += w[i] * u[i];
            of_v += w[i] * v[i];
        }
        of_u = sum_lanes<HALF>(of_u);
        of_v = sum_lanes<HALF>(of_v);
        if (lane == 0 && rows.block < rows.blocks) {
            sums[u64(first) * rows.blocks + rows.block] = of_u;
            sums[u64(first + 1) * rows.blocks + rows.block] = of_v;
        }
    }
    for (u32 j = whole; j < count; j++) {
        const double* v = basis.v[j];
        double own = 0.0;
        for (u32 i = rows.begin + rows.lane; i < rows.end; i += LANES) own += w[i] * v[i];
        rows.add_up(j, own, sums);
    }
}

// w = w + sum_j c_j v_j, from the left; w . w
extern "C" __global__ void multi_axpy(Rows all, Vectors basis, Coefficients coefficients, u32 count, double* w,
                                      double* sums) {
    BlockRows rows(all);
    double lane = 0.0;
    for (u32 i = rows.begin + rows.lane; i < rows.end; i += LANES) {
        double value = w[i];
        for (u32 j = 0; j < count; j++) value += coefficients.c[j] * basis.v[j][i];
        w[i] = value;
        lane += value * value;
    }
    rows.add_up(0, lane, sums);
}

// Threads of a block of `combine`, and vectors it makes at most.
const u32 COMBINE_THREADS = 64;
const u32 COMBINED_MAX = 32;

// v_j = sum_i c_ij v_i for the first `made` of `count` vectors; `columns` holds the c_ij of each j in a row.
extern "C" __global__ void combine(u32 n, double* const* basis, u32 count, const double* columns, u32 made) {
    __shared__ double room[COMBINED_MAX][COMBINE_THREADS];
    u32 i = own_row();
    if (i >= n) return;
    for (u32 j = 0; j < made; j++) {
        double total = 0.0;
        for (u32 k = 0; k < count; k++) total += columns[j * count + k] * basis[k][i];
        room[j][threadIdx.x] = total;
    }
    for (u32 j = 0; j < made; j++) basis[j][i] = room[j][threadIdx.x];
}
