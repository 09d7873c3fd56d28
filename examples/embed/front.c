/* A front that moves along a rod, whose state has versions in one file.
 *
 *     cc front.c $(pkg-config --cflags --libs recoup) -o front
 *     ./front "file=/dev/shm/front.memory interval=10it" [steps] [step to be killed after]
 *
 * Each step heats a few cells at the front and smooths those around it. A version therefore costs the blocks around the
 * front. Killed, and started again with the same options, the program continues from its newest version.
 */
#include <recoup_mem.h>
#include <signal.h>
#include <stdlib.h>

enum { N = 100000, WIDTH = 64 };

#define FIELDS(ARRAY, POINTER, VALUE) \
    POINTER(double, heat, N)          \
    ARRAY(int32_t, visits, N)         \
    VALUE(uint64_t, seed)
RECOUP_VERSIONED(rod, FIELDS)

static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "recoup: %s: %s\n", recoup_strerror(code), recoup_message());
        exit(1);
    }
}

static void step(recoup_memory memory, struct rod *rod)
{
    rod->seed = rod->seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t first = 1 + (rod->seed >> 33) % (N - WIDTH - 2);
    check(RECOUP_TOUCH(memory, rod, heat, first, WIDTH));
    check(RECOUP_TOUCH(memory, rod, visits, first, WIDTH));
    for (uint64_t i = first; i < first + WIDTH; i++) {
        rod->heat[i] += 0.25 * (rod->heat[i - 1] - 2 * rod->heat[i] + rod->heat[i + 1]) + 1;
        rod->visits[i]++;
    }
}

int main(int argc, char **argv)
{
    const char *options = argc > 1 ? argv[1] : "file=front.memory interval=10it";
    uint64_t steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    uint64_t killed_after = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    static struct rod rod;
    recoup_memory memory;
    rod.heat = calloc(N, sizeof *rod.heat);
    rod.seed = 1;
    if (rod.heat == NULL) return 1;
    check(recoup_memory_open(options, &memory));
    check(rod_lend(memory, &rod));

    uint64_t k = 0;
    check(recoup_memory_restore(memory, 0, &k)); /* RECOUP_NO_VERSION: the rod and k stay as they are */
    printf("starts at %llu\n", (unsigned long long)k);
    fflush(stdout);
    while (k < steps) {
        step(memory, &rod);
        check(recoup_memory_step(memory, ++k, NULL));
        if (k == killed_after) raise(SIGKILL);
    }
    check(recoup_memory_close(memory));

    double sum = 0;
    uint64_t visits = 0;
    for (int i = 0; i < N; i++) sum += rod.heat[i] * (i + 1), visits += (uint64_t)rod.visits[i] * (uint64_t)(i + 1);
    printf("heat %.17g, visits %llu\n", sum, (unsigned long long)visits);
    free(rod.heat);
    return 0;
}
