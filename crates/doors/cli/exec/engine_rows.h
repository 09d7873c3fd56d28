/* engine_rows.h: rows that have other numbers than in an earlier start, found again by what both numberings share.
 *
 * The keys of a row are numbers that A and b alone give it: of b, of the diagonal d, and of u_k = T_k(I - 2 / lambda D^-1 A) s
 * for k = 12 and 24, where s has b and d, lambda bounds the eigenvalues, and T_k are Chebyshev's polynomials. These carry what
 * is special about a place one row further with each product, and lose nothing on the way, as damped Jacobi would. Rows of
 * both numberings are sorted by their keys, each rank has a part of the keys, and rows at the same place are a pair. Equal
 * keys are paired in any order, so whoever asks tests what comes of it. */
#ifndef ENGINE_ROWS_H
#define ENGINE_ROWS_H

#include <petscksp.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recoup_petsc_run.h"

#define N_KEYS         2
#define KEY_PARTS      (N_KEYS * RECOUP_PETSC_PARTS) /* doubles of a row's keys */
#define KEY_PRODUCTS   24
#define KEY_TERMS      3
#define KEY_VECTORS    (KEY_TERMS + 1)
#define SAMPLES        64 /* of each rank, by which keys are shared among ranks */
#define CROWD_MAX      8  /* a rank takes this many times its share of the rows */

/* Any numbers without a relation to each other. */
static const double key_weights[N_KEYS][KEY_TERMS] = {{0.7548776662466927, 0.5698402909980532, 0.6710436067037893},
                                                      {0.3247179572447460, -0.6180339887498949, -0.7320508075688772}};
#define SEED_WEIGHT 0.6180339887498949 /* of d in s, and of u_12 beside b */

/* Steps and starts of the grid that keys are rounded to. A key next to an end of a step may be rounded both ways; of the
 * next grid it is not. */
static const struct {
    double step, start;
} key_grids[] = {{1e-9, 0.5}, {1e-9, 0.0}, {1e-8, 0.25}, {1e-7, 0.7}};
#define N_GRIDS ((int)(sizeof key_grids / sizeof *key_grids))

/* A row of one numbering. */
typedef struct {
    int64_t keys[KEY_PARTS];
    double  x; /* of rows with equal keys */
    int64_t row;
} row_item;

typedef struct {
    int64_t ours, theirs;
} row_pair;

/* A bound on the eigenvalues of D^-1 A: its largest row sum. */
static PetscErrorCode largest_row_sum(Mat A, Vec d, PetscReal *bound)
{
    const PetscScalar *diagonal, *entries;
    PetscInt           first, end, n;
    PetscReal          mine = 0, sum;
    PetscFunctionBegin;
    PetscCall(VecGetOwnershipRange(d, &first, &end));
    PetscCall(VecGetArrayRead(d, &diagonal));
    for (PetscInt row = first; row < end; row++) {
        PetscCall(MatGetRow(A, row, &n, NULL, &entries));
        sum = 0;
        for (PetscInt k = 0; k < n; k++) sum += PetscAbsScalar(entries[k]);
        PetscCall(MatRestoreRow(A, row, &n, NULL, &entries));
        sum /= PetscAbsScalar(diagonal[row - first]);
        if (!(sum <= mine)) mine = sum;
    }
    PetscCall(VecRestoreArrayRead(d, &diagonal));
    PetscCallMPI(MPI_Allreduce(&mine, bound, 1, MPIU_REAL, MPIU_MAX, PetscObjectComm((PetscObject)A)));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* d, and 1 where A has nothing there. */
static PetscErrorCode diagonal_of(Mat A, Vec d)
{
    PetscScalar *values;
    PetscInt     n;
    PetscFunctionBegin;
    PetscCall(MatGetDiagonal(A, d));
    PetscCall(VecGetLocalSize(d, &n));
    PetscCall(VecGetArray(d, &values));
    for (PetscInt i = 0; i < n; i++) values[i] = values[i] == 0.0 ? 1.0 : values[i];
    PetscCall(VecRestoreArray(d, &values));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* to += weight times the term, whose largest value is 1. */
static PetscErrorCode add_term(Vec term, double weight, Vec to)
{
    PetscReal norm;
    PetscFunctionBegin;
    PetscCall(VecNorm(term, NORM_INFINITY, &norm));
    if (norm != 0) PetscCall(VecAXPY(to, weight / norm, term));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Makes the terms of the keys in the first three of these vectors: b, which u_12 is added to, d, and u_24. */
static PetscErrorCode make_terms(Mat A, Vec vectors[KEY_VECTORS])
{
    Vec       both = vectors[0], d = vectors[1], now = vectors[2], before = vectors[3], next;
    PetscReal bound, norm;
    PetscFunctionBegin;
    PetscCall(diagonal_of(A, d));
    PetscCall(largest_row_sum(A, d, &bound));
    PetscCall(VecNorm(both, NORM_INFINITY, &norm));
    if (norm != 0) PetscCall(VecScale(both, 1 / norm));
    PetscCall(VecCopy(both, before));
    PetscCall(add_term(d, SEED_WEIGHT, before)); /* u_0 = s */
    /* u_1 = u_0 - 2 / lambda D^-1 A u_0 */
    PetscCall(MatMult(A, before, now));
    PetscCall(VecPointwiseDivide(now, now, d));
    PetscCall(VecAYPX(now, -2 / bound, before));
    for (int k = 2; k <= KEY_PRODUCTS; k++) {
        /* u_k = -4 / lambda D^-1 (lambda / 4 D (u_{k-2} - 2 u_{k-1}) + A u_{k-1}), in the place of u_{k-2} */
        next = before;
        PetscCall(VecAXPY(next, -2.0, now));
        PetscCall(VecPointwiseMult(next, next, d));
        PetscCall(VecScale(next, bound / 4));
        PetscCall(MatMultAdd(A, now, next, next));
        PetscCall(VecPointwiseDivide(next, next, d));
        PetscCall(VecScale(next, -4 / bound));
        before = now;
        now    = next;
        if (k == KEY_PRODUCTS / 2) PetscCall(add_term(now, SEED_WEIGHT, both));
    }
    vectors[2] = now;
    vectors[3] = before;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Writes a key of each row to the last of the vectors. */
static PetscErrorCode make_key(Vec vectors[KEY_VECTORS], int key, PetscBool *is_usable)
{
    Vec       into = vectors[KEY_TERMS];
    PetscReal norm;
    PetscFunctionBegin;
    PetscCall(VecSet(into, 0.0));
    for (int term = 0; term < KEY_TERMS; term++) PetscCall(add_term(vectors[term], key_weights[key][term], into));
    PetscCall(VecNorm(into, NORM_INFINITY, &norm));
    *is_usable = norm <= 1e3 ? PETSC_TRUE : PETSC_FALSE; /* a number, and one that the grid holds */
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Whether A gives its rows keys: it is square, and has entries. */
static PetscErrorCode can_have_keys(Mat A, PetscBool *can)
{
    PetscInt  rows, columns;
    PetscBool has_rows, has_diagonal, has_sum;
    PetscFunctionBegin;
    PetscCall(MatGetSize(A, &rows, &columns));
    PetscCall(MatHasOperation(A, MATOP_GET_ROW, &has_rows));
    PetscCall(MatHasOperation(A, MATOP_GET_DIAGONAL, &has_diagonal));
    PetscCall(MatHasOperation(A, MATOP_MULT_ADD, &has_sum));
    *can = rows == columns && rows > 0 && has_rows && has_diagonal && has_sum ? PETSC_TRUE : PETSC_FALSE;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static int by_keys(const void *one, const void *other)
{
    const row_item *a = (const row_item *)one, *b = (const row_item *)other;
    for (int i = 0; i < KEY_PARTS; i++) {
        if (a->keys[i] != b->keys[i]) return a->keys[i] < b->keys[i] ? -1 : 1;
    }
    return 0;
}

static int by_keys_and_x(const void *one, const void *other)
{
    const row_item *a = (const row_item *)one, *b = (const row_item *)other;
    int             keys = by_keys(one, other);
    return keys ? keys : (a->x > b->x) - (a->x < b->x);
}

static int by_our_row(const void *one, const void *other)
{
    const row_pair *a = (const row_pair *)one, *b = (const row_pair *)other;
    return (a->ours > b->ours) - (a->ours < b->ours);
}

/* Writes this rank's rows as items, sorted. All rows have their first key before the second. `x` may be NULL. */
static void list_rows(const double *keys, const PetscScalar *x, PetscInt first, PetscInt n, int grid, row_item *items)
{
    for (PetscInt i = 0; i < n; i++) {
        for (size_t k = 0; k < KEY_PARTS; k++) {
            const double *part = keys + ((k / RECOUP_PETSC_PARTS * (size_t)n + (size_t)i) * RECOUP_PETSC_PARTS + k % RECOUP_PETSC_PARTS);
            items[i].keys[k]   = (int64_t)floor(*part / key_grids[grid].step + key_grids[grid].start);
        }
        items[i].x   = x ? PetscRealPart(x[i]) + 0.6180339887498949 * PetscImaginaryPart(x[i]) : 0;
        items[i].row = (int64_t)(first + i);
    }
    qsort(items, (size_t)n, sizeof(row_item), by_keys_and_x);
}

/* Chooses the first item of each rank but 0, by samples of all. */
static PetscErrorCode choose_splits(MPI_Comm comm, const row_item *sorted, PetscInt n, int size, row_item *splits)
{
    const row_item none = {.row = -1};
    row_item       mine[SAMPLES], *all = (row_item *)malloc(sizeof mine * (size_t)size);
    size_t         n_all = 0;
    PetscFunctionBegin;
    PetscCheck(all, PETSC_COMM_SELF, PETSC_ERR_MEM, "no memory");
    for (int i = 0; i < SAMPLES; i++) mine[i] = n > 0 ? sorted[(PetscInt)((int64_t)n * i / SAMPLES)] : none;
    PetscCallMPI(MPI_Allgather(mine, (int)sizeof mine, MPI_BYTE, all, (int)sizeof mine, MPI_BYTE, comm));
    for (int i = 0; i < SAMPLES * size; i++) {
        if (all[i].row >= 0) all[n_all++] = all[i];
    }
    qsort(all, n_all, sizeof(row_item), by_keys);
    for (int i = 1; i < size; i++) splits[i - 1] = all[n_all * (size_t)i / (size_t)size];
    free(all);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Gives each rank its items, which are in the order of ranks here, `counts` for each. Without a result, alike on all ranks,
 * where one of them would have more than `most`. */
static PetscErrorCode deal(MPI_Comm comm, size_t bytes, const void *items, int *counts, int64_t most, void **dealt, int64_t *n)
{
    int          size, *starts, has_room;
    MPI_Datatype item;
    PetscFunctionBegin;
    PetscCallMPI(MPI_Comm_size(comm, &size));
    PetscCall(PetscMalloc1(3 * size, &starts)); /* of what is sent, and counts and starts of what comes */
    PetscCallMPI(MPI_Alltoall(counts, 1, MPI_INT, starts + size, 1, MPI_INT, comm));
    *n = 0;
    for (int rank = 0, start = 0; rank < size; start += counts[rank++]) {
        starts[rank]            = start;
        starts[2 * size + rank] = (int)PetscMin(*n, INT_MAX);
        *n += starts[size + rank];
    }
    *dealt   = *n <= PetscMin(most, INT_MAX) ? malloc((size_t)(*n + 1) * bytes) : NULL;
    has_room = *dealt != NULL;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &has_room, 1, MPI_INT, MPI_MIN, comm));
    if (!has_room) {
        free(*dealt);
        *dealt = NULL;
    } else {
        PetscCallMPI(MPI_Type_contiguous((int)bytes, MPI_BYTE, &item));
        PetscCallMPI(MPI_Type_commit(&item));
        PetscCallMPI(MPI_Alltoallv(items, counts, starts, item, *dealt, starts + size, starts + 2 * size, item, comm));
        PetscCallMPI(MPI_Type_free(&item));
    }
    PetscCall(PetscFree(starts));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Gives each rank the items between its splits, sorted. */
static PetscErrorCode deal_items(MPI_Comm comm, const row_item *sorted, PetscInt n, const row_item *splits, int64_t most,
                                 row_item **dealt, int64_t *n_dealt)
{
    int   size, rank = 0, *counts;
    void *got = NULL;
    PetscFunctionBegin;
    PetscCallMPI(MPI_Comm_size(comm, &size));
    PetscCall(PetscCalloc1(size, &counts));
    for (PetscInt i = 0; i < n; i++) {
        while (rank < size - 1 && by_keys(&sorted[i], &splits[rank]) >= 0) rank++;
        counts[rank]++;
    }
    PetscCall(deal(comm, sizeof(row_item), sorted, counts, most, &got, n_dealt));
    PetscCall(PetscFree(counts));
    *dealt = (row_item *)got;
    if (got) qsort(got, (size_t)*n_dealt, sizeof(row_item), by_keys_and_x);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Pairs of items at the same place, in the order of our rows; NULL, alike on all ranks, unless all keys are alike but for
 * their rounding. */
static PetscErrorCode pair_items(MPI_Comm comm, const row_item *ours, int64_t n_ours, const row_item *theirs, int64_t n_theirs,
                                 row_pair **pairs)
{
    int is_alike = ours && theirs && n_ours == n_theirs;
    PetscFunctionBegin;
    *pairs = is_alike ? (row_pair *)malloc((size_t)(n_ours + 1) * sizeof(row_pair)) : NULL;
    is_alike = *pairs != NULL;
    for (int64_t i = 0; is_alike && i < n_ours; i++) {
        for (int k = 0; k < KEY_PARTS; k++) is_alike = is_alike && llabs(ours[i].keys[k] - theirs[i].keys[k]) <= 1;
        (*pairs)[i] = (row_pair){ours[i].row, theirs[i].row};
    }
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &is_alike, 1, MPI_INT, MPI_MIN, comm));
    if (is_alike) qsort(*pairs, (size_t)n_ours, sizeof(row_pair), by_our_row);
    else {
        free(*pairs);
        *pairs = NULL;
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Writes the row of theirs that each of our rows is, from pairs that any rank may have. */
static PetscErrorCode return_pairs(MPI_Comm comm, PetscLayout layout, row_pair *pairs, int64_t n, PetscInt *of_ours)
{
    const PetscInt *ranges;
    int             size, rank = 0, *counts;
    int64_t         n_own = 0;
    PetscInt        first, end;
    void           *own = NULL;
    PetscFunctionBegin;
    PetscCallMPI(MPI_Comm_size(comm, &size));
    PetscCall(PetscLayoutGetRanges(layout, &ranges));
    PetscCall(PetscLayoutGetRange(layout, &first, &end));
    PetscCall(PetscCalloc1(size, &counts));
    for (int64_t i = 0; i < n; i++) {
        while (pairs[i].ours >= ranges[rank + 1]) rank++;
        counts[rank]++;
    }
    PetscCall(deal(comm, sizeof(row_pair), pairs, counts, end - first, &own, &n_own));
    PetscCall(PetscFree(counts));
    for (int64_t i = 0; i < n_own && own; i++) of_ours[((row_pair *)own)[i].ours - first] = (PetscInt)((row_pair *)own)[i].theirs;
    free(own);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Finds the row of theirs that each of our rows is, by sorted items of both. Both have the same layout. Collective, in a
 * few exchanges; a rank has CROWD_MAX times its share of the rows at most. */
static PetscErrorCode match_rows(MPI_Comm comm, PetscLayout layout, const row_item *ours, const row_item *theirs,
                                 PetscInt *of_ours, PetscBool *is_found)
{
    int       size;
    PetscInt  n, global;
    row_item *splits, *dealt[2] = {NULL, NULL};
    int64_t   n_dealt[2], most;
    row_pair *pairs = NULL;
    PetscFunctionBegin;
    PetscCallMPI(MPI_Comm_size(comm, &size));
    PetscCall(PetscMalloc1(size, &splits));
    PetscCall(PetscLayoutGetLocalSize(layout, &n));
    PetscCall(PetscLayoutGetSize(layout, &global));
    PetscCall(choose_splits(comm, theirs, n, size, splits));
    most = CROWD_MAX * ((int64_t)global / size + SAMPLES);
    PetscCall(deal_items(comm, ours, n, splits, most, &dealt[0], &n_dealt[0]));
    PetscCall(deal_items(comm, theirs, n, splits, most, &dealt[1], &n_dealt[1]));
    PetscCall(pair_items(comm, dealt[0], n_dealt[0], dealt[1], n_dealt[1], &pairs));
    *is_found = pairs ? PETSC_TRUE : PETSC_FALSE;
    if (pairs) PetscCall(return_pairs(comm, layout, pairs, n_dealt[0], of_ours));
    free(pairs);
    free(dealt[0]);
    free(dealt[1]);
    PetscCall(PetscFree(splits));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

#endif /* ENGINE_ROWS_H */
