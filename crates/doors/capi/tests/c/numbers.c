/* Complex values and floats: saved exactly, under a bound for each part, and under a measured residual.
 *
 *     ./numbers folder
 */
#include "expect.h"
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 20000 };

static const char *directory;

static recoup_handle opened(const char *name, const char *options)
{
    char all[600];
    recoup_handle h = 0;
    snprintf(all, sizeof all, "dir=%s name=%s interval=1it %s", directory, name, options);
    EXPECT(recoup_open(all, NULL, &h), RECOUP_OK);
    return h;
}

/* Saves `count` values as version 1, and brings them back into `back`. */
static void save_and_restore(const char *name, const char *options, int type, void *values, void *back, uint64_t count)
{
    uint64_t version = 0;
    int how = 0;
    recoup_handle h = opened(name, options);
    EXPECT(recoup_protect(h, "x", RECOUP_ITERATE, type, values, count, 0, count), RECOUP_OK);
    EXPECT(recoup_step(h, 1, 1.0, 1.0), RECOUP_OK);
    EXPECT(recoup_close(h), RECOUP_OK);
    h = opened(name, options);
    EXPECT(recoup_protect(h, "x", RECOUP_ITERATE, type, back, count, 0, count), RECOUP_OK);
    EXPECT(recoup_restore(h, &version, &how), RECOUP_OK);
    CHECK(version == 1);
    EXPECT(recoup_close(h), RECOUP_OK);
}

static void test_complex(void)
{
    double complex *x = malloc(N * sizeof *x), *back = calloc(N, sizeof *back);
    for (int i = 0; i < N; i++) x[i] = cexp((0.001 + 0.02 * I) * i);
    save_and_restore("exact", "scheme=exact", RECOUP_C128, x, back, N);
    CHECK(memcmp(x, back, N * sizeof *x) == 0);
    save_and_restore("bounded", "scheme=lossy codec=qb bound=absolute:1e-4", RECOUP_C128, x, back, N);
    double worst = 0.0;
    for (int i = 0; i < N; i++) {
        worst = fmax(worst, fabs(creal(x[i]) - creal(back[i])));
        worst = fmax(worst, fabs(cimag(x[i]) - cimag(back[i])));
    }
    CHECK(0.0 < worst && worst <= 1e-4);

    float complex *s = malloc(N * sizeof *s), *again = calloc(N, sizeof *again);
    for (int i = 0; i < N; i++) s[i] = (float complex)x[i];
    save_and_restore("single", "scheme=exact", RECOUP_C64, s, again, N);
    CHECK(memcmp(s, again, N * sizeof *s) == 0);
    free(x), free(back), free(s), free(again);
}

/* y = (1.5 + 0.5 i) x in its neighbours' company; all in pairs of doubles. */
static int twisted(void *ctx, const double *x, double *y)
{
    const double complex *in = (const double complex *)x;
    double complex *out = (double complex *)y;
    (void)ctx;
    for (int i = 0; i < N; i++) {
        out[i] = (4.0 + 0.5 * I) * in[i] - (i > 0 ? in[i - 1] : 0.0) - (i + 1 < N ? in[i + 1] : 0.0);
    }
    return 0;
}

/* y = A x of a chain of springs, in doubles. */
static int springs(void *ctx, const double *x, double *y)
{
    (void)ctx;
    for (int i = 0; i < N; i++) y[i] = 2.1 * x[i] - (i > 0 ? x[i - 1] : 0.0) - (i + 1 < N ? x[i + 1] : 0.0);
    return 0;
}

static double residual(int (*apply)(void *, const double *, double *), int rows, const double *x, const double *b)
{
    double *y = malloc(rows * sizeof *y), sum = 0.0;
    apply(NULL, x, y);
    for (int i = 0; i < rows; i++) sum += (b[i] - y[i]) * (b[i] - y[i]);
    free(y);
    return sqrt(sum);
}

/* Saves an iterate under theta = 0.25, and holds the residual that comes back against it. */
static void check_measured(const char *name, int type, uint64_t count, void *x, void *back, double *wide,
                           int (*apply)(void *, const double *, double *), int rows)
{
    const char *options = "scheme=lossy codec=qb theta=0.25";
    double *b = malloc(rows * sizeof *b);
    uint64_t version = 0;
    int how = 0;
    for (int i = 0; i < rows; i++) b[i] = sin(0.01 * i) + 0.3;
    double before = residual(apply, rows, wide, b);
    recoup_handle h = opened(name, options);
    EXPECT(recoup_operator(h, apply, NULL, rows, 0, rows, b, 0.0, 0), RECOUP_OK);
    EXPECT(recoup_protect(h, "x", RECOUP_ITERATE, type, x, count, 0, count), RECOUP_OK);
    EXPECT(recoup_step(h, 1, before, 1.0), RECOUP_OK);
    EXPECT(recoup_close(h), RECOUP_OK);
    h = opened(name, options);
    EXPECT(recoup_operator(h, apply, NULL, rows, 0, rows, b, 0.0, 0), RECOUP_OK);
    EXPECT(recoup_protect(h, "x", RECOUP_ITERATE, type, back, count, 0, count), RECOUP_OK);
    EXPECT(recoup_restore(h, &version, &how), RECOUP_OK);
    EXPECT(recoup_close(h), RECOUP_OK);
    if (type == RECOUP_F32) {
        for (int i = 0; i < rows; i++) wide[i] = ((float *)back)[i];
    } else {
        memcpy(wide, back, rows * sizeof *wide);
    }
    /* The same sum in another order: a few units in the last place. */
    CHECK(residual(apply, rows, wide, b) <= 1.25 * before * (1.0 + 1e-12));
    free(b);
}

static void test_residuals(void)
{
    float *x = malloc(N * sizeof *x), *back = calloc(N, sizeof *back);
    double *wide = malloc(2 * N * sizeof *wide), *pairs = malloc(2 * N * sizeof *pairs), *again = calloc(2 * N, sizeof *again);
    for (int i = 0; i < N; i++) wide[i] = x[i] = (float)(1.0 + cos(0.003 * i));
    check_measured("floats", RECOUP_F32, N, x, back, wide, springs, N);
    CHECK(memcmp(x, back, N * sizeof *x) != 0);
    for (int i = 0; i < 2 * N; i++) wide[i] = pairs[i] = 1.0 + cos(0.003 * i);
    check_measured("pairs", RECOUP_C128, N, pairs, again, wide, twisted, 2 * N);
    CHECK(memcmp(pairs, again, 2 * N * sizeof *pairs) != 0);
    free(x), free(back), free(wide), free(pairs), free(again);
}

int main(int argc, char **argv)
{
    directory = argc > 1 ? argv[1] : ".";
    test_complex();
    test_residuals();
    printf("%d failures\n", failures);
    return failures != 0;
}
