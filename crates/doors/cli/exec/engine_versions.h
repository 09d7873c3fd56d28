/* engine_versions.h: versions within a call that takes long, and the resume of one that was killed in there. */
#ifndef ENGINE_VERSIONS_H
#define ENGINE_VERSIONS_H

#include "engine_numbers.h"

#define AFTER_SECONDS 10.0 /* a call that takes longer has versions; RECOUP_AFTER gives another time */

typedef PetscErrorCode (*solve_call)(KSP, Vec, Vec);

/* Whether versions of the call under way are saved, and when that is asked again. */
typedef struct {
    one_call      *call; /* NULL while none is to be watched */
    RecoupKSP      saved;
    PetscBool      has_keys; /* the log has those of the rows of these versions */
    PetscLogDouble start;
    PetscInt       next; /* iteration at which the first rank's clock is asked */
} version_watch;

static version_watch watch;

/* The options of a run of versions. */
static void version_options(const calls_of_ranks *of, const char *kind, char all[PETSC_MAX_PATH_LEN])
{
    char        stream[24];
    const char *dir = getenv("RECOUP_DIR"), *options = getenv("RECOUP_OPTIONS");
    stream_name(of->id, stream);
    snprintf(all, PETSC_MAX_PATH_LEN, "%sdir=%s name=%s %s", kind, dir ? dir : "", stream, options ? options : "");
}

/* Attaches versions to the solve of this call: before it, or from a monitor. NULL if that cannot be. */
static PetscErrorCode attach(one_call *call, RecoupKSP *saved)
{
    char all[PETSC_MAX_PATH_LEN];
    PetscFunctionBegin;
    version_options(call->of, "", all);
    PetscCall(RecoupKSPAttachSystems(call->ksp, call->b, call->x, all, saved));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Begins versions in the middle of a solve, whose first norm the monitor of the header has missed. */
static PetscErrorCode begin_versions(one_call *call, RecoupKSP *saved)
{
    PetscFunctionBegin;
    PetscCall(attach(call, saved));
    PetscCall(RecoupKSPBeginSystem(*saved, (PetscInt)call->number));
    PetscCall(RecoupKSPNormB(*saved));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Ends versions of a call. What fails there is said, and costs the solve nothing. */
static void end_versions(const calls_of_ranks *of, RecoupKSP *saved)
{
    if (*saved == NULL) return;
    (void)PetscPushErrorHandler(PetscReturnErrorHandler, NULL);
    if (RecoupKSPDetach(saved)) say(of, recoup_message());
    (void)PetscPopErrorHandler();
    *saved = NULL;
}

/* Takes the keys of the rows of versions, once they cost little beside all solves, unless the log has the program's numbers,
 * and keys. */
static PetscErrorCode keep_version_keys(one_call *call, double seconds)
{
    numbering *rows = call->rows;
    Vec        b;
    PetscBool  can, are_cheap;
    int        n = GENERATIONS_MAX;
    PetscFunctionBegin;
    watch.has_keys = rows->has_keys && rows->from_log == NULL ? PETSC_TRUE : PETSC_FALSE;
    if (watch.has_keys) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(can_have_keys(call->A, &can));
    PetscCall(borrow_vectors(call, call->b, 1, &b));
    if (can && call->of->product == 0) PetscCall(multiply(call, call->b, b));
    PetscCall(are_keys_cheap(call, call->of->solved + seconds, &are_cheap));
    if (can && are_cheap) PetscCall(count_generations(call, &n));
    PetscCall(VecCopy(call->b, b));
    if (n < GENERATIONS_MAX) PetscCall(put_keys(call, b, KEYS_OF_VERSION | (uint64_t)n * GENERATION | call->number));
    PetscCall(return_vectors(call, 1, &b));
    watch.has_keys = !can || are_cheap ? PETSC_TRUE : PETSC_FALSE;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Asks the first rank's clock now and then, and saves versions once the call has taken long. */
static PetscErrorCode watch_call(KSP ksp, PetscInt n, PetscReal norm, void *unused)
{
    double         seconds, after, rate;
    PetscLogDouble now;
    PetscFunctionBegin;
    (void)norm;
    (void)unused;
    if (watch.call == NULL || watch.call->ksp != ksp || n < watch.next) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    if (watch.saved && watch.has_keys) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(PetscTime(&now));
    after   = number_of("RECOUP_AFTER", AFTER_SECONDS);
    seconds = now - watch.start;
    PetscCallMPI(MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, PetscObjectComm((PetscObject)ksp)));
    rate = PetscMax(n, 1) / PetscMax(seconds, 1e-6);
    /* Asked again after half of the time to the first version, or of what the call has taken so far. */
    watch.next = n + (PetscInt)PetscMin(1e6, 1 + rate * (seconds < after ? after - seconds : seconds) / 2);
    if (seconds < after) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    if (!watch.saved && begin_versions(watch.call, &watch.saved)) {
        say(watch.call->of, recoup_message());
        end_versions(watch.call->of, &watch.saved);
        watch.call = NULL;
    } else if (keep_version_keys(watch.call, seconds)) watch.has_keys = PETSC_TRUE;
    PetscCall(PetscPopErrorHandler());
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Brings x of this call back from a version, if there is one, and has the KSP continue from it. */
static PetscErrorCode resume(one_call *call, RecoupKSP *saved, PetscInt *iterations)
{
    calls_of_ranks *of = call->of;
    PetscInt        index = -1;
    PetscFunctionBegin;
    PetscCall(attach(call, saved));
    if (of->resumes_at == UNKNOWN) {
        PetscCall(RecoupKSPFindSystem(*saved, &index));
        of->may_resume = index >= (PetscInt)call->number ? PETSC_TRUE : PETSC_FALSE;
        of->resumes_at = (uint64_t)index;
    }
    if (!of->may_resume || of->resumes_at != call->number) {
        end_versions(of, saved);
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    of->may_resume = PETSC_FALSE;
    PetscCall(RecoupKSPBeginSystem(*saved, (PetscInt)call->number));
    PetscCall(RecoupKSPRestore(*saved, iterations));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Solves, with versions once the call has taken long, or with those that it was resumed from. */
static PetscErrorCode solve_watched(one_call *call, RecoupKSP saved, solve_call real, PetscBool has_null)
{
    PetscFunctionBegin;
    watch = (version_watch){call, saved, saved && !call->is_found ? PETSC_TRUE : PETSC_FALSE, 0, 1};
    if (saved == NULL && (call->ksp->guess || call->of->log == 0 || call->is_inside)) watch.call = NULL;
    PetscCall(PetscTime(&watch.start));
    call->is_solving = PETSC_TRUE;
    PetscErrorCode code = real(call->ksp, has_null ? NULL : call->b, has_null ? NULL : call->x);
    call->is_solving = PETSC_FALSE;
    watch.call       = NULL;
    end_versions(call->of, &watch.saved);
    PetscCall(code);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Shows what a solve ends with. */
static PetscErrorCode show_end(KSP ksp)
{
    PetscFunctionBegin;
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

/* Solves from another x than the program's. An end that is not converged is none of the program: it is neither shown nor an
 * error. The iterations before that x count. */
static PetscErrorCode solve_on_trial(one_call *call, RecoupKSP saved, PetscInt before, solve_call real, PetscBool has_null,
                                     PetscBool *is_done)
{
    KSP                ksp     = call->ksp;
    const PetscInt     n_views = ksp->numberreasonviews, total = ksp->totalits;
    const PetscBool    view = ksp->view, is_error = ksp->errorifnotconverged;
    const PetscOptions own = ((PetscObject)ksp)->options;
    PetscOptions       none;
    PetscErrorCode     code;
    PetscFunctionBegin;
    PetscCall(PetscOptionsCreate(&none));
    ((PetscObject)ksp)->options = none;
    ksp->numberreasonviews      = 0;
    ksp->view = ksp->errorifnotconverged = PETSC_FALSE;
    code                        = solve_watched(call, saved, real, has_null);
    ((PetscObject)ksp)->options = own;
    ksp->numberreasonviews      = n_views;
    ksp->view                   = view;
    ksp->errorifnotconverged    = is_error;
    PetscCall(PetscOptionsDestroy(&none));
    PetscCall(code);
    *is_done = ksp->reason > 0 ? PETSC_TRUE : PETSC_FALSE;
    if (*is_done) ksp->its += before;
    ksp->totalits = total + (*is_done && !call->is_inside ? ksp->its : 0);
    if (*is_done && !call->is_inside) PetscCall(show_end(ksp));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* The newest version as it is, by the numbers that its rows had when it was saved. */
typedef struct {
    Vec     x, d;
    int32_t lacks_direction;
} raw_version;

/* Lends a vector to be read, whatever it was to the method. */
static PetscErrorCode lend_raw(RecoupRun *run, const char *name, Vec v, RecoupArray *array)
{
    PetscFunctionBegin;
    PetscCall(RecoupArrayGet(v, array));
    PetscCall(RecoupRunProtect(run, name, RECOUP_DYNAMIC, array));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Reads the newest version without a look at its A and b. Returns whether it is of this call. */
static PetscErrorCode read_version(one_call *call, raw_version *version, PetscBool *is_read)
{
    char        all[PETSC_MAX_PATH_LEN];
    RecoupRun   run;
    RecoupArray x, d;
    uint64_t    index = UNKNOWN;
    PetscFunctionBegin;
    version_options(call->of, "systems ", all);
    PetscCall(RecoupRunOpen(PetscObjectComm((PetscObject)call->ksp), all, &run));
    PetscCall(lend_raw(&run, "x", version->x, &x));
    PetscCall(lend_raw(&run, "d", version->d, &d));
    RecoupCall(recoup_default(run.handle, "d"));
    int code = recoup_find_system(run.handle, &index);
    RecoupCall(recoup_is_default(run.handle, "d", &version->lacks_direction));
    PetscCall(RecoupArrayRestore(&d));
    PetscCall(RecoupArrayRestore(&x));
    PetscCall(RecoupRunClose(&run));
    *is_read = code == RECOUP_OK && index == call->number ? PETSC_TRUE : PETSC_FALSE;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Brings x of a version of this call, whose rows have other numbers, to those of the program. Without a scatter unless its
 * residual, for A and b at hand, is below that of x, from which the program starts. */
static PetscErrorCode find_version(one_call *call, Vec raw, VecScatter *from_version)
{
    numbering *rows = call->rows;
    row_search search = {.call = call, .raw = raw, .x = call->x, .allowed = call->now.norm_b};
    PetscBool  is_nonzero;
    PetscInt   n, *version_rows;
    int        generation;
    PetscFunctionBegin;
    PetscCall(KSPGetInitialGuessNonzero(call->ksp, &is_nonzero));
    if (is_nonzero) PetscCall(measure(call, call->x, &search.allowed));
    PetscCall(VecGetLocalSize(call->x, &n));
    PetscCall(PetscMalloc1(n + 1, &version_rows));
    *from_version = NULL;
    PetscCall(count_generations(call, &generation));
    while (generation-- > 0 && *from_version == NULL) {
        search.keys = KEYS_OF_VERSION | (uint64_t)generation * GENERATION | call->number;
        PetscCall(find_rows(&search, version_rows, from_version));
    }
    if (*from_version == NULL && rows->from_log) PetscCall(try_match(&search, rows->log_rows, from_version));
    PetscCall(PetscFree(version_rows));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Has the KSP continue from a version of this call whose rows are found again; NULL without. Of a method that is saved with
 * its direction, with that. Its iterations are not known here. */
static PetscErrorCode resume_found(one_call *call, RecoupKSP *saved)
{
    raw_version version = {0};
    VecScatter  from_version = NULL;
    PetscBool   is_read;
    PetscFunctionBegin;
    PetscCall(fingerprint(call));
    PetscCall(VecDuplicate(call->x, &version.x));
    PetscCall(VecDuplicate(call->x, &version.d));
    PetscCall(read_version(call, &version, &is_read));
    if (is_read) PetscCall(find_version(call, version.x, &from_version));
    call->is_found = from_version ? PETSC_TRUE : PETSC_FALSE;
    if (from_version) {
        PetscCall(attach(call, saved));
        PetscCall(RecoupKSPBeginSystem(*saved, (PetscInt)call->number));
        PetscCall(KSPGetInitialGuessNonzero(call->ksp, &(*saved)->nonzero_guess));
        if ((*saved)->direction) PetscCall(renumber(from_version, version.d, (*saved)->direction, SCATTER_FORWARD));
        PetscCall(RecoupKSPContinue(*saved, 0, version.lacks_direction ? PETSC_FALSE : PETSC_TRUE));
    }
    if (from_version && call->of->rank == 0) {
        fprintf(stderr, "recoup: call %llu continues from a version whose rows have other numbers, found again by A and b\n",
                (unsigned long long)call->number);
    }
    PetscCall(VecScatterDestroy(&from_version));
    PetscCall(VecDestroy(&version.x));
    PetscCall(VecDestroy(&version.d));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Solves from a version. `own` is the program's x, for a solve that fails. */
static PetscErrorCode solve_resumed(one_call *call, Vec own, solve_call real, PetscBool has_null, PetscBool *is_done)
{
    RecoupKSP saved = NULL;
    PetscInt  iterations = 0;
    int       code;
    PetscFunctionBegin;
    *is_done = PETSC_FALSE;
    PetscCall(VecCopy(call->x, own));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    code = (int)resume(call, &saved, &iterations);
    if (code || iterations == 0) end_versions(call->of, &saved);
    /* By the numbers of its rows it is a version of another problem. */
    if (code && call->of->resumes_at == call->number) {
        PetscCall(VecCopy(own, call->x));
        if (resume_found(call, &saved)) end_versions(call->of, &saved);
    }
    PetscCall(PetscPopErrorHandler());
    if (saved) PetscCall(solve_on_trial(call, saved, iterations, real, has_null, is_done));
    if (*is_done) call->of->n_resumed++;
    else PetscCall(VecCopy(own, call->x));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

#endif /* ENGINE_VERSIONS_H */
