/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the parts of the server in client-server.h share: state, store,
 * answers.
 */
#pragma once

#include <pthread.h>

#include "server.h"
#include "libpmi/message.h"
#include "libshm/region.h"
#include "libshm/slots.h"

#define SEEN_MAX 512
#define HELD_MAX 32
#define PAIRS_MAX 4096

struct pair {
	char *key;
	char *value;
	size_t len;
};

struct fake {
	struct fake_options is;
	int fd;
	int client_fd;
	pthread_t thread;
	enum pmi_protocol protocol;
	bool agreed; /* on the extension */
	struct region_writer *region;
	struct slots *slots;
	int wake_fd;
	struct pair pairs[PAIRS_MAX];
	size_t npairs;
	int gathers;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	char seen[SEEN_MAX][32];
	int nseen;
	char *held[HELD_MAX]; /* thrid of each, in PMI-1 its tag; or an empty string */
	char held_cmd[HELD_MAX][40];
	int nheld;
	char group[64];
};

/* A request by name; the tables end with a NULL name. */
struct fake_command {
	const char *name;
	void (*handle)(struct fake *f, const struct pmi_message *m,
		       const char *thrid);
};

extern const struct fake_command fake_pmi1_commands[];
extern const struct fake_command fake_pmi2_commands[];

/* ---- store ---- */

void fake_put(struct fake *f, const char *key, const char *value, size_t len);
/* Store a pair of the message's fields. */
void fake_put_fields(struct fake *f, const struct pmi_message *m,
		     const char *key, const char *value);
/* The last pair with that key, or NULL. */
const struct pair *fake_find(struct fake *f, const char *key);
/* As above, also for the other ranks' keys. */
const struct pair *fake_find_for_any(struct fake *f, const char *key);
/* A field that must be there. */
const char *fake_str(const struct pmi_message *m, const char *key);

/* ---- answers ---- */

struct answer {
	struct buf bytes;
	struct pmi_writer w;
};

void fake_begin(struct fake *f, struct answer *a, const char *cmd,
		const char *thrid);
void fake_finish(struct fake *f, struct answer *a);
void fake_answer_rc(struct fake *f, const char *cmd, const char *thrid, int rc);
void fake_answer_found(struct fake *f, const char *cmd, const char *thrid,
		       const char *value, size_t len);
/* The pair's value; NULL: not found. */
void fake_answer_pair(struct fake *f, const char *cmd, const char *thrid,
		      const struct pair *p);
/* The group that a message names: note it for fake_group. */
void fake_note_group(struct fake *f, const char *group);
/* All have entered: answer, unless fences are held. */
void fake_fence_ended(struct fake *f, const char *cmd, const char *thrid);
