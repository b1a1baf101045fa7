/* SPDX-License-Identifier: BSD-3-Clause */
/* Namespaces that libpmix serves: with the first of them it is initialized. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helpers/pmixd/accept_hook.h"
#include "helpers/pmixd/job_info.h"
#include "helpers/pmixd/server_internal.h"
#include "helpers/pmixd/store.h"
#include "helpers/pmixd/upcalls.h"
#include "libutil/hwloc_plugins.h"

#define WHY_MAX 256

/* libpmix has done it, or says why not. */
static int done(const struct server *s, pmix_status_t status, const char *what,
		char why[WHY_MAX])
{
	if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED)
		return 0;
	snprintf(why, WHY_MAX, "libpmix %s cannot %s: %.100s", s->library->version,
		 what, s->library->Error_string(status));
	return -EREMOTEIO;
}

/* ---- libpmix ---- */

/*
 * Give libpmix the file of the node's topology. Otherwise it would load the topology again,
 * with hwloc's plugins for discovery: PMIXD_HOME has no plugins, and DIR belongs to the
 * user. A process that discovers it alone omits what pmi2x-topology does, and needs no
 * libxml2: hwloc's own writer is faster.
 */
static int set_topology_environment(const struct server *s, const struct pmix_nspace *n)
{
	int rc;

	if (!n->topology || access(n->topology, R_OK))
		return setenv(HWLOC_PLUGINS_LEFT_OUT,
			      HWLOC_PLUGINS_OF_GPUS ",hwloc_xml_libxml", 1);
	rc = setenv("PMIX_MCA_pmix_hwloc_topo_file", n->topology, 1);
	return rc ? rc : setenv("HWLOC_PLUGINS_PATH", PMIXD_HOME, 1);
}

/*
 * The environment is this process's own, and empty. libpmix loads components, and reads
 * where to look for more, below the home: that of the account if HOME does not name
 * another one, in each release up to 6.1. PMIXD_HOME is root's, and empty, or is not there.
 */
static int set_environment(const struct server *s, const struct pmix_nspace *n)
{
	static const char *const stores[] = {
		[PMIXD_GDS_DS21] = "^ds12", /* older; with it all would be stored twice */
		[PMIXD_GDS_HASH] = "hash",
		[PMIXD_GDS_NONE] = "hash",
	};
	int rc = setenv("HOME", PMIXD_HOME, 1);

	rc = rc ? rc : setenv("TMPDIR", s->options->dir, 1);
	/* Seconds after which libpmix says that it has lost a client. */
	rc = rc ? rc : setenv("PMIX_MCA_pmix_event_caching_window", "0", 1);
	if (!rc && s->options->gds != PMIXD_GDS_AUTO)
		rc = setenv("PMIX_MCA_gds", stores[s->options->gds], 1);
	rc = rc ? rc : set_topology_environment(s, n);
	return rc ? -ENOMEM : 0;
}

static void add_init_info(struct info_list *l, const struct server *s,
			  const struct pmix_nspace *n)
{
	info_add_string(l, PMIX_SERVER_NSPACE, PMIXD_SERVER_NSPACE);
	info_add_rank(l, PMIX_SERVER_RANK, s->options->shared ? 0 : n->position);
	info_add_string(l, PMIX_SERVER_TMPDIR, s->options->dir);
	info_add_string(l, PMIX_SYSTEM_TMPDIR, s->options->dir);
	/* Not the machine's name, which several nodes may have. */
	info_add_string(l, PMIX_HOSTNAME,
			n->node_names[layout_node_id(n->layout, n->position)]);
	if (s->options->gds != PMIXD_GDS_NONE)
		info_add_bool(l, PMIX_SERVER_SHARE_TOPOLOGY, true);
}

static int init_library(struct server *s, const struct pmix_nspace *n,
			char why[WHY_MAX])
{
	static union upcalls_module module; /* libpmix's to read as long as it lives */
	struct info_list info = {};
	int rc;

	upcalls_init(&module, s->library, s->events, s->options->dir,
		     s->options->gds == PMIXD_GDS_DS21);
	add_init_info(&info, s, n);
	rc = info.failed ? -ENOMEM : set_environment(s, n);
	if (!rc)
		rc = done(s, s->library->server_init(&module.module, info.items,
						     info.count),
			  "start", why);
	info_free(&info);
	if (!rc && !accept_hook_is_used()) {
		snprintf(why, WHY_MAX,
			 "libpmix %s does not listen for clients as it should",
			 s->library->version);
		rc = -EPROTO;
	}
	return rc;
}

static int init_once(struct server *s, const struct pmix_nspace *n,
		     char why[WHY_MAX])
{
	int rc;

	if (s->initialized)
		return 0;
	rc = init_library(s, n, why);
	if (rc)
		return rc;
	s->initialized = true;
	s->library->Register_event_handler(NULL, 0, NULL, 0, upcalls_notified, NULL,
					   NULL);
	return 0;
}

/* ---- a namespace ---- */

static int register_ranks(const struct server *s, const struct pmix_nspace *n,
			  char why[WHY_MAX])
{
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(n->layout, n->position, &count);
	pmix_proc_t proc = {};
	int rc = 0;

	strncpy(proc.nspace, n->name, PMIX_MAX_NSLEN);
	for (uint32_t i = 0; i < count && !rc; i++) {
		proc.rank = ranks[i];
		rc = done(s, s->library->server_register_client(&proc, n->uid, n->gid,
								NULL, NULL, NULL),
			  "register a rank", why);
	}
	return rc;
}

static int register_infos(const struct server *s, const struct pmix_nspace *n,
			  const struct info_list *infos, char why[WHY_MAX])
{
	uint32_t count;

	layout_ranks_at(n->layout, n->position, &count);
	return done(s, s->library->server_register_nspace(n->name, (int)count,
							  infos->items, infos->count,
							  NULL, NULL),
		    "register the job", why);
}

/*
 * Stores data of a rank, as register_infos does. For ds21 a namespace must not be
 * registered a second time: libpmix would lock the same locks twice.
 */
static int store_rank(const struct server *s, const struct pmix_nspace *n,
		      const pmix_data_array_t *data, char why[WHY_MAX])
{
	pmix_info_t *info = data->array; /* the first is the rank */
	pmix_proc_t proc = { .rank = info->value.data.rank };
	int rc = 0;

	strncpy(proc.nspace, n->name, PMIX_MAX_NSLEN);
	for (size_t i = 1; i < data->size && !rc; i++)
		rc = done(s, s->library->Store_internal(&proc, info[i].key,
							&info[i].value),
			  "store a rank's data", why);
	return rc;
}

static int register_rank_infos(const struct server *s, const struct pmix_nspace *n,
			       const struct info_list *ranks, char why[WHY_MAX])
{
	int rc = 0;

	if (s->options->gds != PMIXD_GDS_DS21)
		return register_infos(s, n, ranks, why);
	for (size_t i = 0; i < ranks->count && !rc; i++)
		rc = store_rank(s, n, ranks->items[i].value.data.darray, why);
	return rc;
}

static int register_job(const struct server *s, const struct pmix_nspace *n,
			char why[WHY_MAX])
{
	struct info_list job = {}, ranks = {};
	int rc = job_info_make(&job, n, s->options->dir);

	rc = rc ? rc : job_info_make_ranks(&ranks, n);
	rc = rc ? rc : register_infos(s, n, &job, why);
	rc = rc ? rc : register_rank_infos(s, n, &ranks, why);
	info_free(&job);
	info_free(&ranks);
	rc = rc ? rc : register_ranks(s, n, why);
	if (!rc && s->options->gds == PMIXD_GDS_DS21)
		rc = store_show(s->options->dir);
	return rc;
}

static int open_job(struct server *s, struct job *j, char why[WHY_MAX])
{
	uint32_t count;
	int rc;

	layout_ranks_at(j->nspace.layout, j->nspace.position, &count);
	j->sessions = calloc(count, sizeof(*j->sessions));
	rc = j->sessions ? init_once(s, &j->nspace, why) : -ENOMEM;
	rc = rc ? rc : register_job(s, &j->nspace, why);
	rc = rc ? rc : collect_create(&j->collect, s->library, &j->nspace,
				      s->options->collect);
	if (!rc && s->old_client)
		collect_old_client(j->collect);
	return rc;
}

static int answer(struct server *s, const struct job *j, const char *refused)
{
	const struct pmix_msg m = {
		.type = refused ? PMIX_MSG_REFUSED : PMIX_MSG_READY,
		.nspace = j->number,
		.rank = PMIX_NO_RANK,
		.text = refused,
		.text_len = refused ? strlen(refused) : 0,
	};

	return link_send(s->link, &m);
}

static void free_job(struct job *j)
{
	pmix_nspace_free(&j->nspace);
	free(j->sessions);
	free(j);
}

static int refuse_job(struct server *s, struct job *j, int error, const char *why)
{
	int rc = answer(s, j, *why ? why : strerror(-error));

	free_job(j);
	return rc;
}

int server_add_job(struct server *s, const struct pmix_msg *m)
{
	struct job *j = calloc(1, sizeof(*j));
	char why[WHY_MAX] = "";
	int rc;

	if (!j)
		return -ENOMEM;
	rc = server_job(s, m->nspace) ? -EPROTO :
					pmix_nspace_unpack(&j->nspace, m->data, m->len);
	if (rc) {
		free(j);
		return rc;
	}
	j->number = m->nspace;
	j->stall_ms = m->number;
	rc = open_job(s, j, why);
	if (rc)
		return refuse_job(s, j, rc, why);
	j->next = s->jobs;
	s->jobs = j;
	return answer(s, j, NULL);
}

int server_drop_job(struct server *s, const struct pmix_msg *m)
{
	struct job **at = &s->jobs, *j;

	while (*at && (*at)->number != m->nspace)
		at = &(*at)->next;
	j = *at;
	if (!j)
		return -EPROTO;
	*at = j->next;
	server_fail_calls(s, j);
	server_forget_fetches(s, j->number);
	s->library->server_deregister_nspace(j->nspace.name, NULL, NULL);
	collect_free(j->collect);
	free_job(j);
	return 0;
}
