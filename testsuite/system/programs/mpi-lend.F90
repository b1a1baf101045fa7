! SPDX-License-Identifier: BSD-3-Clause
! Two ranks with OpenMP under PMI2X_LEND=on, in Fortran. Rank 1 waits in each call, until a thread
! of rank 0 runs on its core, and then both meet. WITH_F08 takes mpi_f08, otherwise it is mpif.h.
program lend
#ifdef WITH_F08
  use mpi_f08
#endif
  use omp_lib
  use iso_c_binding, only: c_int
  implicit none
#ifndef WITH_F08
  include 'mpif.h'
#endif
  interface
    integer(c_int) function getcpu() bind(C, name='sched_getcpu')
      import :: c_int
    end function
  end interface
  double precision, parameter :: limit = 30
  ! Arrivals at a collective are waited for a second only.
  double precision, parameter :: short = 0.8
  integer :: rank, error, round
  integer :: seen(1), got(1)
#ifdef WITH_F08
  type(MPI_Message) :: message
#else
  integer :: message
#endif

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  got = rank

  call compute()
  if (rank == 1) then
    call MPI_Recv(got, 1, MPI_INTEGER, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  else
    call MPI_Send(got, 1, MPI_INTEGER, 1, 3, MPI_COMM_WORLD, error)
  end if

  call compute()
  if (rank == 1) then
    call MPI_Ssend(got, 1, MPI_INTEGER, 0, 3, MPI_COMM_WORLD, error)
  else
    call MPI_Recv(got, 1, MPI_INTEGER, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  end if

  call compute()
  seen = rank
  call MPI_Sendrecv(seen, 1, MPI_INTEGER, 1 - rank, 3, got, 1, MPI_INTEGER, 1 - rank, 3, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  if (got(1) /= 1 - rank) call MPI_Abort(MPI_COMM_WORLD, 1, error)

  call compute()
  if (rank == 1) then
    call MPI_Probe(0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    call MPI_Recv(got, 1, MPI_INTEGER, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  else
    call MPI_Send(got, 1, MPI_INTEGER, 1, 3, MPI_COMM_WORLD, error)
  end if

  call compute()
  if (rank == 1) then
    call MPI_Mprobe(0, 3, MPI_COMM_WORLD, message, MPI_STATUS_IGNORE, error)
    call MPI_Mrecv(got, 1, MPI_INTEGER, message, MPI_STATUS_IGNORE, error)
  else
    call MPI_Send(got, 1, MPI_INTEGER, 1, 3, MPI_COMM_WORLD, error)
  end if

  seen = 0
  do round = 1, int(limit)
    if (rank == 0) call look(short)
    call MPI_Bcast(seen, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    if (seen(1) == 1) exit
  end do
  if (seen(1) /= 1) call MPI_Abort(MPI_COMM_WORLD, 1, error)

  call MPI_Reduce(seen, got, 1, MPI_INTEGER, MPI_SUM, 1, MPI_COMM_WORLD, error)
  if (rank == 1 .and. got(1) /= 2) call MPI_Abort(MPI_COMM_WORLD, 1, error)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  print '(a,i0,a,i0,a)', 'rank ', rank, ' threads ', omp_get_max_threads(), ' ok'
  call MPI_Finalize(error)
contains
  ! Rank 0 leaves the core of rank 1, which does not wait yet, and computes until it is there again.
  subroutine compute()
    logical :: left

    left = .false.
    if (rank == 1) then
      do while (.not. left)
        call MPI_Iprobe(0, 9, MPI_COMM_WORLD, left, MPI_STATUS_IGNORE, error)
      end do
      call MPI_Recv(got, 1, MPI_INTEGER, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
      return
    end if
    do while (is_on(1))
    end do
    call MPI_Send(got, 1, MPI_INTEGER, 1, 9, MPI_COMM_WORLD, error)
    call look(limit)
    if (seen(1) /= 1) call MPI_Abort(MPI_COMM_WORLD, 1, error)
  end subroutine

  subroutine look(seconds)
    double precision, intent(in) :: seconds
    double precision :: start

    seen = 0
    start = MPI_Wtime()
    do while (seen(1) == 0 .and. MPI_Wtime() < start + seconds)
      if (is_on(1)) seen = 1
    end do
  end subroutine

  logical function is_on(core)
    integer, intent(in) :: core
    integer :: i
    double precision :: x

    is_on = .false.
    x = 1
    !$omp parallel reduction(.or.: is_on) private(i) firstprivate(x)
    do i = 1, 100000
      x = x * 1.0000001d0 + 1d-9
    end do
    is_on = getcpu() == core .and. x > 0
    !$omp end parallel
  end function
end program
