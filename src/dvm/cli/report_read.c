/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the journals of a report. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dvm/cli/die.h"
#include "dvm/cli/report.h"
#include "dvm/common/journal_file.h"
#include "libutil/decimal.h"

#define READINGS 10 /* while it grows */
#define WHY_MAX 512

/* ---- one journal ---- */

/* The reason why it cannot be read; false without one. */
static bool is_unreadable(const char *dir, int rc, uint32_t version, char why[WHY_MAX])
{
	if (rc == -EBADMSG)
		snprintf(why, WHY_MAX, "the journal in %s cannot be read: its first bytes are not those of a journal",
			 dir);
	else if (rc)
		snprintf(why, WHY_MAX, "the journal in %s has version %u, and this pmi2x-dvm reads %u: use the release that wrote it",
			 dir, version, JOURNAL_VERSION);
	return rc;
}

/* True: the last record is whole, or there is a reason in `why`. */
static bool read_once(struct report_journal *j, struct history *h, char why[WHY_MAX])
{
	uint32_t version = 0;
	size_t len;
	void *data;
	int rc = journal_file_read(j->dir, &data, &len);

	*why = '\0';
	if (rc == -ENOENT || rc == -ENOTDIR)
		snprintf(why, WHY_MAX, "there is no journal in %s: pmi2x-dvm up --journal DIR writes one",
			 j->dir);
	else if (rc)
		snprintf(why, WHY_MAX, "the journal in %s cannot be read: %s", j->dir,
			 strerror(-rc));
	if (rc)
		return true;
	if (is_unreadable(j->dir, journal_open(&j->in, data, len, &version), version, why)) {
		free(data);
		return true;
	}
	if (history_read(h, &j->in))
		die("out of memory");
	return j->in.cut == j->in.len;
}

static void forget(struct report_journal *j, struct history *h)
{
	history_free(h);
	free((void *)(uintptr_t)j->in.data);
}

/* A head may be in the middle of a record. False with the reason. */
static bool read_journal(struct report_journal *j, struct history *h, char why[WHY_MAX])
{
	size_t len = 0;

	for (int i = 0; !read_once(j, h, why) && i < READINGS && j->in.len != len; i++) {
		len = j->in.len;
		forget(j, h);
	}
	return !*why;
}

/* ---- several ---- */

/* The largest number among the names in a directory; 0: none. */
static uint32_t last_member(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	uint32_t last = 0, number;

	while (d && (e = readdir(d)))
		if (decimal_u32(e->d_name, 1, UINT16_MAX, &number) && number > last)
			last = number;
	if (d)
		closedir(d);
	return last;
}

static bool has_journal(const char *dir)
{
	size_t len;
	void *data;
	int rc = journal_file_read(dir, &data, &len);

	if (!rc)
		free(data);
	return rc != -ENOENT && rc != -ENOTDIR;
}

/* False: it is not read, and it has been said why. */
static bool add(struct report *r, uint32_t member, bool alone)
{
	struct report_journal *j = &r->journals[r->n];
	char why[WHY_MAX];

	j->member = member;
	if (asprintf(&j->dir, member ? "%s/%u" : "%s", r->dir, member) < 0)
		die("out of memory");
	if (read_journal(j, &r->histories[r->n], why)) {
		r->n++;
		return true;
	}
	if (alone)
		die("%s", why);
	fprintf(stderr, "pmi2x-dvm: %s\n", why);
	free(j->dir);
	r->unread++;
	return false;
}

void report_read(struct report *r, const char *dir)
{
	uint32_t last = has_journal(dir) ? 0 : last_member(dir);

	*r = (struct report){ .dir = dir };
	r->journals = calloc(last + 1, sizeof(*r->journals));
	r->histories = calloc(last + 1, sizeof(*r->histories));
	if (!r->journals || !r->histories)
		die("out of memory");
	if (!last)
		add(r, 0, true);
	for (uint32_t i = 1; i <= last; i++)
		add(r, i, false);
	if (!r->n)
		die("none of the %u journals in %s can be read", last, dir);
	if (history_count(r->histories, r->n, &r->figures))
		die("out of memory");
}

void report_free(struct report *r)
{
	for (size_t i = 0; i < r->n; i++) {
		forget(&r->journals[i], &r->histories[i]);
		free(r->journals[i].dir);
	}
	free(r->journals);
	free(r->histories);
}

/* ---- damage ---- */

static bool tell_damage(const struct report_journal *j)
{
	const struct journal_reader *in = &j->in;
	char which[32] = "";

	if (j->member)
		snprintf(which, sizeof(which), " %u", j->member);
	if (in->damaged)
		fprintf(stderr, "pmi2x-dvm: journal%s: %zu bytes at offset %zu are damaged: the records in them are lost\n",
			which, in->damaged, in->damaged_at);
	if (in->gaps)
		fprintf(stderr, "pmi2x-dvm: journal%s: records are missing before offset %zu, and at %zu places in all\n",
			which, in->gap_at, in->gaps);
	if (in->cut < in->len)
		fprintf(stderr, "pmi2x-dvm: journal%s: cut off at offset %zu, after the last whole record: %zu bytes\n",
			which, in->cut, in->len - in->cut);
	return in->damaged || in->gaps || in->cut < in->len;
}

int report_tell_damage(const struct report *r)
{
	bool damaged = r->unread;

	for (size_t i = 0; i < r->n; i++)
		damaged |= tell_damage(&r->journals[i]);
	return damaged ? 1 : 0;
}
