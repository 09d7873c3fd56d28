! Five solves of a matrix on a line, in plain PETSc from Fortran. It kills itself before step -kill_at.
program loop
#include <petsc/finclude/petscksp.h>
   use petscksp
   use, intrinsic :: iso_c_binding, only: c_int
   implicit none
   interface
      integer(c_int) function raise(signal) bind(c)
         import :: c_int
         integer(c_int), value :: signal
      end function raise
   end interface
   Mat :: A
   Vec :: b, x
   KSP :: solver
   PetscInt :: i, step, kill_at, its
   PetscInt, parameter :: n = 500, one = 1, three = 3
   PetscReal :: norm
   PetscBool :: is_given
   PetscErrorCode :: ierr
   integer(c_int) :: ignored

   call PetscInitialize(PETSC_NULL_CHARACTER, ierr)
   kill_at = -1
   call PetscOptionsGetInt(PETSC_NULL_OPTIONS, PETSC_NULL_CHARACTER, '-kill_at', kill_at, is_given, ierr)
   call MatCreateSeqAIJ(PETSC_COMM_SELF, n, n, three, PETSC_NULL_INTEGER, A, ierr)
   do i = 0, n - 1
      call MatSetValue(A, i, i, 2.1d0, INSERT_VALUES, ierr)
      if (i > 0) call MatSetValue(A, i, i - one, -1.0d0, INSERT_VALUES, ierr)
      if (i < n - 1) call MatSetValue(A, i, i + one, -1.0d0, INSERT_VALUES, ierr)
   end do
   call MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY, ierr)
   call MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY, ierr)
   call MatCreateVecs(A, x, b, ierr)
   call VecSet(b, 1.0d0, ierr)
   call KSPCreate(PETSC_COMM_SELF, solver, ierr)
   call KSPSetOperators(solver, A, A, ierr)
   call KSPSetFromOptions(solver, ierr)
   do step = 0, 4
      if (step == kill_at) ignored = raise(9_c_int)
      call KSPSolve(solver, b, x, ierr)
      call VecCopy(x, b, ierr)
      call VecNorm(b, NORM_2, norm, ierr)
      call KSPGetIterationNumber(solver, its, ierr)
      print '(i0, 1x, i0, 1x, es22.15)', step, its, norm
   end do
   call KSPDestroy(solver, ierr)
   call VecDestroy(b, ierr)
   call VecDestroy(x, ierr)
   call MatDestroy(A, ierr)
   call PetscFinalize(ierr)
end program loop
