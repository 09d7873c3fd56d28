! Blocks of right-hand sides and runs of many systems from Fortran. Prints what does not hold.
!
!     ./many folder
module many_operator
    use, intrinsic :: iso_c_binding
    implicit none
    integer, parameter :: n = 2000
    real(c_double), save :: scale = 2.5d0

contains

    ! y = scale x less half of its neighbours.
    function apply(ctx, x, y) bind(C) result(code)
        type(c_ptr), value :: ctx, x, y
        integer(c_int) :: code
        real(c_double), pointer :: from(:), to(:)
        call c_f_pointer(x, from, [n])
        call c_f_pointer(y, to, [n])
        to = scale * from
        to(2:) = to(2:) - 0.5d0 * from(:n - 1)
        to(:n - 1) = to(:n - 1) - 0.5d0 * from(2:)
        code = merge(1, 0, c_associated(ctx))
    end function
end module

program many
    use recoup
    use many_operator
    implicit none
    integer(c_int64_t), parameter :: rows = n, columns = 2, first = 0
    real(c_double), target :: x(n + 3, columns), back(n + 3, columns), b(n + 3, columns), u(n)
    real(c_double) :: norms(columns)
    integer(c_int64_t) :: handle, k, system
    integer(c_int) :: how
    integer :: i, failures = 0
    character(len=400) :: folder
    call get_command_argument(1, folder)

    do i = 1, n
        b(i, :) = [sin(0.01d0 * i), 1d-3 * cos(0.02d0 * i)]
        x(i, :) = b(i, :) / 1.5d0
    end do
    norms = [(residual(x(:n, i), b(:n, i)), i=1, 2)]
    back = 0
    call open_block("scheme=lossy codec=qb theta=0.25", x)
    call expect(recoup_known_columns(handle, columns, norms), RECOUP_OK)
    call expect(recoup_known_columns(handle, 1_c_int64_t, norms), RECOUP_E_ARGUMENT)
    call expect(recoup_step(handle, 4_c_int64_t, norms(1), norm2(b(:n, 1))), RECOUP_OK)
    call expect(recoup_close(handle), RECOUP_OK)
    call open_block("scheme=lossy codec=qb theta=0.25", back)
    call expect(recoup_restore(handle, k, how), RECOUP_OK)
    call expect(recoup_close(handle), RECOUP_OK)
    ! Lossy, and nothing is written between the columns.
    call hold(k == 4 .and. any(abs(back(:n, :) - x(:n, :)) > 0) .and. .not. any(abs(back(n + 1:, :)) > 0))
    ! A unit in the last place or so for the other order of the sum.
    do i = 1, 2
        call hold(residual(back(:n, i), b(:n, i)) <= 1.25d0 * norms(i) * (1 + 1d-12))
    end do

    u = 7
    call open_systems()
    call expect(recoup_find_system(handle, system), RECOUP_NO_VERSION)
    do i = 3, 4
        scale = 2 + i
        call expect(recoup_operator(handle, c_funloc(apply), c_null_ptr, rows, first, rows, c_loc(u), 0d0, 0_c_int32_t), &
            RECOUP_OK)
        call expect(recoup_begin_system(handle, int(i, c_int64_t)), RECOUP_OK)
        call expect(recoup_step(handle, 1_c_int64_t, 1d0, 1d0), RECOUP_OK)
        call expect(recoup_wait(handle), RECOUP_OK)
        call expect(recoup_wait_for(handle, 0d0), RECOUP_OK)
    end do
    call expect(recoup_close(handle), RECOUP_OK)
    u = 0
    call open_systems()
    call expect(recoup_find_system(handle, system), RECOUP_OK)
    call hold(system == 4 .and. all(nint(u) == 7))
    call expect(recoup_close(handle), RECOUP_OK)
    print "(i0, a)", failures, " failures"

contains

    subroutine open_block(options, values)
        character(len=*), intent(in) :: options
        real(c_double), target, intent(inout) :: values(n + 3, columns)
        call expect(recoup_open("dir=" // trim(folder) // " name=block interval=1it " // options, handle), RECOUP_OK)
        call expect(recoup_operator(handle, c_funloc(apply), c_null_ptr, rows, first, rows, c_loc(b), 0d0, 0_c_int32_t), &
            RECOUP_OK)
        call expect(recoup_columns(handle, columns, c_loc(b), rows + 3), RECOUP_OK)
        call expect(recoup_protect_block(handle, "x", RECOUP_ITERATE, RECOUP_F64, c_loc(values), rows, columns, rows + 3, &
            first, rows), RECOUP_OK)
    end subroutine

    subroutine open_systems()
        call expect(recoup_open("dir=" // trim(folder) // " name=loop interval=1it systems scheme=lossless", handle), &
            RECOUP_OK)
        call expect(recoup_protect(handle, "u", RECOUP_DYNAMIC, RECOUP_F64, c_loc(u), rows, first, rows), RECOUP_OK)
        call expect(recoup_protect(handle, "x", RECOUP_ITERATE, RECOUP_F64, c_loc(x), rows, first, rows), RECOUP_OK)
    end subroutine

    function residual(values, rhs) result(norm)
        real(c_double), target, intent(in) :: values(n), rhs(n)
        real(c_double), target :: product(n)
        real(c_double) :: norm
        if (apply(c_null_ptr, c_loc(values), c_loc(product)) /= 0) stop 1
        norm = norm2(rhs - product)
    end function

    subroutine expect(found, code)
        integer(c_int), intent(in) :: found, code
        if (found == code) return
        failures = failures + 1
        print "(a, i0, a, i0, 2a)", "expected ", code, ", found ", found, ": ", recoup_message()
    end subroutine

    subroutine hold(claim)
        logical, intent(in) :: claim
        if (claim) return
        failures = failures + 1
        print "(a)", "not so"
    end subroutine
end program
