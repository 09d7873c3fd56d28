/* A hand-written conjugate gradient solver for the 3D Poisson equation, with checkpoints.
 *
 *     cc cg.c $(pkg-config --cflags --libs recoup) -lm -o cg
 *     ./cg "dir=ckpt interval=10it" [n] [iteration to be killed after]
 *
 * Killed, and started again with the same options, it continues from the newest version. Before the end of its job it ends
 * with a version and exit code 75.
 */
#include <math.h>
#include <recoup.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int n;
} grid;

/* y = A x, the 7-point stencil on n x n x n inner points. */
static int apply(void *ctx, const double *x, double *y)
{
    int n = ((grid *)ctx)->n;
    for (int k = 0, i = 0; k < n; k++) {
        for (int j = 0; j < n; j++) {
            for (int l = 0; l < n; l++, i++) {
                double sum = 6 * x[i];
                if (l > 0) sum -= x[i - 1];
                if (l < n - 1) sum -= x[i + 1];
                if (j > 0) sum -= x[i - n];
                if (j < n - 1) sum -= x[i + n];
                if (k > 0) sum -= x[i - n * n];
                if (k < n - 1) sum -= x[i + n * n];
                y[i] = sum;
            }
        }
    }
    return 0;
}

static double dot(int m, const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < m; i++) sum += a[i] * b[i];
    return sum;
}

static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "recoup: %s: %s\n", recoup_strerror(code), recoup_message());
        exit(1);
    }
}

int main(int argc, char **argv)
{
    const char *options = argc > 1 ? argv[1] : "dir=ckpt interval=10it";
    grid g = {argc > 2 ? atoi(argv[2]) : 32};
    uint64_t killed_after = argc > 3 ? (uint64_t)atoll(argv[3]) : 0;
    int m = g.n * g.n * g.n, how = RECOUP_EXACT;
    double *vectors = calloc(5 * (size_t)m, sizeof(double));
    double *x = vectors, *b = x + m, *r = b + m, *p = r + m, *q = p + m;
    int stop = 0;
    uint64_t k = 0;
    if (vectors == NULL) return 1;
    for (int i = 0; i < m; i++) b[i] = 1;

    recoup_handle handle;
    check(recoup_open(options, NULL, &handle));
    check(recoup_protect(handle, "x", RECOUP_ITERATE, RECOUP_F64, x, (uint64_t)m, 0, (uint64_t)m));
    check(recoup_protect(handle, "p", RECOUP_RECURRENCE, RECOUP_F64, p, (uint64_t)m, 0, (uint64_t)m));
    check(recoup_grid(handle, "x", (uint64_t)g.n, (uint64_t)g.n, (uint64_t)g.n));
    check(recoup_operator(handle, apply, &g, (uint64_t)m, 0, (uint64_t)m, b, 0, RECOUP_OPERATOR_ANY_THREAD));
    int code = recoup_restore(handle, &k, &how);
    check(code);

    /* r = b - A x; without the direction of a version, p = r */
    apply(&g, x, q);
    for (int i = 0; i < m; i++) r[i] = b[i] - q[i];
    if (code == RECOUP_NO_VERSION || how < RECOUP_TRADITIONAL) memcpy(p, r, (size_t)m * sizeof(double));
    printf("starts at %llu, how %d\n", (unsigned long long)k, code == RECOUP_OK ? how : -1);

    double norm_b = sqrt(dot(m, b, b)), norm_r = sqrt(dot(m, r, r));
    while (norm_r > 1e-8 * norm_b && !stop) {
        apply(&g, p, q);
        double curvature = dot(m, p, q), alpha = dot(m, r, p) / curvature;
        for (int i = 0; i < m; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        /* of r and p as they are: with the small errors of a lossy version, too */
        double beta = -dot(m, r, q) / curvature;
        for (int i = 0; i < m; i++) p[i] = r[i] + beta * p[i];
        norm_r = sqrt(dot(m, r, r));
        k++;
        check(recoup_step(handle, k, norm_r, norm_b));
        if (k == killed_after) raise(SIGKILL);
        check(recoup_should_stop(handle, &stop));
    }
    if (stop) check(recoup_checkpoint(handle, k, norm_r, norm_b));

    apply(&g, x, q);
    for (int i = 0; i < m; i++) r[i] = b[i] - q[i];
    printf("iterations %llu, relative residual %.3e\n", (unsigned long long)k, sqrt(dot(m, r, r)) / norm_b);
    check(recoup_close(handle));
    free(vectors);
    return stop ? 75 : 0;
}
