/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds what libpmix is told, as pmix_common.h lays it out. */
#include "helpers/pmixd/info.h"

#include <stdlib.h>
#include <string.h>

#include "libutil/array.h"

static pmix_value_t *add(struct info_list *l, const char *key,
			 pmix_data_type_t type)
{
	pmix_info_t *info;

	if (l->failed || strlen(key) > PMIX_MAX_KEYLEN ||
	    array_grow(&l->items, l->count, &l->cap, sizeof(*l->items))) {
		l->failed = true;
		return NULL;
	}
	info = memset(&l->items[l->count++], 0, sizeof(*info));
	strcpy(info->key, key);
	info->value.type = type;
	return &info->value;
}

void info_add_string(struct info_list *l, const char *key, const char *text)
{
	pmix_value_t *v = text ? add(l, key, PMIX_STRING) : NULL;

	if (!v)
		return;
	v->data.string = strdup(text);
	l->failed |= !v->data.string;
}

void info_add_u32(struct info_list *l, const char *key, uint32_t n)
{
	pmix_value_t *v = add(l, key, PMIX_UINT32);

	if (v)
		v->data.uint32 = n;
}

void info_add_bool(struct info_list *l, const char *key, bool flag)
{
	pmix_value_t *v = add(l, key, PMIX_BOOL);

	if (v)
		v->data.flag = flag;
}

void info_add_rank(struct info_list *l, const char *key, pmix_rank_t rank)
{
	pmix_value_t *v = add(l, key, PMIX_PROC_RANK);

	if (v)
		v->data.rank = rank;
}

void info_add_proc(struct info_list *l, const char *key, const char *nspace,
		   pmix_rank_t rank)
{
	pmix_value_t *v = add(l, key, PMIX_PROC);
	pmix_proc_t *proc = v ? calloc(1, sizeof(*proc)) : NULL;

	l->failed |= !proc;
	if (!proc)
		return;
	strncpy(proc->nspace, nspace, PMIX_MAX_NSLEN);
	proc->rank = rank;
	v->data.proc = proc;
}

void info_add_size(struct info_list *l, const char *key, size_t n)
{
	pmix_value_t *v = add(l, key, PMIX_SIZE);

	if (v)
		v->data.size = n;
}

static pmix_proc_t *name_ranks(const char *nspace, const uint32_t *ranks,
			       uint32_t count)
{
	pmix_proc_t *procs = calloc(count, sizeof(*procs));

	for (uint32_t i = 0; procs && i < count; i++) {
		strncpy(procs[i].nspace, nspace, PMIX_MAX_NSLEN);
		procs[i].rank = ranks ? ranks[i] : i;
	}
	return procs;
}

void info_add_ranks(struct info_list *l, const char *key, const char *nspace,
		    const uint32_t *ranks, uint32_t count)
{
	pmix_value_t *v = add(l, key, PMIX_DATA_ARRAY);
	pmix_data_array_t *array = v ? calloc(1, sizeof(*array)) : NULL;

	l->failed |= !array;
	if (!array)
		return;
	array->type = PMIX_PROC;
	array->array = name_ranks(nspace, ranks, count);
	array->size = array->array ? count : 0;
	l->failed |= !array->array;
	v->data.darray = array;
}

void info_add_bytes(struct info_list *l, const char *key, char *bytes, size_t len)
{
	pmix_value_t *v = add(l, key, PMIX_BYTE_OBJECT);

	if (v)
		v->data.bo = (pmix_byte_object_t){ .bytes = bytes, .size = len };
	else
		free(bytes);
}

void info_add_list(struct info_list *l, const char *key, struct info_list *inner)
{
	pmix_value_t *v = add(l, key, PMIX_DATA_ARRAY);
	pmix_data_array_t *array = v ? calloc(1, sizeof(*array)) : NULL;

	l->failed |= !array || inner->failed;
	if (!array) {
		info_free(inner);
		return;
	}
	*array = (pmix_data_array_t){
		.type = PMIX_INFO,
		.size = inner->count,
		.array = inner->items,
	};
	v->data.darray = array;
	memset(inner, 0, sizeof(*inner));
}

static void free_list(pmix_info_t *items, size_t count);

static void free_array(pmix_data_array_t *array)
{
	if (array && array->type == PMIX_INFO)
		free_list(array->array, array->size);
	else if (array)
		free(array->array);
	free(array);
}

static void free_list(pmix_info_t *items, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		pmix_value_t *v = &items[i].value;

		if (v->type == PMIX_DATA_ARRAY)
			free_array(v->data.darray);
		else if (v->type == PMIX_STRING)
			free(v->data.string);
		else if (v->type == PMIX_PROC)
			free(v->data.proc);
		else if (v->type == PMIX_BYTE_OBJECT)
			free(v->data.bo.bytes);
	}
	free(items);
}

void info_free(struct info_list *l)
{
	free_list(l->items, l->count);
	memset(l, 0, sizeof(*l));
}
