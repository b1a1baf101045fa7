/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner of a journal: the head that writes it. Each head makes a file owner.EPOCH in
 * the journal's directory before it reads anything there, with an epoch one higher than
 * that of all heads before. The name is made exclusively: of two heads that come at once,
 * one fails. Then it removes the files of earlier heads, and so an earlier head that still
 * lives finds that it is the owner no more, also where the file system has no locks. Calls
 * no system function: the disk is behind operations.
 */
#pragma once

#include "dvm/core/disk.h"

#define OWNER_TEXT_MAX 128

struct owner {
	uint64_t epoch;              /* from 1; set by owner_claim */
	char host[OWNER_TEXT_MAX];   /* for messages */
	char where[OWNER_TEXT_MAX];  /* the same text: processes of both see one another */
	uint64_t pid, born;          /* `born`: tells two processes of one pid apart */
	char cluster[OWNER_TEXT_MAX];/* Slurm's; empty: none */
	uint64_t job, restarts;      /* of Slurm; job 0: none */
	bool ended;                  /* writes the journal no more */
};

/*
 * True: the process of an owner with the same `where` lives. An operation, so that tests
 * can play it.
 */
typedef bool owner_lives_fn(void *arg, const struct owner *o);

/*
 * Become the owner. `self` without its epoch. `take_over`: also where the last owner may
 * live. The last owner is over if it has said so, if its process is gone, or if `self` is
 * the same job of Slurm, requeued.
 *
 * 0. -EBUSY: the last owner, which is in *other, lives or may live. Other negative errnos
 * are of the disk, with other->epoch 0.
 */
int owner_claim(struct owner *self, const struct disk_ops *ops, void *arg,
		owner_lives_fn *lives, void *lives_arg, bool take_over,
		struct owner *other);

/*
 * True: `self` is of the same job as `last`, which Slurm ended before it started the job
 * again.
 */
bool owner_is_requeued(const struct owner *self, const struct owner *last);

/* 0: self is still the owner; -ESTALE: there is a later one; or a negative errno. */
int owner_check(const struct owner *self, const struct disk_ops *ops, void *arg);

/* The last owner, of those that have left a file. -ENOENT: none. */
int owner_last(struct owner *out, const struct disk_ops *ops, void *arg);

/*
 * The owner writes the journal no more: the next head need not ask. 0 or a negative errno.
 */
int owner_end(struct owner *self, const struct disk_ops *ops, void *arg);
