/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reference-counted byte strings: what collectives move between nodes.
 *
 * A payload is immutable once a second reference exists. The bytes may be
 * absent (payload_virtual): a simulator needs only the length. The count is
 * not atomic: one thread owns all payloads of an agent.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "libutil/buf.h"

struct payload {
	uint32_t refs;
	size_t len;
	unsigned char *data;    /* NULL when virtual */
	struct payload *parent; /* kept alive by a slice */
	/*
	 * Gives the object and its bytes back; NULL: free(). Set by whoever
	 * made it part of something larger (libshm's region_payload_new).
	 */
	void (*release)(struct payload *p);
	struct budget *budget; /* the bytes count there until they go; or NULL */
};

/* One reference to `len` uninitialised bytes, or NULL: no memory. */
struct payload *payload_new(size_t len);
/* Counted against a budget (NULL: none), which may refuse. */
struct payload *payload_new_in(struct budget *budget, size_t len);
/* As above, filled with a copy of `data`. */
struct payload *payload_copy(const void *data, size_t len);
struct payload *payload_copy_in(struct budget *budget, const void *data,
				size_t len);
/*
 * The bytes of a buffer that is not empty, with their place in its budget, not copied: it is empty then.
 * NULL: no memory, and nothing has changed.
 */
struct payload *payload_take(struct buf *b);
/* A length without bytes. */
struct payload *payload_virtual(size_t len);
/* Bytes [offset, offset+len) of `p`, shared, not copied; must lie inside `p`. */
struct payload *payload_slice(struct payload *p, size_t offset, size_t len);

/*
 * Change the length of a payload that has one reference and is no slice; new
 * bytes are uninitialised. Returns its new address (the old one is gone), or
 * NULL when there is no memory (nothing has changed). Lets a reader allocate as
 * bytes come, without copying large ones.
 */
struct payload *payload_resize(struct payload *p, size_t len);

struct payload *payload_ref(struct payload *p); /* NULL stays NULL */
void payload_unref(struct payload *p);          /* NULL is allowed */

/* An ordered list of payloads; owns one reference to each. */
struct payload_vec {
	struct payload **items;
	size_t count;
	size_t cap;
	size_t bytes; /* sum of the lengths */
};

void payload_vec_init(struct payload_vec *v);
/* Takes a reference of its own. 0 or -ENOMEM. Empty payloads are skipped. */
int payload_vec_add(struct payload_vec *v, struct payload *p);
/* Append all of `from`. 0 or -ENOMEM. */
int payload_vec_add_all(struct payload_vec *v, const struct payload_vec *from);
/* Drop the references to the first `count`. */
void payload_vec_drop(struct payload_vec *v, size_t count);
/* Drop all references; the list is empty and usable again. */
void payload_vec_clear(struct payload_vec *v);
/*
 * One payload with all the bytes: a reference, if there is one item only. Counted in the
 * budget of the first item.
 */
struct payload *payload_vec_join(const struct payload_vec *v);
