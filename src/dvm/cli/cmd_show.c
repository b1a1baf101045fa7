/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm ps, show, status, wait, cancel, signal, drain, undrain. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dvm/cli/client.h"
#include "dvm/cli/dvm.h"
#include "dvm/cli/number_list.h"
#include "dvm/cli/options.h"
#include "dvm/cli/results.h"
#include "dvm/cli/signal_name.h"
#include "dvm/cli/task_text.h"
#include "libutil/plural.h"

#define PAGE 1000 /* SHOWN_MAX of the head */
#define IDS_MAX 1000000 /* in a request */

/* Characters in a list; none is wider than one column. */
#define NAME_SHOWN 12
#define NODES_SHOWN 12

struct options {
	const char *dvm, *name;
	bool all, json, ended, any;
};

static struct options take_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dvm", required_argument, NULL, 'd' },
		{ "all", no_argument, NULL, 'a' },
		{ "json", no_argument, NULL, 'j' },
		{ "ended", no_argument, NULL, 'e' },
		{ "name", required_argument, NULL, 'n' },
		{ "any", no_argument, NULL, 'y' },
		{ 0 },
	};
	struct options o = { 0 };
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:", options, NULL)) != -1)
		switch (option) {
		case 'd': o.dvm = optarg; break;
		case 'a': o.all = true; break;
		case 'j': o.json = true; break;
		case 'e': o.ended = true; break;
		case 'n': o.name = optarg; break;
		case 'y': o.any = true; break;
		default: die_option(argv, option, options);
		}
	return o;
}

/* ---- lists ---- */

static double seconds(json_t *task, int i)
{
	return json_number_value(json_array_get(json_object_get(task, "t"),
						(size_t)i));
}

/* The first node of the task; "..." if there are more. */
static int print_nodes_of(json_t *t)
{
	json_t *nodes = json_object_get(t, "nodes");
	const char *first = json_string_value(json_array_get(nodes, 0));

	return printf("%s%s", first ? first : "", json_array_size(nodes) > 1 ? " ..." : "");
}

static void print_name(const char *name)
{
	size_t characters = 0;

	for (const char *at = name; *at; at++)
		characters += (*at & 0xc0) != 0x80;
	print_shortened(stdout, name, NAME_SHOWN);
	printf("%*s", characters < NAME_SHOWN ? NAME_SHOWN - (int)characters : 0, "");
}

static void print_task(json_t *t)
{
	double begun = seconds(t, 2), ended = seconds(t, 3);
	int n;

	printf("%8lld  %-9s %6lld  ", get_number(t, "id"), get_text(t, "state"),
	       get_number(t, "ranks"));
	print_name(get_text(t, "name"));
	putchar(' ');
	n = print_nodes_of(t);
	printf("%*s ", n < NODES_SHOWN ? NODES_SHOWN - n : 0, "");
	if (begun > 0 && ended > begun)
		printf("%9.2f  ", ended - begun);
	else
		printf("%9s  ", "");
	print_command(t);
	putchar('\n');
	if (strcmp(get_text(t, "state"), "failed"))
		return;
	printf("%8s  ", "");
	print_how(stdout, t);
	print_reason(stdout, t);
	putchar('\n');
}

/* The head shows a limited number of tasks. */
static void print_rest(json_t *ps, bool ended)
{
	long long all = get_number(ps, "running") + get_number(ps, "queued") +
			(ended ? get_number(ps, "ended") : 0);
	long long shown = (long long)json_array_size(json_object_get(ps, "tasks"));

	if (all > shown)
		printf("and %lld more: pmi2x-dvm show TASK, why TASK\n", all - shown);
}

/* As people read it: not the head's form of bytes and lines. */
static void make_readable(json_t *task)
{
	size_t line = line_of_task(task);

	make_texts(task);
	json_object_del(task, "number");
	if (line)
		json_object_set_new(task, "line", json_integer((json_int_t)line));
}

static json_t *ask_ps(struct conn *c, bool ended, size_t from)
{
	return conn_ask(c, json_pack("{s:s,s:b,s:I}", "op", "ps", "ended", ended,
				     "from", (json_int_t)from));
}

/* The head answers with PAGE tasks that have ended at once. */
static void add_pages(struct conn *c, json_t *ps)
{
	json_t *tasks = json_object_get(ps, "tasks"), *page, *more;
	bool any = get_number(ps, "ended") > PAGE;

	for (size_t from = PAGE; any; from += PAGE) {
		page = ask_ps(c, true, from);
		more = json_object_get(page, "tasks");
		any = json_array_size(more);
		json_array_extend(tasks, more);
		json_decref(page);
	}
}

int cmd_ps(int argc, char **argv)
{
	struct options o = take_options(argc, argv);
	struct conn *c = conn_look(o.dvm);
	json_t *event, *t;
	size_t i;

	event = ask_ps(c, o.ended, 0);
	if (o.ended)
		add_pages(c, event);
	if (o.json) {
		json_array_foreach(json_object_get(event, "tasks"), i, t)
			make_readable(t);
		print_json(event);
		return 0;
	}
	printf("%lld running, %lld queued, %lld ended\n",
	       get_number(event, "running"), get_number(event, "queued"),
	       get_number(event, "ended"));
	if (json_array_size(json_object_get(event, "tasks")))
		printf("%8s  %-9s %6s  %-*s %-*s %9s  %s\n", "TASK", "STATE", "RANKS",
		       NAME_SHOWN, "NAME", NODES_SHOWN, "NODES", "SECONDS", "COMMAND");
	json_array_foreach(json_object_get(event, "tasks"), i, t)
		print_task(t);
	print_rest(event, o.ended);
	json_decref(event);
	conn_close(c);
	return 0;
}

static void print_journal(const char *state)
{
	if (strcmp(state, "none") && strcmp(state, "written"))
		printf("The journal cannot be written: %s. Until it can, tasks are neither accepted nor started.\n",
		       state);
}

static void print_nodes(json_t *status)
{
	json_t *gone = json_object_get(status, "gone"), *n; /* of several DVMs */
	size_t i;

	printf("DVM %s: %lld queued, %lld running, %lld ended (%lld failed)\n",
	       get_text(status, "dvm"), get_number(status, "queued"),
	       get_number(status, "running"), get_number(status, "ended"),
	       get_number(status, "failed"));
	print_journal(get_text(status, "journal"));
	json_array_foreach(gone, i, n)
		printf("DVM %s is no longer up.\n", json_string_value(n));
	printf("%-24s %-8s %6s %6s %6s%s\n", "NODE", "STATE", "CORES", "FREE",
	       "GPUS", gone ? "  DVM" : "");
	json_array_foreach(json_object_get(status, "nodes"), i, n)
		printf("%-24s %-8s %6lld %6lld %6lld%s%s\n", get_text(n, "name"),
		       get_text(n, "state"), get_number(n, "cores"),
		       get_number(n, "free"), get_number(n, "gpus"), gone ? "  " : "",
		       get_text(n, "dvm"));
	json_array_foreach(json_object_get(status, "nodes"), i, n)
		if (*get_text(n, "why"))
			printf("Node %s is drained: %s. If it can start tasks now: pmi2x-dvm undrain %s\n",
			       get_text(n, "name"), get_text(n, "why"), get_text(n, "name"));
}

int cmd_status(int argc, char **argv)
{
	struct options o = take_options(argc, argv);
	struct conn *c = conn_look(o.dvm);
	json_t *event = conn_ask(c, json_pack("{s:s}", "op", "status"));

	if (o.json)
		print_json(event);
	else
		print_nodes(event);
	json_decref(event);
	conn_close(c);
	return 0;
}

int cmd_show(int argc, char **argv)
{
	struct options o = take_options(argc, argv);
	struct conn *c = conn_look(o.dvm);
	json_t *event;

	if (optind + 1 != argc)
		die_usage("show: name a task");
	event = conn_ask(c, json_pack("{s:s,s:I}", "op", "show", "id",
				      get_task(argv[optind])));
	make_readable(json_object_get(event, "task"));
	print_json(json_object_get(event, "task"));
	json_decref(event);
	conn_close(c);
	return 0;
}

/* ---- what is done to tasks ---- */

/* Numbers of tasks: 7, 5-20, or several with commas between them. */
static void add_ids(json_t *ids, const char *text)
{
	const char *at = text;
	struct number_range r;

	do {
		if (!number_list_take(&at, INT64_MAX, &r) || !r.first)
			die_usage("\"%s\" is not the number of a task, nor a range of them", text);
		if ((r.last - r.first) / r.step >= IDS_MAX - json_array_size(ids))
			die_usage("\"%s\" are more than %d tasks", text, IDS_MAX);
		for (uint64_t id = r.first; id <= r.last; id += r.step)
			json_array_append_new(ids, json_integer((json_int_t)id));
	} while (*at);
}

/* {"op": op, "ids": [...]}, or "name": text, or "all": true. */
static json_t *request_for(const char *op, const struct options *o, int argc, char **argv)
{
	json_t *ids, *request;

	if (!!o->all + !!o->name + !!argc != 1)
		die_usage("%s: name the tasks, or give --name or --all", op);
	if (o->all)
		return json_pack("{s:s,s:b}", "op", op, "all", 1);
	if (o->name) {
		request = json_pack("{s:s,s:s}", "op", op, "name", o->name);
		if (!request)
			die_usage("--name: %s is no UTF-8 text", o->name);
		return request;
	}
	ids = json_array();
	for (int i = 0; i < argc; i++)
		add_ids(ids, argv[i]);
	return json_pack("{s:s,s:o}", "op", op, "ids", ids);
}

/*
 * one, many: what has happened to one task, or to several. False: it has happened to none of
 * those that were named by number, which had ended.
 */
static bool do_to_tasks(struct conn *c, json_t *request, const char *one, const char *many)
{
	json_t *event = conn_ask(c, request);
	long long n = get_number(event, "tasks"), over = get_number(event, "over");

	if (n || !over)
		printf("%lld task%s %s\n", n, plural((uint64_t)n), n == 1 ? one : many);
	if (over)
		printf("%lld task%s had already ended\n", over, plural((uint64_t)over));
	json_decref(event);
	return n || !over;
}

int cmd_cancel(int argc, char **argv)
{
	struct options o = take_options(argc, argv);
	json_t *request = request_for("cancel", &o, argc - optind, argv + optind);
	struct conn *c = conn_look(o.dvm);
	bool any = do_to_tasks(c, request, "is cancelled", "are cancelled");
	bool unheard = cancel_is_unheard(c);

	conn_close(c);
	return unheard || !any;
}

int cmd_signal(int argc, char **argv)
{
	struct options o = take_options(argc, argv);
	struct conn *c;
	uint32_t number;
	json_t *request;
	bool any;

	if (optind >= argc || !signal_take(argv[optind], &number))
		die_usage("signal: a signal comes first, as a number or as in TERM");
	request = request_for("signal", &o, argc - optind - 1, argv + optind + 1);
	json_object_set_new(request, "signal", json_integer(number));
	c = conn_look(o.dvm);
	any = do_to_tasks(c, request, "was sent the signal", "were sent the signal");
	conn_close(c);
	return !any;
}

static int drain(const char *op, int argc, char **argv)
{
	struct options o = take_options(argc, argv);
	struct conn *c = conn_look(o.dvm);

	if (optind + 1 != argc)
		die_usage("%s: name a node", op);
	json_decref(conn_ask(c, json_pack("{s:s,s:o}", "op", op, "node",
					  user_text("the name of a node", argv[optind]))));
	conn_close(c);
	return 0;
}

int cmd_drain(int argc, char **argv)
{
	return drain("drain", argc, argv);
}

int cmd_undrain(int argc, char **argv)
{
	return drain("undrain", argc, argv);
}

int cmd_wait(int argc, char **argv)
{
	struct options o = take_options(argc, argv);
	struct results r = { 0 };
	json_t *request;
	struct conn *c;
	int rc;

	o.all |= optind == argc && !o.name;
	request = request_for("wait", &o, argc - optind, argv + optind);
	json_object_set_new(request, "unwaited", json_boolean(o.all));
	c = conn_open(o.dvm);
	results_begin(&r);
	if (o.any) {
		rc = results_wait_any(&r, c, request);
	} else {
		results_wait_for(&r, c, request);
		rc = results_end(&r, c);
	}
	conn_close(c);
	return rc;
}
