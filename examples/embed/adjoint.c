/* The gradient of a nonlinear flow by its adjoint, whose states are on a tape.
 *
 *     cc adjoint.c $(pkg-config --cflags --libs recoup) -lm -o adjoint
 *     ./adjoint "spill=states host=1MiB reopen=yes" [steps] [step to be killed after]
 *
 * The forward pass u' = F(u) is Burgers' equation on a ring, and J(u) = ||u||^2 / 2 after the last step. The reverse
 * takes the states in the opposite order: l = F'(u)^T l. In the end l is the gradient of J by the first state.
 *
 * Killed in the forward pass, and started again with the same options, it continues from the newest state on the tape.
 */
#include <math.h>
#include <recoup.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000 };
static const double A = 0.2, B = 0.1; /* dt / dx, nu dt / dx^2 */

static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "recoup: %s: %s\n", recoup_strerror(code), recoup_message());
        exit(1);
    }
}

/* next_i = u_i - A u_i (u_i - u_i-1) + B (u_i-1 - 2 u_i + u_i+1) */
static void forward_step(const double *u, double *next)
{
    for (int i = 0; i < N; i++) {
        double left = u[(i + N - 1) % N], right = u[(i + 1) % N];
        next[i] = u[i] - A * u[i] * (u[i] - left) + B * (left - 2 * u[i] + right);
    }
}

/* l = F'(u)^T l */
static void reverse_step(const double *u, double *l)
{
    static double before[N];
    memset(before, 0, sizeof before);
    for (int i = 0; i < N; i++) {
        int left = (i + N - 1) % N, right = (i + 1) % N;
        before[i] += (1 - A * (2 * u[i] - u[left]) - 2 * B) * l[i];
        before[left] += (A * u[i] + B) * l[i];
        before[right] += B * l[i];
    }
    memcpy(l, before, sizeof before);
}

static void first_state(double *u, double shift)
{
    for (int i = 0; i < N; i++) u[i] = 1 + 0.5 * sin(6.283185307179586 * i / N) + shift * cos(0.1 * i);
}

/* J after all steps, from a first state that was shifted. */
static double shifted(uint64_t steps, double shift)
{
    double u[2][N], sum = 0;
    first_state(u[0], shift);
    for (uint64_t k = 0; k < steps; k++) forward_step(u[k % 2], u[(k + 1) % 2]);
    for (int i = 0; i < N; i++) sum += u[steps % 2][i] * u[steps % 2][i] / 2;
    return sum;
}

/* The newest state that has all states before it; none is -1. Those beyond a gap are dropped. */
static int64_t newest(recoup_tape tape, uint64_t most)
{
    uint64_t *steps = malloc((most + 1) * sizeof *steps), count = 0, whole = 0;
    if (steps == NULL) exit(1);
    check(recoup_tape_steps(tape, steps, most, &count));
    while (whole < count && steps[whole] == whole) whole++;
    for (uint64_t i = count; i > whole; i--) check(recoup_tape_forget(tape, steps[i - 1]));
    free(steps);
    return (int64_t)whole - 1;
}

int main(int argc, char **argv)
{
    const char *options = argc > 1 ? argv[1] : "spill=states host=1MiB reopen=yes";
    uint64_t steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 200;
    uint64_t killed_after = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    double u[2][N], l[N];
    recoup_tape tape;
    check(recoup_tape_open(options, &tape));

    /* The state of step k is on the tape when step k is taken. */
    int64_t known = newest(tape, steps);
    first_state(u[0], 0);
    if (known >= 0) check(recoup_tape_peek(tape, (uint64_t)known, RECOUP_F64, u[known % 2], N));
    printf("starts at %lld\n", (long long)(known < 0 ? 0 : known));
    for (uint64_t k = known < 0 ? 0 : (uint64_t)known; k < steps; k++) {
        if ((int64_t)k > known) check(recoup_tape_push(tape, k, RECOUP_F64, u[k % 2], N));
        forward_step(u[k % 2], u[(k + 1) % 2]);
        if (killed_after > 0 && k == killed_after) raise(SIGKILL);
    }

    /* dJ/du is u itself. */
    memcpy(l, u[steps % 2], sizeof l);
    check(recoup_tape_turn(tape));
    uint64_t reversed = 0, step;
    int code;
    while ((code = recoup_tape_pop(tape, RECOUP_F64, u[0], N, &step)) == RECOUP_OK) {
        reverse_step(u[0], l);
        reversed++;
    }
    check(code); /* RECOUP_EMPTY: all states were popped */
    check(recoup_tape_close(tape));

    /* The gradient along cos(0.1 i), by the adjoint and by a difference. */
    double along = 0, norm = 0, h = 1e-6;
    for (int i = 0; i < N; i++) along += l[i] * cos(0.1 * i), norm += l[i] * l[i];
    double difference = (shifted(steps, h) - shifted(steps, -h)) / (2 * h);
    printf("reversed %llu, gradient %.17g, off by %.1e\n", (unsigned long long)reversed, sqrt(norm),
           fabs(along / difference - 1));
    return 0;
}
