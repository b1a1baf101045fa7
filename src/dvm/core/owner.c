/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner of a journal: owner.h. */
#include "dvm/core/owner.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/decimal.h"

#define PREFIX "owner."
#define NAME_SIZE 32
#define FILE_MAX 1024 /* bytes of a file */
#define ENDED "ended\n"

static void file_name(uint64_t epoch, char out[NAME_SIZE])
{
	snprintf(out, NAME_SIZE, PREFIX "%" PRIu64, epoch);
}

/* ---- the file ---- */

static int format(const struct owner *o, char out[FILE_MAX])
{
	return snprintf(out, FILE_MAX,
			"host %s\nwhere %s\npid %" PRIu64 "\nborn %" PRIu64
			"\ncluster %s\njob %" PRIu64 "\nrestarts %" PRIu64 "\n",
			o->host, o->where, o->pid, o->born, o->cluster, o->job,
			o->restarts);
}

static void take_line(struct owner *o, const char *key, const char *value)
{
	if (!strcmp(key, "host"))
		snprintf(o->host, sizeof(o->host), "%s", value);
	else if (!strcmp(key, "where"))
		snprintf(o->where, sizeof(o->where), "%s", value);
	else if (!strcmp(key, "pid"))
		o->pid = strtoull(value, NULL, 10);
	else if (!strcmp(key, "born"))
		o->born = strtoull(value, NULL, 10);
	else if (!strcmp(key, "cluster"))
		snprintf(o->cluster, sizeof(o->cluster), "%s", value);
	else if (!strcmp(key, "job"))
		o->job = strtoull(value, NULL, 10);
	else if (!strcmp(key, "restarts"))
		o->restarts = strtoull(value, NULL, 10);
	else if (!strcmp(key, "ended"))
		o->ended = true;
}

/* A line that was cut off says nothing. */
static void parse(struct owner *o, char *text)
{
	char *end, *space;

	for (; (end = strchr(text, '\n')); text = end + 1) {
		*end = '\0';
		space = strchr(text, ' ');
		if (space)
			*space = '\0';
		take_line(o, text, space ? space + 1 : "");
	}
}

static int read_file(struct owner *o, const struct disk_ops *ops, void *arg)
{
	char name[NAME_SIZE], text[FILE_MAX + 1];
	int64_t len;
	int file;

	file_name(o->epoch, name);
	file = ops->open(arg, name);
	if (file < 0)
		return file;
	len = ops->read(arg, file, text, FILE_MAX, 0);
	ops->close(arg, file);
	if (len < 0)
		return (int)len;
	text[len] = '\0';
	parse(o, text);
	return 0;
}

static int write_file(const struct owner *o, const struct disk_ops *ops, void *arg)
{
	char name[NAME_SIZE], text[FILE_MAX];
	int len = format(o, text), file, rc;

	file_name(o->epoch, name);
	file = ops->create(arg, name);
	if (file < 0)
		return file;
	rc = ops->write(arg, file, text, (size_t)len, 0);
	rc = rc ? rc : ops->sync(arg, file);
	ops->close(arg, file);
	rc = rc ? rc : ops->sync(arg, DISK_DIRECTORY);
	if (rc)
		(void)ops->unlink(arg, name);
	return rc;
}

/* ---- all of them ---- */

struct scan {
	uint64_t last;
	const struct disk_ops *ops; /* NULL: only look for the last */
	void *arg;
	bool later; /* there is an owner after `last` */
};

static uint64_t epoch_of(const char *name)
{
	uint64_t epoch = 0;

	return decimal_u64(name + strlen(PREFIX), 1, UINT64_MAX - 1, &epoch) ? epoch : 0;
}

static void note_last(void *ctx, const char *name)
{
	struct scan *s = ctx;
	uint64_t epoch = epoch_of(name);

	if (epoch > s->last)
		s->last = epoch;
}

static void remove_earlier(void *ctx, const char *name)
{
	struct scan *s = ctx;
	uint64_t epoch = epoch_of(name);

	s->later |= epoch > s->last;
	if (epoch && epoch < s->last)
		(void)s->ops->unlink(s->arg, name);
}

int owner_last(struct owner *out, const struct disk_ops *ops, void *arg)
{
	struct scan s = { 0 };
	int rc = ops->list(arg, PREFIX, note_last, &s);

	*out = (struct owner){ .epoch = s.last };
	if (rc)
		out->epoch = 0;
	else if (!s.last)
		rc = -ENOENT;
	return rc ? rc : read_file(out, ops, arg);
}

/* ---- becoming it ---- */

bool owner_is_requeued(const struct owner *self, const struct owner *last)
{
	return self->job && self->job == last->job &&
	       !strcmp(self->cluster, last->cluster) && self->restarts > last->restarts;
}

/*
 * True: the owner is known to write no more. An owner whose file was cut off may still
 * write.
 */
static bool is_over(const struct owner *last, const struct owner *self,
		    owner_lives_fn *lives, void *arg)
{
	if (last->ended || owner_is_requeued(self, last))
		return true;
	return last->where[0] && !strcmp(last->where, self->where) && !lives(arg, last);
}

/*
 * The last owner must notice, so its file has to go. One that is later than `self` may have
 * come, and gone through all of this, since the last one was looked for.
 */
static int replace(const struct owner *self, uint64_t last, const struct disk_ops *ops,
		   void *arg)
{
	struct scan s = { .last = self->epoch, .ops = ops, .arg = arg };
	char name[NAME_SIZE];
	int rc;

	file_name(last, name);
	rc = last ? ops->unlink(arg, name) : 0;
	rc = rc == -ENOENT ? 0 : rc;
	rc = rc ? rc : ops->list(arg, PREFIX, remove_earlier, &s);
	rc = rc ? rc : s.later ? -EEXIST : 0;
	if (rc) {
		file_name(self->epoch, name);
		(void)ops->unlink(arg, name);
	}
	return rc ? rc : ops->sync(arg, DISK_DIRECTORY);
}

int owner_claim(struct owner *self, const struct disk_ops *ops, void *arg,
		owner_lives_fn *lives, void *lives_arg, bool take_over,
		struct owner *other)
{
	int rc = owner_last(other, ops, arg);

	if (rc && rc != -ENOENT) {
		other->epoch = 0;
		return rc;
	}
	if (!rc && !take_over && !is_over(other, self, lives, lives_arg))
		return -EBUSY;
	self->epoch = other->epoch + 1;
	rc = write_file(self, ops, arg);
	rc = rc ? rc : replace(self, other->epoch, ops, arg);
	if (rc == -EEXIST) /* another head has come at the same time */
		return owner_last(other, ops, arg) ? rc : -EBUSY;
	other->epoch = 0;
	return rc;
}

int owner_check(const struct owner *self, const struct disk_ops *ops, void *arg)
{
	char name[NAME_SIZE];
	struct disk_stat st;
	int rc;

	file_name(self->epoch, name);
	rc = ops->look(arg, name, &st);
	return rc == -ENOENT ? -ESTALE : rc;
}

int owner_end(struct owner *self, const struct disk_ops *ops, void *arg)
{
	char name[NAME_SIZE], text[FILE_MAX];
	int file, rc;

	file_name(self->epoch, name);
	file = ops->open(arg, name);
	if (file < 0)
		return file;
	rc = ops->write(arg, file, ENDED, strlen(ENDED), (uint64_t)format(self, text));
	ops->close(arg, file);
	return rc;
}
