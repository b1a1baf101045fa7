/* SPDX-License-Identifier: BSD-3-Clause */
/* Published names of PMI-1 and PMI-2 in a hash table. */
#include "libpmi/port_names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libpmi/step_services.h"
#include "libutil/hash.h"

struct port_name {
	char *name;
	char *port;
	void *link; /* on which it was published */
	UT_hash_handle hh;
};

static void free_name(struct port_names *p, struct port_name *n)
{
	HASH_DEL(p->names, n);
	free(n->name);
	free(n->port);
	free(n);
}

static struct port_name *find_name(struct port_names *p, const char *name)
{
	size_t len = strlen(name);
	uint32_t hash = hash_seeded(p->hash_seed, name, len);
	struct port_name *n;

	HASH_FIND_BYHASHVALUE(hh, p->names, name, len, hash, n);
	return n;
}

/* Takes the strings out of `msg`. False when there is no memory. */
static bool add_name(struct port_names *p, void *link, struct control_msg *msg)
{
	size_t len = strlen(msg->name);
	uint32_t hash = hash_seeded(p->hash_seed, msg->name, len);
	struct port_name *n = calloc(1, sizeof(*n));

	if (!n)
		return false;
	n->name = msg->name;
	n->port = msg->text;
	n->link = link;
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, p->names, n->name, len, hash, n);
	if (!find_name(p, msg->name)) {
		free(n); /* the table could not grow */
		return false;
	}
	msg->name = msg->text = NULL;
	return true;
}

enum pmi_rc port_names_publish(struct port_names *p, void *link,
			       struct control_msg *msg, const char **text)
{
	if (msg->name[0] == '\0') {
		*text = "an empty name cannot be published";
		return PMI_RC_INVALID_ARG;
	}
	if (find_name(p, msg->name)) {
		*text = "the name is published already";
		return PMI_RC_FAIL;
	}
	if (HASH_COUNT(p->names) >= STEP_SERVICES_NAMES_MAX) {
		*text = "too many names are published";
		return PMI_RC_NOMEM;
	}
	if (!add_name(p, link, msg)) {
		*text = "no memory for the name";
		return PMI_RC_NOMEM;
	}
	return PMI_RC_OK;
}

enum pmi_rc port_names_unpublish(struct port_names *p, void *link,
				 struct control_msg *msg, const char **text)
{
	struct port_name *n = find_name(p, msg->name);

	if (!n) {
		*text = "the name is not published";
		return PMI_RC_FAIL;
	}
	free_name(p, n);
	return PMI_RC_OK;
}

enum pmi_rc port_names_lookup(struct port_names *p, void *link,
			      struct control_msg *msg, const char **text)
{
	struct port_name *n = find_name(p, msg->name);

	*text = n ? n->port : "the name is not published";
	return n ? PMI_RC_OK : PMI_RC_FAIL;
}

void port_names_lost(struct port_names *p, const void *link)
{
	struct port_name *n, *next;

	HASH_ITER(hh, p->names, n, next)
		if (n->link == link)
			free_name(p, n);
}

void port_names_free(struct port_names *p)
{
	struct port_name *n, *next;

	HASH_ITER(hh, p->names, n, next)
		free_name(p, n);
}
