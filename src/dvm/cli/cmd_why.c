/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm why: what a task waits for; or where its ranks are, and which of them the
 * others wait for.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dvm/cli/client.h"
#include "dvm/cli/dvm.h"
#include "dvm/cli/task_text.h"
#include "dvm/cli/options.h"
#include "libio/clock.h"
#include "libpmi/status.h"
#include "libutil/pack.h"

#define ANSWER_S 5      /* for a node */
#define FILE_STALL_S 1  /* a shorter wait for a file is usual */
#define RANKS_SHOWN 64  /* --json has all */

struct answer {
	json_t *why;    /* of the head */
	json_t *nodes;  /* array by index: what each has told; null: nothing */
	json_t *pmi;    /* the same of PMI: bytes as text */
	size_t asked, told, pmi_due, pmi_told; /* nodes */
	struct step_status *step; /* NULL: no rank has used PMI */
};

/* ---- what is asked ---- */

/* A node's PMI status may come first. */
static void take(struct answer *a, json_t *event, json_int_t id)
{
	size_t index = (size_t)get_number(event, "index");

	if (get_number(event, "id") != id)
		return;
	if (!strcmp(event_name(event), "told_pmi")) {
		json_array_set(a->pmi, index, json_object_get(event, "status"));
		a->pmi_told++;
		return;
	}
	json_array_set(a->nodes, index, event);
	a->told++;
	a->pmi_due += json_is_true(json_object_get(event, "pmi"));
}

static void ask(struct answer *a, const char *dvm, json_int_t id)
{
	struct conn *c = conn_look(dvm);
	json_t *event;

	a->why = conn_ask(c, json_pack("{s:s,s:I}", "op", "why", "id", id));
	a->asked = (size_t)get_number(a->why, "asked");
	a->nodes = make_nulls(a->asked);
	a->pmi = make_nulls(a->asked);
	conn_limit(c, ANSWER_S);
	while ((a->told < a->asked || a->pmi_told < a->pmi_due) &&
	       (event = conn_next(c))) {
		take(a, event, id);
		json_decref(event);
	}
	conn_close(c);
}

/* ---- who waits for whom ---- */

static const char *name_of(void *arg, uint32_t position)
{
	const struct answer *a = arg;

	return get_text(json_array_get(a->nodes, position), "node");
}

/*
 * Packs the state of a node none of whose ranks has begun with PMI: there was nobody to
 * ask.
 */
static int pack_fresh(struct buf *b, json_t *ranks)
{
	size_t n = json_array_size(ranks), i;
	struct node_status status = { .runs = calloc(n + 1, sizeof(*status.runs)) };
	json_t *rank;
	int rc;

	if (!status.runs)
		die("out of memory");
	json_array_foreach(ranks, i, rank) {
		uint32_t number = (uint32_t)get_number(rank, "rank");

		status_add_rank(&status, &(struct status_run){
			.first = number, .last = number,
			.phase = get_number(rank, "pid") ? STATUS_FRESH :
							   STATUS_GONE });
	}
	rc = status_pack(b, &status);
	free(status.runs);
	return rc ? rc : pack_u32(b, 0); /* links */
}

static void add_status(struct answer *a, uint32_t i)
{
	json_t *data = json_array_get(a->pmi, i);
	json_t *ranks = json_object_get(json_array_get(a->nodes, i), "ranks");
	size_t len;
	char *bytes = get_bytes(data, &len);
	struct buf b;

	buf_init(&b, STATUS_NODE_MAX);
	if (len)
		(void)step_status_add(a->step, i, bytes, len);
	else if (ranks && !pack_fresh(&b, ranks))
		(void)step_status_add(a->step, i, b.data, b.len);
	buf_free(&b);
	free(bytes);
}

static bool uses_pmi(const struct answer *a)
{
	json_t *data;
	size_t i;

	json_array_foreach(a->pmi, i, data)
		if (json_string_length(data))
			return true;
	return false;
}

/* A node whose files for complete output take nothing: the part waits for them. */
static void add_file_stalls(const struct answer *a, json_t *waits)
{
	json_t *node, *stall;
	double seconds;
	size_t i;

	json_array_foreach(a->nodes, i, node) {
		stall = json_object_get(node, "file_stall");
		seconds = json_number_value(json_object_get(stall, "seconds"));
		if (seconds >= FILE_STALL_S)
			json_array_append_new(waits, json_sprintf(
				"node %s has waited for %.1f s for the output file in %s: ranks that print more, and the end of the task, wait with it",
				get_text(node, "node"), seconds, get_text(stall, "dir")));
	}
}

/* Texts. */
static json_t *waits_of(struct answer *a)
{
	json_t *waits = json_array();
	char text[STATUS_TEXT_MAX];
	struct stalled what;

	add_file_stalls(a, waits);
	if (uses_pmi(a) &&
	    step_status_create(&a->step, (uint32_t)json_array_size(a->nodes), name_of,
			       a))
		die("out of memory");
	for (uint32_t i = 0; a->step && i < json_array_size(a->pmi); i++)
		add_status(a, i);
	for (int kind = 0; a->step && kind < COLL_KINDS; kind++)
		if (step_status_stalled(a->step, kind, &what))
			json_array_append_new(waits, json_string(
				step_status_text(a->step, &what, text)));
	return waits;
}

/* ---- all of it ---- */

static json_t *silent_of(const struct answer *a)
{
	json_t *silent = json_array(), *node;
	size_t i;

	json_array_foreach(a->nodes, i, node)
		if (json_is_null(node))
			json_array_append(silent, json_array_get(json_object_get(
				json_object_get(a->why, "task"), "nodes"), i));
	return silent;
}

static json_t *nodes_of(const struct answer *a)
{
	json_t *nodes = json_array(), *node;
	size_t i;

	json_array_foreach(a->nodes, i, node)
		if (!json_is_null(node))
			json_array_append_new(nodes, json_pack(
				"{s:O,s:O}", "node", json_object_get(node, "node"),
				"ranks", json_object_get(node, "ranks")));
	return nodes;
}

static json_t *look(const char *dvm, json_int_t id)
{
	struct answer a = { 0 };
	json_t *all;

	ask(&a, dvm, id);
	all = json_pack("{s:O,s:O,s:o,s:o,s:o}",
			"task", json_object_get(a.why, "task"),
			"reasons", json_object_get(a.why, "reasons"),
			"waits", waits_of(&a), "nodes", nodes_of(&a),
			"silent", silent_of(&a));
	step_status_destroy(a.step);
	json_decref(a.why);
	json_decref(a.nodes);
	json_decref(a.pmi);
	return all;
}

/* ---- as text ---- */

static const char *state_text(const char *state)
{
	switch (*state) {
	case 'R': return "runs";
	case 'S': return "sleeps";
	case 'D': return "waits for a device or a file server";
	case 'T': return "is stopped by a signal";
	case 't': return "is stopped by a debugger";
	case '+': return "waits until the node can start it";
	default: return "has ended";
	}
}

static void print_indented(const char *text)
{
	fputs("  ", stdout);
	print_text(stdout, text, strlen(text));
	putchar('\n');
}

static void print_head(json_t *task)
{
	json_t *t = json_object_get(task, "t");
	const char *state = get_text(task, "state");
	bool runs = !strcmp(state, "running"), waits = !strcmp(state, "queued");
	double since = json_number_value(json_array_get(t, runs ? 1 : 0));

	printf("task %lld%s", get_number(task, "id"), *get_text(task, "name") ? " (" : "");
	print_shortened(stdout, get_text(task, "name"), SIZE_MAX);
	printf("%s: %s", *get_text(task, "name") ? ")" : "", state);
	if (runs || waits) {
		printf(" for %.1f s", clock_s(CLOCK_REALTIME) - since);
	} else {
		fputs(", ", stdout);
		print_how(stdout, task);
		print_reason(stdout, task);
	}
	if (get_number(task, "instance"))
		printf(" (started %lld times before)", get_number(task, "instance"));
	fputs(": ", stdout);
	print_command(task);
	putchar('\n');
}

static void print_list(json_t *texts)
{
	json_t *text;
	size_t i;

	json_array_foreach(texts, i, text)
		print_indented(json_string_value(text));
}

/*
 * Prints ranks of the node, at most as many as are left to show; how many are left
 * then.
 */
static size_t print_node(json_t *node, size_t left)
{
	json_t *rank;
	size_t i;

	json_array_foreach(json_object_get(node, "ranks"), i, rank) {
		if (left && left--)
			printf("  %6lld  %-20s %8lld  %8.2f  %s\n",
			       get_number(rank, "rank"), get_text(node, "node"),
			       get_number(rank, "pid"),
			       json_number_value(json_object_get(rank, "cpu")),
			       state_text(get_text(rank, "state")));
	}
	return left;
}

static size_t count_ranks(json_t *nodes)
{
	size_t i, n = 0;
	json_t *node;

	json_array_foreach(nodes, i, node)
		n += json_array_size(json_object_get(node, "ranks"));
	return n;
}

static void print_ranks(json_t *nodes)
{
	size_t i, left = RANKS_SHOWN, all = count_ranks(nodes);
	json_t *node;

	if (!all)
		return;
	printf("  %6s  %-20s %8s  %8s  %s\n", "RANK", "NODE", "PID", "CPU S",
	       "STATE");
	json_array_foreach(nodes, i, node)
		left = print_node(node, left);
	if (all > RANKS_SHOWN)
		printf("  and %zu more (--json: all)\n", all - RANKS_SHOWN);
}

static void print_silent(json_t *silent)
{
	json_t *name;
	size_t i;

	json_array_foreach(silent, i, name)
		printf("  no answer from %s within %d s\n", json_string_value(name),
		       ANSWER_S);
}

static void print_all(json_t *all)
{
	print_head(json_object_get(all, "task"));
	print_list(json_object_get(all, "reasons"));
	print_list(json_object_get(all, "waits"));
	print_silent(json_object_get(all, "silent"));
	print_ranks(json_object_get(all, "nodes"));
}

int cmd_why(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dvm", required_argument, NULL, 'd' },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	const char *dvm = NULL;
	bool as_json = false;
	json_t *all;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1)
		switch (option) {
		case 'd': dvm = optarg; break;
		case 'j': as_json = true; break;
		default: die_option(argv, option, options);
		}
	if (optind + 1 != argc)
		die_usage("why: name a task");
	all = look(dvm, get_task(argv[optind]));
	if (as_json)
		print_json(all);
	else
		print_all(all);
	json_decref(all);
	return 0;
}
