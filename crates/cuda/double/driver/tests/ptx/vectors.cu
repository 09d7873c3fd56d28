// Kernels of vectors for tests: arithmetic rounded as on the host, sums in an order the host can repeat.

typedef unsigned int u32;
typedef unsigned long long u64;

__constant__ double weights[4] = {1.0, -2.5, 3.25, 0.5};

extern "C" __global__ void axpy(u64 n, double a, const double* __restrict__ x, double* y) {
    const u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void divide(u32 n, const double* x, const double* y, double* z) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = sqrt(fabs(x[i] / (fabs(y[i]) + 0.25))) / 3.0;
}

// Blocks of 256 threads.
extern "C" __global__ void dot(u32 n, const double* x, const double* y, double* sums) {
    __shared__ double part[8];
    double sum = 0;
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i] * y[i];
    for (u32 offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = threadIdx.x < 8 ? part[threadIdx.x] : 0;
    for (u32 offset = 4; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void slices(u32 rows, const u32* starts, const u32* widths, const u32* columns,
                                  const double* entries, const double* x, double* y) {
    const u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    u64 at = starts[row / 32] + row % 32;
    double sum = 0;
    for (u32 k = 0; k < widths[row / 32]; ++k, at += 32) sum += entries[at] * x[columns[at]];
    y[row] = sum;
}

extern "C" __global__ void stencil(u32 nx, u32 ny, u32 nz, const double* __restrict__ x, double* y) {
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 j = blockIdx.y * blockDim.y + threadIdx.y;
    const u32 k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i >= nx || j >= ny || k >= nz) return;
    const u64 plane = (u64)nx * ny, at = k * plane + (u64)j * nx + i;
    double sum = 6 * x[at];
    if (k > 0) sum -= x[at - plane];
    if (j > 0) sum -= x[at - nx];
    if (i > 0) sum -= x[at - 1];
    if (i < nx - 1) sum -= x[at + 1];
    if (j < ny - 1) sum -= x[at + nx];
    if (k < nz - 1) sum -= x[at + plane];
    y[at] = sum;
}

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
