/* SPDX-License-Identifier: BSD-3-Clause */
/* All ranks of the floor program meet in memory, so that a round starts at once. */
#include "floor.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

struct floor_meeting {
	_Alignas(64) atomic_uint entered; /* of all rounds together */
	_Alignas(64) atomic_uint held;    /* rounds; the futex */
};

struct floor_meeting *floor_meet_create(void)
{
	return floor_memory(sizeof(struct floor_meeting), true);
}

void floor_meet(struct floor_meeting *m, uint32_t size, uint32_t round)
{
	/* unsigned arithmetic wraps on both sides alike */
	if (atomic_fetch_add(&m->entered, 1) + 1 == (round + 1) * size) {
		atomic_fetch_add(&m->held, 1);
		syscall(SYS_futex, &m->held, FUTEX_WAKE, INT_MAX, NULL, NULL,
			0);
	}
	while (atomic_load(&m->held) == round)
		syscall(SYS_futex, &m->held, FUTEX_WAIT, round, NULL, NULL, 0);
}
