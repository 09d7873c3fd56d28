/* recoup_petsc_ksp.h: checkpoints for KSPSolve. Compiled in the program, with its PETSc (3.18 or newer, double);
 * librecoup itself links none.
 *
 *     RecoupKSP saved;
 *     PetscCall(RecoupKSPAttach(ksp, b, x, "dir=ckpt interval=20it", &saved));
 *     PetscCall(RecoupKSPRestore(saved, NULL));
 *     PetscCall(KSPSolve(ksp, b, x));
 *     PetscCall(RecoupKSPDetach(&saved));
 *
 * Attach after KSPSetOperators and KSPSetFromOptions, with b in its final values. An attached solve takes the same
 * iterations as one that is not. A restored one continues from the iterate of the newest version, KSPCG also from the
 * direction it went last: all later ones are kept A-orthogonal to it, by a preconditioner around the program's own, which
 * brings back nearly all that a plain restart forgets (M. J. D. Powell, 1977, doi 10.1007/BF01593790).
 * The GMRES family is saved at the ends of cycles, where a restart costs nothing.
 */
#ifndef RECOUP_PETSC_KSP_H
#define RECOUP_PETSC_KSP_H

#include <petscksp.h>

#include "recoup_petsc_run.h"

/* A vector that is saved beside the iterate, see recoup_petsc_systems.h. */
typedef struct RecoupKSPStateRecord {
    Vec                          v;
    char                        *name;
    RecoupArray                  array;
    struct RecoupKSPStateRecord *next;
} *RecoupKSPState;

typedef struct RecoupKSPRecord {
    RecoupRun   run;
    KSP         ksp;
    Vec         b, x;
    RecoupKSPState states;            /* what is saved beside x and its direction */
    Vec         product_x, product_y; /* shells for the arrays of the operator callback */
    Vec         before, direction;    /* of KSPCG, else NULL */
    Vec         iterate;              /* of a KSP that keeps x in terms of its preconditioner, else NULL */
    Vec         residual;             /* of KSPCG at `before`, once a direction is saved */
    Mat         lent;                 /* the matrix whose rows are read here, of a job of one rank */
    PetscInt    n_rows;
    const PetscInt    *row_starts, *columns;
    const PetscScalar *entries;
    PetscInt    cycle;                /* of the GMRES family, else 0 */
    PetscBool   is_due, wants_direction;
    PetscBool   has_systems, has_begun; /* a solve was begun since it was attached */
    PetscReal   norm_b;
    PetscInt    max_it;
    PetscBool   nonzero_guess, knoll_guess, is_changed;
    PC          pc, deflation; /* the program's, and ours around it */
    Vec         restored;      /* x, of a KSP that forms a guess over it; else NULL */
    Vec         w, Aw;         /* the direction deflated with */
    Vec         across;        /* a residual without its part along w */
    PetscReal   wAw;
    PetscBool   heeds_end, is_ending; /* -recoup_stop; the version to end with is due */
} *RecoupKSP;

static inline int RecoupKSPApply(void *ctx, const double *x, double *y)
{
    RecoupKSP saved = (RecoupKSP)ctx;
    Mat       A;
    PetscErrorCode code = KSPGetOperators(saved->ksp, &A, NULL);
    if (!code) code = VecPlaceArray(saved->product_x, (const PetscScalar *)x);
    if (code) return (int)code;
    code = VecPlaceArray(saved->product_y, (PetscScalar *)y);
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
    RecoupKSP          saved = (RecoupKSP)ctx;
    const PetscScalar *in    = (const PetscScalar *)x;
    PetscScalar       *out   = (PetscScalar *)y;
    for (PetscInt row = 0; row < saved->n_rows; row++) {
        PetscScalar sum = 0;
        for (PetscInt k = saved->row_starts[row]; k < saved->row_starts[row + 1]; k++) {
            sum += saved->entries[k] * in[saved->columns[k]];
        }
        out[row] = sum;
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

/* Lends the vectors beside the iterate: to be saved, or to be brought back. */
static inline PetscErrorCode RecoupKSPLendStates(RecoupKSP saved, PetscBool is_read)
{
    PetscFunctionBegin;
    for (RecoupKSPState state = saved->states; state; state = state->next) {
        PetscCall(is_read ? RecoupArrayGetRead(state->v, &state->array) : RecoupArrayGet(state->v, &state->array));
        PetscCall(RecoupRunProtect(&saved->run, state->name, RECOUP_DYNAMIC, &state->array));
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Takes them back. */
static inline PetscErrorCode RecoupKSPReturnStates(RecoupKSP saved, PetscBool is_read)
{
    PetscFunctionBegin;
    for (RecoupKSPState state = saved->states; state; state = state->next) {
        PetscCall(is_read ? RecoupArrayRestoreRead(&state->array) : RecoupArrayRestore(&state->array));
    }
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
    if (saved->product_x == NULL) PetscCall(VecDuplicate(b, &saved->product_x));
    if (saved->product_y == NULL) PetscCall(VecDuplicate(b, &saved->product_y));
    PetscCall(VecGetArrayRead(b, &rhs));
    /* A complex entry a + ib is the rows (a, -b) and (b, a) of real ones. */
    frobenius *= PetscSqrtReal(RECOUP_PETSC_PARTS);
    largest_row_sum *= PetscSqrtReal(RECOUP_PETSC_PARTS);
    RecoupCall(recoup_operator(saved->run.handle, apply, saved, RECOUP_PETSC_PARTS * (uint64_t)(end - first),
                               RECOUP_PETSC_PARTS * (uint64_t)first, RECOUP_PETSC_PARTS * (uint64_t)global,
                               (const double *)rhs, frobenius, saved->lent ? RECOUP_OPERATOR_ANY_THREAD : 0));
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

/* The residual beside which the next one tells d . A d of the direction between, where the version asks for that. */
static inline PetscErrorCode RecoupKSPKeepResidual(RecoupKSP saved)
{
    Vec     r;
    int32_t wants;
    PetscFunctionBegin;
    RecoupCall(recoup_wants_known(saved->run.handle, &wants));
    if (!wants) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    if (saved->residual == NULL) PetscCall(VecDuplicate(saved->x, &saved->residual));
    PetscCall(KSPBuildResidual(saved->ksp, saved->product_x, saved->residual, &r));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* What KSPCG knows of its state, so that no product is spent on it: it updates b - A x, and with it d . A d = d . (r_before - r).
 * A version that is not verified asks for nothing. */
static inline PetscErrorCode RecoupKSPKnown(RecoupKSP saved)
{
    Vec         r;
    PetscReal   norm, squared = 0;
    PetscScalar then = 0, now = 0;
    int32_t     wants;
    PetscFunctionBegin;
    if (saved->direction == NULL) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    RecoupCall(recoup_wants_known(saved->run.handle, &wants));
    if (!wants) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(KSPBuildResidual(saved->ksp, saved->product_x, saved->product_y, &r));
    PetscCall(VecNorm(r, NORM_2, &norm));
    if (saved->wants_direction) {
        PetscCall(VecDot(saved->direction, saved->residual, &then));
        PetscCall(VecDot(saved->direction, r, &now));
    }
    squared = PetscRealPart(then - now);
    if (PetscIsInfOrNanReal(norm) || PetscIsInfOrNanReal(squared)) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    RecoupCall(recoup_known(saved->run.handle, norm, PetscMax(squared, 0)));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* The iterate, in a vector of the KSP or of ours; NULL where it cannot be had. */
static inline PetscErrorCode RecoupKSPIterate(RecoupKSP saved, Vec *v)
{
    PCSide    side;
    PetscBool has_x, is_from_guess;
    PetscFunctionBegin;
    *v = NULL;
    /* Preconditioned from the right, these still update x itself, which KSPBuildSolution does not know. From a guess they
     * update the difference to it. */
    PetscCall(PetscObjectTypeCompareAny((PetscObject)saved->ksp, &has_x, KSPFBCGS, KSPFBCGSR, KSPQMRCGS, KSPPIPEBCGS, ""));
    PetscCall(KSPGetInitialGuessNonzero(saved->ksp, &is_from_guess));
    if (has_x && is_from_guess) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(KSPGetPCSide(saved->ksp, &side));
    if (saved->cycle > 0 || has_x) PetscCall(KSPGetSolution(saved->ksp, v));
    else {
        if (side != PC_LEFT && saved->iterate == NULL) PetscCall(VecDuplicate(saved->x, &saved->iterate));
        PetscCall(KSPBuildSolution(saved->ksp, saved->iterate, v));
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Ends KSPSolve after this iteration as its limit of iterations does, with KSP_DIVERGED_ITS. */
static inline PetscErrorCode RecoupKSPEnd(RecoupKSP saved, PetscInt n)
{
    PetscReal rtol, atol, dtol;
    PetscInt  max_it;
    PetscFunctionBegin;
    PetscCall(KSPGetTolerances(saved->ksp, &rtol, &atol, &dtol, &max_it));
    if (!saved->is_changed) {
        saved->max_it = max_it;
        PetscCall(KSPGetInitialGuessNonzero(saved->ksp, &saved->nonzero_guess));
    }
    saved->is_changed = PETSC_TRUE;
    PetscCall(KSPSetTolerances(saved->ksp, rtol, atol, dtol, n));
    if (saved->run.comm.rank == 0) {
        PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR,
                               "recoup: the time of the job is nearly over: KSPSolve ends with a version\n"));
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Saves the iterate, and for KSPCG the way it went since the iteration before where the version is to hold it. */
static inline PetscErrorCode RecoupKSPSave(RecoupKSP saved, PetscInt iteration, PetscReal norm)
{
    Vec         v;
    RecoupArray x, d = {NULL, NULL, PETSC_FALSE};
    PetscFunctionBegin;
    PetscCall(RecoupKSPIterate(saved, &v));
    if (v == NULL) {
        saved->is_due = saved->wants_direction = PETSC_FALSE;
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    if (saved->wants_direction) PetscCall(VecWAXPY(saved->direction, -1.0, saved->before, v));
    PetscCall(RecoupKSPKnown(saved));
    if (saved->wants_direction) {
        PetscCall(RecoupArrayGetRead(saved->direction, &d));
        PetscCall(RecoupRunProtect(&saved->run, "d", RECOUP_DIRECTION, &d));
    }
    PetscCall(RecoupArrayGetRead(v, &x));
    PetscCall(RecoupRunProtect(&saved->run, "x", RECOUP_ITERATE, &x));
    PetscCall(RecoupKSPLendStates(saved, PETSC_TRUE));
    RecoupCall(recoup_checkpoint(saved->run.handle, (uint64_t)iteration, norm, saved->norm_b));
    PetscCall(RecoupKSPReturnStates(saved, PETSC_TRUE));
    PetscCall(RecoupArrayRestoreRead(&x));
    if (saved->wants_direction) PetscCall(RecoupArrayRestoreRead(&d));
    saved->is_due = saved->wants_direction = PETSC_FALSE;
    if (saved->is_ending) PetscCall(RecoupKSPEnd(saved, iteration - saved->run.base));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* With -recoup_stop, a version is due when the job's time is nearly over. Asked where one can be taken. */
static inline PetscErrorCode RecoupKSPHeedEnd(RecoupKSP saved, PetscInt n, int32_t *due)
{
    int32_t stop = 0;
    PetscFunctionBegin;
    if (!saved->heeds_end || (saved->cycle > 0 && n % saved->cycle != 0)) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    RecoupCall(recoup_should_stop(saved->run.handle, &stop));
    if (stop) saved->is_ending = PETSC_TRUE;
    if (stop && !*due) *due = saved->direction ? RECOUP_DUE_DIRECTION : RECOUP_DUE_ITERATE;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Writes whether -recoup_stop has ended KSPSolve: the program then detaches and ends, with exit code 75 for instance, and
 * its next start continues. Asked before RecoupKSPDetach. */
static inline PetscErrorCode RecoupKSPStopped(RecoupKSP saved, PetscBool *has_stopped)
{
    KSPConvergedReason reason;
    PetscFunctionBegin;
    PetscCall(KSPGetConvergedReason(saved->ksp, &reason));
    *has_stopped = saved->is_ending && reason <= 0 ? PETSC_TRUE : PETSC_FALSE;
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
    saved->has_begun = PETSC_TRUE;
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
    PetscCall(RecoupKSPHeedEnd(saved, n, &due));
    if (due) saved->is_due = PETSC_TRUE;
    saved->wants_direction = saved->direction && due == RECOUP_DUE_DIRECTION ? PETSC_TRUE : PETSC_FALSE;
    if (saved->wants_direction) {
        Vec v;
        PetscCall(KSPBuildSolution(saved->ksp, NULL, &v));
        PetscCall(VecCopy(v, saved->before));
        PetscCall(RecoupKSPKeepResidual(saved));
    } else if (saved->is_due && !saved->direction && (saved->cycle == 0 || n % saved->cycle == 0)) {
        PetscCall(RecoupKSPSave(saved, iteration, norm));
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Opens the run with the numbers of the method that KSP is set to, unless `options` name another. GMRES restarts anyway,
 * and Richardson's iteration is stationary: both bear more of a lossy version than CG does. */
static inline PetscErrorCode RecoupKSPOpen(RecoupKSP saved, const char *options)
{
    PetscBool   is_gmres, is_stationary;
    const char *method  = "";
    size_t      n_given = 0;
    char       *all;
    PetscFunctionBegin;
    PetscCall(PetscObjectTypeCompareAny((PetscObject)saved->ksp, &is_gmres, KSPGMRES, KSPFGMRES, KSPPGMRES, KSPLGMRES, ""));
    PetscCall(PetscObjectTypeCompare((PetscObject)saved->ksp, KSPRICHARDSON, &is_stationary));
    if (is_gmres) method = "method=gmres ";
    if (is_stationary) method = "method=jacobi ";
    if (options) PetscCall(PetscStrlen(options, &n_given));
    PetscCall(PetscMalloc1(n_given + sizeof("method=jacobi "), &all));
    PetscCall(PetscSNPrintf(all, n_given + sizeof("method=jacobi "), "%s%s", method, options ? options : ""));
    PetscCall(RecoupRunOpen(PetscObjectComm((PetscObject)saved->ksp), all, &saved->run));
    PetscCall(PetscFree(all));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Attaches all but the problem, which a program of many systems gives later. */
static inline PetscErrorCode RecoupKSPAttachRun(KSP ksp, Vec b, Vec x, const char *options, RecoupKSP *attached)
{
    RecoupKSP   saved;
    RecoupSlot *slot;
    PetscBool   is_new = PETSC_FALSE;
    RecoupArray array;
    const char *prefix;
    PetscFunctionBegin;
    *attached = NULL;
    PetscCall(RecoupSlotOf((PetscObject)ksp, &slot, &is_new));
    PetscCall(PetscNew(&saved));
    saved->ksp = ksp;
    saved->b   = b;
    saved->x   = x;
    PetscCall(KSPGetPC(ksp, &saved->pc));
    PetscCall(PetscObjectReference((PetscObject)saved->pc));
    PetscCall(RecoupKSPOpen(saved, options));
    PetscCall(KSPGetOptionsPrefix(ksp, &prefix));
    PetscCall(PetscOptionsGetBool(NULL, prefix, "-recoup_stop", &saved->heeds_end, NULL));
    PetscCall(RecoupKSPKind(saved));
    PetscCall(RecoupArrayGetRead(x, &array));
    PetscCall(RecoupRunProtect(&saved->run, "x", RECOUP_ITERATE, &array));
    PetscCall(RecoupArrayRestoreRead(&array));
    if (saved->direction) {
        PetscCall(RecoupArrayGetRead(saved->direction, &array));
        PetscCall(RecoupRunProtect(&saved->run, "d", RECOUP_DIRECTION, &array));
        PetscCall(RecoupArrayRestoreRead(&array));
    }
    if (is_new) PetscCall(KSPMonitorSet(ksp, RecoupKSPMonitor, slot, NULL));
    slot->attached = saved;
    *attached = saved;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Attaches checkpoints to the solves of `ksp`: A x = b. `options` are those of recoup_open. Collective. */
static inline PetscErrorCode RecoupKSPAttach(KSP ksp, Vec b, Vec x, const char *options, RecoupKSP *attached)
{
    PetscFunctionBegin;
    PetscCall(RecoupKSPAttachRun(ksp, b, x, options, attached));
    PetscCall(RecoupKSPOperator(*attached, b));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* z = P M^-1 P' r + w (w . r) / w . A w with P = 1 - w (A w)' / w . A w (BNN of J. M. Tang, R. Nabben, C. Vuik, Y. A.
 * Erlangga 2009, doi 10.1007/s10915-009-9272-6), which keeps z A-orthogonal to w. For a symmetric A and in exact arithmetic
 * w . r = 0. Rounding moves r along w: without P', stiff problems then take hundreds of iterations more. Where rows of A are
 * not symmetric, as those of boundaries often are, r has a part along w that P hides: without the last term, the norm that
 * the KSP sees falls, and that of b - A x does not. b itself, to whose norm tolerances relate, is preconditioned as the program
 * does it. VecDot conjugates its second vector. */
static inline PetscErrorCode RecoupPCApply(PC shell, Vec r, Vec z)
{
    RecoupKSP   saved;
    PetscScalar part, along;
    Vec         b;
    PetscFunctionBegin;
    PetscCall(PCShellGetContext(shell, &saved));
    PetscCall(KSPGetRhs(saved->ksp, &b));
    if (!(saved->wAw > 0) || r == b) {
        PetscCall(PCApply(saved->pc, r, z));
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    PetscCall(VecDot(r, saved->w, &part));
    PetscCall(VecWAXPY(saved->across, -part / saved->wAw, saved->Aw, r));
    PetscCall(PCApply(saved->pc, saved->across, z));
    PetscCall(VecDot(z, saved->Aw, &along));
    PetscCall(VecAXPY(z, (part - along) / saved->wAw, saved->w));
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

/* Puts a preconditioner of ours around the program's. */
static inline PetscErrorCode RecoupKSPWrap(RecoupKSP saved)
{
    Mat A, P;
    PetscFunctionBegin;
    PetscCall(KSPGetOperators(saved->ksp, &A, &P));
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

/* Puts the deflation around the program's preconditioner, and solves along the direction: x += (w . r / w . A w) w. With
 * a direction that is none it leaves all as it is, and the restart is a plain one. */
static inline PetscErrorCode RecoupKSPDeflate(RecoupKSP saved)
{
    Mat         A;
    PetscScalar along, curvature;
    PetscFunctionBegin;
    PetscCall(KSPGetOperators(saved->ksp, &A, NULL));
    PetscCall(VecDuplicate(saved->x, &saved->w));
    PetscCall(VecDuplicate(saved->x, &saved->Aw));
    PetscCall(VecDuplicate(saved->x, &saved->across));
    PetscCall(VecCopy(saved->direction, saved->w));
    PetscCall(VecNormalize(saved->w, NULL));
    PetscCall(MatMult(A, saved->w, saved->Aw));
    PetscCall(VecDot(saved->w, saved->Aw, &curvature));
    saved->wAw = PetscRealPart(curvature);
    if (!(saved->wAw > 0) || PetscIsInfOrNanReal(saved->wAw)) {
        saved->wAw = 0;
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    PetscCall(MatMult(A, saved->x, saved->product_y));
    PetscCall(VecAYPX(saved->product_y, -1.0, saved->b));
    PetscCall(VecDot(saved->product_y, saved->w, &along));
    PetscCall(VecAXPY(saved->x, along / saved->wAw, saved->w));
    PetscCall(RecoupKSPWrap(saved));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Comes after KSPSolve has formed a guess. */
static inline PetscErrorCode RecoupPCPreSolve(PC shell, KSP ksp, Vec b, Vec x)
{
    RecoupKSP saved;
    PetscFunctionBegin;
    (void)b;
    PetscCall(PCShellGetContext(shell, &saved));
    PetscCall(VecCopy(saved->restored, x));
    PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Keeps x from a guess of the KSP (-ksp_guess_type, -ksp_knoll), which would be put in its place before the first iteration. */
static inline PetscErrorCode RecoupKSPKeepStart(RecoupKSP saved)
{
    const char *prefix;
    PetscBool   has_guess;
    PetscFunctionBegin;
    PetscCall(KSPGetInitialGuessKnoll(saved->ksp, &saved->knoll_guess));
    PetscCall(KSPSetInitialGuessKnoll(saved->ksp, PETSC_FALSE));
    PetscCall(KSPGetOptionsPrefix(saved->ksp, &prefix));
    PetscCall(PetscOptionsHasName(NULL, prefix, "-ksp_guess_type", &has_guess));
    if (!has_guess) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(VecDuplicate(saved->x, &saved->restored));
    PetscCall(VecCopy(saved->x, saved->restored));
    if (!saved->deflation) PetscCall(RecoupKSPWrap(saved));
    PetscCall(PCShellSetPreSolve(saved->deflation, RecoupPCPreSolve));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Has the next KSPSolve continue from x, after so many iterations, and along the direction if there is one. */
static inline PetscErrorCode RecoupKSPContinue(RecoupKSP saved, PetscInt done, PetscBool has_direction)
{
    PetscReal rtol, atol, dtol;
    PetscFunctionBegin;
    PetscCall(KSPGetTolerances(saved->ksp, &rtol, &atol, &dtol, &saved->max_it));
    PetscCall(KSPSetTolerances(saved->ksp, rtol, atol, dtol, PetscMax(saved->max_it - done, 0)));
    PetscCall(KSPSetInitialGuessNonzero(saved->ksp, PETSC_TRUE));
    saved->is_changed = PETSC_TRUE;
    if (saved->direction && has_direction) PetscCall(RecoupKSPDeflate(saved));
    PetscCall(RecoupKSPKeepStart(saved));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Brings x back, and has the next KSPSolve continue from it; writes the iterations done so far, 0 when there is no version.
 * `iterations` may be NULL. A version of another A or b is an error. With same_operator=no its x is a first guess: taken where
 * its residual is not above that of the x KSPSolve would start from, and no iterations are done yet. Collective. */
static inline PetscErrorCode RecoupKSPRestore(RecoupKSP saved, PetscInt *iterations)
{
    RecoupArray x, d = {NULL, NULL, PETSC_FALSE};
    uint64_t    iteration = 0;
    PetscInt    done;
    int32_t     how = 0;
    PetscFunctionBegin;
    PetscCall(KSPGetInitialGuessNonzero(saved->ksp, &saved->nonzero_guess));
    if (!saved->nonzero_guess) PetscCall(VecSet(saved->x, 0.0));
    PetscCall(RecoupArrayGet(saved->x, &x));
    PetscCall(RecoupRunProtect(&saved->run, "x", RECOUP_ITERATE, &x));
    if (saved->direction) {
        PetscCall(RecoupArrayGet(saved->direction, &d));
        PetscCall(RecoupRunProtect(&saved->run, "d", RECOUP_DIRECTION, &d));
    }
    PetscCall(RecoupKSPLendStates(saved, PETSC_FALSE));
    int code = recoup_restore(saved->run.handle, &iteration, &how);
    PetscCall(RecoupKSPReturnStates(saved, PETSC_FALSE));
    if (saved->direction) PetscCall(RecoupArrayRestore(&d));
    PetscCall(RecoupArrayRestore(&x));
    RecoupCall(code);
    /* Versions are numbered on from one of another problem, whose iterations are none of this solve's. */
    done = how == RECOUP_FIRST_GUESS ? 0 : (PetscInt)iteration;
    if (iterations) *iterations = done;
    if (code == RECOUP_NO_VERSION) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    saved->run.base = (PetscInt)iteration;
    PetscCall(RecoupKSPContinue(saved, done, how >= RECOUP_DEFLATED ? PETSC_TRUE : PETSC_FALSE));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Leaves A and the KSP as they were before. No version may be on its way. */
static inline PetscErrorCode RecoupKSPSettle(RecoupKSP saved)
{
    PetscReal rtol, atol, dtol;
    PetscFunctionBegin;
    PetscCall(RecoupKSPReturn(saved));
    if (saved->is_changed) {
        PetscCall(KSPGetTolerances(saved->ksp, &rtol, &atol, &dtol, NULL));
        PetscCall(KSPSetTolerances(saved->ksp, rtol, atol, dtol, saved->max_it));
        PetscCall(KSPSetInitialGuessNonzero(saved->ksp, saved->nonzero_guess));
    }
    if (saved->knoll_guess) PetscCall(KSPSetInitialGuessKnoll(saved->ksp, PETSC_TRUE));
    saved->is_changed = saved->knoll_guess = PETSC_FALSE;
    PetscCall(VecDestroy(&saved->restored));
    if (saved->deflation) PetscCall(KSPSetPC(saved->ksp, saved->pc));
    PetscCall(PCDestroy(&saved->deflation));
    PetscCall(VecDestroy(&saved->w));
    PetscCall(VecDestroy(&saved->Aw));
    PetscCall(VecDestroy(&saved->across));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Waits for the versions on their way, and leaves the KSP as it was before. Memory tiers are freed if KSPSolve has converged,
 * by its own KSPConvergedReason. Collective. */
static inline PetscErrorCode RecoupKSPDetach(RecoupKSP *attached)
{
    RecoupKSP   saved = *attached;
    RecoupSlot *slot;
    PetscBool   is_new = PETSC_FALSE;
    KSPConvergedReason reason;
    PetscFunctionBegin;
    PetscCall(RecoupSlotOf((PetscObject)saved->ksp, &slot, &is_new));
    slot->attached = NULL;
    PetscCall(KSPGetConvergedReason(saved->ksp, &reason));
    /* That one system has converged does not say that it was the last. */
    if (saved->has_begun && !saved->has_systems) PetscCall(RecoupRunConverged(&saved->run, reason > 0 ? PETSC_TRUE : PETSC_FALSE));
    PetscCall(RecoupRunClose(&saved->run));
    PetscCall(RecoupKSPSettle(saved));
    for (RecoupKSPState state = saved->states, next; state; state = next) {
        next = state->next;
        PetscCall(VecDestroy(&state->v));
        PetscCall(PetscFree(state->name));
        PetscCall(PetscFree(state));
    }
    PetscCall(PCDestroy(&saved->pc));
    PetscCall(VecDestroy(&saved->before));
    PetscCall(VecDestroy(&saved->iterate));
    PetscCall(VecDestroy(&saved->residual));
    PetscCall(VecDestroy(&saved->direction));
    PetscCall(VecDestroy(&saved->product_x));
    PetscCall(VecDestroy(&saved->product_y));
    PetscCall(PetscFree(*attached));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

#endif /* RECOUP_PETSC_KSP_H */
