/* KSPSolve with checkpoints, for a problem that an option changes: shift, scale, entry, coupling, rhs, boundary (whose rows have
 * the diagonal alone, so that A is not symmetric), smooth (a constant right-hand side), or rounding, which is no change.
 *
 *     mpirun -n 2 ./other -ckpt "dir=ckpt interval=5it" [-change shift] [-shift 50] [-shell] [-max_it 30]
 *
 * With -shell A is known by its products only. Prints the iterations from the start and ||b - A x|| / ||b||, or ends with the
 * error.
 */
#include <float.h>
#include <recoup_petsc.h>
#include <string.h>

static char change[32] = "none";

static PetscBool is(const char *name) { return strcmp(change, name) == 0 ? PETSC_TRUE : PETSC_FALSE; }

/* A few units in the last place, other ones in every place. */
static double rounding(PetscInt i, PetscInt j) { return is("rounding") ? 1.0 + (double)((i * 7 + j * 3) % 5 - 2) * DBL_EPSILON : 1.0; }

static PetscBool is_boundary(PetscInt i, PetscInt n) { return is("boundary") && (i == 0 || i == n - 1) ? PETSC_TRUE : PETSC_FALSE; }

static PetscErrorCode laplacian(PetscInt n, PetscReal shift, Mat *A)
{
    PetscInt first, end;
    PetscFunctionBeginUser;
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, n, 3, NULL, 2, NULL, A));
    PetscCall(MatGetOwnershipRange(*A, &first, &end));
    for (PetscInt i = first; i < end; i++) {
        double diagonal = 2.01 * rounding(i, i);
        if (is("shift")) diagonal += shift;
        if (is("entry") && i == n / 3) diagonal += 1e-3;
        PetscCall(MatSetValue(*A, i, i, diagonal, INSERT_VALUES));
        for (PetscInt j = i - 1; j <= i + 1; j += 2) {
            PetscBool is_cut = is("coupling") && PetscMin(i, j) == n / 3 ? PETSC_TRUE : PETSC_FALSE;
            if (j >= 0 && j < n && !is_cut && !is_boundary(i, n)) PetscCall(MatSetValue(*A, i, j, -rounding(i, j), INSERT_VALUES));
        }
    }
    PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
    if (is("scale")) PetscCall(MatScale(*A, 1.0 + 1e-6));
    PetscFunctionReturn(0);
}

static PetscErrorCode multiply(Mat shell, Vec x, Vec y)
{
    Mat A;
    PetscFunctionBeginUser;
    PetscCall(MatShellGetContext(shell, &A));
    PetscCall(MatMult(A, x, y));
    PetscFunctionReturn(0);
}

static PetscErrorCode right_hand_side(Vec b)
{
    PetscInt first, end, n;
    PetscFunctionBeginUser;
    PetscCall(VecGetSize(b, &n));
    PetscCall(VecGetOwnershipRange(b, &first, &end));
    for (PetscInt i = first; i < end; i++) {
        double value = is_boundary(i, n) ? 30.0 : (double)((i * 7919) % 101 - 50) * rounding(i, 0);
        if (is("rhs") && i == 5) value += 1e-3;
        if (is("smooth")) value = 1.0;
        PetscCall(VecSetValue(b, i, value, INSERT_VALUES));
    }
    PetscCall(VecAssemblyBegin(b));
    PetscCall(VecAssemblyEnd(b));
    PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
    Mat       A, operator;
    Vec       x, b;
    KSP       ksp;
    PetscInt  n = 2000, base = 0, iterations, max_it = 10000;
    PetscReal shift = 50, residual, norm_b;
    PetscBool is_plain = PETSC_FALSE, is_shell = PETSC_FALSE;
    char      options[512] = "dir=ckpt interval=5it";
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(PetscOptionsGetBool(NULL, NULL, "-plain", &is_plain, NULL));
    PetscCall(PetscOptionsGetBool(NULL, NULL, "-shell", &is_shell, NULL));
    PetscCall(PetscOptionsGetReal(NULL, NULL, "-shift", &shift, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-max_it", &max_it, NULL));
    PetscCall(PetscOptionsGetString(NULL, NULL, "-change", change, sizeof change, NULL));
    PetscCall(PetscOptionsGetString(NULL, NULL, "-ckpt", options, sizeof options, NULL));
    PetscCall(laplacian(n, shift, &A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(right_hand_side(b));
    operator = A;
    if (is_shell) {
        PetscInt rows;
        PetscCall(VecGetLocalSize(x, &rows));
        PetscCall(MatCreateShell(PETSC_COMM_WORLD, rows, rows, n, n, A, &operator));
        PetscCall(MatShellSetOperation(operator, MATOP_MULT, (void (*)(void))multiply));
    }
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetType(ksp, KSPCG));
    if (!is("boundary") && !is("smooth")) PetscCall(KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED));
    PetscCall(KSPSetOperators(ksp, operator, operator));
    PetscCall(KSPSetTolerances(ksp, 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, max_it));
    PC pc;
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCNONE));

    RecoupKSP saved = NULL;
    if (!is_plain) PetscCall(RecoupKSPAttach(ksp, b, x, options, &saved));
    if (!is_plain) PetscCall(RecoupKSPRestore(saved, &base));
    PetscCall(KSPSolve(ksp, b, x));
    if (!is_plain) PetscCall(RecoupKSPDetach(&saved));

    PetscCall(KSPGetIterationNumber(ksp, &iterations));
    PetscCall(VecNorm(b, NORM_2, &norm_b));
    PetscCall(MatScale(A, -1.0));
    PetscCall(MatMultAdd(A, x, b, b));
    PetscCall(VecNorm(b, NORM_2, &residual));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "from %d, iterations %d, residual %.3e\n", (int)base, (int)(base + iterations),
                          (double)(residual / norm_b)));
    if (is_shell) PetscCall(MatDestroy(&operator));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&A));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(PetscFinalize());
    return 0;
}
