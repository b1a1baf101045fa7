/* SPDX-License-Identifier: BSD-3-Clause */
/* Packs what an event is by libpmix, which knows all kinds of values, and the reverse. */
#include "helpers/pmixd/notify.h"

#include <errno.h>
#include <stdlib.h>

#define INFOS_MAX 1024 /* of an event: more are taken for none */

int notify_pack(const struct library *l, const struct notification *n, char **data,
		size_t *len)
{
	struct notification copy = *n;
	pmix_data_buffer_t b = {};

	if (l->Data_pack(NULL, &b, &copy.code, 1, PMIX_STATUS) ||
	    l->Data_pack(NULL, &b, &copy.source, 1, PMIX_PROC) ||
	    l->Data_pack(NULL, &b, &copy.range, 1, PMIX_DATA_RANGE) ||
	    l->Data_pack(NULL, &b, &copy.ninfo, 1, PMIX_SIZE) ||
	    (n->ninfo && l->Data_pack(NULL, &b, copy.info, (int32_t)n->ninfo,
				      PMIX_INFO))) {
		free(b.base_ptr);
		return -EREMOTEIO;
	}
	*data = b.base_ptr;
	*len = b.bytes_used;
	return 0;
}

static bool unpack_one(const struct library *l, pmix_data_buffer_t *b, void *to,
		       pmix_data_type_t type)
{
	int32_t one = 1;

	return !l->Data_unpack(NULL, b, to, &one, type) && one == 1;
}

static int unpack_infos(const struct library *l, pmix_data_buffer_t *b,
			struct notification *n)
{
	int32_t count;

	if (!unpack_one(l, b, &n->ninfo, PMIX_SIZE) || n->ninfo > INFOS_MAX) {
		n->ninfo = 0;
		return -EREMOTEIO;
	}
	n->info = calloc(n->ninfo + 1, sizeof(*n->info));
	if (!n->info)
		return -ENOMEM;
	count = (int32_t)n->ninfo;
	return n->ninfo && l->Data_unpack(NULL, b, n->info, &count, PMIX_INFO) ?
		       -EREMOTEIO :
		       0;
}

static int unpack(const struct library *l, const void *data, size_t len,
		  struct notification *n)
{
	pmix_data_buffer_t b = library_packed(data, len);

	if (!unpack_one(l, &b, &n->code, PMIX_STATUS) ||
	    !unpack_one(l, &b, &n->source, PMIX_PROC) ||
	    !unpack_one(l, &b, &n->range, PMIX_DATA_RANGE))
		return -EREMOTEIO;
	return unpack_infos(l, &b, n);
}

int notify_deliver(const struct library *l, const void *data, size_t len)
{
	struct notification n = {};
	int rc = unpack(l, data, len, &n);

	if (!rc)
		l->Notify_event(n.code, &n.source, n.range, n.info, n.ninfo, NULL, NULL);
	for (size_t i = 0; n.info && i < n.ninfo; i++)
		l->Value_destruct(&n.info[i].value);
	free(n.info);
	return rc;
}
