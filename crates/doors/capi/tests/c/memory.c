/* recoup_memory_* and recoup_view_*: every call with every wrong argument, values of every type, structs and graphs by
 * recoup_mem.h, older versions, and damaged files. */
#include "expect.h"
#include "states.h"
#include <recoup_mem.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS(ARRAY, POINTER, VALUE) \
    VALUE(uint64_t, n)                \
    POINTER(double, heat, self->n)    \
    ARRAY(int32_t, cells, 64)         \
    VALUE(float, mean)
RECOUP_VERSIONED(rod, FIELDS)

static char options[600], path[400];
static const char *directory;

/* Options of a memory in a file of this name. */
static const char *in(const char *name, const char *more)
{
    snprintf(path, sizeof path, "%s/%s", directory, name);
    snprintf(options, sizeof options, "file=\"%s\" %s", path, more);
    return options;
}

static recoup_memory opened(const char *text)
{
    recoup_memory memory = 0;
    EXPECT(recoup_memory_open(text, &memory), RECOUP_OK);
    return memory;
}

static void test_open(void)
{
    recoup_memory memory = 77;
    EXPECT(recoup_memory_open(NULL, &memory), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_open("file=f", NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_open("", &memory), RECOUP_E_OPTIONS);
    says("file=FILE is missing");
    EXPECT(recoup_memory_open(in("bad", "unknown=1"), &memory), RECOUP_E_OPTIONS);
    says("\"unknown\"");
    EXPECT(recoup_memory_open(in("bad", "keep=0"), &memory), RECOUP_E_OPTIONS);
    EXPECT(recoup_memory_open(in("bad", "medium=tape"), &memory), RECOUP_E_OPTIONS);
    EXPECT(recoup_memory_open(in("bad", "interval=0it"), &memory), RECOUP_E_OPTIONS);
    EXPECT(recoup_memory_open(in("bad", "block=1000"), &memory), RECOUP_E_OPTIONS);
    says("a power of two");
    EXPECT(recoup_memory_open(in("none/bad", ""), &memory), RECOUP_E_STORE);
    says(path);
    expect(memory == 77, "no memory is written by a call that fails");
    recoup_memory first = opened(in("twice", ""));
    EXPECT(recoup_memory_open(in("twice", ""), &memory), RECOUP_E_STORE);
    says("another writer");
    EXPECT(recoup_memory_close(first), RECOUP_OK);
    FILE *file = fopen(path, "w");
    if (file != NULL) fputs("something else of more than the bytes of a root of a file of versions: a text", file), fclose(file);
    EXPECT(recoup_memory_open(in("twice", ""), &memory), RECOUP_E_STORE);
    says("no versioned memory");
}

static void test_arrays(double *x)
{
    double *odd = (double *)((char *)x + 1);
    uint32_t few[4] = {0};
    recoup_memory memory = opened(in("arrays", "medium=file"));
    recoup_memory none = memory + 1000;
    EXPECT(recoup_memory_array(none, "x", RECOUP_F64, x, N), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_array(0, "x", RECOUP_F64, x, N), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_array(memory, NULL, RECOUP_F64, x, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_array(memory, "", RECOUP_F64, x, N), RECOUP_E_NAME);
    EXPECT(recoup_memory_array(memory, "a b", RECOUP_F64, x, N), RECOUP_E_NAME);
    EXPECT(recoup_memory_array(memory, "x", 7, x, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_array(memory, "x", -1, x, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_array(memory, "x", RECOUP_F64, NULL, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_array(memory, "x", RECOUP_F64, odd, N - 1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_array(memory, "x", RECOUP_F64, x, UINT64_MAX / 8), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_array(memory, "x", RECOUP_F64, x, UINT64_MAX / 4), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_array(memory, "x", RECOUP_F64, x, N), RECOUP_OK);
    EXPECT(recoup_memory_array(memory, "y", RECOUP_I32, x + 5, 1), RECOUP_E_ARGUMENT);
    says("overlaps array x");
    EXPECT(recoup_memory_array(memory, "none", RECOUP_U32, NULL, 0), RECOUP_OK);
    EXPECT(recoup_memory_array(memory, "few", RECOUP_U32, few, 4), RECOUP_OK);
    EXPECT(recoup_memory_touch(none, "x", 0, 1), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_touch(memory, NULL, 0, 1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_touch(memory, "y", 0, 1), RECOUP_E_NAME);
    EXPECT(recoup_memory_touch(memory, "x", N, 1), RECOUP_E_ARGUMENT);
    says("1 values from value 1000 of 1000");
    EXPECT(recoup_memory_touch(memory, "x", 2, UINT64_MAX - 1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_touch(memory, "x", N, 0), RECOUP_OK);
    EXPECT(recoup_memory_touch(memory, "none", 0, 0), RECOUP_OK);
    EXPECT(recoup_memory_compare(none, "few"), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_compare(memory, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_compare(memory, "y"), RECOUP_E_NAME);
    EXPECT(recoup_memory_compare(memory, "few"), RECOUP_OK);
    EXPECT(recoup_memory_commit(memory, 1, NULL), RECOUP_OK);
    EXPECT(recoup_memory_close(memory), RECOUP_OK);
}

/* Lists, reports, restores and views with wrong arguments, on a memory of one version. */
static void test_arguments(double *x)
{
    double *odd = (double *)((char *)x + 1);
    uint64_t number = 77, step = 77, count = 77;
    int32_t type = 77;
    char line[8];
    recoup_memory_version_t versions[2];
    recoup_memory_report_t report;
    recoup_view view = 77;
    recoup_memory memory = opened(in("arguments", "medium=map"));
    recoup_memory none = memory + 1000;
    EXPECT(recoup_memory_array(memory, "x", RECOUP_F64, x, N), RECOUP_OK);
    EXPECT(recoup_memory_restore(memory, 0, &step), RECOUP_NO_VERSION);
    EXPECT(recoup_memory_restore(memory, 1, &step), RECOUP_E_ARGUMENT);
    says("version 1 is not kept");
    EXPECT(recoup_memory_versions(memory, NULL, 0, &count), RECOUP_OK);
    expect(step == 77 && count == 0, "an empty memory writes no step and counts no version");
    fill(x, 5);
    EXPECT(recoup_memory_commit(none, 5, &number), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_commit(memory, 5, (uint64_t *)odd), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_commit(memory, 5, &number), RECOUP_OK);
    expect(number == 1, "a call that is refused makes no version");
    EXPECT(recoup_memory_step(none, 5, &number), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_step(memory, 5, (uint64_t *)odd), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_versions(none, versions, 2, &count), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_versions(memory, versions, 2, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_versions(memory, NULL, 2, &count), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_versions(memory, versions, 0, &count), RECOUP_E_ARGUMENT);
    says("1 versions are kept");
    EXPECT(recoup_memory_versions(memory, versions, 2, &count), RECOUP_OK);
    expect(count == 1 && versions[0].number == 1 && versions[0].step == 5 && versions[0].bytes == 8 * N, "the list");
    EXPECT(recoup_memory_report(none, &report), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_report(memory, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_report(memory, &report), RECOUP_OK);
    expect(report.versions == 1 && report.commits == 1 && report.damaged == 0 && report.block_bytes == 65536, "the report");
    EXPECT(recoup_memory_damaged(none, 0, line, sizeof line), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_damaged(memory, 0, line, sizeof line), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_restore(none, 0, &step), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_restore(memory, 2, &step), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_restore(memory, 0, (uint64_t *)odd), RECOUP_E_ARGUMENT);

    EXPECT(recoup_view_open(none, 1, &view), RECOUP_E_HANDLE);
    EXPECT(recoup_view_open(memory, 2, &view), RECOUP_E_ARGUMENT);
    EXPECT(recoup_view_open(memory, 1, NULL), RECOUP_E_ARGUMENT);
    expect(view == 77, "no view is written by a call that fails");
    EXPECT(recoup_view_open(memory, 1, &view), RECOUP_OK);
    EXPECT(recoup_view_shape(memory, "x", &type, &count), RECOUP_E_HANDLE);
    EXPECT(recoup_view_shape(view, "y", &type, &count), RECOUP_E_NAME);
    EXPECT(recoup_view_shape(view, NULL, &type, &count), RECOUP_E_ARGUMENT);
    EXPECT(recoup_view_shape(view, "x", NULL, &count), RECOUP_E_ARGUMENT);
    EXPECT(recoup_view_shape(view, "x", &type, NULL), RECOUP_E_ARGUMENT);
    EXPECT(recoup_view_shape(view, "x", &type, &count), RECOUP_OK);
    expect(type == RECOUP_F64 && count == N, "the shape is that of the array");
    fill(x, 6);
    EXPECT(recoup_view_read(none, "x", RECOUP_F64, 0, x, N), RECOUP_E_HANDLE);
    EXPECT(recoup_view_read(view, NULL, RECOUP_F64, 0, x, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_view_read(view, "y", RECOUP_F64, 0, x, N), RECOUP_E_NAME);
    EXPECT(recoup_view_read(view, "x", 9, 0, x, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_view_read(view, "x", RECOUP_I64, 0, x, N), RECOUP_E_MISMATCH);
    EXPECT(recoup_view_read(view, "x", RECOUP_F64, 1, x, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_view_read(view, "x", RECOUP_F64, UINT64_MAX, x, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_view_read(view, "x", RECOUP_F64, 0, NULL, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_view_read(view, "x", RECOUP_F64, 0, odd, N - 1), RECOUP_E_ARGUMENT);
    EXPECT(recoup_view_read(view, "x", RECOUP_F64, N, NULL, 0), RECOUP_OK);
    expect(holds(x, 6), "calls that fail write nothing");
    EXPECT(recoup_step(memory, 1, 1, 1), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_close(view), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_close(memory), RECOUP_OK);
    EXPECT(recoup_memory_close(memory), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_commit(memory, 6, &number), RECOUP_E_HANDLE);

    EXPECT(recoup_memory_open(options, &memory), RECOUP_E_STORE); /* the view holds the file */
    EXPECT(recoup_view_read(view, "x", RECOUP_F64, 0, x, N), RECOUP_OK);
    expect(holds(x, 5), "a view outlives its memory");
    EXPECT(recoup_view_close(view), RECOUP_OK);
    EXPECT(recoup_view_close(view), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_open(options, &memory), RECOUP_OK);
    EXPECT(recoup_memory_close(memory), RECOUP_OK);
}

/* What was touched, compared or moved is in the next version; older ones stay what they were. */
static void test_versions(double *x)
{
    double other[4] = {1, 2, 3, 4}, part[3];
    uint64_t step = 0, number = 0, count = 0;
    recoup_memory_version_t versions[3];
    recoup_view view = 0;
    recoup_memory memory = opened(in("versions", "keep=3 block=512 interval=2it"));
    fill(x, 0);
    EXPECT(recoup_memory_array(memory, "x", RECOUP_F64, x, N), RECOUP_OK);
    EXPECT(recoup_memory_array(memory, "other", RECOUP_F64, other, 4), RECOUP_OK);
    EXPECT(recoup_memory_compare(memory, "other"), RECOUP_OK);
    EXPECT(recoup_memory_commit(memory, 10, &number), RECOUP_OK);
    x[100] = -0.0, x[900] = 9, other[2] = 33; /* 900 is not announced */
    EXPECT(recoup_memory_touch(memory, "x", 100, 1), RECOUP_OK);
    EXPECT(recoup_memory_step(memory, 11, &number), RECOUP_OK);
    expect(number == 0, "no version is due after one step of two");
    EXPECT(recoup_memory_step(memory, 12, &number), RECOUP_OK);
    expect(number == 2, "a version is due after two steps");
    EXPECT(recoup_memory_versions(memory, versions, 3, &count), RECOUP_OK);
    expect(count == 2 && versions[1].step == 12, "the oldest version is the first of the list");
    expect(versions[0].new_bytes == 17 * 512 && versions[1].new_bytes == 2 * 512, "a version shares what was not touched");
    EXPECT(recoup_view_open(memory, 2, &view), RECOUP_OK);
    EXPECT(recoup_view_read(view, "x", RECOUP_F64, 99, part, 3), RECOUP_OK);
    expect(part[0] == 0.099 && part[1] == 0 && 1 / part[1] < 0 && part[2] == 0.101, "touched values are in the version");
    EXPECT(recoup_view_read(view, "x", RECOUP_F64, 900, part, 1), RECOUP_OK);
    expect(part[0] == 0.9, "a write that was not announced is missing");
    for (uint64_t k = 3; k < 7; k++) {
        EXPECT(recoup_memory_touch(memory, "x", 0, N), RECOUP_OK);
        fill(x, k);
        EXPECT(recoup_memory_commit(memory, 10 + k, NULL), RECOUP_OK);
    }
    EXPECT(recoup_memory_restore(memory, 2, &step), RECOUP_E_ARGUMENT);
    EXPECT(recoup_view_read(view, "other", RECOUP_F64, 2, part, 1), RECOUP_OK);
    expect(part[0] == 33, "a view keeps a version that was retired");
    EXPECT(recoup_view_close(view), RECOUP_OK);
    EXPECT(recoup_memory_restore(memory, 5, &step), RECOUP_OK);
    expect(step == 15 && holds(x, 5), "an older version is restored");
    EXPECT(recoup_memory_array(memory, "other", RECOUP_F64, other, 3), RECOUP_OK);
    EXPECT(recoup_memory_restore(memory, 0, &step), RECOUP_E_MISMATCH);
    says("structure other: 3 values expected, 4 found");
    expect(holds(x, 5) && step == 15, "a restore fills all arrays or none");
    EXPECT(recoup_memory_array(memory, "other", RECOUP_I64, other, 4), RECOUP_OK);
    EXPECT(recoup_memory_restore(memory, 0, &step), RECOUP_E_MISMATCH);
    EXPECT(recoup_memory_array(memory, "other", RECOUP_F64, other, 4), RECOUP_OK);
    EXPECT(recoup_memory_array(memory, "third", RECOUP_F64, part, 3), RECOUP_OK);
    EXPECT(recoup_memory_restore(memory, 0, &step), RECOUP_E_MISMATCH);
    says("no structure third");
    EXPECT(recoup_memory_close(memory), RECOUP_OK);
}

/* Values of every type, lent by the macros and as a graph, come back bit for bit. */
static void test_structs(double *x)
{
    uint64_t step = 0, offsets[4] = {0, 2, 2, 3};
    uint32_t targets[3] = {1, 2, 0};
    uint8_t states[3] = {7, 8, 9};
    int64_t data[3] = {INT64_MIN, -1, 5};
    recoup_graph web = {3, 3, offsets, targets, RECOUP_BYTES, states, RECOUP_I64, data};
    struct rod rod = {N, x, {0}, 1.5f};
    recoup_memory memory = opened(in("structs", "block=512"));
    for (int i = 0; i < 64; i++) rod.cells[i] = -i;
    fill(x, 1);
    EXPECT(rod_lend(memory + 1000, &rod), RECOUP_E_HANDLE);
    EXPECT(rod_lend(memory, &rod), RECOUP_OK);
    EXPECT(recoup_graph_lend(memory, "web", &web), RECOUP_OK);
    EXPECT(recoup_memory_commit(memory, 1, NULL), RECOUP_OK);
    EXPECT(RECOUP_TOUCH(memory, rod, heat, 500, N), RECOUP_E_ARGUMENT);
    EXPECT(RECOUP_TOUCH(memory, rod, heat, 500, 1), RECOUP_OK);
    EXPECT(RECOUP_TOUCH(memory, rod, cells, 63, 1), RECOUP_OK);
    x[500] = 5, rod.cells[63] = 63, rod.mean = 2.5f;
    EXPECT(recoup_memory_commit(memory, 2, NULL), RECOUP_OK);
    EXPECT(recoup_memory_close(memory), RECOUP_OK);

    memory = opened(options);
    memset(x, 0, N * sizeof *x), memset(rod.cells, 0, sizeof rod.cells), memset(targets, 0, sizeof targets);
    memset(states, 0, sizeof states), memset(data, 0, sizeof data), memset(offsets, 0, sizeof offsets);
    rod.mean = 0;
    EXPECT(rod_lend(memory, &rod), RECOUP_OK);
    EXPECT(recoup_graph_lend(memory, "web", &web), RECOUP_OK);
    EXPECT(recoup_memory_restore(memory, 0, &step), RECOUP_OK);
    expect(step == 2 && x[499] == 1.499 && x[500] == 5 && rod.cells[62] == -62 && rod.cells[63] == 63, "arrays");
    expect(rod.n == N && rod.mean == 2.5f, "values");
    expect(offsets[3] == 3 && targets[1] == 2 && states[2] == 9 && data[0] == INT64_MIN, "a graph");
    EXPECT(recoup_memory_close(memory), RECOUP_OK);
}

/* Flips a bit of the first place of the file that holds these bytes. */
static void flip(const void *bytes, size_t n)
{
    static char content[1 << 20];
    FILE *file = fopen(path, "r+b");
    size_t length = file == NULL ? 0 : fread(content, 1, sizeof content, file), at = 0;
    while (at + n <= length && memcmp(content + at, bytes, n) != 0) at++;
    expect(at + n <= length, "the file holds these bytes");
    if (file == NULL) return;
    fseek(file, (long)at, SEEK_SET);
    fputc(content[at] ^ 1, file);
    fclose(file);
}

/* A damaged block is named and given out neither by a view nor by a restore; the version before is restored. */
static void test_damage(double *x)
{
    char line[200], cut[9];
    uint64_t step = 77;
    double part[2] = {-1, -1}, of_second;
    recoup_memory_report_t report;
    recoup_view view = 0;
    recoup_memory memory = opened(in("damage", "medium=file"));
    EXPECT(recoup_memory_array(memory, "x", RECOUP_F64, x, N), RECOUP_OK);
    for (uint64_t k = 1; k < 3; k++) {
        fill(x, k);
        EXPECT(recoup_memory_touch(memory, "x", 0, N), RECOUP_OK);
        EXPECT(recoup_memory_commit(memory, k, NULL), RECOUP_OK);
    }
    of_second = x[7];
    EXPECT(recoup_memory_close(memory), RECOUP_OK);
    flip(&of_second, sizeof of_second);
    memory = opened(options);
    EXPECT(recoup_memory_array(memory, "x", RECOUP_F64, x, N), RECOUP_OK);
    EXPECT(recoup_view_open(memory, 2, &view), RECOUP_OK);
    EXPECT(recoup_view_read(view, "x", RECOUP_F64, 0, part, 2), RECOUP_E_DAMAGED);
    says("version 2, x, block 0: checksum");
    expect(part[0] == -1 && part[1] == -1, "damaged values are not given out");
    EXPECT(recoup_view_close(view), RECOUP_OK);
    fill(x, 9);
    EXPECT(recoup_memory_restore(memory, 2, &step), RECOUP_E_DAMAGED);
    expect(step == 77 && holds(x, 9), "a restore that fails writes nothing");
    EXPECT(recoup_memory_restore(memory, 0, &step), RECOUP_OK);
    expect(step == 1 && holds(x, 1), "the newest whole version is restored");
    EXPECT(recoup_memory_report(memory, &report), RECOUP_OK);
    expect(report.damaged == 1, "one place is damaged");
    EXPECT(recoup_memory_damaged(memory, 0, line, sizeof line), RECOUP_OK);
    expect(strstr(line, "version 2, x, block 0: checksum") == line, line);
    EXPECT(recoup_memory_damaged(memory, 0, cut, sizeof cut), RECOUP_OK);
    expect(strcmp(cut, "version ") == 0, "a long line is cut");
    EXPECT(recoup_memory_damaged(memory, 0, cut, 0), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_damaged(memory, 0, NULL, 8), RECOUP_E_ARGUMENT);
    EXPECT(recoup_memory_close(memory), RECOUP_OK);
}

/* Commits continued into a file that had been removed, and said that their versions count. */
static void test_gone(double *x)
{
    recoup_memory memory = opened(in("gone", ""));
    EXPECT(recoup_memory_array(memory, "x", RECOUP_F64, x, N), RECOUP_OK);
    EXPECT(recoup_memory_commit(memory, 1, NULL), RECOUP_OK);
    expect(remove(path) == 0, "the file is removed");
    EXPECT(recoup_memory_commit(memory, 2, NULL), RECOUP_E_STORE);
    says(path);
    EXPECT(recoup_memory_close(memory), RECOUP_OK);
}

int main(int argc, char **argv)
{
    double *x = malloc((N + 1) * sizeof(double));
    directory = argc > 1 ? argv[1] : ".";
    if (x == NULL) return 1;
    fill(x, 0);
    test_open();
    test_arrays(x);
    test_arguments(x);
    test_versions(x);
    test_structs(x);
    test_damage(x);
    test_gone(x);
    free(x);
    printf("%d failures\n", failures);
    return failures != 0;
}
