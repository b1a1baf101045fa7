! SPDX-License-Identifier: BSD-3-Clause
! work UNIT LOAD0 LOAD1 REGIONS MEETINGS: work.c in Fortran, with mpi_f08.
program work
  use mpi_f08
  use iso_c_binding, only: c_double
  implicit none
  interface
    real(c_double) function own_time() bind(C)
      import :: c_double
    end function
    real(c_double) function machine_time() bind(C)
      import :: c_double
    end function
  end interface
  integer, parameter :: parts = 1000
  integer :: rank, meeting
  double precision :: time, own, both, machine, total
  integer(8) :: n

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  if (command_argument_count() /= 5) call MPI_Abort(MPI_COMM_WORLD, 2)
  n = int(argument(1) * argument(2 + rank), 8)
  total = compute(2)
  call MPI_Barrier(MPI_COMM_WORLD)
  time = MPI_Wtime()
  own = own_time()
  machine = machine_time()
  do meeting = 1, int(argument(5))
    total = total + compute(int(argument(4)))
    call MPI_Barrier(MPI_COMM_WORLD)
  end do
  time = MPI_Wtime() - time
  own = own_time() - own
  call PMPI_Allreduce(own, both, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0) print '(f0.5,2(1x,f0.3),1x,i0)', time, both, machine_time() - machine, &
      merge(1, 0, total > 0)
  call MPI_Finalize()
contains
  double precision function argument(i)
    integer, intent(in) :: i
    character(len=64) :: text

    call get_command_argument(i, text)
    read (text, *) argument
  end function

  double precision function burn(steps)
    integer(8), intent(in) :: steps
    integer(8) :: i

    burn = 1
    do i = 1, steps
      burn = burn * 1.0000001d0 + 1d-9
    end do
  end function

  double precision function compute(regions)
    integer, intent(in) :: regions
    integer :: region, i

    compute = 0
    do region = 1, regions
      !$omp parallel do schedule(static) reduction(+:compute)
      do i = 1, parts
        compute = compute + burn(n / parts)
      end do
    end do
  end function
end program
