/* Blocks of right-hand sides and runs of many systems: what comes back, and every wrong argument.
 *
 *     ./many folder
 */
#include "expect.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 6000, COLUMNS = 3, STRIDE = N + 5 };

static const char *directory;

static recoup_handle opened(const char *name, const char *options)
{
    char all[600];
    recoup_handle h = 0;
    snprintf(all, sizeof all, "dir=%s name=%s interval=1it %s", directory, name, options);
    EXPECT(recoup_open(all, NULL, &h), RECOUP_OK);
    return h;
}

/* y = A x of a chain of springs; `ctx` has their stiffness. */
static int springs(void *ctx, const double *x, double *y)
{
    double stiffness = ctx == NULL ? 0.1 : *(double *)ctx;
    for (int i = 0; i < N; i++) {
        y[i] = (2 + stiffness) * x[i] - (i > 0 ? x[i - 1] : 0.0) - (i + 1 < N ? x[i + 1] : 0.0);
    }
    return 0;
}

static double residual(const double *x, const double *b)
{
    double *y = malloc(N * sizeof *y), sum = 0.0;
    springs(NULL, x, y);
    for (int i = 0; i < N; i++) sum += (b[i] - y[i]) * (b[i] - y[i]);
    free(y);
    return sqrt(sum);
}

/* Columns of an iterate that are far from, near, and much nearer to their solutions. */
static void fill(double *x, double *b)
{
    const double off[COLUMNS] = {1.0, 1e-4, 1e-9};
    for (int j = 0; j < COLUMNS; j++) {
        double *column = x + j * STRIDE;
        for (int i = 0; i < N; i++) column[i] = 1.0 + cos(0.003 * (j + 1) * i);
        springs(NULL, column, b + j * STRIDE);
        for (int i = 0; i < N; i++) column[i] += off[j] * sin(1.0 + 1.7 * i * i);
    }
}

static recoup_handle block(const char *name, const char *options, double *x, const double *b)
{
    recoup_handle h = opened(name, options);
    EXPECT(recoup_operator(h, springs, NULL, N, 0, N, b, 0.0, 0), RECOUP_OK);
    EXPECT(recoup_columns(h, COLUMNS, b, STRIDE), RECOUP_OK);
    EXPECT(recoup_protect_block(h, "x", RECOUP_ITERATE, RECOUP_F64, x, N, COLUMNS, STRIDE, 0, N), RECOUP_OK);
    return h;
}

/* Saves a block, brings it back, and holds each column against the bound of its own residual. */
static void save_and_restore(const char *name, const char *options, int is_exact, int knows_norms)
{
    size_t bytes = COLUMNS * STRIDE * sizeof(double);
    double *x = calloc(1, bytes), *b = calloc(1, bytes), *back = calloc(1, bytes), before[COLUMNS];
    uint64_t k = 0;
    fill(x, b);
    for (int j = 0; j < COLUMNS; j++) before[j] = residual(x + j * STRIDE, b + j * STRIDE);
    recoup_handle h = block(name, options, x, b);
    if (knows_norms) EXPECT(recoup_known_columns(h, COLUMNS, before), RECOUP_OK);
    EXPECT(recoup_step(h, 1, before[0], sqrt((double)N)), RECOUP_OK);
    EXPECT(recoup_close(h), RECOUP_OK);
    h = block(name, options, back, b);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_OK);
    EXPECT(recoup_close(h), RECOUP_OK);
    CHECK(k == 1);
    if (is_exact) CHECK(memcmp(x, back, bytes) == 0);
    else CHECK(memcmp(x, back, N * sizeof *x) != 0);
    /* The same sum in another order: a few units in the last place of ||A x||. */
    for (int j = 0; j < COLUMNS; j++) {
        CHECK(residual(back + j * STRIDE, b + j * STRIDE) <= 1.25 * before[j] * (1.0 + 1e-4));
        for (int i = N; i < STRIDE; i++) CHECK(back[j * STRIDE + i] == 0.0);
    }
    /* A block of fewer columns is another problem, and a part of a block is none at all. */
    h = opened(name, options);
    EXPECT(recoup_operator(h, springs, NULL, N, 0, N, b, 0.0, 0), RECOUP_OK);
    EXPECT(recoup_protect_block(h, "x", RECOUP_ITERATE, RECOUP_F64, back, N, 1, N, 0, N), RECOUP_OK);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_E_OTHER_PROBLEM);
    EXPECT(recoup_close(h), RECOUP_OK);
    if (is_exact) {
        h = opened(name, options);
        EXPECT(recoup_protect_block(h, "x", RECOUP_ITERATE, RECOUP_F64, back, N, 2, N, 0, N), RECOUP_OK);
        EXPECT(recoup_restore(h, &k, NULL), RECOUP_E_MISMATCH);
        EXPECT(recoup_close(h), RECOUP_OK);
    }
    free(x), free(b), free(back);
}

static void test_wrong_columns(void)
{
    double *x = calloc(COLUMNS * STRIDE, sizeof *x), norms[COLUMNS] = {1, 1, 1}, bad[COLUMNS] = {1, -1, 1};
    recoup_handle h = opened("wrong", "");
    EXPECT(recoup_columns(h, COLUMNS, x, STRIDE), RECOUP_E_OPERATOR);
    EXPECT(recoup_operator(h, springs, NULL, N, 0, N, x, 0.0, 0), RECOUP_OK);
    EXPECT(recoup_columns(0, COLUMNS, x, STRIDE), RECOUP_E_HANDLE);
    EXPECT(recoup_columns(h, 0, x, STRIDE), RECOUP_E_ARGUMENT);
    EXPECT(recoup_columns(h, UINT64_MAX, x, STRIDE), RECOUP_E_ARGUMENT);
    EXPECT(recoup_columns(h, COLUMNS, NULL, STRIDE), RECOUP_E_ARGUMENT);
    EXPECT(recoup_columns(h, COLUMNS, x, N - 1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_columns(h, COLUMNS, x, UINT64_MAX / 2), RECOUP_E_ARGUMENT);
    EXPECT(recoup_columns(h, COLUMNS, x, STRIDE), RECOUP_OK);
    EXPECT(recoup_known_columns(0, COLUMNS, norms), RECOUP_E_HANDLE);
    EXPECT(recoup_known_columns(h, COLUMNS, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_known_columns(h, 2, norms), RECOUP_E_ARGUMENT);
    EXPECT(recoup_known_columns(h, COLUMNS, bad), RECOUP_E_ARGUMENT);
    EXPECT(recoup_known_columns(h, COLUMNS, norms), RECOUP_OK);
    const int F64 = RECOUP_F64, IT = RECOUP_ITERATE;
    EXPECT(recoup_protect_block(0, "x", IT, F64, x, N, COLUMNS, STRIDE, 0, N), RECOUP_E_HANDLE);
    EXPECT(recoup_protect_block(h, NULL, IT, F64, x, N, COLUMNS, STRIDE, 0, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect_block(h, "a b", IT, F64, x, N, COLUMNS, STRIDE, 0, N), RECOUP_E_NAME);
    EXPECT(recoup_protect_block(h, "x", RECOUP_STATIC, F64, x, N, COLUMNS, STRIDE, 0, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect_block(h, "x", IT, 99, x, N, COLUMNS, STRIDE, 0, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect_block(h, "x", IT, F64, NULL, N, COLUMNS, STRIDE, 0, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect_block(h, "x", IT, F64, x, N, 0, STRIDE, 0, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect_block(h, "x", IT, F64, x, N, COLUMNS, N - 1, 0, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect_block(h, "x", IT, F64, x, N, COLUMNS, UINT64_MAX / 2, 0, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect_block(h, "x", IT, F64, x, N, COLUMNS, STRIDE, 1, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect_block(h, "x", IT, F64, x, N, COLUMNS, STRIDE, 0, N), RECOUP_OK);
    EXPECT(recoup_step(h, 1, 1, 1), RECOUP_OK);
    EXPECT(recoup_columns(h, COLUMNS, x, STRIDE), RECOUP_E_ORDER);
    EXPECT(recoup_close(h), RECOUP_OK);
    EXPECT(recoup_protect_block(h, "x", IT, F64, x, N, COLUMNS, STRIDE, 0, N), RECOUP_E_HANDLE);
    free(x);
}

static void test_systems(void)
{
    double *x = calloc(2 * N, sizeof *x), *u = x + N, stiffness[2] = {0.1, 0.3};
    uint64_t index = 99, k = 0;
    recoup_handle h = opened("plain", "");
    EXPECT(recoup_begin_system(h, 0), RECOUP_E_ORDER);
    EXPECT(recoup_find_system(h, &index), RECOUP_E_ORDER);
    EXPECT(recoup_close(h), RECOUP_OK);
    EXPECT(recoup_begin_system(0, 0), RECOUP_E_HANDLE);
    EXPECT(recoup_find_system(0, &index), RECOUP_E_HANDLE);

    for (int i = 0; i < N; i++) u[i] = 1.0 + i;
    h = opened("systems", "systems scheme=lossless");
    EXPECT(recoup_protect(h, "x", RECOUP_ITERATE, RECOUP_F64, x, N, 0, N), RECOUP_OK);
    EXPECT(recoup_protect(h, "u", RECOUP_DYNAMIC, RECOUP_F64, u, N, 0, N), RECOUP_OK);
    EXPECT(recoup_find_system(h, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_find_system(h, &index), RECOUP_NO_VERSION);
    CHECK(index == 99);
    EXPECT(recoup_begin_system(h, 3), RECOUP_E_OPERATOR);
    EXPECT(recoup_step(h, 1, 1, 1), RECOUP_E_ORDER);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_E_ORDER);
    for (int step = 0; step < 2; step++) {
        EXPECT(recoup_operator(h, springs, &stiffness[step], N, 0, N, u, 0.0, 0), RECOUP_OK);
        EXPECT(recoup_operator_norms(h, 2.0 + stiffness[step], 0), RECOUP_OK);
        EXPECT(recoup_begin_system(h, 3 + step), RECOUP_OK);
        EXPECT(recoup_operator_norms(h, 2.0 + stiffness[step], 0), RECOUP_E_ORDER);
        EXPECT(recoup_columns(h, 1, u, N), RECOUP_E_ORDER);
        EXPECT(recoup_restore(h, &k, NULL), RECOUP_NO_VERSION);
        EXPECT(recoup_begin_system(h, 3 + step), RECOUP_E_ORDER);
        EXPECT(recoup_find_system(h, &index), RECOUP_E_ORDER);
        for (int i = 0; i < N; i++) x[i] = step + i;
        EXPECT(recoup_step(h, 1, 1, 1), RECOUP_OK);
        EXPECT(recoup_step(h, 2, 0.5, 1), RECOUP_OK);
    }
    EXPECT(recoup_close(h), RECOUP_OK);

    memset(x, 0, 2 * N * sizeof *x);
    h = opened("systems", "systems scheme=lossless");
    EXPECT(recoup_protect(h, "x", RECOUP_ITERATE, RECOUP_F64, x, N, 0, N), RECOUP_OK);
    EXPECT(recoup_protect(h, "u", RECOUP_DYNAMIC, RECOUP_F64, u, N, 0, N), RECOUP_OK);
    EXPECT(recoup_find_system(h, &index), RECOUP_OK);
    CHECK(index == 4 && u[7] == 8.0 && x[7] == 0.0);
    EXPECT(recoup_operator(h, springs, &stiffness[1], N, 0, N, u, 0.0, 0), RECOUP_OK);
    EXPECT(recoup_begin_system(h, index), RECOUP_OK);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_OK);
    CHECK(k == 2 && x[7] == 8.0);
    EXPECT(recoup_close(h), RECOUP_OK);

    /* A program that does not ask where to continue gets no iterate of another system. */
    h = opened("systems", "systems scheme=lossless");
    EXPECT(recoup_protect(h, "x", RECOUP_ITERATE, RECOUP_F64, x, N, 0, N), RECOUP_OK);
    EXPECT(recoup_protect(h, "u", RECOUP_DYNAMIC, RECOUP_F64, u, N, 0, N), RECOUP_OK);
    EXPECT(recoup_operator(h, springs, &stiffness[0], N, 0, N, u, 0.0, 0), RECOUP_OK);
    EXPECT(recoup_begin_system(h, 0), RECOUP_OK);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_E_OTHER_PROBLEM);
    CHECK(strstr(recoup_message(), "continue at system 4") != NULL);
    EXPECT(recoup_close(h), RECOUP_OK);
    free(x);
}

int main(int argc, char **argv)
{
    directory = argc > 1 ? argv[1] : ".";
    save_and_restore("exact", "scheme=exact", 1, 0);
    save_and_restore("lossy", "scheme=lossy codec=qb theta=0.25", 0, 0);
    save_and_restore("known", "scheme=lossy codec=qb theta=0.25", 0, 1);
    test_wrong_columns();
    test_systems();
    printf("%d failures\n", failures);
    return failures != 0;
}
