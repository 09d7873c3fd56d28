/* recoup_petsc_ts.h: checkpoints for TSSolve, as recoup_petsc_ksp.h has them for KSPSolve. */
#ifndef RECOUP_PETSC_TS_H
#define RECOUP_PETSC_TS_H

#include <petscts.h>

#include "recoup_petsc_run.h"

typedef struct RecoupTSRecord {
    RecoupRun run;
    TS        ts;
    Vec       u;
    PetscReal times[2]; /* the time reached, and the next step */
    PetscBool has_begun; /* a solve since it was attached */
} *RecoupTS;

/* Lends the state, and the time with it: every value exactly, as nothing tells which error a time step forgives. */
static inline PetscErrorCode RecoupTSProtect(RecoupTS saved, const RecoupArray *u)
{
    PetscFunctionBegin;
    PetscCall(RecoupRunProtect(&saved->run, "u", RECOUP_DYNAMIC, u));
    PetscCall(RecoupRunProtectNumbers(&saved->run, "time", RECOUP_F64, saved->times, 2));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static inline PetscErrorCode RecoupTSMonitor(TS ts, PetscInt step, PetscReal time, Vec u, void *ctx)
{
    RecoupTS    saved = (RecoupTS)((RecoupSlot *)ctx)->attached;
    RecoupArray array;
    int         code;
    PetscFunctionBegin;
    if (saved != NULL) saved->has_begun = PETSC_TRUE;
    /* A negative step is an interpolation to the end time. */
    if (saved == NULL || step <= saved->run.base) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    saved->times[0] = time;
    PetscCall(TSGetTimeStep(ts, &saved->times[1]));
    PetscCall(RecoupArrayGetRead(u, &array));
    PetscCall(RecoupTSProtect(saved, &array));
    code = recoup_step(saved->run.handle, (uint64_t)step, 0, 0);
    PetscCall(RecoupArrayRestoreRead(&array));
    RecoupCall(code);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Attaches checkpoints to TSSolve(ts, u). Methods of one step continue as if nothing had been; those of several start again
 * with their first. Collective. */
static inline PetscErrorCode RecoupTSAttach(TS ts, Vec u, const char *options, RecoupTS *attached)
{
    RecoupTS    saved;
    RecoupSlot *slot;
    PetscBool   is_new = PETSC_FALSE;
    RecoupArray array;
    PetscFunctionBegin;
    *attached = NULL;
    PetscCall(RecoupSlotOf((PetscObject)ts, &slot, &is_new));
    PetscCall(PetscNew(&saved));
    saved->ts = ts;
    saved->u  = u;
    PetscCall(RecoupRunOpen(PetscObjectComm((PetscObject)ts), options, &saved->run));
    PetscCall(RecoupArrayGetRead(u, &array));
    PetscCall(RecoupTSProtect(saved, &array));
    PetscCall(RecoupArrayRestoreRead(&array));
    if (is_new) PetscCall(TSMonitorSet(ts, RecoupTSMonitor, slot, NULL));
    slot->attached = saved;
    *attached      = saved;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Brings u, the time and the step number back; writes the steps done so far, 0 when there is no version. `steps` may be
 * NULL. Collective. */
static inline PetscErrorCode RecoupTSRestore(RecoupTS saved, PetscInt *steps)
{
    RecoupArray array;
    uint64_t    step = 0;
    int         code;
    PetscFunctionBegin;
    PetscCall(RecoupArrayGet(saved->u, &array));
    PetscCall(RecoupTSProtect(saved, &array));
    code = recoup_restore(saved->run.handle, &step, NULL);
    PetscCall(RecoupArrayRestore(&array));
    RecoupCall(code);
    if (steps) *steps = (PetscInt)step;
    if (code == RECOUP_NO_VERSION) PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    saved->run.base = (PetscInt)step;
    PetscCall(TSSetTime(saved->ts, saved->times[0]));
    PetscCall(TSSetTimeStep(saved->ts, saved->times[1]));
    PetscCall(TSSetStepNumber(saved->ts, (PetscInt)step));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Waits for the versions on their way. Memory tiers are freed if TSSolve has reached its final time. Collective. */
static inline PetscErrorCode RecoupTSDetach(RecoupTS *attached)
{
    RecoupSlot *slot;
    PetscBool   is_new = PETSC_FALSE;
    TSConvergedReason reason;
    PetscFunctionBegin;
    PetscCall(RecoupSlotOf((PetscObject)(*attached)->ts, &slot, &is_new));
    slot->attached = NULL;
    PetscCall(TSGetConvergedReason((*attached)->ts, &reason));
    if ((*attached)->has_begun) {
        PetscCall(RecoupRunConverged(&(*attached)->run, reason == TS_CONVERGED_TIME ? PETSC_TRUE : PETSC_FALSE));
    }
    PetscCall(RecoupRunClose(&(*attached)->run));
    PetscCall(PetscFree(*attached));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

#endif /* RECOUP_PETSC_TS_H */
