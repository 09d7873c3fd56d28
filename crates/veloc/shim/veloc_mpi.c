/* VELOC_Init: lends MPI's communicator to the library as callbacks, so that the rest of it knows no MPI. */

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "recoup.h"
#include "veloc.h"

#define FAILED 1

int recoup_veloc_init(const recoup_comm *comm, const char *cfg);

static int broadcast(void *ctx, void *data, uint64_t bytes, int32_t root) {
    if (bytes > INT_MAX)
        return FAILED;
    return MPI_Bcast(data, (int)bytes, MPI_BYTE, root, *(MPI_Comm *)ctx);
}

static int allgatherv(void *ctx, const void *mine, void *all, const uint64_t *bytes) {
    MPI_Comm comm = *(MPI_Comm *)ctx;
    int size, rank, code = FAILED;
    uint64_t total = 0;
    int *counts, *starts;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    counts = malloc(2 * (size_t)size * sizeof *counts);
    if (counts == NULL)
        return FAILED;
    starts = counts + size;
    for (int i = 0; i < size && total <= INT_MAX; i++) {
        starts[i] = (int)total;
        counts[i] = (int)bytes[i];
        total += bytes[i];
    }
    if (total <= INT_MAX)
        code = MPI_Allgatherv(mine, counts[rank], MPI_BYTE, all, counts, starts, MPI_BYTE, comm);
    free(counts);
    return code;
}

/* Checkpoints of this interface send nothing from rank to rank. */
static int exchange(void *ctx, const struct recoup_part *sends, uint64_t n_sends, const struct recoup_part *receives,
                    uint64_t n_receives) {
    (void)ctx, (void)sends, (void)n_sends, (void)receives, (void)n_receives;
    return FAILED;
}

static int duplicate(void *ctx, recoup_comm *copy);

/* A program that has finalized MPI already took all communicators with it. */
static void release(void *ctx) {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized)
        MPI_Comm_free((MPI_Comm *)ctx);
    free(ctx);
}

static int lend(MPI_Comm *comm, recoup_comm *lent) {
    int rank, size;
    int code = MPI_Comm_rank(*comm, &rank);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(*comm, &size);
    if (code != MPI_SUCCESS)
        return code;
    *lent = (recoup_comm){comm, rank, size, RECOUP_COMM_ANY_THREAD, broadcast, allgatherv, exchange, duplicate, release};
    return 0;
}

static int duplicate(void *ctx, recoup_comm *copy) {
    MPI_Comm *mine = malloc(sizeof *mine);
    int code;
    if (mine == NULL)
        return FAILED;
    code = MPI_Comm_dup(*(MPI_Comm *)ctx, mine);
    if (code == MPI_SUCCESS)
        code = lend(mine, copy);
    if (code != MPI_SUCCESS)
        free(mine);
    return code;
}

int VELOC_Init(MPI_Comm comm, const char *cfg) {
    recoup_comm lent;
    if (comm == MPI_COMM_NULL || lend(&comm, &lent) != 0)
        return VELOC_FAILURE;
    return recoup_veloc_init(&lent, cfg);
}
