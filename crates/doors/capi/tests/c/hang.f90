! Steps of ranks that share a session, for as long as they are let: hang OPTIONS.
program hang
    use, intrinsic :: iso_c_binding
    use mpi
    use recoup
    implicit none
    integer(c_int64_t), parameter :: n = 1000
    real(c_double), target :: x(n)
    integer(c_int64_t) :: handle, k
    integer :: rank, ranks, error
    character(len=400) :: options

    interface
        function hang_comm(comm) bind(C)
            import :: c_int, c_ptr
            integer(c_int), value :: comm
            type(c_ptr) :: hang_comm
        end function
        function usleep(microseconds) bind(C)
            import :: c_int
            integer(c_int), value :: microseconds
            integer(c_int) :: usleep
        end function
    end interface

    call get_command_argument(1, options)
    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    x = 0
    call check(recoup_open(trim(options), handle, hang_comm(MPI_COMM_WORLD)))
    call check(recoup_protect(handle, "x", RECOUP_ITERATE, RECOUP_F64, c_loc(x), n, n * rank, n * ranks))
    do k = 1, 100000
        x(1 + mod(k, n)) = x(1 + mod(k, n)) + 1
        call check(recoup_step(handle, k, 1d0, 1d0))
        if (usleep(1000) /= 0) exit
    end do
    call check(recoup_close(handle))
    call MPI_Finalize(error)

contains

    subroutine check(code)
        integer(c_int), intent(in) :: code
        if (code == RECOUP_OK) return
        print "(a)", recoup_message()
        call MPI_Abort(MPI_COMM_WORLD, 3, error)
    end subroutine
end program
