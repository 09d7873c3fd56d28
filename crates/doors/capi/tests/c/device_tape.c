/* A tape whose states are in the memory of a device, and in that of the host, pushed and popped by address.
 *
 *     device_tape OPTIONS LEAVES_OFF
 *
 * The library is the driver that LD_LIBRARY_PATH names. Pushes all states, and is killed then, if LEAVES_OFF is not 0.
 * Pops what is on the tape, compares it bit for bit, and prints the number of states. */
#include <math.h>
#include <recoup.h>
#include <signal.h>
#include <string.h>

#include "driver.h"
#include "expect.h"

enum { N = 3000, STATES = 12 };

static double value(int i, uint64_t step)
{
    return sqrt((double)(i + 1)) * (double)(step + 1);
}

static void fill(double *host, uint64_t step)
{
    for (int i = 0; i < N; i++) host[i] = value(i, step);
}

static void compare(const double *host, uint64_t step)
{
    for (int i = 0; i < N; i++) {
        double expected = value(i, step);
        if (memcmp(&host[i], &expected, sizeof expected) != 0) {
            failures++;
            printf("value %d of step %llu is another\n", i, (unsigned long long)step);
            return;
        }
    }
}

static void upload(uint64_t x, const double *host)
{
    need(cuMemcpyHtoDAsync_v2(x, host, N * sizeof(double), 0), "cuMemcpyHtoDAsync");
}

static void download(double *host, uint64_t x)
{
    need(cuMemcpyDtoH_v2(host, x, N * sizeof(double)), "cuMemcpyDtoH");
}

/* Every third state is pushed from the host. The vector is overwritten after each push. */
static void push_all(recoup_tape tape, uint64_t x, double *host)
{
    static const double zeros[N];
    for (uint64_t step = 0; step < STATES; step++) {
        fill(host, step);
        upload(x, host);
        if (step % 3 == 0)
            EXPECT(recoup_tape_push(tape, step, RECOUP_F64, host, N), RECOUP_OK);
        else
            EXPECT(recoup_tape_push(tape, step, RECOUP_F64, (void *)(uintptr_t)x, N), RECOUP_OK);
        upload(x, zeros);
    }
}

static void test_arguments(recoup_tape tape, uint64_t x, double *host)
{
    void *lent = (void *)(uintptr_t)x, *odd = (void *)(uintptr_t)(x + 1);
    uint64_t step = 77;
    EXPECT(recoup_tape_push(tape, 90, RECOUP_F64, lent, 2 * N + 1), RECOUP_E_ARGUMENT);
    if (strstr(recoup_message(), "48008 bytes expected") == NULL) failures++, puts(recoup_message());
    EXPECT(recoup_tape_push(tape, 90, RECOUP_F64, odd, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_push(tape, 90, 9, lent, N), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_push(tape, 3, RECOUP_F64, lent, N), RECOUP_E_STEP);
    EXPECT(recoup_tape_pop(tape, RECOUP_F64, lent, 2 * N + 1, &step), RECOUP_E_ARGUMENT);
    EXPECT(recoup_tape_pop(tape, RECOUP_F64, lent, N - 1, &step), RECOUP_E_MISMATCH);
    EXPECT(recoup_tape_pop(tape, RECOUP_I64, lent, N, &step), RECOUP_E_MISMATCH);
    EXPECT(recoup_tape_peek(tape, 91, RECOUP_F64, lent, N), RECOUP_E_STEP);
    if (step != 77) failures++, puts("a call that fails writes no step");
    /* Nothing was lost, and room may be larger than the state. */
    EXPECT(recoup_tape_peek(tape, 4, RECOUP_F64, lent, 2 * N), RECOUP_OK);
    download(host, x);
    compare(host, 4);
}

static int pop_all(recoup_tape tape, uint64_t x, double *host)
{
    int popped = 0;
    for (;;) {
        uint64_t next = 0, step = 0;
        int code = recoup_tape_next(tape, &next);
        if (code == RECOUP_EMPTY || failures > 9) return popped;
        EXPECT(code, RECOUP_OK);
        void *into = next % 2 == 0 ? (void *)host : (void *)(uintptr_t)x;
        EXPECT(recoup_tape_pop(tape, RECOUP_F64, into, N, &step), RECOUP_OK);
        if (next % 2 != 0) download(host, x);
        compare(host, step);
        popped++;
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    uint64_t x = device_memory(2 * N * sizeof(double)), count = 0;
    double *host = malloc(N * sizeof(double));
    recoup_tape tape = 0;
    if (host == NULL) return 1;
    EXPECT(recoup_tape_open(argv[1], &tape), RECOUP_OK);
    if (failures) return puts(recoup_message()), 1;
    EXPECT(recoup_tape_count(tape, &count), RECOUP_OK);
    if (count == 0) {
        push_all(tape, x, host);
        test_arguments(tape, x, host);
    }
    if (strcmp(argv[2], "0") != 0) {
        EXPECT(recoup_tape_save(tape), RECOUP_OK);
        raise(SIGKILL);
    }
    EXPECT(recoup_tape_turn(tape), RECOUP_OK);
    printf("%d states\n", pop_all(tape, x, host));
    EXPECT(recoup_tape_close(tape), RECOUP_OK);
    free(host);
    give_back(x);
    return failures != 0;
}
