/* Every call with every wrong argument: the documented code comes back, nothing is written, nothing aborts. */
#include "expect.h"
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define N 1000

static char options[600];
static const char *directory;

static const char *in(const char *name, const char *more)
{
    snprintf(options, sizeof options, "dir=\"%s/%s\" %s", directory, name, more);
    return options;
}

static int identity(void *ctx, const double *x, double *y)
{
    memcpy(y, x, (size_t) * (int *)ctx * sizeof(double));
    return 0;
}

static int products;

static int counted(void *ctx, const double *x, double *y)
{
    products++;
    return identity(ctx, x, y);
}

/* Fails after as many products as it is given. */
static int broken(void *ctx, const double *x, double *y)
{
    int n = N;
    return products++ < *(int *)ctx ? identity(&n, x, y) : 7;
}

/* y = factor x */
static int scaled(void *ctx, const double *x, double *y)
{
    for (int i = 0; i < N; i++) y[i] = *(double *)ctx * x[i];
    return 0;
}

static void is_of_kind(int kind)
{
    if (recoup_error_kind() != kind) failures++, printf("kind %d, expected %d: %s\n", recoup_error_kind(), kind, recoup_message());
}

static recoup_handle inner;

static int calls_back(void *ctx, uint64_t iteration, int how)
{
    (void)how;
    *(uint64_t *)ctx = iteration;
    EXPECT(recoup_step(inner, 1, 1, 1), RECOUP_E_ORDER);
    EXPECT(recoup_close(inner), RECOUP_E_ORDER);
    return 0;
}

static int refuses(void *ctx, uint64_t iteration, int how)
{
    (void)ctx, (void)iteration, (void)how;
    return 3;
}

/* A handle with x protected. */
static recoup_handle opened(const char *name, const char *more, double *x)
{
    recoup_handle h = 0;
    EXPECT(recoup_open(in(name, more), NULL, &h), RECOUP_OK);
    EXPECT(recoup_protect(h, "x", RECOUP_ITERATE, RECOUP_F64, x, N, 0, N), RECOUP_OK);
    return h;
}

static void test_open(void)
{
    recoup_handle h = 77;
    recoup_comm empty;
    memset(&empty, 0, sizeof empty);
    EXPECT(recoup_open(NULL, NULL, &h), RECOUP_E_ARGUMENT);
    EXPECT(recoup_open(in("open", ""), NULL, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_open(in("open", ""), &empty, &h), RECOUP_E_ARGUMENT);
    empty.size = 1;
    EXPECT(recoup_open(in("open", ""), &empty, &h), RECOUP_E_ARGUMENT);
    EXPECT(recoup_open("", NULL, &h), RECOUP_E_OPTIONS);
    EXPECT(recoup_open("dir=d unknown=1", NULL, &h), RECOUP_E_OPTIONS);
    if (strstr(recoup_message(), "unknown") == NULL) failures++, printf("the unknown key is not named\n");
    EXPECT(recoup_open("dir=d theta=-1", NULL, &h), RECOUP_E_OPTIONS);
    EXPECT(recoup_open("dir=d,interval=10it", NULL, &h), RECOUP_E_OPTIONS);
    EXPECT(recoup_open("dir=d keep=99999999999999999999", NULL, &h), RECOUP_E_OPTIONS);
    EXPECT(recoup_open("dir=\"d", NULL, &h), RECOUP_E_OPTIONS);
    if (h != 77) failures++, printf("a handle was written by a call that failed\n");
}

static void test_log(double *x)
{
    recoup_log log = 77;
    recoup_log_rows rows = {0, N, N, 8}, outside = {1, N, N, 8}, empty = {0, N, N, 0}, huge = {0, UINT64_MAX / 4, UINT64_MAX, 8};
    uint64_t bytes = 4, none = 3;
    char facts[4] = "abc", found[4], folder[600];
    static double values[N];
    snprintf(folder, sizeof folder, "%s/log", directory);
    EXPECT(recoup_log_open(NULL, "s", 0, 1, 1 << 20, &log), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_open(folder, NULL, 0, 1, 1 << 20, &log), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_open(folder, "s-1", 0, 1, 1 << 20, &log), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_open(folder, "", 0, 1, 1 << 20, &log), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_open(folder, "s", 1, 1, 1 << 20, &log), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_open(folder, "s", -1, 1, 1 << 20, &log), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_open(folder, "s", 0, 1, 1 << 20, NULL), RECOUP_E_ARGUMENT);
    if (log != 77) failures++, printf("a log was written by a call that failed\n");
    EXPECT(recoup_log_open(folder, "s", 0, 1, 10000, &log), RECOUP_OK);
    EXPECT(recoup_log_put(0, 1, &rows, facts, 4, x), RECOUP_E_HANDLE);
    EXPECT(recoup_log_put(log, 1, NULL, facts, 4, x), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_put(log, 1, &outside, facts, 4, x), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_put(log, 1, &empty, facts, 4, x), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_put(log, 1, &huge, facts, 4, x), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_put(log, 1, &rows, NULL, 4, x), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_put(log, 1, &rows, facts, UINT64_MAX, x), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_put(log, 1, &rows, facts, 4, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_put(log, 1, &rows, facts, 4, x), RECOUP_OK);
    EXPECT(recoup_log_put(log, 2, &rows, facts, 4, x), RECOUP_E_FULL);
    EXPECT(recoup_log_find(0, 1, &rows, found, &bytes, values), RECOUP_E_HANDLE);
    EXPECT(recoup_log_find(log, 1, NULL, found, &bytes, values), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_find(log, 1, &outside, found, &bytes, values), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_find(log, 1, &rows, NULL, &bytes, values), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_find(log, 1, &rows, found, NULL, values), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_find(log, 1, &rows, found, &bytes, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_log_find(log, 1, &rows, found, &none, values), RECOUP_E_MISMATCH);
    EXPECT(recoup_log_find(log, 2, &rows, found, &bytes, values), RECOUP_NO_VERSION);
    EXPECT(recoup_log_find(log, 1, &rows, found, &bytes, values), RECOUP_OK);
    if (bytes != 4 || memcmp(facts, found, 4) || memcmp(x, values, sizeof values)) failures++, printf("another call was found\n");
    EXPECT(recoup_log_close(0), RECOUP_E_HANDLE);
    EXPECT(recoup_log_close(log), RECOUP_OK);
    EXPECT(recoup_log_close(log), RECOUP_E_HANDLE);
}

static void test_protect(double *x)
{
    recoup_handle h;
    char name[80];
    double *odd = (double *)((char *)x + 1);
    EXPECT(recoup_open(in("protect", ""), NULL, &h), RECOUP_OK);
    EXPECT(recoup_restore(h, (uint64_t *)x, NULL), RECOUP_E_ORDER);
    EXPECT(recoup_step(h, 1, 1, 1), RECOUP_E_ORDER);
    EXPECT(recoup_protect(0, "x", 0, 0, x, N, 0, N), RECOUP_E_HANDLE);
    EXPECT(recoup_protect(h + 1000, "x", 0, 0, x, N, 0, N), RECOUP_E_HANDLE);
    EXPECT(recoup_protect(h, NULL, 0, 0, x, N, 0, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect(h, "x", 6, 0, x, N, 0, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect(h, "x", -1, 0, x, N, 0, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect(h, "x", 0, 4, x, N, 0, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect(h, "x", 0, -1, x, N, 0, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect(h, "x", 0, 0, NULL, N, 0, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect(h, "x", 0, 0, odd, N - 1, 0, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect(h, "x", 0, 0, x, N, 1, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect(h, "x", 0, 0, x, N, UINT64_MAX - 2, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect(h, "x", 0, 0, x, UINT64_MAX, 0, UINT64_MAX), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect(h, "x", 0, 0, x, UINT64_MAX / 8, 0, UINT64_MAX / 8), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect(h, "x", 0, 0, x, 0, RECOUP_RANK_LOCAL, 0), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect(h, "", 0, 0, x, N, 0, N), RECOUP_E_NAME);
    EXPECT(recoup_protect(h, "a b", 0, 0, x, N, 0, N), RECOUP_E_NAME);
    EXPECT(recoup_protect(h, "../x", 0, 0, x, N, 0, N), RECOUP_E_NAME);
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    EXPECT(recoup_protect(h, name, 0, 0, x, N, 0, N), RECOUP_E_NAME);
    EXPECT(recoup_protect(h, "x", 0, 0, x, N, 0, N), RECOUP_OK);
    EXPECT(recoup_protect(h, "y", RECOUP_DYNAMIC, RECOUP_BYTES, x, 8, RECOUP_RANK_LOCAL, 0), RECOUP_E_ARGUMENT);
    /* A second array by one name took the place of the first, which was in no version. */
    EXPECT(recoup_protect(h, "x", RECOUP_DYNAMIC, RECOUP_F64, x, N, 0, N), RECOUP_E_NAME);
    EXPECT(recoup_protect(h, "x", 0, 0, x, N - 1, 0, N - 1), RECOUP_E_NAME);
    says("variable x: taken");
    EXPECT(recoup_protect(h, "x", RECOUP_STATIC, RECOUP_F64, x, N, 0, N), RECOUP_E_NAME);
    EXPECT(recoup_protect(h, "none", RECOUP_DYNAMIC, RECOUP_F64, NULL, 0, 0, 10), RECOUP_OK);
    EXPECT(recoup_grid(h, "x", 10, 10, 10), RECOUP_OK);
    EXPECT(recoup_grid(h, "x", 10, 10, 11), RECOUP_E_ARGUMENT);
    EXPECT(recoup_grid(h, "x", UINT64_MAX, UINT64_MAX, 1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_grid(h, "z", 10, 10, 10), RECOUP_E_NAME);
    EXPECT(recoup_grid(h, NULL, 10, 10, 10), RECOUP_E_ARGUMENT);
    EXPECT(recoup_grid(0, "x", 10, 10, 10), RECOUP_E_HANDLE);
    EXPECT(recoup_touch(h, "x", 0, 1), RECOUP_E_ORDER);
    EXPECT(recoup_track(h, "x"), RECOUP_OK);
    EXPECT(recoup_track(h, "z"), RECOUP_E_NAME);
    EXPECT(recoup_track(h, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_track(0, "x"), RECOUP_E_HANDLE);
    EXPECT(recoup_touch(h, "x", 999, UINT64_MAX), RECOUP_OK);
    EXPECT(recoup_touch(h, "z", 0, 1), RECOUP_E_NAME);
    EXPECT(recoup_touch(h, NULL, 0, 1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_touch(0, "x", 0, 1), RECOUP_E_HANDLE);
    EXPECT(recoup_close(h), RECOUP_OK);
}

static void test_operator(double *x)
{
    int n = N, allowed[2] = {2, 0};
    uint64_t k = 5;
    recoup_handle h = opened("operator", "scheme=lossy interval=1it", x);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_E_OPERATOR);
    EXPECT(recoup_operator(0, identity, &n, N, 0, N, x, 0, 0), RECOUP_E_HANDLE);
    EXPECT(recoup_operator(h, NULL, &n, N, 0, N, x, 0, 0), RECOUP_E_ARGUMENT);
    EXPECT(recoup_operator(h, identity, &n, N, 0, N, NULL, 0, 0), RECOUP_E_ARGUMENT);
    EXPECT(recoup_operator(h, identity, &n, N, 1, N, x, 0, 0), RECOUP_E_ARGUMENT);
    EXPECT(recoup_operator(h, identity, &n, 0, 0, 0, x, 0, 0), RECOUP_E_ARGUMENT);
    EXPECT(recoup_operator(h, identity, &n, UINT64_MAX, 0, UINT64_MAX, x, 0, 0), RECOUP_E_ARGUMENT);
    EXPECT(recoup_operator(h, identity, &n, N, 0, N, x, -1, 0), RECOUP_E_ARGUMENT);
    EXPECT(recoup_operator(h, identity, &n, N, 0, N, x, 0, 2), RECOUP_E_ARGUMENT);
    EXPECT(recoup_operator_norms(h, 1, 1), RECOUP_E_OPERATOR);
    EXPECT(recoup_operator(h, identity, &n, N, 0, N, x, 0, RECOUP_OPERATOR_ANY_THREAD), RECOUP_OK);
    EXPECT(recoup_operator_norms(0, 1, 1), RECOUP_E_HANDLE);
    EXPECT(recoup_operator_norms(h, -1, 1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_operator_norms(h, 1, strtod("nan", NULL)), RECOUP_E_ARGUMENT);
    EXPECT(recoup_operator_norms(h, 1, 0), RECOUP_OK);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_NO_VERSION);
    EXPECT(recoup_operator(h, identity, &n, N, 0, N, x, 0, 0), RECOUP_E_ORDER);
    EXPECT(recoup_operator_norms(h, 1, 1), RECOUP_E_ORDER);
    EXPECT(recoup_close(h), RECOUP_OK);
    if (k != 5) failures++, printf("an iteration was written although there is no version\n");
    h = opened("broken", "scheme=lossy interval=1it", x);
    products = 0;
    EXPECT(recoup_operator(h, broken, &allowed[0], N, 0, N, x, 1, 0), RECOUP_OK);
    EXPECT(recoup_step(h, 1, 1, 1), RECOUP_OK);
    EXPECT(recoup_wait(h), RECOUP_E_NOT_SAVED);
    is_of_kind(RECOUP_KIND_CALLBACK);
    EXPECT(recoup_wait(h), RECOUP_OK);
    /* The last state that was promised is not there, whoever has heard of it. */
    EXPECT(recoup_close(h), RECOUP_E_NOT_SAVED);
    says("version 1: ");
    h = opened("broken from the start", "scheme=lossy interval=1it", x);
    products = 0;
    EXPECT(recoup_operator(h, broken, &allowed[1], N, 0, N, x, 1, 0), RECOUP_OK);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_E_CALLBACK);
    EXPECT(recoup_close(h), RECOUP_OK);
}

static double dot(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < N; i++) sum += a[i] * b[i];
    return sum;
}

/* The first call that needs the problem takes the two products it is recognised by. */
static void starts(recoup_handle h, uint64_t *k)
{
    products = 0;
    EXPECT(recoup_restore(h, k, NULL), RECOUP_NO_VERSION);
    if (products != 2) failures++, printf("%d products at the start, expected 2\n", products);
}

/* A version, and the products it took: with what is said of the state, and a factor that makes a lie of it. */
static void saves(recoup_handle h, uint64_t k, double residual_norm, double direction_squared, int expected)
{
    int wants = 9;
    products = 0;
    EXPECT(recoup_wants_known(h, &wants), RECOUP_OK);
    if (wants != 1) failures++, printf("version %d: what is known is not wanted\n", (int)k);
    if (residual_norm > 0) EXPECT(recoup_known(h, residual_norm, direction_squared), RECOUP_OK);
    EXPECT(recoup_step(h, k, 1, 1), RECOUP_OK);
    EXPECT(recoup_wait(h), RECOUP_OK);
    if (products != expected) failures++, printf("version %d: %d products, expected %d\n", (int)k, products, expected);
}

/* A verified version takes a product of its own iterate and one of the decoded one; what the program knows spares the first. A
 * residual norm that is too small to be true is found out, and measured. */
static void test_products(double *x)
{
    static double rhs[N], d[N], r[N];
    int n = N;
    for (int i = 0; i < N; i++) rhs[i] = x[i] + 1 + i % 7, d[i] = 1 + i % 5, r[i] = rhs[i] - x[i];
    double norm = sqrt(dot(r, r));
    uint64_t k;
    recoup_handle h = opened("behind", "scheme=lossy state=x codec=qb interval=1it", x);
    EXPECT(recoup_operator(h, counted, &n, N, 0, N, rhs, sqrt(N), RECOUP_OPERATOR_ANY_THREAD), RECOUP_OK);
    starts(h, &k);
    saves(h, 1, 0, 0, 2);
    saves(h, 2, norm, 0, 1);
    saves(h, 3, norm / 1000, 0, 3);
    saves(h, 4, 0, 0, 2);
    EXPECT(recoup_close(h), RECOUP_OK);
    h = opened("in place", "scheme=lossy state=x+p codec=qb interval=1it", x);
    EXPECT(recoup_protect(h, "d", RECOUP_DIRECTION, RECOUP_F64, d, N, 0, N), RECOUP_OK);
    EXPECT(recoup_operator(h, counted, &n, N, 0, N, rhs, sqrt(N), 0), RECOUP_OK);
    starts(h, &k);
    saves(h, 1, 0, 0, 4);
    saves(h, 2, norm, dot(d, d), 2);
    EXPECT(recoup_close(h), RECOUP_OK);
    h = opened("norms", "scheme=lossy state=x+p codec=qb interval=1it", x);
    EXPECT(recoup_protect(h, "d", RECOUP_DIRECTION, RECOUP_F64, d, N, 0, N), RECOUP_OK);
    EXPECT(recoup_operator(h, counted, &n, N, 0, N, rhs, sqrt(N), 0), RECOUP_OK);
    EXPECT(recoup_operator_norms(h, 1, 1), RECOUP_OK);
    starts(h, &k);
    saves(h, 1, norm, dot(d, d), 1);
    saves(h, 2, 0, 0, 3);
    EXPECT(recoup_close(h), RECOUP_OK);
}

static void test_steps(double *x)
{
    int due = 9, how = 9;
    uint64_t k = 9, seen = 0;
    double nan = strtod("nan", NULL), infinity = strtod("inf", NULL);
    recoup_stats_t stats;
    recoup_handle h = opened("steps", "scheme=lossless interval=2it", x);
    EXPECT(recoup_on_restore(h, NULL, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_on_restore(0, calls_back, &seen), RECOUP_E_HANDLE);
    EXPECT(recoup_on_restore(h, calls_back, &seen), RECOUP_OK);
    EXPECT(recoup_restore(0, &k, &how), RECOUP_E_HANDLE);
    EXPECT(recoup_restore(h, NULL, &how), RECOUP_E_ARGUMENT);
    EXPECT(recoup_restore(h, &k, &how), RECOUP_NO_VERSION);
    EXPECT(recoup_protect(h, "late", 0, 0, x, N, 0, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_protect(h, "late", RECOUP_DYNAMIC, 0, x + N, 1, 0, 1), RECOUP_E_ORDER);
    EXPECT(recoup_protect(h, "x", 0, 0, x, N, 0, N), RECOUP_OK);
    EXPECT(recoup_step(0, 1, 1, 1), RECOUP_E_HANDLE);
    EXPECT(recoup_step(h, 1, nan, 1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_step(h, 1, 1, infinity), RECOUP_E_ARGUMENT);
    EXPECT(recoup_step(h, 1, -1, 1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_step(h, UINT64_MAX, 1, 1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_due(h, 1, 1, 1, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_due(0, 1, 1, 1, &due), RECOUP_E_HANDLE);
    EXPECT(recoup_due(h, 1, 1, 1, &due), RECOUP_OK);
    if (due != 0) failures++, printf("due before its time\n");
    EXPECT(recoup_due(h, 2, 1, 1, &due), RECOUP_OK);
    if (due != RECOUP_DUE_DIRECTION) failures++, printf("not due in time, with all that is protected\n");
    EXPECT(recoup_wants_known(0, &due), RECOUP_E_HANDLE);
    EXPECT(recoup_wants_known(h, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_wants_known(h, &due), RECOUP_OK);
    if (due != 0) failures++, printf("a lossless version wants to know what spares no product\n");
    EXPECT(recoup_known(0, 1, 1), RECOUP_E_HANDLE);
    EXPECT(recoup_known(h, nan, 1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_known(h, 1, -1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_known(h, 1, 0), RECOUP_OK);
    EXPECT(recoup_checkpoint(0, 2, 1, 1), RECOUP_E_HANDLE);
    EXPECT(recoup_checkpoint(h, 2, nan, 1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_checkpoint(h, 2, 1, 1), RECOUP_OK);
    EXPECT(recoup_wait(0), RECOUP_E_HANDLE);
    EXPECT(recoup_wait(h), RECOUP_OK);
    EXPECT(recoup_converged(0, 1), RECOUP_E_HANDLE);
    EXPECT(recoup_converged(h, 2), RECOUP_E_ARGUMENT);
    EXPECT(recoup_converged(h, 0), RECOUP_OK);
    EXPECT(recoup_stats(h, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_stats(0, &stats), RECOUP_E_HANDLE);
    EXPECT(recoup_stats(h, &stats), RECOUP_OK);
    if (stats.versions != 1 || stats.newest != 2) failures++, printf("not one version, or not version 2\n");
    inner = h;
    memset(x, 0, N * sizeof(double));
    EXPECT(recoup_restore(h, &k, &how), RECOUP_OK);
    if (k != 2 || how != RECOUP_TRADITIONAL || seen != 2 || x[3] != 3) failures++, printf("not what was saved\n");
    EXPECT(recoup_on_restore(h, refuses, NULL), RECOUP_OK);
    EXPECT(recoup_restore(h, &k, &how), RECOUP_E_CALLBACK);
    EXPECT(recoup_close(h), RECOUP_OK);
    EXPECT(recoup_close(h), RECOUP_E_HANDLE);
    EXPECT(recoup_step(h, 3, 1, 1), RECOUP_E_HANDLE);
    EXPECT(recoup_close(0), RECOUP_E_HANDLE);
    h = opened("iterate", "scheme=lossless state=x interval=1it", x);
    EXPECT(recoup_due(h, 1, 1, 1, &due), RECOUP_OK);
    if (due != RECOUP_DUE_ITERATE) failures++, printf("not due with the iterate alone\n");
    EXPECT(recoup_close(h), RECOUP_OK);
}

/* A time loop that counted from 1 in each step: after the first one nothing was saved, and nothing said so. */
static void test_counters(double *x)
{
    uint64_t k;
    int due;
    recoup_handle h = opened("counters", "scheme=lossless interval=2it", x);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_NO_VERSION);
    for (uint64_t i = 1; i < 7; i++) EXPECT(recoup_step(h, i, 1, 1), RECOUP_OK);
    EXPECT(recoup_step(h, 1, 1, 1), RECOUP_E_ORDER);
    says("iteration 1 after iteration 6"), says("`systems`");
    EXPECT(recoup_due(h, 5, 1, 1, &due), RECOUP_E_ORDER);
    EXPECT(recoup_checkpoint(h, 5, 1, 1), RECOUP_E_ORDER);
    EXPECT(recoup_checkpoint(h, 7, 1, 1), RECOUP_OK);
    EXPECT(recoup_step(h, 7, 1, 1), RECOUP_OK);
    EXPECT(recoup_close(h), RECOUP_OK);
    h = opened("counters", "scheme=lossless interval=2it", x);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_OK);
    if (k != 7) failures++, printf("version %d\n", (int)k);
    EXPECT(recoup_step(h, 1, 1, 1), RECOUP_E_ORDER);
    EXPECT(recoup_step(h, 30, 1, 1), RECOUP_OK);
    EXPECT(recoup_wait(h), RECOUP_OK);
    EXPECT(recoup_step(h, 31, 1, 1), RECOUP_OK);
    /* A restore takes the counter back with it. */
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_OK);
    if (k != 30) failures++, printf("version %d\n", (int)k);
    EXPECT(recoup_step(h, 31, 1, 1), RECOUP_OK);
    EXPECT(recoup_close(h), RECOUP_OK);
}

/* Other variables, another problem, a directory that cannot be. */
static void test_versions(double *x)
{
    int n = N;
    uint64_t k;
    recoup_handle h = opened("versions", "scheme=lossless", x);
    EXPECT(recoup_operator(h, identity, &n, N, 0, N, x, 0, 0), RECOUP_OK);
    EXPECT(recoup_checkpoint(h, 4, 1, 1), RECOUP_OK);
    EXPECT(recoup_close(h), RECOUP_OK);
    EXPECT(recoup_open(in("versions", ""), NULL, &h), RECOUP_OK);
    EXPECT(recoup_protect(h, "x", RECOUP_ITERATE, RECOUP_F64, x, N - 1, 0, N - 1), RECOUP_OK);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_E_MISMATCH);
    EXPECT(recoup_close(h), RECOUP_OK);
    h = opened("versions", "", x);
    x[0] = 17;
    EXPECT(recoup_operator(h, identity, &n, N, 0, N, x, 0, 0), RECOUP_OK);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_E_OTHER_PROBLEM);
    is_of_kind(RECOUP_KIND_REFUSED);
    EXPECT(recoup_close(h), RECOUP_OK);
    x[0] = 0;
    h = opened("none/../../../../../../proc/none", "", x);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_E_STORE);
    EXPECT(recoup_close(h), RECOUP_OK);
}

/* Another operator of the same size and right-hand side, another right-hand side and another size are refused by name; what rounding
 * explains is not. */
static void test_problems(double *x)
{
    static double rhs[N], before[N];
    double factors[4] = {1, 1 + 1e-6, -1, 1 + 100 * DBL_EPSILON};
    int less = N - 1;
    uint64_t k;
    memcpy(rhs, x, sizeof rhs), memcpy(before, x, sizeof before);
    recoup_handle h = opened("problems", "scheme=lossless", x);
    EXPECT(recoup_operator(h, scaled, &factors[0], N, 0, N, rhs, 0, 0), RECOUP_OK);
    EXPECT(recoup_checkpoint(h, 4, 1, 1), RECOUP_OK);
    EXPECT(recoup_close(h), RECOUP_OK);
    memset(x, 0, N * sizeof(double));
    for (int i = 1; i < 4; i++) {
        h = opened("problems", "", x);
        EXPECT(recoup_operator(h, scaled, &factors[i], N, 0, N, rhs, 0, 0), RECOUP_OK);
        EXPECT(recoup_restore(h, &k, NULL), i < 3 ? RECOUP_E_OTHER_PROBLEM : RECOUP_OK);
        if (i < 3) says("another operator"), says("same_operator=no");
        if (x[3] != (i < 3 ? 0 : 3)) failures++, printf("factor %g: x[3] is %g\n", factors[i], x[3]);
        EXPECT(recoup_close(h), RECOUP_OK);
    }
    rhs[3] += 1e-3;
    h = opened("problems", "", x);
    EXPECT(recoup_operator(h, scaled, &factors[0], N, 0, N, rhs, 0, 0), RECOUP_OK);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_E_OTHER_PROBLEM);
    says("another right-hand side");
    EXPECT(recoup_close(h), RECOUP_OK);
    EXPECT(recoup_open(in("problems", ""), NULL, &h), RECOUP_OK);
    EXPECT(recoup_protect(h, "x", RECOUP_ITERATE, RECOUP_F64, x, N - 1, 0, N - 1), RECOUP_OK);
    EXPECT(recoup_operator(h, identity, &less, N - 1, 0, N - 1, rhs, 0, 0), RECOUP_OK);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_E_OTHER_PROBLEM);
    says("another size");
    EXPECT(recoup_close(h), RECOUP_OK);
    memcpy(x, before, sizeof before);
}

/* With same_operator=no the x of another problem is taken only where its residual is not above that of the program's own; counters come
 * back either way, and directions of the other operator do not. */
static void test_first_guess(double *x)
{
    static double rhs[N], before[N], d[N];
    double factor = 1;
    int64_t step[1] = {42};
    memcpy(rhs, x, sizeof rhs), memcpy(before, x, sizeof before);
    for (int run = 0; run < 3; run++) {
        int how = 9;
        uint64_t k = 0;
        recoup_handle h = opened("guess", "scheme=lossless same_operator=no", x);
        EXPECT(recoup_protect(h, "d", RECOUP_DIRECTION, RECOUP_F64, d, N, 0, N), RECOUP_OK);
        EXPECT(recoup_protect(h, "step", RECOUP_DYNAMIC, RECOUP_I64, step, 1, RECOUP_REPLICATED, 0), RECOUP_OK);
        EXPECT(recoup_operator(h, scaled, &factor, N, 0, N, rhs, 0, 0), RECOUP_OK);
        for (int i = 0; run > 0 && i < N; i++) d[i] = -1, x[i] = run == 1 ? 0 : rhs[i] / 1.1;
        step[0] = run == 0 ? 42 : 0;
        EXPECT(recoup_restore(h, &k, &how), run == 0 ? RECOUP_NO_VERSION : RECOUP_OK);
        if (run == 0) EXPECT(recoup_checkpoint(h, 4, 0, 0), RECOUP_OK);
        EXPECT(recoup_close(h), RECOUP_OK);
        double expected = run < 2 ? 3 : rhs[3] / 1.1;
        if (x[3] != expected || step[0] != 42) failures++, printf("run %d: x[3] %g, step %d\n", run, x[3], (int)step[0]);
        if (run > 0 && (k != 4 || how != RECOUP_FIRST_GUESS || d[3] != -1)) failures++, printf("run %d: how %d\n", run, how);
        factor = 1.1;
    }
    memcpy(x, before, sizeof before);
}

/* Static variables and every type come back, and each role where it belongs. */
static void test_application(double *x)
{
    double mesh[3] = {1, 2, 3};
    float field[5] = {1, 2, 3, 4, 5};
    int64_t step[1] = {42};
    char state[7] = "random";
    for (int run = 0; run < 2; run++) {
        uint64_t k = 0;
        recoup_handle h = opened("application", "scheme=lossless", x);
        EXPECT(recoup_protect(h, "mesh", RECOUP_STATIC, RECOUP_F64, mesh, 3, RECOUP_REPLICATED, 0), RECOUP_OK);
        EXPECT(recoup_protect(h, "field", RECOUP_DYNAMIC, RECOUP_F32, field, 5, RECOUP_RANK_LOCAL, 0), RECOUP_OK);
        EXPECT(recoup_protect(h, "step", RECOUP_DYNAMIC, RECOUP_I64, step, 1, RECOUP_REPLICATED, 0), RECOUP_OK);
        EXPECT(recoup_protect(h, "state", RECOUP_DYNAMIC, RECOUP_BYTES, state, 7, RECOUP_RANK_LOCAL, 0), RECOUP_OK);
        EXPECT(recoup_restore(h, &k, NULL), run == 0 ? RECOUP_NO_VERSION : RECOUP_OK);
        if (run == 0) EXPECT(recoup_checkpoint(h, 8, 0, 0), RECOUP_OK);
        EXPECT(recoup_close(h), RECOUP_OK);
        if (mesh[2] != 3 || field[4] != 5 || step[0] != 42 || strcmp(state, "random") != 0) {
            failures++;
            printf("run %d: not what was saved\n", run);
        }
        memset(mesh, 0, sizeof mesh), memset(field, 0, sizeof field), memset(step, 0, sizeof step);
        memset(state, 0, sizeof state);
    }
}

/* Saves version 1, which goes to the directory too, and version 2 with these norms, which goes to memory alone. */
static recoup_handle in_memory(const char *name, const char *more, double *x, double residual_norm, double rhs_norm)
{
    recoup_handle h = opened(name, more, x);
    EXPECT(recoup_step(h, 1, 1, 1), RECOUP_OK);
    EXPECT(recoup_wait(h), RECOUP_OK);
    EXPECT(recoup_step(h, 2, residual_norm, rhs_norm), RECOUP_OK);
    return h;
}

/* The version a later start continues from, 0 for none. */
static int newest(const char *name, const char *more, double *x)
{
    uint64_t k = 0;
    recoup_handle h = opened(name, more, x);
    if (recoup_restore(h, &k, NULL) < 0) failures++, printf("%s: %s\n", name, recoup_message());
    EXPECT(recoup_close(h), RECOUP_OK);
    return (int)k;
}

/* Norms of 0 are none: they passed for convergence, and a program that ended early lost the versions in memory. What converged by
 * a test of its own was left there. */
static void test_memory(double *x)
{
    static const struct {
        const char *name;
        double      residual_norm, rhs_norm;
        int         says, is_kept;
    } ends[] = {{"no norms", 0, 0, -1, 1},  {"no residual", 0, 1, -1, 1}, {"converged", 1e-7, 1, -1, 0},
                {"not so", 1e-7, 1, 0, 1}, {"told", 0, 0, 1, 0}};
    char memory[400], both[500];
    snprintf(memory, sizeof memory, "scheme=traditional interval=1it memory-dir=\"%s\" tiers=memory", directory);
    snprintf(both, sizeof both, "%s,pfs pfs-every=100", memory);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        for (int has_directory = 0; has_directory < 2; has_directory++) {
            const char   *more = has_directory ? both : memory;
            char          name[40];
            recoup_handle h;
            snprintf(name, sizeof name, "%s %d", ends[i].name, has_directory);
            h = in_memory(name, more, x, ends[i].residual_norm, ends[i].rhs_norm);
            if (ends[i].says >= 0) EXPECT(recoup_converged(h, ends[i].says), RECOUP_OK);
            EXPECT(recoup_close(h), RECOUP_OK);
            int there = newest(name, more, x), expected = has_directory || ends[i].is_kept ? 2 : 0;
            if (there != expected) failures++, printf("%s: version %d, expected %d\n", name, there, expected);
            if (!has_directory) continue;
            /* Without memory: the directory has the newest version where memory was freed. */
            there = newest(name, "", x), expected = ends[i].is_kept ? 1 : 2;
            if (there != expected) failures++, printf("%s: %d in the directory, expected %d\n", name, there, expected);
        }
    }
}

/* The residual of one system passed for the end of the run. */
static void test_memory_of_systems(double *x)
{
    char     more[600];
    int      n = N;
    double   u = 1;
    uint64_t index = 7;
    snprintf(more, sizeof more, "systems scheme=lossless interval=1it memory-dir=\"%s\" tiers=memory", directory);
    for (int run = 0; run < 2; run++) {
        recoup_handle h = opened("two systems", more, x);
        EXPECT(recoup_protect(h, "u", RECOUP_DYNAMIC, RECOUP_F64, &u, 1, RECOUP_REPLICATED, 0), RECOUP_OK);
        EXPECT(recoup_find_system(h, &index), run == 0 ? RECOUP_NO_VERSION : RECOUP_OK);
        if (run > 0 && index != 3) failures++, printf("system %d, expected 3\n", (int)index);
        EXPECT(recoup_operator(h, identity, &n, N, 0, N, x, 1, 0), RECOUP_OK);
        EXPECT(recoup_begin_system(h, 3 + (uint64_t)run), RECOUP_OK);
        EXPECT(recoup_step(h, 1, 1e-7, 1), RECOUP_OK);
        EXPECT(recoup_close(h), RECOUP_OK);
    }
}

/* The directory had no room, close said nothing, and memory was freed. */
static void test_full_directory(double *x)
{
    char          both[600];
    struct rlimit all, less;
    snprintf(both, sizeof both, "scheme=traditional interval=1it memory-dir=\"%s\" tiers=memory,pfs pfs-every=1", directory);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &all);
    less = all;
    /* The values fit into a file, but not with the structure of HDF5. */
    less.rlim_cur = N * sizeof(double) + 500;
    setrlimit(RLIMIT_FSIZE, &less);
    EXPECT(recoup_close(in_memory("full", both, x, 1e-7, 1)), RECOUP_E_NOT_SAVED);
    says("version 2 is in memory alone; pfs: ");
    is_of_kind(RECOUP_KIND_FILE_TOO_LARGE);
    setrlimit(RLIMIT_FSIZE, &all);
    if (newest("full", both, x) != 2) failures++, printf("memory was freed\n");
    /* A program could tell a full disk from an error of its own by words alone. */
    setrlimit(RLIMIT_FSIZE, &less);
    recoup_handle h = opened("full disk", "scheme=traditional interval=1it", x);
    EXPECT(recoup_step(h, 1, 1, 1), RECOUP_OK);
    EXPECT(recoup_wait(h), RECOUP_E_NOT_SAVED);
    is_of_kind(RECOUP_KIND_FILE_TOO_LARGE);
    setrlimit(RLIMIT_FSIZE, &all);
    recoup_handle other = opened("full disk", "", x);
    uint64_t k = 0;
    EXPECT(recoup_restore(other, &k, NULL), RECOUP_E_STORE);
    is_of_kind(RECOUP_KIND_IN_USE);
    EXPECT(recoup_close(other), RECOUP_OK);
    EXPECT(recoup_close(h), RECOUP_E_NOT_SAVED);
    is_of_kind(RECOUP_KIND_FILE_TOO_LARGE);
}

/* Two threads share a handle, in any order: a counter of each would go back and forth. */
static void *steps(void *handle)
{
    for (int i = 0; i < 50; i++) EXPECT(recoup_due(*(recoup_handle *)handle, 7, 1, 1, &(int){0}), RECOUP_OK);
    return NULL;
}

/* Adding one variable to a program made all its older versions unreadable. */
static void test_changes(double *x)
{
    static double u[N], v[10], added[10], fixed[2];
    int64_t steps = 7;
    int32_t is_default = 9;
    uint64_t k = 0;
    recoup_handle h = opened("changes", "scheme=lossless keep=9", x);
    EXPECT(recoup_protect(h, "u", RECOUP_DYNAMIC, RECOUP_F64, u, N, 0, N), RECOUP_OK);
    EXPECT(recoup_protect(h, "gone", RECOUP_DYNAMIC, RECOUP_I64, &steps, 1, RECOUP_RANK_LOCAL, 0), RECOUP_OK);
    for (int i = 0; i < N; i++) u[i] = 3 * i;
    EXPECT(recoup_checkpoint(h, 5, 1, 1), RECOUP_OK);
    EXPECT(recoup_close(h), RECOUP_OK);

    memset(u, 0, sizeof u);
    for (int i = 0; i < 10; i++) v[i] = added[i] = -i;
    h = opened("changes", "scheme=lossless keep=9", x);
    EXPECT(recoup_protect(h, "velocity", RECOUP_DYNAMIC, RECOUP_F64, u, N, 0, N), RECOUP_OK);
    EXPECT(recoup_protect(h, "v", RECOUP_DYNAMIC, RECOUP_F64, v, 10, RECOUP_RANK_LOCAL, 0), RECOUP_OK);
    EXPECT(recoup_protect(h, "fixed", RECOUP_STATIC, RECOUP_F64, fixed, 2, RECOUP_RANK_LOCAL, 0), RECOUP_OK);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_E_MISMATCH);
    if (strstr(recoup_message(), "no variable velocity; it has gone, u, x") == NULL ||
        strstr(recoup_message(), "recoup_default, recoup_renamed, recoup_dropped") == NULL)
        failures++, printf("%s\n", recoup_message());
    EXPECT(recoup_renamed(h, "velocity", "u"), RECOUP_OK);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_E_MISMATCH);
    EXPECT(recoup_default(h, "v"), RECOUP_OK);
    EXPECT(recoup_default(h, "fixed"), RECOUP_OK);
    EXPECT(recoup_dropped(h, "gone"), RECOUP_OK);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_OK);
    EXPECT(recoup_is_default(h, "v", &is_default), RECOUP_OK);
    if (k != 5 || u[9] != 27 || is_default != 1 || memcmp(v, added, sizeof v) != 0)
        failures++, printf("restored %g at %d\n", u[9], (int)k);
    EXPECT(recoup_is_default(h, "velocity", &is_default), RECOUP_OK);
    if (is_default != 0) failures++, printf("velocity is from the version\n");
    EXPECT(recoup_checkpoint(h, 6, 1, 1), RECOUP_OK);
    EXPECT(recoup_close(h), RECOUP_OK);

    /* The newest version has all of them, the declarations may stay. */
    memset(v, 0, sizeof v);
    h = opened("changes", "scheme=lossless keep=9", x);
    EXPECT(recoup_protect(h, "velocity", RECOUP_DYNAMIC, RECOUP_F64, u, N, 0, N), RECOUP_OK);
    EXPECT(recoup_protect(h, "v", RECOUP_DYNAMIC, RECOUP_F64, v, 10, RECOUP_RANK_LOCAL, 0), RECOUP_OK);
    EXPECT(recoup_protect(h, "fixed", RECOUP_STATIC, RECOUP_F64, fixed, 2, RECOUP_RANK_LOCAL, 0), RECOUP_OK);
    EXPECT(recoup_renamed(h, "velocity", "u"), RECOUP_OK);
    EXPECT(recoup_default(h, "v"), RECOUP_OK);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_OK);
    EXPECT(recoup_is_default(h, "v", &is_default), RECOUP_OK);
    if (k != 6 || is_default != 0 || memcmp(v, added, sizeof v) != 0) failures++, printf("v is from the version\n");

    EXPECT(recoup_default(h, "none"), RECOUP_E_NAME);
    EXPECT(recoup_default(h, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_default(0, "v"), RECOUP_E_HANDLE);
    EXPECT(recoup_renamed(h, "none", "u"), RECOUP_E_NAME);
    EXPECT(recoup_renamed(h, "velocity", "a b"), RECOUP_E_NAME);
    EXPECT(recoup_renamed(h, NULL, "u"), RECOUP_E_ARGUMENT);
    EXPECT(recoup_renamed(h, "velocity", NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_renamed(0, "velocity", "u"), RECOUP_E_HANDLE);
    EXPECT(recoup_dropped(h, "v"), RECOUP_E_NAME);
    EXPECT(recoup_dropped(h, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_dropped(0, "gone"), RECOUP_E_HANDLE);
    EXPECT(recoup_is_default(h, "none", &is_default), RECOUP_E_NAME);
    EXPECT(recoup_is_default(h, NULL, &is_default), RECOUP_E_ARGUMENT);
    EXPECT(recoup_is_default(h, "v", NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_is_default(0, "v", &is_default), RECOUP_E_HANDLE);
    EXPECT(recoup_close(h), RECOUP_OK);
}

static void test_threads(double *x)
{
    pthread_t threads[4];
    recoup_handle handles[2] = {opened("one", "scheme=lossless", x), opened("two", "scheme=lossless", x)};
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, steps, &handles[i % 2]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) EXPECT(recoup_close(handles[i]), RECOUP_OK);
}

static atomic_int is_open;

/* A product that takes as long as the test likes. */
static int stalled(void *ctx, const double *v, double *y)
{
    while (!atomic_load(&is_open)) sched_yield();
    return identity(ctx, v, y);
}

/* A version that is not made in the time given is no failed one: it is waited for again. */
static void test_wait_for(double *x)
{
    const char *options = "scheme=lossy interval=1it";
    int code = RECOUP_NOT_YET, n = N;
    uint64_t k = 0;
    recoup_handle h = opened("late", options, x);
    EXPECT(recoup_wait_for(0, 0), RECOUP_E_HANDLE);
    EXPECT(recoup_wait_for(h, -1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_wait_for(h, strtod("nan", NULL)), RECOUP_E_ARGUMENT);
    EXPECT(recoup_wait_for(h, 0), RECOUP_OK);
    atomic_store(&is_open, 1);
    EXPECT(recoup_operator(h, stalled, &n, N, 0, N, x, 1, RECOUP_OPERATOR_ANY_THREAD), RECOUP_OK);
    EXPECT(recoup_restore(h, &k, NULL), RECOUP_NO_VERSION);
    atomic_store(&is_open, 0);
    EXPECT(recoup_step(h, 1, 1, 1), RECOUP_OK);
    EXPECT(recoup_wait_for(h, 0), RECOUP_NOT_YET);
    EXPECT(recoup_wait_for(h, 0.05), RECOUP_NOT_YET);
    atomic_store(&is_open, 1);
    EXPECT(recoup_wait_for(h, strtod("inf", NULL)), RECOUP_OK);
    EXPECT(recoup_close(h), RECOUP_OK);
    if (newest("late", "scheme=lossless", x) != 1) failures++, printf("the version that was late is not there\n");

    /* Products on the program's thread are made by the waits, however short. */
    h = opened("served", options, x);
    EXPECT(recoup_operator(h, identity, &n, N, 0, N, x, 1, 0), RECOUP_OK);
    EXPECT(recoup_step(h, 1, 1, 1), RECOUP_OK);
    for (int tries = 0; tries < 100000 && code == RECOUP_NOT_YET; tries++) code = recoup_wait_for(h, 0.001);
    EXPECT(code, RECOUP_OK);
    EXPECT(recoup_close(h), RECOUP_OK);
}

/* A job that has an hour, one that has no time, and one without an end. */
static void test_time(double *x)
{
    const char *options[] = {"scheme=lossless time_limit=1h", "scheme=lossless time_limit=1e-9", "scheme=lossless"};
    const double most[] = {3600, 0, strtod("inf", NULL)};
    for (int i = 0; i < 3; i++) {
        double left = -1;
        int stop = 9;
        recoup_handle h = opened("time", options[i], x);
        EXPECT(recoup_time_left(0, &left), RECOUP_E_HANDLE);
        EXPECT(recoup_time_left(h, NULL), RECOUP_E_ARGUMENT);
        EXPECT(recoup_time_left(h, &left), RECOUP_OK);
        if (left > most[i] || left < most[i] - 100) failures++, printf("%s: %g s left\n", options[i], left);
        EXPECT(recoup_should_stop(0, &stop), RECOUP_E_HANDLE);
        EXPECT(recoup_should_stop(h, NULL), RECOUP_E_ARGUMENT);
        EXPECT(recoup_should_stop(h, &stop), RECOUP_OK);
        if (stop != (i == 1)) failures++, printf("%s: stop %d\n", options[i], stop);
        EXPECT(recoup_close(h), RECOUP_OK);
    }
    EXPECT(recoup_open(in("time", "time_limit=soon"), NULL, &inner), RECOUP_E_OPTIONS);
}

int main(int argc, char **argv)
{
    double *x = malloc((N + 1) * sizeof(double));
    directory = argc > 1 ? argv[1] : ".";
    for (int i = 0; i <= N; i++) x[i] = i;
    test_open();
    test_log(x);
    test_protect(x);
    test_operator(x);
    test_products(x);
    test_steps(x);
    test_counters(x);
    test_versions(x);
    test_problems(x);
    test_first_guess(x);
    test_application(x);
    test_memory(x);
    test_memory_of_systems(x);
    test_full_directory(x);
    test_changes(x);
    test_threads(x);
    test_wait_for(x);
    test_time(x);
    if (strcmp(recoup_strerror(RECOUP_OK), "done") != 0 || recoup_strerror(12345) == NULL) failures++;
    if (recoup_version()[0] == 0) failures++;
    free(x);
    printf("%d failures\n", failures);
    return failures != 0;
}
