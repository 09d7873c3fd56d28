/* A program that protects memory of a device, as a CUDA program does: by address.
 *
 *   device CONFIG LAST KILLED_AFTER
 *
 * Prints the version it restarts from. Exit codes: 0 done, 2 usage, 3 wrong values, 4 a call that failed. */

#include <signal.h>
#include <string.h>

#include "../../../capi/tests/c/driver.h"
#include "veloc.h"

enum { N = 50000 };

static void call(int code, const char *name) {
    if (code != VELOC_SUCCESS) {
        fprintf(stderr, "device: %s\n", name);
        exit(4);
    }
}

static double value(int i, int step) {
    return (double)i + 0.5 * step;
}

/* Gives the device the values of a step, and does not wait. */
static void compute(uint64_t x, double *host, int step) {
    for (int i = 0; i < N; i++)
        host[i] = value(i, step);
    need(cuMemcpyHtoDAsync_v2(x, host, N * sizeof *host, 0), "cuMemcpyHtoDAsync");
}

static void compare(uint64_t x, double *host, int step) {
    need(cuMemcpyDtoH_v2(host, x, N * sizeof *host), "cuMemcpyDtoH");
    for (int i = 0; i < N; i++) {
        double expected = value(i, step);
        if (memcmp(&host[i], &expected, sizeof expected) != 0)
            exit(3);
    }
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    int last = atoi(argv[2]), killed_after = atoi(argv[3]), step = 0;
    uint64_t x = device_memory(N * sizeof(double));
    double *host = malloc(N * sizeof *host);
    if (host == NULL)
        return 2;
    call(VELOC_Init_single(0, argv[1]), "VELOC_Init_single");
    if (VELOC_Mem_protect(1, (void *)(uintptr_t)x, N + 1, sizeof *host) == VELOC_SUCCESS)
        return 4;
    call(VELOC_Mem_protect(0, &step, 1, sizeof step), "VELOC_Mem_protect");
    call(VELOC_Mem_protect(1, (void *)(uintptr_t)x, N, sizeof *host), "VELOC_Mem_protect");
    int version = VELOC_Restart_test("field", 0);
    if (version > 0) {
        call(VELOC_Restart("field", version), "VELOC_Restart");
        if (step != version)
            return 3;
    } else {
        compute(x, host, 0);
    }
    compare(x, host, step);
    printf("starts at %d\n", step);
    while (step < last) {
        step++;
        compute(x, host, step);
        if (step % 10 == 0)
            call(VELOC_Checkpoint("field", step), "VELOC_Checkpoint");
        if (step == killed_after)
            raise(SIGKILL);
    }
    compare(x, host, step);
    call(VELOC_Finalize(1), "VELOC_Finalize");
    free(host);
    give_back(x);
    return 0;
}
