/* Every call with every wrong argument, out of order and in order: each gives the code it documents, none does harm. */

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "veloc.h"

static int failures;

static void expect(int expected, int found, const char *call, int line) {
    if (expected != found) {
        printf("line %d: %s: %d expected, %d found\n", line, call, expected, found);
        failures++;
    }
}

#define FAILS(call) expect(VELOC_FAILURE, call, #call, __LINE__)
#define WORKS(call) expect(VELOC_SUCCESS, call, #call, __LINE__)
#define GIVES(value, call) expect(value, call, #call, __LINE__)

static int x[4] = {1, 2, 3, 4};
static double y[3] = {0.5, 1.5, 2.5};
static char path[VELOC_MAX_NAME];
static int none[] = {9};
static int one[] = {1};
static int twice[] = {1, 1};

/* Without a client every call fails. */
static void before_init(void) {
    FAILS(VELOC_Finalize(1));
    FAILS(VELOC_Mem_protect(0, x, 4, sizeof *x));
    FAILS(VELOC_Region_protect(0, x, 4, sizeof *x, "a"));
    FAILS(VELOC_Mem_unprotect(0));
    FAILS(VELOC_Mem_clear());
    FAILS(VELOC_Region_unprotect(0, "a"));
    FAILS(VELOC_Region_clear("a"));
    FAILS(VELOC_Region_lossy(0, 0.1));
    FAILS(VELOC_Route_file("f", path));
    FAILS(VELOC_Cleanup("a"));
    FAILS(VELOC_Checkpoint_begin("a", 1));
    FAILS(VELOC_Checkpoint_selective(VELOC_CKPT_ALL, NULL, 0));
    FAILS(VELOC_Checkpoint_mem());
    FAILS(VELOC_Checkpoint_end(1));
    FAILS(VELOC_Checkpoint_wait());
    FAILS(VELOC_Checkpoint_finished());
    FAILS(VELOC_Checkpoint_finished_head());
    GIVES(0, VELOC_Initialized());
    FAILS(VELOC_Checkpoint("a", 1));
    FAILS(VELOC_Restart_test("a", 0));
    FAILS(VELOC_Restart_begin("a", 1));
    FAILS(VELOC_Recover_selective(VELOC_RECOVER_ALL, NULL, 0));
    FAILS(VELOC_Recover_size(0));
    FAILS(VELOC_Recover_mem());
    FAILS(VELOC_Restart_end(1));
    FAILS(VELOC_Restart("a", 1));
    FAILS(VELOC_Init_single(0, NULL));
    FAILS(VELOC_Init_single(0, ""));
    FAILS(VELOC_Init_single(0, "no/such/file"));
    FAILS(VELOC_Init_single(0, "/"));
}

static void regions(void) {
    FAILS(VELOC_Mem_protect(0, NULL, 4, sizeof *x));
    FAILS(VELOC_Mem_protect(0, x, SIZE_MAX, sizeof *x));
    FAILS(VELOC_Mem_protect(0, x, SIZE_MAX, 1));
    FAILS(VELOC_Mem_unprotect(0));
    FAILS(VELOC_Region_protect(0, x, 4, sizeof *x, NULL));
    FAILS(VELOC_Region_protect(0, x, 4, sizeof *x, ""));
    FAILS(VELOC_Region_protect(0, x, 4, sizeof *x, "a/b"));
    FAILS(VELOC_Region_unprotect(0, "a"));
    FAILS(VELOC_Region_unprotect(0, NULL));
    FAILS(VELOC_Region_clear(NULL));
    WORKS(VELOC_Region_clear("a"));
    FAILS(VELOC_Region_lossy(0, -1.0));
    FAILS(VELOC_Region_lossy(0, NAN));
    FAILS(VELOC_Region_lossy(0, INFINITY));
    WORKS(VELOC_Mem_protect(0, NULL, 0, 8));
    WORKS(VELOC_Mem_protect(0, x, 4, sizeof *x));
    WORKS(VELOC_Mem_protect(0, x, 4, sizeof *x));
    WORKS(VELOC_Mem_protect(INT_MIN, y, 3, sizeof *y));
    WORKS(VELOC_Mem_unprotect(INT_MIN));
    WORKS(VELOC_Mem_protect(1, y, 3, sizeof *y));
}

static void out_of_order(void) {
    FAILS(VELOC_Checkpoint_mem());
    FAILS(VELOC_Checkpoint_selective(VELOC_CKPT_SOME, one, 1));
    FAILS(VELOC_Checkpoint_end(1));
    FAILS(VELOC_Checkpoint_end(0));
    FAILS(VELOC_Recover_mem());
    FAILS(VELOC_Recover_selective(VELOC_RECOVER_SOME, one, 1));
    FAILS(VELOC_Recover_size(0));
    FAILS(VELOC_Restart_end(1));
    FAILS(VELOC_Route_file("f", path));
    WORKS(VELOC_Checkpoint_wait());
    GIVES(1, VELOC_Checkpoint_finished());
    WORKS(VELOC_Checkpoint_finished_head());
    GIVES(-1, (int)VELOC_Recover_bytes(0));
}

static void names(void) {
    static char longest[2000];
    memset(longest, 'a', sizeof longest - 1);
    const char *wrong[] = {NULL, "", ".", "..", "a/b", "a b", "a-b", "\xff", longest};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        FAILS(VELOC_Checkpoint_begin(wrong[i], 1));
        FAILS(VELOC_Checkpoint(wrong[i], 1));
        FAILS(VELOC_Restart_test(wrong[i], 0));
        FAILS(VELOC_Restart_begin(wrong[i], 1));
        FAILS(VELOC_Restart(wrong[i], 1));
        FAILS(VELOC_Cleanup(wrong[i]));
    }
    FAILS(VELOC_Checkpoint_begin("a", -1));
    FAILS(VELOC_Checkpoint("a", INT_MIN));
    FAILS(VELOC_Restart_test("a", -1));
    FAILS(VELOC_Restart_test("a", 0));
    FAILS(VELOC_Restart_begin("a", -1));
    FAILS(VELOC_Restart_begin("a", 1));
    FAILS(VELOC_Restart("a", 7));
    WORKS(VELOC_Cleanup("a"));
}

static void checkpoint(void) {
    WORKS(VELOC_Checkpoint_begin("a", 1));
    FAILS(VELOC_Checkpoint_begin("a", 2));
    FAILS(VELOC_Restart_begin("a", 1));
    FAILS(VELOC_Restart_end(1));
    FAILS(VELOC_Cleanup("a"));
    FAILS(VELOC_Recover_mem());
    FAILS(VELOC_Checkpoint_selective(-1, one, 1));
    FAILS(VELOC_Checkpoint_selective(3, one, 1));
    FAILS(VELOC_Checkpoint_selective(VELOC_CKPT_SOME, NULL, 1));
    FAILS(VELOC_Checkpoint_selective(VELOC_CKPT_SOME, one, -1));
    FAILS(VELOC_Checkpoint_selective(VELOC_CKPT_SOME, none, 1));
    FAILS(VELOC_Checkpoint_selective(VELOC_CKPT_REST, NULL, 1));
    WORKS(VELOC_Checkpoint_selective(VELOC_CKPT_SOME, NULL, 0));
    WORKS(VELOC_Checkpoint_selective(VELOC_CKPT_SOME, twice, 2));
    FAILS(VELOC_Checkpoint_selective(VELOC_CKPT_SOME, one, 1));
    WORKS(VELOC_Checkpoint_selective(VELOC_CKPT_REST, one, 1));
    WORKS(VELOC_Checkpoint_mem());
    FAILS(VELOC_Route_file(NULL, path));
    FAILS(VELOC_Route_file("", path));
    FAILS(VELOC_Route_file("..", path));
    FAILS(VELOC_Route_file("f", NULL));
    WORKS(VELOC_Checkpoint_end(1));
    FAILS(VELOC_Checkpoint_end(1));
    /* A routed file that the program never wrote. */
    WORKS(VELOC_Checkpoint_begin("a", 2));
    WORKS(VELOC_Route_file("f", path));
    FAILS(VELOC_Checkpoint_end(1));
    /* A checkpoint that the program gives up. */
    WORKS(VELOC_Checkpoint_begin("a", 3));
    WORKS(VELOC_Checkpoint_mem());
    FAILS(VELOC_Checkpoint_end(0));
    GIVES(1, VELOC_Restart_test("a", 0));
    FAILS(VELOC_Restart_test("a", 1));
    GIVES(1, VELOC_Restart_test("a", 2));
}

static void restart(void) {
    x[0] = 0;
    FAILS(VELOC_Restart_begin("a", 2));
    WORKS(VELOC_Restart_begin("a", 1));
    FAILS(VELOC_Restart_begin("a", 1));
    FAILS(VELOC_Checkpoint_begin("a", 4));
    FAILS(VELOC_Checkpoint_mem());
    FAILS(VELOC_Recover_selective(-1, one, 1));
    FAILS(VELOC_Recover_selective(3, one, 1));
    FAILS(VELOC_Recover_selective(VELOC_RECOVER_SOME, NULL, 1));
    FAILS(VELOC_Recover_selective(VELOC_RECOVER_SOME, none, 1));
    FAILS(VELOC_Recover_selective(VELOC_RECOVER_REST, one, -5));
    FAILS(VELOC_Route_file("f", path));
    GIVES(4 * (int)sizeof *x, VELOC_Recover_size(0));
    GIVES(4 * (int)sizeof *x, (int)VELOC_Recover_bytes(0));
    GIVES(-1, (int)VELOC_Recover_bytes(9));
    FAILS(VELOC_Recover_size(9));
    FAILS(VELOC_Recover_size(INT_MIN));
    /* Another size than was saved, more or less. */
    WORKS(VELOC_Mem_protect(0, x, 3, sizeof *x));
    FAILS(VELOC_Recover_mem());
    WORKS(VELOC_Mem_protect(1, y, 2, sizeof *y));
    FAILS(VELOC_Recover_selective(VELOC_RECOVER_SOME, one, 1));
    WORKS(VELOC_Mem_unprotect(0));
    FAILS(VELOC_Recover_mem());
    GIVES(0, x[0]);
    WORKS(VELOC_Mem_protect(0, x, 4, sizeof *x));
    WORKS(VELOC_Mem_protect(1, y, 3, sizeof *y));
    WORKS(VELOC_Recover_mem());
    GIVES(1, x[0]);
    FAILS(VELOC_Restart_end(0));
    FAILS(VELOC_Restart_end(1));
    x[0] = 0;
    WORKS(VELOC_Restart("a", 1));
    GIVES(1, x[0]);
    /* Version 0 is a version. */
    WORKS(VELOC_Checkpoint("b", 0));
    GIVES(0, VELOC_Restart_test("b", 0));
    WORKS(VELOC_Restart("b", 0));
    /* Bytes that are no doubles cannot be lossy. */
    WORKS(VELOC_Region_lossy(0, 0.1));
    FAILS(VELOC_Checkpoint("b", 1));
    WORKS(VELOC_Region_lossy(0, 0.0));
    WORKS(VELOC_Region_lossy(1, 0.25));
    WORKS(VELOC_Checkpoint("b", 1));
    y[2] = 0.0;
    WORKS(VELOC_Restart("b", 1));
    GIVES(1, fabs(y[2] - 2.5) <= 0.25);
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    before_init();
    WORKS(VELOC_Init_single(UINT_MAX, argv[1]));
    FAILS(VELOC_Init_single(0, argv[1]));
    GIVES(1, VELOC_Initialized());
    regions();
    out_of_order();
    names();
    checkpoint();
    restart();
    WORKS(VELOC_Mem_clear());
    WORKS(VELOC_Finalize(1));
    GIVES(0, VELOC_Initialized());
    FAILS(VELOC_Finalize(1));
    WORKS(VELOC_Init_single(UINT_MAX, argv[1]));
    WORKS(VELOC_Finalize(0));
    printf("%d failures\n", failures);
    return failures != 0;
}
