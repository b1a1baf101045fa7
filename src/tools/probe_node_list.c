/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-probe --nodes: the nodes, and what Slurm says of them. */
#include "tools/probe_node_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/probe_process.h"

#define NODES_MAX 65536
#define STUCK_S 60 /* KillWait, and time for epilogs */

void node_set_states(struct node *node, const char *text)
{
	for (int i = 0; i < PARTS; i++)
		snprintf(node->state[i], STATE_LEN, "%s", text);
}

static void add_node(void *arg, char *line)
{
	struct nodes *n = arg;
	struct node *grown;

	if (!*line || n->count == NODES_MAX)
		return;
	grown = realloc(n->items, (n->count + 1) * sizeof(*grown));
	if (!grown)
		return;
	n->items = grown;
	memset(&grown[n->count], 0, sizeof(*grown));
	grown[n->count].name = strdup(line);
	node_set_states(&grown[n->count], "unknown to Slurm");
	n->count += grown[n->count].name != NULL;
}

struct node *node_list_find(const struct nodes *n, const char *name)
{
	for (size_t i = 0; i < n->count; i++)
		if (!strcmp(n->items[i].name, name))
			return &n->items[i];
	return NULL;
}

char *node_list_cut(char *line)
{
	char *rest = strchr(line, ' ');

	if (rest)
		*rest++ = '\0';
	return rest;
}

static bool is_good(const char *state)
{
	static const char *const good[] = { "idle", "mixed", "allocated",
					    "completing" };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!strcmp(state, good[i]))
			return true;
	return false;
}

/* A line "NODE STATE VERSION"; a node is in it once for each partition. */
static void note_slurm_state(void *arg, char *line)
{
	char *state = node_list_cut(line);
	char *version = state ? node_list_cut(state) : NULL;
	struct node *node = state ? node_list_find(arg, line) : NULL;

	if (!node)
		return;
	node_set_states(node, state);
	node->usable = is_good(state);
	if (version && *version >= '0' && *version <= '9')
		snprintf(node->slurm, sizeof(node->slurm), "%s", version);
}

bool node_list_read(struct nodes *n, const char *list)
{
	char *expand[] = { "scontrol", "show", "hostnames", (char *)list,
			   NULL };
	char *states[] = { "sinfo", "-h", "-N", "-n", (char *)list, "-o",
			   "%N %T %v", NULL };

	if (probe_process_read(expand, ASK_S, add_node, n) || n->count == 0) {
		fprintf(stderr, "pmi2x-probe: %s is not a node list\n", list);
		return false;
	}
	if (probe_process_read(states, ASK_S, note_slurm_state, n))
		return false;
	node_list_find_stuck(n);
	return true;
}

void node_list_free(struct nodes *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->items[i].name);
	free(n->items);
}

/* ---- nodes that do not end a job ---- */

struct stuck {
	struct nodes *nodes;
	long seconds; /* since the job has ended, but for these nodes */
};

static void note_stuck(void *arg, char *name)
{
	struct stuck *s = arg;
	struct node *node = node_list_find(s->nodes, name);
	char text[STATE_LEN];

	if (!node)
		return;
	snprintf(text, sizeof(text), "completing for %ld s", s->seconds);
	node_set_states(node, text);
	node->usable = false;
	node->stuck = true;
}

/* A line "SECONDS NODES" of a job that is completing, for which these are waited for. */
static void note_completing(void *arg, char *line)
{
	struct stuck s = { .nodes = arg };
	char *list = node_list_cut(line);
	char *expand[] = { "scontrol", "show", "hostnames", list, NULL };
	long since = strtol(line, NULL, 10);

	s.seconds = (long)time(NULL) - since;
	if (list && *list && since > 0 && s.seconds > STUCK_S)
		probe_process_read(expand, ASK_S, note_stuck, &s);
}

void node_list_find_stuck(struct nodes *n)
{
	char *argv[] = { "squeue", "-h", "-a", "-t", "CG", "-o", "%e %N", NULL };

	setenv("SLURM_TIME_FORMAT", "%s", 1);
	probe_process_read(argv, ASK_S, note_completing, n);
}
