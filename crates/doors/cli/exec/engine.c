/* The engine of `recoup exec` for one PETSc, compiled with the headers of that PETSc. It keeps a log of finished solves. A
 * program that is started again gets the answer of a call from there, once that answer was tested against A and b at
 * hand. Calls are numbered, for each set of ranks on its own. Nothing that goes wrong with the log reaches the program. */
#include <petsc/private/kspimpl.h>
#include <petsctime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recoup_petsc.h"

typedef PetscErrorCode (*solve_call)(KSP, Vec, Vec);

#define SAVES_SHARE    0.01            /* of the time of all solves, for their saves */
#define SOLVE_MULTIPLE 10              /* a call is kept if its solve took this many times its save at least */
#define COST_REMEMBERED 0.95           /* of what a save is thought to cost, at each call not kept for it */
#define LOG_BYTES_MAX  ((uint64_t)8 << 30) /* of all ranks */
#define NORMS_MAX      100000          /* of one call, for monitors */
#define SAME           1e-11           /* relative difference of fingerprints of one problem */
#define SLACK          1e-6            /* of a residual that was measured in another order of sums */

/* What is kept of a call beside x. Alike on all ranks, and without gaps between its fields. */
typedef struct {
    int64_t its, reason, n_norms, norm_type;
    double  rnorm, residual, rtol, abstol, divtol, max_it;
    double  norm_b, zb, norm_Az, zAz;
    char    type[32], pc_type[32];
} kept_facts;

/* A set of ranks, and its calls. */
typedef struct calls_of_ranks {
    uint64_t    id;
    recoup_log  log; /* 0 when nothing is kept */
    int         rank;
    uint64_t    number; /* of the next call */
    double      cost;   /* seconds of the last save of this rank */
    double      budget; /* seconds that saves may take, alike on all ranks */
    Vec         probe, work, kept_x; /* as b twice, and as x, of the call before */
    PetscObjectId    of_matrix; /* whose fingerprint is known */
    PetscObjectState at_state;
    double           norm_Az, zAz;
    char       *facts;  /* room for those of one call */
    uint64_t    n_replayed, n_guessed, n_kept, n_left;
    struct calls_of_ranks *next;
} calls_of_ranks;

/* One call. */
typedef struct {
    KSP             ksp;
    Vec             b, x;
    Mat             A;
    calls_of_ranks *of;
    uint64_t        number;
    kept_facts      now; /* of A, b and the tolerances at hand */
} one_call;

static calls_of_ranks *all_calls;
static double         *norms; /* of the call under way, where a monitor of the program looks at them */
static int64_t         n_norms;

static void say(const calls_of_ranks *of, const char *what)
{
    if (of->rank == 0) fprintf(stderr, "recoup: nothing more is saved: %s\n", what);
}

/* Ranks as numbers of the world, in one number: 0 for all of them, so that another number of ranks is the same set. */
static PetscErrorCode ranks_id(MPI_Comm comm, uint64_t *id)
{
    MPI_Group ours, world;
    int       size, all, *of_world;
    PetscFunctionBegin;
    *id = 0;
    PetscCallMPI(MPI_Comm_size(comm, &size));
    PetscCallMPI(MPI_Comm_size(MPI_COMM_WORLD, &all));
    if (size == all) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(PetscMalloc1(2 * size, &of_world));
    for (int i = 0; i < size; i++) of_world[size + i] = i;
    PetscCallMPI(MPI_Comm_group(comm, &ours));
    PetscCallMPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
    PetscCallMPI(MPI_Group_translate_ranks(ours, size, of_world + size, world, of_world));
    PetscCallMPI(MPI_Group_free(&ours));
    PetscCallMPI(MPI_Group_free(&world));
    *id = 14695981039346656037ULL;
    for (int i = 0; i < size; i++) *id = (*id ^ (uint64_t)of_world[i]) * 1099511628211ULL;
    PetscCall(PetscFree(of_world));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* PETSc counts what was not destroyed. */
static PetscErrorCode free_work(void)
{
    PetscFunctionBegin;
    for (calls_of_ranks *of = all_calls; of; of = of->next) {
        PetscCall(VecDestroy(&of->work));
        PetscCall(VecDestroy(&of->probe));
        PetscCall(VecDestroy(&of->kept_x));
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static PetscErrorCode calls_of(MPI_Comm comm, calls_of_ranks **found)
{
    uint64_t    id;
    const char *dir = getenv("RECOUP_DIR");
    char        stream[24];
    int         size;
    PetscFunctionBegin;
    PetscCall(ranks_id(comm, &id));
    for (*found = all_calls; *found && (*found)->id != id;) *found = (*found)->next;
    if (*found) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    *found = (calls_of_ranks *)calloc(1, sizeof(calls_of_ranks));
    PetscCheck(*found, PETSC_COMM_SELF, PETSC_ERR_MEM, "no memory");
    (*found)->id   = id;
    (*found)->next = all_calls;
    if (all_calls == NULL) PetscCall(PetscRegisterFinalize(free_work));
    all_calls      = *found;
    PetscCallMPI(MPI_Comm_rank(comm, &(*found)->rank));
    PetscCallMPI(MPI_Comm_size(comm, &size));
    snprintf(stream, sizeof stream, "%016llx", (unsigned long long)id);
    if (recoup_log_open(dir, stream, (*found)->rank, size, LOG_BYTES_MAX / (uint64_t)size, &(*found)->log) != RECOUP_OK) {
        say(*found, recoup_message());
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Values that every row has for itself, on any number of ranks. */
static PetscErrorCode set_probe(Vec z)
{
    PetscInt     first, end;
    PetscScalar *values;
    PetscFunctionBegin;
    PetscCall(VecGetOwnershipRange(z, &first, &end));
    PetscCall(VecGetArrayWrite(z, &values));
    for (PetscInt row = first; row < end; row++) {
        uint64_t mixed = ((uint64_t)row + 1) * 0x9E3779B97F4A7C15ULL;
        mixed ^= mixed >> 29;
        mixed *= 0xBF58476D1CE4E5B9ULL;
        values[row - first] = (double)(mixed >> 11) / 4503599627370496.0 - 1.0;
    }
    PetscCall(VecRestoreArrayWrite(z, &values));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Whether `ours`, which is as a vector of an earlier call, is as `theirs` too: then both have that one's layout. */
static PetscErrorCode is_alike(Vec ours, Vec theirs, PetscBool *fits)
{
    PetscLayout layouts[2];
    VecType     type;
    PetscFunctionBegin;
    *fits = PETSC_FALSE;
    if (ours == NULL) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(VecGetLayout(ours, &layouts[0]));
    PetscCall(VecGetLayout(theirs, &layouts[1]));
    PetscCall(VecGetType(theirs, &type));
    PetscCall(PetscObjectTypeCompare((PetscObject)ours, type, fits));
    if (layouts[0] != layouts[1]) *fits = PETSC_FALSE;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Vectors as b and x are, kept from call to call. */
static PetscErrorCode take_work(one_call *call)
{
    calls_of_ranks *of = call->of;
    PetscBool       fits;
    PetscFunctionBegin;
    PetscCall(is_alike(of->work, call->b, &fits));
    if (!fits) {
        PetscCall(VecDestroy(&of->work));
        PetscCall(VecDestroy(&of->probe));
        PetscCall(VecDuplicate(call->b, &of->work));
        PetscCall(VecDuplicate(call->b, &of->probe));
        PetscCall(set_probe(of->probe));
    }
    PetscCall(is_alike(of->kept_x, call->x, &fits));
    if (!fits) {
        PetscCall(VecDestroy(&of->kept_x));
        PetscCall(VecDuplicate(call->x, &of->kept_x));
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* One product for each state of A. A shell's state says nothing of what it applies. */
static PetscErrorCode fingerprint_matrix(one_call *call)
{
    calls_of_ranks  *of = call->of;
    PetscObjectId    id;
    PetscObjectState state;
    PetscBool        is_shell;
    Vec              z;
    PetscScalar      along;
    PetscReal        norm;
    PetscFunctionBegin;
    PetscCall(PetscObjectGetId((PetscObject)call->A, &id));
    PetscCall(PetscObjectStateGet((PetscObject)call->A, &state));
    PetscCall(PetscObjectTypeCompareAny((PetscObject)call->A, &is_shell, MATSHELL, MATMFFD, "python", ""));
    if (is_shell || id != of->of_matrix || state != of->at_state) {
        PetscCall(MatCreateVecs(call->A, &z, NULL));
        PetscCall(set_probe(z));
        PetscCall(MatMult(call->A, z, of->work));
        PetscCall(VecDestroy(&z));
        PetscCall(VecNorm(of->work, NORM_2, &norm));
        PetscCall(VecDot(of->work, of->probe, &along));
        of->of_matrix = id;
        of->at_state  = state;
        of->norm_Az   = norm;
        of->zAz       = PetscRealPart(along);
    }
    call->now.norm_Az = of->norm_Az;
    call->now.zAz     = of->zAz;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* What the problem at hand is, but for its answer. */
static PetscErrorCode fingerprint(one_call *call)
{
    KSP         ksp = call->ksp;
    PetscScalar along;
    PetscReal   norm;
    PC          pc;
    const char *type, *pc_type;
    PetscFunctionBegin;
    PetscCall(fingerprint_matrix(call));
    PetscCall(VecDot(call->b, call->of->probe, &along));
    PetscCall(VecNorm(call->b, NORM_2, &norm));
    call->now.norm_b = norm;
    call->now.zb     = PetscRealPart(along);
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(KSPGetType(ksp, &type));
    PetscCall(PCGetType(pc, &pc_type));
    PetscCall(PetscStrncpy(call->now.type, type ? type : "", sizeof call->now.type));
    PetscCall(PetscStrncpy(call->now.pc_type, pc_type ? pc_type : "", sizeof call->now.pc_type));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static PetscErrorCode true_residual(one_call *call, Vec x, PetscReal *norm)
{
    Vec r = call->of->work;
    PetscFunctionBegin;
    PetscCall(MatMult(call->A, x, r));
    PetscCall(VecAYPX(r, -1.0, call->b));
    PetscCall(VecNorm(r, NORM_2, norm));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static PetscErrorCode rows_of(Vec x, recoup_log_rows *rows)
{
    PetscInt first, end, global;
    PetscFunctionBegin;
    PetscCall(VecGetOwnershipRange(x, &first, &end));
    PetscCall(VecGetSize(x, &global));
    rows->first  = (uint64_t)first;
    rows->count  = (uint64_t)(end - first);
    rows->global = (uint64_t)global;
    rows->bytes  = (uint32_t)sizeof(PetscScalar);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Says whether all ranks have found the same call, and not one of them another or none. */
static PetscErrorCode agree(MPI_Comm comm, PetscBool is_here, const char *facts, uint64_t bytes, PetscBool *is_kept)
{
    int64_t  mine[3] = {is_here, 0, 0}, least[3];
    uint64_t hash = 14695981039346656037ULL;
    PetscFunctionBegin;
    for (uint64_t i = 0; is_here && i < bytes; i++) hash = (hash ^ (unsigned char)facts[i]) * 1099511628211ULL;
    mine[1] = (int64_t)hash;
    mine[2] = ~mine[1];
    PetscCallMPI(MPI_Allreduce(mine, least, 3, MPI_INT64_T, MPI_MIN, comm));
    *is_kept = least[0] && least[1] == ~least[2] ? PETSC_TRUE : PETSC_FALSE;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Reads what the log has of this call into `x`, and its facts; NULL when it has none that fits. */
static PetscErrorCode find_kept(one_call *call, Vec x, const kept_facts **kept)
{
    calls_of_ranks *of = call->of;
    recoup_log_rows rows;
    PetscScalar    *values;
    uint64_t        bytes = sizeof(kept_facts) + NORMS_MAX * sizeof(double);
    PetscBool       is_here, is_kept = PETSC_FALSE;
    PetscFunctionBegin;
    *kept = NULL;
    if (of->facts == NULL) of->facts = (char *)malloc(bytes);
    PetscCheck(of->facts, PETSC_COMM_SELF, PETSC_ERR_MEM, "no memory");
    PetscCall(rows_of(x, &rows));
    PetscCall(VecGetArray(x, &values));
    double none = 0; /* a rank may have no rows */
    int code = recoup_log_find(of->log, call->number, &rows, of->facts, &bytes, rows.count ? (void *)values : (void *)&none);
    PetscCall(VecRestoreArray(x, &values));
    const kept_facts *facts = (const kept_facts *)of->facts;
    is_here = code == RECOUP_OK && bytes >= sizeof(kept_facts) && facts->n_norms >= 0 &&
              bytes == sizeof(kept_facts) + (uint64_t)facts->n_norms * sizeof(double)
                  ? PETSC_TRUE
                  : PETSC_FALSE;
    PetscCall(agree(PetscObjectComm((PetscObject)call->ksp), is_here, of->facts, bytes, &is_kept));
    if (is_kept) *kept = facts;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static int is_near(double one, double other) { return fabs(one - other) <= SAME * PetscMax(fabs(one), fabs(other)); }

/* Another order of sums leaves a projection this much: it is a sum of terms up to the norm. */
static int is_near_along(double one, double other, double norm) { return fabs(one - other) <= SAME * norm; }

static int is_same_problem(const kept_facts *kept, const kept_facts *now, double n_rows)
{
    double rows = PetscSqrtReal(n_rows);
    return is_near(kept->norm_b, now->norm_b) && is_near(kept->norm_Az, now->norm_Az) &&
           is_near_along(kept->zb, now->zb, rows * now->norm_b) && is_near_along(kept->zAz, now->zAz, rows * now->norm_Az) &&
           strcmp(kept->type, now->type) == 0 && strcmp(kept->pc_type, now->pc_type) == 0;
}

/* The tolerances of KSPSolve, which a hook before it may just have set. */
static int is_as_exact(const kept_facts *kept, KSP ksp)
{
    return kept->rtol <= ksp->rtol * (1 + SAME) && kept->abstol <= ksp->abstol * (1 + SAME);
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
    return ksp->viewRate || ksp->viewEV || ksp->viewSV || ksp->viewEVExp || ksp->viewFinalRes || ksp->calc_sings;
}

static PetscErrorCode take_vector(Vec given, Vec *own)
{
    PetscFunctionBegin;
    PetscCall(PetscObjectReference((PetscObject)given));
    PetscCall(VecDestroy(own));
    *own = given;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Leaves the KSP as a solve would that took these iterations, with what it prints. The preconditioner is not set up. */
static PetscErrorCode give_back(one_call *call, Vec x, const kept_facts *kept)
{
    KSP           ksp  = call->ksp;
    const double *norm = (const double *)(kept + 1);
    PetscFunctionBegin;
    PetscCall(VecCopy(x, call->x));
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
    ksp->totalits += ksp->its;
    if (ksp->postsolve) PetscCall(ksp->postsolve(ksp, call->b, call->x, ksp->postctx));
    if (ksp->guess) {
        PetscCall(KSPSetUp(ksp));
        PetscCall(KSPGuessUpdate(ksp->guess, call->b, call->x));
    }
    PetscCall(KSPConvergedReasonViewFromOptions(ksp));
    if (ksp->view) {
        PetscCall(KSPSetUp(ksp));
        PetscCall(KSPSetUpOnBlocks(ksp));
        PetscCall(PetscViewerPushFormat(ksp->viewer, ksp->format));
        PetscCall(KSPView(ksp, ksp->viewer));
        PetscCall(PetscViewerPopFormat(ksp->viewer));
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Answers the call from `kept`, whose x is given, if that x is as good for A and b at hand as it was. */
static PetscErrorCode replay(one_call *call, Vec x, const kept_facts *kept, PetscReal residual, PetscBool *is_done)
{
    KSP      ksp = call->ksp;
    PetscInt n;
    PetscFunctionBegin;
    *is_done = PETSC_FALSE;
    PetscCall(VecGetSize(x, &n));
    double allowed = kept->residual * (1 + SLACK) + 64 * PETSC_MACHINE_EPSILON * call->now.norm_b;
    if (!is_same_problem(kept, &call->now, (double)n) || !(residual <= allowed) || has_open_monitor(ksp)) {
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    if (ksp->numbermonitors > 0 && kept->n_norms == 0) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    if (ksp->presolve) PetscCall(ksp->presolve(ksp, call->b, call->x, ksp->prectx));
    if (!is_as_exact(kept, ksp)) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(give_back(call, x, kept));
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

/* Has the norms of the solve kept where a monitor of the program shows them. */
static PetscErrorCode watch_norms(KSP ksp)
{
    PetscFunctionBegin;
    n_norms = 0;
    if (ksp->numbermonitors == 0) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    if (norms == NULL) norms = (double *)malloc(NORMS_MAX * sizeof(double));
    for (PetscInt i = 0; i < ksp->numbermonitors; i++) {
        if (ksp->monitor[i] == keep_norm) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    if (ksp->numbermonitors < MAXKSPMONITORS) PetscCall(KSPMonitorSet(ksp, keep_norm, NULL, NULL));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Puts the call into the log. */
static PetscErrorCode put(one_call *call)
{
    calls_of_ranks    *of = call->of;
    KSP                ksp = call->ksp;
    recoup_log_rows    rows;
    const PetscScalar *values;
    PetscReal          residual;
    PetscFunctionBegin;
    PetscCall(true_residual(call, call->x, &residual));
    if (PetscIsInfOrNanReal(residual)) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    call->now.its       = ksp->its;
    call->now.reason    = ksp->reason;
    call->now.norm_type = ksp->normtype;
    call->now.n_norms   = n_norms == ksp->its + 1 ? n_norms : 0;
    call->now.rnorm     = ksp->rnorm;
    call->now.residual  = residual;
    call->now.rtol      = ksp->rtol;
    call->now.abstol    = ksp->abstol;
    call->now.divtol    = ksp->divtol;
    call->now.max_it    = (double)ksp->max_it;
    uint64_t bytes = sizeof(kept_facts) + (uint64_t)call->now.n_norms * sizeof(double);
    char    *facts = (char *)malloc(bytes);
    PetscCheck(facts, PETSC_COMM_SELF, PETSC_ERR_MEM, "no memory");
    memcpy(facts, &call->now, sizeof(kept_facts));
    if (call->now.n_norms > 0) memcpy(facts + sizeof(kept_facts), norms, bytes - sizeof(kept_facts));
    PetscCall(rows_of(call->x, &rows));
    PetscCall(VecGetArrayRead(call->x, &values));
    const void *first = rows.count ? (const void *)values : (const void *)facts;
    int code = recoup_log_put(of->log, call->number, &rows, facts, bytes, first);
    PetscCall(VecRestoreArrayRead(call->x, &values));
    free(facts);
    if (code == RECOUP_OK) of->n_kept++;
    else {
        say(of, recoup_message());
        (void)recoup_log_close(of->log);
        of->log = 0;
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Keeps the call if that costs little beside its solve, and beside all solves so far. */
static PetscErrorCode keep(one_call *call, double seconds)
{
    calls_of_ranks *of = call->of;
    double          mine[3] = {seconds, of->cost, of->log == 0}, most[3] = {0};
    PetscLogDouble  start, end;
    PetscFunctionBegin;
    PetscCallMPI(MPI_Allreduce(mine, most, 3, MPI_DOUBLE, MPI_MAX, PetscObjectComm((PetscObject)call->ksp)));
    if (most[2] > 0) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    of->budget += SAVES_SHARE * most[0];
    if (most[0] < SOLVE_MULTIPLE * most[1] || of->budget < most[1]) {
        of->cost *= COST_REMEMBERED;
        of->n_left++;
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    of->budget -= most[1];
    PetscCall(PetscTime(&start));
    if (call->now.type[0] == '\0') PetscCall(fingerprint(call));
    PetscCall(put(call));
    PetscCall(PetscTime(&end));
    of->cost = end - start;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Solves, from the kept x if that is better than the program's own; from the program's own if that fails. */
static PetscErrorCode solve(one_call *call, Vec kept_x, PetscReal kept_residual, solve_call real, PetscBool has_null)
{
    KSP        ksp = call->ksp;
    Vec        own;
    PetscReal  own_residual;
    PetscBool  is_nonzero;
    Vec        b = has_null ? NULL : call->b, x = has_null ? NULL : call->x;
    PetscFunctionBegin;
    PetscCall(KSPGetInitialGuessNonzero(ksp, &is_nonzero));
    own_residual = call->now.norm_b;
    if (kept_x && is_nonzero) PetscCall(true_residual(call, call->x, &own_residual));
    if (!kept_x || ksp->guess || !(kept_residual < own_residual)) {
        PetscCall(real(ksp, b, x));
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    PetscCall(VecDuplicate(call->x, &own));
    PetscCall(VecCopy(call->x, own));
    PetscCall(VecCopy(kept_x, call->x));
    PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
    PetscCall(real(ksp, b, x));
    PetscCall(KSPSetInitialGuessNonzero(ksp, is_nonzero));
    call->of->n_guessed++;
    if (ksp->reason < 0) {
        PetscCall(VecCopy(own, call->x));
        PetscCall(real(ksp, b, x));
    }
    PetscCall(VecDestroy(&own));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Whether the call can be kept at all: its product and its vectors are what KSPSolve has. */
static PetscErrorCode can_be_kept(one_call *call, PetscBool *can)
{
    MatFactorType factor;
    PetscBool     is_assembled;
    PetscFunctionBegin;
    *can = PETSC_FALSE;
    if (call->b == NULL || call->x == NULL || call->b == call->x || call->ksp->dscale || call->ksp->transpose_solve) {
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    PetscCall(KSPGetOperators(call->ksp, &call->A, NULL));
    PetscCall(MatGetFactorType(call->A, &factor));
    PetscCall(MatAssembled(call->A, &is_assembled));
    if (factor != MAT_FACTOR_NONE || !is_assembled) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(MatHasOperation(call->A, MATOP_MULT, can));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* KSPSolve of the program. */
PETSC_EXTERN PetscErrorCode recoup_engine_solve(KSP ksp, Vec b, Vec x, solve_call real)
{
    one_call          call = {ksp, b, x, NULL, NULL, 0, {0}};
    const kept_facts *kept = NULL;
    Vec               kept_x;
    PetscReal         kept_residual = 0;
    PetscBool         can, is_done = PETSC_FALSE, has_null = !b || !x ? PETSC_TRUE : PETSC_FALSE;
    PetscLogDouble    start, end;
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
    if (!can) {
        PetscCall(real(ksp, b, x));
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    PetscCall(take_work(&call));
    kept_x = call.of->kept_x;
    PetscCall(find_kept(&call, kept_x, &kept));
    if (kept) {
        PetscCall(fingerprint(&call));
        PetscCall(true_residual(&call, kept_x, &kept_residual));
        PetscCall(replay(&call, kept_x, kept, kept_residual, &is_done));
    }
    if (is_done) {
        call.of->n_replayed++;
    } else {
        PetscBool is_direct;
        PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPPREONLY, &is_direct));
        PetscCall(watch_norms(ksp));
        PetscCall(PetscTime(&start));
        PetscCall(solve(&call, kept && !is_direct ? kept_x : NULL, kept_residual, real, has_null));
        PetscCall(PetscTime(&end));
        if (ksp->reason > 0) PetscCall(keep(&call, end - start));
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* One line for each set of ranks, from its first rank, when the program ends. */
__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("RECOUP_REPORT");
    FILE       *file = path ? fopen(path, "a") : NULL;
    for (calls_of_ranks *of = all_calls; of && file; of = of->next) {
        if (of->rank != 0) continue;
        fprintf(file, "%llu %llu %llu %llu %llu\n", (unsigned long long)of->number, (unsigned long long)of->n_kept,
                (unsigned long long)of->n_replayed, (unsigned long long)of->n_guessed, (unsigned long long)of->n_left);
    }
    if (file) fclose(file);
}
