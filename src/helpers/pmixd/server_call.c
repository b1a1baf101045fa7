/* SPDX-License-Identifier: BSD-3-Clause */
/* Fences, groups, look-ups, names, aborts: from libpmix to the agent, and the answer back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helpers/pmixd/names.h"
#include "helpers/pmixd/server_internal.h"

/* ---- calls that wait ---- */

static struct call *add_call(struct server *s, struct job *j, const struct event *e,
			     enum pmix_msg_type answer)
{
	struct call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	s->ncalls++;
	*c = (struct call){
		.next = s->calls,
		.id = ++s->last_id,
		.answer = answer,
		.job = j,
		.callback = e->callback,
		.xns_connect = e->xns_connect,
		.deadline = e->timeout_ms ? server_deadline(e->timeout_ms) : SERVER_NEVER,
	};
	s->calls = c;
	return c;
}

/* The call with this id is the caller's; NULL: there is none. */
static struct call *take_call(struct server *s, uint64_t id,
			      enum pmix_msg_type answer)
{
	struct call **at = &s->calls, *c;

	while (*at && ((*at)->id != id || (*at)->answer != answer))
		at = &(*at)->next;
	c = *at;
	if (!c)
		return NULL;
	*at = c->next;
	s->ncalls--;
	return c;
}

static void free_call(struct call *c)
{
	free(c->ranks);
	free(c->xns_connect);
	free(c);
}

static void end_call(struct call *c, pmix_status_t status, char *data, size_t len)
{
	server_answer(&c->callback, status, data, len);
	free_call(c);
}

void server_fail_calls(struct server *s, const struct job *j)
{
	for (struct call **at = &s->calls, *c; (c = *at);) {
		if (c->job != j) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		s->ncalls--;
		end_call(c, PMIX_ERROR, NULL, 0);
	}
}

int64_t server_calls_due(const struct server *s)
{
	int64_t first = SERVER_NEVER;

	for (const struct call *c = s->calls; c; c = c->next)
		first = c->deadline < first ? c->deadline : first;
	return first;
}

/*
 * The agent is not told: what has been entered stays so, and ends when others enter it
 * late, whose own it then is. A connect libpmix ends by itself, and it must not be
 * answered, too.
 */
void server_expire_calls(struct server *s, int64_t now)
{
	for (struct call *c = s->calls; c; c = c->next) {
		if (c->deadline > now)
			continue;
		if (!c->callback.status)
			server_answer(&c->callback, PMIX_ERR_TIMEOUT, NULL, 0);
		c->callback = (struct callback){};
		c->deadline = SERVER_NEVER;
		c->late = true;
	}
}

/* Answers a call that could not be passed to the agent; its connection stays. */
static int refuse(const struct event *e, int error)
{
	server_answer(&e->callback, server_status(error), NULL, 0);
	return 0;
}

/* The answer tells the members of a new group. */
static void keep_members(struct call *c, struct event *e)
{
	c->group = true;
	c->ranks = e->ranks;
	c->count = e->count;
	e->ranks = NULL;
}

/* Send what a call is about, with the m->len bytes of `data` unless that is NULL. */
static int send_call_with(struct server *s, struct job *j, struct event *e,
			  struct pmix_msg *m, const struct payload_vec *data,
			  enum pmix_msg_type answer)
{
	struct call *c;
	int rc;

	if (s->ncalls >= CALLS_MAX)
		return refuse(e, server_full(s, "calls without an answer", CALLS_MAX));
	c = add_call(s, j, e, answer);
	if (!c)
		return refuse(e, -ENOMEM);
	e->xns_connect = NULL; /* the call has it now */
	if (m->op == PMIX_OP_CONSTRUCT)
		keep_members(c, e);
	m->nspace = j->number;
	m->id = c->id;
	rc = data ? link_send_pieces(s->link, m, data) : link_send(s->link, m);
	if (rc)
		end_call(take_call(s, c->id, answer), server_status(rc), NULL, 0);
	return 0;
}

static int send_call(struct server *s, struct job *j, struct event *e,
		     struct pmix_msg *m, enum pmix_msg_type answer)
{
	return send_call_with(s, j, e, m, NULL, answer);
}

/* ---- fences, groups and connections ---- */

static int by_rank(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Ascending, each once. */
static void sort_members(struct event *e)
{
	uint32_t n = 0;

	qsort(e->ranks, e->count, sizeof(*e->ranks), by_rank);
	for (uint32_t i = 0; i < e->count; i++)
		if (!n || e->ranks[n - 1] != e->ranks[i])
			e->ranks[n++] = e->ranks[i];
	e->count = n;
}

/* Are they all of the job's? The agent takes a list for a subset. */
static void name_members(struct event *e, const struct job *j)
{
	if (!e->ranks)
		return;
	sort_members(e);
	if (e->count != layout_ranks(j->nspace.layout))
		return;
	free(e->ranks);
	e->ranks = NULL;
	e->count = 0;
}

static bool is_member(const struct event *e, uint32_t rank)
{
	return !e->ranks || bsearch(&rank, e->ranks, e->count, sizeof(rank), by_rank);
}

/* The slots of this node's members; how many they are. */
static uint32_t list_own(const struct job *j, const struct event *e, uint32_t *slots)
{
	uint32_t count, n = 0;
	const uint32_t *ranks = layout_ranks_at(j->nspace.layout, j->nspace.position,
						&count);

	for (uint32_t i = 0; i < count; i++)
		if (is_member(e, ranks[i]))
			slots[n++] = i;
	return n;
}

/*
 * libpmix asks for a fence also when the last member that it waits for has gone. Nobody
 * may take that for an entry: the agents know by their own ways that it never will be.
 */
static bool is_lost(const struct job *j, const struct event *e, const uint32_t *slots,
		    uint32_t n)
{
	return e->lost || server_any_killed(j, slots, n);
}

int server_give_nothing(const struct job *j, const uint32_t *slots, uint32_t count,
			struct buf *b)
{
	uint32_t here;
	const uint32_t *ranks = layout_ranks_at(j->nspace.layout, j->nspace.position,
						&here);
	int rc = 0;

	for (uint32_t i = 0; i < count && !rc; i++)
		rc = pmix_entry_pack(b, &(struct pmix_entry){ .rank = ranks[slots[i]] });
	return rc;
}

/* For a connection with other namespaces: who speaks for this one, and for the node. */
static void name_speakers(const struct job *j, const struct event *e, uint32_t slot)
{
	uint32_t here;

	e->xns_connect->first = e->ranks ? e->ranks[0] : 0;
	e->xns_connect->rank = layout_ranks_at(j->nspace.layout, j->nspace.position,
					    &here)[slot];
}

/* Append what the members of this node give, in these slots. */
static int give_slots(struct job *j, const struct event *e, const uint32_t *slots,
		      uint32_t n, struct pieces *out)
{
	if (e->type == EVENT_GROUP)
		return group_give(j, e, slots, n, &out->last);
	if (e->xns_connect && e->xns_connect->with_data)
		return collect_give_ranks(j->collect, slots, n, out);
	if (e->type == EVENT_CONNECT)
		return server_give_nothing(j, slots, n, &out->last);
	return collect_give(j->collect, e, slots, n, out);
}

static int give_own(struct job *j, const struct event *e, struct pieces *out)
{
	uint32_t count, n, *slots;
	int rc = -EINVAL;

	layout_ranks_at(j->nspace.layout, j->nspace.position, &count);
	slots = malloc(count * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	n = list_own(j, e, slots);
	if (e->xns_connect && n)
		name_speakers(j, e, slots[0]);
	if (n && is_lost(j, e, slots, n)) {
		server_miss(j, slots, n);
		rc = -ECONNRESET;
	} else if (n) {
		rc = give_slots(j, e, slots, n, out);
	}
	free(slots);
	return rc;
}

static bool exist(const struct event *e, const struct job *j)
{
	return !e->xns &&
	       (!e->count ||
		e->ranks[e->count - 1] < layout_ranks(j->nspace.layout));
}

static enum pmix_op op_of(const struct event *e)
{
	if (e->type == EVENT_GROUP)
		return e->destruct ? PMIX_OP_DESTRUCT : PMIX_OP_CONSTRUCT;
	if (e->type == EVENT_CONNECT)
		return e->destruct ? PMIX_OP_DISCONNECT : PMIX_OP_CONNECT;
	return PMIX_OP_FENCE;
}

static int enter(struct server *s, struct job *j, struct event *e)
{
	struct pmix_msg m = {
		.type = PMIX_MSG_ENTER,
		.op = op_of(e),
		.rank = PMIX_NO_RANK,
		.text = e->text,
		.text_len = e->text ? strlen(e->text) : 0,
	};
	struct pieces data;
	int rc;

	pieces_init(&data, PMIX_MSG_BYTES_MAX);
	rc = pmix_members_pack(&data.last, e->ranks, e->count);
	rc = rc ? rc : give_own(j, e, &data);
	rc = rc ? rc : pieces_end(&data);
	m.len = data.list.bytes;
	rc = rc ? refuse(e, rc) :
		  send_call_with(s, j, e, &m, &data.list, PMIX_MSG_ENDED);
	pieces_free(&data);
	return rc;
}

int server_enter(struct server *s, struct job *j, struct event *e)
{
	name_members(e, j);
	if (e->unserved || !exist(e, j))
		return refuse(e, -ENOTSUP);
	if (!e->local)
		return enter(s, j, e);
	return e->lost ? refuse(e, -ECONNRESET) :
			 group_answer(j, &e->callback, e->ranks, e->count, NULL, 0);
}

/* The group operation succeeded. */
static int end_group(struct call *c, const struct pmix_msg *m)
{
	int rc = group_answer(c->job, &c->callback, c->ranks, c->count, m->data, m->len);

	free_call(c);
	return rc;
}

/* All members of this namespace have entered the connect. */
static int end_xns_connect(struct server *s, struct call *c, const struct pmix_msg *m)
{
	server_xns_gathered(s, c, m);
	free_call(c);
	return 0;
}

/* Nobody waits any more; those of other namespaces do not wait for this one. */
static int end_late(struct server *s, struct call *c, const struct pmix_msg *m)
{
	struct pmix_msg failed = *m;

	failed.status = -ETIMEDOUT;
	if (c->xns_connect)
		server_xns_gathered(s, c, &failed);
	free_call(c);
	return 0;
}

int server_ended(struct server *s, const struct pmix_msg *m, struct payload *message)
{
	struct call *c = take_call(s, m->id, PMIX_MSG_ENDED);
	char *store = NULL;
	size_t len = 0;
	int rc = m->status;

	if (!c)
		return -EPROTO;
	if (c->late)
		return end_late(s, c, m);
	if (c->xns_connect)
		return end_xns_connect(s, c, m);
	if (!rc && c->group)
		return end_group(c, m);
	if (!rc && c->callback.data)
		rc = collect_take(c->job->collect, m, message, &store, &len);
	end_call(c, server_status(rc), store, len);
	return rc == -EPROTO ? rc : 0;
}

/* ---- data of a rank of another node ---- */

/*
 * Keys of PMIx itself are the server's to know: nobody else does. A rank number that
 * stands for others names nobody.
 */
static bool can_have(const struct job *j, const struct event *e)
{
	return e->rank < layout_ranks(j->nspace.layout) &&
	       (!e->text || strncmp(e->text, "pmix.", 5));
}

static int fetch(struct server *s, struct job *j, struct event *e)
{
	size_t len = e->text ? strlen(e->text) : 0;
	struct pmix_msg m = {
		.type = PMIX_MSG_FETCH,
		.rank = e->rank,
		.number = e->timeout_ms,
		.text = e->text,
		.text_len = len,
	};

	if (len > PMIX_MSG_TEXT_MAX)
		return refuse(e, -ENOENT);
	return send_call(s, j, e, &m, PMIX_MSG_FETCHED);
}

static int answer_copy(const struct callback *callback, const void *data, size_t len)
{
	char *copy = malloc(len ? len : 1);

	if (copy)
		memcpy(copy, data, len);
	server_answer(callback, copy ? PMIX_SUCCESS : PMIX_ERR_NOMEM, copy,
		      copy ? len : 0);
	return 0;
}

int server_get(struct server *s, struct job *j, struct event *e)
{
	const void *data;
	size_t len;

	if (!j && server_find_remote_proc(s, e, &data, &len))
		return answer_copy(&e->callback, data, len);
	if (!j || !can_have(j, e))
		return refuse(e, -ENOENT);
	if (collect_find(j->collect, e->rank, e->text, &data, &len))
		return answer_copy(&e->callback, data, len);
	return fetch(s, j, e);
}

int server_fetched(struct server *s, const struct pmix_msg *m)
{
	struct call *c = take_call(s, m->id, PMIX_MSG_FETCHED);
	int rc = 0;

	if (!c)
		return -EPROTO;
	if (m->status)
		server_answer(&c->callback, server_status(m->status), NULL, 0);
	else if (!c->late)
		rc = answer_copy(&c->callback, m->data, m->len);
	free_call(c);
	return rc;
}

/* ---- names and spawn ---- */

/* Clients of PMIx 3 find no data of the processes that are spawned. */
int server_ask(struct server *s, struct job *j, struct event *e)
{
	bool spawn = e->type == EVENT_SPAWN;
	struct pmix_msg m = {
		.type = spawn ? PMIX_MSG_SPAWN : PMIX_MSG_NAMES,
		.rank = e->rank,
		.data = e->data,
		.len = e->len,
	};

	if (spawn && s->old_client)
		return refuse(e, -ENOTSUP);
	return send_call(s, j, e, &m, spawn ? PMIX_MSG_SPAWNED : PMIX_MSG_NAMED);
}

/* libpmix passes on what was found only with success; who looks sees what is missing. */
static pmix_status_t give_found(const struct server *s, const struct callback *callback,
				const struct names_answer *a)
{
	pmix_pdata_t *found = names_found(s->library, a);

	if (!found)
		return PMIX_ERR_UNPACK_FAILURE;
	callback->found(PMIX_SUCCESS, found, a->count, callback->arg);
	names_free_found(s->library, found, a->count);
	return PMIX_SUCCESS;
}

int server_named(struct server *s, const struct pmix_msg *m)
{
	struct call *c = take_call(s, m->id, PMIX_MSG_NAMED);
	struct names_answer a = {};
	pmix_status_t status;
	int rc = m->status;

	if (!c)
		return -EPROTO;
	rc = rc ? rc : names_unpack_answer(&a, m->data, m->len);
	status = server_status(rc ? rc : a.error);
	if (!status && c->callback.found)
		status = give_found(s, &c->callback, &a);
	if (c->xns_connect)
		server_xns_found(s, c, rc ? rc : a.error, &a);
	else if (status || !c->callback.found)
		server_answer(&c->callback, status, NULL, 0);
	if (status && !c->callback.arg)
		log_error(s->log, "PMIx_Connect of other nodes may fail: the data of local ranks cannot be published");
	if (!rc)
		free(a.items);
	free_call(c);
	return 0;
}

int server_spawned(struct server *s, const struct pmix_msg *m)
{
	struct call *c = take_call(s, m->id, PMIX_MSG_SPAWNED);
	pmix_nspace_t nspace;

	if (!c || !c->callback.spawned)
		return -EPROTO;
	snprintf(nspace, sizeof(nspace), "%.*s", (int)m->text_len, m->text);
	c->callback.spawned(m->status ? PMIX_ERR_PROC_FAILED_TO_START : PMIX_SUCCESS,
			m->status ? NULL : nspace, c->callback.arg);
	free_call(c);
	return 0;
}

/* ---- aborts ---- */

int server_abort(struct server *s, struct job *j, struct event *e)
{
	struct pmix_msg m = {
		.type = PMIX_MSG_ABORT,
		.rank = e->rank,
		.status = e->status,
		.text = e->text,
		.text_len = e->text ? strnlen(e->text, PMIX_MSG_TEXT_MAX) : 0,
	};

	return send_call(s, j, e, &m, PMIX_MSG_ABORTED);
}

int server_aborted(struct server *s, const struct pmix_msg *m)
{
	struct call *c = take_call(s, m->id, PMIX_MSG_ABORTED);

	if (!c)
		return -EPROTO;
	end_call(c, PMIX_SUCCESS, NULL, 0);
	return 0;
}
