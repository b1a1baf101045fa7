/* SPDX-License-Identifier: BSD-3-Clause */
/* Another file in place of a journal's: durable.h. */
#include "dvm/core/durable_private.h"

#include <errno.h>

#define CHUNK ((size_t)1 << 20) /* bytes of a write */

/* A journal that is being written. */
struct copy {
	struct durable *d;
	int file;
	struct disk_stat stat;
	struct journal_chain chain;
	struct buf out;  /* records that follow at `size` */
	uint64_t size;
	int error;       /* the first; what follows does nothing */
};

static void copy_flush(struct copy *c)
{
	struct durable *d = c->d;

	if (!c->error)
		c->error = d->disk.write(d->disk_arg, c->file, c->out.data, c->out.len,
					 c->size);
	c->size += c->out.len;
	buf_clear(&c->out);
}

static void copy_put(struct copy *c, const struct journal_record *r)
{
	size_t begin = c->out.len;

	if (!c->error)
		c->error = journal_put(&c->out, r);
	if (c->error)
		return;
	journal_seal(&c->chain, c->out.data + begin, c->out.len - begin);
	if (c->out.len >= CHUNK)
		copy_flush(c);
}

static void copy_begin(struct copy *c, struct durable *d)
{
	int rc = d->disk.unlink(d->disk_arg, d->new_name);

	*c = (struct copy){ .d = d };
	buf_init(&c->out, KEPT_MAX);
	journal_chain_init(&c->chain);
	c->file = rc && rc != -ENOENT ? rc : d->disk.create(d->disk_arg, d->new_name);
	c->error = c->file < 0 ? c->file :
				 d->disk.stat(d->disk_arg, c->file, &c->stat);
	c->error = c->error ? c->error : journal_put_header(&c->out);
}

/* A journal in which something was found that its head has not written so. */
static void tell_damage(struct durable *d, const struct journal_reader *in)
{
	if (!in->damaged && !in->gaps && in->cut == in->len)
		return;
	(void)durable_keep(d);
	log_error(d->log, "the journal is damaged: %zu bytes at offset %zu, records are missing at %zu places, first before offset %zu, %zu bytes at its end; the file is kept as " JOURNAL_DAMAGED,
		  in->damaged, in->damaged_at, in->gaps, in->gap_at, in->len - in->cut);
}

/* Copies what the head knows of `old`; its own, if it has begun. */
static void copy_all(struct copy *c, const void *old, size_t len)
{
	struct durable *d = c->d;
	struct journal_record r;
	struct journal_reader in;
	uint32_t version;

	if (old && journal_open(&in, old, len, &version)) {
		c->error = c->error ? c->error : -EBADMSG;
	} else if (old) {
		while (journal_next(&in, &r))
			if (d->ops.knows(d->arg, &r))
				copy_put(c, &r);
		if (d->begun)
			tell_damage(d, &in);
	}
	r = (struct journal_record){ .type = JOURNAL_COUNTS };
	d->ops.forgotten(d->arg, &r.counts);
	copy_put(c, &r);
	copy_flush(c);
	if (!c->error)
		c->error = d->disk.sync(d->disk_arg, c->file);
}

/* A rename that is said to have failed may have been done, as by a file server. */
static int copy_rename(struct copy *c, uint64_t now_ms)
{
	struct durable *d = c->d;
	struct disk_stat st;
	int rc = durable_check_owner(d, now_ms);

	rc = rc ? rc : d->disk.rename(d->disk_arg, d->new_name, JOURNAL);
	if (rc && rc != -ESTALE && !d->disk.look(d->disk_arg, JOURNAL, &st) &&
	    st.id == c->stat.id)
		rc = 0;
	return rc;
}

/* The new file has the name, and records go to no other from now on. */
static void copy_take(struct copy *c)
{
	struct durable *d = c->d;

	if (d->file >= 0)
		d->disk.close(d->disk_arg, d->file);
	d->file = c->file;
	d->id = c->stat.id;
	d->size = c->size;
	d->chain = c->chain;
	d->rest = false;
	buf_clear(&d->kept);
	d->limit = 4 * d->size > DURABLE_LIMIT_MIN ? 4 * d->size : DURABLE_LIMIT_MIN;
}

static void copy_drop(struct copy *c)
{
	struct durable *d = c->d;

	if (c->file < 0)
		return;
	d->disk.close(d->disk_arg, c->file);
	(void)d->disk.unlink(d->disk_arg, d->new_name);
}

int durable_replace(struct durable *d, const void *old, size_t len, bool *taken,
		    uint64_t now_ms)
{
	struct copy c;
	int rc;

	copy_begin(&c, d);
	if (!c.error)
		copy_all(&c, old, len);
	rc = c.error ? c.error : copy_rename(&c, now_ms);
	buf_free(&c.out);
	*taken = !rc;
	if (rc) {
		copy_drop(&c);
		return rc;
	}
	copy_take(&c);
	return d->disk.sync(d->disk_arg, DISK_DIRECTORY);
}
