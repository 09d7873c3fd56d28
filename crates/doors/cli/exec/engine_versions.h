/* engine_versions.h: versions within a call that takes long, and the resume of one that was killed in there. */
#ifndef ENGINE_VERSIONS_H
#define ENGINE_VERSIONS_H

#include "engine_log.h"

#define AFTER_SECONDS 10.0 /* a call that takes longer has versions; RECOUP_AFTER gives another time */

typedef PetscErrorCode (*solve_call)(KSP, Vec, Vec);

/* Whether versions of the call under way are saved, and when that is asked again. */
typedef struct {
    one_call      *call; /* NULL while none is to be watched */
    RecoupKSP      saved;
    PetscLogDouble start;
    PetscInt       next; /* iteration at which the first rank's clock is asked */
} version_watch;

static version_watch watch;

/* Attaches versions to the solve of this call: before it, or from a monitor. NULL if that cannot be. */
static PetscErrorCode attach(one_call *call, RecoupKSP *saved)
{
    char        all[PETSC_MAX_PATH_LEN], stream[24];
    const char *dir = getenv("RECOUP_DIR"), *options = getenv("RECOUP_OPTIONS");
    PetscFunctionBegin;
    stream_name(call->of->id, stream);
    snprintf(all, sizeof all, "dir=%s name=%s %s", dir ? dir : "", stream, options ? options : "");
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
    (void)PetscPushErrorHandler(PetscIgnoreErrorHandler, NULL);
    if (RecoupKSPDetach(saved)) say(of, recoup_message());
    (void)PetscPopErrorHandler();
    *saved = NULL;
}

/* Asks the first rank's clock now and then, and saves versions once the call has taken long. */
static PetscErrorCode watch_call(KSP ksp, PetscInt n, PetscReal norm, void *unused)
{
    double         seconds, after;
    PetscLogDouble now;
    PetscFunctionBegin;
    (void)norm;
    (void)unused;
    if (watch.call == NULL || watch.call->ksp != ksp || watch.saved || n < watch.next) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(PetscTime(&now));
    after   = number_of("RECOUP_AFTER", AFTER_SECONDS);
    seconds = now - watch.start;
    PetscCallMPI(MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, PetscObjectComm((PetscObject)ksp)));
    if (seconds < after) {
        double rate = PetscMax(n, 1) / PetscMax(seconds, 1e-6);
        watch.next  = n + (PetscInt)PetscMin(1e6, 1 + rate * (after - seconds) / 2);
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    PetscCall(PetscPushErrorHandler(PetscIgnoreErrorHandler, NULL));
    if (begin_versions(watch.call, &watch.saved)) {
        say(watch.call->of, recoup_message());
        end_versions(watch.call->of, &watch.saved);
        watch.call = NULL;
    }
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
    watch = (version_watch){call, saved, 0, 1};
    if (saved == NULL && (call->ksp->guess || call->of->log == 0 || call->is_inside)) watch.call = NULL;
    PetscCall(PetscTime(&watch.start));
    PetscErrorCode code = real(call->ksp, has_null ? NULL : call->b, has_null ? NULL : call->x);
    watch.call = NULL;
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

/* Solves from a version. `own` is the program's x, for a solve that fails. */
static PetscErrorCode solve_resumed(one_call *call, Vec own, solve_call real, PetscBool has_null, PetscBool *is_done)
{
    RecoupKSP saved = NULL;
    PetscInt  iterations = 0;
    int       code;
    PetscFunctionBegin;
    *is_done = PETSC_FALSE;
    PetscCall(VecCopy(call->x, own));
    PetscCall(PetscPushErrorHandler(PetscIgnoreErrorHandler, NULL));
    code = (int)resume(call, &saved, &iterations);
    if (code || iterations == 0) end_versions(call->of, &saved);
    PetscCall(PetscPopErrorHandler());
    if (saved) PetscCall(solve_on_trial(call, saved, iterations, real, has_null, is_done));
    if (*is_done) call->of->n_resumed++;
    else PetscCall(VecCopy(own, call->x));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

#endif /* ENGINE_VERSIONS_H */
