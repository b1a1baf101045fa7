/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds and takes apart the bundles of a node's blocks. */
#include "bundle.h"

#include <errno.h>
#include <string.h>

struct head {
	uint32_t count;
	uint32_t zero;
};

static size_t head_size(uint32_t count)
{
	return sizeof(struct head) + (size_t)count * sizeof(struct bundle_entry);
}

size_t bundle_size(const struct bundle_entry *entries, uint32_t count)
{
	size_t size = head_size(count);

	for (uint32_t i = 0; i < count; i++)
		size += entries[i].len;
	return size;
}

char *bundle_begin(void *out, const struct bundle_entry *entries,
		   uint32_t count)
{
	struct head head = { count, 0 };

	memcpy(out, &head, sizeof(head));
	memcpy((char *)out + sizeof(head), entries, count * sizeof(*entries));
	return (char *)out + head_size(count);
}

static bool take_rank(struct bundle_sink *sink, uint32_t rank)
{
	unsigned char bit = 1u << rank % 8;

	if (rank >= sink->size || (sink->seen[rank / 8] & bit))
		return false;
	sink->seen[rank / 8] |= bit;
	sink->count++;
	return true;
}

static int place_block(struct bundle_sink *sink, const struct bundle_entry *e,
		       const char *block)
{
	sink->culprit = e->rank;
	if (!take_rank(sink, e->rank))
		return -EPROTO;
	if (!sink->lengths && e->len != sink->stride)
		return -EMSGSIZE;
	if (sink->lengths)
		sink->lengths[e->rank] = e->len;
	if (e->len && sink->stride)
		memcpy(sink->buffer + e->rank * sink->stride, block,
		       e->len < sink->stride ? e->len : sink->stride);
	return 0;
}

int bundle_scatter(const void *bundle, size_t len, struct bundle_sink *sink)
{
	const char *entries = (const char *)bundle + sizeof(struct head);
	const char *block, *end = (const char *)bundle + len;
	struct bundle_entry e;
	struct head head;
	int rc = 0;

	if (len < sizeof(head))
		return -EPROTO;
	memcpy(&head, bundle, sizeof(head));
	if (head.count > sink->size || head_size(head.count) > len)
		return -EPROTO;
	block = (const char *)bundle + head_size(head.count);
	for (uint32_t i = 0; !rc && i < head.count; i++) {
		memcpy(&e, entries + i * sizeof(e), sizeof(e));
		if (e.len > (size_t)(end - block))
			return -EPROTO;
		rc = place_block(sink, &e, block);
		block += e.len;
	}
	if (rc)
		return rc;
	return block == end ? 0 : -EPROTO;
}
