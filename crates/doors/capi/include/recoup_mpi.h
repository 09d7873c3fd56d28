/* recoup_mpi.h: a recoup_comm from an MPI_Comm. Compiled in the program, with its MPI; librecoup itself links none.
 *
 *     recoup_comm comm;
 *     recoup_mpi_comm(MPI_COMM_WORLD, &comm);
 *     recoup_open("dir=ckpt", &comm, &handle);
 *     ...
 *     recoup_close(handle);
 *     recoup_mpi_free(&comm);
 *
 * Callbacks may be made from a thread of the library where MPI was initialised with MPI_THREAD_MULTIPLE; otherwise they
 * are made inside calls of the library, on the thread that makes them.
 */
#ifndef RECOUP_MPI_H
#define RECOUP_MPI_H

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

#include "recoup.h"

/* Bytes of one message of MPI, whose counts are int. */
#define RECOUP_MPI_PIECE ((uint64_t)1 << 30)

static inline int recoup_mpi_comm(MPI_Comm comm, recoup_comm *made);

static inline MPI_Comm recoup_mpi_of(void *ctx) { return *(MPI_Comm *)ctx; }

static inline int recoup_mpi_broadcast(void *ctx, void *data, uint64_t bytes, int32_t root)
{
    char *at = (char *)data;
    while (bytes > 0) {
        uint64_t piece = bytes < RECOUP_MPI_PIECE ? bytes : RECOUP_MPI_PIECE;
        int code = MPI_Bcast(at, (int)piece, MPI_BYTE, (int)root, recoup_mpi_of(ctx));
        if (code != MPI_SUCCESS) return code;
        at += piece;
        bytes -= piece;
    }
    return 0;
}

/* Parts that are too long for one call go out rank by rank. */
static inline int recoup_mpi_allgatherv_long(void *ctx, const void *mine, char *all, const uint64_t *bytes, int rank,
                                             int size)
{
    for (int root = 0; root < size; root++) {
        if (root == rank) {
            for (uint64_t i = 0; i < bytes[root]; i++) all[i] = ((const char *)mine)[i];
        }
        int code = recoup_mpi_broadcast(ctx, all, bytes[root], root);
        if (code != 0) return code;
        all += bytes[root];
    }
    return 0;
}

static inline int recoup_mpi_allgatherv(void *ctx, const void *mine, void *all, const uint64_t *bytes)
{
    MPI_Comm comm = recoup_mpi_of(ctx);
    int rank, size, code;
    uint64_t total = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int r = 0; r < size; r++) total += bytes[r];
    if (total > (uint64_t)INT_MAX) return recoup_mpi_allgatherv_long(ctx, mine, (char *)all, bytes, rank, size);
    int *counts = (int *)malloc(2 * (size_t)size * sizeof(int));
    if (counts == NULL) return MPI_ERR_NO_MEM;
    int *starts = counts + size;
    for (int r = 0, start = 0; r < size; r++) {
        counts[r] = (int)bytes[r];
        starts[r] = start;
        start += counts[r];
    }
    code = MPI_Allgatherv(mine, counts[rank], MPI_BYTE, all, counts, starts, MPI_BYTE, comm);
    free(counts);
    return code == MPI_SUCCESS ? 0 : code;
}

static inline uint64_t recoup_mpi_pieces(const recoup_part *parts, uint64_t n)
{
    uint64_t pieces = 0;
    for (uint64_t i = 0; i < n; i++) pieces += parts[i].bytes / RECOUP_MPI_PIECE + 1;
    return pieces;
}

/* Starts the pieces of one message. */
static inline int recoup_mpi_start(MPI_Comm comm, const recoup_part *part, int is_send, MPI_Request **next)
{
    char *at = (char *)part->data;
    for (uint64_t rest = part->bytes;; rest -= RECOUP_MPI_PIECE, at += RECOUP_MPI_PIECE) {
        int piece = (int)(rest < RECOUP_MPI_PIECE ? rest : RECOUP_MPI_PIECE), code;
        if (is_send) code = MPI_Isend(at, piece, MPI_BYTE, part->rank, part->tag, comm, *next);
        else code = MPI_Irecv(at, piece, MPI_BYTE, part->rank, part->tag, comm, *next);
        if (code != MPI_SUCCESS) return code;
        ++*next;
        if (rest < RECOUP_MPI_PIECE) return 0;
    }
}

static inline int recoup_mpi_exchange(void *ctx, const recoup_part *sends, uint64_t n_sends, const recoup_part *receives,
                                      uint64_t n_receives)
{
    MPI_Comm comm = recoup_mpi_of(ctx);
    uint64_t pieces = recoup_mpi_pieces(sends, n_sends) + recoup_mpi_pieces(receives, n_receives);
    MPI_Request *requests = (MPI_Request *)malloc((size_t)(pieces + 1) * sizeof(MPI_Request)), *next = requests;
    int code = 0;
    if (requests == NULL || pieces > (uint64_t)INT_MAX) {
        free(requests);
        return MPI_ERR_NO_MEM;
    }
    for (uint64_t i = 0; i < n_receives && code == 0; i++) code = recoup_mpi_start(comm, &receives[i], 0, &next);
    for (uint64_t i = 0; i < n_sends && code == 0; i++) code = recoup_mpi_start(comm, &sends[i], 1, &next);
    if (code == 0) code = MPI_Waitall((int)(next - requests), requests, MPI_STATUSES_IGNORE);
    free(requests);
    return code == MPI_SUCCESS ? 0 : code;
}

static inline int recoup_mpi_dup(void *ctx, recoup_comm *copy) { return recoup_mpi_comm(recoup_mpi_of(ctx), copy); }

static inline void recoup_mpi_release(void *ctx)
{
    MPI_Comm_free((MPI_Comm *)ctx);
    free(ctx);
}

/* Duplicates `comm`, so that no message of ours meets one of the program's. Returns 0 or a code of MPI. Collective. */
static inline int recoup_mpi_comm(MPI_Comm comm, recoup_comm *made)
{
    MPI_Comm *ours = (MPI_Comm *)malloc(sizeof(MPI_Comm));
    int rank, size, level, code;
    if (ours == NULL) return MPI_ERR_NO_MEM;
    code = MPI_Comm_dup(comm, ours);
    if (code != MPI_SUCCESS) {
        free(ours);
        return code;
    }
    MPI_Comm_set_errhandler(*ours, MPI_ERRORS_RETURN);
    MPI_Comm_rank(*ours, &rank);
    MPI_Comm_size(*ours, &size);
    MPI_Query_thread(&level);
    made->ctx = ours;
    made->rank = (int32_t)rank;
    made->size = (int32_t)size;
    made->flags = level == MPI_THREAD_MULTIPLE ? RECOUP_COMM_ANY_THREAD : 0;
    made->broadcast = recoup_mpi_broadcast;
    made->allgatherv = recoup_mpi_allgatherv;
    made->exchange = recoup_mpi_exchange;
    made->dup = recoup_mpi_dup;
    made->free = recoup_mpi_release;
    return 0;
}

/* After recoup_close, before MPI_Finalize. Collective. */
static inline void recoup_mpi_free(recoup_comm *comm)
{
    recoup_mpi_release(comm->ctx);
    comm->ctx = NULL;
}

#endif /* RECOUP_MPI_H */
