/* recoup_petsc.h: checkpoints for KSPSolve, for many systems of one KSP, for TSSolve and SNESSolve. Each has a header of its
 * own, for programs that use no other. Compiled in the program, with its PETSc (3.18 or newer, double, real or complex);
 * librecoup itself links none. */
#ifndef RECOUP_PETSC_H
#define RECOUP_PETSC_H

#include "recoup_petsc_ksp.h"
#include "recoup_petsc_snes.h"
#include "recoup_petsc_systems.h"
#include "recoup_petsc_ts.h"

#endif /* RECOUP_PETSC_H */
