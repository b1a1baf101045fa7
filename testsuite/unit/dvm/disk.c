/* SPDX-License-Identifier: BSD-3-Clause */
/* A disk in memory that fails: dvm-disk.h. */
#include "disk.h"

#include <errno.h>
#include <stdio.h>

#include "unit.h"

/* ---- names ---- */

static struct disk_name *find(struct disk_name *names, const char *name)
{
	for (int i = 0; i < DISK_NAMES; i++)
		if (names[i].file >= 0 && !strcmp(names[i].name, name))
			return &names[i];
	return NULL;
}

static void set_name(struct disk *d, const char *name, int file)
{
	struct disk_name *n = find(d->names, name);

	for (int i = 0; !n && i < DISK_NAMES; i++)
		if (d->names[i].file < 0)
			n = &d->names[i];
	if (!n) {
		fail_msg("the disk has no room for %s", name);
		return;
	}
	snprintf(n->name, sizeof(n->name), "%s", name);
	n->file = file;
	d->names_dirty = true;
}

bool disk_has(const struct disk *d, const char *name)
{
	return find(((struct disk *)(uintptr_t)d)->names, name);
}

int disk_safe_file(const struct disk *d, const char *name)
{
	const struct disk_name *n = find(((struct disk *)(uintptr_t)d)->safe_names, name);

	return n ? n->file : -1;
}

/* ---- failures ---- */

void disk_fail(struct disk *d, enum disk_op op, int error, int times)
{
	d->fails = op;
	d->also = DISK_NO_OP;
	d->error = error;
	d->times = times;
}

static int failure(struct disk *d, enum disk_op op)
{
	if ((d->fails != op && d->also != op) || !d->times)
		return 0;
	d->times -= d->times > 0;
	return d->error;
}

/* ---- operations ---- */

static int op_lock(void *arg)
{
	struct disk *d = arg;
	int rc = failure(d, DISK_LOCK);

	return rc ? rc : d->lock_error;
}

static bool is_used(const struct disk *d, int file)
{
	bool used = d->files[file]->opens;

	for (int i = 0; !used && i < DISK_NAMES; i++)
		used = d->names[i].file == file || d->safe_names[i].file == file;
	return used;
}

static int new_file(struct disk *d)
{
	int file = 0;

	while (file < d->nfiles && is_used(d, file))
		file++;
	assert_true(file < DISK_FILES);
	if (file == d->nfiles)
		d->files[d->nfiles++] = malloc(sizeof(*d->files[0]));
	memset(d->files[file], 0, sizeof(*d->files[0]));
	return file;
}

static int op_create(void *arg, const char *name)
{
	struct disk *d = arg;
	int rc = failure(d, DISK_CREATE), file;

	if (rc || find(d->names, name))
		return rc ? rc : -EEXIST;
	file = new_file(d);
	d->files[file]->opens = 1;
	set_name(d, name, file);
	return file;
}

static int op_open(void *arg, const char *name)
{
	struct disk *d = arg;
	int rc = failure(d, DISK_OPEN);
	struct disk_name *n = find(d->names, name);

	if (rc || !n)
		return rc ? rc : -ENOENT;
	d->files[n->file]->opens++;
	return n->file;
}

static void op_close(void *arg, int file)
{
	((struct disk *)arg)->files[file]->opens--;
}

static int64_t op_read(void *arg, int file, void *data, size_t len, uint64_t at)
{
	struct disk *d = arg;
	struct disk_file *f = d->files[file];
	int rc = failure(d, DISK_READ);

	if (rc)
		return rc;
	if (at >= f->len)
		return 0;
	if (len > f->len - at)
		len = f->len - at;
	memcpy(data, f->now + at, len);
	return (int64_t)len;
}

/* A write that fails has written half of its bytes. */
static int op_write(void *arg, int file, const void *data, size_t len, uint64_t at)
{
	struct disk *d = arg;
	struct disk_file *f = d->files[file];
	int rc = failure(d, DISK_WRITE);

	if (rc)
		len /= 2;
	assert_true(at + len <= DISK_FILE_MAX);
	memcpy(f->now + at, data, len);
	memset(f->dirty + at, true, len);
	if (at + len > f->len)
		f->len = at + len;
	return rc;
}

static int op_truncate(void *arg, int file, uint64_t len)
{
	struct disk *d = arg;
	struct disk_file *f = d->files[file];
	int rc = failure(d, DISK_TRUNCATE);

	if (rc)
		return rc;
	f->len = len;
	f->cut = true;
	return 0;
}

static int op_stat(void *arg, int file, struct disk_stat *out)
{
	struct disk *d = arg;

	*out = (struct disk_stat){ (uint64_t)file + 1, d->files[file]->len, true };
	return failure(d, DISK_STAT);
}

static int op_look(void *arg, const char *name, struct disk_stat *out)
{
	struct disk *d = arg;
	struct disk_name *n = find(d->names, name);
	int rc = failure(d, DISK_LOOK);

	if (rc || !n)
		return rc ? rc : -ENOENT;
	*out = (struct disk_stat){ (uint64_t)n->file + 1, d->files[n->file]->len, true };
	return 0;
}

static int op_rename(void *arg, const char *from, const char *to)
{
	struct disk *d = arg;
	struct disk_name *n;
	int rc;

	if (d->before_rename) {
		void (*fn)(void *) = d->before_rename;

		d->before_rename = NULL;
		fn(d->before_rename_arg);
	}
	n = find(d->names, from);
	rc = failure(d, DISK_RENAME);
	if (!n)
		return -ENOENT;
	if (rc && !d->done)
		return rc;
	set_name(d, to, n->file);
	n->file = -1;
	return rc;
}

static int op_link(void *arg, const char *from, const char *to)
{
	struct disk *d = arg;
	struct disk_name *n = find(d->names, from);
	int rc = failure(d, DISK_LINK);

	if (rc || !n)
		return rc ? rc : -ENOENT;
	set_name(d, to, n->file);
	return 0;
}

static int op_unlink(void *arg, const char *name)
{
	struct disk *d = arg;
	struct disk_name *n = find(d->names, name);
	int rc = failure(d, DISK_UNLINK);

	if (rc || !n)
		return rc ? rc : -ENOENT;
	n->file = -1;
	d->names_dirty = true;
	return 0;
}

static int op_list(void *arg, const char *prefix,
		   void (*each)(void *ctx, const char *name), void *ctx)
{
	struct disk *d = arg;
	int rc = failure(d, DISK_LIST);

	for (int i = 0; !rc && i < DISK_NAMES; i++)
		if (d->names[i].file >= 0 &&
		    !strncmp(d->names[i].name, prefix, strlen(prefix)))
			each(ctx, d->names[i].name);
	return rc;
}

static int sync_names(struct disk *d)
{
	int rc = failure(d, DISK_SYNC_DIR);

	if (!rc && d->names_dirty)
		memcpy(d->safe_names, d->names, sizeof(d->names));
	d->names_dirty = false;
	return rc;
}

static int op_sync(void *arg, int file)
{
	struct disk *d = arg;
	struct disk_file *f;
	int rc;

	if (file == DISK_DIRECTORY)
		return sync_names(d);
	f = d->files[file];
	rc = failure(d, DISK_SYNC);
	for (size_t i = 0; i < DISK_FILE_MAX; i++) {
		if (f->dirty[i] && !rc)
			f->safe[i] = f->now[i];
		if (f->dirty[i] && !rc && i >= f->safe_len)
			f->safe_len = i + 1;
		f->dirty[i] = false;
	}
	if (f->cut && !rc)
		f->safe_len = f->len;
	f->cut = false;
	return rc;
}

static int op_begin_sync(void *arg, int file)
{
	struct disk *d = arg;

	assert_int_equal(d->syncing, -1);
	d->syncing = file;
	return 0;
}

const struct disk_ops disk_ops = {
	.lock = op_lock, .create = op_create, .open = op_open, .close = op_close,
	.read = op_read, .write = op_write, .truncate = op_truncate, .stat = op_stat,
	.look = op_look, .rename = op_rename, .link = op_link, .unlink = op_unlink,
	.list = op_list, .sync = op_sync, .begin_sync = op_begin_sync,
};

/* ---- life ---- */

struct disk *disk_create(void)
{
	struct disk *d = calloc(1, sizeof(*d));

	for (int i = 0; i < DISK_NAMES; i++)
		d->names[i].file = d->safe_names[i].file = -1;
	d->syncing = -1;
	return d;
}

void disk_destroy(struct disk *d)
{
	for (int i = 0; i < d->nfiles; i++)
		free(d->files[i]);
	free(d);
}

int disk_finish_sync(struct disk *d)
{
	int file = d->syncing;

	assert_true(file >= 0);
	d->syncing = -1;
	return op_sync(d, file);
}

void disk_crash(struct disk *d)
{
	for (int i = 0; i < d->nfiles; i++) {
		struct disk_file *f = d->files[i];

		memcpy(f->now, f->safe, sizeof(f->now));
		memset(f->dirty, 0, sizeof(f->dirty));
		f->len = f->safe_len;
		f->opens = 0;
		f->cut = false;
	}
	memcpy(d->names, d->safe_names, sizeof(d->names));
	d->names_dirty = false;
	d->syncing = -1;
	d->fails = DISK_NO_OP;
}
