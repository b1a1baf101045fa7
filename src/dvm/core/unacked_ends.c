/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends of parts that are kept. */
#include "dvm/core/unacked_ends.h"

#include <errno.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define MESSAGES_MAX ((size_t)64 << 10) /* bytes of the two of a part */

struct key {
	uint64_t task, instance; /* no padding between them */
};

struct kept {
	struct key key;
	struct buf messages;
	UT_hash_handle hh;
};

struct kept_set {
	struct kept *all;
};

struct kept_set *kept_create(void)
{
	return calloc(1, sizeof(struct kept_set));
}

static void drop(struct kept_set *k, struct kept *e)
{
	HASH_DEL(k->all, e);
	buf_free(&e->messages);
	free(e);
}

void kept_destroy(struct kept_set *k)
{
	struct kept *e, *next;

	HASH_ITER(hh, k->all, e, next)
		drop(k, e);
	free(k);
}

int kept_add(struct kept_set *k, const struct dvm_held *held,
	     const struct dvm_ended *ended)
{
	const struct dvm_msg first = { .type = DVM_HELD, .held = *held };
	const struct dvm_msg second = { .type = DVM_ENDED, .ended = *ended };
	struct kept *e = calloc(1, sizeof(*e));
	int rc;

	if (!e)
		return -ENOMEM;
	e->key = (struct key){ held->task, held->instance };
	buf_init(&e->messages, MESSAGES_MAX);
	HASH_ADD(hh, k->all, key, sizeof(e->key), e);
	if (!e->hh.tbl) {
		free(e);
		return -ENOMEM;
	}
	rc = dvm_msg_pack(&e->messages, &first);
	rc = rc ? rc : dvm_msg_pack(&e->messages, &second);
	if (rc)
		drop(k, e);
	return rc;
}

static struct kept *find(struct kept_set *k, uint64_t task, uint32_t instance)
{
	const struct key key = { task, instance };
	struct kept *e;

	HASH_FIND(hh, k->all, &key, sizeof(key), e);
	return e;
}

int kept_add_failed(struct kept_set *k, const struct dvm_failed *failed)
{
	const struct dvm_msg m = { .type = DVM_FAILED, .failed = *failed };
	struct kept *e = find(k, failed->task, failed->instance);

	return e ? dvm_msg_pack(&e->messages, &m) : 0;
}

void kept_remove(struct kept_set *k, uint64_t task, uint32_t instance)
{
	struct kept *e = find(k, task, instance);

	if (e)
		drop(k, e);
}

int kept_say(const struct kept_set *k, struct buf *out)
{
	int rc = 0;

	for (const struct kept *e = k->all; e && !rc; e = e->hh.next)
		rc = buf_append(out, e->messages.data, e->messages.len);
	return rc;
}
