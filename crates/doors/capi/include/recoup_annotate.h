/* recoup_annotate.h: the calls of programs that `recoup annotate` writes. An error ends the program, with its words. */
#ifndef RECOUP_ANNOTATE_H
#define RECOUP_ANNOTATE_H

#include <stdio.h>
#include <stdlib.h>

#include "recoup.h"

/* Announces the values of an array between the least and the greatest of these places. */
#define RECOUP_TOUCHED(name, ...)                                                                       \
    recoup_annotated_touch(recoup_annotated, #name, recoup_count_##name, (const uint64_t[]){__VA_ARGS__}, \
                           sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* Announces all values of an array. */
#define RECOUP_TOUCHED_ALL(name) recoup_annotated_touch_all(recoup_annotated, #name, recoup_count_##name)

static inline void recoup_annotated_check(int32_t code)
{
    if (code >= 0) return;
    fprintf(stderr, "recoup: %s: %s\n", recoup_strerror(code), recoup_message());
    exit(1);
}

static inline recoup_memory recoup_annotated_open(const char *options)
{
    recoup_memory memory = 0;
    recoup_annotated_check(recoup_memory_open(options, &memory));
    return memory;
}

static inline void recoup_annotated_lend(recoup_memory memory, const char *name, int32_t type, void *values,
                                         uint64_t count)
{
    recoup_annotated_check(recoup_memory_array(memory, name, type, values, count));
}

static inline void recoup_annotated_lend_value(recoup_memory memory, const char *name, int32_t type, void *value)
{
    recoup_annotated_check(recoup_memory_array(memory, name, type, value, 1));
    recoup_annotated_check(recoup_memory_compare(memory, name));
}

/* Fills all variables with the newest version. Returns the value that the loop continues with: `first` without a version. */
static inline uint64_t recoup_annotated_start(recoup_memory memory, uint64_t first)
{
    recoup_annotated_check(recoup_memory_restore(memory, 0, &first));
    return first;
}

/* Where a place lies outside of the array, no write reaches it, and all values are announced. */
static inline void recoup_annotated_touch(recoup_memory memory, const char *name, uint64_t count,
                                          const uint64_t *places, size_t n_places)
{
    uint64_t least = places[0], greatest = places[0];
    for (size_t i = 1; i < n_places; i++) {
        if (places[i] < least) least = places[i];
        if (places[i] > greatest) greatest = places[i];
    }
    if (greatest >= count) least = 0, greatest = count - 1;
    if (count > 0) recoup_annotated_check(recoup_memory_touch(memory, name, least, greatest - least + 1));
}

static inline void recoup_annotated_touch_all(recoup_memory memory, const char *name, uint64_t count)
{
    recoup_annotated_check(recoup_memory_touch(memory, name, 0, count));
}

/* Makes a version if one is due: `next` is the value that the loop continues with. */
static inline void recoup_annotated_step(recoup_memory memory, uint64_t next)
{
    recoup_annotated_check(recoup_memory_step(memory, next, NULL));
}

static inline void recoup_annotated_close(recoup_memory memory)
{
    recoup_annotated_check(recoup_memory_close(memory));
}

#endif /* RECOUP_ANNOTATE_H */
