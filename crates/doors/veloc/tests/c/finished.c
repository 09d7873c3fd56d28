/* A program that asks whether its copy has arrived instead of waiting for it: in VELOC 1.8's words, and with
 * -DVELOC_API_HEAD in those of VELOC's main branch.
 *
 *   finished CONFIG
 *
 * Exit codes: 0 done, 2 usage, 3 a call that failed, 4 a copy that never arrived. */

#include <stdlib.h>
#include <unistd.h>

#include "veloc.h"

#ifdef VELOC_API_HEAD
#define UNDER_WAY VELOC_FAILURE
#define ARRIVED VELOC_SUCCESS
#else
#define UNDER_WAY 0
#define ARRIVED 1
#endif

int main(int argc, char **argv) {
    enum { VALUES = 4000000 };
    static double x[VALUES];
    if (argc != 2)
        return 2;
    if (VELOC_Init_single(0, argv[1]) != VELOC_SUCCESS)
        return 3;
    VELOC_Mem_protect(0, x, VALUES, sizeof *x);
    for (int version = 1; version <= 3; version++) {
        if (VELOC_Checkpoint("heat", version) != VELOC_SUCCESS)
            return 3;
        int found = VELOC_Checkpoint_finished();
        for (int looks = 0; found == UNDER_WAY && looks < 6000; looks++) {
            usleep(10000);
            found = VELOC_Checkpoint_finished();
        }
        if (found != ARRIVED)
            return 4;
    }
    return VELOC_Finalize(0) == VELOC_SUCCESS ? 0 : 3;
}
