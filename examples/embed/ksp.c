/* The 3D Poisson equation with PETSc, with checkpoints: four lines more than without.
 *
 *     mpicc ksp.c $(pkg-config --cflags --libs recoup PETSc) -o ksp
 *     mpirun -n 2 ./ksp -n 64 -ksp_type cg -pc_type jacobi -ckpt "dir=ckpt interval=20it" [-random] [-plain] [-kill_after 50]
 *
 * Killed, and started again on any number of ranks, it continues from the newest version. -plain leaves the checkpoints out.
 * With -recoup_stop it ends with a version and exit code 75 before the end of its job.
 */
#include <recoup_petsc.h>
#include <signal.h>

#if defined(PETSC_USE_COMPLEX)
    /* A phase that turns along x: the matrix is Hermitian, and its eigenvalues are those of the real one. */
    #define WEST (PetscCosReal(0.3) + PETSC_i * PetscSinReal(0.3))
    #define EAST PetscConj(WEST)
    #define IMAGINARY(value) (PETSC_i * (value))
#else
    #define WEST 1.0
    #define EAST 1.0
    #define IMAGINARY(value) 0.0
#endif

static PetscInt kill_after;

static PetscErrorCode poisson(PetscInt n, Mat *A)
{
    PetscInt first, end, plane = n * n;
    PetscFunctionBeginUser;
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n * plane, n * plane, 7, NULL, 6, NULL, A));
    PetscCall(MatGetOwnershipRange(*A, &first, &end));
    for (PetscInt i = first; i < end; i++) {
        PetscInt x = i % n, y = i / n % n, z = i / plane;
        PetscCall(MatSetValue(*A, i, i, 6.0, INSERT_VALUES));
        if (x > 0) PetscCall(MatSetValue(*A, i, i - 1, -WEST, INSERT_VALUES));
        if (x < n - 1) PetscCall(MatSetValue(*A, i, i + 1, -EAST, INSERT_VALUES));
        if (y > 0) PetscCall(MatSetValue(*A, i, i - n, -1.0, INSERT_VALUES));
        if (y < n - 1) PetscCall(MatSetValue(*A, i, i + n, -1.0, INSERT_VALUES));
        if (z > 0) PetscCall(MatSetValue(*A, i, i - plane, -1.0, INSERT_VALUES));
        if (z < n - 1) PetscCall(MatSetValue(*A, i, i + plane, -1.0, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

/* Ones, or numbers in [-1, 1) that follow from the row alone, so that they are the same on any number of ranks. */
static PetscErrorCode right_hand_side(Vec b, PetscBool is_random)
{
    PetscInt first, end;
    PetscFunctionBeginUser;
    PetscCall(VecSet(b, 1.0));
    PetscCall(VecGetOwnershipRange(b, &first, &end));
    for (PetscInt i = first; i < end && is_random; i++) {
        unsigned long long z = ((unsigned long long)i + 1) * 0x9e3779b97f4a7c15ULL;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        double value = (double)(z >> 11) / 4503599627370496.0 - 1.0;
        PetscCall(VecSetValue(b, i, value + IMAGINARY(1.0 - value * value), INSERT_VALUES));
    }
    PetscCall(VecAssemblyBegin(b));
    PetscCall(VecAssemblyEnd(b));
    PetscFunctionReturn(0);
}

/* A failure: this process is gone after so many iterations. */
static PetscErrorCode killer(KSP ksp, PetscInt n, PetscReal norm, void *ctx)
{
    (void)ksp, (void)norm, (void)ctx;
    if (kill_after > 0 && n == kill_after) raise(SIGKILL);
    return 0;
}

int main(int argc, char **argv)
{
    Mat       A;
    Vec       x, b, r;
    KSP       ksp;
    PetscInt  n = 32, base = 0, iterations;
    PetscReal norm, norm_b;
    PetscBool is_plain = PETSC_FALSE, is_random = PETSC_FALSE, has_stopped = PETSC_FALSE;
    char      options[512] = "dir=ckpt interval=20it";
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-kill_after", &kill_after, NULL));
    PetscCall(PetscOptionsGetBool(NULL, NULL, "-plain", &is_plain, NULL));
    PetscCall(PetscOptionsGetBool(NULL, NULL, "-random", &is_random, NULL));
    PetscCall(PetscOptionsGetString(NULL, NULL, "-ckpt", options, sizeof options, NULL));
    PetscCall(poisson(n, &A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(right_hand_side(b, is_random));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetFromOptions(ksp));

    RecoupKSP saved = NULL;
    if (!is_plain) PetscCall(RecoupKSPAttach(ksp, b, x, options, &saved));
    if (!is_plain) PetscCall(RecoupKSPRestore(saved, &base));
    PetscCall(KSPMonitorSet(ksp, killer, NULL, NULL));
    double start = MPI_Wtime();
    PetscCall(KSPSolve(ksp, b, x));
    double seconds = MPI_Wtime() - start;
    if (!is_plain) PetscCall(RecoupKSPStopped(saved, &has_stopped));
    if (!is_plain) PetscCall(RecoupKSPDetach(&saved));

    PetscCall(KSPGetIterationNumber(ksp, &iterations));
    PetscCall(VecDuplicate(b, &r));
    PetscCall(MatMult(A, x, r));
    PetscCall(VecAYPX(r, -1.0, b));
    PetscCall(VecNorm(r, NORM_2, &norm));
    PetscCall(VecNorm(b, NORM_2, &norm_b));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "from %d, iterations %d, relative residual %.3e, seconds %.3f\n", (int)base,
                          (int)(base + iterations), (double)(norm / norm_b), seconds));
    PetscCall(VecDestroy(&r));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&A));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(PetscFinalize());
    return has_stopped ? 75 : 0;
}
