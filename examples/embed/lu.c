/* LU factors of a dense matrix, with partial pivoting: P A = L U.
 *
 *     recoup annotate lu.c -o lu_versions.c
 *     cc lu_versions.c $(pkg-config --cflags --libs recoup) -o lu
 *     ./lu [n]
 *
 * The compiler drops the directives of the plain program. The annotated one continues after a kill, from its newest version.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
    double *a = malloc(n * n * sizeof *a);
    uint32_t *row = malloc(n * sizeof *row);
    uint64_t seed = 1;
    if (a == NULL || row == NULL) return 1;
    for (size_t i = 0; i < n * n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        a[i] = (double)(seed >> 11) / 9007199254740992.0 - 0.5;
    }
    for (size_t i = 0; i < n; i++) row[i] = (uint32_t)i;

#pragma recoup memory("file=lu.memory interval=1it")
#pragma recoup versioned(a, n * n)
#pragma recoup versioned(row, n)
#pragma recoup loop(k)
    for (size_t k = 0; k + 1 < n; k++) {
        size_t pivot = k;
        for (size_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
        if (pivot != k) {
            uint32_t other = row[k];
            row[k] = row[pivot];
            row[pivot] = other;
            for (size_t j = 0; j < n; j++) {
                double value = a[k * n + j];
                a[k * n + j] = a[pivot * n + j];
                a[pivot * n + j] = value;
            }
        }
        for (size_t i = k + 1; i < n; i++) {
            a[i * n + k] /= a[k * n + k];
            for (size_t j = k + 1; j < n; j++) a[i * n + j] -= a[i * n + k] * a[k * n + j];
        }
    }

    double trace = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        trace += log(fabs(a[i * n + i]));
        for (size_t j = 0; j < n; j++) sum += a[i * n + j] * (double)(j + 1) * (double)(row[i] + 1);
    }
    printf("log |det A| = %.17g, sum %.17g\n", trace, sum);
    free(row);
    free(a);
    return 0;
}
