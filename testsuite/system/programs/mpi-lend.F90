! SPDX-License-Identifier: BSD-3-Clause
! Two ranks with OpenMP under PMI2X_LEND=on, in Fortran. Rank 1 waits in a receive, until a thread
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
  integer :: rank, token, error
  double precision :: start

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  token = rank
  if (rank == 1) then
    call MPI_Recv(token, 1, MPI_INTEGER, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  else
    start = MPI_Wtime()
    do while (.not. is_on(1))
      if (MPI_Wtime() > start + limit) call MPI_Abort(MPI_COMM_WORLD, 1, error)
    end do
    call MPI_Send(token, 1, MPI_INTEGER, 1, 3, MPI_COMM_WORLD, error)
  end if
  call MPI_Barrier(MPI_COMM_WORLD, error)
  print '(a,i0,a,i0,a)', 'rank ', rank, ' threads ', omp_get_max_threads(), ' ok'
  call MPI_Finalize(error)
contains
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
