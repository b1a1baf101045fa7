/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names that PMIx clients have published, and look-ups that wait for more, for srun.
 * The two-sided rule of PMIx: the publisher's range says who may see it, that of a
 * look-up whose things are wanted. A key that somebody could see twice is refused.
 */
#pragma once

#include "libpmi/names.h"

#define NAME_STORE_KEYS_MAX 65536
#define NAME_STORE_BYTES_MAX ((size_t)64 << 20) /* of keys and values */
#define NAME_STORE_WAITS_MAX 65536              /* look-ups that wait */
#define NAME_STORE_ENDED_MAX 65536              /* namespaces and ranks */

/* The process that asks, and where the answer goes. */
struct name_asker {
	void *link;
	uint32_t origin, id;
	struct names_proc proc;
};

/*
 * The one answer to a request; its texts are valid during the call. 0; or the negative
 * errno that the asker gets in its place.
 */
typedef int name_answer_fn(void *arg, const struct name_asker *to,
			   const struct names_answer *a);

struct name_store;

/* `hash_seed`: random, because clients choose the keys. 0 or -ENOMEM. */
int name_store_create(struct name_store **out, uint64_t hash_seed,
		      name_answer_fn *answer, void *arg);
void name_store_destroy(struct name_store *s);

/*
 * A packed request. It is answered in the call; but a look-up may have to wait for what
 * others publish. Errors of answers: -EEXIST, -ENOENT, -ETIMEDOUT, -ENOSPC (too much is
 * published, or too many wait), -ECONNRESET (the namespace, or a rank of it, has ended
 * that was to publish one: this is the answer's item, with node), -ENOMEM. 0, or -EPROTO,
 * -ENOMEM: there is no answer.
 */
int name_store_ask(struct name_store *s, const struct name_asker *who, const void *body,
		   size_t len);
/* Nobody there waits any more. */
void name_store_link_lost(struct name_store *s, const void *link);
/*
 * End what has waited too long at `now`, in ms of a clock that does not go back. To be
 * called after each request, and at the time that it returns; UINT64_MAX: at none.
 */
uint64_t name_store_expire(struct name_store *s, uint64_t now);
