/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that ask for the topology wait WAIT_MS, counted from the first request, and then
 * read it themselves.
 */
#include "agent/step/topology_wait.h"

#include "agent/step/service.h"
#include "agent/step/service_internal.h"

#define WAIT_MS 2000

static void on_limit(uv_timer_t *timer)
{
	struct service *s = timer->data;

	log_info(s->node->log, "the topology file of node %s is not ready after %d ms: each rank there reads the topology itself",
		 node_name(s->node, s->step->position), WAIT_MS);
	pmi_server_topology(s->server, NULL);
}

void topology_wait_begin(void *arg)
{
	struct service *s = arg;

	uv_timer_start(&s->topology, on_limit, WAIT_MS, 0);
	s->node->host->want_topology(s->node->host->arg);
}

void service_topology_known(struct service *s, const char *path)
{
	uv_timer_stop(&s->topology);
	pmi_server_topology(s->server, path);
}
