/* Eigenvalues of -u'' on a line by shift and invert, in plain SLEPc: solves that are SLEPc's, and none of the program. */
#include <slepceps.h>

int main(int argc, char **argv)
{
    const PetscInt n = 300;
    Mat            A;
    EPS            eps;
    PetscInt       first, end, found;
    PetscScalar    value;
    PetscFunctionBeginUser;
    PetscCall(SlepcInitialize(&argc, &argv, NULL, NULL));
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, n, 3, NULL, 1, NULL, &A));
    PetscCall(MatGetOwnershipRange(A, &first, &end));
    for (PetscInt i = first; i < end; i++) {
        PetscCall(MatSetValue(A, i, i, 2.0, INSERT_VALUES));
        if (i > 0) PetscCall(MatSetValue(A, i, i - 1, -1.0, INSERT_VALUES));
        if (i < n - 1) PetscCall(MatSetValue(A, i, i + 1, -1.0, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(EPSCreate(PETSC_COMM_WORLD, &eps));
    PetscCall(EPSSetOperators(eps, A, NULL));
    PetscCall(EPSSetProblemType(eps, EPS_HEP));
    PetscCall(EPSSetFromOptions(eps));
    PetscCall(EPSSolve(eps));
    PetscCall(EPSGetConverged(eps, &found));
    for (PetscInt i = 0; i < found; i++) {
        PetscCall(EPSGetEigenvalue(eps, i, &value, NULL));
        PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%.15e\n", (double)PetscRealPart(value)));
    }
    PetscCall(EPSDestroy(&eps));
    PetscCall(MatDestroy(&A));
    PetscCall(SlepcFinalize());
    return 0;
}
