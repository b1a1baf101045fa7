/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-probe --nodes: the nodes, and what Slurm says of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define STATE_LEN 64
#define VERSION_LEN 32
#define ASK_S 60 /* for an answer of slurmctld; munge is tried for up to 50 s */

enum part { PLUGIN, AGENT, LIBPMIX, PARTS };

struct node {
	char *name; /* owned */
	/* of each file: build and protocol (libpmix: release and package), "missing",
	   or why it is not known */
	char state[PARTS][STATE_LEN];
	char slurm[VERSION_LEN];      /* of the slurmd that runs there; "": not known */
	char plugin_for[VERSION_LEN]; /* the Slurm of the plugin's file; "": not known */
	bool usable; /* Slurm would run a step there */
	bool stuck;  /* Slurm has waited for more than a minute for it to end a job */
};

struct nodes {
	struct node *items; /* owned */
	size_t count;
};

/*
 * Fill in the nodes of a Slurm node list, their states and the Slurm that runs there.
 * False after a message. Free them with node_list_free in either case.
 */
bool node_list_read(struct nodes *n, const char *list);
/* Look for nodes that are stuck; their state says for how long, and they are not usable. */
void node_list_find_stuck(struct nodes *n);
void node_list_free(struct nodes *n);

struct node *node_list_find(const struct nodes *n, const char *name);
/* Give each part of the node this state. */
void node_set_states(struct node *node, const char *text);
/* Cut a line "FIRST REST" in two and return the second; NULL: it has no blank. */
char *node_list_cut(char *line);
