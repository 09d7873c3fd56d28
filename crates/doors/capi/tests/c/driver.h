/* The few calls of the CUDA driver that programs of the tests make, without its headers. */
#ifndef DRIVER_H
#define DRIVER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuMemcpyHtoDAsync_v2(uint64_t target, const void *source, size_t bytes, void *stream);
int cuMemcpyDtoH_v2(void *target, uint64_t source, size_t bytes);

static void need(int code, const char *call)
{
    if (code != 0) {
        fprintf(stderr, "%s: %d\n", call, code);
        exit(9);
    }
}

/* Memory of device 0, in the context that all libraries of a process share. */
static uint64_t device_memory(size_t bytes)
{
    void *context;
    uint64_t address;
    need(cuInit(0), "cuInit");
    need(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    need(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    need(cuMemAlloc_v2(&address, bytes), "cuMemAlloc");
    return address;
}

static void give_back(uint64_t address)
{
    need(cuMemFree_v2(address), "cuMemFree");
}

#endif
