/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of pmix_info_t, made without a function of libpmix, which this program does not
 * link. Texts are copied. A list that could not be extended is marked and refuses more.
 */
#pragma once

#include <pmix_common.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct info_list {
	pmix_info_t *items;
	size_t count, cap;
	bool failed; /* no memory, or too long a key */
};

static inline bool info_is(const pmix_info_t *info, const char *key)
{
	return !strncmp(info->key, key, PMIX_MAX_KEYLEN);
}

/* All zero is an empty list. A NULL text adds nothing. */
void info_add_string(struct info_list *l, const char *key, const char *text);
void info_add_u32(struct info_list *l, const char *key, uint32_t v);
void info_add_bool(struct info_list *l, const char *key, bool v);
void info_add_rank(struct info_list *l, const char *key, pmix_rank_t rank);
void info_add_proc(struct info_list *l, const char *key, const char *nspace,
		   pmix_rank_t rank);
void info_add_size(struct info_list *l, const char *key, size_t v);
/* An array of ranks 0 to count - 1, or of these. */
void info_add_ranks(struct info_list *l, const char *key, const char *nspace,
		    const uint32_t *ranks, uint32_t count);
/* `bytes`, malloc'ed, become the list's. */
void info_add_bytes(struct info_list *l, const char *key, char *bytes, size_t len);
/* As an array; `inner` is empty afterwards. */
void info_add_list(struct info_list *l, const char *key, struct info_list *inner);
/* Frees the texts and lists in it, too. */
void info_free(struct info_list *l);
