/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent is told before it begins: defaults, and the form as bytes. */
#include "agent/setup.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "libio/listener_socket.h"
#include "libutil/budget.h"
#include "libutil/pack.h"

#define SETUP_MAGIC 0x61327870u /* "px2a" */
#define TEXT_MAX ((size_t)16 << 20)

void agent_options_init(struct agent_options *o)
{
	memset(o, 0, sizeof(*o));
	o->region_size = REGION_SIZE_DEFAULT;
	o->buffer_limit = BUDGET_DEFAULT;
	o->handshake_ms = 5000;
	o->connect_back_ms = 100;
	o->connect_ms = 60000;
	o->absent_ms = 2000;
	o->drain_ms = 5000;
	o->dead_peer_ms = 60000;
	o->stall_ms = 60000;
}

uint16_t step_port(const struct agent_options *o, const struct layout *layout,
		   uint32_t position, uint32_t try)
{
	return seeded_port(o->port_seed, position + layout_nodes(layout) * try,
			   o->port_first, o->port_last);
}

/* ---- one list of fields for both directions ---- */

/* Writes to `out`, or, without it, reads from `in`. The first error stays. */
struct coder {
	struct buf *out;
	struct cursor in;
	int rc;
};

static void code_u32(struct coder *c, uint32_t *v)
{
	if (!c->out)
		*v = unpack_u32(&c->in);
	else if (!c->rc)
		c->rc = pack_u32(c->out, *v);
}

static void code_u16(struct coder *c, uint16_t *v)
{
	uint32_t wide = *v;

	code_u32(c, &wide);
	*v = (uint16_t)wide;
}

static void code_bool(struct coder *c, bool *v)
{
	uint32_t wide = *v;

	code_u32(c, &wide);
	*v = wide != 0;
}

static void code_u64(struct coder *c, uint64_t *v)
{
	if (!c->out)
		*v = unpack_u64(&c->in);
	else if (!c->rc)
		c->rc = pack_u64(c->out, *v);
}

static void code_i64(struct coder *c, int64_t *v)
{
	uint64_t bits = (uint64_t)*v;

	code_u64(c, &bits);
	*v = (int64_t)bits;
}

/* Points into the input; NULL when there are none. */
static void code_bytes(struct coder *c, const void **at, size_t *len)
{
	if (!c->out) {
		*at = unpack_bytes(&c->in, TEXT_MAX, len);
		if (!*at || !*len) {
			*at = NULL;
			*len = 0;
		}
	} else if (!c->rc) {
		c->rc = pack_bytes(c->out, *at, *len);
	}
}

/* With its NUL; NULL is no byte. */
static void code_text(struct coder *c, const char **text)
{
	size_t len = c->out && *text ? strlen(*text) + 1 : 0;
	const void *at = *text;

	code_bytes(c, &at, &len);
	if (c->out)
		return;
	if (len && ((const char *)at)[len - 1])
		c->in.failed = true;
	*text = at;
}

static void code_address(struct coder *c, struct sockaddr_storage *addr)
{
	size_t len = sizeof(struct sockaddr_in6);
	const void *at = addr;

	code_bytes(c, &at, &len);
	if (c->out)
		return;
	memset(addr, 0, sizeof(*addr));
	if (at && len == sizeof(struct sockaddr_in6))
		memcpy(addr, at, len);
	else
		c->in.failed = true;
}

/* The copy in the input is overwritten. */
static void code_secret(struct coder *c, struct secret *s)
{
	const void *at;

	if (c->out) {
		c->rc = c->rc ? c->rc : buf_append(c->out, s, sizeof(*s));
		return;
	}
	at = unpack_raw(&c->in, sizeof(*s));
	if (!at)
		return;
	memcpy(s, at, sizeof(*s));
	explicit_bzero((void *)at, sizeof(*s));
}

static void code_options(struct coder *c, struct agent_options *o)
{
	code_secret(c, &o->secret);
	code_address(c, &o->bind);
	code_bool(c, &o->addresses_told);
	code_u16(c, &o->port_first);
	code_u16(c, &o->port_last);
	code_u64(c, &o->port_seed);
	code_address(c, &o->launcher);
	code_u64(c, &o->region_size);
	code_u64(c, &o->buffer_limit);
	code_u32(c, &o->handshake_ms);
	code_u32(c, &o->connect_back_ms);
	code_u32(c, &o->connect_ms);
	code_u32(c, &o->absent_ms);
	code_u32(c, &o->drain_ms);
	code_u32(c, &o->stall_ms);
	code_u32(c, &o->collective_ms);
	code_bool(c, &o->end_on_failure);
	code_bool(c, &o->no_kill);
	code_bool(c, &o->tell_unspoken);
	code_bool(c, &o->trace);
	code_i64(c, &o->launch_ns);
	code_i64(c, &o->prefork_ns);
	code_i64(c, &o->ready_ns);
	code_i64(c, &o->wanted_ns);
	code_bool(c, &o->exits_known);
	code_bool(c, &o->topology);
	code_bool(c, &o->debug);
	code_u32(c, &o->dead_peer_ms);
	code_u32(c, &o->connect_back_uid);
	code_u16(c, &o->protocol);
}

/* `count` is read before. An array that is made for it is the caller's. */
static void code_numbers(struct coder *c, uint32_t **numbers, uint32_t count)
{
	if (!count)
		return;
	if (!c->out && count > cursor_left(&c->in) / sizeof(uint32_t)) {
		c->in.failed = true;
		return;
	}
	if (!c->out && !(*numbers = calloc(count + 1, sizeof(**numbers))))
		c->rc = -ENOMEM;
	for (uint32_t i = 0; i < count && !c->rc; i++)
		code_u32(c, &(*numbers)[i]);
}

static void code_names(struct coder *c, const char ***names, uint32_t count)
{
	if (!c->out && count > cursor_left(&c->in) / sizeof(uint32_t)) {
		c->in.failed = true;
		return;
	}
	if (!c->out && !(*names = calloc(count + 1, sizeof(**names))))
		c->rc = -ENOMEM;
	for (uint32_t i = 0; i < count && !c->rc; i++) {
		code_text(c, &(*names)[i]);
		if (!(*names)[i])
			c->in.failed = !c->out;
	}
}

static void code_known(struct coder *c, struct setup *s)
{
	code_u32(c, &s->nknown);
	if (!c->out && s->nknown > cursor_left(&c->in) / sizeof(uint32_t)) {
		c->in.failed = true;
		return;
	}
	if (!c->out && !(s->known = calloc(s->nknown + 1, sizeof(*s->known))))
		c->rc = -ENOMEM;
	for (uint32_t i = 0; i < s->nknown && !c->rc; i++) {
		code_u32(c, &s->known[i].node_id);
		code_address(c, &s->known[i].addr);
	}
}

/* ---- the layout: the ranks of each node as runs of equal steps ---- */

struct run {
	uint32_t first, count, stride;
};

/* The longest run at the beginning of `ranks`. */
static struct run next_run(const uint32_t *ranks, uint32_t count)
{
	struct run r = { ranks[0], 1, count > 1 ? ranks[1] - ranks[0] : 1 };

	while (r.count < count &&
	       ranks[r.count] == ranks[r.count - 1] + r.stride)
		r.count++;
	return r;
}

static int pack_ranks(struct buf *b, const uint32_t *ranks, uint32_t count)
{
	int rc = pack_u32(b, count);

	while (count && !rc) {
		struct run r = next_run(ranks, count);

		rc = pack_u32(b, r.first);
		rc = rc ? rc : pack_u32(b, r.count);
		rc = rc ? rc : pack_u32(b, r.stride);
		ranks += r.count;
		count -= r.count;
	}
	return rc;
}

static int pack_layout(struct buf *b, const struct layout *l)
{
	uint32_t count, nodes = layout_nodes(l);
	int rc = pack_u32(b, nodes);

	rc = rc ? rc : pack_u32(b, layout_ranks(l));
	for (uint32_t id = 0; id < nodes && !rc; id++) {
		const uint32_t *ranks =
			layout_ranks_at(l, layout_position(l, id), &count);

		rc = pack_ranks(b, ranks, count);
	}
	return rc;
}

/* Into *room, of which `left` are free. */
static int unpack_ranks(struct cursor *c, uint32_t *room, uint32_t left,
			uint32_t *count)
{
	uint32_t have = 0;

	*count = unpack_u32(c);
	if (*count > left)
		return -EPROTO;
	while (have < *count && cursor_ok(c)) {
		uint32_t first = unpack_u32(c), n = unpack_u32(c);
		uint32_t stride = unpack_u32(c);

		if (n == 0 || n > *count - have)
			return -EPROTO;
		for (uint32_t i = 0; i < n; i++)
			room[have++] = first + i * stride;
	}
	return cursor_ok(c) ? 0 : -EPROTO;
}

static int unpack_nodes(struct cursor *c, struct layout **out, uint32_t nodes,
			uint32_t nranks, uint32_t *counts, uint32_t *all,
			const uint32_t **ranks)
{
	uint32_t used = 0;
	int rc = 0;

	for (uint32_t id = 0; id < nodes && !rc; id++) {
		ranks[id] = all + used;
		rc = unpack_ranks(c, all + used, nranks - used, &counts[id]);
		used += rc ? 0 : counts[id];
	}
	rc = rc ? rc : layout_create(out, nodes, nranks, counts, ranks);
	return rc == -EINVAL ? -EPROTO : rc;
}

static int unpack_layout(struct cursor *c, struct layout **out)
{
	uint32_t nodes = unpack_u32(c), nranks = unpack_u32(c);
	uint32_t *counts, *all;
	const uint32_t **ranks;
	int rc = -ENOMEM;

	if (!cursor_ok(c) || nodes > LAYOUT_NODES_MAX ||
	    nranks > LAYOUT_RANKS_MAX ||
	    nodes > cursor_left(c) / (4 * sizeof(uint32_t)))
		return -EPROTO;
	counts = calloc(nodes + 1, sizeof(*counts));
	all = calloc((size_t)nranks + 1, sizeof(*all));
	ranks = calloc(nodes + 1, sizeof(*ranks));
	if (counts && all && ranks)
		rc = unpack_nodes(c, out, nodes, nranks, counts, all, ranks);
	free(counts);
	free(all);
	free(ranks);
	return rc;
}

static void code_layout(struct coder *c, struct pmi_step *step)
{
	struct layout *l = NULL;

	if (c->out) {
		c->rc = c->rc ? c->rc : pack_layout(c->out, step->layout);
		return;
	}
	c->rc = unpack_layout(&c->in, &l);
	step->layout = l;
	if (l && step->position >= layout_nodes(l))
		c->in.failed = true;
}

/* ---- the step ---- */

static void code_step(struct coder *c, struct pmi_step *step)
{
	code_text(c, &step->jobid);
	code_u32(c, &step->position);
	code_u32(c, &step->tree_width);
	code_u32(c, &step->piece);
	code_bool(c, &step->compress);
	code_u32(c, &step->universe_size);
	code_u32(c, &step->napps);
	code_numbers(c, (uint32_t **)&step->app_sizes, step->napps);
	code_bool(c, &step->spawned);
	code_text(c, &step->spawner_jobid);
	code_text(c, &step->reserved_ports);
	code_bytes(c, &step->preput, &step->preput_len);
	code_bool(c, &step->debugged);
	code_text(c, &step->build);
	code_layout(c, step);
	if (step->layout && !c->rc)
		code_names(c, (const char ***)&step->node_names,
			   layout_nodes(step->layout));
}

static void code_setup(struct coder *c, struct setup *s)
{
	code_options(c, &s->options);
	code_u16(c, &s->port);
	code_known(c, s);
	code_step(c, &s->step);
}

int setup_pack(struct buf *b, const struct setup *s)
{
	struct setup copy = *s; /* its fields are only read */
	struct coder c = { .out = b };

	c.rc = pack_u32(b, SETUP_MAGIC);
	c.rc = c.rc ? c.rc : pack_u32(b, SETUP_VERSION);
	code_setup(&c, &copy);
	secret_forget(&copy.options.secret);
	return c.rc;
}

int setup_unpack(struct setup *out, void *data, size_t len)
{
	struct coder c = { .out = NULL };
	uint32_t version;

	memset(out, 0, sizeof(*out));
	cursor_init(&c.in, data, len);
	if (unpack_u32(&c.in) != SETUP_MAGIC)
		return -EPROTO;
	version = unpack_u32(&c.in);
	if (cursor_ok(&c.in) && version != SETUP_VERSION)
		return -EPROTONOSUPPORT;
	code_setup(&c, out);
	if (!c.rc && (!cursor_done(&c.in) || !out->step.jobid ||
		      !out->step.build))
		c.rc = -EPROTO;
	if (c.rc)
		setup_free(out);
	return c.rc;
}

void setup_free(struct setup *s)
{
	secret_forget(&s->options.secret);
	free(s->known);
	free((void *)s->step.app_sizes);
	free((void *)s->step.node_names);
	layout_destroy((struct layout *)s->step.layout);
	memset(s, 0, sizeof(*s));
}
