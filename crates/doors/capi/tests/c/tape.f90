! Every call of a tape from Fortran: states are pushed, saved, announced, dropped and popped.
program tape_calls
    use, intrinsic :: iso_c_binding
    use recoup
    implicit none
    integer(c_int64_t), parameter :: n = 500
    real(c_double), target :: x(n)
    integer(c_int64_t) :: tape, step, k, count, steps(60), damaged
    integer(c_int) :: element, code
    type(recoup_tape_report_t) :: report
    character(len=300) :: options, line
    integer :: popped

    call get_command_argument(1, options)
    tape = 0
    step = -1
    call expect(recoup_tape_open("unknown=1", tape) == RECOUP_E_OPTIONS)
    call expect(index(recoup_message(), "unknown") > 0)
    call expect(recoup_error_kind() == RECOUP_KIND_REFUSED)
    call expect(recoup_tape_open(trim(options), tape) == RECOUP_OK)
    call expect(recoup_tape_next(tape, step) == RECOUP_EMPTY)
    call expect(step == -1)
    do k = 0, 52
        x = real(k, c_double)
        call expect(recoup_tape_push(tape, k, RECOUP_F64, c_loc(x), n) == RECOUP_OK)
    end do
    call expect(recoup_tape_push(tape, 5_c_int64_t, RECOUP_F64, c_loc(x), n) == RECOUP_E_STEP)
    call expect(recoup_tape_save(tape) == RECOUP_OK)
    call expect(recoup_tape_close(tape) == RECOUP_OK)

    call expect(recoup_tape_open(trim(options) // " reopen=yes", tape) == RECOUP_OK)
    call expect(recoup_tape_count(tape, count) == RECOUP_OK)
    call expect(count == 53)
    call expect(recoup_tape_steps(tape, steps, 60_c_int64_t, count) == RECOUP_OK)
    call expect(steps(53) == 52)
    call expect(recoup_tape_shape(tape, 7_c_int64_t, element, count) == RECOUP_OK)
    call expect(element == RECOUP_F64 .and. count == n)
    call expect(recoup_tape_forget(tape, 51_c_int64_t) == RECOUP_OK)
    call expect(recoup_tape_peek(tape, 9_c_int64_t, RECOUP_F64, c_loc(x), n) == RECOUP_OK)
    call expect(all(nint(x) == 9))
    call expect(recoup_tape_announce(tape, [50_c_int64_t, 52_c_int64_t], 2_c_int64_t) == RECOUP_OK)
    call expect(recoup_tape_turn(tape) == RECOUP_OK)
    call expect(recoup_tape_pop(tape, RECOUP_F64, c_loc(x), n - 1, step) == RECOUP_E_MISMATCH)
    call expect(recoup_tape_pop(tape, RECOUP_F64, c_loc(x), n, step) == RECOUP_OK)
    call expect(step == 50)
    call expect(recoup_tape_pop(tape, RECOUP_F64, c_loc(x), n, step) == RECOUP_OK)
    call expect(all(nint(x) == 52))
    popped = 0
    do
        code = recoup_tape_pop(tape, RECOUP_F64, c_loc(x), n, step)
        if (code /= RECOUP_OK) exit
        if (step == 49 - popped .and. all(nint(x, c_int64_t) == step)) popped = popped + 1
    end do
    call expect(code == RECOUP_EMPTY)
    damaged = 0
    call expect(recoup_tape_report(tape, report) == RECOUP_OK)
    call expect(report%popped == 52 .and. report%states == 0 .and. report%damaged == damaged)
    call expect(recoup_tape_damaged(tape, damaged, line) == RECOUP_E_ARGUMENT)
    call expect(recoup_tape_close(tape) == RECOUP_OK)
    call expect(recoup_tape_close(tape) == RECOUP_E_HANDLE)
    print "(i0, a)", popped, " states"

contains

    subroutine expect(is_so)
        logical, intent(in) :: is_so
        integer, save :: calls = 0
        calls = calls + 1
        if (is_so) return
        print "(a, i0, 2a)", "expectation ", calls, ": ", recoup_message()
        error stop 1
    end subroutine

end program tape_calls
