/* SPDX-License-Identifier: BSD-3-Clause */
/* The head's journal: durable_journal.h. */
#include "dvm/head/durable_journal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dvm/head/head_main.h"
#include "libutil/plural.h"

/* ---- syncs ---- */

/*
 * In a thread of libuv's. Where there is nothing to write, fdatasync asks no file server,
 * and the loop must not wait for one that hangs: nodes are answered meanwhile.
 */
static void do_sync(uv_work_t *sync)
{
	struct head_journal *j = &((struct head_main *)sync->data)->journal;
	struct disk_stat st;
	int rc;

	do {
		rc = fdatasync(j->sync_file);
	} while (rc < 0 && errno == EINTR);
	j->sync_error = rc < 0 ? -errno : 0;
	(void)journal_dir_ops.look(&j->dir, "journal", &st);
}

static void on_synced(uv_work_t *sync, int status)
{
	struct head_main *h = sync->data;

	durable_synced(h->journal.durable, status ? status : h->journal.sync_error,
		       head_now(h).ms); /* a turn follows */
}

static int begin_sync(void *arg, int file)
{
	struct head_main *h = arg;

	h->journal.sync.data = h;
	h->journal.sync_file = file;
	return uv_queue_work(loop_uv(h->loop), &h->journal.sync, do_sync, on_synced);
}

/* ---- what becomes of it ---- */

static bool on_knows(void *arg, struct journal_record *r)
{
	return dvm_head_knows(((struct head_main *)arg)->head, r);
}

static void on_forgotten(void *arg, struct journal_counts *out)
{
	dvm_head_forgotten(((struct head_main *)arg)->head, out);
}

static void on_safe(void *arg, uint64_t position)
{
	struct head_main *h = arg;

	dvm_head_safe(h->head, position, head_now(h));
}

static void on_failed(void *arg, int error)
{
	dvm_head_journal_failed(((struct head_main *)arg)->head, error);
}

static void on_superseded(void *arg, const struct owner *by)
{
	struct head_main *h = arg;
	char name[256];

	h->journal.superseded = true;
	head_owner_name(by, name, sizeof(name));
	if (by->epoch)
		head_fail(h, "%s has taken over the journal in %s", name,
			   h->options.journal.dir);
	else
		head_fail(h, "somebody removed the file owner.NUMBER of this head in %s: the head no longer writes the journal",
			   h->options.journal.dir);
}

/* ---- turns ---- */

int head_journal_record(void *head, const void *data, size_t len,
			 enum durable_wait wait)
{
	struct head_main *h = head;

	return durable_append(h->journal.durable, data, len, wait, head_now(h).ms);
}

static void on_timer(uv_timer_t *timer)
{
	/* a turn follows */
}

void head_journal_turn(struct head_main *h)
{
	struct head_journal *j = &h->journal;
	uint64_t now = head_now(h).ms, deadline;

	if (!j->begun)
		return;
	durable_turn(j->durable, now);
	deadline = durable_deadline(j->durable);
	if (h->leaving || deadline == UINT64_MAX)
		uv_timer_stop(&j->timer);
	else
		uv_timer_start(&j->timer, on_timer, deadline > now ? deadline - now : 0, 0);
}

/* ---- beginning ---- */

static int refuse(struct head_main *h, const char *what)
{
	head_say(h, "failed the journal in %s %s", h->options.journal.dir, what);
	if (h->journal.durable)
		(void)durable_close(h->journal.durable, head_now(h).ms);
	return 1;
}

static int refuse_errno(struct head_main *h, int rc)
{
	char what[256];

	if (rc == -EPERM)
		return refuse(h, "is not your file");
	snprintf(what, sizeof(what), "cannot be used: %s", strerror(-rc));
	return refuse(h, what);
}

static int refuse_directory(struct head_main *h, int rc)
{
	if (rc == -EPERM)
		return refuse(h, "is not safe: its directory must be yours, and others must not write to it (chmod go-w)");
	return refuse_errno(h, rc);
}

static int refuse_second(struct head_main *h, const struct owner *other)
{
	char name[256], what[512];

	head_owner_name(other, name, sizeof(name));
	snprintf(what, sizeof(what), "is in use: %s writes or may write it; add --take-over if that head has ended, or is to lose the journal",
		 name);
	return refuse(h, what);
}

/* To be freed: all of the journal, or NULL, and it has been said why not. */
static void *read_present(struct head_main *h, struct journal_reader *in)
{
	char what[256];
	uint32_t version;
	size_t len;
	void *old;
	int rc = durable_read(h->journal.durable, &old, &len);

	if (rc) {
		refuse_errno(h, rc);
		return NULL;
	}
	rc = journal_open(in, old, len, &version);
	if (!rc)
		return old;
	free(old);
	snprintf(what, sizeof(what), "has version %u, and this pmi2x-dvm reads %u: use the release that wrote it",
		 version, JOURNAL_VERSION);
	refuse(h, rc == -EBADMSG ?
	       "cannot be read: its first bytes are not those of a journal" : what);
	return NULL;
}

/* Check that this head can go on with the journal. */
static int check_present(struct head_main *h)
{
	struct journal_reader in;
	void *old = read_present(h, &in);

	free(old);
	return old ? 0 : 1;
}

static int create(struct head_main *h)
{
	static const struct durable_ops ops = {
		.knows = on_knows, .forgotten = on_forgotten, .safe = on_safe,
		.failed = on_failed, .superseded = on_superseded,
	};
	struct head_journal *j = &h->journal;
	struct durable_options options = {
		.lives = head_owner_lives,
		.take_over = h->options.journal.take_over,
	};

	head_owner_self(&options.self);
	j->dir.begin_sync = begin_sync;
	j->dir.arg = h;
	return durable_create(&j->durable, &options, &journal_dir_ops, &j->dir, &ops, h,
			      &h->log);
}

int head_journal_open(struct head_main *h)
{
	struct head_journal *j = &h->journal;
	const struct head_journal_options *o = &h->options.journal;
	struct owner other;
	int rc;

	uv_timer_init(loop_uv(h->loop), &j->timer);
	j->timer.data = h;
	j->dir.fd = j->dir.lock = -1;
	if (!o->dir)
		return 0;
	rc = journal_dir_open(&j->dir, o->dir);
	if (rc)
		return refuse_directory(h, rc);
	rc = create(h);
	rc = rc ? rc : durable_open(j->durable, &other);
	if (rc == -EBUSY)
		return refuse_second(h, &other);
	if (rc)
		return refuse_errno(h, rc);
	if (o->resume && !durable_is_there(j->durable))
		return refuse(h, "does not exist: there is nothing to resume");
	if (!o->resume && durable_is_there(j->durable))
		return refuse(h, "exists already: continue with --resume, or remove the journal");
	return o->resume ? check_present(h) : 0;
}

static void tell_damage(struct head_main *h, const struct journal_reader *in)
{
	if (in->damaged || in->gaps)
		(void)durable_keep(h->journal.durable);
	if (in->damaged)
		head_say(h, "note journal: %zu bytes at offset %zu are damaged: the records in them are lost; the file is kept as %s/journal.damaged",
			  in->damaged, in->damaged_at, h->options.journal.dir);
	if (in->gaps)
		head_say(h, "note journal: records are missing before offset %zu, and at %zu places in all; the file is kept as %s/journal.damaged",
			  in->gap_at, in->gaps, h->options.journal.dir);
	if (in->cut < in->len)
		head_say(h, "note journal: cut off at offset %zu, after the last whole record: %zu bytes",
			  in->cut, in->len - in->cut);
}

static void tell_resumed(struct head_main *h, const struct dvm_resumed *r)
{
	head_say(h, "note journal: %llu task%s %s ended, %llu %s, %llu of these had been started and %s run again, %llu %s lost",
		  (unsigned long long)r->ended, plural(r->ended), has_or_have(r->ended),
		  (unsigned long long)r->queued, r->queued == 1 ? "continues" : "continue",
		  (unsigned long long)r->again, is_or_are(r->again),
		  (unsigned long long)r->lost, is_or_are(r->lost));
	if (h->norphans)
		head_say(h, "note %llu task%s still run%s on %s nodes",
			  (unsigned long long)r->adopted, plural(r->adopted),
			  r->adopted == 1 ? "s" : "", r->adopted == 1 ? "its" : "their");
}

static int resume(struct head_main *h)
{
	struct journal_reader in;
	struct dvm_resumed found;
	void *old = read_present(h, &in);
	int rc;

	if (!old)
		return -EIO;
	rc = dvm_head_resume(h->head, &in, h->options.journal.once, &found,
			     head_now(h));
	if (!rc) {
		tell_damage(h, &in);
		tell_resumed(h, &found);
		rc = durable_begin(h->journal.durable, old, in.len, head_now(h).ms);
	}
	free(old);
	return rc;
}

int head_journal_begin(struct head_main *h)
{
	struct head_journal *j = &h->journal;
	int rc;

	if (!j->durable)
		return 0;
	if (h->options.journal.resume) {
		rc = resume(h);
	} else {
		dvm_head_keep_journal(h->head);
		rc = durable_begin(j->durable, NULL, 0, head_now(h).ms);
	}
	j->begun = !rc;
	if (rc && !j->superseded)
		head_fail(h, "the journal in %s cannot be written: %s",
			   h->options.journal.dir, strerror(-rc));
	return rc ? 1 : 0;
}

/* ---- the end ---- */

uint64_t head_journal_epoch(const struct head_main *h)
{
	return h->journal.durable ? durable_epoch(h->journal.durable) : 0;
}

bool head_journal_is_ours(struct head_main *h)
{
	struct head_journal *j = &h->journal;

	return !j->durable || (!j->superseded && durable_is_owner(j->durable,
								  head_now(h).ms));
}

void head_journal_close(struct head_main *h)
{
	struct head_journal *j = &h->journal;
	int rc;

	uv_timer_stop(&j->timer);
	rc = j->durable ? durable_close(j->durable, head_now(h).ms) : 0;
	if (rc && !j->superseded)
		log_error(&h->log, "the journal in %s may miss its end: %s",
			  h->options.journal.dir, strerror(-rc));
}

void head_journal_free(struct head_main *h)
{
	durable_destroy(h->journal.durable);
	journal_dir_close(&h->journal.dir);
}
