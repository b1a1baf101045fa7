/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A directory on a disk that several machines share (dvm/core/disk.h), and that fails.
 * Data that were not synced are lost with the machine that wrote them: any of their
 * sectors, and the last renames. After a sync that failed nothing is left to be synced,
 * as with Linux: the bytes can be read until the machine stops, and are lost then.
 */
#pragma once

#include "dvm/core/disk.h"
#include "world.h"

enum lock_kind {
	LOCK_WORKS,
	LOCK_LOCAL, /* among processes of one machine: Lustre with localflock */
	LOCK_NONE,  /* Lustre without flock */
	LOCK_KINDS,
};

/* How operations fail now. */
enum weather {
	WEATHER_FINE,
	WEATHER_EIO_ONCE,
	WEATHER_EIO,
	WEATHER_ENOSPC,
	WEATHER_EDQUOT,
	WEATHER_EMFILE,
	WEATHERS,
};

struct disk;
/* The files that one process has open. */
struct disk_user;

struct disk *disk_new(struct world *w);
void disk_free(struct disk *d);
/* The operations take a disk_user. */
extern const struct disk_ops world_disk_ops;
struct disk_user *disk_user_new(struct disk *d, unsigned machine,
				void (*synced)(void *arg, int error), void *arg);
/* The process ends: what it has written stays. */
void disk_user_end(struct disk_user *u);
/* The machine has stopped, and processes of it have ended. */
void disk_lose_machine(struct disk *d, unsigned machine);
void disk_set_weather(struct disk *d, enum weather weather);
/* Damage what was synced of the file of this name. False: there is nothing of it. */
bool disk_damage(struct disk *d, const char *name);
