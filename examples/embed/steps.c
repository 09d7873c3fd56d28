/* A time loop in C: implicit heat on a square plate whose conductivity changes with time. Each step solves a system of
 * its own, (I + c A) u' = u, by conjugate gradients; all steps are one run of checkpoints.
 *
 *     cc steps.c $(pkg-config --cflags --libs recoup) -lm -o steps
 *     ./steps "dir=ckpt interval=10it" [n] [iteration to be killed after]
 *
 * Killed, and started again with the same options, it continues in the step that it was in.
 */
#include <math.h>
#include <recoup.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 5 };

struct plate {
    int n;
    double c;
};

static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", recoup_strerror(code), recoup_message());
        exit(1);
    }
}

/* y = x + c A x, the 5-point stencil on n x n inner points. */
static int apply(void *ctx, const double *x, double *y)
{
    const struct plate *plate = ctx;
    int n = plate->n;
    for (int j = 0, i = 0; j < n; j++) {
        for (int k = 0; k < n; k++, i++) {
            double sum = 4 * x[i];
            if (k > 0) sum -= x[i - 1];
            if (k < n - 1) sum -= x[i + 1];
            if (j > 0) sum -= x[i - n];
            if (j < n - 1) sum -= x[i + n];
            y[i] = x[i] + plate->c * sum;
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

int main(int argc, char **argv)
{
    const char *options = argc > 1 ? argv[1] : "dir=ckpt interval=10it";
    struct plate plate = {argc > 2 ? atoi(argv[2]) : 64, 0};
    long life = argc > 3 ? atol(argv[3]) : 0, done = 0;
    int m = plate.n * plate.n;
    double *memory = calloc(5 * (size_t)m, sizeof *memory);
    if (memory == NULL) return 1;
    double *u = memory, *x = u + m, *r = x + m, *p = r + m, *q = p + m;
    for (int i = 0; i < m; i++) u[i] = sin(0.37 * i) + (i % 17 == 0);

    char all[1024];
    snprintf(all, sizeof all, "%s systems", options);
    recoup_handle handle;
    check(recoup_open(all, NULL, &handle));
    check(recoup_protect(handle, "u", RECOUP_DYNAMIC, RECOUP_F64, u, m, 0, m));
    check(recoup_protect(handle, "x", RECOUP_ITERATE, RECOUP_F64, x, m, 0, m));
    check(recoup_protect(handle, "p", RECOUP_RECURRENCE, RECOUP_F64, p, m, 0, m));
    check(recoup_protect(handle, "r", RECOUP_RECOMPUTED, RECOUP_F64, r, m, 0, m));
    check(recoup_grid(handle, "x", plate.n, plate.n, 1));

    /* u as it was in the step that a killed run was in, and the number of that step. */
    uint64_t first = 0;
    check(recoup_find_system(handle, &first));
    for (uint64_t step = first; step < STEPS; step++) {
        uint64_t k = 0;
        int how = RECOUP_RESTARTED;
        /* Versions of the step before are measured with its c. */
        if (step > first) check(recoup_wait(handle));
        plate.c = 1.0 + (double)step;
        check(recoup_operator(handle, apply, &plate, m, 0, m, u, 0, RECOUP_OPERATOR_ANY_THREAD));
        check(recoup_begin_system(handle, step));
        memcpy(x, u, m * sizeof *x);
        check(recoup_restore(handle, &k, &how)); /* RECOUP_NO_VERSION: x and k stay as they are */
        if (k > 0 || step == first) printf("step %d starts at %llu\n", (int)step, (unsigned long long)k);
        if (k == 0 || how < RECOUP_EXACT) {
            apply(&plate, x, q);
            for (int i = 0; i < m; i++) p[i] = r[i] = u[i] - q[i];
        }
        double norm_b = sqrt(dot(m, u, u)), rho = dot(m, r, r);
        while (sqrt(rho) > 1e-10 * norm_b) {
            apply(&plate, p, q);
            double alpha = rho / dot(m, p, q), before = rho;
            for (int i = 0; i < m; i++) x[i] += alpha * p[i];
            for (int i = 0; i < m; i++) r[i] -= alpha * q[i];
            rho = dot(m, r, r);
            for (int i = 0; i < m; i++) p[i] = r[i] + rho / before * p[i];
            check(recoup_step(handle, ++k, sqrt(rho), norm_b));
            if (++done == life) raise(SIGKILL);
        }
        memcpy(u, x, m * sizeof *u);
    }
    recoup_stats_t stats;
    check(recoup_wait(handle));
    check(recoup_stats(handle, &stats));
    check(recoup_close(handle));
    printf("iterations %ld, versions %llu, heat %.17g\n", done, (unsigned long long)stats.versions, sqrt(dot(m, u, u)));
    free(memory);
    return 0;
}
