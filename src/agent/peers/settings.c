/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that two nodes have set differently, by name. */
#include "agent/peers/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SETTINGS_MAX 1024 /* bytes of a text */
#define REMEDY "give all nodes the same mpi.conf, then run \"scontrol reconfigure\""

struct text {
	const char *at;
	size_t len;
};

struct setting {
	struct text key, value;
};

/* Take the next word that is a setting off the text. False: there is none. */
static bool next_setting(struct text *rest, struct setting *out)
{
	while (rest->len) {
		const char *space = memchr(rest->at, ' ', rest->len), *equals;
		size_t len = space ? (size_t)(space - rest->at) : rest->len;

		equals = memchr(rest->at, '=', len);
		if (equals) {
			out->key = (struct text){ rest->at, equals - rest->at };
			out->value = (struct text){ equals + 1,
						    rest->at + len - equals - 1 };
		}
		len += space != NULL;
		rest->at += len;
		rest->len -= len;
		if (equals)
			return true;
	}
	return false;
}

static bool is_same(const struct text *a, const struct text *b)
{
	return a->len == b->len && !memcmp(a->at, b->at, a->len);
}

static bool find(struct text all, const struct text *key, struct setting *out)
{
	while (next_setting(&all, out))
		if (is_same(&out->key, key))
			return true;
	return false;
}

static struct text own(const struct node *node)
{
	const char *text = node->options->settings;

	return (struct text){ text ? text : "", text ? strlen(text) : 0 };
}

/* Text of another node, in a form that a log can show. */
static const char *printable(const struct text *t, char out[80])
{
	size_t len = t->len < 79 ? t->len : 79;

	for (size_t i = 0; i < len; i++)
		out[i] = isgraph((unsigned char)t->at[i]) ? t->at[i] : '?';
	out[len] = '\0';
	return out;
}

/* "Pmi2xX is 1 on node n0 and 2 on node n1, ..."; false: none is known. */
static bool describe(const struct neighbour *n, struct text theirs, char *out,
		     size_t size)
{
	const struct node *node = n->peers->node;
	struct text ours = own(node);
	struct setting mine, its;
	char key[80], value[80], other[80];
	size_t used = 0;

	out[0] = '\0';
	while (next_setting(&ours, &mine) && used < size) {
		if (!find(theirs, &mine.key, &its) ||
		    is_same(&mine.value, &its.value))
			continue;
		used += (size_t)snprintf(out + used, size - used,
					 "%s%s is %s on node %s and %s on node %s",
					 used ? ", " : "",
					 printable(&mine.key, key),
					 printable(&mine.value, value),
					 node_own_name(node),
					 printable(&its.value, other),
					 neighbour_name(n));
	}
	return used > 0;
}

static bool is_text(const struct payload *p)
{
	return !p || p->len <= SETTINGS_MAX;
}

static struct text text_of(const struct payload *p)
{
	return (struct text){ p ? (const char *)p->data : "", p ? p->len : 0 };
}

int settings_send(const struct conn *c, enum frame_type type)
{
	struct text text = own(c->peers->node);

	return link_send_bytes(c->link, type, text.at, text.len);
}

int settings_compare(struct neighbour *n, const struct payload *theirs)
{
	struct node *node = n->peers->node;
	char how[NODE_WHY_MAX];

	if (!is_text(theirs))
		return -EPROTO;
	if (node->met_other_settings ||
	    !describe(n, text_of(theirs), how, sizeof(how)))
		return 0;
	node->met_other_settings = true;
	log_error(node->log, "%s: " REMEDY, how);
	return 0;
}

int settings_apart(struct neighbour *n, const struct payload *theirs)
{
	char how[NODE_WHY_MAX / 2];
	bool known;

	if (!is_text(theirs))
		return -EPROTO;
	known = describe(n, text_of(theirs), how, sizeof(how));
	neighbour_lost(n, "nodes %s and %s do not agree on the tree of the step%s%s: " REMEDY,
		       node_own_name(n->peers->node), neighbour_name(n),
		       known ? ": " : "", how);
	return 0;
}
