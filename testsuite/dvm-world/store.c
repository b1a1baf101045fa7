/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal of a head's process: store.h. */
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct store {
	struct world *w;
	unsigned machine;
	struct durable *durable;
	struct disk_user *disk;
	struct dvm_head *head;
	struct store_ops ops;
	void *arg;
};

static struct dvm_time now_of(const struct store *s)
{
	return time_of(s->w, s->machine);
}

/* ---- operations of libdvm's journal ---- */

static bool on_knows(void *arg, struct journal_record *r)
{
	return dvm_head_knows(((struct store *)arg)->head, r);
}

static void on_forgotten(void *arg, struct journal_counts *out)
{
	dvm_head_forgotten(((struct store *)arg)->head, out);
}

static void on_safe(void *arg, uint64_t position)
{
	struct store *s = arg;

	dvm_head_safe(s->head, position, now_of(s));
	s->ops.changed(s->arg);
}

static void on_failed(void *arg, int error)
{
	struct store *s = arg;

	trace(s->w, "the journal %s", error ? strerror(-error) : "can be written again");
	dvm_head_journal_failed(s->head, error);
	s->ops.changed(s->arg);
}

static void on_superseded(void *arg, const struct owner *by)
{
	struct store *s = arg;

	trace(s->w, "another head has the journal, of epoch %llu", (unsigned long long)by->epoch);
	s->ops.superseded(s->arg);
}

static const struct durable_ops durable_ops = {
	.knows = on_knows, .forgotten = on_forgotten, .safe = on_safe, .failed = on_failed,
	.superseded = on_superseded,
};

static void on_synced(void *arg, int error)
{
	struct store *s = arg;

	durable_synced(s->durable, error, now_of(s).ms);
	s->ops.changed(s->arg);
}

/* The head of a number lives, if the world says so. */
static bool on_lives(void *arg, const struct owner *o)
{
	struct store *s = arg;

	return o->pid && o->pid <= s->w->nheads && head_lives(s->w->heads[o->pid - 1]);
}

/* ---- life ---- */

int store_open(struct store **out, struct world *w, unsigned machine, uint32_t number,
	       bool take_over, const struct store_ops *ops, void *arg)
{
	struct store *s = calloc(1, sizeof(*s));
	struct durable_options options = {
		.self = { .pid = number + 1, .born = number + 1 },
		.lives = on_lives, .lives_arg = s, .take_over = take_over,
	};
	struct owner other;
	int rc;

	if (!s)
		abort();
	*out = s;
	s->w = w;
	s->machine = machine;
	s->ops = *ops;
	s->arg = arg;
	s->disk = disk_user_new(w->disk, machine, on_synced, s);
	snprintf(options.self.host, sizeof(options.self.host), "m%u", machine);
	snprintf(options.self.where, sizeof(options.self.where), "m%u", machine);
	if (durable_create(&s->durable, &options, &world_disk_ops, s->disk, &durable_ops, s, NULL))
		abort();
	rc = durable_open(s->durable, &other);
	if (rc)
		trace(w, "head %u cannot have the journal: %s", number, strerror(-rc));
	return rc;
}

static void note_damage(struct store *s, const struct journal_reader *in)
{
	if (!in->damaged && !in->gaps && in->cut == in->len)
		return;
	s->w->damage_named = true;
	trace(s->w, "the journal is damaged: %zu bytes, %zu gaps, %zu bytes at its end",
	      in->damaged, in->gaps, in->len - in->cut);
}

static int resume(struct store *s, const void *old, size_t len, struct dvm_resumed *found)
{
	struct journal_reader in;
	uint32_t version;
	int rc = journal_open(&in, old, len, &version);

	if (rc) {
		s->w->damage_named = true;
		return rc;
	}
	rc = dvm_head_resume(s->head, &in, s->w->plan.once, found, now_of(s));
	note_damage(s, &in);
	return rc ? rc : durable_begin(s->durable, old, len, now_of(s).ms);
}

static int begin(struct store *s, struct dvm_head *head, struct dvm_resumed *found)
{
	size_t len;
	void *old;
	int rc;

	if (!durable_is_there(s->durable)) {
		dvm_head_keep_journal(head);
		return durable_begin(s->durable, NULL, 0, now_of(s).ms);
	}
	rc = durable_read(s->durable, &old, &len);
	if (rc)
		return rc;
	rc = resume(s, old, len, found);
	free(old);
	return rc;
}

int store_begin(struct store *s, struct dvm_head *head, struct dvm_resumed *found)
{
	int rc;

	s->head = head;
	*found = (struct dvm_resumed){ 0 };
	rc = begin(s, head, found);
	durable_set_limit(s->durable, draw_between(s->w, 1000, 20000));
	return rc;
}

int store_record(struct store *s, const void *data, size_t len, enum durable_wait wait)
{
	return durable_append(s->durable, data, len, wait, now_of(s).ms);
}

void store_turn(struct store *s)
{
	durable_turn(s->durable, now_of(s).ms);
}

uint64_t store_deadline(const struct store *s)
{
	return durable_deadline(s->durable);
}

void store_close(struct store *s)
{
	(void)durable_close(s->durable, now_of(s).ms);
}

void store_free(struct store *s)
{
	if (!s)
		return;
	durable_destroy(s->durable);
	disk_user_end(s->disk);
	free(s);
}
