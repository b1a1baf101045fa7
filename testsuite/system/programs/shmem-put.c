// SPDX-License-Identifier: BSD-3-Clause
/* An OpenSHMEM program: each process puts its number into the next one's memory. */
#include <shmem.h>
#include <stdio.h>

static int got = -1;

int main(void)
{
	int me, all, wrong;

	shmem_init();
	me = shmem_my_pe();
	all = shmem_n_pes();
	shmem_int_put(&got, &me, 1, (me + 1) % all);
	shmem_barrier_all();
	wrong = got != (me + all - 1) % all ||
		shmem_int_g(&got, (me + 1) % all) != me;
	if (wrong)
		fprintf(stderr, "%d: what was put is wrong\n", me);
	else
		printf("size %d\n", all);
	shmem_finalize();
	return wrong;
}
