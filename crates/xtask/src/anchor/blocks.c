/* KSPCG on the 3D Poisson equation of examples/embed/ksp.c, saved every 40 iterations: by recoup, by hand, or not at all. Prints the seconds
 * of every block of 20 iterations, in the first of two of which a version is taken and written, and how many of them are the calls of who saves.
 *
 *     blocks -n 100 -ksp_type cg -pc_type jacobi -ksp_rtol 1e-8 [-ckpt OPTIONS | -by_hand DIRECTORY [-direct]]
 *
 * By hand is what a program does without a library: it copies its rows, and a thread writes them to one of two files in turn
 * and syncs it, through the page cache or past it. Nothing tells then which file is whole.
 */
#define _GNU_SOURCE /* O_DIRECT */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#define main example_main
#include "../../../../examples/embed/ksp.c"
#undef main

#define BLOCK 20
#define PAGE 4096

static double started[4096]; /* seconds at the start of each iteration */
static double called[4096];  /* and after the calls of who saves */

static PetscErrorCode note_start(KSP ksp, PetscInt n, PetscReal norm, void *ctx)
{
    (void)ksp, (void)norm, (void)ctx;
    if (n < 4096) started[n] = MPI_Wtime();
    return 0;
}

static PetscErrorCode note_calls(KSP ksp, PetscInt n, PetscReal norm, void *ctx)
{
    (void)ksp, (void)norm, (void)ctx;
    if (n < 4096) called[n] = MPI_Wtime();
    return 0;
}

/* What is dumped by hand, and the thread that writes it. */
static struct {
    char            path[2][4096];
    int             flags, taken;
    double         *rows;
    size_t          bytes;
    pthread_mutex_t lock;
    pthread_cond_t  changed;
} dump = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *write_dumps(void *unused)
{
    for (int version = 1;; version++) {
        pthread_mutex_lock(&dump.lock);
        while (dump.taken < version) pthread_cond_wait(&dump.changed, &dump.lock);
        pthread_mutex_unlock(&dump.lock);
        int file = open(dump.path[version % 2], O_CREAT | O_TRUNC | O_WRONLY | dump.flags, 0644);
        if (pwrite(file, dump.rows, dump.bytes, 0) != (ssize_t)dump.bytes || fsync(file) != 0) abort();
        close(file);
    }
    return unused;
}

static PetscErrorCode take_dump(KSP ksp, PetscInt n, PetscReal norm, void *ctx)
{
    Vec                v;
    const PetscScalar *x;
    (void)norm, (void)ctx;
    PetscFunctionBeginUser;
    if (n == 0 || n % (2 * BLOCK) != 0) PetscFunctionReturn(0);
    PetscCall(KSPBuildSolution(ksp, NULL, &v));
    PetscCall(VecGetArrayRead(v, &x));
    PetscCall(PetscArraycpy(dump.rows, x, dump.bytes / PAGE * PAGE / sizeof(double)));
    PetscCall(VecRestoreArrayRead(v, &x));
    pthread_mutex_lock(&dump.lock);
    dump.taken++;
    pthread_cond_signal(&dump.changed);
    pthread_mutex_unlock(&dump.lock);
    PetscFunctionReturn(0);
}

static PetscErrorCode dump_by_hand(KSP ksp, Vec x, const char *directory, PetscBool is_direct)
{
    PetscInt    rows;
    PetscMPIInt rank;
    pthread_t   thread;
    PetscFunctionBeginUser;
    PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
    for (int i = 0; i < 2; i++) PetscCall(PetscSNPrintf(dump.path[i], sizeof dump.path[i], "%s/%d-%d", directory, rank, i));
    PetscCall(VecGetLocalSize(x, &rows));
    /* Whole pages, as writes past the page cache must be; the last rows may be missing, which costs nobody anything here. */
    dump.bytes = (size_t)rows * sizeof(double) / PAGE * PAGE;
    dump.flags = is_direct ? O_DIRECT : 0;
    if (posix_memalign((void **)&dump.rows, PAGE, dump.bytes) != 0) abort();
    pthread_create(&thread, NULL, write_dumps, NULL);
    PetscCall(KSPMonitorSet(ksp, take_dump, NULL, NULL));
    PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
    Mat       A;
    Vec       x, b;
    KSP       ksp;
    RecoupKSP saved = NULL;
    PetscInt  n = 100, iterations;
    PetscBool is_attached, is_by_hand, is_direct = PETSC_FALSE;
    char      options[4096], directory[4000];
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
    PetscCall(PetscOptionsGetString(NULL, NULL, "-ckpt", options, sizeof options, &is_attached));
    PetscCall(PetscOptionsGetString(NULL, NULL, "-by_hand", directory, sizeof directory, &is_by_hand));
    PetscCall(PetscOptionsGetBool(NULL, NULL, "-direct", &is_direct, NULL));
    PetscCall(poisson(n, &A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(right_hand_side(b, PETSC_TRUE));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetFromOptions(ksp));
    PetscCall(KSPMonitorSet(ksp, note_start, NULL, NULL));
    if (is_attached) PetscCall(RecoupKSPAttach(ksp, b, x, options, &saved));
    if (is_by_hand) PetscCall(dump_by_hand(ksp, x, directory, is_direct));
    PetscCall(KSPMonitorSet(ksp, note_calls, NULL, NULL));
    PetscCall(KSPSolve(ksp, b, x));
    if (is_attached) PetscCall(RecoupKSPDetach(&saved));
    PetscCall(KSPGetIterationNumber(ksp, &iterations));
    for (int i = 0; i + BLOCK <= iterations && i + BLOCK < 4096; i += BLOCK) {
        double in_calls = 0;
        for (int k = i; k < i + BLOCK; k++) in_calls += called[k] - started[k];
        PetscCall(PetscPrintf(PETSC_COMM_WORLD, "block %.6f %.6f\n", started[i + BLOCK] - started[i], in_calls));
    }
    PetscCall(KSPDestroy(&ksp));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&A));
    PetscCall(PetscFinalize());
    return 0;
}
