/* Six solves whose A and b PETSc makes from a DM, as -u'' = c on a line, set up by the program before each. It prints
 * whether x solves the system to 1e-8, and the norm of x, and kills itself before step -kill_at. */
#include <petscdmda.h>
#include <petscksp.h>
#include <signal.h>

/* With -random: the numbers of b, others in each run. */
static PetscRandom entropy;
static PetscReal   diagonal = 2.01;

static PetscErrorCode operators(KSP ksp, Mat J, Mat A, void *unused)
{
    DM       line;
    PetscInt first, count, n;
    PetscFunctionBeginUser;
    (void)J, (void)unused;
    PetscCall(KSPGetDM(ksp, &line));
    PetscCall(DMDAGetInfo(line, NULL, &n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    PetscCall(DMDAGetCorners(line, &first, NULL, NULL, &count, NULL, NULL));
    for (PetscInt i = first; i < first + count; i++) {
        PetscCall(MatSetValue(A, i, i, diagonal, INSERT_VALUES));
        if (i > 0) PetscCall(MatSetValue(A, i, i - 1, -1.0, INSERT_VALUES));
        if (i < n - 1) PetscCall(MatSetValue(A, i, i + 1, -1.0, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

static PetscErrorCode right_side(KSP ksp, Vec b, void *step)
{
    PetscFunctionBeginUser;
    (void)ksp;
    if (entropy) PetscCall(VecSetRandom(b, entropy));
    else PetscCall(VecSet(b, 1.0 + *(PetscInt *)step));
    PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
    DM        line;
    KSP       ksp;
    Vec       b, x, r;
    Mat       A;
    PetscInt  step, kill_at = -1;
    PetscReal residual, norm, norm_b;
    PetscBool is_random = PETSC_FALSE;
    PetscFunctionBeginUser;
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-kill_at", &kill_at, NULL));
    PetscCall(PetscOptionsGetReal(NULL, NULL, "-diagonal", &diagonal, NULL));
    PetscCall(PetscOptionsGetBool(NULL, NULL, "-random", &is_random, NULL));
    if (is_random) {
        PetscLogDouble now;
        PetscCall(PetscTime(&now));
        PetscCall(PetscRandomCreate(PETSC_COMM_WORLD, &entropy));
        PetscCall(PetscRandomSetSeed(entropy, (unsigned long)(now * 1e6)));
        PetscCall(PetscRandomSeed(entropy));
    }
    PetscCall(DMDACreate1d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, 500, 1, 1, NULL, &line));
    PetscCall(DMSetUp(line));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetDM(ksp, line));
    PetscCall(KSPSetComputeOperators(ksp, operators, NULL));
    PetscCall(KSPSetComputeRHS(ksp, right_side, &step));
    PetscCall(KSPSetFromOptions(ksp));
    for (step = 0; step < 6; step++) {
        if (step == kill_at) raise(SIGKILL);
        PetscCall(KSPSetUp(ksp));
        PetscCall(KSPSolve(ksp, NULL, NULL));
        PetscCall(KSPGetSolution(ksp, &x));
        PetscCall(KSPGetRhs(ksp, &b));
        PetscCall(KSPGetOperators(ksp, &A, NULL));
        PetscCall(VecNorm(b, NORM_2, &norm_b));
        PetscCall(VecNorm(x, NORM_2, &norm));
        PetscCall(VecDuplicate(b, &r));
        PetscCall(MatMult(A, x, r));
        PetscCall(VecAXPY(r, -1.0, b));
        PetscCall(VecNorm(r, NORM_2, &residual));
        PetscCall(VecDestroy(&r));
        if (is_random) norm = 0.0;
        PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%d %d %.15e\n", (int)step, residual <= 1.01e-8 * norm_b, (double)norm));
    }
    PetscCall(PetscRandomDestroy(&entropy));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(DMDestroy(&line));
    PetscCall(PetscFinalize());
    return 0;
}
