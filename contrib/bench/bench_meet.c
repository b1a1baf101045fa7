/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On one machine all ranks can meet in a file that they map, without the PMI server. pmi2x
 * bench collectives makes the file, all zero.
 */
#include "bench_rank.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct bench_meeting {
	_Alignas(64) atomic_uint entered; /* of all meetings together */
	_Alignas(64) atomic_uint held;    /* meetings; the futex */
};

struct bench_meeting *bench_meet_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *map = MAP_FAILED;

	if (fd >= 0) {
		map = mmap(NULL, sizeof(struct bench_meeting),
			   PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	}
	if (map == MAP_FAILED)
		perror(path);
	return map == MAP_FAILED ? NULL : map;
}

/* Everybody is in the same meeting, so `held` says which one it is. */
void bench_meet(struct bench_meeting *m, int size)
{
	unsigned int number = atomic_load(&m->held);

	if (atomic_fetch_add(&m->entered, 1) + 1 ==
	    (number + 1) * (unsigned int)size) {
		atomic_fetch_add(&m->held, 1);
		syscall(SYS_futex, &m->held, FUTEX_WAKE, INT_MAX, NULL, NULL,
			0);
		return;
	}
	while (atomic_load(&m->held) == number)
		syscall(SYS_futex, &m->held, FUTEX_WAIT, number, NULL, NULL, 0);
}
