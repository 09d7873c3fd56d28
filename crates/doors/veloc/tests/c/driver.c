/* A program as VELOC's users write them: a counter and a field on each rank, checkpointed every few steps, restarted
 * from the newest version. It knows every value it should find after a restart.
 *
 *   driver CONFIG STEPS EVERY VALUES memory|file
 *
 * Without MPI (-DSINGLE) it is a process by itself. Prints "restart V", "saved V" and "flushed V" on rank 0, each when it
 * is so. Exit codes: 0 done, 2 usage, 3 wrong values, 4 a call that failed. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "veloc.h"

static const char *NAME = "heat";

struct state {
    int rank;
    int step;
    size_t n;
    double *x;
};

static void quit(int code, const char *what) {
    fprintf(stderr, "driver: %s\n", what);
#ifndef SINGLE
    MPI_Abort(MPI_COMM_WORLD, code);
#endif
    exit(code);
}

static void need(int code, const char *call) {
    if (code != VELOC_SUCCESS)
        quit(4, call);
}

static void say(const struct state *s, const char *word, int version) {
    if (s->rank == 0) {
        printf("%s %d\n", word, version);
        fflush(stdout);
    }
}

/* Halves and whole numbers of this size are exact. */
static double value(const struct state *s, size_t k, int step) {
    return 1e6 * s->rank + (double)k + 0.5 * step;
}

static void check(const struct state *s, int version) {
    if (s->step != version)
        quit(3, "the counter is not the version's");
    for (size_t k = 0; k < s->n; k++)
        if (s->x[k] != value(s, k, version))
            quit(3, "a value is not the version's");
}

static void original(const struct state *s, int version, char *name) {
    snprintf(name, VELOC_MAX_NAME, "heat-%d-%d.dat", s->rank, version);
}

static int save_file(const struct state *s, int version) {
    char name[VELOC_MAX_NAME], path[VELOC_MAX_NAME];
    original(s, version, name);
    if (VELOC_Route_file(name, path) != VELOC_SUCCESS)
        return 0;
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return 0;
    int ok = fwrite(&s->step, sizeof s->step, 1, file) == 1 && fwrite(s->x, sizeof *s->x, s->n, file) == s->n;
    return fclose(file) == 0 && ok;
}

static int load_file(struct state *s, int version) {
    char name[VELOC_MAX_NAME], path[VELOC_MAX_NAME];
    original(s, version, name);
    if (VELOC_Route_file(name, path) != VELOC_SUCCESS)
        return 0;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return 0;
    int ok = fread(&s->step, sizeof s->step, 1, file) == 1 && fread(s->x, sizeof *s->x, s->n, file) == s->n;
    fclose(file);
    return ok;
}

static void restart(struct state *s, int version, int in_memory) {
    need(VELOC_Restart_begin(NAME, version), "VELOC_Restart_begin");
    int ok = in_memory ? VELOC_Recover_mem() == VELOC_SUCCESS : load_file(s, version);
    need(VELOC_Restart_end(ok), "VELOC_Restart_end");
    check(s, version);
    say(s, "restart", version);
}

static void checkpoint(struct state *s, int in_memory) {
    need(VELOC_Checkpoint_wait(), "VELOC_Checkpoint_wait");
    need(VELOC_Checkpoint_begin(NAME, s->step), "VELOC_Checkpoint_begin");
    int ok = in_memory ? VELOC_Checkpoint_mem() == VELOC_SUCCESS : save_file(s, s->step);
    need(VELOC_Checkpoint_end(ok), "VELOC_Checkpoint_end");
    say(s, "saved", s->step);
}

int main(int argc, char **argv) {
    if (argc != 6)
        return 2;
    int steps = atoi(argv[2]), every = atoi(argv[3]), in_memory = strcmp(argv[5], "memory") == 0;
    struct state s = {0, 0, (size_t)atol(argv[4]), NULL};
#ifdef SINGLE
    need(VELOC_Init_single(0, argv[1]), "VELOC_Init_single");
#else
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    need(VELOC_Init(MPI_COMM_WORLD, argv[1]), "VELOC_Init");
#endif
    printf("pid %d\n", (int)getpid());
    fflush(stdout);
    s.x = malloc(s.n * sizeof *s.x);
    for (size_t k = 0; k < s.n; k++)
        s.x[k] = value(&s, k, 0);
    need(VELOC_Mem_protect(0, &s.step, 1, sizeof s.step), "VELOC_Mem_protect");
    need(VELOC_Mem_protect(1, s.x, s.n, sizeof *s.x), "VELOC_Mem_protect");
    int version = VELOC_Restart_test(NAME, 0);
    if (version > 0)
        restart(&s, version, in_memory);
    while (s.step < steps) {
        s.step++;
        for (size_t k = 0; k < s.n; k++)
            s.x[k] += 0.5;
        if (s.step % every == 0)
            checkpoint(&s, in_memory);
    }
    check(&s, steps > version ? steps : version);
    need(VELOC_Finalize(1), "VELOC_Finalize");
    free(s.x);
    say(&s, "done", s.step);
#ifndef SINGLE
    MPI_Finalize();
#endif
    return 0;
}
