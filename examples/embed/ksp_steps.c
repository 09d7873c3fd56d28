/* A time loop with PETSc: implicit heat on a square plate whose conductivity changes with time. Each step solves a system
 * of its own, (I + c A) u' = u; all steps are one run of checkpoints.
 *
 *     mpicc ksp_steps.c $(pkg-config --cflags --libs recoup PETSc) -o ksp_steps
 *     mpirun -n 2 ./ksp_steps -n 64 -ksp_type cg -pc_type jacobi -ckpt "dir=ckpt interval=10it" [-plain] [-kill_after 50]
 *
 * Killed, and started again on any number of ranks, it continues in the step that it was in. -kill_after counts iterations
 * of all steps; -plain leaves the checkpoints out.
 */
#include <recoup_petsc.h>
#include <signal.h>

enum { STEPS = 5 };

static PetscInt kill_after, done; /* iterations, of all steps of this process */

/* I + c A with the 5-point stencil on n x n inner points, into the places that A has. */
static PetscErrorCode conduct(Mat A, PetscInt n, PetscReal c)
{
    PetscInt first, end;
    PetscFunctionBeginUser;
    PetscCall(MatGetOwnershipRange(A, &first, &end));
    for (PetscInt i = first; i < end; i++) {
        PetscInt x = i % n, y = i / n;
        PetscCall(MatSetValue(A, i, i, 1.0 + 4.0 * c, INSERT_VALUES));
        if (x > 0) PetscCall(MatSetValue(A, i, i - 1, -c, INSERT_VALUES));
        if (x < n - 1) PetscCall(MatSetValue(A, i, i + 1, -c, INSERT_VALUES));
        if (y > 0) PetscCall(MatSetValue(A, i, i - n, -c, INSERT_VALUES));
        if (y < n - 1) PetscCall(MatSetValue(A, i, i + n, -c, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

/* Hot and cold points, by the row alone, so that they are the same on any number of ranks. */
static PetscErrorCode heat_up(Vec u)
{
    PetscInt first, end;
    PetscFunctionBeginUser;
    PetscCall(VecGetOwnershipRange(u, &first, &end));
    for (PetscInt i = first; i < end; i++) {
        PetscCall(VecSetValue(u, i, PetscSinReal(0.37 * (PetscReal)i) + (i % 17 == 0), INSERT_VALUES));
    }
    PetscCall(VecAssemblyBegin(u));
    PetscCall(VecAssemblyEnd(u));
    PetscFunctionReturn(0);
}

/* A failure: this process is gone after so many iterations. */
static PetscErrorCode killer(KSP ksp, PetscInt n, PetscReal norm, void *ctx)
{
    (void)ksp, (void)norm, (void)ctx;
    if (n > 0) done++;
    if (kill_after > 0 && done == kill_after) raise(SIGKILL);
    return 0;
}

int main(int argc, char **argv)
{
    Mat       A;
    Vec       u, b, x;
    KSP       ksp;
    PetscInt  n = 64, begins = 0, from = 0;
    PetscReal heat;
    PetscBool is_plain = PETSC_FALSE;
    char      options[512] = "dir=ckpt interval=10it";
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-kill_after", &kill_after, NULL));
    PetscCall(PetscOptionsGetBool(NULL, NULL, "-plain", &is_plain, NULL));
    PetscCall(PetscOptionsGetString(NULL, NULL, "-ckpt", options, sizeof options, NULL));
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n * n, n * n, 5, NULL, 4, NULL, &A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecDuplicate(x, &u));
    PetscCall(heat_up(u));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetTolerances(ksp, 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
    PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
    PetscCall(KSPSetFromOptions(ksp));

    RecoupKSP saved = NULL;
    if (!is_plain) {
        PetscCall(RecoupKSPAttachSystems(ksp, b, x, options, &saved));
        PetscCall(RecoupKSPProtect(saved, "u", u));
        PetscCall(RecoupKSPFindSystem(saved, &begins)); /* u as it was in that step */
    }
    PetscCall(KSPMonitorSet(ksp, killer, NULL, NULL));
    for (PetscInt step = begins; step < STEPS; step++) {
        PetscInt base = 0;
        PetscCall(conduct(A, n, 1.0 + (PetscReal)step));
        PetscCall(VecCopy(u, b));
        PetscCall(VecCopy(u, x));
        if (!is_plain) {
            PetscCall(RecoupKSPBeginSystem(saved, step));
            PetscCall(RecoupKSPRestore(saved, &base));
        }
        if (step == begins) from = base;
        PetscCall(KSPSolve(ksp, b, x));
        if (!is_plain) PetscCall(RecoupKSPEndSystem(saved));
        PetscCall(VecCopy(x, u));
    }
    if (!is_plain) PetscCall(RecoupKSPDetach(&saved));

    PetscCall(VecNorm(u, NORM_2, &heat));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "from %d, iterations %d, step %d, heat %.12g\n", (int)from, (int)done, (int)begins,
                          (double)heat));
    PetscCall(VecDestroy(&u));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&A));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(PetscFinalize());
    return 0;
}
