/* recoup_petsc_snes.h: checkpoints for SNESSolve, as recoup_petsc_ksp.h has them for KSPSolve. */
#ifndef RECOUP_PETSC_SNES_H
#define RECOUP_PETSC_SNES_H

#include <petscsnes.h>

#include "recoup_petsc_run.h"

typedef struct RecoupSNESRecord {
    RecoupRun run;
    SNES      snes;
    Vec       x;
    PetscReal norm_start; /* ||F|| where the first solve started */
    PetscReal atol;
    PetscInt  max_it;
    PetscBool is_changed, has_begun; /* a solve was begun since it was attached */
} *RecoupSNES;

static inline PetscErrorCode RecoupSNESProtect(RecoupSNES saved, const RecoupArray *x)
{
    PetscFunctionBegin;
    PetscCall(RecoupRunProtect(&saved->run, "x", RECOUP_ITERATE, x));
    PetscCall(RecoupRunProtectNumbers(&saved->run, "start", RECOUP_F64, &saved->norm_start, 1));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static inline PetscErrorCode RecoupSNESMonitor(SNES snes, PetscInt n, PetscReal norm, void *ctx)
{
    RecoupSNES  saved = (RecoupSNES)((RecoupSlot *)ctx)->attached;
    Vec         x;
    RecoupArray array;
    int         code;
    PetscFunctionBegin;
    if (saved == NULL || PetscIsInfOrNanReal(norm)) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    saved->has_begun = PETSC_TRUE;
    if (n == 0) {
        if (saved->run.base == 0) saved->norm_start = norm;
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    PetscCall(SNESGetSolution(snes, &x));
    PetscCall(RecoupArrayGetRead(x, &array));
    PetscCall(RecoupSNESProtect(saved, &array));
    code = recoup_step(saved->run.handle, (uint64_t)(saved->run.base + n), norm, saved->norm_start);
    PetscCall(RecoupArrayRestoreRead(&array));
    RecoupCall(code);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Attaches checkpoints to SNESSolve(snes, .., x). Versions hold x exactly, unless `options` give a fixed bound.
 * Collective. */
static inline PetscErrorCode RecoupSNESAttach(SNES snes, Vec x, const char *options, RecoupSNES *attached)
{
    RecoupSNES  saved;
    RecoupSlot *slot;
    PetscBool   is_new = PETSC_FALSE;
    RecoupArray array;
    PetscFunctionBegin;
    *attached = NULL;
    PetscCall(RecoupSlotOf((PetscObject)snes, &slot, &is_new));
    PetscCall(PetscNew(&saved));
    saved->snes = snes;
    saved->x    = x;
    PetscCall(RecoupRunOpen(PetscObjectComm((PetscObject)snes), options, &saved->run));
    PetscCall(RecoupArrayGetRead(x, &array));
    PetscCall(RecoupSNESProtect(saved, &array));
    PetscCall(RecoupArrayRestoreRead(&array));
    if (is_new) PetscCall(SNESMonitorSet(snes, RecoupSNESMonitor, slot, NULL));
    slot->attached = saved;
    *attached      = saved;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Brings x back, and has the next SNESSolve end where the first would have: its relative tolerance stays one to the start
 * of the first. Writes the iterations done so far, 0 when there is no version; `iterations` may be NULL. Collective. */
static inline PetscErrorCode RecoupSNESRestore(RecoupSNES saved, PetscInt *iterations)
{
    RecoupArray array;
    PetscReal   atol, rtol, stol;
    PetscInt    max_f;
    uint64_t    iteration = 0;
    int         code;
    PetscFunctionBegin;
    PetscCall(RecoupArrayGet(saved->x, &array));
    PetscCall(RecoupSNESProtect(saved, &array));
    code = recoup_restore(saved->run.handle, &iteration, NULL);
    PetscCall(RecoupArrayRestore(&array));
    RecoupCall(code);
    if (iterations) *iterations = (PetscInt)iteration;
    if (code == RECOUP_NO_VERSION) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    saved->run.base   = (PetscInt)iteration;
    saved->is_changed = PETSC_TRUE;
    PetscCall(SNESGetTolerances(saved->snes, &saved->atol, &rtol, &stol, &saved->max_it, &max_f));
    atol = PetscMax(saved->atol, rtol * saved->norm_start);
    PetscCall(SNESSetTolerances(saved->snes, atol, rtol, stol, PetscMax(saved->max_it - saved->run.base, 0), max_f));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Waits for the versions on their way, and leaves the SNES as it was before. Memory tiers are freed if SNESSolve has
 * converged, by its own SNESConvergedReason. Collective. */
static inline PetscErrorCode RecoupSNESDetach(RecoupSNES *attached)
{
    RecoupSNES  saved = *attached;
    RecoupSlot *slot;
    PetscBool   is_new = PETSC_FALSE;
    PetscReal   rtol, stol;
    PetscInt    max_f;
    SNESConvergedReason reason;
    PetscFunctionBegin;
    PetscCall(RecoupSlotOf((PetscObject)saved->snes, &slot, &is_new));
    slot->attached = NULL;
    if (saved->is_changed) {
        PetscCall(SNESGetTolerances(saved->snes, NULL, &rtol, &stol, NULL, &max_f));
        PetscCall(SNESSetTolerances(saved->snes, saved->atol, rtol, stol, saved->max_it, max_f));
    }
    PetscCall(SNESGetConvergedReason(saved->snes, &reason));
    if (saved->has_begun) PetscCall(RecoupRunConverged(&saved->run, reason > 0 ? PETSC_TRUE : PETSC_FALSE));
    PetscCall(RecoupRunClose(&saved->run));
    PetscCall(PetscFree(*attached));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

#endif /* RECOUP_PETSC_SNES_H */
