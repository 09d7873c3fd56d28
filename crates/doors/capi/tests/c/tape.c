/* recoup_tape_*: every call with every wrong argument, states of every type, and damaged files. */
#include "expect.h"
#include "states.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char options[600], folder[400];
static const char *directory;

/* Options of a tape that spills to a folder of this name. */
static const char *in(const char *name, const char *more)
{
    snprintf(folder, sizeof folder, "%s/%s", directory, name);
    snprintf(options, sizeof options, "spill=\"%s\" %s", folder, more);
    return options;
}

static recoup_tape opened(const char *text)
{
    recoup_tape tape = 0;
    EXPECT(recoup_tape_open(text, &tape), RECOUP_OK);
    return tape;
}

/* The path of the file of a step; "" if there is none. Counts all files of states. */
static const char *file_of(uint64_t step, int *n_files)
{
    static char path[800];
    char end[40];
    DIR *listing = opendir(folder);
    struct dirent *entry;
    snprintf(end, sizeof end, "-%llu.state", (unsigned long long)step);
    path[0] = 0;
    *n_files = 0;
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        if (strstr(entry->d_name, ".state") != NULL) ++*n_files;
        if (strstr(entry->d_name, end) != NULL) snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    }
    if (listing != NULL) closedir(listing);
    return path;
}

static void flip(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    if (file == NULL) {
        failures++;
        printf("no file %s\n", path);
        return;
    }
    fseek(file, at, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 16, file);
    fclose(file);
}

static void test_open(void)
{
    recoup_tape tape = 77;
    EXPECT(recoup_tape_open(NULL, &tape), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_open("host=1M", NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_open("", &tape), RECOUP_E_OPTIONS);
    says("spill=DIRECTORY");
    EXPECT(recoup_tape_open("host=1M unknown=1", &tape), RECOUP_E_OPTIONS);
    says("\"unknown\"");
    EXPECT(recoup_tape_open("host=much", &tape), RECOUP_E_OPTIONS);
    EXPECT(recoup_tape_open("host=1M bound=absolute:1e-3", &tape), RECOUP_E_OPTIONS);
    says("codec");
    EXPECT(recoup_tape_open("device=1M codec=qb", &tape), RECOUP_E_OPTIONS);
    says("memory of the host");
    EXPECT(recoup_tape_open("device=1M host=1M codec=qb key-every=3", &tape), RECOUP_E_OPTIONS);
    says("code each alone");
    EXPECT(recoup_tape_open("spill=\"d", &tape), RECOUP_E_OPTIONS);
    EXPECT(recoup_tape_open("host=100000T", &tape), RECOUP_E_FULL);
    says("the machine has");
    EXPECT(recoup_tape_open(in("none/../../../../../../proc/none", ""), &tape), RECOUP_E_STORE);
    expect(tape == 77, "no tape is written by a call that fails");
    recoup_tape first = opened(in("twice", ""));
    EXPECT(recoup_tape_open(in("twice", ""), &tape), RECOUP_E_STORE);
    EXPECT(recoup_tape_close(first), RECOUP_OK);
}

static void test_arguments(double *x)
{
    double *odd = (double *)((char *)x + 1);
    uint64_t step = 77, count = 77, steps[4] = {77, 77, 77, 77};
    int32_t type = 77;
    char line[8];
    recoup_tape_report_t report;
    recoup_tape tape = opened("host=1MiB");
    recoup_tape none = tape + 1000;
    EXPECT(recoup_tape_push(none, 0, RECOUP_F64, x, N), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_push(0, 0, RECOUP_F64, x, N), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_push(tape, 0, 4, x, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_push(tape, 0, -1, x, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_push(tape, 0, RECOUP_F64, NULL, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_push(tape, 0, RECOUP_F64, odd, N - 1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_push(tape, 0, RECOUP_F64, x, UINT64_MAX / 8), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_next(tape, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_next(tape, &step), RECOUP_EMPTY);
    EXPECT(recoup_tape_pop(tape, RECOUP_F64, x, N, &step), RECOUP_EMPTY);
    expect(step == 77, "an empty tape writes no step");

    fill(x, 5);
    EXPECT(recoup_tape_push(tape, 5, RECOUP_F64, x, N), RECOUP_OK);
    EXPECT(recoup_tape_push(tape, 5, RECOUP_F64, x, N), RECOUP_E_STEP);
    EXPECT(recoup_tape_push(tape, 6, RECOUP_BYTES, x, 0), RECOUP_OK);
    EXPECT(recoup_tape_pop(tape, RECOUP_BYTES, NULL, 0, &step), RECOUP_OK);
    expect(step == 6, "a state of no values comes back");
    memset(x, 0, N * sizeof(double));
    EXPECT(recoup_tape_pop(none, RECOUP_F64, x, N, &step), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_pop(tape, RECOUP_F64, NULL, N, &step), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_pop(tape, RECOUP_F64, odd, N - 1, &step), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_pop(tape, RECOUP_F64, x, N, (uint64_t *)odd), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_pop(tape, 9, x, N, &step), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_pop(tape, RECOUP_F64, x, N - 1, &step), RECOUP_E_MISMATCH);
    says("step 5: 1000 values of type f64");
    EXPECT(recoup_tape_pop(tape, RECOUP_I64, x, N, &step), RECOUP_E_MISMATCH);
    EXPECT(recoup_tape_pop(tape, RECOUP_F32, x, 2 * N, &step), RECOUP_E_MISMATCH);
    EXPECT(recoup_tape_peek(none, 5, RECOUP_F64, x, N), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_peek(tape, 4, RECOUP_F64, x, N), RECOUP_E_STEP);
    EXPECT(recoup_tape_peek(tape, 5, RECOUP_F64, x, N - 1), RECOUP_E_MISMATCH);
    EXPECT(recoup_tape_peek(tape, 5, RECOUP_F64, NULL, N), RECOUP_E_ARGUMENT);
    expect(x[0] == 0 && x[N - 1] == 0 && step == 6, "calls that fail write nothing");
    EXPECT(recoup_tape_shape(tape, 4, &type, &count), RECOUP_E_STEP);
    EXPECT(recoup_tape_shape(tape, 5, NULL, &count), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_shape(tape, 5, &type, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_shape(none, 5, &type, &count), RECOUP_E_HANDLE);
    expect(type == 77 && count == 77, "no shape is written by a call that fails");
    EXPECT(recoup_tape_shape(tape, 5, &type, &count), RECOUP_OK);
    expect(type == RECOUP_F64 && count == N, "the shape is that of the push");

    EXPECT(recoup_tape_forget(tape, 4), RECOUP_E_STEP);
    EXPECT(recoup_tape_forget(none, 5), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_announce(tape, NULL, 1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_announce(tape, steps, 1), RECOUP_E_STEP);
    EXPECT(recoup_tape_announce(none, steps, 1), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_announce(tape, NULL, 0), RECOUP_OK);
    EXPECT(recoup_tape_turn(none), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_turn(tape), RECOUP_OK);
    EXPECT(recoup_tape_save(none), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_save(tape), RECOUP_E_STORE);
    EXPECT(recoup_tape_count(tape, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_count(none, &count), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_steps(tape, steps, 4, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_steps(tape, NULL, 4, &count), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_steps(none, steps, 4, &count), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_steps(tape, NULL, 0, &count), RECOUP_E_ARGUMENT);
    says("1 steps are on the tape");
    EXPECT(recoup_tape_steps(tape, steps, 4, &count), RECOUP_OK);
    expect(count == 1 && steps[0] == 5 && steps[1] == 77, "one step is written");
    EXPECT(recoup_tape_report(tape, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_report(none, &report), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_report(tape, &report), RECOUP_OK);
    expect(report.states == 1 && report.pushed == 2 && report.popped == 1 && report.raw_bytes == 8 * N, "the report");
    EXPECT(recoup_tape_damaged(tape, 0, line, sizeof line), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_damaged(none, 0, line, sizeof line), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_damaged(tape, 0, NULL, 8), RECOUP_E_ARGUMENT);
    EXPECT(recoup_step(tape, 1, 1, 1), RECOUP_E_HANDLE);

    EXPECT(recoup_tape_pop(tape, RECOUP_F64, x, N + 1, NULL), RECOUP_OK);
    expect(holds(x, 5), "larger room takes the state");
    EXPECT(recoup_tape_close(none), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_close(tape), RECOUP_OK);
    EXPECT(recoup_tape_close(tape), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_count(tape, &count), RECOUP_E_HANDLE);
}

/* Every type, in reverse and as announced. */
static void test_types(double *x)
{
    float single[3] = {1, -0.0f, 3};
    int64_t number[2] = {INT64_MIN, 7};
    char text[7] = "a tape";
    uint64_t order[2] = {2, 0}, step, count = 0;
    recoup_tape tape = opened("host=1MiB pages=small");
    fill(x, 3);
    EXPECT(recoup_tape_push(tape, 0, RECOUP_F32, single, 3), RECOUP_OK);
    EXPECT(recoup_tape_push(tape, 1, RECOUP_I64, number, 2), RECOUP_OK);
    EXPECT(recoup_tape_push(tape, 2, RECOUP_BYTES, text, 7), RECOUP_OK);
    EXPECT(recoup_tape_push(tape, 3, RECOUP_F64, x, N), RECOUP_OK);
    EXPECT(recoup_tape_push(tape, 4, RECOUP_F64, x, N), RECOUP_OK);
    EXPECT(recoup_tape_forget(tape, 4), RECOUP_OK);
    EXPECT(recoup_tape_announce(tape, order, 2), RECOUP_OK);
    memset(single, 0, sizeof single), memset(number, 0, sizeof number), memset(text, 0, sizeof text);
    EXPECT(recoup_tape_pop(tape, RECOUP_BYTES, text, 7, &step), RECOUP_OK);
    EXPECT(recoup_tape_pop(tape, RECOUP_F32, single, 3, &step), RECOUP_OK);
    EXPECT(recoup_tape_pop(tape, RECOUP_F64, x, N, &step), RECOUP_OK);
    EXPECT(recoup_tape_pop(tape, RECOUP_I64, number, 2, &step), RECOUP_OK);
    expect(step == 1 && strcmp(text, "a tape") == 0 && single[2] == 3 && number[0] == INT64_MIN, "every type");
    EXPECT(recoup_tape_count(tape, &count), RECOUP_OK);
    expect(count == 0, "all were popped");
    EXPECT(recoup_tape_close(tape), RECOUP_OK);
}

/* Memory alone is full; a state that is larger than the tape is refused. */
static void test_full(double *x)
{
    uint64_t step = 0, n = 0;
    int code;
    recoup_tape tape = opened("host=100000");
    while ((code = recoup_tape_push(tape, n, RECOUP_F64, x, N)) == RECOUP_OK) n++;
    EXPECT(code, RECOUP_E_FULL);
    says("the tape is full");
    EXPECT(recoup_tape_pop(tape, RECOUP_F64, x, N, &step), RECOUP_OK);
    expect(step == n - 1 && n > 10, "what was pushed is there");
    EXPECT(recoup_tape_push(tape, n, RECOUP_BYTES, x, 8 * N), RECOUP_OK);
    EXPECT(recoup_tape_close(tape), RECOUP_OK);
    tape = opened("host=1000 codec=zstd");
    for (int i = 0; i < N; i++) ((uint64_t *)x)[i] = (uint64_t)i * 0x9e3779b97f4a7c15;
    EXPECT(recoup_tape_push(tape, 0, RECOUP_F64, x, N), RECOUP_OK);
    EXPECT(recoup_tape_next(tape, &step), RECOUP_E_FULL);
    EXPECT(recoup_tape_next(tape, &step), RECOUP_EMPTY);
    EXPECT(recoup_tape_close(tape), RECOUP_OK);
}

/* States outlive the tape; those of a grid with a codec keep their bound, and leave in reverse. */
static void test_reopened(double *x)
{
    const char *coded = "host=100k codec=qb bound=absolute:1e-6 key-every=4 grid=10x10x10 threads=2";
    char again[200];
    int n_files;
    uint64_t step, order[1] = {0};
    recoup_tape other, tape = opened(in("coded", coded));
    EXPECT(recoup_tape_push(tape, 0, RECOUP_F64, x, N - 1), RECOUP_E_ARGUMENT);
    says("grid");
    for (uint64_t k = 0; k < 10; k++) {
        fill(x, k);
        EXPECT(recoup_tape_push(tape, k, RECOUP_F64, x, N), RECOUP_OK);
    }
    EXPECT(recoup_tape_announce(tape, order, 1), RECOUP_E_ORDER);
    EXPECT(recoup_tape_forget(tape, 1), RECOUP_E_ORDER);
    EXPECT(recoup_tape_save(tape), RECOUP_OK);
    file_of(0, &n_files);
    expect(n_files == 10, "a tape that is saved has a file for each state");
    EXPECT(recoup_tape_close(tape), RECOUP_OK);
    EXPECT(recoup_tape_open(in("coded", coded), &other), RECOUP_E_STORE);
    says("reopen=yes");
    tape = opened(in("coded", "reopen"));
    EXPECT(recoup_tape_pop(tape, RECOUP_F64, x, N, &step), RECOUP_E_OPTIONS);
    says("qb");
    EXPECT(recoup_tape_close(tape), RECOUP_OK);
    snprintf(again, sizeof again, "%s reopen=yes", coded);
    tape = opened(in("coded", again));
    for (uint64_t k = 10; k-- > 0;) {
        EXPECT(recoup_tape_pop(tape, RECOUP_F64, x, N, &step), RECOUP_OK);
        double most = 0;
        for (int i = 0; i < N; i++) {
            double off = x[i] - ((double)k + i / 1000.0);
            if (off < 0) off = -off;
            if (off > most) most = off;
        }
        expect(step == k && most <= 1e-6, "the bound is kept");
    }
    EXPECT(recoup_tape_close(tape), RECOUP_OK);
    /* Those that were popped while they were fetched leave theirs when the tape is closed. */
    file_of(0, &n_files);
    expect(n_files == 0, "popped states leave no file");
    tape = opened(in("cleared", ""));
    EXPECT(recoup_tape_push(tape, 1, RECOUP_F64, x, N), RECOUP_OK);
    EXPECT(recoup_tape_close(tape), RECOUP_OK);
    tape = opened(in("cleared", "clear=yes"));
    EXPECT(recoup_tape_next(tape, &step), RECOUP_EMPTY);
    EXPECT(recoup_tape_close(tape), RECOUP_OK);
}

/* A flipped bit of the values is found by the pop, one of the header when the tape is opened. Both are named, and
 * neither state is given out; all others are. */
static void test_damage(double *x)
{
    char line[1000], cut[9], path[800];
    int n_files;
    uint64_t step = 77, popped = 0;
    recoup_tape_report_t report;
    recoup_tape tape = opened(in("damage", "host=20k"));
    for (uint64_t k = 0; k < 6; k++) {
        fill(x, k);
        EXPECT(recoup_tape_push(tape, k, RECOUP_F64, x, N), RECOUP_OK);
    }
    EXPECT(recoup_tape_close(tape), RECOUP_OK);
    snprintf(path, sizeof path, "%s", file_of(2, &n_files));
    expect(n_files == 6, "a tape that is closed has saved its states");
    flip(path, 7);
    flip(file_of(4, &n_files), 4000);
    tape = opened(in("damage", "host=20k reopen=yes"));
    EXPECT(recoup_tape_report(tape, &report), RECOUP_OK);
    expect(report.damaged == 1 && report.states == 5, "one file is damaged in its header");
    EXPECT(recoup_tape_damaged(tape, 0, line, sizeof line), RECOUP_OK);
    expect(strstr(line, path) != NULL && strstr(line, "format") != NULL, line);
    EXPECT(recoup_tape_damaged(tape, 0, cut, sizeof cut), RECOUP_OK);
    expect(strlen(cut) == 8 && strncmp(cut, line, 8) == 0, "a long line is cut");
    EXPECT(recoup_tape_damaged(tape, 0, cut, 0), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_pop(tape, RECOUP_F64, x, N, &step), RECOUP_OK);
    expect(step == 5 && holds(x, 5), "the newest state");
    memset(x, 0, N * sizeof(double));
    EXPECT(recoup_tape_pop(tape, RECOUP_F64, x, N, &step), RECOUP_E_DAMAGED);
    says("-4.state");
    says("checksum");
    EXPECT(recoup_tape_peek(tape, 4, RECOUP_F64, x, N), RECOUP_E_DAMAGED);
    expect(step == 5 && x[0] == 0 && x[N - 1] == 0, "a damaged state is not given out");
    EXPECT(recoup_tape_next(tape, &step), RECOUP_OK);
    EXPECT(recoup_tape_forget(tape, step), RECOUP_OK);
    while (recoup_tape_pop(tape, RECOUP_F64, x, N, &step) == RECOUP_OK) popped += holds(x, step);
    expect(popped == 3, "all other states are given out");
    EXPECT(recoup_tape_close(tape), RECOUP_OK);
    file_of(0, &n_files);
    expect(n_files == 1, "the damaged file stays where it is");
}

int main(int argc, char **argv)
{
    double *x = malloc((N + 1) * sizeof(double));
    directory = argc > 1 ? argv[1] : ".";
    if (x == NULL) return 1;
    fill(x, 0);
    test_open();
    test_arguments(x);
    test_types(x);
    test_full(x);
    test_reopened(x);
    test_damage(x);
    free(x);
    printf("%d failures\n", failures);
    return failures != 0;
}
