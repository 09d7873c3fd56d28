/* recoup_mem.h: structs of a program with versions in a file, by the calls recoup_memory_* of recoup.h.
 *
 * A list declares the fields once. The struct and the call that lends all of them to a memory come from it:
 *
 *     #define FIELDS(ARRAY, POINTER, VALUE) \
 *         VALUE(uint64_t, n)                \
 *         POINTER(double, heat, self->n)    \
 *         ARRAY(int32_t, cells, 64)
 *     RECOUP_VERSIONED(rod, FIELDS)
 *
 *     struct rod rod = {n, malloc(n * sizeof(double)), {0}};
 *     recoup_memory_open("file=/dev/shm/rod.memory interval=10it", &memory);
 *     rod_lend(memory, &rod);
 *     recoup_memory_restore(memory, 0, &step);
 *     before writes: RECOUP_TOUCH(memory, rod, heat, first, count);
 *     after each step: recoup_memory_step(memory, step, NULL);
 *     recoup_memory_close(memory);
 *
 * ARRAY(type, field, length) is an array in the struct. POINTER(type, field, count) is a pointer to `count` values, an
 * expression of `self`. VALUE(type, field) is one value, which needs no RECOUP_TOUCH: each commit compares it with the
 * version before. The types are double, float, int64_t, int32_t, uint64_t, uint32_t and uint8_t. Calls return the codes of
 * recoup.h. An array is called STRUCT.FIELD in the file, so a memory has one struct of each kind.
 */
#ifndef RECOUP_MEM_H
#define RECOUP_MEM_H

#include <stdio.h>

#include "recoup.h"

/* Declares `struct name`, and `int32_t name_lend(recoup_memory memory, struct name *self)`. */
#define RECOUP_VERSIONED(name, FIELDS)                                                         \
    struct name {                                                                              \
        FIELDS(RECOUP_MEM_ARRAY_FIELD, RECOUP_MEM_POINTER_FIELD, RECOUP_MEM_VALUE_FIELD)       \
    };                                                                                         \
    static inline int32_t name##_lend(recoup_memory memory, struct name *self)                 \
    {                                                                                          \
        static const char *const owner = #name;                                                \
        int32_t code = RECOUP_OK;                                                              \
        FIELDS(RECOUP_MEM_ARRAY_LENT, RECOUP_MEM_POINTER_LENT, RECOUP_MEM_VALUE_LENT)          \
        return code;                                                                           \
    }

/* Announces that `count` values from value `first` of a field are written, as recoup_memory_touch does. */
#define RECOUP_TOUCH(memory, name, field, first, count) \
    ((void)sizeof(((struct name *)0)->field), recoup_memory_touch(memory, #name "." #field, first, count))

/* A graph in compressed rows: `n_vertices + 1` offsets, the targets of all edges, and a state and data of each vertex. The
 * library for Rust reads its four arrays as one graph. */
typedef struct recoup_graph {
    uint64_t n_vertices;
    uint64_t n_edges;
    uint64_t *offsets;
    uint32_t *targets;
    int32_t state_type;
    void *states;
    int32_t data_type;
    void *data;
} recoup_graph;

/* Lends an array under the name OWNER.FIELD. A name that is cut off is too long for the library, which refuses it. */
static inline int32_t recoup_mem_lend(recoup_memory memory, const char *owner, const char *field, int32_t type,
                                      void *values, uint64_t count)
{
    char name[80];
    snprintf(name, sizeof name, "%s.%s", owner, field);
    return recoup_memory_array(memory, name, type, values, count);
}

/* Lends one value, which commits compare. */
static inline int32_t recoup_mem_lend_value(recoup_memory memory, const char *owner, const char *field, int32_t type,
                                            void *value)
{
    char name[80];
    int32_t code = recoup_mem_lend(memory, owner, field, type, value, 1);
    snprintf(name, sizeof name, "%s.%s", owner, field);
    return code == RECOUP_OK ? recoup_memory_compare(memory, name) : code;
}

/* Lends the arrays of a graph, as NAME.offsets, NAME.targets, NAME.states and NAME.data. */
static inline int32_t recoup_graph_lend(recoup_memory memory, const char *name, const recoup_graph *graph)
{
    uint64_t n = graph->n_vertices;
    int32_t code = recoup_mem_lend(memory, name, "offsets", RECOUP_U64, graph->offsets, n + 1);
    if (code == RECOUP_OK) code = recoup_mem_lend(memory, name, "targets", RECOUP_U32, graph->targets, graph->n_edges);
    if (code == RECOUP_OK) code = recoup_mem_lend(memory, name, "states", graph->state_type, graph->states, n);
    if (code == RECOUP_OK) code = recoup_mem_lend(memory, name, "data", graph->data_type, graph->data, n);
    return code;
}

/* The type of recoup.h that a type of C has. */
#define RECOUP_MEM_TYPE_double RECOUP_F64
#define RECOUP_MEM_TYPE_float RECOUP_F32
#define RECOUP_MEM_TYPE_int64_t RECOUP_I64
#define RECOUP_MEM_TYPE_int32_t RECOUP_I32
#define RECOUP_MEM_TYPE_uint64_t RECOUP_U64
#define RECOUP_MEM_TYPE_uint32_t RECOUP_U32
#define RECOUP_MEM_TYPE_uint8_t RECOUP_BYTES

/* A field in the struct, and how it is lent. */
#define RECOUP_MEM_ARRAY_FIELD(type, field, length) type field[length];
#define RECOUP_MEM_POINTER_FIELD(type, field, count) type *field;
#define RECOUP_MEM_VALUE_FIELD(type, field) type field;
#define RECOUP_MEM_ARRAY_LENT(type, field, length) RECOUP_MEM_POINTER_LENT(type, field, length)
#define RECOUP_MEM_POINTER_LENT(type, field, count) \
    if (code == RECOUP_OK) \
        code = recoup_mem_lend(memory, owner, #field, RECOUP_MEM_TYPE_##type, self->field, (uint64_t)(count));
#define RECOUP_MEM_VALUE_LENT(type, field) \
    if (code == RECOUP_OK) code = recoup_mem_lend_value(memory, owner, #field, RECOUP_MEM_TYPE_##type, &self->field);

#endif /* RECOUP_MEM_H */
