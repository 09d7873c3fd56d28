/* The library that `recoup exec` preloads. It catches the solves of a program that uses PETSc, and hands those that the
 * program itself makes to the engine for its PETSc. It needs the C library alone, so it is harmless in mpirun, shells and
 * interpreters, and it opens nothing before the first solve.
 *
 * RECOUP_ENGINES lists the engines: LIBRARY=ENGINE, separated by colons. Of a library that it does not name, calls pass. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*any_call)(void *, void *, void *);
typedef void (*stub_call)(void **, void **, void **, int *);
typedef int (*engine_call)(void *ksp, void *b, void *x, any_call real);

/* What a caller's calls lead to. */
typedef struct {
    void       *caller; /* where the call returns to */
    const char *name;
    any_call    real;
    engine_call engine;
    int         is_inside; /* the caller is the library that has the solver */
} target;

#define TARGETS_MAX 256
static target          targets[TARGETS_MAX];
static int             n_targets;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Solves that are open on this thread: of KSP and all that hides KSPs, and of SNES and TS, whose KSPs are calls. */
static __thread int n_closed, n_nonlinear;

static struct link_map *object_of(void *address, Dl_info *info)
{
    struct link_map *map = NULL;
    return dladdr1(address, info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

/* The function as the caller's own object finds it, which may have been loaded for itself alone. */
static any_call find_real(struct link_map *map, const char *name, void *ours)
{
    void *found = NULL, *object = map && map->l_name[0] ? dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (object) found = dlsym(object, name);
    if (object) dlclose(object);
    if (found == NULL || found == ours) found = dlsym(RTLD_NEXT, name);
    return (any_call)found;
}

/* A function of the engine for a library, by the file it is. */
static engine_call find_engine(const char *library, const char *function)
{
    char        real[PATH_MAX], *list, *rest = NULL;
    const char *given = getenv("RECOUP_ENGINES");
    engine_call found = NULL;
    if (given == NULL || realpath(library, real) == NULL || (list = strdup(given)) == NULL) return NULL;
    for (char *entry = strtok_r(list, ":", &rest); entry && !found; entry = strtok_r(NULL, ":", &rest)) {
        char *engine = strchr(entry, '=');
        if (engine == NULL) continue;
        *engine++ = '\0';
        if (strcmp(entry, real) != 0) continue;
        void *object = dlopen(engine, RTLD_NOW | RTLD_LOCAL);
        if (object == NULL) fprintf(stderr, "recoup: nothing is saved: %s\n", dlerror());
        else found = (engine_call)dlsym(object, function);
    }
    free(list);
    return found;
}

/* What a call of `name` that returns to `caller` leads to. */
static target find(void *caller, const char *name, void *ours)
{
    Dl_info          info, real;
    target           found = {caller, name, NULL, NULL, 0};
    struct link_map *map;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_targets; i++) {
        if (targets[i].caller == caller && targets[i].name == name) {
            found = targets[i];
            pthread_mutex_unlock(&lock);
            return found;
        }
    }
    map        = object_of(caller, &info);
    found.real = find_real(map, name, ours);
    if (found.real == NULL) {
        fprintf(stderr, "recoup: %s is in no library of the program\n", name);
        abort();
    }
    if (object_of((void *)found.real, &real) && map) {
        found.is_inside = info.dli_fbase == real.dli_fbase;
        if (strcmp(name, "KSPSolve") == 0) found.engine = find_engine(real.dli_fname, "recoup_engine_solve");
        if (strcmp(name, "TSSolve") == 0 && getenv("RECOUP_TS")) found.engine = find_engine(real.dli_fname, "recoup_engine_ts");
        if (strcmp(name, "KSPView") == 0) found.engine = find_engine(real.dli_fname, "recoup_engine_view");
    }
    if (n_targets < TARGETS_MAX) targets[n_targets++] = found;
    pthread_mutex_unlock(&lock);
    return found;
}

/* A call of the program: it comes from outside the solver's library, or from a SNES or TS of the program. */
int KSPSolve(void *ksp, void *b, void *x)
{
    target to = find(__builtin_return_address(0), "KSPSolve", (void *)KSPSolve);
    int    is_call = n_closed == 0 && (!to.is_inside || n_nonlinear > 0) && to.engine, code;
    n_closed++;
    code = is_call ? to.engine(ksp, b, x, to.real) : to.real(ksp, b, x);
    n_closed--;
    return code;
}

/* A call of the program where RECOUP_TS has TSSolve attached; else its KSPs are calls. */
int TSSolve(void *ts, void *u)
{
    target to = find(__builtin_return_address(0), "TSSolve", (void *)TSSolve);
    int    is_call = n_closed == 0 && n_nonlinear == 0 && !to.is_inside && to.engine, code;
    int   *n_open = is_call ? &n_closed : &n_nonlinear;
    ++*n_open;
    code = is_call ? to.engine(ts, u, NULL, to.real) : to.real(ts, u, NULL);
    --*n_open;
    return code;
}

/* What a KSP that was answered shows is set up in here, and that is no call. */
int KSPView(void *ksp, void *viewer)
{
    target to = find(__builtin_return_address(0), "KSPView", (void *)KSPView);
    int    code;
    n_closed++;
    code = to.engine ? to.engine(ksp, viewer, NULL, to.real) : to.real(ksp, viewer, NULL);
    n_closed--;
    return code;
}

/* Fortran's stub is in the library itself, whose call of KSPSolve would look like one of its own. */
void kspsolve_(void **ksp, void **b, void **x, int *code)
{
    target to = find(__builtin_return_address(0), "kspsolve_", (void *)kspsolve_);
    n_nonlinear++;
    ((stub_call)(void *)to.real)(ksp, b, x, code);
    n_nonlinear--;
}

/* PETSc calls this of a library that -dll_append names, and has it for itself alone: nothing is caught, and the engine
 * registers methods instead. */
int PetscDLLibraryRegister_recoup_plugin(void)
{
    Dl_info     petsc;
    engine_call append = NULL;
    if (dladdr(__builtin_return_address(0), &petsc)) append = find_engine(petsc.dli_fname, "recoup_engine_append");
    return append ? ((int (*)(void))(void *)append)() : 0;
}

/* Calls whose KSPs are calls of the program, and calls that hide theirs. None has more than three arguments. */
#define PASS(name, counter)                                                               \
    int name(void *one, void *two, void *three)                                           \
    {                                                                                     \
        target to = find(__builtin_return_address(0), #name, (void *)name);               \
        int    code;                                                                      \
        counter++;                                                                        \
        code = to.real(one, two, three);                                                  \
        counter--;                                                                        \
        return code;                                                                      \
    }

PASS(SNESSolve, n_nonlinear)
PASS(KSPSetUp, n_closed)
PASS(PCSetUp, n_closed)
PASS(EPSSolve, n_closed)
PASS(SVDSolve, n_closed)
PASS(PEPSolve, n_closed)
PASS(NEPSolve, n_closed)
