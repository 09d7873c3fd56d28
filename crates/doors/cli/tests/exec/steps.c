/* u_t = u_xx + u (1 - u) on a line, in plain PETSc: a TS whose SNES and KSP the program never sees. It kills itself before
 * step -kill_at. */
#include <petscts.h>
#include <signal.h>

#define N 200

static PetscInt kill_at = -1;

static PetscErrorCode prestep(TS ts)
{
    PetscInt step;
    PetscFunctionBeginUser;
    PetscCall(TSGetStepNumber(ts, &step));
    if (step == kill_at) raise(SIGKILL);
    PetscFunctionReturn(0);
}

static PetscErrorCode function(TS ts, PetscReal t, Vec u, Vec u_t, Vec f, void *unused)
{
    const PetscScalar *U, *U_t;
    PetscScalar       *F;
    PetscFunctionBeginUser;
    (void)ts, (void)t, (void)unused;
    PetscCall(VecGetArrayRead(u, &U));
    PetscCall(VecGetArrayRead(u_t, &U_t));
    PetscCall(VecGetArrayWrite(f, &F));
    for (PetscInt i = 0; i < N; i++) {
        PetscScalar left = i > 0 ? U[i - 1] : 1.0, right = i < N - 1 ? U[i + 1] : 0.0;
        F[i] = U_t[i] - (left - 2.0 * U[i] + right) * 400.0 - U[i] * (1.0 - U[i]);
    }
    PetscCall(VecRestoreArrayWrite(f, &F));
    PetscCall(VecRestoreArrayRead(u_t, &U_t));
    PetscCall(VecRestoreArrayRead(u, &U));
    PetscFunctionReturn(0);
}

static PetscErrorCode jacobian(TS ts, PetscReal t, Vec u, Vec u_t, PetscReal shift, Mat J, Mat P, void *unused)
{
    const PetscScalar *U;
    PetscFunctionBeginUser;
    (void)ts, (void)t, (void)u_t, (void)J, (void)unused;
    PetscCall(VecGetArrayRead(u, &U));
    for (PetscInt i = 0; i < N; i++) {
        PetscCall(MatSetValue(P, i, i, shift + 800.0 - 1.0 + 2.0 * U[i], INSERT_VALUES));
        if (i > 0) PetscCall(MatSetValue(P, i, i - 1, -400.0, INSERT_VALUES));
        if (i < N - 1) PetscCall(MatSetValue(P, i, i + 1, -400.0, INSERT_VALUES));
    }
    PetscCall(VecRestoreArrayRead(u, &U));
    PetscCall(MatAssemblyBegin(P, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(P, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
    TS        ts;
    Vec       u;
    Mat       J;
    PetscReal norm, start = 0.1;
    PetscFunctionBeginUser;
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-kill_at", &kill_at, NULL));
    PetscCall(PetscOptionsGetReal(NULL, NULL, "-start", &start, NULL));
    PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, N, N, 3, NULL, &J));
    PetscCall(MatCreateVecs(J, &u, NULL));
    PetscCall(VecSet(u, start));
    PetscCall(TSCreate(PETSC_COMM_SELF, &ts));
    PetscCall(TSSetIFunction(ts, NULL, function, NULL));
    PetscCall(TSSetIJacobian(ts, J, J, jacobian, NULL));
    PetscCall(TSSetTimeStep(ts, 0.01));
    PetscCall(TSSetMaxSteps(ts, 8));
    PetscCall(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_STEPOVER));
    PetscCall(TSSetPreStep(ts, prestep));
    PetscCall(TSSetFromOptions(ts));
    PetscCall(TSSolve(ts, u));
    PetscCall(VecNorm(u, NORM_2, &norm));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%.15e\n", (double)norm));
    PetscCall(TSDestroy(&ts));
    PetscCall(VecDestroy(&u));
    PetscCall(MatDestroy(&J));
    PetscCall(PetscFinalize());
    return 0;
}
