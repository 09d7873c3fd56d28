/* VELOC_Init: lends MPI's communicator to the library as callbacks, so that the rest of it knows no MPI. */

#include "recoup_mpi.h"
#include "veloc.h"

int recoup_veloc_init(const recoup_comm *comm, const char *cfg);

static void lend(recoup_comm *made);

static int duplicate(void *ctx, recoup_comm *copy) {
    int code = recoup_mpi_dup(ctx, copy);
    if (code == 0)
        lend(copy);
    return code;
}

/* A program that has finalized MPI already took all communicators with it. */
static void release(void *ctx) {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized)
        free(ctx);
    else
        recoup_mpi_release(ctx);
}

/* The library makes callbacks inside the program's calls only, on the thread that makes the call, whichever that is. */
static void lend(recoup_comm *made) {
    made->flags = RECOUP_COMM_ANY_THREAD;
    made->dup = duplicate;
    made->free = release;
}

int VELOC_Init(MPI_Comm comm, const char *cfg) {
    recoup_comm lent;
    int initialized = 0, code;
    if (MPI_Initialized(&initialized) != MPI_SUCCESS || !initialized || comm == MPI_COMM_NULL)
        return VELOC_FAILURE;
    if (recoup_mpi_comm(comm, &lent) != 0)
        return VELOC_FAILURE;
    lend(&lent);
    code = recoup_veloc_init(&lent, cfg);
    release(lent.ctx);
    return code;
}
