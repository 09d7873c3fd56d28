/* One solve of the 3D Poisson equation with b = 1 by PETSc, as its options say; -n points along each side.
 * Prints seconds and seconds of all processors, of set-up and of solve, the iterations, and the true relative residual.
 */
#include <petscksp.h>
#include <time.h>

static PetscErrorCode poisson(PetscInt n, Mat *A)
{
    PetscInt first, end, plane = n * n;
    PetscFunctionBeginUser;
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n * plane, n * plane, 7, NULL, 6, NULL, A));
    PetscCall(MatGetOwnershipRange(*A, &first, &end));
    for (PetscInt i = first; i < end; i++) {
        PetscInt x = i % n, y = i / n % n, z = i / plane;
        PetscInt columns[7], count = 0;
        PetscScalar values[7] = {-1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0};
        if (z > 0) columns[count++] = i - plane;
        if (y > 0) columns[count++] = i - n;
        if (x > 0) columns[count++] = i - 1;
        values[count] = 6.0;
        columns[count++] = i;
        if (x < n - 1) columns[count++] = i + 1;
        if (y < n - 1) columns[count++] = i + n;
        if (z < n - 1) columns[count++] = i + plane;
        PetscCall(MatSetValues(*A, 1, &i, count, columns, values, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

/* The clock, and the time of this processor. */
static void now(double at[2])
{
    struct timespec used;
    MPI_Barrier(PETSC_COMM_WORLD);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    at[0] = MPI_Wtime();
    at[1] = (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

int main(int argc, char **argv)
{
    Mat       A;
    Vec       x, b, r;
    KSP       ksp;
    PetscInt  n = 32, iterations;
    PetscReal norm, norm_b;
    double    at[3][2], used[2];
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
    PetscCall(poisson(n, &A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecDuplicate(b, &r));
    PetscCall(VecSet(b, 1.0));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetFromOptions(ksp));
    now(at[0]);
    PetscCall(KSPSetUp(ksp));
    PetscCall(KSPSetUpOnBlocks(ksp));
    now(at[1]);
    PetscCall(KSPSolve(ksp, b, x));
    now(at[2]);
    for (int part = 0; part < 2; part++) used[part] = at[part + 1][1] - at[part][1];
    MPI_Allreduce(MPI_IN_PLACE, used, 2, MPI_DOUBLE, MPI_SUM, PETSC_COMM_WORLD);
    PetscCall(KSPGetIterationNumber(ksp, &iterations));
    PetscCall(MatMult(A, x, r));
    PetscCall(VecAYPX(r, -1.0, b));
    PetscCall(VecNorm(r, NORM_2, &norm));
    PetscCall(VecNorm(b, NORM_2, &norm_b));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "solved %.6f %.6f %.6f %.6f %d %.3e\n", at[1][0] - at[0][0], used[0],
                          at[2][0] - at[1][0], used[1], (int)iterations, (double)(norm / norm_b)));
    PetscCall(VecDestroy(&r));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&A));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(PetscFinalize());
    return 0;
}
