/* Implicit steps of the heat equation on a square, in plain PETSc: what any program with a time loop does. It prints the
 * norm of each step, and kills itself at the start of step -kill_at, or in
 * iteration -kill_after of a solve. */
#include <petscksp.h>
#include <signal.h>

static PetscErrorCode matrix(PetscInt n, Mat *A)
{
    PetscInt first, end;
    PetscFunctionBeginUser;
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n * n, n * n, 5, NULL, 4, NULL, A));
    PetscCall(MatGetOwnershipRange(*A, &first, &end));
    for (PetscInt row = first; row < end; row++) {
        PetscInt i = row % n, j = row / n;
        PetscScalar c = 1e4;
        PetscCall(MatSetValue(*A, row, row, 1 + 4 * c, INSERT_VALUES));
        if (i > 0) PetscCall(MatSetValue(*A, row, row - 1, -c, INSERT_VALUES));
        if (i < n - 1) PetscCall(MatSetValue(*A, row, row + 1, -c, INSERT_VALUES));
        if (j > 0) PetscCall(MatSetValue(*A, row, row - n, -c, INSERT_VALUES));
        if (j < n - 1) PetscCall(MatSetValue(*A, row, row + n, -c, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

/* Kills the program in iteration -kill_after of a solve. */
static PetscErrorCode kill_after(KSP ksp, PetscInt n, PetscReal norm, void *after)
{
    (void)ksp;
    (void)norm;
    if (n == *(PetscInt *)after) raise(SIGKILL);
    return 0;
}

int main(int argc, char **argv)
{
    Mat       A;
    Vec       u, x;
    KSP       ksp;
    PetscInt  n = 100, steps = 200, kill_at = -1, after = -1, its;
    PetscReal norm;
    PetscFunctionBeginUser;
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-steps", &steps, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-kill_at", &kill_at, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-kill_after", &after, NULL));
    PetscCall(matrix(n, &A));
    PetscCall(MatCreateVecs(A, &x, &u));
    PetscCall(VecSet(u, 0.0));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetFromOptions(ksp));
    if (after >= 0) PetscCall(KSPMonitorSet(ksp, kill_after, &after, NULL));
    for (PetscInt step = 0; step < steps; step++) {
        if (step == kill_at) raise(SIGKILL);
        PetscCall(VecShift(u, 1.0));
        PetscCall(KSPSolve(ksp, u, x));
        PetscCall(VecCopy(x, u));
        PetscCall(VecNorm(u, NORM_2, &norm));
        PetscCall(KSPGetIterationNumber(ksp, &its));
        PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%d %d %.15e\n", (int)step, (int)its, (double)norm));
    }
    PetscCall(KSPDestroy(&ksp));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&u));
    PetscCall(MatDestroy(&A));
    PetscCall(PetscFinalize());
    return 0;
}
