/* A solver whose values are in the memory of a device, as a CUDA program lends them: by address.
 *
 *     device OPTIONS LAST KILLED_AFTER
 *
 * The library is the driver that LD_LIBRARY_PATH names. Without its headers, its calls are declared here.
 * Prints the iteration it starts at. Every value is compared bit for bit after each iteration. */
#include <math.h>
#include <recoup.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

enum { N = 20000 };

static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "recoup: %s: %s\n", recoup_strerror(code), recoup_message());
        exit(1);
    }
}

static double value(int i, uint64_t k)
{
    return sqrt((double)(i + 1)) * (double)(k + 1);
}

/* Gives the device the values of iteration k, and does not wait. */
static void compute(uint64_t x, double *host, uint64_t k)
{
    for (int i = 0; i < N; i++) host[i] = value(i, k);
    need(cuMemcpyHtoDAsync_v2(x, host, N * sizeof(double), 0), "cuMemcpyHtoDAsync");
}

static void compare(uint64_t x, double *host, uint64_t k)
{
    need(cuMemcpyDtoH_v2(host, x, N * sizeof(double)), "cuMemcpyDtoH");
    for (int i = 0; i < N; i++) {
        double expected = value(i, k);
        if (memcmp(&host[i], &expected, sizeof expected) != 0) {
            fprintf(stderr, "value %d of iteration %llu is another\n", i, (unsigned long long)k);
            exit(3);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    uint64_t last = strtoull(argv[2], NULL, 10), killed_after = strtoull(argv[3], NULL, 10), k = 0;
    int how = RECOUP_EXACT;
    uint64_t x = device_memory(N * sizeof(double)), moved = device_memory(N * sizeof(double));
    double *host = malloc(N * sizeof(double)), near = 0;
    if (host == NULL) return 1;
    recoup_handle handle;
    check(recoup_open(argv[1], NULL, &handle));
    void *lent = (void *)(uintptr_t)x;
    int refused = recoup_protect(handle, "long", RECOUP_DYNAMIC, RECOUP_F64, lent, N + 1, RECOUP_RANK_LOCAL, 0);
    if (refused != RECOUP_E_ARGUMENT || strstr(recoup_message(), "160008 bytes expected") == NULL) return 4;
    for (int i = 0; i < N; i++) host[i] = value(i, 0);
    check(recoup_protect(handle, "x", RECOUP_ITERATE, RECOUP_F64, lent, N, 0, N));
    check(recoup_protect(handle, "near", RECOUP_DYNAMIC, RECOUP_F64, &near, 1, RECOUP_REPLICATED, 0));
    int code = recoup_restore(handle, &k, &how);
    check(code);
    if (code == RECOUP_NO_VERSION)
        compute(x, host, k);
    else if (near != (double)k)
        return 5;
    compare(x, host, k);
    printf("starts at %llu\n", (unsigned long long)k);
    while (k < last) {
        k++;
        /* The vectors change places, as those of a solver do. */
        uint64_t other = x;
        x = moved;
        moved = other;
        check(recoup_protect(handle, "x", RECOUP_ITERATE, RECOUP_F64, (void *)(uintptr_t)x, N, 0, N));
        compute(x, host, k);
        near = (double)k;
        check(recoup_step(handle, k, 1.0 / (double)k, 1.0));
        if (k == killed_after) raise(SIGKILL);
    }
    compare(x, host, k);
    check(recoup_close(handle));
    free(host);
    give_back(x);
    give_back(moved);
    return 0;
}
