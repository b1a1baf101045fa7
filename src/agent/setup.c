/* SPDX-License-Identifier: BSD-3-Clause */
/* The setup of an agent: defaults, and the form as bytes. */
#include "agent/setup.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "libcoll/layout_code.h"
#include "libio/listener_socket.h"
#include "libshm/region.h"
#include "libutil/budget.h"
#include "libutil/coder.h"

#define SETUP_MAGIC 0x61327870u /* "px2a" */

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
	const void *at = c->in.at;

	code_raw(c, s, sizeof(*s));
	if (!c->out && cursor_ok(&c->in))
		explicit_bzero((void *)at, sizeof(*s));
}

static void code_options(struct coder *c, struct agent_options *o)
{
	code_secret(c, &o->secret);
	code_address(c, &o->bind);
	code_bool(c, &o->addresses_told);
	code_port(c, &o->port_first);
	code_port(c, &o->port_last);
	code_u64(c, &o->port_seed);
	code_address(c, &o->launcher);
	code_u64(c, &o->region_size);
	code_u64(c, &o->buffer_limit);
	code_u32(c, &o->handshake_ms);
	code_u32(c, &o->connect_back_ms);
	code_u32(c, &o->connect_ms);
	code_u32(c, &o->absent_ms);
	code_u32(c, &o->drain_ms);
	code_bool(c, &o->stays);
	code_u32(c, &o->stall_ms);
	code_u32(c, &o->collective_ms);
	code_bool(c, &o->end_on_failure);
	code_bool(c, &o->no_kill);
	code_bool(c, &o->no_srun);
	code_bool(c, &o->tell_unspoken);
	code_u32(c, &o->wrapper);
	code_text(c, &o->closed_by);
	code_u32(c, &o->closed_slot);
	code_bool(c, &o->trace);
	code_i64(c, &o->launch_ns);
	code_i64(c, &o->prefork_ns);
	code_i64(c, &o->ready_ns);
	code_i64(c, &o->wanted_ns);
	code_bool(c, &o->exits_known);
	code_bool(c, &o->topology);
	code_text(c, &o->settings);
	code_text(c, &o->spool_dir);
	code_u32(c, &o->spool_max);
	code_text(c, &o->no_pmix);
	code_bool(c, &o->debug);
	code_u32(c, &o->dead_peer_ms);
	code_bool(c, &o->torch);
	code_port(c, &o->torch_ports[TORCH_PORT_STORE]);
	code_port(c, &o->torch_ports[TORCH_PORT_JAX]);
	code_bool(c, &o->torch_ports_wanted);
	code_bool(c, &o->knows_nodes);
	code_u32(c, &o->connect_back_uid);
	code_port(c, &o->protocol);
}

static void code_known(struct coder *c, struct setup *s)
{
	code_count(c, &s->nknown, UINT32_MAX, sizeof(uint32_t));
	if (!c->out && !(s->known = calloc(s->nknown + 1, sizeof(*s->known))))
		c->rc = -ENOMEM;
	for (uint32_t i = 0; i < s->nknown && !c->rc; i++) {
		code_u32(c, &s->known[i].node_id);
		code_address(c, &s->known[i].addr);
	}
}

/* ---- the step ---- */

static void code_step(struct coder *c, struct pmi_step *step)
{
	code_text(c, &step->jobid);
	code_u32(c, &step->position);
	code_u32(c, &step->tree_width);
	code_u32(c, &step->piece);
	code_u32(c, &step->universe_size);
	code_u32(c, &step->napps);
	code_numbers(c, (uint32_t **)&step->app_sizes, step->napps);
	code_numbers_if(c, (uint32_t **)&step->app_numbers, step->napps);
	code_bool(c, &step->spawned);
	code_text(c, &step->spawner_jobid);
	code_text(c, &step->reserved_ports);
	code_bytes(c, &step->preput, &step->preput_len);
	code_bool(c, &step->debugged);
	code_text(c, &step->build);
	code_layout(c, (struct layout **)&step->layout);
	if (step->layout && step->position >= layout_nodes(step->layout))
		c->in.failed = true;
	if (step->layout && !c->rc)
		code_names(c, (const char ***)&step->node_names,
			   layout_nodes(step->layout));
}

static void code_setup(struct coder *c, struct setup *s)
{
	code_options(c, &s->options);
	code_port(c, &s->port);
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
	c.rc = coder_end(&c);
	if (!c.rc && (!out->step.jobid || !out->step.build))
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
	free((void *)s->step.app_numbers);
	free((void *)s->step.node_names);
	layout_destroy((struct layout *)s->step.layout);
	memset(s, 0, sizeof(*s));
}
