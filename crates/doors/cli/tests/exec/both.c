/* Runs programs that were built as libraries in one process, one after the other: each with the PETSc it is linked with. The
 * second one kills itself: both LIBRARY LIBRARY arguments [-kill_at N] */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    int code = 0;
    MPI_Init(&argc, &argv);
    for (int i = 1; i <= 2 && code == 0; i++) {
        void *library            = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        int (*run)(int, char **) = library ? (int (*)(int, char **))dlsym(library, "main") : NULL;
        int n                    = argc > 4 && strcmp(argv[argc - 2], "-kill_at") == 0 && i == 1 ? argc - 2 : argc;
        if (run == NULL) fprintf(stderr, "%s\n", dlerror());
        code                     = run ? run(n - 2, argv + 2) : 1;
    }
    MPI_Finalize();
    return code;
}
