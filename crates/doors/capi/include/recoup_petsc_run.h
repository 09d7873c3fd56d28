/* recoup_petsc_run.h: what the headers for KSP, TS and SNES share: a handle over PETSc's communicator, its errors, the
 * vectors and numbers it protects, and where an object of PETSc keeps what is attached to it. */
#ifndef RECOUP_PETSC_RUN_H
#define RECOUP_PETSC_RUN_H

#include <petscvec.h>

#include "recoup_mpi.h"

#if !defined(PETSC_USE_REAL_DOUBLE)
    #error "recoup needs a PETSc of doubles, real or complex"
#endif
#if defined(PETSC_USE_COMPLEX)
    #define RECOUP_PETSC_TYPE  RECOUP_C128
    #define RECOUP_PETSC_PARTS 2 /* doubles of a value: an equation is as many rows of an operator */
#else
    #define RECOUP_PETSC_TYPE  RECOUP_F64
    #define RECOUP_PETSC_PARTS 1
#endif
#if PETSC_VERSION_LT(3, 19, 0)
    #define RECOUP_PETSC_SUCCESS 0
#else
    #define RECOUP_PETSC_SUCCESS PETSC_SUCCESS
#endif

/* An error of recoup becomes one of PETSc. */
#define RecoupCall(call)                                                                           \
    do {                                                                                           \
        int recoup_code_ = (call);                                                                 \
        PetscCheck(recoup_code_ >= 0, PETSC_COMM_SELF, PETSC_ERR_LIB, "recoup: %s: %s",            \
                   recoup_strerror(recoup_code_), recoup_message());                               \
    } while (0)

/* A handle, and its communicator. */
typedef struct {
    recoup_comm   comm;
    recoup_handle handle;
    PetscInt      base; /* iterations done before this solve */
} RecoupRun;

static inline PetscErrorCode RecoupRunOpen(MPI_Comm comm, const char *options, RecoupRun *run)
{
    PetscFunctionBegin;
    PetscCall((PetscErrorCode)recoup_mpi_comm(comm, &run->comm));
    run->base = 0;
    RecoupCall(recoup_open(options, &run->comm, &run->handle));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Says by PETSc's own test whether a solve has converged, and memory tiers may be freed. */
static inline PetscErrorCode RecoupRunConverged(RecoupRun *run, PetscBool has_converged)
{
    PetscFunctionBegin;
    RecoupCall(recoup_converged(run->handle, has_converged ? 1 : 0));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* A version that could not be made is the loss of a version, not of the solve: it is said, and the program continues. */
static inline PetscErrorCode RecoupRunSaved(const RecoupRun *run, int code)
{
    PetscFunctionBegin;
    if (code != RECOUP_E_NOT_SAVED) RecoupCall(code);
    else if (run->comm.rank == 0) PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "recoup: %s\n", recoup_message()));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static inline PetscErrorCode RecoupRunClose(RecoupRun *run)
{
    PetscFunctionBegin;
    PetscErrorCode saved = RecoupRunSaved(run, recoup_close(run->handle));
    recoup_mpi_free(&run->comm);
    PetscCall(saved);
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* The values of a Vec, borrowed where they are stored: in the memory of a CUDA device, else in that of the host. */
typedef struct {
    Vec                v;
    const PetscScalar *values;
    PetscBool          is_host_copy; /* of a Vec that is stored on a device of another maker */
} RecoupArray;

static inline PetscBool RecoupCanRead(PetscMemType type)
{
    return PetscMemTypeHost(type) || PetscMemTypeCUDA(type) ? PETSC_TRUE : PETSC_FALSE;
}

/* Borrows values that are not to be changed. */
static inline PetscErrorCode RecoupArrayGetRead(Vec v, RecoupArray *array)
{
    PetscMemType type;
    PetscFunctionBegin;
    array->v            = v;
    array->values       = NULL;
    array->is_host_copy = PETSC_FALSE;
    PetscCall(VecGetArrayReadAndMemType(v, &array->values, &type));
    array->is_host_copy = RecoupCanRead(type) ? PETSC_FALSE : PETSC_TRUE;
    if (array->is_host_copy) {
        PetscCall(VecRestoreArrayReadAndMemType(v, &array->values));
        PetscCall(VecGetArrayRead(v, &array->values));
    }
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static inline PetscErrorCode RecoupArrayRestoreRead(RecoupArray *array)
{
    PetscFunctionBegin;
    if (array->is_host_copy) PetscCall(VecRestoreArrayRead(array->v, &array->values));
    else PetscCall(VecRestoreArrayReadAndMemType(array->v, &array->values));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Borrows values that a restore may overwrite. Without a version they stay, and a first guess is compared with them, so
 * the call that leaves them undefined will not do. Given back, the place they are stored at is the one PETSc takes as valid. */
static inline PetscErrorCode RecoupArrayGet(Vec v, RecoupArray *array)
{
    PetscScalar *values;
    PetscMemType type;
    PetscFunctionBegin;
    array->v            = v;
    array->values       = NULL;
    array->is_host_copy = PETSC_FALSE;
    PetscCall(VecGetArrayAndMemType(v, &values, &type));
    array->is_host_copy = RecoupCanRead(type) ? PETSC_FALSE : PETSC_TRUE;
    if (array->is_host_copy) {
        PetscCall(VecRestoreArrayAndMemType(v, &values));
        PetscCall(VecGetArray(v, &values));
    }
    array->values = values;
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

static inline PetscErrorCode RecoupArrayRestore(RecoupArray *array)
{
    PetscScalar *values = (PetscScalar *)array->values;
    PetscFunctionBegin;
    array->values = NULL;
    if (array->is_host_copy) PetscCall(VecRestoreArray(array->v, &values));
    else PetscCall(VecRestoreArrayAndMemType(array->v, &values));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Lends borrowed values; the caller gives the array back after the call that uses it. */
static inline PetscErrorCode RecoupRunProtect(RecoupRun *run, const char *name, int role, const RecoupArray *array)
{
    PetscInt first, end, global;
    PetscFunctionBegin;
    PetscCall(VecGetOwnershipRange(array->v, &first, &end));
    PetscCall(VecGetSize(array->v, &global));
    RecoupCall(recoup_protect(run->handle, name, role, RECOUP_PETSC_TYPE, (void *)array->values, (uint64_t)(end - first),
                              (uint64_t)first, (uint64_t)global));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* Lends numbers every rank has alike. */
static inline PetscErrorCode RecoupRunProtectNumbers(RecoupRun *run, const char *name, int type, void *values, int count)
{
    PetscFunctionBegin;
    RecoupCall(recoup_protect(run->handle, name, RECOUP_DYNAMIC, type, values, (uint64_t)count, RECOUP_REPLICATED, 0));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

/* What is attached to an object, if anything. PETSc cannot take a single monitor away again, so ours stays with the
 * object, and looks here. */
typedef struct {
    void *attached;
} RecoupSlot;

static inline PetscErrorCode RecoupSlotFree(void *slot) { return PetscFree(slot); }

/* The slot of an object, made when there is none. */
static inline PetscErrorCode RecoupSlotOf(PetscObject object, RecoupSlot **slot, PetscBool *is_new)
{
    PetscContainer container;
    PetscFunctionBegin;
    PetscCall(PetscObjectQuery(object, "recoup", (PetscObject *)&container));
    *is_new = container ? PETSC_FALSE : PETSC_TRUE;
    if (container) {
        PetscCall(PetscContainerGetPointer(container, (void **)slot));
        PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
    }
    PetscCall(PetscNew(slot));
    PetscCall(PetscContainerCreate(PetscObjectComm(object), &container));
    PetscCall(PetscContainerSetPointer(container, *slot));
    PetscCall(PetscContainerSetUserDestroy(container, RecoupSlotFree));
    PetscCall(PetscObjectCompose(object, "recoup", (PetscObject)container));
    PetscCall(PetscContainerDestroy(&container));
    PetscFunctionReturn(RECOUP_PETSC_SUCCESS);
}

#endif /* RECOUP_PETSC_RUN_H */
