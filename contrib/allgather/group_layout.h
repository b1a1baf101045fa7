/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file that the ranks of a node share: this page, a slot of
 * PMI2X_RING_BLOCK_MAX bytes for every member, the result. It is sparse: only
 * what is written takes memory.
 */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "group.h"

#define GROUP_MAGIC UINT64_C(0x31676178326d6970)

enum group_failure { GROUP_WELL, GROUP_FAILING, GROUP_HAS_FAILED };

struct group_member {
	_Atomic uint32_t attached;
	_Atomic uint32_t posted; /* generation */
	_Atomic uint64_t len;    /* of the block in its slot */
};

struct group_page {
	uint64_t magic;
	uint32_t members;

	_Atomic uint32_t round;   /* of joining; futex of the members */
	char value[GROUP_VALUE_MAX];
	_Atomic uint32_t joined;  /* members, of all rounds; the leader's futex */
	_Atomic uint32_t left_edges, right_edges;
	char left[GROUP_VALUE_MAX], right[GROUP_VALUE_MAX];

	_Atomic uint32_t entered;  /* posts of all generations; leader's futex */
	_Atomic uint32_t finished; /* generations; the members' futex */
	_Atomic uint64_t result_len;

	_Atomic uint32_t failure;
	char error[PMI2X_RING_ERROR_MAX];

	struct group_member member[];
};

struct group {
	int fd;
	uint32_t members, index;
	uint32_t generation;     /* of the last post of this process */
	struct group_page *page;
	size_t page_size;
	char *result;            /* mapped */
	size_t mapped;
};

size_t group_page_size(uint32_t members);
off_t group_slot_at(const struct group *g, uint32_t member);
off_t group_result_at(const struct group *g);

/* Sleep while *word is `value`, GROUP_LOOK_MS at most. */
void group_sleep(_Atomic uint32_t *word, uint32_t value);
void group_wake(_Atomic uint32_t *word);
