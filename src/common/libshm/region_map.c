/* SPDX-License-Identifier: BSD-3-Clause */
/* Address space for a results region, of which only what is used takes memory. */
#include "libshm/region_map.h"

#include <errno.h>
#include <sys/mman.h>

/*
 * Where future memory is locked, mmap makes every page of an accessible mapping. So map
 * without access, take the lock away, and only then allow access.
 */
int region_map(void **map, int fd, size_t size, int protection)
{
	void *at = mmap(NULL, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	int rc;

	if (at == MAP_FAILED)
		return -errno;
	munlock(at, size);
	if (mprotect(at, size, protection)) {
		rc = -errno;
		munmap(at, size);
		return rc;
	}
	*map = at;
	return 0;
}
