/* SPDX-License-Identifier: BSD-3-Clause */
/* srun's end of the step. */
#include <string.h>

#include "testsuite/dst/step.h"

static void on_abort(void *arg, uint32_t rank, int code, const char *text)
{
	step_abort(arg, text ? text : "a rank aborts");
}

static void on_report(void *arg, const char *text)
{
	trace_text("srun reports: %s", text);
}

static void on_trace(void *arg, uint32_t position, const void *data, size_t len)
{
	trace("trace of node", position, len);
}

static uint32_t count_nodes(void *arg)
{
	return ((struct step *)arg)->plan->nodes;
}

static const char *node_name(void *arg, uint32_t position)
{
	return position < count_nodes(arg) ? "node" : "?";
}

static bool is_started(void *arg, uint32_t position)
{
	const struct step *s = arg;
	uint32_t count, rank;

	if (position >= s->plan->nodes)
		return false;
	rank = layout_ranks_at(s->layout, position, &count)[0];
	return s->ranks[rank].process;
}

static bool nodes_have_ended(void *arg)
{
	const struct step *s = arg;

	for (uint32_t i = 0; i < s->plan->nodes; i++)
		if (!s->nodes[i].process->dead)
			return false;
	return true;
}

static void *srun_main(void *arg)
{
	struct step *s = arg;
	const struct srun_server_options options = {
		.secret = s->secret,
		.jobid = "7.0",
		.build = "0.1",
		.parent_fd = -1,
		.handshake_ms = 5000,
		.no_kill = s->plan->no_kill,
	};
	const struct srun_server_host host = {
		.abort = on_abort,
		.report = on_report,
		.trace = s->plan->trace ? on_trace : NULL,
		.nodes = count_nodes,
		.node_name = node_name,
		.started = is_started,
		.arg = s,
	};
	struct srun_server *server;
	int rc = srun_server_start(&server, &options, &host, step_log());

	if (rc)
		failed("srun_server_start: %s", strerror(-rc));
	s->srun_port = srun_server_port(server);
	for (uint32_t i = 0; i < s->plan->nodes; i++)
		node_begin(&s->nodes[i]);
	task_wait(nodes_have_ended, s, NEVER);
	srun_server_stop(server, UINT32_MAX);
	check_nothing_left(s->srun);
	process_kill(s->srun, 0);
	return NULL;
}

void srun_begin(struct step *s)
{
	s->srun = process_new("srun", SRUN_HOST);
	task_start(s->srun, srun_main, s);
}
