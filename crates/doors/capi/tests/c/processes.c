/* A forked child with the handles of its parent, and a signal handler in the middle of a call. Calls of tapes and sessions
 * waited in the child for threads that it does not have. Commits of a memory there returned 0, and used places of the
 * parent's versions. A handler that committed during a commit waited for ever. */
#define _DEFAULT_SOURCE
#include "expect.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define N 1024

static char options[600];
static double x[N];
static recoup_handle handle;
static recoup_memory memory;
static recoup_view view;
static recoup_tape tape;

static const char *in(const char *key, const char *directory, const char *name)
{
    snprintf(options, sizeof options, "%s=\"%s/%s\"", key, directory, name);
    return options;
}

static void open_all(const char *directory)
{
    EXPECT(recoup_open(in("dir", directory, "versions"), NULL, &handle), RECOUP_OK);
    EXPECT(recoup_protect(handle, "x", RECOUP_ITERATE, RECOUP_F64, x, N, 0, N), RECOUP_OK);
    EXPECT(recoup_checkpoint(handle, 1, 1, 1), RECOUP_OK);
    EXPECT(recoup_tape_open(in("spill", directory, "states"), &tape), RECOUP_OK);
    EXPECT(recoup_tape_push(tape, 1, RECOUP_F64, x, N), RECOUP_OK);
    EXPECT(recoup_memory_open(in("file", directory, "memory"), &memory), RECOUP_OK);
    EXPECT(recoup_memory_array(memory, "x", RECOUP_F64, x, N), RECOUP_OK);
    EXPECT(recoup_memory_commit(memory, 1, NULL), RECOUP_OK);
    EXPECT(recoup_view_open(memory, 1, &view), RECOUP_OK);
}

static void use_all_in_child(void)
{
    uint64_t count;
    int how;
    EXPECT(recoup_checkpoint(handle, 2, 1, 1), RECOUP_E_HANDLE);
    says("was forked from it");
    EXPECT(recoup_restore(handle, &count, &how), RECOUP_E_HANDLE);
    EXPECT(recoup_wait(handle), RECOUP_E_HANDLE);
    EXPECT(recoup_close(handle), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_push(tape, 2, RECOUP_F64, x, N), RECOUP_E_HANDLE);
    says("was forked from it");
    EXPECT(recoup_tape_pop(tape, RECOUP_F64, x, N, &count), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_count(tape, &count), RECOUP_E_HANDLE);
    EXPECT(recoup_tape_close(tape), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_touch(memory, "x", 0, N), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_commit(memory, 2, &count), RECOUP_E_HANDLE);
    says("was forked from it");
    EXPECT(recoup_memory_restore(memory, 0, &count), RECOUP_E_HANDLE);
    EXPECT(recoup_view_read(view, "x", RECOUP_F64, 0, x, N), RECOUP_E_HANDLE);
    EXPECT(recoup_view_close(view), RECOUP_E_HANDLE);
    EXPECT(recoup_memory_close(memory), RECOUP_E_HANDLE);
}

static void test_forked(const char *directory)
{
    int status = -1;
    uint64_t number = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        recoup_memory own = 0;
        use_all_in_child();
        EXPECT(recoup_memory_open(in("file", directory, "memory"), &own), RECOUP_E_STORE);
        EXPECT(recoup_memory_open(in("file", directory, "own"), &own), RECOUP_OK);
        EXPECT(recoup_memory_commit(own, 1, &number), RECOUP_OK);
        EXPECT(recoup_memory_close(own), RECOUP_OK);
        fflush(stdout);
        /* Checkers of memory would count what only the parent can give back. */
        execlp(failures == 0 ? "true" : "false", "child", (char *)NULL);
        _exit(9);
    }
    if (waitpid(child, &status, 0) != child || status != 0) failures++, printf("the child ended with %d\n", status);
    EXPECT(recoup_memory_commit(memory, 2, &number), RECOUP_OK);
    if (number != 2) failures++, printf("version %d\n", (int)number);
}

static double *guarded;
static int interrupted;
static uint64_t written;

/* Runs in the middle of the commit that reads these values. */
static void handler(int signal)
{
    (void)signal;
    interrupted = recoup_memory_commit(memory, 99, &written);
    mprotect(guarded, N * sizeof(double), PROT_READ | PROT_WRITE);
}

static void test_signal(void)
{
    struct sigaction action, before;
    uint64_t number = 0;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    guarded = mmap(NULL, N * sizeof(double), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(recoup_memory_array(memory, "guarded", RECOUP_F64, guarded, N), RECOUP_OK);
    sigaction(SIGSEGV, &action, &before);
    mprotect(guarded, N * sizeof(double), PROT_NONE);
    EXPECT(recoup_memory_commit(memory, 3, &number), RECOUP_OK);
    sigaction(SIGSEGV, &before, NULL);
    if (interrupted != RECOUP_E_ORDER || written != 0) failures++, printf("the handler's commit: %d\n", interrupted);
    says("a signal handler sets a flag");
    if (number != 3) failures++, printf("version %d\n", (int)number);
    EXPECT(recoup_memory_commit(memory, 4, &number), RECOUP_OK);
    EXPECT(recoup_memory_commit(0, 4, &number), RECOUP_E_HANDLE);
    says("0 is not an open");
}

int main(int argc, char **argv)
{
    const char *directory = argc > 1 ? argv[1] : ".";
    open_all(directory);
    test_forked(directory);
    test_signal();
    EXPECT(recoup_view_close(view), RECOUP_OK);
    EXPECT(recoup_memory_close(memory), RECOUP_OK);
    EXPECT(recoup_tape_close(tape), RECOUP_OK);
    EXPECT(recoup_close(handle), RECOUP_OK);
    munmap(guarded, N * sizeof(double));
    printf("%d failures\n", failures);
    return failures != 0;
}
