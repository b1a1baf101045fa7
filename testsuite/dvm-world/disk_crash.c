/* SPDX-License-Identifier: BSD-3-Clause */
/* Losses of written data when a machine stops, and damage: disk.h. */
#include "disk_private.h"

#include "dvm/core/journal.h"

#include <stdlib.h>
#include <string.h>

/* ---- a machine that stops ---- */

static void lose_sectors(struct world *w, struct inode *f)
{
	bool torn = false;

	for (size_t i = 0; i < f->sectors; i++) {
		if (f->dirty[i] && draw_once_in(w, 2)) {
			torn = !torn && draw_once_in(w, 4);
			disk_write_sector(f, &f->now, i, torn ? (size_t)draw(w, SECTOR) : SECTOR);
		}
		f->dirty[i] = 0;
	}
	buf_clear(&f->now);
	if (buf_append(&f->now, f->durable.data, f->durable.len))
		abort();
}

/* The file system keeps changes of names in order, or it does not. */
static void lose_names(struct disk *d, unsigned machine)
{
	bool ordered = draw_once_in(d->w, 2), lost = false;

	for (size_t i = 0; i < d->npending;) {
		if (d->pending[i].machine != machine) {
			i++;
			continue;
		}
		lost = (lost && ordered) || draw_once_in(d->w, 3);
		if (!lost)
			disk_apply(&d->durable, &d->pending[i]);
		disk_drop_pending(d, i);
	}
	d->now = d->durable;
	for (size_t i = 0; i < d->npending; i++)
		disk_apply(&d->now, &d->pending[i]);
}

void disk_lose_machine(struct disk *d, unsigned machine)
{
	for (struct disk_user *u = d->users; u; u = u->next)
		if (u->machine == machine)
			u->syncing = NULL;
	for (struct inode *f = d->inodes; f; f = f->next)
		if (f->writer == machine)
			lose_sectors(d->w, f);
	lose_names(d, machine);
}

/* ---- damage ---- */

/* Some bytes are not what they were. */
static void damage_bytes(struct disk *d, struct inode *f)
{
	size_t at = (size_t)draw(d->w, f->durable.len);

	for (size_t i = 1 + (size_t)draw(d->w, 8); i > 0 && at < f->durable.len; i--)
		f->durable.data[at++] = (char)draw(d->w, 256);
	trace(d->w, "the disk has damaged bytes before %zu", at);
}

/* A sector is not what it was, or is that of another place. */
static void damage_sector(struct disk *d, struct inode *f)
{
	size_t len = f->durable.len;
	size_t at = (size_t)draw(d->w, len) / SECTOR * SECTOR;
	size_t from = (size_t)draw(d->w, len) / SECTOR * SECTOR;

	len = len - at < SECTOR ? len - at : SECTOR;
	for (size_t i = 0; i < len; i++)
		f->durable.data[at + i] = draw_once_in(d->w, 2) || from + i >= f->durable.len ?
			(char)draw(d->w, 256) : f->durable.data[from + i];
	trace(d->w, "the disk has damaged %zu bytes at %zu", len, at);
}

/* The bytes of a journal's records, one of them. False: there are too few. */
static bool pick_record(struct disk *d, const struct inode *f, struct journal_reader *in)
{
	struct journal_record r;
	uint32_t version;
	uint64_t skip = draw(d->w, 32);

	if (journal_open(in, f->durable.data, f->durable.len, &version))
		return false;
	while (journal_next(in, &r))
		if (!skip--)
			return true;
	return false;
}

/*
 * A record of the same place in an earlier journal is there again: one that is whole, and
 * follows another record than the one before it.
 */
static void bring_record_back(struct disk *d, struct inode *f)
{
	struct journal_chain chain = { .sum = (uint32_t)draw(d->w, UINT32_MAX) };
	struct journal_reader a, b;
	struct buf copy;

	if (!pick_record(d, f, &a) || !pick_record(d, f, &b) || a.at - a.begin != b.at - b.begin)
		return;
	buf_init(&copy, SIZE_MAX / 2);
	if (buf_append(&copy, b.data + b.begin, b.at - b.begin))
		abort();
	chain.at = a.begin;
	journal_seal(&chain, copy.data, copy.len);
	memcpy(f->durable.data + a.begin, copy.data, copy.len);
	trace(d->w, "the disk has brought %zu bytes at %zu back", copy.len, a.begin);
	buf_free(&copy);
}

/* A sync that is under way would write it anew. */
static bool can_be_damaged(const struct disk *d, const char *name, const struct inode *f)
{
	for (const struct disk_user *u = d->users; u; u = u->next)
		if (u->syncing == f)
			return false;
	return f && f->durable.len && f->now.len >= f->durable.len && f == disk_lookup(&d->now, name);
}

bool disk_damage(struct disk *d, const char *name)
{
	struct inode *f = disk_lookup(&d->durable, name);
	size_t len;
	bool damaged;
	char *was;

	if (!can_be_damaged(d, name, f))
		return false;
	len = f->durable.len;
	was = malloc(len);
	if (!was)
		abort();
	memcpy(was, f->durable.data, len);
	switch (draw(d->w, 3)) {
	case 0: damage_bytes(d, f); break;
	case 1: damage_sector(d, f); break;
	default: bring_record_back(d, f);
	}
	damaged = memcmp(was, f->durable.data, len);
	memcpy(f->now.data, f->durable.data, len);
	free(was);
	return damaged;
}
