/* engine_append.h: the engine where nothing may be preloaded. PETSc loads a library that -dll_append names, and every
 * method of KSP is registered again, with a solve that is a call. KSPSolve has then set up the preconditioner, SNES and TS
 * are not seen, and what is not converged cannot be solved again: calls have no versions within. */
#ifndef ENGINE_APPEND_H
#define ENGINE_APPEND_H

#include "engine_log.h"
#include "engine_versions.h"

typedef PetscErrorCode (*ksp_function)(KSP);

#define METHODS(M)                                                                                                         \
    M(0, KSPCG) M(1, KSPGROPPCG) M(2, KSPPIPECG) M(3, KSPFCG) M(4, KSPGMRES) M(5, KSPFGMRES) M(6, KSPLGMRES)               \
    M(7, KSPDGMRES) M(8, KSPPGMRES) M(9, KSPBCGS) M(10, KSPIBCGS) M(11, KSPFBCGS) M(12, KSPBCGSL) M(13, KSPCGS)            \
    M(14, KSPTFQMR) M(15, KSPCR) M(16, KSPMINRES) M(17, KSPSYMMLQ) M(18, KSPGCR) M(19, KSPCHEBYSHEV)                       \
    M(20, KSPRICHARDSON) M(21, KSPPREONLY)

/* A method, and what PETSc has of it. */
typedef struct {
    const char  *type;
    ksp_function ours, create, solve;
} method;

static PetscErrorCode create_as(method *of, KSP ksp);
static PetscErrorCode solve_appended(KSP ksp);

static method methods[];
#define CREATE(i, type) \
    static PetscErrorCode create_##i(KSP ksp) { return create_as(&methods[i], ksp); }
METHODS(CREATE)
#define METHOD(i, type) {type, create_##i, NULL, NULL},
static method methods[] = {METHODS(METHOD)};
#define N_METHODS (sizeof methods / sizeof *methods)

static PetscErrorCode create_as(method *of, KSP ksp)
{
    PetscFunctionBegin;
    PetscCall(of->create(ksp));
    of->solve       = ksp->ops->solve;
    ksp->ops->solve = solve_appended;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* The solve that PETSc has for the method of this KSP. */
static PetscErrorCode solve_as_petsc(KSP ksp, Vec b, Vec x)
{
    size_t i = 0;
    PetscFunctionBegin;
    (void)b, (void)x;
    while (i < N_METHODS && strcmp(methods[i].type, ((PetscObject)ksp)->type_name) != 0) i++;
    PetscCheck(i < N_METHODS, PETSC_COMM_SELF, PETSC_ERR_PLIB, "recoup: %s is no method it registered", ((PetscObject)ksp)->type_name);
    PetscCall(methods[i].solve(ksp));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* A call is the solve of a KSP that no other object of PETSc has, outside of any. */
static PetscErrorCode solve_appended(KSP ksp)
{
    static int n_open;
    one_call   call = {.ksp = ksp, .b = ksp->vec_rhs, .x = ksp->vec_sol, .is_inside = PETSC_TRUE};
    PetscInt   level;
    PetscBool  can = PETSC_FALSE;
    PetscFunctionBegin;
    PetscCall(PetscObjectGetTabLevel((PetscObject)ksp, &level));
    if (n_open == 0 && level == 0) {
        PetscCall(calls_of(PetscObjectComm((PetscObject)ksp), &call.of));
        call.number = call.of->number++;
        PetscCall(can_be_kept(&call, &can));
    }
    n_open++;
    PetscErrorCode code = can ? take_call(&call, solve_as_petsc, PETSC_FALSE) : solve_as_petsc(ksp, NULL, NULL);
    n_open--;
    PetscCall(code);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Registers all methods again. */
PETSC_EXTERN PetscErrorCode recoup_engine_append(void)
{
    PetscFunctionBegin;
    PetscCall(KSPInitializePackage());
    for (size_t i = 0; i < N_METHODS; i++) {
        PetscCall(PetscFunctionListFind(KSPList, methods[i].type, &methods[i].create));
        if (methods[i].create) PetscCall(KSPRegister(methods[i].type, methods[i].ours));
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

#endif /* ENGINE_APPEND_H */
