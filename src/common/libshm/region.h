/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The results region of a node: one memory object that the agent writes and
 * every rank of the node maps read-only.
 *
 * The writer reserves a large sparse range, fills blocks, and publishes them:
 *   - a fence image becomes the newest generation of the KVS: a new *view*
 *     block lists the blocks to search, newest first, and one release store
 *     makes it current. After the fence region_tidy enters its keys into one
 *     index over all generations, so that look-ups stay flat.
 *   - a gather image is placed somewhere and named to the ranks by its offset;
 *     its space is reused after region_release.
 * KVS generations live as long as the region, and so do views and indexes that
 * newer ones have replaced: a reader may still be inside.
 *
 * Protection: the descriptor given to ranks can be neither written nor
 * resized: it is opened read-only, the file is its creator's with mode 0444,
 * and sealed (F_SEAL_GROW, F_SEAL_SHRINK, F_SEAL_SEAL, and where the kernel
 * has it F_SEAL_FUTURE_WRITE). Nothing is left in any file system.
 *
 * Layout version REGION_VERSION is in the header; a reader refuses others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshm/image.h"

#define REGION_VERSION 1
#define REGION_SIZE_DEFAULT ((size_t)1 << 30) /* reserved, not used, bytes */
#define REGION_SIZE_MIN ((size_t)1 << 16)
#define REGION_SIZE_MAX ((uint64_t)16 << 30) /* the largest that an index can refer to */
#define REGION_CHAIN_MAX 8  /* indexes that a look-up may have to search */
#define REGION_CHAIN_GOOD 1 /* how many it has when all is tidy */

/* ---- writer: the agent; one thread ---- */

struct region_writer;

/*
 * Create the memory object (memfd) of `size` bytes (REGION_SIZE_MIN to
 * REGION_SIZE_MAX, rounded up to pages), map it, seal it. Call before privileges are dropped. A
 * forked child must not use the writer: it does not inherit the mapping. 0,
 * -EINVAL (size), or a negative errno of the system calls.
 */
int region_writer_create(struct region_writer **out, size_t size);
/*
 * As above, in two steps, for a creator whose rights to own the object are not lasting:
 * the empty object (a descriptor, CLOEXEC, or a negative errno), and the rest, which
 * takes it over, also on failure.
 */
int region_object_create(void);
int region_writer_create_in(struct region_writer **out, int object, size_t size);
void region_writer_destroy(struct region_writer *w);

/*
 * The read-only descriptor to pass to ranks (CLOEXEC; owned by the writer), and
 * the size to map.
 */
int region_writer_fd(const struct region_writer *w);
size_t region_writer_size(const struct region_writer *w);

/*
 * Copy a checked fence image in and make it the newest generation; one
 * without records changes nothing. 0, -ENOSPC (region or memory is full: the
 * fence fails, older generations stay readable), -EPROTO.
 */
int region_publish_fence(struct region_writer *w, const void *image, size_t len);

/*
 * Do a bounded part of the work that a publication leaves for later: merging keys into one
 * index, and making pages for the next fence. Every key is found without it, only more
 * slowly. True: call again, at any time. A publication that needs the work done does it
 * itself.
 */
bool region_tidy(struct region_writer *w);
/* True: such work is left. */
bool region_untidy(const struct region_writer *w);

/*
 * Copy a checked gather image in. With `stride` > 0 it is stored expanded: the
 * value of rank r at offset + r*stride, cut or zero-filled to stride; otherwise
 * as the image itself. Writes where it is. 0, -ENOSPC, -EPROTO (also when
 * stride is over RECORD_VALUE_MAX).
 */
int region_publish_gather(struct region_writer *w, const void *image, size_t len,
			  size_t stride, uint64_t *offset, uint64_t *out_len);

/*
 * Give back the space of a gather, for later blocks. Its pages return to the
 * system only on kernels without F_SEAL_FUTURE_WRITE: the seal forbids it.
 * An offset that is no gather's is ignored.
 */
void region_release(struct region_writer *w, uint64_t offset);

/*
 * Keep `len` bytes for something else that ranks shall read and only the agent
 * write, until the writer is destroyed. Writes the offset for the ranks and the
 * address for the agent. 0 or -ENOSPC.
 */
int region_reserve(struct region_writer *w, size_t len, uint64_t *offset,
		   void **at);

/*
 * A place in the region for an image of `len` bytes, as a payload that can be
 * filled and sent on from there: it is published without a copy, and gives its
 * space back with its last reference unless it has become a generation of the
 * KVS. NULL: the region is full. The writer outlives it.
 *
 * It has no memory yet: who says how long an image is need not send it.
 * region_payload_commit makes some under the first `len` bytes, which may be
 * written then. 0 or -ENOSPC.
 *
 * Ranks could see the bytes before they are published, if they knew where; they
 * cannot change them.
 */
struct payload *region_payload_new(struct region_writer *w, size_t len);
int region_payload_commit(struct region_writer *w, struct payload *p, size_t len);
/* Whether this payload (not a slice of it) is such a one of this writer. */
bool region_payload_is(const struct region_writer *w, const struct payload *p);
/* As region_publish_fence, of an image that lies in such a payload. */
int region_publish_fence_payload(struct region_writer *w, struct payload *p);
/*
 * As region_publish_gather: true, and where it is, if what ranks are to read lies in
 * the payload as it is, because all values have the length `stride`, or stride is 0. It
 * stays there as long as the payload has references: there is nothing to release.
 */
bool region_publish_gather_payload(struct region_writer *w, struct payload *p,
				   size_t stride, uint64_t *offset,
				   uint64_t *out_len);

/* Look up a key in all generations, newest first (what unextended ranks get). */
bool region_writer_find(const struct region_writer *w, const void *key,
			size_t key_len, const char **value, size_t *value_len);

/*
 * `len` (> 0) bytes at `offset`, or NULL when not all of that is space that is in
 * use and has memory.
 */
const void *region_writer_bytes(const struct region_writer *w, uint64_t offset,
				uint64_t len);

/* Bytes in use, for reports. */
size_t region_writer_used(const struct region_writer *w);
/* The cost of tidying since the beginning, in buckets of indexes. */
uint64_t region_writer_merged(const struct region_writer *w);

/* ---- reader: a rank; any thread, no lock ---- */

struct region;

/*
 * Map the region behind `fd` read-only; the descriptor may be closed after.
 * 0, -EPROTO (no such magic, version or byte order; not a file of that size),
 * or the errno of mmap (-ENOMEM under ulimit -v).
 */
int region_attach(struct region **out, int fd, size_t size);
void region_detach(struct region *r);

/*
 * Find a key in the newest generation that is published now. The value stays
 * valid until region_detach. Wait-free.
 */
bool region_find(const struct region *r, const void *key, size_t key_len,
		 const char **value, size_t *value_len);

/* `len` bytes at `offset`, or NULL when that is outside the region. */
const void *region_bytes(const struct region *r, uint64_t offset, uint64_t len);
