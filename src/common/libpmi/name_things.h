/* SPDX-License-Identifier: BSD-3-Clause */
/* The things that PMIx clients have published: the table of name_store.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpmi/names.h"

struct key;

/* A value that is published. */
struct thing {
	struct thing *prev, *next;
	struct key *key;
	struct names_proc from; /* texts are its own */
	enum names_range range;
	bool once;
	size_t len;
	char value[];
};

/* All zeros, and the seed (clients choose the keys): nothing is published. */
struct name_things {
	uint64_t hash_seed;
	struct key *keys;
	size_t count, bytes;
};

/* All keys of the request or none. 0, -EEXIST, -ENOSPC or -ENOMEM. */
int name_things_publish(struct name_things *s, const struct names_proc *who,
			const struct names_request *r);
/* The asker's own things; no keys: all of them. 0; -ENOENT: some are not there. */
int name_things_unpublish(struct name_things *s, const struct names_proc *who,
			  const struct names_request *r);
/* The thing that the request would see of that key, or NULL. */
struct thing *name_things_find(const struct name_things *s, const struct names_proc *who,
			       enum names_range range, const char *key);
void name_things_remove(struct name_things *s, struct thing *t);
void name_things_free(struct name_things *s);

/* Two texts are there and equal. */
bool name_same(const char *a, const char *b);
/* Copies the texts; also after an error they are freed by name_proc_free. 0 or -ENOMEM. */
int name_proc_copy(struct names_proc *to, const struct names_proc *from);
void name_proc_free(struct names_proc *p);
