/* engine_ts.h: TSSolve as one call, with versions of u, the time and the step. No residual tells whether a restored u
 * belongs to the problem at hand, so a version counts for the start it was saved of alone. */
#ifndef ENGINE_TS_H
#define ENGINE_TS_H

#include "engine_log.h"

typedef PetscErrorCode (*ts_call)(TS, Vec);

/* What a TSSolve starts from. Alike on all ranks, and without gaps between its fields. */
typedef struct {
    double rows, norm_u, zu, time, dt, end_time;
    char   type[32];
} ts_start;

static PetscErrorCode start_of(TS ts, Vec u, ts_start *start)
{
    PetscInt  rows;
    PetscReal norm, time, dt, end_time;
    double    along;
    TSType    type;
    PetscFunctionBegin;
    PetscCall(VecGetSize(u, &rows));
    PetscCall(VecNorm(u, NORM_2, &norm));
    PetscCall(project(u, NULL, &along));
    PetscCall(TSGetTime(ts, &time));
    PetscCall(TSGetTimeStep(ts, &dt));
    PetscCall(TSGetMaxTime(ts, &end_time));
    PetscCall(TSGetType(ts, &type));
    *start = (ts_start){rows, norm, along, time, dt, end_time, ""};
    PetscCall(PetscStrncpy(start->type, type ? type : "", sizeof start->type));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Says by name what another start has that this one has not; whether there is any. */
static int differs(const ts_start *kept, const ts_start *now, char *what, size_t bytes)
{
    const double scale = PetscSqrtReal(now->rows) * now->norm_u;
    const struct {
        const char *name;
        double      kept, now;
        int         is_same;
    } numbers[] = {
        {"rows", kept->rows, now->rows, kept->rows == now->rows},
        {"norm of u", kept->norm_u, now->norm_u, is_near(kept->norm_u, now->norm_u)},
        {"projection of u", kept->zu, now->zu, is_near_along(kept->zu, now->zu, scale)},
        {"initial time", kept->time, now->time, is_near(kept->time, now->time)},
        {"dt", kept->dt, now->dt, is_near(kept->dt, now->dt)},
        {"end time", kept->end_time, now->end_time, is_near(kept->end_time, now->end_time)},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].is_same) continue;
        snprintf(what, bytes, "%s %.12g expected, %.12g found", numbers[i].name, numbers[i].kept, numbers[i].now);
        return 1;
    }
    if (strcmp(kept->type, now->type) == 0) return 0;
    snprintf(what, bytes, "type %s expected, %s found", kept->type, now->type);
    return 1;
}

/* Brings the start from the log if this TSSolve had the same one before, and puts this one there if not. */
static PetscErrorCode agree_on_start(calls_of_ranks *of, MPI_Comm comm, uint64_t number, ts_start *now)
{
    const recoup_log_rows none = {.bytes = 1};
    ts_start  kept = {0};
    uint64_t  bytes = sizeof kept;
    char      nothing = 0, what[128];
    PetscBool is_kept;
    PetscFunctionBegin;
    int code = recoup_log_find(of->log, number, &none, &kept, &bytes, &nothing);
    PetscCall(agree(comm, code == RECOUP_OK && bytes == sizeof kept ? PETSC_TRUE : PETSC_FALSE, (char *)&kept, sizeof kept, &is_kept));
    if (is_kept && !differs(&kept, now, what, sizeof what)) {
        *now = kept;
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    if (is_kept && of->rank == 0) {
        fprintf(stderr, "recoup: call %llu, a TSSolve, is not resumed: %s\n", (unsigned long long)number, what);
    }
    RecoupCall(recoup_log_put(of->log, number, &none, now, sizeof *now, &nothing));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Attaches versions, whose name is that of the start, and continues from the newest. */
static PetscErrorCode begin_ts(calls_of_ranks *of, TS ts, Vec u, RecoupTS *saved)
{
    char        all[PETSC_MAX_PATH_LEN], stream[24];
    const char *dir = getenv("RECOUP_DIR"), *options = getenv("RECOUP_OPTIONS");
    uint64_t    name = 14695981039346656037ULL ^ of->id ^ of->number;
    ts_start    start;
    PetscInt    steps = 0;
    PetscFunctionBegin;
    PetscCall(start_of(ts, u, &start));
    PetscCall(agree_on_start(of, PetscObjectComm((PetscObject)ts), of->number, &start));
    for (size_t i = 0; i < sizeof start; i++) name = (name ^ ((unsigned char *)&start)[i]) * 1099511628211ULL;
    stream_name(name, stream);
    snprintf(all, sizeof all, "dir=%s name=%s %s scheme=lossless", dir ? dir : "", stream, options ? options : "");
    PetscCall(RecoupTSAttach(ts, u, all, saved));
    PetscCall(RecoupTSRestore(*saved, &steps));
    if (steps > 0) of->n_resumed++;
    of->n_kept++;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Ends versions. What fails there is said, and costs the program nothing. */
static PetscErrorCode end_ts(const calls_of_ranks *of, RecoupTS *saved)
{
    PetscFunctionBegin;
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    if (*saved && RecoupTSDetach(saved)) say(of, recoup_message());
    PetscCall(PetscPopErrorHandler());
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* TSSolve of the program, whose KSPs are none of its calls. */
PETSC_EXTERN PetscErrorCode recoup_engine_ts(TS ts, Vec u, void *unused, ts_call real)
{
    RecoupTS        saved = NULL;
    Vec             own   = u;
    calls_of_ranks *of;
    PetscFunctionBegin;
    (void)unused;
    PetscCall(calls_of(PetscObjectComm((PetscObject)ts), &of));
    if (own == NULL) PetscCall(TSGetSolution(ts, &own));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    int code = own ? (int)begin_ts(of, ts, own, &saved) : 0;
    of->number++;
    PetscCall(PetscPopErrorHandler());
    if (code) {
        say(of, recoup_message());
        PetscCall(end_ts(of, &saved));
    }
    PetscErrorCode ended = real(ts, u);
    PetscCall(end_ts(of, &saved));
    PetscCall(ended);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

#endif /* ENGINE_TS_H */
