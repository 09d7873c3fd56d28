/* recoup_petsc.h: checkpoints for KSPSolve, TSSolve and SNESSolve. Compiled in the program, with its PETSc (3.18 or newer,
 * real, double); librecoup itself links none.
 *
 *     RecoupKSP saved;
 *     PetscCall(RecoupKSPAttach(ksp, b, x, "dir=ckpt interval=20it", &saved));
 *     PetscCall(RecoupKSPRestore(saved, NULL));
 *     PetscCall(KSPSolve(ksp, b, x));
 *     PetscCall(RecoupKSPDetach(&saved));
 *
 * Attach after KSPSetOperators and KSPSetFromOptions, with b in its final values. An attached solve takes the same
 * iterations as one that is not. A restored one goes on from the iterate of the newest version, KSPCG also from the direction it went
 * last:
 * all later ones are kept A-orthogonal to it, by a preconditioner around the program's own, which brings back nearly all
 * that a plain restart forgets (M. J. D. Powell, 1977, doi 10.1007/BF01593790).
 * The GMRES family is saved at the ends of cycles, where a restart costs nothing.
 */
#ifndef RECOUP_PETSC_H
#define RECOUP_PETSC_H

#include <petscts.h>

#include "recoup_mpi.h"

#if defined(PETSC_USE_COMPLEX) || !defined(PETSC_USE_REAL_DOUBLE)
    #error "recoup_petsc.h needs a PETSc of real doubles"
#endif
#if PETSC_VERSION_LT(3, 19, 0)
    #define RECOUP_PETSC_SUCCESS 0
#else
    #define RECOUP_PETSC_SUCCESS PETSC_SUCCESS
#endif

/* An error of recoup becomes one of PETSc. */
#define RecoupCall(call)                                                                           \
    do {                                                                                           \
        int recoup_code_ = (call);                                                                 \
        PetscCheck(recoup_code_ >= 0, PETSC_COMM_SELF, PETSC_ERR_LIB, "recoup: %s: %s",            \
                   recoup_strerror(recoup_code_), recoup_message());                               \
    } while (0)

/* A handle, and its communicator. */
typedef struct {
    recoup_comm   comm;
    recoup_handle handle;
    PetscInt      base; /* iterations done before this solve */
} RecoupRun;

static inline PetscErrorCode RecoupRunOpen(MPI_Comm comm, const char *options, RecoupRun *run)
{
    PetscFunctionBegin;
    PetscCall((PetscErrorCode)recoup_mpi_comm(comm, &run->comm));
    run->base = 0;
    RecoupCall(recoup_open(options, &run->comm, &run->handle));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static inline PetscErrorCode RecoupRunClose(RecoupRun *run)
{
    PetscFunctionBegin;
    int code = recoup_close(run->handle);
    recoup_mpi_free(&run->comm);
    /* A version that could not be made is the loss of a version, not of the solve. */
    if (code != RECOUP_E_NOT_SAVED) RecoupCall(code);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Lends the values of a Vec as they are now; the caller keeps the array until the call that uses it is over. */
static inline PetscErrorCode RecoupRunProtect(RecoupRun *run, const char *name, int role, Vec v, const PetscScalar *values)
{
    PetscInt first, end, global;
    PetscFunctionBegin;
    PetscCall(VecGetOwnershipRange(v, &first, &end));
    PetscCall(VecGetSize(v, &global));
    RecoupCall(recoup_protect(run->handle, name, role, RECOUP_F64, (void *)values, (uint64_t)(end - first),
                              (uint64_t)first, (uint64_t)global));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Lends numbers every rank has alike. */
static inline PetscErrorCode RecoupRunProtectNumbers(RecoupRun *run, const char *name, int type, void *values, int count)
{
    PetscFunctionBegin;
    RecoupCall(recoup_protect(run->handle, name, RECOUP_DYNAMIC, type, values, (uint64_t)count, RECOUP_REPLICATED, 0));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* What is attached to an object, if anything. PETSc cannot take a single monitor away again, so ours stays with the
 * object, and looks here. */
typedef struct {
    void *attached;
} RecoupSlot;

static inline PetscErrorCode RecoupSlotFree(void *slot) { return PetscFree(slot); }

/* The slot of an object, made when there is none. */
static inline PetscErrorCode RecoupSlotOf(PetscObject object, RecoupSlot **slot, PetscBool *is_new)
{
    PetscContainer container;
    PetscFunctionBegin;
    PetscCall(PetscObjectQuery(object, "recoup", (PetscObject *)&container));
    *is_new = container ? PETSC_FALSE : PETSC_TRUE;
    if (container) {
        PetscCall(PetscContainerGetPointer(container, (void **)slot));
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    PetscCall(PetscNew(slot));
    PetscCall(PetscContainerCreate(PetscObjectComm(object), &container));
    PetscCall(PetscContainerSetPointer(container, *slot));
    PetscCall(PetscContainerSetUserDestroy(container, RecoupSlotFree));
    PetscCall(PetscObjectCompose(object, "recoup", (PetscObject)container));
    PetscCall(PetscContainerDestroy(&container));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* ---- KSP ---- */

typedef struct RecoupKSPRecord {
    RecoupRun   run;
    KSP         ksp;
    Vec         b, x;
    Vec         product_x, product_y; /* shells for the arrays of the operator callback */
    Vec         before, direction;    /* of KSPCG, else NULL */
    Vec         residual;             /* of KSPCG at `before`, once a direction is saved */
    Mat         lent;                 /* the matrix whose rows are read here, of a job of one rank */
    PetscInt    n_rows;
    const PetscInt    *row_starts, *columns;
    const PetscScalar *entries;
    PetscInt    cycle;                /* of the GMRES family, else 0 */
    PetscBool   is_due, wants_direction;
    PetscReal   norm_b;
    PetscInt    max_it;
    PetscBool   nonzero_guess, is_changed;
    PC          pc, deflation; /* the program's, and ours around it */
    Vec         w, Aw;         /* the direction deflated with */
    PetscScalar wAw;
} *RecoupKSP;

static inline int RecoupKSPApply(void *ctx, const double *x, double *y)
{
    RecoupKSP saved = (RecoupKSP)ctx;
    Mat       A;
    PetscErrorCode code = KSPGetOperators(saved->ksp, &A, NULL);
    if (!code) code = VecPlaceArray(saved->product_x, x);
    if (code) return (int)code;
    code = VecPlaceArray(saved->product_y, y);
    if (!code) {
        code = MatMult(A, saved->product_x, saved->product_y);
        (void)VecResetArray(saved->product_y);
    }
    (void)VecResetArray(saved->product_x);
    return (int)code;
}

/* y = A x from the rows themselves: no call of PETSc, so it can be made beside those of the solver. */
static inline int RecoupKSPApplyRows(void *ctx, const double *x, double *y)
{
    RecoupKSP saved = (RecoupKSP)ctx;
    for (PetscInt row = 0; row < saved->n_rows; row++) {
        double sum = 0;
        for (PetscInt k = saved->row_starts[row]; k < saved->row_starts[row + 1]; k++) {
            sum += saved->entries[k] * x[saved->columns[k]];
        }
        y[row] = sum;
    }
    return 0;
}

/* Borrows the rows of a matrix of one rank that has them in memory. */
static inline PetscErrorCode RecoupKSPLend(RecoupKSP saved, Mat A)
{
    PetscBool is_aij, done;
    PetscFunctionBegin;
    PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJ, &is_aij));
    if (!is_aij) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &saved->n_rows, &saved->row_starts, &saved->columns, &done));
    if (!done) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(MatSeqAIJGetArrayRead(A, &saved->entries));
    PetscCall(PetscObjectReference((PetscObject)A));
    saved->lent = A;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Gives the rows back. */
static inline PetscErrorCode RecoupKSPReturn(RecoupKSP saved)
{
    PetscBool done;
    PetscFunctionBegin;
    if (saved->lent == NULL) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(MatSeqAIJRestoreArrayRead(saved->lent, &saved->entries));
    PetscCall(MatRestoreRowIJ(saved->lent, 0, PETSC_FALSE, PETSC_FALSE, &saved->n_rows, &saved->row_starts,
                              &saved->columns, &done));
    PetscCall(MatDestroy(&saved->lent));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* What the method keeps, and when it is safe. */
static inline PetscErrorCode RecoupKSPKind(RecoupKSP saved)
{
    PetscBool is_cg, is_gmres;
    PetscFunctionBegin;
    PetscCall(PetscObjectTypeCompare((PetscObject)saved->ksp, KSPCG, &is_cg));
    PetscCall(PetscObjectTypeCompareAny((PetscObject)saved->ksp, &is_gmres, KSPGMRES, KSPFGMRES, KSPPGMRES, ""));
    if (is_gmres) PetscCall(KSPGMRESGetRestart(saved->ksp, &saved->cycle));
    if (is_cg) {
        PetscCall(VecDuplicate(saved->x, &saved->before));
        PetscCall(VecDuplicate(saved->x, &saved->direction));
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static inline PetscErrorCode RecoupKSPOperator(RecoupKSP saved, Vec b)
{
    Mat                A;
    PetscBool          has_norm;
    PetscReal          frobenius = 0, largest_row_sum = 0;
    PetscInt           first, end, global;
    const PetscScalar *rhs;
    recoup_apply       apply = RecoupKSPApply;
    PetscFunctionBegin;
    PetscCall(KSPGetOperators(saved->ksp, &A, NULL));
    PetscCall(MatHasOperation(A, MATOP_NORM, &has_norm));
    if (has_norm) PetscCall(MatNorm(A, NORM_FROBENIUS, &frobenius));
    if (has_norm) PetscCall(MatNorm(A, NORM_INFINITY, &largest_row_sum));
    PetscCall(RecoupKSPLend(saved, A));
    if (saved->lent) apply = RecoupKSPApplyRows;
    PetscCall(VecGetOwnershipRange(b, &first, &end));
    PetscCall(VecGetSize(b, &global));
    PetscCall(VecDuplicate(b, &saved->product_x));
    PetscCall(VecDuplicate(b, &saved->product_y));
    PetscCall(VecGetArrayRead(b, &rhs));
    RecoupCall(recoup_operator(saved->run.handle, apply, saved, (uint64_t)(end - first), (uint64_t)first, (uint64_t)global,
                               rhs, frobenius, saved->lent ? RECOUP_OPERATOR_ANY_THREAD : 0));
    RecoupCall(recoup_operator_norms(saved->run.handle, largest_row_sum, 0));
    PetscCall(VecRestoreArrayRead(b, &rhs));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* ||b|| in the norm the monitor reports, for a solve that does not start from zero. */
static inline PetscErrorCode RecoupKSPNormB(RecoupKSP saved)
{
    KSPNormType type;
    Vec         b;
    PetscFunctionBegin;
    PetscCall(KSPGetNormType(saved->ksp, &type));
    PetscCall(KSPGetRhs(saved->ksp, &b));
    if (type == KSP_NORM_PRECONDITIONED) {
        PetscCall(PCApply(saved->pc, b, saved->product_y));
        PetscCall(VecNorm(saved->product_y, NORM_2, &saved->norm_b));
    } else {
        PetscCall(VecNorm(b, NORM_2, &saved->norm_b));
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* What KSPCG knows of its state, so that no product is spent on it: it updates b - A x, and with it d . A d = d . (r_before - r). */
static inline PetscErrorCode RecoupKSPKnown(RecoupKSP saved)
{
    Vec         r;
    PetscReal   norm;
    PetscScalar then = 0, now = 0;
    PetscFunctionBegin;
    if (saved->direction == NULL) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(KSPBuildResidual(saved->ksp, saved->product_x, saved->product_y, &r));
    PetscCall(VecNorm(r, NORM_2, &norm));
    if (saved->wants_direction) {
        PetscCall(VecDot(saved->direction, saved->residual, &then));
        PetscCall(VecDot(saved->direction, r, &now));
    }
    if (PetscIsInfOrNanReal(norm) || PetscIsInfOrNanReal(then - now)) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    RecoupCall(recoup_known(saved->run.handle, norm, PetscMax(then - now, 0)));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Saves the iterate, and for KSPCG the way it went since the iteration before where the version is to hold it. */
static inline PetscErrorCode RecoupKSPSave(RecoupKSP saved, PetscInt iteration, PetscReal norm)
{
    Vec                v;
    const PetscScalar *x, *d = NULL;
    PetscFunctionBegin;
    if (saved->cycle > 0) PetscCall(KSPGetSolution(saved->ksp, &v));
    else PetscCall(KSPBuildSolution(saved->ksp, NULL, &v));
    if (saved->wants_direction) {
        PetscCall(VecWAXPY(saved->direction, -1.0, saved->before, v));
        PetscCall(VecGetArrayRead(saved->direction, &d));
        PetscCall(RecoupRunProtect(&saved->run, "d", RECOUP_DIRECTION, saved->direction, d));
    }
    PetscCall(RecoupKSPKnown(saved));
    PetscCall(VecGetArrayRead(v, &x));
    PetscCall(RecoupRunProtect(&saved->run, "x", RECOUP_ITERATE, v, x));
    RecoupCall(recoup_checkpoint(saved->run.handle, (uint64_t)iteration, norm, saved->norm_b));
    PetscCall(VecRestoreArrayRead(v, &x));
    if (saved->wants_direction) PetscCall(VecRestoreArrayRead(saved->direction, &d));
    saved->is_due = saved->wants_direction = PETSC_FALSE;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static inline PetscErrorCode RecoupKSPMonitor(KSP ksp, PetscInt n, PetscReal norm, void *ctx)
{
    RecoupKSP saved = (RecoupKSP)((RecoupSlot *)ctx)->attached;
    PetscInt  iteration;
    int32_t   due;
    PetscFunctionBegin;
    (void)ksp;
    if (saved == NULL || PetscIsInfOrNanReal(norm)) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    iteration = saved->run.base + n;
    if (n == 0) {
        saved->norm_b = norm;
        if (saved->run.base > 0) PetscCall(RecoupKSPNormB(saved));
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    if (saved->direction && saved->is_due) {
        PetscCall(RecoupKSPSave(saved, iteration, norm));
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    /* KSPCG is saved one iteration after it is found due, so it is asked about that one. */
    RecoupCall(recoup_due(saved->run.handle, (uint64_t)iteration + (saved->direction ? 1 : 0), norm, saved->norm_b, &due));
    if (due) saved->is_due = PETSC_TRUE;
    saved->wants_direction = saved->direction && due == RECOUP_DUE_DIRECTION ? PETSC_TRUE : PETSC_FALSE;
    if (saved->wants_direction) {
        Vec v, r;
        PetscCall(KSPBuildSolution(saved->ksp, NULL, &v));
        PetscCall(VecCopy(v, saved->before));
        if (saved->residual == NULL) PetscCall(VecDuplicate(saved->x, &saved->residual));
        PetscCall(KSPBuildResidual(saved->ksp, saved->product_x, saved->residual, &r));
    } else if (saved->is_due && !saved->direction && (saved->cycle == 0 || n % saved->cycle == 0)) {
        PetscCall(RecoupKSPSave(saved, iteration, norm));
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Attaches checkpoints to the solves of `ksp`: A x = b. `options` are those of recoup_open. Collective. */
static inline PetscErrorCode RecoupKSPAttach(KSP ksp, Vec b, Vec x, const char *options, RecoupKSP *attached)
{
    RecoupKSP          saved;
    RecoupSlot        *slot;
    PetscBool          is_new;
    const PetscScalar *values;
    PetscFunctionBegin;
    *attached = NULL;
    PetscCall(RecoupSlotOf((PetscObject)ksp, &slot, &is_new));
    PetscCall(PetscNew(&saved));
    saved->ksp = ksp;
    saved->b   = b;
    saved->x   = x;
    PetscCall(KSPGetPC(ksp, &saved->pc));
    PetscCall(PetscObjectReference((PetscObject)saved->pc));
    PetscCall(RecoupRunOpen(PetscObjectComm((PetscObject)ksp), options, &saved->run));
    PetscCall(RecoupKSPKind(saved));
    PetscCall(RecoupKSPOperator(saved, b));
    PetscCall(VecGetArrayRead(x, &values));
    PetscCall(RecoupRunProtect(&saved->run, "x", RECOUP_ITERATE, x, values));
    PetscCall(VecRestoreArrayRead(x, &values));
    if (saved->direction) {
        PetscCall(VecGetArrayRead(saved->direction, &values));
        PetscCall(RecoupRunProtect(&saved->run, "d", RECOUP_DIRECTION, saved->direction, values));
        PetscCall(VecRestoreArrayRead(saved->direction, &values));
    }
    if (is_new) PetscCall(KSPMonitorSet(ksp, RecoupKSPMonitor, slot, NULL));
    slot->attached = saved;
    *attached = saved;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* z = M^-1 r, kept A-orthogonal to w: z -= (A w . z / w . A w) w */
static inline PetscErrorCode RecoupPCApply(PC shell, Vec r, Vec z)
{
    RecoupKSP   saved;
    PetscScalar along;
    PetscFunctionBegin;
    PetscCall(PCShellGetContext(shell, &saved));
    PetscCall(PCApply(saved->pc, r, z));
    PetscCall(VecDot(saved->Aw, z, &along));
    PetscCall(VecAXPY(z, -along / saved->wAw, saved->w));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static inline PetscErrorCode RecoupPCSetUp(PC shell)
{
    RecoupKSP saved;
    PetscFunctionBegin;
    PetscCall(PCShellGetContext(shell, &saved));
    PetscCall(PCSetUp(saved->pc));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Puts the deflation around the program's preconditioner, and solves along the direction: x += (w . r / w . A w) w. With
 * a direction that is none it leaves all as it is, and the restart is a plain one. */
static inline PetscErrorCode RecoupKSPDeflate(RecoupKSP saved)
{
    Mat         A, P;
    PetscScalar along;
    PetscFunctionBegin;
    PetscCall(KSPGetOperators(saved->ksp, &A, &P));
    PetscCall(VecDuplicate(saved->x, &saved->w));
    PetscCall(VecDuplicate(saved->x, &saved->Aw));
    PetscCall(VecCopy(saved->direction, saved->w));
    PetscCall(VecNormalize(saved->w, NULL));
    PetscCall(MatMult(A, saved->w, saved->Aw));
    PetscCall(VecDot(saved->w, saved->Aw, &saved->wAw));
    if (!(saved->wAw > 0) || PetscIsInfOrNanReal(saved->wAw)) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(MatMult(A, saved->x, saved->product_y));
    PetscCall(VecAYPX(saved->product_y, -1.0, saved->b));
    PetscCall(VecDot(saved->w, saved->product_y, &along));
    PetscCall(VecAXPY(saved->x, along / saved->wAw, saved->w));
    PetscCall(PCCreate(PetscObjectComm((PetscObject)saved->ksp), &saved->deflation));
    PetscCall(PCSetType(saved->deflation, PCSHELL));
    PetscCall(PCShellSetName(saved->deflation, "recoup: the program's, deflated"));
    PetscCall(PCShellSetContext(saved->deflation, saved));
    PetscCall(PCShellSetApply(saved->deflation, RecoupPCApply));
    PetscCall(PCShellSetSetUp(saved->deflation, RecoupPCSetUp));
    PetscCall(PCSetOperators(saved->deflation, A, P));
    PetscCall(KSPSetPC(saved->ksp, saved->deflation));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Brings x back, and has the next KSPSolve go on from it; writes the iterations done so far, 0 when there is no version.
 * `iterations` may be NULL. Collective. */
static inline PetscErrorCode RecoupKSPRestore(RecoupKSP saved, PetscInt *iterations)
{
    PetscScalar *x, *d = NULL;
    PetscReal    rtol, atol, dtol;
    uint64_t     iteration = 0;
    int32_t      how = 0;
    PetscFunctionBegin;
    PetscCall(VecGetArray(saved->x, &x));
    PetscCall(RecoupRunProtect(&saved->run, "x", RECOUP_ITERATE, saved->x, x));
    if (saved->direction) {
        PetscCall(VecGetArray(saved->direction, &d));
        PetscCall(RecoupRunProtect(&saved->run, "d", RECOUP_DIRECTION, saved->direction, d));
    }
    int code = recoup_restore(saved->run.handle, &iteration, &how);
    if (saved->direction) PetscCall(VecRestoreArray(saved->direction, &d));
    PetscCall(VecRestoreArray(saved->x, &x));
    RecoupCall(code);
    if (iterations) *iterations = (PetscInt)iteration;
    if (code == RECOUP_NO_VERSION) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(KSPGetTolerances(saved->ksp, &rtol, &atol, &dtol, &saved->max_it));
    PetscCall(KSPGetInitialGuessNonzero(saved->ksp, &saved->nonzero_guess));
    PetscCall(KSPSetTolerances(saved->ksp, rtol, atol, dtol, PetscMax(saved->max_it - (PetscInt)iteration, 0)));
    PetscCall(KSPSetInitialGuessNonzero(saved->ksp, PETSC_TRUE));
    saved->run.base   = (PetscInt)iteration;
    saved->is_changed = PETSC_TRUE;
    if (saved->direction && how >= RECOUP_DEFLATED) PetscCall(RecoupKSPDeflate(saved));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Waits for the versions on their way, and leaves the KSP as it was before. Collective. */
static inline PetscErrorCode RecoupKSPDetach(RecoupKSP *attached)
{
    RecoupKSP   saved = *attached;
    RecoupSlot *slot;
    PetscBool   is_new;
    PetscReal   rtol, atol, dtol;
    PetscFunctionBegin;
    PetscCall(RecoupSlotOf((PetscObject)saved->ksp, &slot, &is_new));
    slot->attached = NULL;
    PetscCall(RecoupRunClose(&saved->run));
    PetscCall(RecoupKSPReturn(saved));
    if (saved->is_changed) {
        PetscCall(KSPGetTolerances(saved->ksp, &rtol, &atol, &dtol, NULL));
        PetscCall(KSPSetTolerances(saved->ksp, rtol, atol, dtol, saved->max_it));
        PetscCall(KSPSetInitialGuessNonzero(saved->ksp, saved->nonzero_guess));
    }
    if (saved->deflation) PetscCall(KSPSetPC(saved->ksp, saved->pc));
    PetscCall(PCDestroy(&saved->deflation));
    PetscCall(PCDestroy(&saved->pc));
    PetscCall(VecDestroy(&saved->w));
    PetscCall(VecDestroy(&saved->Aw));
    PetscCall(VecDestroy(&saved->before));
    PetscCall(VecDestroy(&saved->residual));
    PetscCall(VecDestroy(&saved->direction));
    PetscCall(VecDestroy(&saved->product_x));
    PetscCall(VecDestroy(&saved->product_y));
    PetscCall(PetscFree(*attached));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* ---- TS ---- */

typedef struct RecoupTSRecord {
    RecoupRun run;
    TS        ts;
    Vec       u;
    PetscReal times[2]; /* the time reached, and the next step */
} *RecoupTS;

/* Lends the state, and the time with it: every value exactly, as nothing tells which error a time step forgives. */
static inline PetscErrorCode RecoupTSProtect(RecoupTS saved, Vec u, const PetscScalar *values)
{
    PetscFunctionBegin;
    PetscCall(RecoupRunProtect(&saved->run, "u", RECOUP_DYNAMIC, u, values));
    PetscCall(RecoupRunProtectNumbers(&saved->run, "time", RECOUP_F64, saved->times, 2));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static inline PetscErrorCode RecoupTSMonitor(TS ts, PetscInt step, PetscReal time, Vec u, void *ctx)
{
    RecoupTS           saved = (RecoupTS)((RecoupSlot *)ctx)->attached;
    const PetscScalar *values;
    int                code;
    PetscFunctionBegin;
    /* A negative step is an interpolation to the end time. */
    if (saved == NULL || step <= saved->run.base) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    saved->times[0] = time;
    PetscCall(TSGetTimeStep(ts, &saved->times[1]));
    PetscCall(VecGetArrayRead(u, &values));
    PetscCall(RecoupTSProtect(saved, u, values));
    code = recoup_step(saved->run.handle, (uint64_t)step, 0, 0);
    PetscCall(VecRestoreArrayRead(u, &values));
    RecoupCall(code);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Attaches checkpoints to TSSolve(ts, u). Methods of one step go on as if nothing had been; those of several start again
 * with their first. Collective. */
static inline PetscErrorCode RecoupTSAttach(TS ts, Vec u, const char *options, RecoupTS *attached)
{
    RecoupTS           saved;
    RecoupSlot        *slot;
    PetscBool          is_new;
    const PetscScalar *values;
    PetscFunctionBegin;
    *attached = NULL;
    PetscCall(RecoupSlotOf((PetscObject)ts, &slot, &is_new));
    PetscCall(PetscNew(&saved));
    saved->ts = ts;
    saved->u  = u;
    PetscCall(RecoupRunOpen(PetscObjectComm((PetscObject)ts), options, &saved->run));
    PetscCall(VecGetArrayRead(u, &values));
    PetscCall(RecoupTSProtect(saved, u, values));
    PetscCall(VecRestoreArrayRead(u, &values));
    if (is_new) PetscCall(TSMonitorSet(ts, RecoupTSMonitor, slot, NULL));
    slot->attached = saved;
    *attached      = saved;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Brings u, the time and the step number back; writes the steps done so far, 0 when there is no version. `steps` may be
 * NULL. Collective. */
static inline PetscErrorCode RecoupTSRestore(RecoupTS saved, PetscInt *steps)
{
    PetscScalar *values;
    uint64_t     step = 0;
    int          code;
    PetscFunctionBegin;
    PetscCall(VecGetArray(saved->u, &values));
    PetscCall(RecoupTSProtect(saved, saved->u, values));
    code = recoup_restore(saved->run.handle, &step, NULL);
    PetscCall(VecRestoreArray(saved->u, &values));
    RecoupCall(code);
    if (steps) *steps = (PetscInt)step;
    if (code == RECOUP_NO_VERSION) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    saved->run.base = (PetscInt)step;
    PetscCall(TSSetTime(saved->ts, saved->times[0]));
    PetscCall(TSSetTimeStep(saved->ts, saved->times[1]));
    PetscCall(TSSetStepNumber(saved->ts, (PetscInt)step));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Waits for the versions on their way. Collective. */
static inline PetscErrorCode RecoupTSDetach(RecoupTS *attached)
{
    RecoupSlot *slot;
    PetscBool   is_new;
    PetscFunctionBegin;
    PetscCall(RecoupSlotOf((PetscObject)(*attached)->ts, &slot, &is_new));
    slot->attached = NULL;
    PetscCall(RecoupRunClose(&(*attached)->run));
    PetscCall(PetscFree(*attached));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* ---- SNES ---- */

typedef struct RecoupSNESRecord {
    RecoupRun run;
    SNES      snes;
    Vec       x;
    PetscReal norm_start; /* ||F|| where the first solve started */
    PetscReal atol;
    PetscInt  max_it;
    PetscBool is_changed;
} *RecoupSNES;

static inline PetscErrorCode RecoupSNESProtect(RecoupSNES saved, Vec x, const PetscScalar *values)
{
    PetscFunctionBegin;
    PetscCall(RecoupRunProtect(&saved->run, "x", RECOUP_ITERATE, x, values));
    PetscCall(RecoupRunProtectNumbers(&saved->run, "start", RECOUP_F64, &saved->norm_start, 1));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static inline PetscErrorCode RecoupSNESMonitor(SNES snes, PetscInt n, PetscReal norm, void *ctx)
{
    RecoupSNES         saved = (RecoupSNES)((RecoupSlot *)ctx)->attached;
    Vec                x;
    const PetscScalar *values;
    int                code;
    PetscFunctionBegin;
    if (saved == NULL || PetscIsInfOrNanReal(norm)) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    if (n == 0) {
        if (saved->run.base == 0) saved->norm_start = norm;
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    PetscCall(SNESGetSolution(snes, &x));
    PetscCall(VecGetArrayRead(x, &values));
    PetscCall(RecoupSNESProtect(saved, x, values));
    code = recoup_step(saved->run.handle, (uint64_t)(saved->run.base + n), norm, saved->norm_start);
    PetscCall(VecRestoreArrayRead(x, &values));
    RecoupCall(code);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Attaches checkpoints to SNESSolve(snes, .., x). Versions hold x exactly, unless `options` give a fixed bound.
 * Collective. */
static inline PetscErrorCode RecoupSNESAttach(SNES snes, Vec x, const char *options, RecoupSNES *attached)
{
    RecoupSNES         saved;
    RecoupSlot        *slot;
    PetscBool          is_new;
    const PetscScalar *values;
    PetscFunctionBegin;
    *attached = NULL;
    PetscCall(RecoupSlotOf((PetscObject)snes, &slot, &is_new));
    PetscCall(PetscNew(&saved));
    saved->snes = snes;
    saved->x    = x;
    PetscCall(RecoupRunOpen(PetscObjectComm((PetscObject)snes), options, &saved->run));
    PetscCall(VecGetArrayRead(x, &values));
    PetscCall(RecoupSNESProtect(saved, x, values));
    PetscCall(VecRestoreArrayRead(x, &values));
    if (is_new) PetscCall(SNESMonitorSet(snes, RecoupSNESMonitor, slot, NULL));
    slot->attached = saved;
    *attached      = saved;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Brings x back, and has the next SNESSolve end where the first would have: its relative tolerance stays one to the start
 * of the first. Writes the iterations done so far, 0 when there is no version; `iterations` may be NULL. Collective. */
static inline PetscErrorCode RecoupSNESRestore(RecoupSNES saved, PetscInt *iterations)
{
    PetscScalar *values;
    PetscReal    atol, rtol, stol;
    PetscInt     max_f;
    uint64_t     iteration = 0;
    int          code;
    PetscFunctionBegin;
    PetscCall(VecGetArray(saved->x, &values));
    PetscCall(RecoupSNESProtect(saved, saved->x, values));
    code = recoup_restore(saved->run.handle, &iteration, NULL);
    PetscCall(VecRestoreArray(saved->x, &values));
    RecoupCall(code);
    if (iterations) *iterations = (PetscInt)iteration;
    if (code == RECOUP_NO_VERSION) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    saved->run.base   = (PetscInt)iteration;
    saved->is_changed = PETSC_TRUE;
    PetscCall(SNESGetTolerances(saved->snes, &saved->atol, &rtol, &stol, &saved->max_it, &max_f));
    atol = PetscMax(saved->atol, rtol * saved->norm_start);
    PetscCall(SNESSetTolerances(saved->snes, atol, rtol, stol, PetscMax(saved->max_it - saved->run.base, 0), max_f));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Waits for the versions on their way, and leaves the SNES as it was before. Collective. */
static inline PetscErrorCode RecoupSNESDetach(RecoupSNES *attached)
{
    RecoupSNES  saved = *attached;
    RecoupSlot *slot;
    PetscBool   is_new;
    PetscReal   rtol, stol;
    PetscInt    max_f;
    PetscFunctionBegin;
    PetscCall(RecoupSlotOf((PetscObject)saved->snes, &slot, &is_new));
    slot->attached = NULL;
    if (saved->is_changed) {
        PetscCall(SNESGetTolerances(saved->snes, NULL, &rtol, &stol, NULL, &max_f));
        PetscCall(SNESSetTolerances(saved->snes, saved->atol, rtol, stol, saved->max_it, max_f));
    }
    PetscCall(RecoupRunClose(&saved->run));
    PetscCall(PetscFree(*attached));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

#endif /* RECOUP_PETSC_H */
