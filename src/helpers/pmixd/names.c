/* SPDX-License-Identifier: BSD-3-Clause */
/* A value travels as libpmix packs it: another node's unpacks it. */
#include "helpers/pmixd/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "helpers/pmixd/info.h"

/* ---- directives ---- */

static pmix_status_t take_range(struct names_request *r, const pmix_info_t *info)
{
	switch (info->value.data.range) {
	case PMIX_RANGE_PROC_LOCAL:
		r->range = NAMES_OF_PROCESS;
		return PMIX_SUCCESS;
	case PMIX_RANGE_LOCAL:
		r->range = NAMES_OF_NODE;
		return PMIX_SUCCESS;
	case PMIX_RANGE_NAMESPACE:
		r->range = NAMES_OF_NAMESPACE;
		return PMIX_SUCCESS;
	case PMIX_RANGE_RM:
	case PMIX_RANGE_CUSTOM:
		return r->op == NAMES_PUBLISH ? PMIX_ERR_NOT_SUPPORTED : PMIX_SUCCESS;
	default:
		return PMIX_SUCCESS;
	}
}

static pmix_status_t take_persistence(struct names_request *r, const pmix_info_t *info)
{
	r->once = info->value.data.persist == PMIX_PERSIST_FIRST_READ;
	return PMIX_SUCCESS;
}

/* How many of the keys must be there; 0: all. */
static pmix_status_t take_wait(struct names_request *r, const pmix_info_t *info)
{
	int n = info->value.type == PMIX_INT ? info->value.data.integer : 0;

	r->wait = n > 0 && (uint32_t)n < r->count ? (uint32_t)n : r->count;
	return PMIX_SUCCESS;
}

static pmix_status_t take_timeout(struct names_request *r, const pmix_info_t *info)
{
	int n = info->value.type == PMIX_INT ? info->value.data.integer : 0;

	if (n > 0 && n < INT32_MAX / 1000)
		r->timeout_ms = (uint32_t)n * 1000;
	return PMIX_SUCCESS;
}

static pmix_status_t ignore(struct names_request *r, const pmix_info_t *info)
{
	return PMIX_SUCCESS;
}

static const struct {
	const char *key;
	pmix_status_t (*take)(struct names_request *r, const pmix_info_t *info);
} directives[] = {
	{ PMIX_RANGE, take_range },     { PMIX_PERSISTENCE, take_persistence },
	{ PMIX_WAIT, take_wait },       { PMIX_TIMEOUT, take_timeout },
	{ PMIX_USERID, ignore },        { PMIX_GRPID, ignore },
};

static pmix_status_t take_directive(struct names_request *r, const pmix_info_t *info)
{
	for (size_t i = 0; i < sizeof(directives) / sizeof(*directives); i++)
		if (info_is(info, directives[i].key))
			return directives[i].take(r, info);
	return info->flags & PMIX_INFO_REQD ? PMIX_ERR_NOT_SUPPORTED : PMIX_SUCCESS;
}

/* PMIx keeps such keys for itself. */
static bool is_directive(const pmix_info_t *info)
{
	return !strncmp(info->key, "pmix.", 5);
}

static pmix_status_t take_directives(struct names_request *r, const pmix_info_t info[],
				     size_t ninfo)
{
	pmix_status_t status = PMIX_SUCCESS;

	for (size_t i = 0; i < ninfo && !status; i++)
		if (is_directive(&info[i]))
			status = take_directive(r, &info[i]);
	return status;
}

/* ---- requests ---- */

static pmix_status_t pack(struct buf *b, const struct names_request *r)
{
	int rc = names_pack_request(b, r);

	if (rc == -ENOMEM)
		return PMIX_ERR_NOMEM;
	return rc ? PMIX_ERR_OUT_OF_RESOURCE : PMIX_SUCCESS;
}

/* The bytes are malloc'ed. */
static pmix_status_t pack_value(const struct library *l, const pmix_info_t *info,
				struct names_item *item)
{
	pmix_data_buffer_t packed = {};
	pmix_status_t status = l->Data_pack(NULL, &packed, (void *)&info->value, 1,
					    PMIX_VALUE);

	item->key = info->key;
	item->value = packed.base_ptr;
	item->len = packed.bytes_used;
	return status;
}

static pmix_status_t pack_values(const struct library *l, struct names_request *r,
				 const pmix_info_t info[], size_t ninfo)
{
	pmix_status_t status = PMIX_SUCCESS;

	for (size_t i = 0; i < ninfo && !status; i++)
		if (!is_directive(&info[i]))
			status = pack_value(l, &info[i], &r->items[r->count++]);
	return !status && !r->count ? PMIX_ERR_BAD_PARAM : status;
}

pmix_status_t names_publish(struct buf *request, const struct library *l,
			    const pmix_info_t info[], size_t ninfo)
{
	struct names_request r = {
		.op = NAMES_PUBLISH,
		.range = NAMES_OF_SESSION,
		.items = calloc(ninfo, sizeof(*r.items)),
	};
	pmix_status_t status = r.items ? take_directives(&r, info, ninfo) :
					 PMIX_ERR_NOMEM;

	buf_init(request, NAMES_BYTES_MAX);
	if (!status)
		status = pack_values(l, &r, info, ninfo);
	if (!status)
		status = pack(request, &r);
	for (uint32_t i = 0; i < r.count; i++)
		free((void *)r.items[i].value);
	free(r.items);
	return status;
}

static uint32_t count_keys(char **keys)
{
	uint32_t n = 0;

	while (keys && keys[n])
		n++;
	return n;
}

pmix_status_t names_ask(struct buf *request, enum names_op op, char **keys,
			const pmix_info_t info[], size_t ninfo)
{
	struct names_request r = {
		.op = op,
		.range = NAMES_OF_SESSION,
		.count = count_keys(keys),
	};
	pmix_status_t status = take_directives(&r, info, ninfo);

	buf_init(request, NAMES_BYTES_MAX);
	if (!r.count && op == NAMES_LOOKUP)
		return PMIX_ERR_BAD_PARAM;
	if (status)
		return status;
	r.items = calloc(r.count + 1, sizeof(*r.items));
	if (!r.items)
		return PMIX_ERR_NOMEM;
	for (uint32_t i = 0; i < r.count; i++)
		r.items[i].key = keys[i];
	status = pack(request, &r);
	free(r.items);
	return status;
}

/* ---- answers ---- */

static pmix_status_t unpack_value(const struct library *l, const struct names_item *item,
				  pmix_value_t *value)
{
	pmix_data_buffer_t packed = library_packed(item->value, item->len);
	int32_t count = 1;

	return l->Data_unpack(NULL, &packed, value, &count, PMIX_VALUE);
}

static pmix_status_t fill(const struct library *l, const struct names_item *item,
			  pmix_pdata_t *found)
{
	const char *nspace = item->from.nspace ? item->from.nspace : "";

	strncpy(found->key, item->key, PMIX_MAX_KEYLEN);
	strncpy(found->proc.nspace, nspace, PMIX_MAX_NSLEN);
	found->proc.rank = item->from.rank;
	return unpack_value(l, item, &found->value);
}

pmix_pdata_t *names_found(const struct library *l, const struct names_answer *a)
{
	pmix_pdata_t *found = calloc(a->count + 1, sizeof(*found));

	for (uint32_t i = 0; found && i < a->count; i++)
		if (fill(l, &a->items[i], &found[i])) {
			names_free_found(l, found, i);
			return NULL;
		}
	return found;
}

void names_free_found(const struct library *l, pmix_pdata_t *found, size_t count)
{
	for (size_t i = 0; i < count; i++)
		l->Value_destruct(&found[i].value);
	free(found);
}
