/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reading side of the results region. The agent wrote its contents, and they are
 * believed, but a reader never leaves its mapping.
 */
#include "libshm/region.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "libshm/byteorder.h"
#include "libshm/region_layout.h"
#include "libshm/region_map.h"

struct region {
	const unsigned char *map;
	size_t size;
};

static bool inside(uint64_t offset, uint64_t len, size_t size)
{
	return offset <= size && len <= size - offset;
}

bool region_index_open(const unsigned char *map, size_t size,
		       const struct region_index *ri, struct index *ix)
{
	if ((ri->buckets & (ri->buckets - 1)) != 0 ||
	    !inside(ri->table, (uint64_t)ri->buckets * INDEX_BUCKET, size) ||
	    !inside(ri->base, 0, size))
		return false;
	ix->table = map + ri->table;
	ix->buckets = ri->buckets;
	ix->base = map + ri->base;
	ix->len = size - ri->base;
	return true;
}

/* The view that is current now, in place; NULL: there are no keys. */
static const struct region_view *current_view(const unsigned char *map,
					      size_t size)
{
	const struct region_header *h = (const struct region_header *)map;
	const struct region_view *view;
	uint64_t at = atomic_load_explicit(&h->view, memory_order_acquire);

	if (at == 0 || at % _Alignof(struct region_view) ||
	    !inside(at, sizeof(*view), size))
		return NULL;
	view = (const struct region_view *)(map + at);
	return view->count <= REGION_CHAIN_MAX ? view : NULL;
}

bool region_lookup(const unsigned char *map, size_t size, const void *key,
		   size_t key_len, const char **value, size_t *value_len)
{
	const struct region_view *view = current_view(map, size);
	uint64_t hash = image_hash(key, key_len);
	struct record r;
	struct index ix;

	for (uint32_t i = 0; view && i < view->count; i++) {
		if (!region_index_open(map, size, &view->index[i], &ix) ||
		    !index_find(&ix, hash, key, key_len, &r))
			continue;
		*value = r.value;
		*value_len = r.value_len;
		return true;
	}
	return false;
}

/* A file that is shorter than its mapping would kill the reader by SIGBUS. */
static int check_file(int fd, size_t size)
{
	struct stat st;

	if (size < REGION_SIZE_MIN)
		return -EPROTO;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < size)
		return -EPROTO;
	return 0;
}

static bool header_ok(const struct region_header *h, size_t size)
{
	return h->magic == REGION_MAGIC && h->byte_order == BYTE_ORDER_MARK &&
	       h->version == REGION_VERSION &&
	       h->header_size == REGION_HEADER_SIZE && h->size == size;
}

int region_attach(struct region **out, int fd, size_t size)
{
	struct region *r;
	void *map;
	int rc;

	rc = check_file(fd, size);
	if (rc)
		return rc;
	rc = region_map(&map, fd, size, PROT_READ);
	if (rc)
		return rc;
	rc = -EPROTO;
	if (!header_ok(map, size))
		goto unmap;
	rc = -ENOMEM;
	r = malloc(sizeof(*r));
	if (!r)
		goto unmap;
	/* Results of the whole job do not belong in every rank's core file. */
	madvise(map, size, MADV_DONTDUMP);
	r->map = map;
	r->size = size;
	*out = r;
	return 0;
unmap:
	munmap(map, size);
	return rc;
}

void region_detach(struct region *r)
{
	if (!r)
		return;
	munmap((void *)r->map, r->size);
	free(r);
}

bool region_find(const struct region *r, const void *key, size_t key_len,
		 const char **value, size_t *value_len)
{
	return region_lookup(r->map, r->size, key, key_len, value, value_len);
}

const void *region_bytes(const struct region *r, uint64_t offset, uint64_t len)
{
	return inside(offset, len, r->size) ? r->map + offset : NULL;
}
