/* Codes and modes of veloc.h. Part of recoup, MIT OR Apache-2.0. */

#ifndef RECOUP_VELOC_DEFS_H
#define RECOUP_VELOC_DEFS_H

/* What a call returns. */
#define VELOC_SUCCESS (0)
#define VELOC_FAILURE (-1)

/* Room that VELOC_Route_file needs, the end of the string included. */
#define VELOC_MAX_NAME (1024)

/* Which regions a checkpoint takes: all, those named, or all but those named. */
#define VELOC_CKPT_ALL (0)
#define VELOC_CKPT_SOME (1)
#define VELOC_CKPT_REST (2)

/* Which regions of a version are given back. */
#define VELOC_RECOVER_ALL (0)
#define VELOC_RECOVER_SOME (1)
#define VELOC_RECOVER_REST (2)

/* What an observer of veloc.hpp is called for: the end of a checkpoint. */
#define VELOC_OBSERVE_CKPT_END (0)

/* This veloc.h is recoup's, and has VELOC_Region_lossy. */
#define VELOC_RECOUP (1)

#endif
