/* SPDX-License-Identifier: BSD-3-Clause */
/* All processes of a job agree on how they form a ring: see join.h. */
#include "join.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../libpmi2x/clique.h"
#include "../libpmi2x/print_error.h"
#include "clock.h"
#include "pmi2.h"
#include "pmi_library.h"
#include "settings.h"

#define KEY_MAX 64
#define BLAMED_MAX 16 /* a rank in decimal, and a mark */
#define LATE '?'      /* ... of a reason; any other has ':' */
#define SHM "shm" /* a lack of shared memory, beside lacks of transports */
#define SETTINGS "settings" /* a lack of valid settings */
#define NOT_ALLOWED "not among the transports that are allowed; see " \
		    "PMI2X_ALLGATHER_TRANSPORT"

int join_fail(struct join *j, int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(j->why, PMI2X_RING_ERROR_MAX, fmt, args);
	va_end(args);
	return code;
}

/* ---- who shares a node ---- */

/* Every rank an element of its own. */
static void ungroup(struct join *j)
{
	struct pmi2x_ring *r = j->ring;

	group_close(r->group);
	r->group = NULL;
	j->grouped = false;
	r->elements = r->size;
	r->members = 1;
	r->index = 0;
	r->ranks[0] = r->rank;
}

static int find_members(struct join *j)
{
	struct pmi2x_ring *r = j->ring;
	int count = clique_find(j->mapping, r->rank, r->size, r->ranks,
				r->size);

	j->nodes = clique_nodes(j->mapping, r->size);
	if (count < 1 || j->nodes < 1)
		return -EPROTO;
	r->members = count;
	r->elements = j->nodes;
	r->index = 0;
	while (r->ranks[r->index] != r->rank)
		r->index++;
	return 0;
}

/* All ranks see the same mapping, so they come to the same conclusion. */
static int find_node(struct join *j)
{
	struct pmi2x_ring *r = j->ring;
	int found = 0;

	r->ranks = calloc(r->size, sizeof(*r->ranks));
	if (!r->ranks)
		return join_fail(j, PMI2_ERR_NOMEM, "no memory");
	if (r->pmi.get_job_attr("PMI_process_mapping", j->mapping,
				sizeof(j->mapping), &found))
		found = 0;
	j->grouped = found && find_members(j) == 0 &&
		     j->nodes < r->size;
	if (!j->grouped)
		ungroup(j);
	return PMI2_SUCCESS;
}

/* ---- what is lacking ---- */

static void lack_key(const struct join *j, char *key, const char *what)
{
	snprintf(key, KEY_MAX, "%s-%u-no-%s", j->ring->use.keys,
		 j->ring->use.sequence, what);
}

static void lack(struct join *j, const char *what, const char *reason)
{
	char key[KEY_MAX], value[PMI2X_RING_ERROR_MAX];

	lack_key(j, key, what);
	snprintf(value, sizeof(value), "rank %d on node %s: %s", j->ring->rank,
		 j->ring->node, reason);
	/* When even this fails, the fence will. */
	j->ring->pmi.put(key, value);
}

static bool lacking(struct join *j, const char *what, char *reason)
{
	char key[KEY_MAX];

	lack_key(j, key, what);
	return pmi_lookup(&j->ring->pmi, key, reason, PMI2X_RING_ERROR_MAX);
}

/* Within one node none is opened: it is used only when memory cannot be shared. */
static void check_transport(struct join *j, int index)
{
	const char *name = transport_names[index];
	char why[TRANSPORT_REASON_MAX] = "";
	int rc;

	if (!join_allows(j, name)) {
		lack(j, name, NOT_ALLOWED);
	} else if (j->nodes != 1) {
		rc = join_open(j, index, why);
		if (rc)
			lack(j, rc == -EINVAL ? SETTINGS : name, why);
	}
}

static void give_group(struct join *j)
{
	struct pmi2x_ring *r = j->ring;
	char token[GROUP_TOKEN_MAX], name[KEY_MAX], why[TRANSPORT_REASON_MAX];

	if (setting_on("PMI2X_ALLGATHER_NOSHM")) {
		lack(j, SHM, "PMI2X_ALLGATHER_NOSHM is set");
		return;
	}
	if (group_create(&r->group, r->members, why, sizeof(why))) {
		lack(j, SHM, why);
		return;
	}
	group_token(r->group, token);
	snprintf(name, sizeof(name), "%s-%u", r->use.keys, r->use.sequence);
	if (r->pmi.put_node_attr(name, token))
		lack(j, SHM, "the PMI server takes no node attributes");
}

/* Step 1 of join.h. */
static int say_what_is_here(struct join *j)
{
	char why[TRANSPORT_REASON_MAX];
	int code;

	if (j->ring->index > 0 && group_check(why, sizeof(why)))
		lack(j, SHM, why);
	if (j->wrong[0]) {
		lack(j, SETTINGS, j->wrong);
	} else if (j->ring->index == 0) {
		for (int i = 0; transport_names[i]; i++)
			check_transport(j, i);
		if (j->grouped)
			give_group(j);
		if (!join_allows(j, JOIN_PMI))
			lack(j, JOIN_PMI, NOT_ALLOWED);
	}
	code = join_meet(j);
	if (!code && lacking(j, SETTINGS, j->why))
		code = PMI2_ERR_INVALID_ARG;
	return code;
}

/* ---- rounds ---- */

static void attach(struct join *j)
{
	struct pmi2x_ring *r = j->ring;
	char token[PMI2_MAX_ATTRVALUE], name[KEY_MAX];
	char why[TRANSPORT_REASON_MAX] = "the leader of the node has not put it";
	int found = 0;

	if (!j->grouped || r->index == 0 || r->group)
		return;
	snprintf(name, sizeof(name), "%s-%u", r->use.keys, r->use.sequence);
	if (r->pmi.get_node_attr(name, token, sizeof(token), &found, 0))
		found = 0;
	if (!found || group_attach(&r->group, token, r->members, r->index, why,
				   sizeof(why)))
		join_bad(j, true, "%s", why);
}

static void bad_key(const struct join *j, char *key, bool group)
{
	snprintf(key, KEY_MAX, "%s-%u-bad-%s-%u", j->ring->use.keys,
		 j->ring->use.sequence, group ? "shm" : "link", j->round);
}

/* Why the element that `rank` leads has no links. */
static void links_key(const struct join *j, char *key, int rank)
{
	snprintf(key, KEY_MAX, "%s-%u-bad-link-%u-%d", j->ring->use.keys,
		 j->ring->use.sequence, j->round, rank);
}

static void put_bad(struct join *j)
{
	char key[KEY_MAX], text[PMI2X_RING_ERROR_MAX + BLAMED_MAX];

	bad_key(j, key, j->bad_group);
	if (j->bad_group) {
		j->ring->pmi.put(key, j->bad);
		return;
	}
	snprintf(text, sizeof(text), "%d", j->ring->rank);
	j->ring->pmi.put(key, text);
	links_key(j, key, j->ring->rank);
	snprintf(text, sizeof(text), "%d%c%s", j->blamed, j->late ? LATE : ':',
		 j->bad);
	j->ring->pmi.put(key, text);
}

static bool group_was_bad(struct join *j)
{
	char key[KEY_MAX];

	bad_key(j, key, true);
	return pmi_lookup(&j->ring->pmi, key, j->why, PMI2X_RING_ERROR_MAX);
}

/*
 * From who has no links to whom it blames, to one that has not said anything. That
 * somebody is late counts for less than any other reason.
 */
static bool links_were_bad(struct join *j)
{
	char key[KEY_MAX], text[PMI2X_RING_ERROR_MAX + BLAMED_MAX], *reason;
	bool known = false;
	long rank;

	bad_key(j, key, false);
	if (!pmi_lookup(&j->ring->pmi, key, text, sizeof(text)))
		return false;
	rank = strtol(text, NULL, 10);
	snprintf(j->why, PMI2X_RING_ERROR_MAX, "rank %ld has no links", rank);
	for (uint32_t i = 0; i < j->ring->elements && rank >= 0; i++) {
		links_key(j, key, (int)rank);
		if (!pmi_lookup(&j->ring->pmi, key, text, sizeof(text)))
			break;
		rank = strtol(text, &reason, 10);
		if (*reason == ':' || !known)
			snprintf(j->why, PMI2X_RING_ERROR_MAX, "%s",
				 reason + 1);
		known |= *reason == ':';
	}
	return true;
}

/* Nothing of a round that has failed is used again. */
static void drop_links(struct join *j)
{
	join_close(j, -1);
	j->ring->transport = NULL;
	j->ring->ops = NULL;
}

static void clear_round(struct join *j)
{
	drop_links(j);
	j->bad[0] = '\0';
	j->blamed = -1;
	j->late = false;
}

enum outcome { JOINED, BAD_GROUP, BAD_LINKS, BROKEN };

static enum outcome play_round(struct join *j, const char *name)
{
	int rc;

	j->round++;
	attach(j);
	rc = join_round(j, name);
	if (rc) {
		join_blame(j, rc);
		return BROKEN;
	}
	if (j->bad[0]) {
		put_bad(j);
		drop_links(j);
	}
	if (join_meet(j))
		return BROKEN;
	if (group_was_bad(j))
		return BAD_GROUP;
	return links_were_bad(j) ? BAD_LINKS : JOINED;
}

static void say(struct join *j, const char *what, const char *reason)
{
	struct pmi2x_ring *r = j->ring;

	if (r->rank == 0 && setting_on("PMI2X_ALLGATHER_DEBUG"))
		print_error("pmi2x-allgather: %d ranks, %d nodes, %u elements: "
			 "%s%s%s\n", r->size, j->nodes, r->elements, what,
			 reason[0] ? "; not better: " : "", reason);
}

static int use_pmi(struct join *j, const char *reason)
{
	struct pmi2x_ring *r = j->ring;
	char why[PMI2X_RING_ERROR_MAX];

	clear_round(j);
	if (lacking(j, JOIN_PMI, why))
		return join_fail(j, PMI2_FAIL, "no transport that all ranks can "
			    "use: %s", reason[0] ? reason : NOT_ALLOWED);
	ungroup(j);
	r->elements = 0;
	r->name = JOIN_PMI;
	say(j, "allgather over PMI", reason);
	return PMI2_SUCCESS;
}

static int use_ring(struct join *j, int index, const char *reason)
{
	struct pmi2x_ring *r = j->ring;

	r->name = index < 0 ? SHM : transport_names[index];
	if (index >= 0)
		j->open[index] = NULL; /* the ring's now */
	join_close(j, -1);
	say(j, r->name, reason);
	return PMI2_SUCCESS;
}

/*
 * The best transport that is left; -1: none is needed. `reason`, unless there is
 * one, becomes why the one before it is not used.
 */
static int choose(struct join *j, int index, char *reason)
{
	char why[PMI2X_RING_ERROR_MAX];

	if (j->ring->elements == 1)
		return -1;
	while (transport_names[index] &&
	       lacking(j, transport_names[index], why)) {
		/* The reason of the best transport that is wanted. */
		if (!reason[0] && join_allows(j, transport_names[index]))
			snprintf(reason, PMI2X_RING_ERROR_MAX, "%s", why);
		index++;
	}
	return index;
}

/* Steps 2 and 3 of join.h, until something works. */
static int play(struct join *j)
{
	char reason[PMI2X_RING_ERROR_MAX] = "", shm[PMI2X_RING_ERROR_MAX] = "";
	int next = 0;

	if (j->grouped && lacking(j, SHM, shm))
		ungroup(j);
	for (;;) {
		int index = choose(j, next, reason);

		if (index >= 0 && !transport_names[index])
			return use_pmi(j, reason);
		switch (play_round(j, index < 0 ? NULL
						: transport_names[index])) {
		case JOINED:
			return use_ring(j, index, reason[0] ? reason : shm);
		case BROKEN:
			return PMI2_FAIL;
		case BAD_GROUP:
			ungroup(j);
			break;
		case BAD_LINKS:
			next = index + 1;
			break;
		}
		snprintf(reason, sizeof(reason), "%s", j->why);
		clear_round(j);
	}
}

int join_ring(struct join *j)
{
	struct pmi2x_ring *r = j->ring;
	int code;

	if (r->size == 1 && j->wrong[0])
		return join_fail(j, PMI2_ERR_INVALID_ARG, "%s", j->wrong);
	if (r->size == 1) {
		r->elements = r->members = 1;
		r->ranks = calloc(1, sizeof(*r->ranks));
		r->name = "self";
		return r->ranks ? PMI2_SUCCESS : PMI2_ERR_NOMEM;
	}
	code = find_node(j);
	if (!code)
		code = say_what_is_here(j);
	if (!code)
		code = play(j);
	return code;
}
