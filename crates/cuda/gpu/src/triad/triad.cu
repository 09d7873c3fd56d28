extern "C" __global__ void triad(double* a, const double* b, const double* c, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = b[i] + 3.0 * c[i];
}
