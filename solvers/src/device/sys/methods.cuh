// Fused passes of the methods: those of CG, then those of BiCGSTAB.

// Row i of D^-1 r, or of r without a diagonal.
DEVICE double preconditioned(const double* diagonal, const double* r, u32 i) {
    return diagonal ? r[i] / diagonal[i] : r[i];
}

// r = r - alpha q; r . r, r . D^-1 r, u_j . r
extern "C" __global__ void cg_residual_step(Rows all, double alpha, const double* __restrict__ q,
                                            const double* __restrict__ diagonal, Vectors u, u32 count,
                                            double* __restrict__ r, double* sums) {
    BlockRows rows(all);
    double squares = 0.0;
    double products = 0.0;
    for (u32 i = rows.begin + rows.lane; i < rows.end; i += LANES) {
        double value = r[i] - alpha * q[i];
        r[i] = value;
        squares += value * value;
        products += value * (diagonal ? value / diagonal[i] : value);
    }
    rows.add_up(0, squares, sums);
    rows.add_up(1, products, sums);
    for (u32 j = 0; j < count; j++) {
        const double* v = u.v[j];
        double lane = 0.0;
        for (u32 i = rows.begin + rows.lane; i < rows.end; i += LANES) lane += v[i] * r[i];
        rows.add_up(2 + j, lane, sums);
    }
}

// x = x + alpha p, p = D^-1 r + beta p + sum_j c_j w_j
extern "C" __global__ void cg_iterate_step(u32 n, double alpha, double beta, const double* r, const double* diagonal,
                                           Vectors w, Coefficients coefficients, u32 count, double* x, double* p) {
    u32 i = own_row();
    if (i >= n) return;
    double direction = p[i];
    x[i] += alpha * direction;
    direction = preconditioned(diagonal, r, i) + beta * direction;
    for (u32 j = 0; j < count; j++) direction += coefficients.c[j] * w.v[j][i];
    p[i] = direction;
}

// p = D^-1 r + sum_j c_j w_j
extern "C" __global__ void cg_restart_direction(u32 n, const double* r, const double* diagonal, Vectors w,
                                                Coefficients coefficients, u32 count, double* p) {
    u32 i = own_row();
    if (i >= n) return;
    double direction = preconditioned(diagonal, r, i);
    for (u32 j = 0; j < count; j++) direction += coefficients.c[j] * w.v[j][i];
    p[i] = direction;
}

// t . s, t . t
extern "C" __global__ void bicgstab_products(Rows all, const double* t, const double* s, double* sums) {
    BlockRows rows(all);
    double products = 0.0;
    double squares = 0.0;
    for (u32 i = rows.begin + rows.lane; i < rows.end; i += LANES) {
        products += t[i] * s[i];
        squares += t[i] * t[i];
    }
    rows.add_up(0, products, sums);
    rows.add_up(1, squares, sums);
}

// x = x + (alpha p + omega s), r = r - omega t; r . r, shadow . r. Without s, r is s.
extern "C" __global__ void bicgstab_iterate_step(Rows all, double alpha, double omega, const double* __restrict__ p,
                                                 const double* __restrict__ s, const double* __restrict__ t,
                                                 const double* __restrict__ shadow, double* __restrict__ x,
                                                 double* __restrict__ r, double* sums) {
    BlockRows rows(all);
    double squares = 0.0;
    double products = 0.0;
    for (u32 i = rows.begin + rows.lane; i < rows.end; i += LANES) {
        double before = r[i];
        x[i] += alpha * p[i] + omega * (s ? s[i] : before);
        double value = before - omega * t[i];
        r[i] = value;
        squares += value * value;
        products += shadow[i] * value;
    }
    rows.add_up(0, squares, sums);
    rows.add_up(1, products, sums);
}

// p = r + beta (p - omega v)
extern "C" __global__ void bicgstab_direction_step(u32 n, double beta, double omega, const double* r, const double* v,
                                                   double* p) {
    u32 i = own_row();
    if (i < n) p[i] = r[i] + beta * (p[i] - omega * v[i]);
}
