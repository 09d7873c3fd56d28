#include <recoup_annotate.h>
#line 1 "writes.c"
/* A write of each kind to an array of its own. Places change with each step, so that a write that is not announced is
 * missing after a kill. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES 4096
#define ROWS 3
#define AT(i) ((i) + 1)

static void age(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = 0.999 * x[i] + (double)i;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 100;
    size_t n = VALUES;
    double *row = calloc(n, sizeof *row), *aged = calloc(n, sizeof *aged), *copy = calloc(n, sizeof *copy);
    double single[VALUES] = {0}, triangle[VALUES] = {0}, total = 0;
    float plate[128][128] = {{0}};
    int64_t back[VALUES] = {0};
    uint8_t flags[4 * VALUES] = {0};
    int32_t header[VALUES] = {0}, wide[VALUES] = {0};
    uint32_t seed = 1;
    if (row == NULL || aged == NULL || copy == NULL) return 1;
    // #pragma recoup memory("file=other.memory")
recoup_memory recoup_annotated = recoup_annotated_open("file=writes.memory interval=1it");
const uint64_t recoup_count_row = (uint64_t)(n); recoup_annotated_lend(recoup_annotated, "row", RECOUP_F64, row, recoup_count_row);
const uint64_t recoup_count_aged = (uint64_t)(VALUES); recoup_annotated_lend(recoup_annotated, "aged", RECOUP_F64, aged, recoup_count_aged); /* by a function */
const uint64_t recoup_count_copy = (uint64_t)(n); recoup_annotated_lend(recoup_annotated, "copy", RECOUP_F64, copy, recoup_count_copy);
const uint64_t recoup_count_single = (uint64_t)(sizeof single / sizeof(double)); recoup_annotated_lend(recoup_annotated, "single", RECOUP_F64, single, recoup_count_single);
const uint64_t recoup_count_triangle = (uint64_t)(sizeof triangle / sizeof(double)); recoup_annotated_lend(recoup_annotated, "triangle", RECOUP_F64, triangle, recoup_count_triangle);
const uint64_t recoup_count_plate = (uint64_t)(sizeof plate / sizeof(float)); recoup_annotated_lend(recoup_annotated, "plate", RECOUP_F32, plate, recoup_count_plate);
const uint64_t recoup_count_back = (uint64_t)(sizeof back / sizeof(int64_t)); recoup_annotated_lend(recoup_annotated, "back", RECOUP_I64, back, recoup_count_back);
const uint64_t recoup_count_flags = (uint64_t)(sizeof flags / sizeof(uint8_t)); recoup_annotated_lend(recoup_annotated, "flags", RECOUP_BYTES, flags, recoup_count_flags);
const uint64_t recoup_count_header = (uint64_t)(sizeof header / sizeof(int32_t)); recoup_annotated_lend(recoup_annotated, "header", RECOUP_I32, header, recoup_count_header);
const uint64_t recoup_count_wide = (uint64_t)(sizeof wide / sizeof(int32_t)); recoup_annotated_lend(recoup_annotated, "wide", RECOUP_I32, wide, recoup_count_wide);
recoup_annotated_lend_value(recoup_annotated, "total", RECOUP_F64, &total);
recoup_annotated_lend_value(recoup_annotated, "seed", RECOUP_U32, &seed);

    for (int step = (int)recoup_annotated_start(recoup_annotated, (uint64_t)(0)); step < steps; step++, recoup_annotated_step(recoup_annotated, (uint64_t)step)) {
        double shares[4] = {0.25, 0.5, 0.25, 0};
        seed = seed * 1664525u + 1013904223u;
        size_t at = seed >> 20;
        size_t first = at < VALUES - 80 ? at : VALUES - 80;
        for (size_t i = 0; i < n; i++) total += copy[i];
        (RECOUP_TOUCHED(single, at), single[at] += step), (RECOUP_TOUCHED(single, AT(at + 500) % n), single[AT(at + 500) % n] += ROWS);
        { if ((size_t)(first) < (first + 70)) RECOUP_TOUCHED(row, (size_t)(first), (size_t)((first + 70) - 1)); for (size_t i = first; i < first + 70; i++)
            row[i] += shares[i % 4]; }
        int top = (int)(first / 64);
        { if ((int)(2) < (20) && (int)(top) <= (top + ROWS)) RECOUP_TOUCHED(plate, &plate[(int)(top)][3 * (int)(2) + 1] - &plate[0][0], &plate[(int)(top)][3 * (int)((20) - 1) + 1] - &plate[0][0], &plate[(int)(top + ROWS)][3 * (int)(2) + 1] - &plate[0][0], &plate[(int)(top + ROWS)][3 * (int)((20) - 1) + 1] - &plate[0][0]); if ((int)(2) < (20) && (int)(top) <= (top + ROWS)) RECOUP_TOUCHED(flags, first + 64 * (size_t)(int)(top), first + 64 * (size_t)(int)(top), first + 64 * (size_t)(int)(top + ROWS), first + 64 * (size_t)(int)(top + ROWS)); for (int i = top; i <= top + ROWS; i++)
            for (int j = 2; j < 20; j += 2) {
                plate[i][3 * j + 1] += 0.5f;
                if (j == 8) flags[first + 64 * (size_t)i] ^= 1;
            } }
        for (size_t i = 0; i < ROWS; i++)
            { if ((size_t)(i) < (9)) RECOUP_TOUCHED(triangle, first + 9 * i + (size_t)(i), first + 9 * i + (size_t)((9) - 1)); for (size_t j = i; j < 9; j++) triangle[first + 9 * i + j] += AT(j); }
        { if ((int)(0) < (ROWS)) RECOUP_TOUCHED(wide, (size_t)(int)(0) * 900 + at % 800, (size_t)(int)((ROWS) - 1) * 900 + at % 800); for (int i = 0; i < ROWS; i++) wide[(size_t)i * 900 + at % 800] -= 1; }
        for (size_t i = first + 5; i-- > first;) (RECOUP_TOUCHED(back, &*(back + i) - &back[0]), *(back + i) += step);
        for (size_t j = 0; j < 3; (RECOUP_TOUCHED(header, first + 20 * j), header[first + 20 * j] += 1), j++) shares[j] = 0;
        if (step % 10 == 3) continue;
        (RECOUP_TOUCHED_ALL(aged), age(aged, n / 2));
        (RECOUP_TOUCHED_ALL(copy), memcpy(copy, single, sizeof single));
    } recoup_annotated_close(recoup_annotated);
    double sum = total;
    for (size_t i = 0; i < n; i++) {
        double w = (double)(i + 1);
        sum += w * (row[i] + aged[i] + copy[i] + single[i] + triangle[i]);
        sum += w * ((double)back[i] + (double)header[i] + (double)wide[i]);
    }
    for (int i = 0; i < 128 * 128; i++) sum += (plate[i / 128][i % 128] + flags[i]) * (float)(i + 1);
    printf("%.17g %u\n", sum, (unsigned)seed);
    free(row);
    free(aged);
    free(copy);
    return 0;
}
