/* SPDX-License-Identifier: BSD-3-Clause */
/* Time stamps of a node: from events of the engine to one line of JSON. */
#include "agent/step/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/step/control_path.h"
#include "libcoll/layout.h"
#include "libio/clock.h"
#include "libio/frames.h"
#include "libio/registration.h"
#include "libpmi/extension.h"

struct trace_rank {
	int64_t init, put, enter, finalize;
	uint64_t own[RANK_TRACE_EVENTS]; /* times that its library recorded */
	struct registration_times times;
	bool early;         /* used PMI before this agent served it */
	/* PMI_hwloc_xmlfile was asked for, answered, and the next request came. */
	int64_t topology, path, loaded;
	uint64_t requests;
	int64_t served;     /* ns in which requests waited, but collectives */
	int64_t asked;      /* when the one that waits came; 0: none does */
};

struct trace_coll {
	enum coll_kind kind;
	uint32_t seq;
	int64_t first_in, last_in, up, down, done;
	uint64_t messages, bytes; /* sent to other nodes, with their frames */
	int64_t *entered;         /* by slot; 0: not; NULL: not kept */
};

struct trace_member {
	int64_t in, out; /* 0: not, or not yet */
};

/* A barrier of some ranks: the n-th of those that have one name, by members and tag. */
struct trace_group {
	uint32_t name, number;
	struct trace_member *members; /* by slot */
};

struct trace {
	int64_t realtime; /* when the monotonic clock showed `monotonic` */
	int64_t monotonic;
	int64_t wired;
	int64_t first_init, all_init;
	uint32_t ninits, nranks;
	struct trace_rank *ranks;
	struct trace_coll colls[TRACE_COLLECTIVES_MAX];
	uint32_t ncolls;
	struct trace_group groups[TRACE_GROUPS_MAX];
	uint32_t ngroups;
	uint64_t group_messages, group_bytes; /* as of a collective */
	uint64_t dropped; /* events of collectives that are not kept */
	bool sent;
};

static int64_t trace_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* ---- events ---- */

static void once(int64_t *stamp, int64_t now)
{
	if (!*stamp)
		*stamp = now;
}

static void rank_asks(struct trace_rank *r, int64_t now)
{
	if (r->path)
		once(&r->loaded, now);
	once(&r->asked, now);
	r->requests++;
}

static void rank_enters(struct trace_rank *r, int64_t now)
{
	once(&r->enter, now);
	if (r->path) /* shared memory included */
		once(&r->loaded, now);
	r->asked = 0;
}

static void rank_is_answered(struct trace_rank *r, int64_t now)
{
	if (r->asked)
		r->served += now - r->asked;
	if (r->topology && !r->path) {
		r->served -= now - r->topology;
		r->path = now;
	}
	r->asked = 0;
}

static void rank_event(struct trace *t, enum pmi_event event,
		       uint32_t slot, int64_t now)
{
	struct trace_rank *r = &t->ranks[slot];

	switch (event) {
	case PMI_EVENT_TOPOLOGY:
		rank_asks(r, now);
		once(&r->topology, now);
		break;
	case PMI_EVENT_REQUEST:
		rank_asks(r, now);
		break;
	case PMI_EVENT_ANSWER:
		rank_is_answered(r, now);
		break;
	case PMI_EVENT_INIT:
		if (r->init)
			break;
		r->init = now;
		once(&t->first_init, now);
		if (++t->ninits == t->nranks)
			t->all_init = now;
		break;
	case PMI_EVENT_PUT:
		once(&r->put, now);
		break;
	case PMI_EVENT_ENTER:
		rank_enters(r, now);
		break;
	case PMI_EVENT_FINALIZE:
		r->finalize = now; /* of its last program */
		break;
	default:
		break;
	}
}

static struct trace_coll *find_coll(struct trace *t, enum coll_kind kind,
				    uint32_t seq)
{
	struct trace_coll *c;

	for (uint32_t i = t->ncolls; i > 0; i--) {
		c = &t->colls[i - 1];
		if (c->kind == kind && c->seq == seq)
			return c;
	}
	if (t->ncolls == TRACE_COLLECTIVES_MAX) {
		t->dropped++;
		return NULL;
	}
	c = &t->colls[t->ncolls++];
	if (t->ncolls <= TRACE_ENTERED_MAX)
		c->entered = calloc(t->nranks, sizeof(*c->entered));
	c->kind = kind;
	c->seq = seq;
	return c;
}

static void coll_event(struct trace *t, enum pmi_event event,
		       uint32_t slot, enum coll_kind kind, uint32_t seq,
		       int64_t now)
{
	struct trace_coll *c = find_coll(t, kind, seq);

	if (!c)
		return;
	switch (event) {
	case PMI_EVENT_ENTER:
		once(&c->first_in, now);
		c->last_in = now;
		if (c->entered)
			c->entered[slot] = now;
		break;
	case PMI_EVENT_UP:
		once(&c->up, now);
		break;
	case PMI_EVENT_DOWN:
		once(&c->down, now);
		break;
	case PMI_EVENT_DONE:
		c->done = now;
		break;
	default:
		break;
	}
}

static struct trace_group *add_group(struct trace *t, uint32_t name,
				     uint32_t number)
{
	struct trace_group *g = &t->groups[t->ngroups];

	if (t->ngroups < TRACE_GROUPS_MAX)
		g->members = calloc(t->nranks, sizeof(*g->members));
	if (t->ngroups == TRACE_GROUPS_MAX || !g->members) {
		t->dropped++;
		return NULL;
	}
	t->ngroups++;
	g->name = name;
	g->number = number;
	return g;
}

/* Every rank enters those of a name in order, and is let out of them in order. */
static void group_event(struct trace *t, enum pmi_event event, uint32_t slot,
			uint32_t name, int64_t now)
{
	bool enters = event == PMI_EVENT_GROUP_ENTER;
	struct trace_member *m;
	struct trace_group *g;
	uint32_t number = 0;

	for (uint32_t i = 0; i < t->ngroups; i++) {
		g = &t->groups[i];
		m = &g->members[slot];
		if (g->name != name)
			continue;
		if (!(enters ? m->in : m->out)) {
			*(enters ? &m->in : &m->out) = now;
			return;
		}
		number++;
	}
	g = enters ? add_group(t, name, number) : NULL;
	if (g)
		g->members[slot].in = now;
}

static void on_event(void *arg, enum pmi_event event, uint32_t slot,
		     enum coll_kind kind, uint32_t seq)
{
	struct service *s = arg;
	int64_t now = trace_now();

	if (event == PMI_EVENT_GROUP_ENTER || event == PMI_EVENT_GROUP_DONE) {
		group_event(s->trace, event, slot, seq, now);
		if (event == PMI_EVENT_GROUP_ENTER)
			rank_enters(&s->trace->ranks[slot], now);
		return;
	}
	if (event == PMI_EVENT_UP || event == PMI_EVENT_DOWN ||
	    event == PMI_EVENT_DONE) {
		coll_event(s->trace, event, slot, kind, seq, now);
		return;
	}
	rank_event(s->trace, event, slot, now);
	if (event == PMI_EVENT_ENTER)
		coll_event(s->trace, event, slot, kind, seq, now);
}

/* Numbers and commas, or nothing of it is taken. */
static void on_stamps(void *arg, uint32_t slot, const char *text)
{
	struct service *s = arg;
	uint64_t own[RANK_TRACE_EVENTS] = { 0 };
	char *end;

	for (int i = 0; i < RANK_TRACE_EVENTS; i++) {
		own[i] = strtoull(text, &end, 10);
		if (end == text || *end != (i + 1 < RANK_TRACE_EVENTS ? ',' : '\0'))
			return;
		text = end + 1;
	}
	memcpy(s->trace->ranks[slot].own, own, sizeof(own));
}

static bool has_spoken(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

void trace_registered(struct service *s, const struct registration *reg)
{
	struct trace_rank *r;

	if (!s->trace || reg->fd < 0 || reg->slot >= s->trace->nranks)
		return;
	r = &s->trace->ranks[reg->slot];
	r->times = reg->times;
	r->early = has_spoken(reg->fd);
}

void trace_link(struct service *s)
{
	if (s->trace && !s->trace->wired && peers_settled(s->peers))
		s->trace->wired = trace_now();
}

void trace_sent(struct service *s, const struct coll_msg *msg,
		uint64_t bytes)
{
	struct trace_coll *c = NULL;

	if (s->trace && coll_msg_is_subset(msg)) {
		s->trace->group_messages++;
		s->trace->group_bytes += FRAME_HEADER_BYTES + bytes;
	}
	if (s->trace && coll_msg_has_kind(msg))
		c = find_coll(s->trace, msg->kind, msg->seq);
	if (!c)
		return;
	c->messages++;
	c->bytes += FRAME_HEADER_BYTES + bytes;
}

/* ---- as text ---- */

/* A JSON string; node names have no odd characters, but who knows. */
static void put_name(struct buf *b, const char *name)
{
	buf_puts(b, "\"");
	for (; *name; name++)
		if (*name >= ' ' && *name < 127 && *name != '"' && *name != '\\')
			buf_append(b, name, 1);
	buf_puts(b, "\"");
}

static void put_numbers(struct buf *b, const int64_t *numbers, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		buf_printf(b, "%s%lld", i ? "," : "", (long long)numbers[i]);
}

static void put_rank(struct buf *b, uint32_t rank, const struct trace_rank *r)
{
	const int64_t numbers[] = { rank, r->init, r->put, r->enter, r->finalize };

	buf_puts(b, "[");
	put_numbers(b, numbers, sizeof(numbers) / sizeof(numbers[0]));
	for (int i = 0; i < RANK_TRACE_EVENTS; i++)
		buf_printf(b, ",%llu", (unsigned long long)r->own[i]);
	buf_puts(b, "]");
}

static void put_coll(struct buf *b, const struct trace_coll *c)
{
	const int64_t numbers[] = {
		c->seq, c->first_in, c->last_in, c->up, c->down, c->done,
		(int64_t)c->messages, (int64_t)c->bytes,
	};

	buf_printf(b, "[\"%s\",", coll_kind_name(c->kind));
	put_numbers(b, numbers, sizeof(numbers) / sizeof(numbers[0]));
	buf_puts(b, "]");
}

/* For each rank, the parts of its time. */
static void put_rests(struct buf *b, const struct trace *t)
{
	for (uint32_t i = 0; i < t->nranks; i++) {
		const struct trace_rank *r = &t->ranks[i];
		const int64_t numbers[] = {
			r->times.forked, r->times.left, r->early, r->topology,
			r->path, r->loaded, (int64_t)r->requests, r->served,
		};

		buf_puts(b, i ? ",[" : "[");
		put_numbers(b, numbers, sizeof(numbers) / sizeof(numbers[0]));
		buf_puts(b, "]");
	}
}

/* For the first collectives, when each rank entered, after the first one. */
static void put_entered(struct buf *b, const struct trace *t)
{
	for (uint32_t i = 0; i < t->ncolls; i++) {
		const struct trace_coll *c = &t->colls[i];

		buf_puts(b, i ? ",[" : "[");
		for (uint32_t r = 0; c->entered && r < t->nranks; r++)
			buf_printf(b, "%s%lld", r ? "," : "",
				   c->entered[r] ? (long long)
					(c->entered[r] - c->first_in) : -1);
		buf_puts(b, "]");
	}
}

static void put_group(struct buf *b, const struct trace *t,
		      const struct trace_group *g)
{
	int64_t first = INT64_MAX, done = 0;

	for (uint32_t r = 0; r < t->nranks; r++) {
		const struct trace_member *m = &g->members[r];

		if (m->in && m->in < first)
			first = m->in;
		if (m->out > done)
			done = m->out;
	}
	buf_printf(b, "[%u,%u,%lld,%lld,[", g->name, g->number,
		   (long long)first, (long long)done);
	for (uint32_t r = 0; r < t->nranks; r++)
		buf_printf(b, "%s%lld", r ? "," : "", g->members[r].in ?
			   (long long)(g->members[r].in - first) : -1);
	buf_puts(b, "]]");
}

static void put_groups(struct buf *b, const struct trace *t)
{
	for (uint32_t i = 0; i < t->ngroups; i++) {
		buf_puts(b, i ? "," : "");
		put_group(b, t, &t->groups[i]);
	}
}

static int write_line(const struct service *s, struct buf *b)
{
	const struct trace *t = s->trace;
	const struct pmi_step *step = s->step;
	const struct agent_options *o = s->node->options;
	const int64_t agent[] = {
		o->launch_ns, o->prefork_ns, o->ready_ns, t->wired,
		t->first_init, t->all_init, trace_now(),
	};
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(step->layout, step->position,
						&count);

	buf_puts(b, "{\"node\":");
	put_name(b, node_own_name(s->node));
	buf_printf(b, ",\"position\":%u,\"realtime\":%lld,\"monotonic\":%lld",
		   step->position, (long long)t->realtime,
		   (long long)t->monotonic);
	buf_puts(b, ",\"agent\":[");
	put_numbers(b, agent, sizeof(agent) / sizeof(agent[0]));
	buf_printf(b, "],\"dropped\":%llu,\"collectives\":[",
		   (unsigned long long)t->dropped);
	for (uint32_t i = 0; i < t->ncolls; i++) {
		buf_puts(b, i ? "," : "");
		put_coll(b, &t->colls[i]);
	}
	buf_puts(b, "],\"ranks\":[");
	for (uint32_t i = 0; i < count; i++) {
		buf_puts(b, i ? "," : "");
		put_rank(b, ranks[i], &t->ranks[i]);
	}
	buf_printf(b, "],\"wanted\":%lld,\"rests\":[", (long long)o->wanted_ns);
	put_rests(b, t);
	buf_puts(b, "],\"entered\":[");
	put_entered(b, t);
	buf_puts(b, "],\"groups\":[");
	put_groups(b, t);
	return buf_printf(b, "],\"group_sent\":[%llu,%llu]}",
			  (unsigned long long)t->group_messages,
			  (unsigned long long)t->group_bytes);
}

void trace_send(struct service *s)
{
	struct control_msg msg = { .type = CONTROL_TRACE };
	struct buf line;

	if (!s->trace || s->trace->sent)
		return;
	s->trace->sent = true;
	buf_init(&line, TRACE_LINE_MAX);
	if (!write_line(s, &line)) {
		msg.body = line.data;
		msg.body_len = line.len;
		control_path_send_msg(s, &msg);
	}
	buf_free(&line);
}

/* ---- life ---- */

int trace_open(struct service *s)
{
	struct trace *t;

	if (!s->node->options->trace)
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	s->trace = t;
	layout_ranks_at(s->step->layout, s->step->position, &t->nranks);
	t->ranks = calloc(t->nranks, sizeof(*t->ranks));
	if (!t->ranks)
		return -ENOMEM;
	t->monotonic = trace_now();
	t->realtime = clock_ns(CLOCK_REALTIME);
	s->ops.event = on_event;
	s->ops.rank_trace = on_stamps;
	return 0;
}

void trace_free(struct service *s)
{
	if (!s->trace)
		return;
	for (uint32_t i = 0; i < s->trace->ncolls; i++)
		free(s->trace->colls[i].entered);
	for (uint32_t i = 0; i < s->trace->ngroups; i++)
		free(s->trace->groups[i].members);
	free(s->trace->ranks);
	free(s->trace);
}
