/* engine_numbers.h: the keys that a log has of its rows, and answers and versions whose rows have other numbers now. */
#ifndef ENGINE_NUMBERS_H
#define ENGINE_NUMBERS_H

#include "engine_log.h"
#include "engine_rows.h"

#define KEYS_OF_CALL    ((uint64_t)1 << 63) /* and a call's number: where the log has keys of its rows */
#define KEYS_OF_VERSION ((uint64_t)3 << 62) /* the same of the versions within that call */
#define GENERATION      ((uint64_t)1 << 56) /* further ones, of versions with other numbers than those before */
#define GENERATIONS_MAX 16
#define NEXT_KEY        ((uint64_t)1 << 60) /* each key has an entry of its own */
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

/* Puts the keys of A and b into the log, by the program's numbers. `b` is written over. */
static PetscErrorCode put_keys(one_call *call, Vec b, uint64_t number)
{
    recoup_log_rows    rows;
    Vec                vectors[KEY_VECTORS] = {b};
    const PetscScalar *values;
    double             facts[2];
    PetscReal          norm;
    PetscBool          is_usable = PETSC_TRUE;
    PetscFunctionBegin;
    PetscCall(rows_of(call->x, &rows));
    PetscCall(VecNorm(b, NORM_2, &norm));
    facts[0] = norm;
    PetscCall(project(b, call->rows->log_rows, &facts[1]));
    PetscCall(borrow_vectors(call, b, KEY_VECTORS - 1, vectors + 1));
    PetscCall(make_terms(call->A, vectors));
    for (int key = 0; key < N_KEYS && is_usable; key++) {
        PetscCall(make_key(vectors, key, &is_usable));
        PetscCall(VecGetArrayRead(vectors[KEY_TERMS], &values));
        const void *first = rows.count ? (const void *)values : (const void *)facts;
        int         code  = RECOUP_OK;
        if (is_usable && call->of->log) code = recoup_log_put(call->of->log, number + (uint64_t)key * NEXT_KEY, &rows, facts, sizeof facts, first);
        PetscCall(VecRestoreArrayRead(vectors[KEY_TERMS], &values));
        if (code != RECOUP_OK) end_log(call->of);
    }
    PetscCall(return_vectors(call, KEY_VECTORS - 1, vectors + 1));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Writes the keys of this rank's rows: all have their first key before the second. Not where A gives none. */
static PetscErrorCode own_keys(one_call *call, double *into, PetscBool *can)
{
    Vec                vectors[KEY_VECTORS];
    const PetscScalar *values;
    PetscInt           n;
    PetscFunctionBegin;
    PetscCall(can_have_keys(call->A, can));
    if (!*can) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    PetscCall(VecGetLocalSize(call->b, &n));
    PetscCall(borrow_vectors(call, call->b, KEY_VECTORS, vectors));
    PetscCall(VecCopy(call->b, vectors[0]));
    PetscCall(make_terms(call->A, vectors));
    for (int key = 0; key < N_KEYS && *can; key++) {
        PetscCall(make_key(vectors, key, can));
        PetscCall(VecGetArrayRead(vectors[KEY_TERMS], &values));
        double *part = into + (size_t)key * (size_t)n * RECOUP_PETSC_PARTS;
        for (PetscInt i = 0; i < n; i++, part += RECOUP_PETSC_PARTS) {
            part[0] = PetscRealPart(values[i]);
            if (RECOUP_PETSC_PARTS == 2) part[RECOUP_PETSC_PARTS - 1] = PetscImaginaryPart(values[i]);
        }
        PetscCall(VecRestoreArrayRead(vectors[KEY_TERMS], &values));
    }
    PetscCall(return_vectors(call, KEY_VECTORS, vectors));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Puts the keys of a call that was kept into the log, once. What fails there costs the program nothing. */
static void put_keys_once(one_call *call)
{
    numbering *rows = call->rows;
    (void)PetscPushErrorHandler(PetscReturnErrorHandler, NULL);
    (void)put_keys(call, rows->first_b, KEYS_OF_CALL | rows->first_number);
    (void)VecDestroy(&rows->first_b);
    (void)PetscPopErrorHandler();
    rows->has_keys = PETSC_TRUE;
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
    PetscCall(VecDuplicate(call->b, &rows->first_b));
    PetscCall(VecCopy(call->b, rows->first_b));
    rows->first_number = call->number;
    PetscCall(PetscObjectGetId((PetscObject)call->A, &rows->first_matrix));
    PetscCall(PetscObjectStateGet((PetscObject)call->A, &rows->first_state));
    PetscCall(are_keys_cheap(call, call->of->solved, &are_cheap));
    if (are_cheap) put_keys_once(call);
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
    put_keys_once(call);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Reads keys of the log's rows: as many as this rank has, or none of them where `keys` is NULL. */
static PetscErrorCode find_keys(one_call *call, uint64_t number, double *keys, PetscBool *has)
{
    recoup_log_rows rows;
    double          facts[N_KEYS][2] = {{0}}, none;
    PetscBool       is_here = PETSC_TRUE;
    PetscFunctionBegin;
    PetscCall(rows_of(call->x, &rows));
    if (keys == NULL) rows.count = 0;
    for (uint64_t key = 0; key < N_KEYS; key++) {
        void    *into  = keys && rows.count ? keys + key * rows.count * RECOUP_PETSC_PARTS : &none;
        uint64_t bytes = sizeof facts[key];
        int      code  = recoup_log_find(call->of->log, number + key * NEXT_KEY, &rows, facts[key], &bytes, into);
        if (code != RECOUP_OK || bytes != sizeof facts[key] || memcmp(facts[key], facts[0], bytes) != 0) is_here = PETSC_FALSE;
    }
    PetscCall(agree(PetscObjectComm((PetscObject)call->ksp), is_here, (char *)facts, sizeof facts, has));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Counts the numberings that versions of this call may have. */
static PetscErrorCode count_generations(one_call *call, int *n)
{
    PetscBool has = PETSC_TRUE;
    PetscFunctionBegin;
    for (*n = 0; *n < GENERATIONS_MAX; ++*n) {
        PetscCall(find_keys(call, KEYS_OF_VERSION | (uint64_t)*n * GENERATION | call->number, NULL, &has));
        if (!has) break;
    }
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
    PetscCall(measure(search->call, search->x, &search->residual));
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
    if (is_found) PetscCall(own_keys(search->call, search->ours, &is_found));
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
