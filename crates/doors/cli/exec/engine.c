/* The engine of `recoup exec` for one PETSc, compiled with the headers of that PETSc. It keeps a log of finished solves. A
 * program that is started again gets the answer of a call from there, once that answer was tested against A and b at
 * hand. Calls are numbered, for each set of ranks on its own. Nothing that goes wrong with the log reaches the program. */
#define _GNU_SOURCE
#include "engine_log.h"
#include "engine_numbers.h"
#include "engine_ts.h"
#include "engine_versions.h"

typedef PetscErrorCode (*view_call)(KSP, PetscViewer);

static PetscErrorCode keep_norm(KSP, PetscInt, PetscReal, void *);
static PetscErrorCode watch_call(KSP, PetscInt, PetscReal, void *);

/* Whether a monitor of the KSP is one of ours, which stay with it. */
static int is_ours(KSP ksp, PetscInt i)
{
    return ksp->monitor[i] == keep_norm || ksp->monitor[i] == watch_call || ksp->monitor[i] == RecoupKSPMonitor;
}

/* Whether the program has monitors, which show the norm of each iteration. */
static int has_shown_norms(KSP ksp)
{
    PetscInt n_ours = 0;
    for (PetscInt i = 0; i < ksp->numbermonitors; i++) n_ours += is_ours(ksp, i);
    return ksp->numbermonitors > n_ours;
}

/* Monitors that look at more than the norm need the solve. */
static int has_open_monitor(KSP ksp)
{
    for (PetscInt i = 0; i < ksp->numbermonitors; i++) {
        void *monitor = (void *)ksp->monitor[i];
        if (monitor == (void *)KSPMonitorTrueResidual || monitor == (void *)KSPMonitorTrueResidualMax ||
            monitor == (void *)KSPMonitorSolution || monitor == (void *)KSPMonitorError ||
            monitor == (void *)KSPMonitorSingularValue) {
            return 1;
        }
    }
    return ksp->viewRate || ksp->viewEV || ksp->viewSV || ksp->viewEVExp || ksp->viewFinalRes || ksp->calc_sings || ksp->viewMat ||
           ksp->viewPMat || ksp->viewRhs || ksp->viewSol || ksp->viewMatExp || ksp->viewPOpExp;
}

static PetscErrorCode take_vector(Vec given, Vec *own)
{
    PetscFunctionBegin;
    PetscCall(PetscObjectReference((PetscObject)given));
    PetscCall(VecDestroy(own));
    *own = given;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Has PETSc not name options of a preconditioner that is not set up as misspelled ones when it ends, as newer ones do. */
static PetscErrorCode keep_options_quiet(void)
{
    PetscBool is_set;
    PetscFunctionBegin;
    PetscCall(PetscOptionsHasName(NULL, NULL, "-options_left", &is_set));
    if (!is_set) PetscCall(PetscOptionsSetValue(NULL, "-options_left", "no"));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Leaves the KSP as a solve would that took these iterations, with the norms it shows. */
static PetscErrorCode give_solve_back(one_call *call, Vec x, const kept_facts *kept)
{
    KSP           ksp  = call->ksp;
    const double *norm = (const double *)(kept + 1);
    PetscFunctionBegin;
    PetscCall(VecCopy(x, call->x));
    KSPNormType type; /* chosen when it is asked for */
    PetscCall(KSPGetNormType(ksp, &type));
    if (ksp->res_hist_reset) ksp->res_hist_len = 0;
    ksp->rnorm = kept->rnorm;
    for (int64_t n = 0; n < kept->n_norms; n++) {
        ksp->its   = (PetscInt)n;
        ksp->rnorm = norm[n];
        PetscCall(KSPLogResidualHistory(ksp, norm[n]));
        PetscCall(KSPMonitor(ksp, (PetscInt)n, norm[n]));
    }
    ksp->its    = (PetscInt)kept->its;
    ksp->rnorm  = kept->rnorm;
    ksp->reason = (KSPConvergedReason)kept->reason;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Leaves the KSP as KSPSolve would, with what it prints. The preconditioner is not set up. */
static PetscErrorCode give_back(one_call *call, Vec x, const kept_facts *kept)
{
    KSP ksp = call->ksp;
    PetscFunctionBegin;
    PetscCall(keep_options_quiet());
    if (ksp->guess) { /* it remembers what it has proposed */
        PetscCall(KSPSetUp(ksp));
        PetscCall(KSPGuessSetUp(ksp->guess));
        PetscCall(KSPGuessFormGuess(ksp->guess, call->b, call->x));
    }
    PetscCall(give_solve_back(call, x, kept));
    ksp->totalits += ksp->its;
    if (ksp->postsolve) PetscCall(ksp->postsolve(ksp, call->b, call->x, ksp->postctx));
    if (ksp->guess) PetscCall(KSPGuessUpdate(ksp->guess, call->b, call->x));
    PetscCall(show_end(ksp));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Says once why a kept call is no answer. */
static void tell_why(const one_call *call, const kept_facts *kept)
{
    calls_of_ranks   *of  = call->of;
    const kept_facts *now = &call->now;
    const char       *why = "A is another, or rows have other numbers";
    if (!is_same_method(kept, now)) why = "the method is another";
    if (!is_near(kept->norm_b, now->norm_b)) why = "b is another";
    if (of->rank == 0 && !of->has_told) {
        fprintf(stderr, "recoup: call %llu is solved again: %s\n", (unsigned long long)call->number, why);
    }
    of->has_told = PETSC_TRUE;
}

/* Answers the call from `kept`, whose x is given, if that x is as good for A and b at hand as it was. */
static PetscErrorCode replay(one_call *call, Vec x, const kept_facts *kept, PetscReal residual, PetscBool *is_done)
{
    KSP      ksp = call->ksp;
    PetscInt n;
    PetscFunctionBegin;
    *is_done = PETSC_FALSE;
    PetscCall(VecGetSize(x, &n));
    PetscBool is_as_good = residual <= residual_allowed(kept, &call->now) ? PETSC_TRUE : PETSC_FALSE;
    /* Rows that were found again may be in another order where that makes no difference, so projections may differ. */
    PetscBool is_found = call->rows->from_log && is_as_good && is_near(kept->norm_b, call->now.norm_b) ? PETSC_TRUE : PETSC_FALSE;
    if (!is_same_method(kept, &call->now) || (!is_found && !is_same_problem(kept, &call->now, (double)n))) {
        tell_why(call, kept);
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    if (!is_as_good || has_open_monitor(ksp)) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    if (has_shown_norms(ksp) && kept->n_norms == 0) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    if (ksp->presolve && !call->is_inside) PetscCall(ksp->presolve(ksp, call->b, call->x, ksp->prectx));
    if (!is_as_exact(kept, ksp)) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(call->is_inside ? give_solve_back(call, x, kept) : give_back(call, x, kept));
    *is_done = PETSC_TRUE;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static PetscErrorCode keep_norm(KSP ksp, PetscInt n, PetscReal norm, void *unused)
{
    (void)ksp;
    (void)unused;
    if (norms && n == n_norms && n_norms < NORMS_MAX) norms[n_norms++] = norm;
    return RECOUP_PETSC_SUCCESS;
}

/* Solves, from a version or the kept x if they are better than the program's own; from its own if that fails. */
static PetscErrorCode solve(one_call *call, Vec kept_x, PetscReal kept_residual, solve_call real, PetscBool has_null)
{
    KSP       ksp = call->ksp;
    Vec       own;
    PetscReal own_residual = call->now.norm_b;
    PetscBool is_nonzero, is_done = PETSC_FALSE;
    PetscFunctionBegin;
    PetscCall(KSPGetInitialGuessNonzero(ksp, &is_nonzero));
    if (kept_x && is_nonzero) PetscCall(measure(call, call->x, &own_residual));
    PetscBool is_better = kept_x && !ksp->guess && kept_residual < own_residual ? PETSC_TRUE : PETSC_FALSE;
    PetscBool may_resume = call->is_watched && !call->is_inside && call->of->may_resume && !ksp->guess ? PETSC_TRUE : PETSC_FALSE;
    if (!is_better && !may_resume) {
        PetscCall(solve_watched(call, NULL, real, has_null));
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    PetscCall(VecDuplicate(call->x, &own));
    if (may_resume) PetscCall(solve_resumed(call, own, real, has_null, &is_done));
    if (!is_done && is_better) {
        PetscCall(VecCopy(call->x, own));
        PetscCall(VecCopy(kept_x, call->x));
        PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
        PetscCall(solve_on_trial(call, NULL, 0, real, has_null, &is_done));
        PetscCall(KSPSetInitialGuessNonzero(ksp, is_nonzero));
        call->of->n_guessed++;
        if (!is_done) PetscCall(VecCopy(own, call->x));
    }
    if (!is_done) PetscCall(solve_watched(call, NULL, real, has_null));
    PetscCall(VecDestroy(&own));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Whether the call can be kept at all: its product and its vectors are what KSPSolve has. */
static PetscErrorCode can_be_kept(one_call *call, PetscBool *can)
{
    MatFactorType factor;
    PetscBool     is_assembled, is_scaled = PETSC_FALSE;
    PetscFunctionBegin;
    *can = PETSC_FALSE;
#if PETSC_VERSION_LT(3, 26, 0)
    PetscCall(KSPGetDiagonalScale(call->ksp, &is_scaled));
#endif
    if (call->b == NULL || call->x == NULL || call->b == call->x || is_scaled || call->ksp->transpose_solve) {
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    PetscCall(KSPGetOperators(call->ksp, &call->A, NULL));
    PetscCall(MatGetFactorType(call->A, &factor));
    PetscCall(MatAssembled(call->A, &is_assembled));
    if (factor != MAT_FACTOR_NONE || !is_assembled) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(MatHasOperation(call->A, MATOP_MULT, can));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Has a monitor of ours called by the KSP, which keeps it for its life. */
static PetscErrorCode set_monitor(KSP ksp, PetscErrorCode (*ours)(KSP, PetscInt, PetscReal, void *))
{
    PetscFunctionBegin;
    for (PetscInt i = 0; i < ksp->numbermonitors; i++) {
        if (ksp->monitor[i] == ours) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    if (ksp->numbermonitors < MAXKSPMONITORS) PetscCall(KSPMonitorSet(ksp, ours, NULL, NULL));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Whether a monitor of ours leaves the solve as it is: Richardson with a preconditioner that iterates on its own, as SOR
 * and multigrid do, iterates otherwise once the KSP has one. */
static PetscErrorCode can_be_watched(KSP ksp, PetscBool *can)
{
    PetscBool is_direct, is_richardson, has_own = PETSC_FALSE;
    PC        pc;
    PetscFunctionBegin;
    PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPPREONLY, &is_direct));
    PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPRICHARDSON, &is_richardson));
    PetscCall(KSPGetPC(ksp, &pc));
    if (is_richardson && !has_shown_norms(ksp)) PetscCall(PCApplyRichardsonExists(pc, &has_own));
    *can = is_direct || has_own ? PETSC_FALSE : PETSC_TRUE;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Sets our monitors: for versions where the solve is watched, and for the norms where a monitor of the program shows them. */
static PetscErrorCode set_monitors(KSP ksp, PetscBool is_watched)
{
    PetscFunctionBegin;
    if (has_shown_norms(ksp)) {
        if (norms == NULL) norms = (double *)malloc(NORMS_MAX * sizeof(double));
        PetscCall(set_monitor(ksp, keep_norm));
    }
    if (is_watched) PetscCall(set_monitor(ksp, watch_call));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Says what became of a call. */
static void explain(const one_call *call, const calls_of_ranks *before)
{
    const calls_of_ranks *of = call->of;
    const char *answer = of->n_replayed > before->n_replayed ? "answered from the log"
                         : of->n_resumed > before->n_resumed ? "resumed from a version"
                         : of->n_guessed > before->n_guessed ? "solved from the kept x"
                                                             : "solved";
    const char *kept = of->n_kept > before->n_kept ? ", saved" : of->n_left > before->n_left ? ", too short to save" : "";
    if (of->rank != 0 || getenv("RECOUP_EXPLAIN") == NULL) return;
    fprintf(stderr, "recoup: call %llu of %016llx: %s%s\n", (unsigned long long)call->number, (unsigned long long)of->id,
            answer, kept);
}

/* What an earlier start has left of a call. */
typedef struct {
    const kept_facts *facts; /* NULL without */
    Vec               x;
    PetscReal         residual;
    PetscBool         is_searched; /* by the numbers of its rows it is another problem's */
} kept_call;

/* Answers a call from the log, if there is an answer. */
static PetscErrorCode look_up(one_call *call, kept_call *kept, PetscBool *is_done)
{
    Vec      *x = &call->of->kept_x;
    PetscInt  n;
    PetscBool fits, is_found;
    PetscFunctionBegin;
    PetscCall(is_alike(*x, call->x, &fits));
    if (!fits) PetscCall(VecDestroy(x));
    if (!fits) PetscCall(VecDuplicate(call->x, x));
    PetscCall(find_kept(call, *x, &kept->facts));
    if (kept->facts == NULL) PetscCall(VecDestroy(x));
    if (kept->facts == NULL) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    kept->x = *x;
    PetscCall(fingerprint(call));
    PetscCall(measure(call, kept->x, &kept->residual));
    PetscCall(VecGetSize(kept->x, &n));
    kept->is_searched = !is_same_problem(kept->facts, &call->now, (double)n) && is_same_method(kept->facts, &call->now) ? PETSC_TRUE : PETSC_FALSE;
    if (kept->is_searched) PetscCall(find_numbers(call, kept->facts, kept->x, NULL, &kept->residual, &is_found));
    PetscCall(replay(call, kept->x, kept->facts, kept->residual, is_done));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Solves, and keeps the call. Where the keys of rows were not enough, x tells them apart: then it is the kept x again, with
 * which later calls are those that were kept. */
static PetscErrorCode solve_and_keep(one_call *call, kept_call *kept, solve_call real, PetscBool has_null)
{
    KSP       ksp = call->ksp;
    PetscBool is_direct, is_kept, is_found = PETSC_FALSE;
    PetscFunctionBegin;
    PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPPREONLY, &is_direct));
    PetscCall(can_be_watched(ksp, &call->is_watched));
    n_norms = 0;
    /* PREONLY has norms where a monitor of the program shows them: one of ours changes nothing then. */
    if (call->is_watched || (is_direct && has_shown_norms(ksp))) PetscCall(set_monitors(ksp, call->is_watched));
    /* From the kept x, a monitor that looks at the iterate would see another way, as would one of norms not kept. */
    int       sees_way = has_open_monitor(ksp) || (kept->facts && kept->facts->n_norms == 0 && has_shown_norms(ksp));
    PetscBool is_start = kept->facts && !is_direct && !sees_way ? PETSC_TRUE : PETSC_FALSE;
    PetscCall(keep_late_keys(call));
    double start = processor_seconds();
    PetscCall(solve(call, is_start ? kept->x : NULL, kept->residual, real, has_null));
    if (ksp->reason <= 0) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    start = processor_seconds() - start;
    if (kept->is_searched) PetscCall(find_numbers(call, kept->facts, kept->x, call->x, &kept->residual, &is_found));
    if (is_found && is_as_exact(kept->facts, ksp)) {
        PetscCall(VecCopy(kept->x, call->x));
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    PetscCall(keep(call, start, &is_kept));
    if (is_kept) PetscCall(keep_keys(call));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Answers a call from the log, or solves and keeps it. */
static PetscErrorCode take_call(one_call *call, solve_call real, PetscBool has_null)
{
    const calls_of_ranks before  = *call->of;
    kept_call            kept    = {0};
    PetscBool            is_done = PETSC_FALSE;
    PetscFunctionBegin;
    PetscCall(numbering_of(call->of, call->x, &call->rows));
    if (call->of->has_calls) PetscCall(look_up(call, &kept, &is_done));
    if (is_done) call->of->n_replayed++;
    else PetscCall(solve_and_keep(call, &kept, real, has_null));
    if (!is_done) PetscCall(VecDestroy(&call->of->kept_x));
    explain(call, &before);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* KSPSolve of the program. */
PETSC_EXTERN PetscErrorCode recoup_engine_solve(KSP ksp, Vec b, Vec x, solve_call real)
{
    one_call  call = {.ksp = ksp, .b = b, .x = x};
    PetscBool can, has_null = !b || !x ? PETSC_TRUE : PETSC_FALSE;
    PetscFunctionBegin;
    PetscCall(calls_of(PetscObjectComm((PetscObject)ksp), &call.of));
    call.number = call.of->number++;
    if (b) PetscCall(take_vector(b, &ksp->vec_rhs));
    if (x) PetscCall(take_vector(x, &ksp->vec_sol));
    /* A DM makes A, b and the start in here. */
    if (ksp->dmActive || has_null) PetscCall(KSPSetUp(ksp));
    if (b == NULL) call.b = ksp->vec_rhs;
    if (x == NULL) call.x = ksp->vec_sol;
    PetscCall(can_be_kept(&call, &can));
    if (can) PetscCall(take_call(&call, real, has_null));
    else PetscCall(real(ksp, b, x));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

#include "engine_append.h"

/* KSPView: what a solve shows of its preconditioner, of a KSP whose calls were all answered from the log. */
PETSC_EXTERN PetscErrorCode recoup_engine_view(KSP ksp, PetscViewer viewer, void *unused, view_call real)
{
    PetscFunctionBegin;
    (void)unused;
    if (ksp && ksp->reason > 0 && ksp->setupstage == KSP_SETUP_NEW && ksp->vec_rhs) {
        PetscCall(KSPSetUp(ksp));
        PetscCall(KSPSetUpOnBlocks(ksp));
    }
    PetscCall(real(ksp, viewer));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* One line for each set of ranks, from its first rank, when the program ends. */
__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("RECOUP_REPORT");
    FILE       *file = path ? fopen(path, "a") : NULL;
    for (calls_of_ranks *of = all_calls; of && file; of = of->next) {
        if (of->rank != 0) continue;
        uint64_t counts[6] = {of->number, of->n_kept, of->n_replayed, of->n_guessed, of->n_resumed, of->n_left};
        for (int i = 0; i < 6; i++) fprintf(file, "%llu%c", (unsigned long long)counts[i], i < 5 ? ' ' : '\n');
    }
    if (file) fclose(file);
}
