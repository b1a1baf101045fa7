/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory object under a results region.
 *
 * The holder of the reader descriptor can write neither through it (it is opened
 * read-only) nor through a reopened one: the file is its creator's with mode 0444, and
 * F_SEAL_FUTURE_WRITE (Linux 5.1) stops even the creator. The seal has a price: the
 * kernel then refuses to punch holes, with EPERM, also for the creator (tried on 6.18
 * with fallocate and MADV_REMOVE), so the pages of a released block stay until the block
 * is used again. Memory in use is bounded by the most that was in use at one time.
 */
#include "config.h" /* _GNU_SOURCE */

#include "libshm/region_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libshm/region.h"
#include "libshm/region_map.h"

#define MEMORY_NAME "pmi2x-results" /* in /proc/PID/maps */
#define COMMIT_BULK 65536 /* bytes, from which on allocating first pays */

/* Linux values, for C libraries older than the kernel. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

int region_memory_object(const char *name)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	return fd < 0 ? -errno : fd;
}

/* Seal; *future says whether also against writers to come. */
static int seal(int fd, bool *future)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	*future = fcntl(fd, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE) == 0;
	if (*future)
		return 0;
	if (errno != EINVAL)
		return -errno;
	return fcntl(fd, F_ADD_SEALS, seals) ? -errno : 0;
}

/* A read-only descriptor of its own, so that no right of ours travels. */
static int open_for_readers(int fd)
{
	char path[64];
	int reader;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	reader = open(path, O_RDONLY | O_CLOEXEC);
	return reader < 0 ? -errno : reader;
}

static int map_object(struct region_memory *m)
{
	void *map;
	int rc = region_map(&map, m->fd, m->size, PROT_READ | PROT_WRITE);

	if (rc)
		return rc;
	m->map = map;
	/* Ranks are forked from the agent's process: not with this mapping. */
	madvise(map, m->size, MADV_DONTFORK);
	madvise(map, m->size, MADV_DONTDUMP);
	return 0;
}

static int protect_object(struct region_memory *m)
{
	bool future;
	int rc;

	rc = seal(m->fd, &future);
	if (rc)
		return rc;
	m->can_discard = !future;
	m->reader_fd = open_for_readers(m->fd);
	return m->reader_fd < 0 ? m->reader_fd : 0;
}

int region_object_create(void)
{
	int rc, fd = region_memory_object(MEMORY_NAME);

	if (fd < 0 || fchmod(fd, 0444) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

int region_memory_create(struct region_memory *m, int object, size_t size)
{
	int rc;

	memset(m, 0, sizeof(*m));
	m->reader_fd = -1;
	m->page = sysconf(_SC_PAGESIZE);
	m->size = (size + m->page - 1) & ~(m->page - 1);
	m->fd = object;
	if (ftruncate(m->fd, m->size)) {
		rc = -errno;
		goto destroy;
	}
	rc = map_object(m);
	if (rc)
		goto destroy;
	rc = protect_object(m);
	if (rc)
		goto destroy;
	return 0;
destroy:
	region_memory_destroy(m);
	return rc;
}

void region_memory_destroy(struct region_memory *m)
{
	if (m->map)
		munmap(m->map, m->size);
	if (m->reader_fd >= 0)
		close(m->reader_fd);
	close(m->fd);
}

static int allocate(const struct region_memory *m, uint64_t first, uint64_t len)
{
	int rc;

	do
		rc = fallocate(m->fd, 0, first, len);
	while (rc && errno == EINTR);
	return rc ? -ENOSPC : 0;
}

int region_memory_commit(const struct region_memory *m, uint64_t offset,
			 uint64_t len)
{
	uint64_t first = offset & ~(uint64_t)(m->page - 1);
	uint64_t end = (offset + len + m->page - 1) & ~(uint64_t)(m->page - 1);
	int rc;

	/* The kernel makes many pages faster than it faults them in. */
	if (end - first >= COMMIT_BULK && allocate(m, first, end - first))
		return -ENOSPC;
	do
		rc = madvise(m->map + first, end - first, MADV_POPULATE_WRITE);
	while (rc && errno == EINTR);
	if (rc == 0)
		return 0;
	if (errno != EINVAL) /* older than Linux 5.14 */
		return -ENOSPC;
	return allocate(m, first, end - first);
}

void region_memory_discard(const struct region_memory *m, uint64_t offset,
			   uint64_t len)
{
	uint64_t first = (offset + m->page - 1) & ~(uint64_t)(m->page - 1);
	uint64_t end = (offset + len) & ~(uint64_t)(m->page - 1);

	/* If the call fails, the pages stay and are written over. */
	if (m->can_discard && end > first)
		madvise(m->map + first, end - first, MADV_REMOVE);
}
