/* SPDX-License-Identifier: BSD-3-Clause */
/* The head's journal: headd_journal.h. */
#include "headd_journal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "headd.h"

#define FLUSH_MS 1000
#define LIMIT_MIN ((uint64_t)64 << 20)

/* ---- flushing ---- */

static void begin_flush(struct headd *h);

static void on_timer(uv_timer_t *timer)
{
	begin_flush(timer->data); /* and a turn follows */
}

static void flush_later(struct headd *h)
{
	uv_timer_t *timer = &h->journal.timer;

	if (!uv_is_active((uv_handle_t *)timer))
		uv_timer_start(timer, on_timer, FLUSH_MS, 0);
}

static void on_flushed(uv_fs_t *flush)
{
	struct headd *h = flush->data;
	struct headd_journal *j = &h->journal;
	int rc = (int)flush->result;

	uv_fs_req_cleanup(flush);
	j->flushes = false;
	if (rc < 0) {
		fprintf(stderr, "pmi2x-dvm-head: the journal cannot be flushed: %s\n",
			uv_strerror(rc));
		flush_later(h);
		return;
	}
	j->safe = j->flushing;
	clients_release(h, j->safe);
	if (j->wanted > j->safe)
		begin_flush(h);
}

static void begin_flush(struct headd *h)
{
	struct headd_journal *j = &h->journal;

	if (j->flushes || j->file.fd < 0 || j->safe == j->file.end)
		return;
	j->flushing = j->file.end;
	j->flush.data = h;
	j->flushes = !uv_fs_fdatasync(loop_uv(h->loop), &j->flush, j->file.fd,
				      on_flushed);
}

/* ---- writing ---- */

int headd_journal_record(struct headd *h, const void *data, size_t len,
			 uint32_t waits)
{
	struct headd_journal *j = &h->journal;
	int rc = journal_file_append(&j->file, data, len);

	if (!rc && waits && !h->options.journal.fast) {
		j->wanted = j->file.end;
		clients_hold(h, waits, j->wanted);
		begin_flush(h);
	} else {
		flush_later(h);
	}
	return rc;
}

static void put_forgotten(struct headd *h, struct journal_file_new *n)
{
	struct journal_record r = { .type = JOURNAL_COUNTS };
	struct buf b;

	buf_init(&b, 4096);
	dvm_head_forgotten(h->head, &r.counts);
	if (journal_put(&b, &r))
		n->error = -ENOMEM;
	journal_file_put(n, b.data, b.len);
	buf_free(&b);
}

static void put_header(struct journal_file_new *n)
{
	struct buf b;

	buf_init(&b, JOURNAL_HEADER_SIZE);
	if (journal_put_header(&b))
		n->error = -ENOMEM;
	journal_file_put(n, b.data, b.len);
	buf_free(&b);
}

/* Write what the head knows of `old`, in place of it. */
static int replace(struct headd *h, const void *old, size_t len)
{
	struct headd_journal *j = &h->journal;
	struct journal_file_new n;
	struct journal_reader in;
	struct journal_record r;
	uint32_t version;
	int rc;

	journal_file_new(&j->file, &n);
	put_header(&n);
	if (!journal_open(&in, old, len, &version))
		while (journal_next(&in, &r))
			if (dvm_head_knows(h->head, &r))
				journal_file_put(&n, in.data + in.begin,
						 in.at - in.begin);
	put_forgotten(h, &n);
	rc = journal_file_replace(&j->file, &n);
	if (rc)
		return rc;
	j->safe = j->wanted = j->file.end;
	j->limit = 4 * j->file.end > LIMIT_MIN ? 4 * j->file.end : LIMIT_MIN;
	clients_release(h, UINT64_MAX);
	return 0;
}

void headd_journal_turn(struct headd *h)
{
	struct headd_journal *j = &h->journal;
	size_t len;
	void *old;
	int rc;

	if (!j->limit || j->flushes || j->file.end < j->limit)
		return;
	rc = journal_file_map(&j->file, &old, &len);
	if (!rc) {
		rc = replace(h, old, len);
		journal_file_unmap(old, len);
	}
	if (rc) {
		fprintf(stderr, "pmi2x-dvm-head: the journal cannot be made smaller: %s\n",
			strerror(-rc));
		j->limit *= 2;
	}
}

/* ---- beginning ---- */

static int refuse(struct headd *h, const char *what)
{
	headd_say(h, "failed the journal in %s %s", h->options.journal.dir, what);
	return 1;
}

static int refuse_errno(struct headd *h, int rc)
{
	char what[256];

	if (rc == -EWOULDBLOCK)
		return refuse(h, "is in use: another DVM that is up writes it");
	if (rc == -EPERM)
		return refuse(h, "is not yours, or no file");
	snprintf(what, sizeof(what), "cannot be used: %s", strerror(-rc));
	return refuse(h, what);
}

/* Is it one with which this head can go on? */
static int check_present(struct headd *h)
{
	struct journal_reader in;
	char what[256];
	uint32_t version;
	size_t len;
	void *old;
	int rc = journal_file_map(&h->journal.file, &old, &len);

	if (rc)
		return refuse_errno(h, rc);
	rc = journal_open(&in, old, len, &version);
	journal_file_unmap(old, len);
	if (rc == -EBADMSG)
		return refuse(h, "is none: its begin is damaged, or something else has written the file");
	snprintf(what, sizeof(what), "has version %u, and this pmi2x-dvm reads %u: use the release that wrote it",
		 version, JOURNAL_VERSION);
	return rc ? refuse(h, what) : 0;
}

int headd_journal_open(struct headd *h)
{
	struct headd_journal *j = &h->journal;
	const struct headd_journal_options *o = &h->options.journal;
	int rc;

	uv_timer_init(loop_uv(h->loop), &j->timer);
	uv_timer_init(loop_uv(h->loop), &j->hope);
	j->timer.data = j->hope.data = h;
	j->file.fd = j->file.lock = -1;
	if (!o->dir)
		return 0;
	rc = journal_file_open(&j->file, o->dir);
	if (rc)
		return refuse_errno(h, rc);
	if (o->resume && j->file.fd < 0)
		return refuse(h, "is not there: nothing to go on with");
	if (!o->resume && j->file.fd >= 0)
		return refuse(h, "is there already: go on with it by --resume, or remove it");
	return o->resume ? check_present(h) : 0;
}

static void tell_damage(struct headd *h, const struct journal_reader *in)
{
	if (in->damaged) {
		(void)journal_file_keep(&h->journal.file);
		headd_say(h, "note journal: %zu bytes at offset %zu are damaged: what they said of tasks is lost; the file is kept as %s/journal.damaged",
			  in->damaged, in->damaged_at, h->options.journal.dir);
	}
	if (in->cut < in->len)
		headd_say(h, "note journal: cut off at offset %zu, behind the last whole record: %zu bytes",
			  in->cut, in->len - in->cut);
}

static void tell_resumed(struct headd *h, const struct dvm_resumed *r)
{
	headd_say(h, "note journal: %llu tasks have ended, %llu go on, %llu of them had been started and are run again, %llu are lost",
		  (unsigned long long)r->ended, (unsigned long long)r->queued,
		  (unsigned long long)r->again, (unsigned long long)r->lost);
	if (h->norphans)
		headd_say(h, "note %llu tasks are where they were started",
			  (unsigned long long)r->adopted);
}

static int resume(struct headd *h)
{
	struct journal_reader in;
	struct dvm_resumed found;
	uint32_t version;
	size_t len;
	void *old;
	int rc = journal_file_map(&h->journal.file, &old, &len);

	if (rc)
		return rc;
	rc = journal_open(&in, old, len, &version);
	rc = rc ? rc : dvm_head_resume(h->head, &in, h->options.journal.once,
				       &found, headd_now(h));
	if (!rc) {
		tell_damage(h, &in);
		tell_resumed(h, &found);
		rc = replace(h, old, len);
	}
	journal_file_unmap(old, len);
	return rc;
}

int headd_journal_begin(struct headd *h)
{
	int rc;

	if (!h->options.journal.dir)
		return 0;
	if (h->options.journal.resume) {
		rc = resume(h);
	} else {
		dvm_head_keep_journal(h->head);
		rc = replace(h, NULL, 0);
	}
	if (rc)
		headd_fail(h, "the journal in %s cannot be written: %s",
			   h->options.journal.dir, strerror(-rc));
	return rc ? 1 : 0;
}

void headd_journal_node_lost(struct headd *h)
{
	if (h->journal.limit && !h->leaving)
		uv_timer_start(&h->journal.hope, on_timer, HEAD_HOPE_MS, 0);
}

void headd_journal_close(struct headd *h)
{
	struct headd_journal *j = &h->journal;

	uv_timer_stop(&j->timer);
	uv_timer_stop(&j->hope);
	if (j->file.fd >= 0 && j->safe < j->file.end)
		(void)fdatasync(j->file.fd);
	clients_release(h, UINT64_MAX);
}
