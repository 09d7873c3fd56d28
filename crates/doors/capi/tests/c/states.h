/* States that a program pushes or commits, each with values of its own. */
#include <stdint.h>

#define N 1000

static void fill(double *x, uint64_t step)
{
    for (int i = 0; i < N; i++) x[i] = (double)step + i / 1000.0;
}

static int holds(const double *x, uint64_t step)
{
    for (int i = 0; i < N; i++)
        if (x[i] != (double)step + i / 1000.0) return 0;
    return 1;
}
