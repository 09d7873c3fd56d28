/* engine_log.h: the calls of each set of ranks, what a call's problem is, and the log of finished calls. */
#ifndef ENGINE_LOG_H
#define ENGINE_LOG_H

#include <petsc/private/kspimpl.h>
#include <dirent.h>
#include <petsctime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "recoup_petsc.h"

#define SAVES_SHARE     0.01                /* of the time of all solves, for their saves; RECOUP_SHARE gives another */
#define SOLVE_MULTIPLE  10                  /* a call is kept if its solve took this many times its save at least */
#define COST_REMEMBERED 0.95                /* of what a save is thought to cost, at each call not kept for it */
#define LOG_BYTES_MAX   ((uint64_t)8 << 30) /* of all ranks */
#define NORMS_MAX       100000              /* of one call, for monitors */
#define SAME            1e-11               /* relative difference of fingerprints of one problem */
#define SLACK           1e-6                /* of a residual that was measured in another order of sums */
#define UNKNOWN         UINT64_MAX

/* What is kept of a call beside x. Alike on all ranks, and without gaps between its fields. */
typedef struct {
    int64_t its, reason, n_norms, norm_type;
    double  rnorm, residual, rtol, abstol, divtol, max_it;
    double  norm_b, zb, norm_Ax, zAx;
    char    type[32], pc_type[32];
} kept_facts;

/* The numbers that the log has for the rows of a layout of vectors. */
typedef struct numbering {
    PetscLayout layout;
    Vec         raw;      /* as x, by the numbers of the log, where they are others than the program's */
    VecScatter  from_log; /* to the program's numbers; NULL where these are those of the log */
    PetscInt   *log_rows; /* the number in the log of each row of this rank, with from_log */
    PetscBool   has_keys; /* the log has the keys of its rows, or there are none */
    Vec         first_b;  /* a copy of that of a kept call, of whose rows keys are taken once they cost little, or NULL */
    uint64_t    first_number;
    PetscObjectId     first_matrix;
    PetscObjectState  first_state;
    struct numbering *next;
} numbering;

/* A set of ranks, and its calls. */
typedef struct calls_of_ranks {
    uint64_t    id;
    recoup_log  log; /* 0 when nothing is kept */
    int         rank;
    uint64_t    number; /* of the next call */
    double      cost;   /* seconds that a save of this rank is thought to take */
    double      spent;  /* seconds of the last save of this rank, which the budget does not know yet */
    double      budget; /* seconds that saves may take, alike on all ranks; below 0 after a save that took longer */
    double      solved; /* seconds of all solves, alike on all ranks */
    double      product; /* seconds of a product with A, alike on all ranks; 0 before one was timed */
    numbering  *numberings;
    Vec         kept_x; /* as x of the call before, while calls are answered */
    char       *facts;  /* room for those of one call */
    uint64_t    n_replayed, n_guessed, n_resumed, n_kept, n_left;
    PetscBool   has_calls;  /* of an earlier start */
    PetscBool   has_told;   /* why a kept call is no answer */
    uint64_t    resumes_at; /* the call of which an earlier start has left a version */
    PetscBool   may_resume; /* no call was asked yet whether it is that one, or it is known and comes later */
    struct calls_of_ranks *next;
} calls_of_ranks;

/* One call. */
typedef struct {
    KSP             ksp;
    Vec             b, x;
    Mat             A;
    calls_of_ranks *of;
    numbering      *rows;
    uint64_t        number;
    PetscBool       is_found;   /* it continues from a version whose rows had other numbers */
    PetscBool       is_watched; /* monitors of ours may be called */
    PetscBool       is_inside;  /* KSPSolve is under way, and does all that is around a solve */
    PetscBool       is_solving; /* the method is at work */
    PetscInt        n_borrowed; /* vectors that are written over now */
    kept_facts      now; /* of A, b and the tolerances at hand */
} one_call;

static calls_of_ranks *all_calls;
static double         *norms; /* of the call under way, where a monitor of the program looks at them */
static int64_t         n_norms;

/* A number that `recoup exec` gives, or the one that holds without it. */
static double number_of(const char *variable, double without)
{
    const char *text = getenv(variable);
    return text ? atof(text) : without;
}

/* Processor time of this thread: next to other work, a clock on the wall makes solves longer and saves affordable. */
static double processor_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Waits of this thread, as for a disk. */
static long n_waits(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static void say(const calls_of_ranks *of, const char *what)
{
    if (of->rank == 0) fprintf(stderr, "recoup: nothing more is saved: %s\n", what);
}

/* Ranks as numbers of the world, in one number: 0 for all of them, so that another number of ranks is the same set. Numbers
 * of another kind are of another PETSc, which may be in the same process. */
static PetscErrorCode ranks_id(MPI_Comm comm, uint64_t *id)
{
    MPI_Group ours, world;
    int       size, all, *of_world;
    PetscFunctionBegin;
    *id = sizeof(PetscScalar) == sizeof(double) ? 0 : sizeof(PetscScalar);
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
    *id ^= 14695981039346656037ULL;
    for (int i = 0; i < size; i++) *id = (*id ^ (uint64_t)of_world[i]) * 1099511628211ULL;
    PetscCall(PetscFree(of_world));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* PETSc counts what was not destroyed. */
static PetscErrorCode free_work(void)
{
    PetscFunctionBegin;
    for (calls_of_ranks *of = all_calls; of; of = of->next) {
        PetscCall(VecDestroy(&of->kept_x));
        for (numbering *rows = of->numberings; rows; rows = rows->next) {
            PetscCall(VecDestroy(&rows->raw));
            PetscCall(VecDestroy(&rows->first_b));
            PetscCall(VecScatterDestroy(&rows->from_log));
            PetscCall(PetscFree(rows->log_rows));
            PetscCall(PetscLayoutDestroy(&rows->layout));
        }
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static void stream_name(uint64_t id, char name[24]) { snprintf(name, 24, "%016llx", (unsigned long long)id); }

/* Whether an earlier start has left versions of these ranks, and whether it has left calls. */
static PetscErrorCode find_traces(calls_of_ranks *of, MPI_Comm comm, const char *dir, const char *stream)
{
    char           path[PETSC_MAX_PATH_LEN];
    int            has[2] = {0};
    struct dirent *file;
    PetscFunctionBegin;
    snprintf(path, sizeof path, "%s/%s", dir ? dir : "", stream);
    has[0] = access(path, F_OK) == 0;
    snprintf(path, sizeof path, "%s/calls", dir ? dir : "");
    DIR *calls = opendir(path);
    while (calls && (file = readdir(calls)) != NULL) has[1] |= strncmp(file->d_name, stream, strlen(stream)) == 0;
    if (calls) closedir(calls);
    PetscCallMPI(MPI_Bcast(has, 2, MPI_INT, 0, comm));
    of->may_resume = has[0] ? PETSC_TRUE : PETSC_FALSE;
    of->has_calls  = has[1] ? PETSC_TRUE : PETSC_FALSE;
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
    stream_name(id, stream);
    PetscCall(find_traces(*found, comm, dir, stream));
    (*found)->resumes_at = UNKNOWN;
    if (recoup_log_open(dir, stream, (*found)->rank, size, LOG_BYTES_MAX / (uint64_t)size, &(*found)->log) != RECOUP_OK) {
        say(*found, recoup_message());
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* The numbering of vectors as x. Layouts that differ on one rank are others on all. */
static PetscErrorCode numbering_of(calls_of_ranks *of, Vec x, numbering **rows)
{
    PetscLayout layout;
    PetscBool   is_same = PETSC_FALSE;
    PetscFunctionBegin;
    PetscCall(VecGetLayout(x, &layout));
    for (*rows = of->numberings; *rows; *rows = (*rows)->next) {
        PetscCall(PetscLayoutCompare((*rows)->layout, layout, &is_same));
        if (is_same) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    *rows = (numbering *)calloc(1, sizeof(numbering));
    PetscCheck(*rows, PETSC_COMM_SELF, PETSC_ERR_MEM, "no memory");
    PetscCall(PetscLayoutReference(layout, &(*rows)->layout));
    (*rows)->next  = of->numberings;
    of->numberings = *rows;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Brings a vector from the numbers of the log to those of the program, or with SCATTER_REVERSE back. */
static PetscErrorCode renumber(VecScatter from_log, Vec from, Vec to, ScatterMode mode)
{
    PetscFunctionBegin;
    PetscCall(VecScatterBegin(from_log, from, to, INSERT_VALUES, mode));
    PetscCall(VecScatterEnd(from_log, from, to, INSERT_VALUES, mode));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* The projection of v on values that every row has for itself, on any number of ranks: by its number, or by the one that
 * `numbers` has. */
static PetscErrorCode project(Vec v, const PetscInt *numbers, double *along)
{
    PetscInt           first, end;
    const PetscScalar *values;
    double             mine = 0;
    PetscFunctionBegin;
    PetscCall(VecGetOwnershipRange(v, &first, &end));
    PetscCall(VecGetArrayRead(v, &values));
    for (PetscInt row = first; row < end; row++) {
        uint64_t mixed = ((uint64_t)(numbers ? numbers[row - first] : row) + 1) * 0x9E3779B97F4A7C15ULL;
        mixed ^= mixed >> 29;
        mixed *= 0xBF58476D1CE4E5B9ULL;
        mine += PetscRealPart(values[row - first]) * ((double)(mixed >> 11) / 4503599627370496.0 - 1.0);
    }
    PetscCall(VecRestoreArrayRead(v, &values));
    PetscCallMPI(MPI_Allreduce(&mine, along, 1, MPI_DOUBLE, MPI_SUM, PetscObjectComm((PetscObject)v)));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Whether `ours` can be in the place of `theirs`. */
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
    if (*fits) PetscCall(PetscLayoutCompare(layouts[0], layouts[1], fits));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Vectors to write over, as `like`: those that the method of the KSP works with, unless it is at work, and new ones beyond
 * them. */
static PetscErrorCode borrow_vectors(one_call *call, Vec like, PetscInt n, Vec *vectors)
{
    KSP       ksp    = call->ksp;
    PetscInt  n_lent = ksp->work && !call->is_solving ? ksp->nwork : 0;
    PetscBool fits;
    PetscFunctionBegin;
    for (PetscInt i = 0; i < n; i++, call->n_borrowed++) {
        Vec lent = call->n_borrowed < n_lent ? ksp->work[call->n_borrowed] : NULL;
        PetscCall(is_alike(lent, like, &fits));
        if (fits) PetscCall(PetscObjectReference((PetscObject)lent));
        vectors[i] = fits ? lent : NULL;
        if (!fits) PetscCall(VecDuplicate(like, &vectors[i]));
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static PetscErrorCode return_vectors(one_call *call, PetscInt n, Vec *vectors)
{
    PetscFunctionBegin;
    for (PetscInt i = 0; i < n; i++, call->n_borrowed--) PetscCall(VecDestroy(&vectors[i]));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* A product, and the time it takes. */
static PetscErrorCode multiply(one_call *call, Vec x, Vec y)
{
    const double start = processor_seconds();
    PetscFunctionBegin;
    PetscCall(MatMult(call->A, x, y));
    call->of->product = processor_seconds() - start;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* What the problem at hand is, but for A and its answer. */
static PetscErrorCode fingerprint(one_call *call)
{
    KSP         ksp = call->ksp;
    PetscReal   norm;
    PC          pc;
    const char *type, *pc_type;
    PetscFunctionBegin;
    PetscCall(VecNorm(call->b, NORM_2, &norm));
    call->now.norm_b = norm;
    PetscCall(project(call->b, call->rows->log_rows, &call->now.zb));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(KSPGetType(ksp, &type));
    PetscCall(PCGetType(pc, &pc_type));
    PetscCall(PetscStrncpy(call->now.type, type ? type : "", sizeof call->now.type));
    PetscCall(PetscStrncpy(call->now.pc_type, pc_type ? pc_type : "", sizeof call->now.pc_type));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* The norm of b - A x, and what A x tells of A: another A that gives this x the same product has it as an answer, too. */
static PetscErrorCode measure(one_call *call, Vec x, PetscReal *residual)
{
    Vec       r;
    PetscReal norm;
    PetscFunctionBegin;
    PetscCall(borrow_vectors(call, call->b, 1, &r));
    PetscCall(multiply(call, x, r));
    PetscCall(VecNorm(r, NORM_2, &norm));
    call->now.norm_Ax = norm;
    PetscCall(project(r, call->rows->log_rows, &call->now.zAx));
    PetscCall(VecAYPX(r, -1.0, call->b));
    PetscCall(VecNorm(r, NORM_2, residual));
    PetscCall(return_vectors(call, 1, &r));
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
    VecScatter      from_log = call->rows->from_log;
    Vec             into = from_log ? call->rows->raw : x;
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
    PetscCall(VecGetArray(into, &values));
    double none = 0; /* a rank may have no rows */
    int code = recoup_log_find(of->log, call->number, &rows, of->facts, &bytes, rows.count ? (void *)values : (void *)&none);
    PetscCall(VecRestoreArray(into, &values));
    const kept_facts *facts = (const kept_facts *)of->facts;
    is_here = code == RECOUP_OK && bytes >= sizeof(kept_facts) && facts->n_norms >= 0 &&
              bytes == sizeof(kept_facts) + (uint64_t)facts->n_norms * sizeof(double)
                  ? PETSC_TRUE
                  : PETSC_FALSE;
    PetscCall(agree(PetscObjectComm((PetscObject)call->ksp), is_here, of->facts, bytes, &is_kept));
    if (is_kept) *kept = facts;
    if (is_kept && from_log) PetscCall(renumber(from_log, into, x, SCATTER_FORWARD));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static int is_near(double one, double other) { return fabs(one - other) <= SAME * PetscMax(fabs(one), fabs(other)); }

/* Another order of sums leaves a projection this much: it is a sum of terms up to the norm. */
static int is_near_along(double one, double other, double norm) { return fabs(one - other) <= SAME * norm; }

static int is_same_problem(const kept_facts *kept, const kept_facts *now, double n_rows)
{
    double rows = PetscSqrtReal(n_rows);
    return is_near(kept->norm_b, now->norm_b) && is_near(kept->norm_Ax, now->norm_Ax) &&
           is_near_along(kept->zb, now->zb, rows * now->norm_b) && is_near_along(kept->zAx, now->zAx, rows * now->norm_Ax);
}

static int is_same_method(const kept_facts *kept, const kept_facts *now)
{
    return strcmp(kept->type, now->type) == 0 && strcmp(kept->pc_type, now->pc_type) == 0;
}

/* The residual that a kept x may have. */
static double residual_allowed(const kept_facts *kept, const kept_facts *now)
{
    return kept->residual * (1 + SLACK) + 64 * PETSC_MACHINE_EPSILON * now->norm_b;
}

/* The tolerances of KSPSolve, which a hook before it may just have set. */
static int is_as_exact(const kept_facts *kept, KSP ksp)
{
    return kept->rtol <= ksp->rtol * (1 + SAME) && kept->abstol <= ksp->abstol * (1 + SAME);
}

/* Says that nothing more is saved, and why. */
static void end_log(calls_of_ranks *of)
{
    say(of, recoup_message());
    (void)recoup_log_close(of->log);
    of->log = 0;
}

/* Puts the call into the log, by its numbers. */
static PetscErrorCode put(one_call *call)
{
    calls_of_ranks    *of = call->of;
    VecScatter         from_log = call->rows->from_log;
    Vec                x = from_log ? call->rows->raw : call->x;
    KSP                ksp = call->ksp;
    recoup_log_rows    rows;
    const PetscScalar *values;
    PetscReal          residual;
    PetscFunctionBegin;
    PetscCall(measure(call, call->x, &residual));
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
    if (from_log) PetscCall(renumber(from_log, call->x, x, SCATTER_REVERSE));
    PetscCall(rows_of(x, &rows));
    PetscCall(VecGetArrayRead(x, &values));
    const void *first = rows.count ? (const void *)values : (const void *)facts;
    int code = recoup_log_put(of->log, call->number, &rows, facts, bytes, first);
    PetscCall(VecRestoreArrayRead(x, &values));
    free(facts);
    if (code == RECOUP_OK) of->n_kept++;
    else end_log(of);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Keeps the call if that costs little beside its solve of so many seconds, and beside all solves so far. Says, alike on all
 * ranks, whether it was to be kept. */
static PetscErrorCode keep(one_call *call, double seconds, PetscBool *is_kept)
{
    calls_of_ranks *of = call->of;
    double          mine[4] = {seconds, of->cost, of->log == 0, of->spent}, most[4] = {0};
    PetscLogDouble  start, end;
    PetscFunctionBegin;
    *is_kept = PETSC_FALSE;
    PetscCallMPI(MPI_Allreduce(mine, most, 4, MPI_DOUBLE, MPI_MAX, PetscObjectComm((PetscObject)call->ksp)));
    if (most[2] > 0) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    double share = number_of("RECOUP_SHARE", SAVES_SHARE);
    of->budget += share * most[0] - most[3];
    of->solved += most[0];
    of->spent = 0;
    if (share <= 0 || (share < 1 && (most[0] < SOLVE_MULTIPLE * most[1] || of->budget < most[1]))) {
        of->cost *= COST_REMEMBERED;
        of->n_left++;
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    const double processor = processor_seconds();
    const long   waits     = n_waits();
    PetscCall(PetscTime(&start));
    if (call->now.type[0] == '\0') PetscCall(fingerprint(call));
    PetscCall(put(call));
    PetscCall(PetscTime(&end));
    of->spent = of->cost = n_waits() > waits ? end - start : processor_seconds() - processor;
    *is_kept  = PETSC_TRUE;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

#endif /* ENGINE_LOG_H */
