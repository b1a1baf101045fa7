/* SPDX-License-Identifier: BSD-3-Clause */
/* A disk that fails: disk.h. */
#include "disk_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

/* ---- failures ---- */

static int weather_error(struct disk *d)
{
	switch (d->weather) {
	case WEATHER_EIO_ONCE:
		d->weather = WEATHER_FINE;
		return -EIO;
	case WEATHER_EIO: return -EIO;
	case WEATHER_ENOSPC: return -ENOSPC;
	case WEATHER_EDQUOT: return -EDQUOT;
	default: return 0;
	}
}

/* The error of an operation that changes something; 0: it does not fail. */
static int fails(struct disk_user *u, const char *what)
{
	struct disk *d = u->disk;
	int rc = draw_once_in(d->w, 2) ? weather_error(d) : 0;

	if (rc)
		trace(d->w, "disk: %s fails: %s", what, strerror(-rc));
	return rc;
}

static int descriptor_fails(struct disk_user *u, const char *name)
{
	if (u->disk->weather != WEATHER_EMFILE)
		return 0;
	trace(u->disk->w, "disk: %s cannot be opened: too many are", name);
	return -EMFILE;
}

/* ---- names ---- */

struct inode *disk_lookup(const struct names *n, const char *name)
{
	for (size_t i = 0; i < n->n; i++)
		if (!strcmp(n->all[i].name, name))
			return n->all[i].inode;
	return NULL;
}

static void set_name(struct names *n, const struct entry *e)
{
	size_t i = 0;

	while (i < n->n && strcmp(n->all[i].name, e->name))
		i++;
	if (e->inode) {
		if (i == NAMES_MAX)
			abort();
		n->all[i] = *e;
		n->n += i == n->n;
	} else if (i < n->n) {
		n->all[i] = n->all[--n->n];
	}
}

void disk_apply(struct names *n, const struct change *c)
{
	for (size_t i = 0; i < c->n; i++)
		set_name(n, &c->set[i]);
}

void disk_drop_pending(struct disk *d, size_t i)
{
	memmove(&d->pending[i], &d->pending[i + 1],
		(--d->npending - i) * sizeof(d->pending[0]));
}

static void change(struct disk_user *u, const struct change *c)
{
	struct disk *d = u->disk;

	disk_apply(&d->now, c);
	if (d->npending == PENDING_MAX) {
		disk_apply(&d->durable, &d->pending[0]);
		disk_drop_pending(d, 0);
	}
	d->pending[d->npending] = *c;
	d->pending[d->npending++].machine = u->machine;
}

static struct entry entry_of(const char *name, struct inode *inode)
{
	struct entry e = { .inode = inode };

	snprintf(e.name, sizeof(e.name), "%s", name);
	return e;
}

/* ---- sectors ---- */

static void mark(struct inode *f, uint64_t from, uint64_t to)
{
	size_t sectors = (size_t)((to + SECTOR - 1) / SECTOR);

	if (sectors > f->sectors) {
		f->dirty = must(realloc(f->dirty, sectors));
		memset(f->dirty + f->sectors, 0, sectors - f->sectors);
		f->sectors = sectors;
	}
	for (size_t i = (size_t)(from / SECTOR); i < sectors; i++)
		f->dirty[i] |= DIRTY;
}

static void resize(struct buf *b, size_t len)
{
	if (len > b->len) {
		if (buf_reserve(b, len - b->len))
			abort();
		memset(b->data + b->len, 0, len - b->len);
	}
	b->len = len;
}

void disk_write_sector(struct inode *f, const struct buf *from, size_t sector, size_t len)
{
	size_t at = sector * SECTOR;

	if (at >= from->len)
		return;
	len = len < from->len - at ? len : from->len - at;
	if (at + len > f->durable.len)
		resize(&f->durable, at + len);
	memcpy(f->durable.data + at, from->data + at, len);
}

static void write_sectors(struct inode *f, const struct buf *from, uint8_t which)
{
	for (size_t i = 0; i < f->sectors; i++)
		if (f->dirty[i] & which) {
			disk_write_sector(f, from, i, SECTOR);
			f->dirty[i] &= (uint8_t)~which;
		}
	if (f->durable.len > f->now.len)
		f->durable.len = f->now.len;
}

/* Linux takes pages for clean whose writing has failed. Some of them were written. */
static void forget_sectors(struct world *w, struct inode *f)
{
	for (size_t i = 0; i < f->sectors; i++) {
		if (f->dirty[i] && draw_once_in(w, 2))
			disk_write_sector(f, &f->now, i, SECTOR);
		f->dirty[i] = 0;
	}
}

/* ---- operations ---- */

static int on_lock(void *arg)
{
	struct disk_user *u = arg;
	struct disk *d = u->disk;

	if (d->locks == LOCK_NONE)
		return -ENOLCK;
	for (struct disk_user *o = d->users; o; o = o->next)
		if (o->locked && !o->ended && (d->locks == LOCK_WORKS || o->machine == u->machine))
			return -EWOULDBLOCK;
	u->locked = true;
	return 0;
}

static int add_file(struct disk_user *u, struct inode *f)
{
	for (int i = 0; i < FILES_MAX; i++)
		if (!u->files[i]) {
			u->files[i] = f;
			return i;
		}
	failed(u->disk->w, "a head has %d files open", FILES_MAX);
	return -EMFILE;
}

static int on_create(void *arg, const char *name)
{
	struct disk_user *u = arg;
	struct disk *d = u->disk;
	struct inode *f;
	int rc = descriptor_fails(u, name);

	rc = rc ? rc : fails(u, "create");
	if (rc)
		return rc;
	if (disk_lookup(&d->now, name))
		return -EEXIST;
	f = must(calloc(1, sizeof(*f)));
	f->id = ++d->next_id;
	buf_init(&f->now, SIZE_MAX / 2);
	buf_init(&f->durable, SIZE_MAX / 2);
	buf_init(&f->snapshot, SIZE_MAX / 2);
	f->next = d->inodes;
	d->inodes = f;
	change(u, &(struct change){ .set = { entry_of(name, f) }, .n = 1 });
	return add_file(u, f);
}

static int on_open(void *arg, const char *name)
{
	struct disk_user *u = arg;
	struct inode *f = disk_lookup(&u->disk->now, name);
	int rc = descriptor_fails(u, name);

	return rc ? rc : f ? add_file(u, f) : -ENOENT;
}

static void on_close(void *arg, int file)
{
	((struct disk_user *)arg)->files[file] = NULL;
}

static int64_t on_read(void *arg, int file, void *data, size_t len, uint64_t at)
{
	const struct inode *f = ((struct disk_user *)arg)->files[file];

	if (at >= f->now.len)
		return 0;
	len = len < f->now.len - at ? len : (size_t)(f->now.len - at);
	memcpy(data, f->now.data + at, len);
	return (int64_t)len;
}

static int on_write(void *arg, int file, const void *data, size_t len, uint64_t at)
{
	struct disk_user *u = arg;
	struct inode *f = u->files[file];
	int rc = fails(u, "write");

	if (rc)
		len = (size_t)draw(u->disk->w, len);
	if (!len)
		return rc;
	if (at + len > f->now.len)
		resize(&f->now, (size_t)(at + len));
	memcpy(f->now.data + at, data, len);
	mark(f, at, at + len);
	f->writer = u->machine;
	return rc;
}

static int on_truncate(void *arg, int file, uint64_t len)
{
	struct disk_user *u = arg;
	struct inode *f = u->files[file];
	int rc = fails(u, "truncate");

	if (rc)
		return rc;
	resize(&f->now, (size_t)len);
	mark(f, len, len + 1);
	f->writer = u->machine;
	return 0;
}

static void stat_of(const struct inode *f, struct disk_stat *out)
{
	*out = (struct disk_stat){ .id = f->id, .size = f->now.len, .own = true };
}

static int on_stat(void *arg, int file, struct disk_stat *out)
{
	stat_of(((struct disk_user *)arg)->files[file], out);
	return 0;
}

static int on_look(void *arg, const char *name, struct disk_stat *out)
{
	const struct inode *f = disk_lookup(&((struct disk_user *)arg)->disk->now, name);

	if (!f)
		return -ENOENT;
	stat_of(f, out);
	return 0;
}

static int on_rename(void *arg, const char *from, const char *to)
{
	struct disk_user *u = arg;
	struct inode *f = disk_lookup(&u->disk->now, from);
	int rc = fails(u, "rename");

	if (rc || !f)
		return rc ? rc : -ENOENT;
	change(u, &(struct change){ .set = { entry_of(to, f), entry_of(from, NULL) }, .n = 2 });
	return 0;
}

static int on_link(void *arg, const char *from, const char *to)
{
	struct disk_user *u = arg;
	struct inode *f = disk_lookup(&u->disk->now, from);
	int rc = fails(u, "link");

	if (rc || !f)
		return rc ? rc : -ENOENT;
	if (disk_lookup(&u->disk->now, to))
		return -EEXIST;
	change(u, &(struct change){ .set = { entry_of(to, f) }, .n = 1 });
	return 0;
}

static int on_unlink(void *arg, const char *name)
{
	struct disk_user *u = arg;

	if (!disk_lookup(&u->disk->now, name))
		return -ENOENT;
	change(u, &(struct change){ .set = { entry_of(name, NULL) }, .n = 1 });
	return 0;
}

static int on_list(void *arg, const char *prefix, void (*each)(void *ctx, const char *name),
		   void *ctx)
{
	const struct names names = ((struct disk_user *)arg)->disk->now;

	for (size_t i = 0; i < names.n; i++)
		if (!strncmp(names.all[i].name, prefix, strlen(prefix)))
			each(ctx, names.all[i].name);
	return 0;
}

static void sync_names(struct disk *d, bool lost)
{
	for (size_t i = 0; !lost && i < d->npending; i++)
		disk_apply(&d->durable, &d->pending[i]);
	d->npending = 0;
}

static int on_sync(void *arg, int file)
{
	struct disk_user *u = arg;
	struct disk *d = u->disk;
	int rc = file == DISK_DIRECTORY ? fails(u, "the directory's sync") : fails(u, "sync");

	if (file == DISK_DIRECTORY)
		sync_names(d, rc);
	else if (rc)
		forget_sectors(d->w, u->files[file]);
	else
		write_sectors(u->files[file], &u->files[file]->now, DIRTY | IN_SYNC);
	return rc;
}

static void on_sync_over(struct world *w, void *arg, uint64_t number)
{
	struct disk_user *u = arg;
	struct inode *f = u->syncing;
	int rc;

	if (!f)
		return; /* lost with its machine */
	u->syncing = NULL;
	rc = fails(u, "sync");
	if (rc)
		forget_sectors(w, f);
	else
		write_sectors(f, &f->snapshot, IN_SYNC);
	buf_clear(&f->snapshot);
	if (!u->ended)
		u->synced(u->arg, rc);
}

static int on_begin_sync(void *arg, int file)
{
	struct disk_user *u = arg;
	struct inode *f = u->files[file];

	if (u->syncing) {
		failed(u->disk->w, "two syncs at once");
		return -EBUSY;
	}
	u->syncing = f;
	buf_clear(&f->snapshot);
	if (buf_append(&f->snapshot, f->now.data, f->now.len))
		abort();
	for (size_t i = 0; i < f->sectors; i++)
		if (f->dirty[i])
			f->dirty[i] = IN_SYNC;
	after(u->disk->w, draw(u->disk->w, 40), on_sync_over, u, 0);
	return 0;
}

const struct disk_ops world_disk_ops = {
	.lock = on_lock, .create = on_create, .open = on_open, .close = on_close,
	.read = on_read, .write = on_write, .truncate = on_truncate, .stat = on_stat,
	.look = on_look, .rename = on_rename, .link = on_link, .unlink = on_unlink,
	.list = on_list, .sync = on_sync, .begin_sync = on_begin_sync,
};

void disk_set_weather(struct disk *d, enum weather weather)
{
	static const char *const names[WEATHERS] = {
		"is fine", "fails once", "fails", "is full", "is over its quota",
		"may be well, but the head has too many files open",
	};

	d->weather = weather;
	trace(d->w, "the disk %s", names[weather]);
}

/* ---- life ---- */

struct disk *disk_new(struct world *w)
{
	struct disk *d = must(calloc(1, sizeof(*d)));

	d->w = w;
	d->locks = (enum lock_kind)draw(w, LOCK_KINDS);
	return d;
}

struct disk_user *disk_user_new(struct disk *d, unsigned machine,
				void (*synced)(void *arg, int error), void *arg)
{
	struct disk_user *u = must(calloc(1, sizeof(*u)));

	*u = (struct disk_user){ .disk = d, .machine = machine, .synced = synced, .arg = arg,
				 .next = d->users };
	d->users = u;
	return u;
}

void disk_user_end(struct disk_user *u)
{
	u->ended = true;
	u->locked = false;
	memset(u->files, 0, sizeof(u->files));
}

void disk_free(struct disk *d)
{
	while (d->users) {
		struct disk_user *u = d->users;

		d->users = u->next;
		free(u);
	}
	while (d->inodes) {
		struct inode *f = d->inodes;

		d->inodes = f->next;
		buf_free(&f->now);
		buf_free(&f->durable);
		buf_free(&f->snapshot);
		free(f->dirty);
		free(f);
	}
	free(d);
}
