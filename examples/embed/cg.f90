! A hand-written conjugate gradient solver for the 3D Poisson equation, with checkpoints.
!
!     gfortran recoup.f90 cg.f90 $(pkg-config --libs recoup) -o cg
!     ./cg "dir=ckpt interval=10it" [n] [iteration to be killed after]
!
! recoup.f90 is installed beside recoup.h. Killed, and started again with the same options, it continues from the newest version.
module poisson
    use, intrinsic :: iso_c_binding
    implicit none
    integer :: n = 32

    interface
        function kill_self(signal) bind(C, name="raise")
            import :: c_int
            integer(c_int), value :: signal
            integer(c_int) :: kill_self
        end function
    end interface

contains

    ! y = A x, the 7-point stencil on n x n x n inner points.
    subroutine apply(x, y)
        real(c_double), intent(in) :: x(n, n, n)
        real(c_double), intent(out) :: y(n, n, n)
        y = 6 * x
        y(2:, :, :) = y(2:, :, :) - x(:n - 1, :, :)
        y(:n - 1, :, :) = y(:n - 1, :, :) - x(2:, :, :)
        y(:, 2:, :) = y(:, 2:, :) - x(:, :n - 1, :)
        y(:, :n - 1, :) = y(:, :n - 1, :) - x(:, 2:, :)
        y(:, :, 2:) = y(:, :, 2:) - x(:, :, :n - 1)
        y(:, :, :n - 1) = y(:, :, :n - 1) - x(:, :, 2:)
    end subroutine

    function apply_for_c(ctx, x, y) bind(C) result(code)
        type(c_ptr), value :: ctx, x, y
        integer(c_int) :: code
        real(c_double), pointer :: values(:), product(:)
        call c_f_pointer(x, values, [n**3])
        call c_f_pointer(y, product, [n**3])
        call apply(values, product)
        code = merge(1, 0, c_associated(ctx))
    end function
end module

program cg
    use poisson
    use recoup
    implicit none
    real(c_double), allocatable, target :: x(:), b(:), r(:), p(:), q(:)
    real(c_double), target :: rho(1)
    real(c_double) :: alpha, before, norm_b
    integer(c_int64_t) :: handle, k, m, killed_after
    integer(c_int) :: code, how
    character(len=512) :: options, word

    options = "dir=ckpt interval=10it"
    killed_after = 0
    if (command_argument_count() > 0) call get_command_argument(1, options)
    if (command_argument_count() > 1) then
        call get_command_argument(2, word)
        read (word, *) n
    end if
    if (command_argument_count() > 2) then
        call get_command_argument(3, word)
        read (word, *) killed_after
    end if
    m = int(n, c_int64_t)**3
    allocate (x(m), b(m), r(m), p(m), q(m))
    x = 0
    b = 1
    p = 0
    rho = 0
    k = 0
    how = -1

    call check(recoup_open(trim(options), handle))
    call check(recoup_protect(handle, "x", RECOUP_ITERATE, RECOUP_F64, c_loc(x), m, 0_c_int64_t, m))
    call check(recoup_protect(handle, "p", RECOUP_RECURRENCE, RECOUP_F64, c_loc(p), m, 0_c_int64_t, m))
    call check(recoup_protect(handle, "rho", RECOUP_RECURRENCE, RECOUP_F64, c_loc(rho), 1_c_int64_t, RECOUP_REPLICATED, &
        0_c_int64_t))
    call check(recoup_operator(handle, c_funloc(apply_for_c), c_null_ptr, m, 0_c_int64_t, m, c_loc(b), 0.0_c_double, &
        RECOUP_OPERATOR_ANY_THREAD))
    code = recoup_restore(handle, k, how)
    call check(code)

    ! r = b - A x; without the direction of a version, p = r
    call apply(x, q)
    r = b - q
    if (how < RECOUP_TRADITIONAL) then
        p = r
        rho = dot_product(r, r)
    end if
    write (*, '(a, i0, a, i0)') "starts at ", k, ", how ", how

    norm_b = sqrt(dot_product(b, b))
    do while (norm2(r) > 1e-8 * norm_b)
        call apply(p, q)
        alpha = rho(1) / dot_product(p, q)
        before = rho(1)
        x = x + alpha * p
        r = r - alpha * q
        rho = dot_product(r, r)
        p = r + rho(1) / before * p
        k = k + 1
        call check(recoup_step(handle, k, norm2(r), norm_b))
        if (k == killed_after) code = kill_self(9)
    end do

    call apply(x, q)
    write (*, '(a, i0, a, es10.3)') "iterations ", k, ", relative residual ", norm2(b - q) / norm_b
    call check(recoup_close(handle))

contains

    subroutine check(code)
        integer(c_int), intent(in) :: code
        if (code >= 0) return
        write (*, '(a, a)') "recoup: ", recoup_message()
        stop 1
    end subroutine
end program
