/* The C interface of VELOC 1.8, as recoup provides it: link with -lveloc-client.
 *
 * Every call returns VELOC_SUCCESS or VELOC_FAILURE unless it says otherwise, and a failure leaves a line on standard
 * error. Calls marked "collective" are made by all ranks, and succeed or fail on all of them alike.
 *
 * Part of recoup, MIT OR Apache-2.0. */

#ifndef RECOUP_VELOC_H
#define RECOUP_VELOC_H

#include <stddef.h>
#include <string.h>

#include "veloc/defs.h"

#if !defined(VELOC_NO_MPI) && defined(__has_include)
#if !__has_include(<mpi.h>)
#define VELOC_NO_MPI
#endif
#endif
#ifndef VELOC_NO_MPI
#include <mpi.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Start and end ---- */

#ifndef VELOC_NO_MPI
/* Starts on all ranks of comm, with the keys of the file cfg. Collective. In the library where it was built with MPI. */
int VELOC_Init(MPI_Comm comm, const char *cfg);
#endif

/* Starts a process by itself; no two that run at the same time have the same unique_id, and a restart has it again. */
int VELOC_Init_single(unsigned int unique_id, const char *cfg);

/* Ends. With drain, what is on its way to persistent storage arrives first, and VELOC_FAILURE says that it did not;
 * without, it is given up, and the version remains in scratch. */
int VELOC_Finalize(int drain);

/* Not in VELOC: 1 from a start that worked to the end, 0 before and after. */
int VELOC_Initialized(void);

/* ---- What is saved ---- */

/* Protects count elements of base_size bytes each at ptr as region id. A region protected again has its new place and
 * size from then on. */
int VELOC_Mem_protect(int id, void *ptr, size_t count, size_t base_size);

/* The same for checkpoints called name only. A checkpoint whose name has regions of its own holds those, every other
 * one the regions of VELOC_Mem_protect. */
int VELOC_Region_protect(int id, void *ptr, size_t count, size_t base_size, const char *name);

/* Forgets one region; VELOC_FAILURE where there is none. */
int VELOC_Mem_unprotect(int id);
int VELOC_Region_unprotect(int id, const char *name);

/* Forgets all regions: those without a name, or those of one name. */
int VELOC_Mem_clear(void);
int VELOC_Region_clear(const char *name);

/* Not in VELOC: region id holds doubles, and each may come back with an error of at most bound; 0 allows none. */
int VELOC_Region_lossy(int id, double bound);

/* Between the begin and the end of a checkpoint: the path, of up to VELOC_MAX_NAME bytes, where the program writes what
 * it calls original. Between those of a restart: the path where it finds that file again, verified. The only file of
 * a version is found under any name. */
int VELOC_Route_file(const char *original, char *routed);

/* Removes this rank's versions called name from scratch. */
int VELOC_Cleanup(const char *name);

/* ---- Checkpoint ---- */

/* Begins version (0 or more) of the checkpoint name (letters, digits, _ and .). Collective. */
int VELOC_Checkpoint_begin(const char *name, int version);

/* Takes regions as they are now. Naming one that was taken by an earlier call, or is not protected, is a failure. */
int VELOC_Checkpoint_selective(int mode, int *ids, int no_ids);

/* Takes all regions not taken yet. */
int VELOC_Checkpoint_mem(void);

/* Ends the checkpoint. It counts when all ranks end it with success: then it is whole in scratch and, in mode sync,
 * also in persistent storage. With success 0 on any rank it is discarded, and all ranks get VELOC_FAILURE. Collective. */
int VELOC_Checkpoint_end(int success);

/* Waits for the copy to persistent storage that is under way; VELOC_FAILURE when it does not count. */
int VELOC_Checkpoint_wait(void);

/* As in VELOC 1.8: 1 when no such copy is under way, 0 while one is, VELOC_FAILURE before the start. VELOC's main branch
 * returns VELOC_SUCCESS and VELOC_FAILURE instead: define VELOC_API_HEAD before this header to get that. */
int VELOC_Checkpoint_finished(void);
int VELOC_Checkpoint_finished_head(void);
#ifdef VELOC_API_HEAD
#define VELOC_Checkpoint_finished VELOC_Checkpoint_finished_head
#endif

/* Begin, take all regions, end. Collective. */
int VELOC_Checkpoint(const char *name, int version);

/* ---- Restart ---- */

/* The newest version below version (any, for 0) that is whole on all ranks: verified byte for byte, from scratch where
 * all its parts are there, otherwise part by part from where they are whole. VELOC_FAILURE when there is none. Where
 * all there is belongs to another number of ranks, its version, which VELOC_Restart_begin refuses. Collective. */
int VELOC_Restart_test(const char *name, int version);

/* Opens a version; VELOC_FAILURE unless all of it is whole and verified on all ranks, and before any memory was
 * touched. Collective. */
int VELOC_Restart_begin(const char *name, int version);

/* Gives regions of the version back, all those meant or none: each must be protected with the size it was saved with. */
int VELOC_Recover_selective(int mode, int *ids, int no_ids);

/* Bytes of region id in the version. */
int VELOC_Recover_size(int id);

/* Not in VELOC: the same for any size, and -1 without a message where the version has no such region. */
long long VELOC_Recover_bytes(int id);

/* Gives all regions of the version back. */
int VELOC_Recover_mem(void);

/* Ends the restart. With success 0 on any rank, all ranks get VELOC_FAILURE. Collective. */
int VELOC_Restart_end(int success);

/* Begin, give all regions back, end. Collective. */
int VELOC_Restart(const char *name, int version);

#ifdef __cplusplus
}
#endif

#endif
