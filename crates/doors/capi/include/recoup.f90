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

    integer(c_int), parameter, public :: RECOUP_OK = 0, RECOUP_NO_VERSION = 1, RECOUP_EMPTY = 2, RECOUP_NOT_YET = 3, &
        RECOUP_E_ARGUMENT = -1, RECOUP_E_HANDLE = -2, RECOUP_E_OPTIONS = -3, RECOUP_E_ORDER = -4, RECOUP_E_NAME = -5, &
        RECOUP_E_STORE = -6, RECOUP_E_DAMAGED = -7, RECOUP_E_OTHER_PROBLEM = -8, RECOUP_E_MISMATCH = -9, &
        RECOUP_E_COMM = -10, RECOUP_E_CALLBACK = -11, RECOUP_E_OPERATOR = -12, RECOUP_E_NOT_SAVED = -13, &
        RECOUP_E_STEP = -14, RECOUP_E_FULL = -15, RECOUP_E_INTERNAL = -99
    integer(c_int), parameter, public :: RECOUP_KIND_DISK_FULL = 1, RECOUP_KIND_QUOTA_EXCEEDED = 2, &
        RECOUP_KIND_FILE_TOO_LARGE = 3, RECOUP_KIND_READ_ONLY = 4, RECOUP_KIND_PERMISSION_DENIED = 5, &
        RECOUP_KIND_DISK_FAULT = 6, RECOUP_KIND_IO = 7, RECOUP_KIND_IN_USE = 8, RECOUP_KIND_DAMAGED = 9, &
        RECOUP_KIND_CODEC = 10, RECOUP_KIND_RANK_LOST = 11, RECOUP_KIND_COMMUNICATION = 12, &
        RECOUP_KIND_CALLBACK = 13, RECOUP_KIND_OUT_OF_MEMORY = 14, RECOUP_KIND_DEVICE_LOST = 15, &
        RECOUP_KIND_DEVICE_FAILED = 16, RECOUP_KIND_PANICKED = 17, RECOUP_KIND_GIVEN_UP = 18, &
        RECOUP_KIND_REFUSED = 19, RECOUP_KIND_INTERNAL = 20
    integer(c_int), parameter, public :: RECOUP_ITERATE = 0, RECOUP_DIRECTION = 1, RECOUP_DYNAMIC = 2, &
        RECOUP_STATIC = 3, RECOUP_RECURRENCE = 4, RECOUP_RECOMPUTED = 5
    integer(c_int), parameter, public :: RECOUP_F64 = 0, RECOUP_F32 = 1, RECOUP_I64 = 2, RECOUP_BYTES = 3
    ! Complex values: an operator has two rows for each, and a bound holds for each part.
    integer(c_int), parameter, public :: RECOUP_C128 = 7, RECOUP_C64 = 8
    ! Of versioned memories, whose calls are for C alone.
    integer(c_int), parameter, public :: RECOUP_I32 = 4, RECOUP_U64 = 5, RECOUP_U32 = 6
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

    ! recoup_tape_report_t.
    type, bind(C), public :: recoup_tape_report_t
        integer(c_int64_t) :: states, pushed, popped, damaged, raw_bytes, stored_bytes
        real(c_double) :: seconds_push, seconds_pop
    end type

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
        function protect_block_c(handle, name, role, element, values, count, columns, stride, first, global) &
            bind(C, name="recoup_protect_block")
            import :: c_int, c_int64_t, c_ptr, c_char
            integer(c_int64_t), value :: handle, count, columns, stride, first, global
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: role, element
            type(c_ptr), value :: values
            integer(c_int) :: protect_block_c
        end function
        function recoup_columns(handle, columns, rhs, stride) bind(C, name="recoup_columns")
            import :: c_int, c_int64_t, c_ptr
            integer(c_int64_t), value :: handle, columns, stride
            type(c_ptr), value :: rhs
            integer(c_int) :: recoup_columns
        end function
        function recoup_known_columns(handle, columns, residual_norms) bind(C, name="recoup_known_columns")
            import :: c_int, c_int64_t, c_double
            integer(c_int64_t), value :: handle, columns
            real(c_double), intent(in) :: residual_norms(*)
            integer(c_int) :: recoup_known_columns
        end function
        function recoup_find_system(handle, index) bind(C, name="recoup_find_system")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: handle
            integer(c_int64_t), intent(inout) :: index
            integer(c_int) :: recoup_find_system
        end function
        function recoup_begin_system(handle, index) bind(C, name="recoup_begin_system")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: handle, index
            integer(c_int) :: recoup_begin_system
        end function
        function grid_c(handle, name, nx, ny, nz) bind(C, name="recoup_grid")
            import :: c_int, c_int64_t, c_char
            integer(c_int64_t), value :: handle, nx, ny, nz
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int) :: grid_c
        end function
        function track_c(handle, name) bind(C, name="recoup_track")
            import :: c_int, c_int64_t, c_char
            integer(c_int64_t), value :: handle
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int) :: track_c
        end function
        function default_c(handle, name) bind(C, name="recoup_default")
            import :: c_int, c_int64_t, c_char
            integer(c_int64_t), value :: handle
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int) :: default_c
        end function
        function renamed_c(handle, name, former) bind(C, name="recoup_renamed")
            import :: c_int, c_int64_t, c_char
            integer(c_int64_t), value :: handle
            character(kind=c_char), intent(in) :: name(*), former(*)
            integer(c_int) :: renamed_c
        end function
        function dropped_c(handle, name) bind(C, name="recoup_dropped")
            import :: c_int, c_int64_t, c_char
            integer(c_int64_t), value :: handle
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int) :: dropped_c
        end function
        function is_default_c(handle, name, is_default) bind(C, name="recoup_is_default")
            import :: c_int, c_int32_t, c_int64_t, c_char
            integer(c_int64_t), value :: handle
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int32_t), intent(inout) :: is_default
            integer(c_int) :: is_default_c
        end function
        function touch_c(handle, name, first, count) bind(C, name="recoup_touch")
            import :: c_int, c_int64_t, c_char
            integer(c_int64_t), value :: handle, first, count
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int) :: touch_c
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
        function recoup_time_left(handle, seconds) bind(C, name="recoup_time_left")
            import :: c_int, c_int64_t, c_double
            integer(c_int64_t), value :: handle
            real(c_double), intent(inout) :: seconds
            integer(c_int) :: recoup_time_left
        end function
        function recoup_should_stop(handle, stop) bind(C, name="recoup_should_stop")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: handle
            integer(c_int), intent(inout) :: stop
            integer(c_int) :: recoup_should_stop
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
        function recoup_wait_for(handle, seconds) bind(C, name="recoup_wait_for")
            import :: c_int, c_int64_t, c_double
            integer(c_int64_t), value :: handle
            real(c_double), value :: seconds
            integer(c_int) :: recoup_wait_for
        end function
        function recoup_converged(handle, has_converged) bind(C, name="recoup_converged")
            import :: c_int, c_int32_t, c_int64_t
            integer(c_int64_t), value :: handle
            integer(c_int32_t), value :: has_converged
            integer(c_int) :: recoup_converged
        end function
        function recoup_close(handle) bind(C, name="recoup_close")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: handle
            integer(c_int) :: recoup_close
        end function
        function tape_open_c(options, tape) bind(C, name="recoup_tape_open")
            import :: c_int, c_int64_t, c_char
            character(kind=c_char), intent(in) :: options(*)
            integer(c_int64_t), intent(inout) :: tape
            integer(c_int) :: tape_open_c
        end function
        function recoup_tape_push(tape, step, element, values, count) bind(C, name="recoup_tape_push")
            import :: c_int, c_int64_t, c_ptr
            integer(c_int64_t), value :: tape, step, count
            integer(c_int), value :: element
            type(c_ptr), value :: values
            integer(c_int) :: recoup_tape_push
        end function
        function recoup_tape_next(tape, step) bind(C, name="recoup_tape_next")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: tape
            integer(c_int64_t), intent(inout) :: step
            integer(c_int) :: recoup_tape_next
        end function
        function recoup_tape_shape(tape, step, element, count) bind(C, name="recoup_tape_shape")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: tape, step
            integer(c_int), intent(inout) :: element
            integer(c_int64_t), intent(inout) :: count
            integer(c_int) :: recoup_tape_shape
        end function
        function recoup_tape_pop(tape, element, into, capacity, step) bind(C, name="recoup_tape_pop")
            import :: c_int, c_int64_t, c_ptr
            integer(c_int64_t), value :: tape, capacity
            integer(c_int), value :: element
            type(c_ptr), value :: into
            integer(c_int64_t), intent(inout) :: step
            integer(c_int) :: recoup_tape_pop
        end function
        function recoup_tape_peek(tape, step, element, into, capacity) bind(C, name="recoup_tape_peek")
            import :: c_int, c_int64_t, c_ptr
            integer(c_int64_t), value :: tape, step, capacity
            integer(c_int), value :: element
            type(c_ptr), value :: into
            integer(c_int) :: recoup_tape_peek
        end function
        function recoup_tape_forget(tape, step) bind(C, name="recoup_tape_forget")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: tape, step
            integer(c_int) :: recoup_tape_forget
        end function
        function recoup_tape_announce(tape, steps, count) bind(C, name="recoup_tape_announce")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: tape, count
            integer(c_int64_t), intent(in) :: steps(*)
            integer(c_int) :: recoup_tape_announce
        end function
        function recoup_tape_turn(tape) bind(C, name="recoup_tape_turn")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: tape
            integer(c_int) :: recoup_tape_turn
        end function
        function recoup_tape_save(tape) bind(C, name="recoup_tape_save")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: tape
            integer(c_int) :: recoup_tape_save
        end function
        function recoup_tape_count(tape, count) bind(C, name="recoup_tape_count")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: tape
            integer(c_int64_t), intent(inout) :: count
            integer(c_int) :: recoup_tape_count
        end function
        function recoup_tape_steps(tape, steps, capacity, count) bind(C, name="recoup_tape_steps")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: tape, capacity
            integer(c_int64_t), intent(inout) :: steps(*), count
            integer(c_int) :: recoup_tape_steps
        end function
        function recoup_tape_report(tape, report) bind(C, name="recoup_tape_report")
            import :: c_int, c_int64_t, recoup_tape_report_t
            integer(c_int64_t), value :: tape
            type(recoup_tape_report_t), intent(inout) :: report
            integer(c_int) :: recoup_tape_report
        end function
        function tape_damaged_c(tape, index, line, capacity) bind(C, name="recoup_tape_damaged")
            import :: c_int, c_int64_t, c_char
            integer(c_int64_t), value :: tape, index, capacity
            character(kind=c_char), intent(inout) :: line(*)
            integer(c_int) :: tape_damaged_c
        end function
        function recoup_tape_close(tape) bind(C, name="recoup_tape_close")
            import :: c_int, c_int64_t
            integer(c_int64_t), value :: tape
            integer(c_int) :: recoup_tape_close
        end function
        function recoup_error_kind() bind(C, name="recoup_error_kind")
            import :: c_int
            integer(c_int) :: recoup_error_kind
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
    public :: recoup_open, recoup_protect, recoup_grid, recoup_track, recoup_touch, recoup_operator, &
        recoup_operator_norms, recoup_known, recoup_wants_known, recoup_on_restore, recoup_restore, recoup_step, &
        recoup_due, recoup_checkpoint, recoup_wait, recoup_wait_for, recoup_converged, recoup_time_left, recoup_should_stop, &
        recoup_close, recoup_message, recoup_error_kind
    public :: recoup_default, recoup_renamed, recoup_dropped, recoup_is_default
    public :: recoup_protect_block, recoup_columns, recoup_known_columns, recoup_find_system, recoup_begin_system
    public :: recoup_tape_open, recoup_tape_push, recoup_tape_next, recoup_tape_shape, recoup_tape_pop, &
        recoup_tape_peek, recoup_tape_forget, recoup_tape_announce, recoup_tape_turn, recoup_tape_save, &
        recoup_tape_count, recoup_tape_steps, recoup_tape_report, recoup_tape_damaged, recoup_tape_close

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

    function recoup_protect_block(handle, name, role, element, values, count, columns, stride, first, global) result(code)
        integer(c_int64_t), intent(in) :: handle, count, columns, stride, first, global
        character(len=*), intent(in) :: name
        integer(c_int), intent(in) :: role, element
        type(c_ptr), intent(in) :: values
        integer(c_int) :: code
        code = protect_block_c(handle, name // c_null_char, role, element, values, count, columns, stride, first, global)
    end function

    function recoup_grid(handle, name, nx, ny, nz) result(code)
        integer(c_int64_t), intent(in) :: handle, nx, ny, nz
        character(len=*), intent(in) :: name
        integer(c_int) :: code
        code = grid_c(handle, name // c_null_char, nx, ny, nz)
    end function

    function recoup_track(handle, name) result(code)
        integer(c_int64_t), intent(in) :: handle
        character(len=*), intent(in) :: name
        integer(c_int) :: code
        code = track_c(handle, name // c_null_char)
    end function

    function recoup_default(handle, name) result(code)
        integer(c_int64_t), intent(in) :: handle
        character(len=*), intent(in) :: name
        integer(c_int) :: code
        code = default_c(handle, name // c_null_char)
    end function

    function recoup_renamed(handle, name, former) result(code)
        integer(c_int64_t), intent(in) :: handle
        character(len=*), intent(in) :: name, former
        integer(c_int) :: code
        code = renamed_c(handle, name // c_null_char, former // c_null_char)
    end function

    function recoup_dropped(handle, name) result(code)
        integer(c_int64_t), intent(in) :: handle
        character(len=*), intent(in) :: name
        integer(c_int) :: code
        code = dropped_c(handle, name // c_null_char)
    end function

    function recoup_is_default(handle, name, is_default) result(code)
        integer(c_int64_t), intent(in) :: handle
        character(len=*), intent(in) :: name
        integer(c_int32_t), intent(inout) :: is_default
        integer(c_int) :: code
        code = is_default_c(handle, name // c_null_char, is_default)
    end function

    ! first counts from 0.
    function recoup_touch(handle, name, first, count) result(code)
        integer(c_int64_t), intent(in) :: handle, first, count
        character(len=*), intent(in) :: name
        integer(c_int) :: code
        code = touch_c(handle, name // c_null_char, first, count)
    end function

    function recoup_tape_open(options, tape) result(code)
        character(len=*), intent(in) :: options
        integer(c_int64_t), intent(inout) :: tape
        integer(c_int) :: code
        code = tape_open_c(options // c_null_char, tape)
    end function

    ! line is padded with blanks, and cut at its length.
    function recoup_tape_damaged(tape, index, line) result(code)
        integer(c_int64_t), intent(in) :: tape, index
        character(len=*), intent(inout) :: line
        character(kind=c_char) :: letters(len(line) + 1)
        integer(c_int) :: code
        integer :: i
        code = tape_damaged_c(tape, index, letters, size(letters, kind=c_int64_t))
        if (code /= RECOUP_OK) return
        line = ""
        do i = 1, len(line)
            if (letters(i) == c_null_char) exit
            line(i:i) = letters(i)
        end do
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
