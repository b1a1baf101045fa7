/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs in libpmix's thread, which must never wait: each call copies what it is given
 * into an event.
 */
#include "helpers/pmixd/upcalls.h"

#include <stdlib.h>
#include <string.h>

#include "helpers/pmixd/info.h"
#include "helpers/pmixd/names.h"
#include "helpers/pmixd/notify.h"
#include "helpers/pmixd/spawn.h"
#include "helpers/pmixd/store.h"

/* libpmix gives its calls no argument of the program's. */
static struct events *queue;
static const struct library *library;
static const char *own_dir;
static bool untrimmed; /* own_dir: store_trim */

static pmix_status_t push(struct event *e, pmix_status_t status)
{
	if (!e)
		return PMIX_ERR_NOMEM;
	events_push(queue, e);
	return status;
}

/* ---- a client comes and goes ---- */

/* From 5.0.8 on libpmix waits for this answer or for a call. */
static pmix_status_t on_connected(const pmix_proc_t *proc, void *object,
				  pmix_info_t info[], size_t ninfo,
				  pmix_op_cbfunc_t done, void *done_arg)
{
	return push(event_create(EVENT_CONNECTED, proc), PMIX_OPERATION_SUCCEEDED);
}

static pmix_status_t on_finalized(const pmix_proc_t *proc, void *object,
				  pmix_op_cbfunc_t done, void *done_arg)
{
	return push(event_create(EVENT_FINALIZED, proc), PMIX_OPERATION_SUCCEEDED);
}

static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status,
			      const char msg[], pmix_proc_t procs[], size_t nprocs,
			      pmix_op_cbfunc_t done, void *done_arg)
{
	struct event *e = event_create(EVENT_ABORT, proc);

	if (e) {
		e->status = status;
		e->text = msg ? strdup(msg) : NULL;
		e->callback = (struct callback){ .status = done, .arg = done_arg };
	}
	return push(e, PMIX_SUCCESS);
}

/* ---- fence ---- */

/* Without wildcards: they stand for a whole namespace. */
static bool list_members(struct event *e, const pmix_proc_t procs[], size_t nprocs)
{
	e->ranks = malloc(nprocs * sizeof(*e->ranks));
	if (!e->ranks)
		return false;
	for (size_t i = 0; i < nprocs; i++)
		e->ranks[e->count++] = procs[i].rank;
	return true;
}

static bool take_members(struct event *e, const pmix_proc_t procs[], size_t nprocs)
{
	bool all = false;

	for (size_t i = 0; i < nprocs; i++) {
		all |= procs[i].rank == PMIX_RANK_WILDCARD;
		e->xns |= strncmp(procs[i].nspace, e->nspace, PMIX_MAX_NSLEN) != 0;
	}
	return all || list_members(e, procs, nprocs);
}

static bool is_true(const pmix_info_t *info)
{
	return info->value.type != PMIX_BOOL || info->value.data.flag;
}

/* 0 stands for none. */
static void take_timeout(struct event *e, const pmix_info_t *info)
{
	if (info_is(info, PMIX_TIMEOUT) && info->value.type == PMIX_INT &&
	    info->value.data.integer > 0 && info->value.data.integer < INT32_MAX / 1000)
		e->timeout_ms = (uint32_t)info->value.data.integer * 1000;
}

/* libpmix 4 takes care of a group's limit by itself, and would answer twice. */
static void take_member_directive(struct event *e, const pmix_info_t *info)
{
	if (info_is(info, PMIX_COLLECT_DATA))
		e->collect = is_true(info);
	else if (info_is(info, PMIX_LOCAL_COLLECTIVE_STATUS))
		e->lost = info->value.type == PMIX_STATUS &&
			  info->value.data.status != PMIX_SUCCESS;
}

static void take_fence_directive(struct event *e, const pmix_info_t *info)
{
	take_timeout(e, info);
	take_member_directive(e, info);
}

/* Keeps members of several namespaces: which ranks are of the own one is seen later. */
static bool keep_members(struct event *e, const pmix_proc_t procs[], size_t nprocs)
{
	free(e->ranks);
	e->ranks = malloc(nprocs * sizeof(*e->ranks));
	e->data = malloc(nprocs * sizeof(*procs));
	e->len = e->data ? nprocs * sizeof(*procs) : 0;
	if (e->data)
		memcpy(e->data, procs, e->len);
	return e->ranks && e->data;
}

/* NULL: no memory. */
static struct event *new_collective(enum event_type type, const pmix_proc_t procs[],
				    size_t nprocs)
{
	struct event *e = nprocs ? event_create(type, procs) : NULL;

	if (!e)
		return NULL;
	if (take_members(e, procs, nprocs) &&
	    (!e->xns || type == EVENT_GROUP || keep_members(e, procs, nprocs)))
		return e;
	event_free(e);
	return NULL;
}

/* Once: what the server knows of the job is in it by now. */
static void trim(void)
{
	if (untrimmed)
		store_trim(own_dir);
	untrimmed = false;
}

/* The host frees the data that libpmix has collected. */
static pmix_status_t on_fence(const pmix_proc_t procs[], size_t nprocs,
			      const pmix_info_t info[], size_t ninfo, char *data,
			      size_t ndata, pmix_modex_cbfunc_t done, void *done_arg)
{
	struct event *e = new_collective(EVENT_FENCE, procs, nprocs);

	trim();
	if (!e || e->xns)
		free(data);
	if (!e)
		return PMIX_ERR_NOMEM;
	if (!e->xns) {
		e->data = data;
		e->len = ndata;
	}
	for (size_t i = 0; i < ninfo; i++)
		take_fence_directive(e, &info[i]);
	e->callback = (struct callback){ .data = done, .arg = done_arg };
	return push(e, PMIX_SUCCESS);
}

/* ---- group ---- */

/* Copies the data, which libpmix keeps. */
static void take_endpoints(struct event *e, const pmix_byte_object_t *bytes)
{
	e->data = bytes->size ? malloc(bytes->size) : NULL;
	e->len = e->data ? bytes->size : 0;
	e->unserved |= e->len < bytes->size;
	if (e->data)
		memcpy(e->data, bytes->bytes, e->len);
}

static void take_group_directive(struct event *e, const pmix_info_t *info)
{
	if (info_is(info, PMIX_GROUP_ASSIGN_CONTEXT_ID))
		e->context |= is_true(info);
	else if (info_is(info, PMIX_GROUP_LOCAL_ONLY))
		e->local |= is_true(info);
	else if (info_is(info, PMIX_GROUP_ENDPT_DATA) &&
		 info->value.type == PMIX_BYTE_OBJECT && !e->data)
		take_endpoints(e, &info->value.data.bo);
	else if (info_is(info, PMIX_GROUP_ADD_MEMBERS))
		e->unserved = true;
	else
		take_member_directive(e, info);
}

/*
 * libpmix 4 and 5 pack what members contribute (PMIX_GROUP_INFO) into the endpoint data,
 * too; libpmix 6 does not, nor does it know of those data.
 */
static bool has_unpacked_info(const struct event *e, const pmix_info_t info[],
			      size_t ninfo)
{
	for (size_t i = 0; i < ninfo; i++)
		if (info_is(&info[i], PMIX_GROUP_INFO))
			return !e->data && !e->local;
	return false;
}

/*
 * libpmix 5 calls twice for the end of a group that no other node has to know of, and
 * takes one answer only, unless it is given at once.
 */
static pmix_status_t queue_group(struct event *e)
{
	if (!e->local || !e->destruct)
		return push(e, PMIX_SUCCESS);
	event_free(e);
	return PMIX_OPERATION_SUCCEEDED;
}

/* An error that this returned only the last of the node's members would hear of. */
static pmix_status_t on_group(pmix_group_operation_t op, char *name,
			      const pmix_proc_t procs[], size_t nprocs,
			      const pmix_info_t info[], size_t ninfo,
			      pmix_info_cbfunc_t done, void *done_arg)
{
	struct event *e = new_collective(EVENT_GROUP, procs, nprocs);

	if (!e)
		return PMIX_ERR_NOMEM;
	e->text = strdup(name);
	if (!e->text) {
		event_free(e);
		return PMIX_ERR_NOMEM;
	}
	e->destruct = op == PMIX_GROUP_DESTRUCT;
	for (size_t i = 0; i < ninfo; i++)
		take_group_directive(e, &info[i]);
	e->unserved |= has_unpacked_info(e, info, ninfo);
	e->callback = (struct callback){ .infos = done, .arg = done_arg };
	return queue_group(e);
}

/* ---- connect ---- */

static pmix_status_t push_connect(bool disconnect, const pmix_proc_t procs[],
				  size_t nprocs, const pmix_info_t info[], size_t ninfo,
				  struct callback callback)
{
	struct event *e = new_collective(EVENT_CONNECT, procs, nprocs);

	if (!e)
		return PMIX_ERR_NOMEM;
	e->destruct = disconnect;
	for (size_t i = 0; i < ninfo; i++)
		take_fence_directive(e, &info[i]);
	e->callback = callback;
	return push(e, PMIX_SUCCESS);
}

static pmix_status_t on_connect(const pmix_proc_t procs[], size_t nprocs,
				const pmix_info_t info[], size_t ninfo,
				pmix_op_cbfunc_t done, void *done_arg)
{
	struct callback callback = { .status = done, .arg = done_arg };

	return push_connect(false, procs, nprocs, info, ninfo, callback);
}

static pmix_status_t on_disconnect(const pmix_proc_t procs[], size_t nprocs,
				   const pmix_info_t info[], size_t ninfo,
				   pmix_op_cbfunc_t done, void *done_arg)
{
	struct callback callback = { .status = done, .arg = done_arg };

	return push_connect(true, procs, nprocs, info, ninfo, callback);
}

/* ---- events of PMIx ---- */

/* libpmix has told the clients of this node. */
static pmix_status_t on_notify(pmix_status_t code, const pmix_proc_t *source,
			       pmix_data_range_t range, pmix_info_t info[],
			       size_t ninfo, pmix_op_cbfunc_t done, void *done_arg)
{
	const struct notification n = {
		.code = code, .source = *source, .range = range,
		.info = info, .ninfo = ninfo,
	};
	struct event *e;

	if (range == PMIX_RANGE_RM || range == PMIX_RANGE_PROC_LOCAL)
		return PMIX_OPERATION_SUCCEEDED;
	e = event_create(EVENT_NOTIFY, source);
	if (e && notify_pack(library, &n, &e->data, &e->len)) {
		event_free(e);
		return PMIX_ERROR;
	}
	return push(e, PMIX_OPERATION_SUCCEEDED);
}

/* All events come to all nodes: libpmix knows its clients' wishes. */
static pmix_status_t on_register(pmix_status_t *codes, size_t ncodes,
				 const pmix_info_t info[], size_t ninfo,
				 pmix_op_cbfunc_t done, void *done_arg)
{
	return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_deregister(pmix_status_t *codes, size_t ncodes,
				   pmix_op_cbfunc_t done, void *done_arg)
{
	return PMIX_OPERATION_SUCCEEDED;
}

/* ---- direct modex ---- */

static void take_directive(struct event *e, const pmix_info_t *info)
{
	if (info_is(info, PMIX_REQUIRED_KEY) &&
	    info->value.type == PMIX_STRING && !e->text)
		e->text = strdup(info->value.data.string);
	else if (info_is(info, PMIX_IMMEDIATE) && is_true(info))
		e->timeout_ms = 0;
	else
		take_timeout(e, info);
}

static pmix_status_t on_get(const pmix_proc_t *proc, const pmix_info_t info[],
			    size_t ninfo, pmix_modex_cbfunc_t done, void *done_arg)
{
	struct event *e = event_create(EVENT_GET, proc);

	for (size_t i = 0; e && i < ninfo; i++)
		take_directive(e, &info[i]);
	if (e)
		e->callback = (struct callback){ .data = done, .arg = done_arg };
	return push(e, PMIX_SUCCESS);
}

void upcalls_committed(pmix_status_t status, char *data, size_t len, void *event)
{
	struct event *e = event;

	e->status = status;
	if (status == PMIX_SUCCESS && len) {
		e->data = malloc(len);
		if (e->data) {
			memcpy(e->data, data, len);
			e->len = len;
		} else {
			e->status = PMIX_ERR_NOMEM;
		}
	}
	events_push(queue, e);
}

/* ---- names and spawn ---- */

/* The request is ready: it becomes the event's. */
static pmix_status_t push_request(enum event_type type, const pmix_proc_t *proc,
				  struct buf *request, struct callback callback,
				  pmix_status_t status)
{
	struct event *e = event_create(type, proc);

	if (!e || status) {
		buf_free(request);
		if (e)
			event_free(e);
		return status ? status : PMIX_ERR_NOMEM;
	}
	e->data = request->data;
	e->len = request->len;
	e->callback = callback;
	return push(e, PMIX_SUCCESS);
}

static pmix_status_t on_publish(const pmix_proc_t *proc, const pmix_info_t info[],
				size_t ninfo, pmix_op_cbfunc_t done, void *done_arg)
{
	struct callback callback = { .status = done, .arg = done_arg };
	struct buf request;
	pmix_status_t status = names_publish(&request, library, info, ninfo);

	return push_request(EVENT_NAMES, proc, &request, callback, status);
}

static pmix_status_t push_keys(enum names_op op, const pmix_proc_t *proc, char **keys,
			       const pmix_info_t info[], size_t ninfo,
			       struct callback callback)
{
	struct buf request;
	pmix_status_t status = names_ask(&request, op, keys, info, ninfo);

	return push_request(EVENT_NAMES, proc, &request, callback, status);
}

static pmix_status_t on_unpublish(const pmix_proc_t *proc, char **keys,
				  const pmix_info_t info[], size_t ninfo,
				  pmix_op_cbfunc_t done, void *done_arg)
{
	return push_keys(NAMES_UNPUBLISH, proc, keys, info, ninfo,
			 (struct callback){ .status = done, .arg = done_arg });
}

static pmix_status_t on_lookup(const pmix_proc_t *proc, char **keys,
			       const pmix_info_t info[], size_t ninfo,
			       pmix_lookup_cbfunc_t done, void *done_arg)
{
	return push_keys(NAMES_LOOKUP, proc, keys, info, ninfo,
			 (struct callback){ .found = done, .arg = done_arg });
}

static pmix_status_t on_spawn(const pmix_proc_t *proc, const pmix_info_t job_info[],
			      size_t ninfo, const pmix_app_t apps[], size_t napps,
			      pmix_spawn_cbfunc_t done, void *done_arg)
{
	struct callback callback = { .spawned = done, .arg = done_arg };
	struct buf request;
	pmix_status_t status = spawn_make(&request, job_info, ninfo, apps, napps, own_dir);

	return push_request(EVENT_SPAWN, proc, &request, callback, status);
}

/* ---- */

static void push_lost(const pmix_proc_t *proc)
{
	struct event *e = event_create(EVENT_LOST, proc);

	if (e)
		events_push(queue, e);
}

/*
 * The client that has gone is the source of the event, or named in the event as affected:
 * releases differ. Clients that went at the same time are named one by one.
 */
static void push_all_lost(const pmix_proc_t *source, const pmix_info_t info[], size_t ninfo)
{
	for (size_t i = 0; i < ninfo; i++) {
		if (info[i].value.type != PMIX_PROC)
			continue;
		if (info_is(&info[i], PMIX_EVENT_AFFECTED_PROC))
			source = info[i].value.data.proc;
		else if (info_is(&info[i], PMIX_PROCID))
			push_lost(info[i].value.data.proc);
	}
	if (source)
		push_lost(source);
}

void upcalls_notified(size_t id, pmix_status_t status, const pmix_proc_t *source,
		      pmix_info_t info[], size_t ninfo, pmix_info_t results[],
		      size_t nresults, pmix_event_notification_cbfunc_fn_t done,
		      void *done_arg)
{
	if (status == PMIX_ERR_LOST_CONNECTION)
		push_all_lost(source, info, ninfo);
	if (done)
		done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

void upcalls_init(union upcalls_module *m, const struct library *l, struct events *q,
		  const char *dir, bool trims)
{
	queue = q;
	library = l;
	own_dir = dir;
	untrimmed = trims;
	memset(m, 0, sizeof(*m));
	m->module.client_connected2 = on_connected;
	m->module.client_finalized = on_finalized;
	m->module.abort = on_abort;
	m->module.fence_nb = on_fence;
	m->module.group = on_group;
	m->module.notify_event = on_notify;
	m->module.register_events = on_register;
	m->module.deregister_events = on_deregister;
	m->module.direct_modex = on_get;
	m->module.publish = on_publish;
	m->module.lookup = on_lookup;
	m->module.unpublish = on_unpublish;
	m->module.spawn = on_spawn;
	m->module.connect = on_connect;
	m->module.disconnect = on_disconnect;
}
