/* The names of VELOC for the calls that librecoup exports: libveloc-client holds nothing else but VELOC_Init, so that a
 * program which uses both libraries has one copy of what they do. */

#define VELOC_NO_MPI
#include "veloc.h"

#define CALL(type, name, core, parameters, arguments)                                                                  \
    type recoup_veloc_##core parameters;                                                                               \
    type VELOC_##name parameters { return recoup_veloc_##core arguments; }

CALL(int, Init_single, init_single, (unsigned int unique_id, const char *cfg), (unique_id, cfg))
CALL(int, Finalize, finalize, (int drain), (drain))
CALL(int, Initialized, initialized, (void), ())

CALL(int, Mem_protect, mem_protect, (int id, void *ptr, size_t count, size_t base_size), (id, ptr, count, base_size))
CALL(int, Region_protect, region_protect, (int id, void *ptr, size_t count, size_t base_size, const char *name),
     (id, ptr, count, base_size, name))
CALL(int, Mem_unprotect, mem_unprotect, (int id), (id))
CALL(int, Region_unprotect, region_unprotect, (int id, const char *name), (id, name))
CALL(int, Mem_clear, mem_clear, (void), ())
CALL(int, Region_clear, region_clear, (const char *name), (name))
CALL(int, Region_lossy, region_lossy, (int id, double bound), (id, bound))
CALL(int, Route_file, route_file, (const char *original, char *routed), (original, routed))
CALL(int, Cleanup, cleanup, (const char *name), (name))

CALL(int, Checkpoint_begin, checkpoint_begin, (const char *name, int version), (name, version))
CALL(int, Checkpoint_selective, checkpoint_selective, (int mode, int *ids, int no_ids), (mode, ids, no_ids))
CALL(int, Checkpoint_mem, checkpoint_mem, (void), ())
CALL(int, Checkpoint_end, checkpoint_end, (int success), (success))
CALL(int, Checkpoint_wait, checkpoint_wait, (void), ())
CALL(int, Checkpoint_finished, checkpoint_finished, (void), ())
CALL(int, Checkpoint_finished_head, checkpoint_finished_head, (void), ())
CALL(int, Checkpoint, checkpoint, (const char *name, int version), (name, version))

CALL(int, Restart_test, restart_test, (const char *name, int version), (name, version))
CALL(int, Restart_begin, restart_begin, (const char *name, int version), (name, version))
CALL(int, Recover_selective, recover_selective, (int mode, int *ids, int no_ids), (mode, ids, no_ids))
CALL(int, Recover_size, recover_size, (int id), (id))
CALL(long long, Recover_bytes, recover_bytes, (int id), (id))
CALL(int, Recover_mem, recover_mem, (void), ())
CALL(int, Restart_end, restart_end, (int success), (success))
CALL(int, Restart, restart, (const char *name, int version), (name, version))
