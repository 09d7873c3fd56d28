/* Vectors that are stored on a device, for a PETSc that has none: compiled in the program by `-include`, before recoup_petsc.h.
 *
 * The calls that lend the array of a Vec where it rests answer with memory of the device. While it is lent, the
 * values are there alone: those on the host are NaN, so nothing that reads or writes a host pointer goes unnoticed. What
 * the array is given back with becomes the values of the Vec. With VECTORS_REST_IN the type of the memory is another
 * one, and its address none.
 * At its end the program says on stderr how many arrays were lent. */
#ifndef VECTORS_ON_DEVICE_H
#define VECTORS_ON_DEVICE_H

#include <math.h>
#include <petscvec.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    int read, written;
} lent_arrays;

static void say_lent_arrays(void)
{
    fprintf(stderr, "lent by the device: %d to be read, %d to be written\n", lent_arrays.read, lent_arrays.written);
}

#ifdef VECTORS_REST_IN

static void to_device(PetscScalar *host, PetscInt n, const PetscScalar **values, PetscMemType *type)
{
    (void)host, (void)n;
    *values = (const PetscScalar *)16;
    *type   = VECTORS_REST_IN;
}

static void to_host(const PetscScalar *values, PetscScalar *host, PetscInt n)
{
    (void)values, (void)host, (void)n;
}

#else

#include "driver.h"

static void to_device(PetscScalar *host, PetscInt n, const PetscScalar **values, PetscMemType *type)
{
    uint64_t address = device_memory((size_t)n * sizeof *host);
    need(cuMemcpyHtoDAsync_v2(address, host, (size_t)n * sizeof *host, 0), "cuMemcpyHtoDAsync");
    for (PetscInt i = 0; i < n; i++) host[i] = NAN;
    *values = (const PetscScalar *)(uintptr_t)address;
    *type   = PETSC_MEMTYPE_CUDA;
}

static void to_host(const PetscScalar *values, PetscScalar *host, PetscInt n)
{
    uint64_t address = (uint64_t)(uintptr_t)values;
    need(cuMemcpyDtoH_v2(host, address, (size_t)n * sizeof *host), "cuMemcpyDtoH");
    give_back(address);
}

#endif

/* Moves the values of a Vec to the device. */
static PetscErrorCode lend(Vec v, const PetscScalar **values, PetscMemType *type, int *count)
{
    const PetscScalar *host;
    PetscInt           n;
    PetscFunctionBegin;
    if (lent_arrays.read + lent_arrays.written == 0) atexit(say_lent_arrays);
    (*count)++;
    PetscCall(VecGetLocalSize(v, &n));
    PetscCall(VecGetArrayRead(v, &host));
    to_device((PetscScalar *)host, n, values, type);
    PetscCall(VecRestoreArrayRead(v, &host));
    PetscFunctionReturn(0);
}

static PetscErrorCode lend_to_read(Vec v, const PetscScalar **values, PetscMemType *type)
{
    return lend(v, values, type, &lent_arrays.read);
}

static PetscErrorCode lend_to_write(Vec v, PetscScalar **values, PetscMemType *type)
{
    return lend(v, (const PetscScalar **)values, type, &lent_arrays.written);
}

static PetscErrorCode take_back_read(Vec v, const PetscScalar **values)
{
    const PetscScalar *host;
    PetscInt           n;
    PetscFunctionBegin;
    PetscCall(VecGetLocalSize(v, &n));
    PetscCall(VecGetArrayRead(v, &host));
    to_host(*values, (PetscScalar *)host, n);
    PetscCall(VecRestoreArrayRead(v, &host));
    PetscFunctionReturn(0);
}

static PetscErrorCode take_back_written(Vec v, PetscScalar **values)
{
    PetscScalar *host;
    PetscInt     n;
    PetscFunctionBegin;
    PetscCall(VecGetLocalSize(v, &n));
    PetscCall(VecGetArray(v, &host));
    to_host(*values, host, n);
    PetscCall(VecRestoreArray(v, &host));
    PetscFunctionReturn(0);
}

#define VecGetArrayReadAndMemType     lend_to_read
#define VecRestoreArrayReadAndMemType take_back_read
#define VecGetArrayAndMemType         lend_to_write
#define VecRestoreArrayAndMemType     take_back_written

#endif
