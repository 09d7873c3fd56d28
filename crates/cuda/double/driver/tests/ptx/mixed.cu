// A kernel of what the compiler makes of usual C, rounded as on the host.

typedef unsigned int u32;
typedef unsigned long long u64;

__constant__ double weights[4] = {1.0, -2.5, 3.25, 0.5};

// An array indexed at run time, constants, a switch, conversions, an atomic.
extern "C" __global__ void mixed(u32 n, const double* x, double* y, u32* positive) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double window[8];
    for (u32 k = 0; k < 8; ++k) window[k] = x[(i + k * k) % n] * weights[k % 4];
    const double taken = window[i * 5 % 8];
    double result;
    switch (i % 7) {
        case 0: result = fma(taken, 2.0, 1.0); break;
        case 1: result = rint(taken); break;
        case 2: result = (float)taken; break;
        case 3: result = fmax(taken, 0.125); break;
        case 4: result = (int)(taken * 1000.0) / (1 + (int)i); break;
        case 5: result = round(taken * 64.0); break;
        default: result = -taken; break;
    }
    y[i] = result;
    if (x[i] > 0) atomicAdd(positive, 1u);
}
