/* SPDX-License-Identifier: BSD-3-Clause */
/* A journal on a disk that may fail: durable.h. */
#include "dvm/core/durable_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

int durable_create(struct durable **out, const struct durable_options *options,
		   const struct disk_ops *disk, void *disk_arg,
		   const struct durable_ops *ops, void *arg, const struct log_hook *log)
{
	struct durable *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->options = *options;
	d->self = options->self;
	d->disk = *disk;
	d->disk_arg = disk_arg;
	d->ops = *ops;
	d->arg = arg;
	d->log = log;
	d->file = -1;
	d->due_ms = UINT64_MAX;
	buf_init(&d->kept, KEPT_MAX);
	*out = d;
	return 0;
}

void durable_destroy(struct durable *d)
{
	if (!d)
		return;
	if (d->file >= 0)
		d->disk.close(d->disk_arg, d->file);
	buf_free(&d->kept);
	free(d);
}

static int open_present(struct durable *d)
{
	struct disk_stat st;
	int rc;

	d->file = d->disk.open(d->disk_arg, JOURNAL);
	if (d->file < 0)
		return d->file == -ENOENT ? 0 : d->file;
	rc = d->disk.stat(d->disk_arg, d->file, &st);
	if (rc)
		return rc;
	if (!st.own)
		return -EPERM;
	d->id = st.id;
	d->size = st.size;
	return 0;
}

/* A process holds the lock: may this head pass it over? */
static int pass_lock(const struct durable *d, struct owner *other)
{
	(void)owner_last(other, &d->disk, d->disk_arg);
	return d->options.take_over || owner_is_requeued(&d->self, other) ? 0 : -EBUSY;
}

static void remove_file(void *ctx, const char *name)
{
	struct durable *d = ctx;

	(void)d->disk.unlink(d->disk_arg, name);
}

/*
 * Removes files that an earlier head has made for its next rename: that rename fails
 * then, also if that head has just looked whether it is the owner. A file that it makes
 * from now on is not renamed, for it looks after that.
 */
static int remove_new_files(struct durable *d)
{
	snprintf(d->new_name, sizeof(d->new_name), JOURNAL_NEW "%llu",
		 (unsigned long long)d->self.epoch);
	return d->disk.list(d->disk_arg, JOURNAL_NEW, remove_file, d);
}

int durable_open(struct durable *d, struct owner *other)
{
	int rc = d->disk.lock(d->disk_arg);

	*other = (struct owner){ 0 };
	if (rc == -EWOULDBLOCK)
		rc = pass_lock(d, other);
	else if (rc == -ENOLCK)
		rc = 0;
	rc = rc ? rc : owner_claim(&d->self, &d->disk, d->disk_arg, d->options.lives,
				   d->options.lives_arg, d->options.take_over, other);
	if (rc)
		return rc;
	d->owns = true;
	rc = remove_new_files(d);
	return rc ? rc : open_present(d);
}

bool durable_is_there(const struct durable *d)
{
	return d->file >= 0;
}

uint64_t durable_end(const struct durable *d)
{
	return d->end;
}

void durable_set_limit(struct durable *d, uint64_t bytes)
{
	d->limit = bytes;
}

/* ---- reading ---- */

/* The kept bytes are those that the file should have at its end. */
int durable_read(struct durable *d, void **data, size_t *len)
{
	char *all = malloc((size_t)d->size + 1);
	int64_t n;

	if (!all)
		return -ENOMEM;
	n = d->file < 0 ? -ENOENT :
			  d->disk.read(d->disk_arg, d->file, all, (size_t)d->size, 0);
	if (n >= 0 && (uint64_t)n < d->size - d->kept.len)
		n = -EIO;
	if (n < 0) {
		free(all);
		return (int)n;
	}
	if (d->kept.len)
		memcpy(all + d->size - d->kept.len, d->kept.data, d->kept.len);
	*data = all;
	*len = (size_t)d->size;
	return 0;
}

int durable_keep(struct durable *d)
{
	int rc = d->disk.unlink(d->disk_arg, JOURNAL_DAMAGED);

	return rc && rc != -ENOENT ? rc :
	       d->disk.link(d->disk_arg, JOURNAL, JOURNAL_DAMAGED);
}

/* ---- failures ---- */

static void fail(struct durable *d, int error, enum repair repair, uint64_t now_ms)
{
	if (repair > d->repair)
		d->repair = repair;
	d->retry_ms = now_ms + DURABLE_LATER_MS;
	d->due_ms = UINT64_MAX;
	if (error == d->error)
		return;
	d->error = error;
	d->ops.failed(d->arg, error);
}

static void supersede(struct durable *d)
{
	struct owner by;

	d->superseded = true;
	d->due_ms = UINT64_MAX;
	(void)owner_last(&by, &d->disk, d->disk_arg); /* its epoch, at least */
	if (by.epoch <= d->self.epoch)
		by = (struct owner){ 0 };
	d->ops.superseded(d->arg, &by);
}

int durable_check_owner(struct durable *d, uint64_t now_ms)
{
	int rc = d->superseded ? -ESTALE : owner_check(&d->self, &d->disk, d->disk_arg);

	d->look_ms = now_ms + DURABLE_LOOK_MS;
	if (rc == -ESTALE && !d->superseded)
		supersede(d);
	return rc;
}

uint64_t durable_epoch(const struct durable *d)
{
	return d->self.epoch;
}

bool durable_is_owner(struct durable *d, uint64_t now_ms)
{
	return durable_check_owner(d, now_ms) != -ESTALE;
}

/* 0: the name in the directory is still that of the file; else a negative errno. */
static int check_name(struct durable *d)
{
	struct disk_stat st;
	int rc = d->disk.look(d->disk_arg, JOURNAL, &st);

	return rc ? rc : st.id == d->id ? 0 : -ENOENT;
}

/* All before the position is on the disk: report it as safe, if this head is the owner. */
static void settle(struct durable *d, uint64_t position, uint64_t now_ms)
{
	int rc = durable_check_owner(d, now_ms), named = rc ? 0 : check_name(d);

	if (rc == -ESTALE)
		return;
	if (rc || named) {
		fail(d, rc ? rc : named, named == -ENOENT ? REPAIR_FILE : REPAIR_TAIL,
		     now_ms);
		return;
	}
	buf_consume(&d->kept, (size_t)(position - (d->end - d->kept.len)));
	d->safe = position;
	if (d->error) {
		d->error = 0;
		d->ops.failed(d->arg, 0);
	}
	d->ops.safe(d->arg, position);
}

int durable_begin(struct durable *d, const void *old, size_t len, uint64_t now_ms)
{
	bool taken;
	int rc = durable_replace(d, old, len, &taken, now_ms);

	d->begun = !rc;
	return rc;
}

static int replace_present(struct durable *d, bool *taken, uint64_t now_ms)
{
	void *old;
	size_t len;
	int rc = durable_read(d, &old, &len);

	*taken = false;
	if (rc)
		return rc;
	rc = durable_replace(d, old, len, taken, now_ms);
	free(old);
	return rc;
}

/* ---- writing ---- */

static void sync_by(struct durable *d, uint64_t ms)
{
	if (ms < d->due_ms)
		d->due_ms = ms;
}

static void want(struct durable *d, enum durable_wait wait, uint64_t now_ms)
{
	uint64_t soon = d->soon_ms + DURABLE_SOON_MS;

	d->soon = d->soon || wait == DURABLE_SOON;
	switch (wait) {
	case DURABLE_NOW: sync_by(d, now_ms); break;
	case DURABLE_SOON: sync_by(d, soon > now_ms ? soon : now_ms); break;
	default: sync_by(d, now_ms + DURABLE_LATER_MS);
	}
}

/* Nothing that a failed write has left may be taken for records. */
static int cut_rest(struct durable *d)
{
	int rc = d->rest ? d->disk.truncate(d->disk_arg, d->file, d->size) : 0;

	d->rest = rc;
	return rc;
}

static int write_last(struct durable *d, size_t len)
{
	return d->disk.write(d->disk_arg, d->file, d->kept.data + d->kept.len - len, len,
			     d->size);
}

int durable_append(struct durable *d, const void *data, size_t len,
		   enum durable_wait wait, uint64_t now_ms)
{
	struct journal_chain chain = d->chain;
	int rc = d->superseded || d->closed || !d->begun ? -ESTALE : cut_rest(d);

	if (!rc && !len) {
		want(d, wait, now_ms);
		return 0;
	}
	rc = rc ? rc : buf_append(&d->kept, data, len);
	if (rc) {
		sync_by(d, now_ms + DURABLE_LATER_MS);
		return rc;
	}
	journal_seal(&chain, d->kept.data + d->kept.len - len, len);
	rc = write_last(d, len);
	if (rc) {
		d->kept.len -= len;
		d->rest = true;
		(void)cut_rest(d);
		sync_by(d, now_ms + DURABLE_LATER_MS); /* a turn of the head follows */
		return rc;
	}
	d->chain = chain;
	d->size += len;
	d->end += len;
	want(d, wait, now_ms);
	return 0;
}

/* Sync also where all is safe: the owner is checked when the sync has ended. */
static void sync_all(struct durable *d, uint64_t now_ms)
{
	int rc;

	d->due_ms = UINT64_MAX;
	d->syncing = d->end;
	if (d->soon)
		d->soon_ms = now_ms;
	d->soon = false;
	rc = d->disk.begin_sync(d->disk_arg, d->file);
	if (rc)
		fail(d, rc, REPAIR_TAIL, now_ms);
	else
		d->syncs = true;
}

static void begin_sync(struct durable *d, uint64_t now_ms)
{
	d->due_ms = UINT64_MAX;
	if (d->safe < d->end || d->error)
		sync_all(d, now_ms);
}

void durable_synced(struct durable *d, int error, uint64_t now_ms)
{
	d->syncs = false;
	if (d->closed || d->superseded)
		return;
	if (error)
		fail(d, error, REPAIR_TAIL, now_ms);
	else
		settle(d, d->syncing, now_ms);
}

/* ---- in time ---- */

/* After a failed sync the bytes since the last good one may be there or not. */
static int write_kept(struct durable *d)
{
	int rc = cut_rest(d);

	return rc ? rc : d->disk.write(d->disk_arg, d->file, d->kept.data, d->kept.len,
				       d->size - d->kept.len);
}

static void repair_tail(struct durable *d, uint64_t now_ms)
{
	bool nameless = check_name(d) == -ENOENT;
	int rc = nameless ? -ENOENT : write_kept(d);

	if (rc) {
		fail(d, rc, nameless ? REPAIR_FILE : REPAIR_TAIL, now_ms);
		return;
	}
	d->repair = REPAIR_NONE;
	begin_sync(d, now_ms);
}

static void repair_file(struct durable *d, uint64_t now_ms)
{
	bool taken;
	int rc = replace_present(d, &taken, now_ms);

	if (d->superseded)
		return;
	if (rc) {
		fail(d, rc, REPAIR_FILE, now_ms);
		return;
	}
	d->repair = REPAIR_NONE;
	settle(d, d->end, now_ms);
}

static void make_smaller(struct durable *d, uint64_t now_ms)
{
	bool taken;
	int rc = replace_present(d, &taken, now_ms);

	if (d->superseded)
		return;
	if (rc && !taken) {
		log_error(d->log, "the journal cannot be compacted: %s", strerror(-rc));
		d->limit *= 2;
	} else if (rc) {
		fail(d, rc, REPAIR_FILE, now_ms);
	} else {
		settle(d, d->end, now_ms);
	}
}

static bool is_idle(const struct durable *d)
{
	return d->superseded || d->closed || !d->begun || d->syncs;
}

void durable_turn(struct durable *d, uint64_t now_ms)
{
	if (is_idle(d))
		return;
	if (d->repair) {
		if (now_ms < d->retry_ms ||
		    durable_check_owner(d, now_ms) == -ESTALE) /* its file may be gone */
			return;
		if (d->repair == REPAIR_TAIL)
			repair_tail(d, now_ms);
		else
			repair_file(d, now_ms);
		return;
	}
	if (d->size >= d->limit)
		make_smaller(d, now_ms);
	else if (now_ms >= d->due_ms)
		begin_sync(d, now_ms);
	else if (now_ms >= d->look_ms)
		sync_all(d, now_ms); /* one that is idle is to end, too */
}

uint64_t durable_deadline(const struct durable *d)
{
	if (is_idle(d))
		return UINT64_MAX;
	if (d->repair)
		return d->retry_ms;
	return d->due_ms < d->look_ms ? d->due_ms : d->look_ms;
}

/* ---- the end ---- */

static int sync_rest(struct durable *d, uint64_t now_ms)
{
	bool taken;
	int rc;

	if (d->repair == REPAIR_FILE)
		return replace_present(d, &taken, now_ms);
	rc = d->repair || d->syncs ? write_kept(d) : 0;
	return rc ? rc : d->disk.sync(d->disk_arg, d->file);
}

int durable_close(struct durable *d, uint64_t now_ms)
{
	int rc = 0;

	if (d->closed || !d->owns)
		return 0;
	if (d->superseded)
		return -ESTALE;
	if (d->begun && (d->safe < d->end || d->error))
		rc = sync_rest(d, now_ms);
	if (!rc && d->begun) {
		settle(d, d->end, now_ms);
		rc = d->error ? d->error : d->superseded ? -ESTALE : 0;
	}
	d->closed = true;
	if (!d->superseded)
		(void)owner_end(&d->self, &d->disk, d->disk_arg);
	return rc;
}
