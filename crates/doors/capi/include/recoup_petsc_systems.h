/* recoup_petsc_systems.h: checkpoints for a program that solves many systems with one KSP: the steps of a time loop of its
 * own, with another A and b each, or many right-hand sides one after another. All of them are one run.
 *
 *     RecoupKSP saved;
 *     PetscInt  step = 0;
 *     PetscCall(RecoupKSPAttachSystems(ksp, b, x, "dir=ckpt interval=20it", &saved));
 *     PetscCall(RecoupKSPProtect(saved, "u", u));        // what A and b are made from
 *     PetscCall(RecoupKSPFindSystem(saved, &step));      // u as it was in that step
 *     for (; step < steps; step++) {
 *         // A, with KSPSetOperators, and b from u
 *         PetscCall(RecoupKSPBeginSystem(saved, step));
 *         PetscCall(RecoupKSPRestore(saved, NULL));
 *         PetscCall(KSPSolve(ksp, b, x));
 *         PetscCall(RecoupKSPEndSystem(saved));
 *         // u from x
 *     }
 *     PetscCall(RecoupKSPDetach(&saved));
 *
 * After the last system, RecoupRunConverged(&saved->run, PETSC_TRUE) has RecoupKSPDetach free memory tiers; no one else knows
 * that it was the last. Every version has the number of its system, and the fingerprint of its A and b, and is restored into no other. Iterations
 * count from 0 in each system. What is said of KSPs in recoup_petsc_ksp.h holds for each system.
 */
#ifndef RECOUP_PETSC_SYSTEMS_H
#define RECOUP_PETSC_SYSTEMS_H

#include "recoup_petsc_ksp.h"

/* Attaches checkpoints to many solves of `ksp`. b and x are those of every system; their values count from
 * RecoupKSPBeginSystem on. `options` are those of recoup_open. Collective. */
static inline PetscErrorCode RecoupKSPAttachSystems(KSP ksp, Vec b, Vec x, const char *options, RecoupKSP *attached)
{
    size_t n_given = 0;
    char  *all;
    PetscFunctionBegin;
    if (options) PetscCall(PetscStrlen(options, &n_given));
    PetscCall(PetscMalloc1(n_given + sizeof("systems "), &all));
    PetscCall(PetscSNPrintf(all, n_given + sizeof("systems "), "systems %s", options ? options : ""));
    PetscCall(RecoupKSPAttachRun(ksp, b, x, all, attached));
    (*attached)->has_systems = PETSC_TRUE;
    PetscCall(PetscFree(all));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Saves v with every version, exactly, and brings it back. It is what the next A and b are made from, and does not change
 * while a system is solved. Before RecoupKSPFindSystem. */
static inline PetscErrorCode RecoupKSPProtect(RecoupKSP saved, const char *name, Vec v)
{
    RecoupKSPState state, *last = &saved->states;
    PetscFunctionBegin;
    while (*last) last = &(*last)->next;
    PetscCall(PetscNew(&state));
    *last = state;
    PetscCall(PetscStrallocpy(name, &state->name));
    PetscCall(PetscObjectReference((PetscObject)v));
    state->v = v;
    PetscCall(RecoupArrayGetRead(v, &state->array));
    PetscCall(RecoupRunProtect(&saved->run, name, RECOUP_DYNAMIC, &state->array));
    PetscCall(RecoupArrayRestoreRead(&state->array));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Brings the vectors of RecoupKSPProtect back as they were in the system a killed run was in, and writes its number. Without
 * a version all of them stay as they are. Before the first system. Collective. */
static inline PetscErrorCode RecoupKSPFindSystem(RecoupKSP saved, PetscInt *index)
{
    uint64_t found = (uint64_t)*index;
    PetscFunctionBegin;
    PetscCall(RecoupKSPLendStates(saved, PETSC_FALSE));
    int code = recoup_find_system(saved->run.handle, &found);
    PetscCall(RecoupKSPReturnStates(saved, PETSC_FALSE));
    RecoupCall(code);
    *index = (PetscInt)found;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Begins a system: A is that of KSPSetOperators, and b has its final values. Its number is above that of the system before.
 * Collective. */
static inline PetscErrorCode RecoupKSPBeginSystem(RecoupKSP saved, PetscInt index)
{
    PetscFunctionBegin;
    saved->run.base = 0;
    saved->is_due = saved->wants_direction = PETSC_FALSE;
    PetscCall(RecoupKSPOperator(saved, saved->b));
    RecoupCall(recoup_begin_system(saved->run.handle, (uint64_t)index));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Ends a system: waits for the versions on their way, which are measured with its A, and leaves A and the KSP as they were
 * before. A, b and the vectors of RecoupKSPProtect may then change. Collective. */
static inline PetscErrorCode RecoupKSPEndSystem(RecoupKSP saved)
{
    PetscFunctionBegin;
    PetscCall(RecoupRunSaved(&saved->run, recoup_wait(saved->run.handle)));
    PetscCall(RecoupKSPSettle(saved));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

#endif /* RECOUP_PETSC_SYSTEMS_H */
