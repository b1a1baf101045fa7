/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank spawns: the request to the head, and the origin that the new task gets. */
#pragma once

#include "dvm/core/dvm_msg.h"
#include "libpmi/spawn.h"
#include "libpmi/step.h"

/* Append the command that all ranks execute, as texts. 0, -ENOBUFS or -ENOMEM. */
int spawn_put_argv(struct buf *out, const struct spawn_request *r);
/*
 * Append dvm_spawn.about: the spawner, the number of ranks of each command, and the
 * contents of their KVS. 0, -ENOBUFS, -EMSGSIZE or -ENOMEM.
 */
int spawn_put_about(struct buf *out, const struct spawn_request *r, const char *jobid);

/* The unpacked form. */
struct spawn_origin {
	char *jobid;
	uint32_t *app_sizes; /* NULL: there is one command */
	uint32_t napps;
	void *preput;
	size_t preput_len;
};

/*
 * Unpack. 0, -EPROTO or -ENOMEM; after an error *o holds nothing. `ranks`: the number of
 * the task's ranks.
 */
int spawn_origin_read(struct spawn_origin *out, const struct dvm_bytes *about,
		      uint32_t ranks);
void spawn_origin_free(struct spawn_origin *o);
/* Note in the step that it was spawned; `o` outlives it. */
void spawn_origin_describe(const struct spawn_origin *o, struct pmi_step *step);
/* Log a line for each info key that is not honoured. */
void spawn_note_ignored(const struct spawn_request *r, const struct log_hook *log);
