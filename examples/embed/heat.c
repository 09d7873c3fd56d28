/* The heat equation with PETSc's TS, with checkpoints: four lines more than without.
 *
 *     mpicc heat.c $(pkg-config --cflags --libs recoup PETSc) -o heat
 *     mpirun -n 2 ./heat -n 16 -ts_type cn -ckpt "dir=ckpt interval=10it" [-plain] [-kill_after 50]
 *
 * With -nonlinear it solves u^3 - div grad u = 1 by SNES instead. Killed, and started again, it continues from the newest
 * version.
 */
#include <recoup_petsc.h>
#include <signal.h>

static PetscInt kill_after;

/* A = scale * (7-point Laplacian) on n x n x n inner points. */
static PetscErrorCode laplacian(PetscInt n, PetscReal scale, Mat *A)
{
    PetscInt first, end, plane = n * n;
    PetscFunctionBeginUser;
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n * plane, n * plane, 7, NULL, 6, NULL, A));
    PetscCall(MatGetOwnershipRange(*A, &first, &end));
    for (PetscInt i = first; i < end; i++) {
        PetscInt x = i % n, y = i / n % n, z = i / plane;
        PetscCall(MatSetValue(*A, i, i, -6.0 * scale, INSERT_VALUES));
        if (x > 0) PetscCall(MatSetValue(*A, i, i - 1, scale, INSERT_VALUES));
        if (x < n - 1) PetscCall(MatSetValue(*A, i, i + 1, scale, INSERT_VALUES));
        if (y > 0) PetscCall(MatSetValue(*A, i, i - n, scale, INSERT_VALUES));
        if (y < n - 1) PetscCall(MatSetValue(*A, i, i + n, scale, INSERT_VALUES));
        if (z > 0) PetscCall(MatSetValue(*A, i, i - plane, scale, INSERT_VALUES));
        if (z < n - 1) PetscCall(MatSetValue(*A, i, i + plane, scale, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

/* A failure: this process is gone after so many steps. */
static PetscErrorCode time_killer(TS ts, PetscInt step, PetscReal time, Vec u, void *ctx)
{
    (void)ts, (void)time, (void)u, (void)ctx;
    if (kill_after > 0 && step == kill_after) raise(SIGKILL);
    return 0;
}

static PetscErrorCode newton_killer(SNES snes, PetscInt n, PetscReal norm, void *ctx)
{
    (void)snes, (void)norm, (void)ctx;
    if (kill_after > 0 && n == kill_after) raise(SIGKILL);
    return 0;
}

/* F(u) = u^3 - A u - 1, and its Jacobian. */
static PetscErrorCode function(SNES snes, Vec u, Vec f, void *ctx)
{
    PetscInt           rows;
    PetscScalar       *values;
    const PetscScalar *at;
    PetscFunctionBeginUser;
    (void)snes;
    PetscCall(MatMult(*(Mat *)ctx, u, f));
    PetscCall(VecGetLocalSize(u, &rows));
    PetscCall(VecGetArrayRead(u, &at));
    PetscCall(VecGetArray(f, &values));
    for (PetscInt i = 0; i < rows; i++) values[i] = at[i] * at[i] * at[i] - values[i] - 1.0;
    PetscCall(VecRestoreArray(f, &values));
    PetscCall(VecRestoreArrayRead(u, &at));
    PetscFunctionReturn(0);
}

static PetscErrorCode jacobian(SNES snes, Vec u, Mat J, Mat P, void *ctx)
{
    Vec diagonal;
    PetscFunctionBeginUser;
    (void)snes, (void)P;
    PetscCall(MatCopy(*(Mat *)ctx, J, SAME_NONZERO_PATTERN));
    PetscCall(MatScale(J, -1.0));
    PetscCall(VecDuplicate(u, &diagonal));
    PetscCall(VecPointwiseMult(diagonal, u, u));
    PetscCall(VecScale(diagonal, 3.0));
    PetscCall(MatDiagonalSet(J, diagonal, ADD_VALUES));
    PetscCall(VecDestroy(&diagonal));
    PetscFunctionReturn(0);
}

static PetscErrorCode march(Mat A, Vec u, PetscReal step, const char *options, PetscBool is_plain)
{
    TS        ts;
    PetscInt  steps, base = 0;
    PetscReal norm;
    PetscFunctionBeginUser;
    PetscCall(TSCreate(PETSC_COMM_WORLD, &ts));
    PetscCall(TSSetProblemType(ts, TS_LINEAR));
    PetscCall(TSSetRHSFunction(ts, NULL, TSComputeRHSFunctionLinear, NULL));
    PetscCall(TSSetRHSJacobian(ts, A, A, TSComputeRHSJacobianConstant, NULL));
    PetscCall(TSSetTimeStep(ts, step));
    PetscCall(TSSetMaxTime(ts, 100.0 * step));
    PetscCall(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_MATCHSTEP));
    PetscCall(TSSetType(ts, TSCN));
    PetscCall(TSSetFromOptions(ts));

    RecoupTS saved = NULL;
    if (!is_plain) PetscCall(RecoupTSAttach(ts, u, options, &saved));
    if (!is_plain) PetscCall(RecoupTSRestore(saved, &base));
    PetscCall(TSMonitorSet(ts, time_killer, NULL, NULL));
    PetscCall(TSSolve(ts, u));
    if (!is_plain) PetscCall(RecoupTSDetach(&saved));

    PetscCall(TSGetStepNumber(ts, &steps));
    PetscCall(VecNorm(u, NORM_2, &norm));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "from %d, iterations %d, norm %.17g\n", (int)base, (int)steps, (double)norm));
    PetscCall(TSDestroy(&ts));
    PetscFunctionReturn(0);
}

static PetscErrorCode solve(Mat A, Vec u, const char *options, PetscBool is_plain)
{
    SNES      snes;
    Mat       J;
    PetscInt  iterations, base = 0;
    PetscReal norm;
    PetscFunctionBeginUser;
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &J));
    PetscCall(SNESCreate(PETSC_COMM_WORLD, &snes));
    PetscCall(SNESSetFunction(snes, NULL, function, &A));
    PetscCall(SNESSetJacobian(snes, J, J, jacobian, &A));
    PetscCall(SNESSetFromOptions(snes));

    RecoupSNES saved = NULL;
    if (!is_plain) PetscCall(RecoupSNESAttach(snes, u, options, &saved));
    if (!is_plain) PetscCall(RecoupSNESRestore(saved, &base));
    PetscCall(SNESMonitorSet(snes, newton_killer, NULL, NULL));
    PetscCall(SNESSolve(snes, NULL, u));
    if (!is_plain) PetscCall(RecoupSNESDetach(&saved));

    PetscCall(SNESGetIterationNumber(snes, &iterations));
    PetscCall(VecNorm(u, NORM_2, &norm));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "from %d, iterations %d, norm %.17g\n", (int)base, (int)(base + iterations),
                          (double)norm));
    PetscCall(MatDestroy(&J));
    PetscCall(SNESDestroy(&snes));
    PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
    Mat       A;
    Vec       u;
    PetscInt  n = 16;
    PetscBool is_plain = PETSC_FALSE, is_nonlinear = PETSC_FALSE;
    char      options[512] = "dir=ckpt interval=10it";
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-kill_after", &kill_after, NULL));
    PetscCall(PetscOptionsGetBool(NULL, NULL, "-plain", &is_plain, NULL));
    PetscCall(PetscOptionsGetBool(NULL, NULL, "-nonlinear", &is_nonlinear, NULL));
    PetscCall(PetscOptionsGetString(NULL, NULL, "-ckpt", options, sizeof options, NULL));
    PetscCall(laplacian(n, is_nonlinear ? 1.0 : (PetscReal)((n + 1) * (n + 1)), &A));
    PetscCall(MatCreateVecs(A, &u, NULL));
    PetscCall(VecSet(u, is_nonlinear ? 20.0 : 1.0));
    if (is_nonlinear) PetscCall(solve(A, u, options, is_plain));
    else PetscCall(march(A, u, 1e-3, options, is_plain));
    PetscCall(VecDestroy(&u));
    PetscCall(MatDestroy(&A));
    PetscCall(PetscFinalize());
    return 0;
}
