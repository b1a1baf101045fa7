/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal of a head's process: libdvm's, on the world's disk. */
#pragma once

#include "disk.h"
#include "dvm/core/durable.h"

struct store;

struct store_ops {
	/* Something is safe, or a sync has ended: a turn of the head is due. */
	void (*changed)(void *arg);
	/* Another head has the journal. */
	void (*superseded)(void *arg);
};

/* 0; -EBUSY: another head has it; or what the disk says. Free it in any case. */
int store_open(struct store **out, struct world *w, unsigned machine, uint32_t number,
	       bool take_over, const struct store_ops *ops, void *arg);
/* Go on with what is there. 0 or a negative errno. */
int store_begin(struct store *s, struct dvm_head *head, struct dvm_resumed *found);
int store_record(struct store *s, const void *data, size_t len, enum durable_wait wait);
void store_turn(struct store *s);
/* The deadline, by the machine's clock. */
uint64_t store_deadline(const struct store *s);
/* The head leaves in order. */
void store_close(struct store *s);
/* The process has ended. */
void store_free(struct store *s);
