/* PageRank of a random graph, by power iteration.
 *
 *     recoup annotate pagerank.c -o pagerank_versions.c
 *     cc pagerank_versions.c $(pkg-config --cflags --libs recoup) -o pagerank
 *     ./pagerank [vertices]
 *
 * The compiler drops the directives of the plain program. The annotated one continues after a kill, from its newest version.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEGREE 8
#define DAMPING 0.95

/* next = (1 - d) / n + d A^T rank, with 1 / DEGREE for each edge. */
static void product(size_t n, const uint32_t *targets, const double *rank, double *next)
{
    for (size_t v = 0; v < n; v++) next[v] = (1 - DAMPING) / (double)n;
    for (size_t v = 0; v < n; v++)
        for (size_t e = 0; e < DEGREE; e++) next[targets[v * DEGREE + e]] += DAMPING / DEGREE * rank[v];
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
    double *rank = malloc(n * sizeof *rank), *next = malloc(n * sizeof *next);
    uint32_t *targets = malloc(n * DEGREE * sizeof *targets);
    uint64_t seed = 7;
    if (rank == NULL || next == NULL || targets == NULL) return 1;
    for (size_t e = 0; e < n * DEGREE; e++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        /* Low numbers are linked to more often. */
        double place = (double)(seed >> 11) / 9007199254740992.0;
        targets[e] = (uint32_t)(place * place * (double)n);
    }
    for (size_t v = 0; v < n; v++) rank[v] = 1 / (double)n;

#pragma recoup memory("file=pagerank.memory interval=1it")
#pragma recoup versioned(rank, n)
#pragma recoup versioned(next, n)
#pragma recoup loop(iteration)
    for (int iteration = 0; iteration < 150; iteration++) {
        product(n, targets, rank, next);
        memcpy(rank, next, n * sizeof *rank);
    }

    double sum = 0, change = 0;
    product(n, targets, rank, next);
    for (size_t v = 0; v < n; v++) {
        sum += rank[v] * (double)(v + 1);
        change += fabs(next[v] - rank[v]);
    }
    printf("rank of vertex 0 is %.17g, sum %.17g, change %.17g\n", rank[0], sum, change);
    free(targets);
    free(next);
    free(rank);
    return 0;
}
