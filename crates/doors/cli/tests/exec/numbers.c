/* Implicit steps of a heat equation on a square whose rows are numbered by -seed, as programs of finite elements number
 * theirs in each start. It prints the iterations and the norm of each step, and kills itself at the start of step -kill_at,
 * or in iteration -kill_after of a solve. Heat comes from -source: a bump, the whole square (flat), or along a line that a
 * polynomial describes (line). With -other, half of the square loses heat, and b of the first step is the same. */
#include <petscksp.h>
#include <signal.h>
#include <stdlib.h>

/* The row of each point, and the point of each row. */
static PetscInt *row_of, *point_of;

static void number(PetscInt n_points, uint64_t seed)
{
    uint64_t state = seed * 2654435761u;
    row_of   = (PetscInt *)malloc(2 * sizeof(PetscInt) * (size_t)n_points);
    point_of = row_of + n_points;
    for (PetscInt p = 0; p < n_points; p++) point_of[p] = p;
    for (PetscInt p = n_points - 1; p > 0 && seed > 0; p--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        PetscInt q = (PetscInt)((state >> 33) % (uint64_t)(p + 1)), moved = point_of[p];
        point_of[p] = point_of[q];
        point_of[q] = moved;
    }
    for (PetscInt row = 0; row < n_points; row++) row_of[point_of[row]] = row;
}

static PetscErrorCode matrix(PetscInt n, PetscReal c, PetscBool is_other, Mat *A)
{
    PetscInt first, end;
    PetscFunctionBeginUser;
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n * n, n * n, 5, NULL, 4, NULL, A));
    PetscCall(MatGetOwnershipRange(*A, &first, &end));
    for (PetscInt row = first; row < end; row++) {
        PetscInt    point = point_of[row], i = point % n, j = point / n;
        PetscCall(MatSetValue(*A, row, row, 1 + 4 * c + (is_other && j < n / 2 ? c / 100 : 0), INSERT_VALUES));
        if (i > 0) PetscCall(MatSetValue(*A, row, row_of[point - 1], -c, INSERT_VALUES));
        if (i < n - 1) PetscCall(MatSetValue(*A, row, row_of[point + 1], -c, INSERT_VALUES));
        if (j > 0) PetscCall(MatSetValue(*A, row, row_of[point - n], -c, INSERT_VALUES));
        if (j < n - 1) PetscCall(MatSetValue(*A, row, row_of[point + n], -c, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

static PetscErrorCode heat(PetscInt n, const char *source, Vec f)
{
    PetscInt     first, end;
    PetscScalar *values;
    PetscFunctionBeginUser;
    PetscCall(VecGetOwnershipRange(f, &first, &end));
    PetscCall(VecGetArray(f, &values));
    for (PetscInt row = first; row < end; row++) {
        PetscReal x = (point_of[row] % n + 1.0) / (n + 1), y = (point_of[row] / n + 1.0) / (n + 1);
        values[row - first] = 1;
        if (source[0] == 'b') values[row - first] = 1 / (1 + 20 * (x - 0.31) * (x - 0.31) + 30 * (y - 0.62) * (y - 0.62));
        if (source[0] == 'l') values[row - first] = x * (2 - x) + 2 * y;
    }
    PetscCall(VecRestoreArray(f, &values));
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
    Vec       u, x, f;
    KSP       ksp;
    PetscInt  n = 60, steps = 12, seed = 0, kill_at = -1, after = -1, its;
    PetscReal norm, c = 1e4;
    PetscBool is_other = PETSC_FALSE;
    char      source[16] = "bump";
    PetscFunctionBeginUser;
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-steps", &steps, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &seed, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-kill_at", &kill_at, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-kill_after", &after, NULL));
    PetscCall(PetscOptionsGetReal(NULL, NULL, "-c", &c, NULL));
    PetscCall(PetscOptionsGetString(NULL, NULL, "-source", source, sizeof source, NULL));
    PetscCall(PetscOptionsGetBool(NULL, NULL, "-other", &is_other, NULL));
    number(n * n, (uint64_t)seed);
    PetscCall(matrix(n, c, is_other, &A));
    PetscCall(MatCreateVecs(A, &x, &u));
    PetscCall(VecDuplicate(x, &f));
    PetscCall(heat(n, source, f));
    PetscCall(VecSet(u, 0.0));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetFromOptions(ksp));
    if (after >= 0) PetscCall(KSPMonitorSet(ksp, kill_after, &after, NULL));
    for (PetscInt step = 0; step < steps; step++) {
        if (step == kill_at) raise(SIGKILL);
        PetscCall(VecAXPY(u, 1.0, f));
        PetscCall(KSPSolve(ksp, u, x));
        PetscCall(VecCopy(x, u));
        PetscCall(VecNorm(u, NORM_2, &norm));
        PetscCall(KSPGetIterationNumber(ksp, &its));
        PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%d %d %.15e\n", (int)step, (int)its, (double)norm));
    }
    PetscCall(KSPDestroy(&ksp));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&u));
    PetscCall(VecDestroy(&f));
    PetscCall(MatDestroy(&A));
    free(row_of);
    PetscCall(PetscFinalize());
    return 0;
}
