/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory object under a results region: making, protecting, committing and
 * discarding its pages. Private to libshm.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An empty memory object that can be sealed: a descriptor or a negative errno. */
int region_memory_object(const char *name);

struct region_memory {
	unsigned char *map; /* writable; not inherited by a forked child */
	size_t size;        /* bytes, whole pages */
	size_t page;        /* bytes of a page */
	int fd;
	int reader_fd;      /* read-only, CLOEXEC */
	bool can_discard;
};

/*
 * Give the empty object of region_object_create `size` bytes, sparse and rounded
 * up to pages, map and protect it. 0 or a negative errno; the object is taken
 * over, and nothing is left behind on failure.
 */
int region_memory_create(struct region_memory *m, int object, size_t size);
void region_memory_destroy(struct region_memory *m);

/*
 * Make pages under a range before it is written: a write to a sparse page without memory
 * would kill the process. 0 or -ENOSPC.
 */
int region_memory_commit(const struct region_memory *m, uint64_t offset,
			 uint64_t len);

/* Return the whole pages of a range to the system, where the kernel lets us. */
void region_memory_discard(const struct region_memory *m, uint64_t offset,
			   uint64_t len);
