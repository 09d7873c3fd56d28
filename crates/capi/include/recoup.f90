! recoup.h for Fortran 2003 and newer: compile this file with the program.
!
!     use recoup
!     integer(c_int64_t) :: handle, k
!     call check(recoup_open("dir=ckpt interval=20it", handle))
!     call check(recoup_protect(handle, "x", RECOUP_ITERATE, RECOUP_F64, c_loc(x), n, 0_c_int64_t, n))
!     if (recoup_restore(handle, k, how) == RECOUP_OK) ...
!
! What a call does, and what it returns, stands in recoup.h. Variables handed over by c_loc have the target attribute.
module recoup
    use, intrinsic :: iso_c_binding
    implicit none
    private

    integer(c_int), parameter, public :: RECOUP_OK = 0, RECOUP_NO_VERSION = 1, RECOUP_E_ARGUMENT = -1, &
        RECOUP_E_HANDLE = -2, RECOUP_E_OPTIONS = -3, RECOUP_E_ORDER = -4, RECOUP_E_NAME = -5, RECOUP_E_STORE = -6, &
        RECOUP_E_DAMAGED = -7, RECOUP_E_OTHER_PROBLEM = -8, RECOUP_E_MISMATCH = -9, RECOUP_E_COMM = -10, &
        RECOUP_E_CALLBACK = -11, RECOUP_E_OPERATOR = -12, RECOUP_E_NOT_SAVED = -13, RECOUP_E_INTERNAL = -99
    integer(c_int), parameter, public :: RECOUP_ITERATE = 0, RECOUP_DIRECTION = 1, RECOUP_DYNAMIC = 2, &
        RECOUP_STATIC = 3, RECOUP_RECURRENCE = 4, RECOUP_RECOMPUTED = 5
    integer(c_int), parameter, public :: RECOUP_F64 = 0, RECOUP_F32 = 1, RECOUP_I64 = 2, RECOUP_BYTES = 3
    integer(c_int), parameter, public :: RECOUP_FIRST_GUESS = -1, RECOUP_RESTARTED = 0, RECOUP_DEFLATED = 1, &
        RECOUP_TRADITIONAL = 2, RECOUP_EXACT = 3
    integer(c_int32_t), parameter, public :: RECOUP_DUE_ITERATE = 1, RECOUP_DUE_DIRECTION = 2
    integer(c_int32_t), parameter, public :: RECOUP_OPERATOR_ANY_THREAD = 1
    ! For first: C counts without a sign.
    integer(c_int64_t), parameter, public :: RECOUP_RANK_LOCAL = -1_c_int64_t, RECOUP_REPLICATED = -2_c_int64_t

    abstract interface
        ! y = A x; 0, or a code of the program's own. n is not handed over: ctx has it.
        function recoup_apply(ctx, x, y) bind(C)
            import :: c_int, c_ptr
            type(c_ptr), value :: ctx, x, y
            integer(c_int) :: recoup_apply
        end function
        function recoup_rebuild(ctx, iteration, how) bind(C)
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value :: ctx
            integer(c_int64_t), value :: iteration
            integer(c_int), value :: how
            integer(c_int) :: recoup_rebuild
        end function
    end interface
    public :: recoup_apply, recoup_rebuild

    interface
        function open_c(options, comm, handle) bind(C, name="recoup_open")
            import :: c_int, c_int64_t, c_ptr, c_char
            character(kind=c_char), intent(in) :: options(*)
            type(c_ptr), value :: comm
            integer(c_int64_t), intent(inout) :: handle
            integer(c_int) :: open_c
        end function
        function protect_c(handle, name, role, element, values, count, first, global) bind(C, name="recoup_protect")
            import :: c_int, c_int64_t, c_ptr, c_char
            integer(c_int64_t), value :: handle, count, first, global
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: role, element
            type(c_ptr), value :: values
            integer(c_int) :: protect_c
        end function
        function grid_c(handle, name, nx, ny, nz) bind(C, name="recoup_grid")
            import :: c_int, c_int64_t, c_char
            integer(c_int64_t), value :: handle, nx, ny, nz
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int) :: grid_c
        end function
        function recoup_operator(handle, apply, ctx, rows, first, global, rhs, frobenius, flags) &
            bind(C, name="recoup_operator")
            import :: c_int, c_int32_t, c_int64_t, c_double, c_ptr, c_funptr
            integer(c_int64_t), value :: handle, rows, first, global
            type(c_funptr), value :: apply
            type(c_ptr), value :: ctx, rhs
            real(c_double), value :: frobenius
            integer(c_int32_t), value :: flags
            integer(c_int) :: recoup_operator
        end function
        function recoup_operator_norms(handle, infinity_norm, one_norm) bind(C, name="recoup_operator_norms")
            import :: c_int, c_int64_t, c_double
            integer(c_int64_t), value :: handle
            real(c_double), value :: infinity_norm, one_norm
            integer(c_int) :: recoup_operator_norms
        end function
        function recoup_known(handle, residual_norm, direction_squared) bind(C, name="recoup_known")
            import :: c_int, c_int64_t, c_double
            integer(c_int64_t), value :: handle
            real(c_double), value :: residual_norm, direction_squared
            integer(c_int) :: recoup_known
        end function
        function recoup_wants_known(handle, wants) bind(C, name="recoup_wants_known")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: handle
            integer(c_int), intent(inout) :: wants
            integer(c_int) :: recoup_wants_known
        end function
        function recoup_on_restore(handle, rebuild, ctx) bind(C, name="recoup_on_restore")
            import :: c_int, c_int64_t, c_ptr, c_funptr
            integer(c_int64_t), value :: handle
            type(c_funptr), value :: rebuild
            type(c_ptr), value :: ctx
            integer(c_int) :: recoup_on_restore
        end function
        function recoup_restore(handle, iteration, how) bind(C, name="recoup_restore")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: handle
            integer(c_int64_t), intent(inout) :: iteration
            integer(c_int), intent(inout) :: how
            integer(c_int) :: recoup_restore
        end function
        function recoup_step(handle, iteration, residual_norm, rhs_norm) bind(C, name="recoup_step")
            import :: c_int, c_int64_t, c_double
            integer(c_int64_t), value :: handle, iteration
            real(c_double), value :: residual_norm, rhs_norm
            integer(c_int) :: recoup_step
        end function
        function recoup_due(handle, iteration, residual_norm, rhs_norm, due) bind(C, name="recoup_due")
            import :: c_int, c_int64_t, c_double
            integer(c_int64_t), value :: handle, iteration
            real(c_double), value :: residual_norm, rhs_norm
            integer(c_int), intent(inout) :: due
            integer(c_int) :: recoup_due
        end function
        function recoup_checkpoint(handle, iteration, residual_norm, rhs_norm) bind(C, name="recoup_checkpoint")
            import :: c_int, c_int64_t, c_double
            integer(c_int64_t), value :: handle, iteration
            real(c_double), value :: residual_norm, rhs_norm
            integer(c_int) :: recoup_checkpoint
        end function
        function recoup_wait(handle) bind(C, name="recoup_wait")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: handle
            integer(c_int) :: recoup_wait
        end function
        function recoup_close(handle) bind(C, name="recoup_close")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: handle
            integer(c_int) :: recoup_close
        end function
        function message_c() bind(C, name="recoup_message")
            import :: c_ptr
            type(c_ptr) :: message_c
        end function
        function length_c(text) bind(C, name="strlen")
            import :: c_ptr, c_size_t
            type(c_ptr), value :: text
            integer(c_size_t) :: length_c
        end function
    end interface
    public :: recoup_open, recoup_protect, recoup_grid, recoup_operator, recoup_operator_norms, recoup_known, &
        recoup_wants_known, recoup_on_restore, recoup_restore, recoup_step, recoup_due, recoup_checkpoint, recoup_wait, &
        recoup_close, recoup_message

contains

    ! comm is the address of a recoup_comm, made in C by recoup_mpi_comm(MPI_Comm_f2c(..), ..); none for one rank.
    function recoup_open(options, handle, comm) result(code)
        character(len=*), intent(in) :: options
        integer(c_int64_t), intent(inout) :: handle
        type(c_ptr), intent(in), optional :: comm
        integer(c_int) :: code
        if (present(comm)) then
            code = open_c(options // c_null_char, comm, handle)
        else
            code = open_c(options // c_null_char, c_null_ptr, handle)
        end if
    end function

    function recoup_protect(handle, name, role, element, values, count, first, global) result(code)
        integer(c_int64_t), intent(in) :: handle, count, first, global
        character(len=*), intent(in) :: name
        integer(c_int), intent(in) :: role, element
        type(c_ptr), intent(in) :: values
        integer(c_int) :: code
        code = protect_c(handle, name // c_null_char, role, element, values, count, first, global)
    end function

    function recoup_grid(handle, name, nx, ny, nz) result(code)
        integer(c_int64_t), intent(in) :: handle, nx, ny, nz
        character(len=*), intent(in) :: name
        integer(c_int) :: code
        code = grid_c(handle, name // c_null_char, nx, ny, nz)
    end function

    function recoup_message() result(message)
        character(len=:), allocatable :: message
        character(kind=c_char), pointer :: letters(:)
        type(c_ptr) :: text
        integer :: i
        text = message_c()
        call c_f_pointer(text, letters, [length_c(text)])
        allocate (character(len=size(letters)) :: message)
        do i = 1, size(letters)
            message(i:i) = letters(i)
        end do
    end function

end module recoup
