/* engine_numbers.h: the keys that a log has of its rows, and answers and versions whose rows have other numbers now. */
#ifndef ENGINE_NUMBERS_H
#define ENGINE_NUMBERS_H

#include "engine_log.h"
#include "engine_rows.h"

#define KEYS_OF_CALL    ((uint64_t)1 << 63) /* and a call's number: where the log has keys of its rows */
#define KEYS_OF_VERSION ((uint64_t)3 << 62) /* the same of the versions within that call */
#define GENERATION      ((uint64_t)1 << 56) /* further ones, of versions with other numbers than those before */
#define GENERATIONS_MAX 16
#define KEYS_SHARE      0.05                /* of the time of all solves so far, for keys, once */

/* Whether keys cost little beside so many seconds of solves. */
static PetscErrorCode are_keys_cheap(one_call *call, double seconds, PetscBool *are)
{
    double product = call->of->product;
    PetscFunctionBegin;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &product, 1, MPI_DOUBLE, MPI_MAX, PetscObjectComm((PetscObject)call->ksp)));
    *are = number_of("RECOUP_SHARE", SAVES_SHARE) >= 1 || (product > 0 && KEY_PRODUCTS * product <= KEYS_SHARE * seconds)
               ? PETSC_TRUE
               : PETSC_FALSE;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static PetscErrorCode key_rows(one_call *call, recoup_log_rows *rows)
{
    PetscFunctionBegin;
    PetscCall(rows_of(call->x, rows));
    rows->bytes = KEY_PARTS * (uint32_t)sizeof(double);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Puts the keys of A and b into the log, by the program's numbers. */
static PetscErrorCode put_keys(one_call *call, Vec b, uint64_t number)
{
    recoup_log_rows rows;
    double         *keys, facts[2];
    PetscReal       norm;
    PetscScalar     along;
    PetscBool       can;
    PetscFunctionBegin;
    PetscCall(key_rows(call, &rows));
    PetscCall(PetscMalloc1(rows.count * KEY_PARTS + 1, &keys));
    PetscCall(row_keys(call->A, b, keys, &can));
    PetscCall(VecNorm(b, NORM_2, &norm));
    PetscCall(VecDot(b, call->of->probe, &along));
    facts[0] = norm;
    facts[1] = PetscRealPart(along);
    if (can && call->of->log && recoup_log_put(call->of->log, number, &rows, facts, sizeof facts, keys) != RECOUP_OK) end_log(call->of);
    PetscCall(PetscFree(keys));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Puts keys into the log once. What fails there costs the program nothing. */
static void put_keys_once(one_call *call, Vec b, uint64_t number)
{
    (void)PetscPushErrorHandler(PetscReturnErrorHandler, NULL);
    (void)put_keys(call, b, number);
    (void)VecDestroy(&call->rows->first_b);
    (void)PetscPopErrorHandler();
    call->rows->has_keys = PETSC_TRUE;
}

/* Takes the keys of a call that was kept: now if they are cheap, else of its b later, while A is the same. */
static PetscErrorCode keep_keys(one_call *call)
{
    numbering *rows = call->rows;
    PetscBool  can, are_cheap;
    PetscFunctionBegin;
    if (rows->has_keys || rows->first_b) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(can_have_keys(call->A, &can));
    if (!can) rows->has_keys = PETSC_TRUE;
    if (!can) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(are_keys_cheap(call, call->of->solved, &are_cheap));
    if (are_cheap) {
        put_keys_once(call, call->b, KEYS_OF_CALL | call->number);
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    PetscCall(VecDuplicate(call->b, &rows->first_b));
    PetscCall(VecCopy(call->b, rows->first_b));
    rows->first_number = call->number;
    PetscCall(PetscObjectGetId((PetscObject)call->A, &rows->first_matrix));
    PetscCall(PetscObjectStateGet((PetscObject)call->A, &rows->first_state));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Takes the keys of a call before, once they are cheap. Before this call is solved: its program may change A after it. */
static PetscErrorCode keep_late_keys(one_call *call)
{
    numbering       *rows = call->rows;
    PetscObjectId    id;
    PetscObjectState state;
    PetscBool        are_cheap;
    PetscFunctionBegin;
    if (rows->first_b == NULL) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(PetscObjectGetId((PetscObject)call->A, &id));
    PetscCall(PetscObjectStateGet((PetscObject)call->A, &state));
    if (id != rows->first_matrix || state != rows->first_state) PetscCall(VecDestroy(&rows->first_b));
    if (rows->first_b == NULL) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(are_keys_cheap(call, call->of->solved, &are_cheap));
    if (!are_cheap) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(take_work(call));
    put_keys_once(call, rows->first_b, KEYS_OF_CALL | rows->first_number);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Reads keys of the log's rows: as many as this rank has. */
static PetscErrorCode find_keys(one_call *call, uint64_t number, double *keys, PetscBool *has)
{
    recoup_log_rows rows;
    double          facts[2] = {0};
    uint64_t        bytes = sizeof facts;
    PetscFunctionBegin;
    PetscCall(key_rows(call, &rows));
    int code = recoup_log_find(call->of->log, number, &rows, facts, &bytes, keys);
    PetscCall(agree(PetscObjectComm((PetscObject)call->ksp), code == RECOUP_OK && bytes == sizeof facts ? PETSC_TRUE : PETSC_FALSE,
                    (char *)facts, sizeof facts, has));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Counts the numberings that versions of this call may have. */
static PetscErrorCode count_generations(one_call *call, int *n)
{
    PetscInt  rows;
    double   *keys;
    PetscBool has = PETSC_TRUE;
    PetscFunctionBegin;
    PetscCall(VecGetLocalSize(call->x, &rows));
    PetscCall(PetscMalloc1(rows * KEY_PARTS + 1, &keys));
    for (*n = 0; *n < GENERATIONS_MAX; ++*n) {
        PetscCall(find_keys(call, KEYS_OF_VERSION | (uint64_t)*n * GENERATION | call->number, keys, &has));
        if (!has) break;
    }
    PetscCall(PetscFree(keys));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* A vector by the numbers of a log or a version, and what is asked of it by those of the program. */
typedef struct {
    one_call *call;
    uint64_t  keys;    /* their number in the log */
    Vec       raw;     /* by the numbers of the log */
    Vec       solved;  /* near to it, by the program's numbers, or NULL: it tells rows with equal keys apart */
    PetscReal allowed; /* residual of x */
    Vec       x;       /* the result */
    PetscReal residual;
    double   *ours, *theirs;
    row_item *items[2];
} row_search;

/* Sorts the rows of both by keys of one grid, and finds the number in the log of each of ours. */
static PetscErrorCode match_on_grid(row_search *search, int grid, PetscInt *log_rows, PetscBool *is_found)
{
    PetscLayout        layout = search->call->rows->layout;
    const PetscScalar *x[2] = {NULL, NULL};
    PetscInt           first, end;
    PetscFunctionBegin;
    PetscCall(PetscLayoutGetRange(layout, &first, &end));
    if (search->solved) PetscCall(VecGetArrayRead(search->solved, &x[0]));
    if (search->solved) PetscCall(VecGetArrayRead(search->raw, &x[1]));
    list_rows(search->ours, x[0], first, end - first, grid, search->items[0]);
    list_rows(search->theirs, x[1], first, end - first, grid, search->items[1]);
    if (search->solved) PetscCall(VecRestoreArrayRead(search->solved, &x[0]));
    if (search->solved) PetscCall(VecRestoreArrayRead(search->raw, &x[1]));
    PetscCall(match_rows(PetscObjectComm((PetscObject)search->call->ksp), layout, search->items[0], search->items[1], log_rows, is_found));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Brings x to the program's numbers, and measures it for A and b at hand. Without a scatter where it is not good enough. */
static PetscErrorCode try_match(row_search *search, const PetscInt *log_rows, VecScatter *from_log)
{
    IS       rows;
    PetscInt n;
    PetscFunctionBegin;
    PetscCall(VecGetLocalSize(search->x, &n));
    PetscCall(ISCreateGeneral(PetscObjectComm((PetscObject)search->x), n, log_rows, PETSC_COPY_VALUES, &rows));
    PetscCall(VecScatterCreate(search->raw, rows, search->x, NULL, from_log));
    PetscCall(ISDestroy(&rows));
    PetscCall(renumber(*from_log, search->raw, search->x, SCATTER_FORWARD));
    PetscCall(true_residual(search->call, search->x, &search->residual));
    if (!(search->residual <= search->allowed)) PetscCall(VecScatterDestroy(from_log));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Finds the rows of the log that a search asks for: a scatter to the program's numbers, and x by them; NULL where the
 * residual of x is above what is allowed in each try. `log_rows` has room for this rank's rows. */
static PetscErrorCode find_rows(row_search *search, PetscInt *log_rows, VecScatter *from_log)
{
    PetscInt  n;
    PetscBool is_found;
    PetscFunctionBegin;
    *from_log = NULL;
    PetscCall(VecGetLocalSize(search->x, &n));
    PetscCall(PetscMalloc4(n * KEY_PARTS + 1, &search->ours, n * KEY_PARTS + 1, &search->theirs, n + 1, &search->items[0], n + 1,
                           &search->items[1]));
    PetscCall(find_keys(search->call, search->keys, search->theirs, &is_found));
    if (is_found) PetscCall(row_keys(search->call->A, search->call->b, search->ours, &is_found));
    for (int grid = 0; is_found && *from_log == NULL && grid < N_GRIDS; grid++) {
        PetscBool is_match;
        PetscCall(match_on_grid(search, grid, log_rows, &is_match));
        if (is_match) PetscCall(try_match(search, log_rows, from_log));
    }
    PetscCall(PetscFree4(search->ours, search->theirs, search->items[0], search->items[1]));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Continues with the numbers of the log. */
static PetscErrorCode take_numbers(one_call *call, VecScatter from_log, PetscInt *log_rows)
{
    PetscFunctionBegin;
    call->rows->from_log = from_log;
    call->rows->log_rows = log_rows;
    call->rows->has_keys = PETSC_TRUE;
    PetscCall(VecDestroy(&call->rows->first_b));
    PetscCall(take_work(call));
    PetscCall(fingerprint(call));
    if (call->of->rank == 0) fprintf(stderr, "recoup: rows have other numbers than those saved, and were found again by A and b\n");
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Finds the rows of a kept call whose x has other numbers, and brings x to those at hand. `solved` is x of the same call, or
 * NULL. Else all is left as it is. */
static PetscErrorCode find_numbers(one_call *call, const kept_facts *kept, Vec x, Vec solved, PetscReal *residual, PetscBool *is_found)
{
    numbering *rows = call->rows;
    row_search search = {.call = call, .keys = KEYS_OF_CALL | call->number, .solved = solved, .x = x};
    VecScatter from_log = NULL;
    PetscInt   n, *log_rows;
    PetscFunctionBegin;
    *is_found = PETSC_FALSE;
    if (rows->from_log || !is_near(kept->norm_b, call->now.norm_b)) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    if (rows->raw == NULL) PetscCall(VecDuplicate(x, &rows->raw));
    PetscCall(VecCopy(x, rows->raw));
    PetscCall(VecGetLocalSize(x, &n));
    PetscCall(PetscMalloc1(n + 1, &log_rows));
    search.raw     = rows->raw;
    search.allowed = residual_allowed(kept, &call->now);
    PetscCall(find_rows(&search, log_rows, &from_log));
    if (from_log == NULL) {
        PetscCall(PetscFree(log_rows));
        PetscCall(VecCopy(rows->raw, x));
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    PetscCall(take_numbers(call, from_log, log_rows));
    *residual = search.residual;
    *is_found = PETSC_TRUE;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

#endif /* ENGINE_NUMBERS_H */
