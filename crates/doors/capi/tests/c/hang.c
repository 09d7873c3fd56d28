/* Steps of ranks that share a session, for as long as they are let: hang OPTIONS HOW, which is "multiple" for a MPI of
 * many threads, "single" for one of one, and "own" for a program that waits in a call of its own after 100 steps. */
#define _DEFAULT_SOURCE
#include "recoup_mpi.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define N 1000

int main(int argc, char **argv)
{
    static double x[N];
    int level, rank, size;
    recoup_comm comm;
    recoup_handle handle;
    if (argc != 3) return 2;
    MPI_Init_thread(&argc, &argv, strcmp(argv[2], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (recoup_mpi_comm(MPI_COMM_WORLD, &comm) != 0 || recoup_open(argv[1], &comm, &handle) != RECOUP_OK
        || recoup_protect(handle, "x", RECOUP_ITERATE, RECOUP_F64, x, N, (uint64_t)(N * rank), (uint64_t)(N * size))
            != RECOUP_OK) {
        fprintf(stderr, "%s\n", recoup_message());
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    for (uint64_t k = 1; k < 100000; k++) {
        x[k % N] += 1;
        if (recoup_step(handle, k, 1.0, 1.0) != RECOUP_OK) MPI_Abort(MPI_COMM_WORLD, 4);
        if (k == 100 && strcmp(argv[2], "own") == 0) {
            if (rank == 1) sleep(1000);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        usleep(1000);
    }
    recoup_close(handle);
    recoup_mpi_free(&comm);
    MPI_Finalize();
    return 0;
}
