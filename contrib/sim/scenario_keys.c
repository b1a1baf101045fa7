/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of keys: section, name, form, place, bounds and default. */
#include "scenario_keys.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum key_form {
	FORM_COUNT,  /* uint64_t, min to max */
	FORM_BYTES,  /* uint64_t, min to max */
	FORM_TIME,   /* sim_time */
	FORM_WORD,   /* an enum: the words in `words` count from 0 */
	FORM_DRAW,   /* struct distribution */
	FORM_TOPOLOGY,
	FORM_RUN,
	FORM_FAULT,
	FORM_TASKS,
	FORM_PATH,   /* char[SCENARIO_PATH_MAX] */
	FORM_NAME,   /* char[SCENARIO_NAME_MAX] */
};

struct key {
	const char *section, *name;
	enum key_form form;
	size_t offset;
	uint64_t min, max;
	const char *preset;         /* the default, as a file would say it */
	const char *allowed;
	const char *const *words;
};

static const char *const layouts[] = { "block", "cyclic", "uneven", NULL };
static const char *const protocols[] = {
	"pmi2x", "mpi-pmi2", "hydra-star", "binary-tree", "radix-64", "store", NULL,
};
static const char *const clients[] = {
	"none", "pmi1", "pmi2", "pmi2x", "mixed", NULL,
};
static const char *const widths[] = { "auto", NULL }; /* a number is valid, too */
static const char *const payloads[] = { "sizes", "bytes", NULL };
static const char *const orders[] = { "fifo", "large", "work", NULL };
static const char *const no_yes[] = { "no", "yes", NULL };

#define AT(member) offsetof(struct scenario, member)
#define TIMES "a time: a number and ps, ns, us, ms or s"
#define COUNT(section, name, at, low, high, preset) \
	{ section, name, FORM_COUNT, AT(at), low, high, preset, \
	  "a number from " #low " to " #high, NULL }
#define TIME(section, name, at, preset) \
	{ section, name, FORM_TIME, AT(at), 0, 0, preset, TIMES, NULL }
#define WORD(section, name, at, preset, words, allowed) \
	{ section, name, FORM_WORD, AT(at), 0, 0, preset, allowed, words }
#define DRAW(section, name, at) \
	{ section, name, FORM_DRAW, AT(at), 0, 0, "0", \
	  DISTRIBUTION_FORMS, NULL }
#define FAULT(name, allowed) \
	{ "faults", name, FORM_FAULT, 0, 0, 0, NULL, allowed, NULL }

static const struct key keys[] = {
	COUNT("step", "nodes", nodes, 1, 1048576, "16"),
	COUNT("step", "ranks_per_node", ranks_per_node, 1, 65536, "1"),
	WORD("step", "layout", layout, "block", layouts,
	     "block, cyclic or uneven"),
	WORD("step", "protocol", protocol, "pmi2x", protocols,
	     "pmi2x, mpi-pmi2, hydra-star, binary-tree, radix-64 or store"),
	WORD("step", "clients", clients, "none", clients,
	     "none, pmi1, pmi2, pmi2x or mixed"),
	{ "step", "tree_width", FORM_COUNT, AT(tree_width), TREE_WIDTH_MIN,
	  TREE_WIDTH_MAX, "auto", "auto or a number from 2 to 1024", widths },
	{ "step", "piece", FORM_BYTES, AT(piece), 1, 1u << 30, "64KiB",
	  "bytes of a message, from 1 to 1GiB", NULL },
	COUNT("step", "key_bytes", key_bytes, 8, 1024, "16"),
	WORD("step", "payload", payload, "sizes", payloads, "sizes or bytes"),
	WORD("step", "finalize", finalize, "yes", no_yes, "yes or no"),
	COUNT("step", "seed", seed, 0, 999999999999999999, "1"),
	DRAW("launch", "skew", skew),
	DRAW("launch", "rank_skew", rank_skew),
	{ "operations", "run", FORM_RUN, 0, 0, 0, NULL, NULL, NULL },
	{ "network", "topology", FORM_TOPOLOGY, 0, 0, 0, "flat",
	  "flat, fat-tree LEAF, or dragonfly NODES ROUTERS (nodes of a router, routers of a group)",
	  NULL },
	TIME("network", "latency", network.latency, "2us"),
	TIME("network", "hop_latency", network.hop_latency, "300ns"),
	TIME("network", "global_latency", network.global_latency, "1us"),
	TIME("network", "send", network.send, "4us"),
	TIME("network", "receive", network.receive, "6us"),
	TIME("network", "gap", network.gap, "200ns"),
	TIME("network", "byte_gap", network.byte_gap, "80ps"),
	TIME("network", "detect", network.detect, "100us"),
	COUNT("node", "cores", node.cores, 0, 1024, "0"),
	COUNT("node", "spread", node.spread, 0, 1000, "0"),
	COUNT("node", "drift", node.drift, 0, 1000, "0"),
	TIME("node", "resume", node.resume, "0"),
	TIME("node", "enter", node.enter, "500ns"),
	TIME("node", "wake", node.wake, "4us"),
	TIME("node", "answer", node.answer, "0"),
	TIME("node", "request", node.request, "4us"),
	TIME("node", "read", node.read, "0"),
	TIME("node", "copy", node.copy, "100ps"),
	TIME("node", "combine", node.combine, "1ns"),
	TIME("node", "publish", node.publish, "900ps"),
	TIME("node", "connect", node.connect, "1ms"),
	FAULT("rank", "RANK at TIME, or RANK in N (its N-th operation, from 1)"),
	FAULT("node", "NODE at TIME, or NODE in N (its N-th operation, from 1)"),
	FAULT("link", "NODE-NODE at TIME, or NODE-NODE in N (the first one's N-th operation)"),
	FAULT("head", "DVM at TIME, or DVM at TIME resume TIME (the DVM's number, from 1; another head follows after the second time)"),
	FAULT("slow_node", "NODE factor NUMBER"),
	FAULT("slow_link", "NODE-NODE factor NUMBER"),
	COUNT("dvm", "nodes", dvm.nodes, 1, 1048576, "16"),
	COUNT("dvm", "slots", dvm.slots, 1, 1024, "64"),
	COUNT("dvm", "gpus", dvm.gpus, 0, 64, "0"),
	COUNT("dvm", "dvms", dvm.dvms, 1, 65536, "1"),
	{ "dvm", "names", FORM_NAME, AT(dvm.names), 0, 0, "n",
	  "up to 32 letters, digits, hyphens and dots, a letter first", NULL },
	WORD("dvm", "order", dvm.order, "fifo", orders, "fifo, large or work"),
	COUNT("dvm", "window", dvm.window, 0, 1000000000, "1000"),
	TIME("dvm", "patience", dvm.patience, "60s"),
	COUNT("dvm", "max_queued", dvm.max_waiting, 1, 1000000000, "1000000"),
	COUNT("dvm", "batch", dvm.batch, 1, 1000000, "10000"),
	WORD("dvm", "journal", dvm.journal, "no", no_yes, "yes or no"),
	COUNT("dvm", "cores", dvm.cores, 0, 1024, "0"),
	COUNT("dvm", "behind", dvm.behind, 0, 100, "0"),
	TIME("dvm", "detect", dvm.detect, "5s"),
	TIME("dvm", "latency", dvm.latency, "50us"),
	COUNT("dvm", "width", dvm.width, 0, 1048576, "0"),
	TIME("dvm", "connect", dvm.connect, "200us"),
	TIME("dvm", "enter", dvm.enter, "10us"),
	TIME("dvm", "relay", dvm.relay, "2us"),
	COUNT("dvm", "input", dvm.input, 1, 1000000000000, "1000000000"),
	TIME("dvm", "submit", dvm.submit, "10us"),
	TIME("dvm", "place", dvm.place, "6us"),
	TIME("dvm", "bundle", dvm.bundle, "3us"),
	TIME("dvm", "end", dvm.end, "10us"),
	TIME("dvm", "take", dvm.take, "50us"),
	TIME("dvm", "start", dvm.start, "700us"),
	TIME("dvm", "exit", dvm.exit, "100us"),
	{ "workload", "tasks", FORM_TASKS, 0, 0, 0, NULL, WORKLOAD_FORMS, NULL },
	{ "workload", "file", FORM_PATH, AT(tasks_file), 0, 0, NULL, "the path of a .csv file, of at most 255 bytes", NULL },
	WORD("workload", "mixed", dvm.mixed, "yes", no_yes, "yes or no"),
};

#define KEYS ((int)(sizeof(keys) / sizeof(keys[0])))
_Static_assert(sizeof(keys) / sizeof(keys[0]) <= SCENARIO_KEYS_MAX,
	       "SCENARIO_KEYS_MAX");

const char *keys_section(const char *name)
{
	for (int i = 0; i < KEYS; i++)
		if (strcmp(keys[i].section, name) == 0)
			return keys[i].section;
	return NULL;
}

int keys_find(const char *section, const char *key)
{
	for (int i = 0; i < KEYS; i++)
		if (strcmp(keys[i].section, section) == 0 &&
		    strcmp(keys[i].name, key) == 0)
			return i;
	return -1;
}

const char *keys_section_of(const char *pair, const char *first)
{
	size_t len = strcspn(pair, " =");
	const char *found = NULL;

	for (int i = 0; i < KEYS; i++)
		if (strlen(keys[i].name) == len &&
		    strncmp(keys[i].name, pair, len) == 0 &&
		    (!found || strcmp(keys[i].section, first) == 0))
			found = keys[i].section;
	return found;
}

const char *keys_name(int key)
{
	return key < KEYS ? keys[key].name : NULL;
}

bool keys_of_machine(int key)
{
	const char *section = keys[key].section;

	return strcmp(section, "network") == 0 || strcmp(section, "node") == 0 ||
	       strcmp(section, "dvm") == 0;
}

bool keys_repeat(int key)
{
	return keys[key].form == FORM_RUN || keys[key].form == FORM_FAULT ||
	       keys[key].form == FORM_TASKS;
}

char *keys_names(const char *section, char *out, size_t len)
{
	size_t at = 0;

	out[0] = '\0';
	for (int i = 0; i < KEYS && at < len; i++)
		if (strcmp(keys[i].section, section) == 0)
			at += snprintf(out + at, len - at, "%s%s",
				       at ? ", " : "", keys[i].name);
	return out;
}

/* ---- forms ---- */

static bool set_count(uint64_t *to, const struct key *k, const char *value)
{
	uint64_t n;

	if (k->words && strcmp(value, k->words[0]) == 0) {
		*to = TREE_WIDTH_AUTO;
		return true;
	}
	if (!(k->form == FORM_BYTES ? units_bytes : units_count)(value, &n) ||
	    n < k->min || n > k->max)
		return false;
	*to = n;
	return true;
}

static bool set_word(void *to, const struct key *k, const char *value)
{
	int i = 0;

	while (k->words[i] && strcmp(k->words[i], value) != 0)
		i++;
	if (!k->words[i])
		return false;
	if (k->words == no_yes)
		*(bool *)to = i;
	else
		*(int *)to = i;
	return true;
}

/* A number of switches or nodes that follows the topology's name. */
static bool next_count(char **rest, uint64_t *out)
{
	char *word = strtok_r(NULL, " \t", rest);

	return word && units_count(word, out) && *out >= 1 &&
	       *out <= LAYOUT_NODES_MAX;
}

static bool set_topology(struct network_params *n, char *value)
{
	char *rest, *word = strtok_r(value, " \t", &rest);
	bool ok = word;

	if (!ok)
		return false;
	if (strcmp(word, "flat") == 0) {
		n->topology = TOPOLOGY_FLAT;
	} else if (strcmp(word, "fat-tree") == 0) {
		n->topology = TOPOLOGY_FAT_TREE;
		ok = next_count(&rest, &n->leaf) && n->leaf >= 2;
	} else if (strcmp(word, "dragonfly") == 0) {
		n->topology = TOPOLOGY_DRAGONFLY;
		ok = next_count(&rest, &n->leaf) &&
		     next_count(&rest, &n->group);
	} else {
		return false;
	}
	return ok && !strtok_r(NULL, " \t", &rest);
}

static bool add_tasks(struct scenario *s, char *value, unsigned int line)
{
	return s->nworkload < WORKLOAD_LINES_MAX &&
	       workload_parse(value, line, &s->workload[s->nworkload++]);
}

static bool set_path(char *to, const char *value)
{
	size_t len = strlen(value);

	if (len < 5 || len >= SCENARIO_PATH_MAX || strcmp(value + len - 4, ".csv") != 0)
		return false;
	memcpy(to, value, len + 1);
	return true;
}

static bool set_name(char *to, const char *value)
{
	size_t len = strlen(value);

	if (len > 32 || !isalpha((unsigned char)*value))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)value[i]) && !strchr("-.", value[i]))
			return false;
	memcpy(to, value, len + 1);
	return true;
}

bool keys_set(struct scenario *s, int key, char *value, unsigned int line,
	      const char **allowed)
{
	const struct key *k = &keys[key];
	void *to = (char *)s + k->offset;

	*allowed = k->form == FORM_RUN ? SCENARIO_RUN_FORMS : k->allowed;
	s->lines[key] = line;
	switch (k->form) {
	case FORM_COUNT:
	case FORM_BYTES:
		return set_count(to, k, value);
	case FORM_TIME:
		return units_time(value, to);
	case FORM_WORD:
		return set_word(to, k, value);
	case FORM_DRAW:
		return distribution_parse(value, to);
	case FORM_TOPOLOGY:
		return set_topology(&s->network, value);
	case FORM_RUN:
		return scenario_parse_run(s, value, line, allowed);
	case FORM_TASKS:
		return add_tasks(s, value, line);
	case FORM_PATH:
		return set_path(to, value);
	case FORM_NAME:
		return set_name(to, value);
	case FORM_FAULT:
		return scenario_parse_fault(s, k->name, value, line, allowed);
	}
	return false;
}

bool scenario_is_dvm(const struct scenario *s)
{
	return s->nworkload || *s->tasks_file;
}

void scenario_defaults(struct scenario *s)
{
	const char *allowed;

	memset(s, 0, sizeof(*s));
	for (int i = 0; i < KEYS; i++) {
		char value[64];

		if (!keys[i].preset)
			continue;
		snprintf(value, sizeof(value), "%s", keys[i].preset);
		keys_set(s, i, value, 0, &allowed);
	}
}

void scenario_list_keys(void (*show)(void *arg, const char *section,
				     const char *key, const char *preset,
				     const char *allowed),
			void *arg)
{
	for (int i = 0; i < KEYS; i++)
		show(arg, keys[i].section, keys[i].name, keys[i].preset,
		     keys[i].form == FORM_RUN ? SCENARIO_RUN_FORMS :
						keys[i].allowed);
}

const char *scenario_clients_name(enum scenario_clients which)
{
	return clients[which];
}

const char *scenario_protocol_name(enum sim_protocol_id id)
{
	return protocols[id];
}

const char *scenario_layout_name(enum scenario_layout layout)
{
	return layouts[layout];
}
