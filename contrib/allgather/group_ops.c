/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of a node's ranks in their shared memory. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "group_layout.h"

#define RESULT_FIRST (1 << 16) /* bytes mapped at first; doubled as needed */

/* ---- entering ---- */

static int write_all(int fd, const char *data, size_t len, off_t at)
{
	while (len) {
		ssize_t n = pwrite(fd, data, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		data += n;
		len -= n;
		at += n;
	}
	return 0;
}

static uint32_t all_posts(const struct group *g)
{
	return g->generation * g->members;
}

int group_post(struct group *g, const void *block, size_t len)
{
	struct group_member *m = &g->page->member[g->index];
	int rc = write_all(g->fd, block, len, group_slot_at(g, g->index));

	if (rc)
		return rc;
	g->generation++;
	atomic_store(&m->len, len);
	atomic_store(&m->posted, g->generation);
	if (atomic_fetch_add(&g->page->entered, 1) + 1 == all_posts(g))
		group_wake(&g->page->entered);
	return 0;
}

bool group_entered(struct group *g, bool wait)
{
	uint32_t now = atomic_load(&g->page->entered);

	if (now != all_posts(g) && wait) {
		group_sleep(&g->page->entered, now);
		now = atomic_load(&g->page->entered);
	}
	return now == all_posts(g);
}

int group_missing(struct group *g)
{
	for (uint32_t i = 0; i < g->members; i++)
		if (atomic_load(&g->page->member[i].posted) != g->generation)
			return (int)i;
	return -1;
}

size_t group_block_len(const struct group *g, uint32_t member)
{
	uint64_t len = atomic_load(&g->page->member[member].len);

	return len < PMI2X_RING_BLOCK_MAX ? len : PMI2X_RING_BLOCK_MAX;
}

int group_read_block(struct group *g, uint32_t member, void *out)
{
	size_t len = group_block_len(g, member), have = 0;

	while (have < len) {
		ssize_t n = pread(g->fd, (char *)out + have, len - have,
				  group_slot_at(g, member) + have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		have += n;
	}
	return 0;
}

/* ---- the result ---- */

static void *map_result(struct group *g, size_t size, int access)
{
	void *result;

	if (g->result)
		munmap(g->result, g->mapped);
	g->mapped = 0;
	g->result = NULL;
	result = mmap(NULL, size, access, MAP_SHARED, g->fd,
		      group_result_at(g));
	if (result == MAP_FAILED)
		return NULL;
	g->mapped = size;
	g->result = result;
	return result;
}

void *group_memory(struct group *g, size_t size)
{
	size_t room = g->mapped ? g->mapped : RESULT_FIRST;

	if (size <= g->mapped)
		return g->result;
	while (room < size)
		room *= 2;
	if (ftruncate(g->fd, group_result_at(g) + room))
		return NULL;
	return map_result(g, room, PROT_READ | PROT_WRITE);
}

void group_finish(struct group *g, size_t len)
{
	atomic_store(&g->page->result_len, len);
	atomic_store(&g->page->finished, g->generation);
	group_wake(&g->page->finished);
}

bool group_finished(struct group *g, bool wait)
{
	uint32_t now = atomic_load(&g->page->finished);

	if (now != g->generation && wait) {
		group_sleep(&g->page->finished, now);
		now = atomic_load(&g->page->finished);
	}
	return now == g->generation;
}

const void *group_result(struct group *g, size_t *len)
{
	uint64_t want = atomic_load(&g->page->result_len);
	struct stat st;

	*len = want;
	if (want <= g->mapped)
		return g->result;
	/* Map all there is, so that growing costs few mappings. */
	if (fstat(g->fd, &st) || st.st_size < group_result_at(g) ||
	    (uint64_t)(st.st_size - group_result_at(g)) < want)
		return NULL;
	return map_result(g, st.st_size - group_result_at(g), PROT_READ);
}
