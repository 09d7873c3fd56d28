/* A write of each kind to an array of its own. Places change with each step, so that a write that is not announced is
 * missing after a kill. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES 4096
#define ROWS 3
#define AT(i) ((i) + 1)

static void age(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = 0.999 * x[i] + (double)i;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 100;
    size_t n = VALUES;
    double *row = calloc(n, sizeof *row), *aged = calloc(n, sizeof *aged), *copy = calloc(n, sizeof *copy);
    double single[VALUES] = {0}, triangle[VALUES] = {0}, total = 0;
    float plate[128][128] = {{0}};
    int64_t back[VALUES] = {0};
    uint8_t flags[4 * VALUES] = {0};
    int32_t header[VALUES] = {0}, wide[VALUES] = {0};
    uint32_t seed = 1;
    if (row == NULL || aged == NULL || copy == NULL) return 1;
    // #pragma recoup memory("file=other.memory")
    # pragma recoup memory("file=writes.memory interval=1it")
#pragma recoup versioned(row, n)
#pragma recoup versioned(aged, VALUES) /* by a function */
#pragma recoup versioned(copy, n)
#pragma recoup versioned(single)
#pragma recoup versioned(triangle)
#pragma recoup versioned(plate)
#pragma recoup versioned(back)
#pragma recoup versioned(flags)
#pragma recoup versioned(header)
#pragma recoup versioned(wide)
#pragma recoup versioned(total)
#pragma recoup versioned(seed)
#pragma recoup loop(step)
    for (int step = 0; step < steps; step++) {
        double shares[4] = {0.25, 0.5, 0.25, 0};
        seed = seed * 1664525u + 1013904223u;
        size_t at = seed >> 20;
        size_t first = at < VALUES - 80 ? at : VALUES - 80;
        for (size_t i = 0; i < n; i++) total += copy[i];
        single[at] += step, single[AT(at + 500) % n] += ROWS;
        for (size_t i = first; i < first + 70; i++)
            row[i] += shares[i % 4];
        int top = (int)(first / 64);
        for (int i = top; i <= top + ROWS; i++)
            for (int j = 2; j < 20; j += 2) {
                plate[i][3 * j + 1] += 0.5f;
                if (j == 8) flags[first + 64 * (size_t)i] ^= 1;
            }
        for (size_t i = 0; i < ROWS; i++)
            for (size_t j = i; j < 9; j++) triangle[first + 9 * i + j] += AT(j);
        for (int i = 0; i < ROWS; i++) wide[(size_t)i * 900 + at % 800] -= 1;
        for (size_t i = first + 5; i-- > first;) *(back + i) += step;
        for (size_t j = 0; j < 3; header[first + 20 * j] += 1, j++) shares[j] = 0;
        if (step % 10 == 3) continue;
        age(aged, n / 2);
        memcpy(copy, single, sizeof single);
    }
    double sum = total;
    for (size_t i = 0; i < n; i++) {
        double w = (double)(i + 1);
        sum += w * (row[i] + aged[i] + copy[i] + single[i] + triangle[i]);
        sum += w * ((double)back[i] + (double)header[i] + (double)wide[i]);
    }
    for (int i = 0; i < 128 * 128; i++) sum += (plate[i / 128][i % 128] + flags[i]) * (float)(i + 1);
    printf("%.17g %u\n", sum, (unsigned)seed);
    free(row);
    free(aged);
    free(copy);
    return 0;
}
