/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between head and node as bytes. */
#include "dvm/core/dvm_msg.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- pieces ---- */

int dvm_bytes_pack(struct buf *b, const struct dvm_bytes *v)
{
	return pack_bytes(b, v->data, v->len);
}

static void get_bytes(struct cursor *c, size_t max, struct dvm_bytes *v)
{
	v->data = unpack_bytes(c, max, &v->len);
}

/* Words up to the last that is not 0. */
static int put_cores(struct buf *b, const struct dvm_cores *v)
{
	uint8_t n = DVM_CORES_WORDS;
	int rc;

	while (n && !v->words[n - 1])
		n--;
	rc = pack_u8(b, n);
	for (uint8_t i = 0; i < n; i++)
		rc = rc ? rc : pack_u64(b, v->words[i]);
	return rc;
}

static void get_cores(struct cursor *c, struct dvm_cores *v)
{
	uint8_t n = unpack_u8(c);

	memset(v, 0, sizeof(*v));
	if (n > DVM_CORES_WORDS)
		c->failed = true;
	for (uint8_t i = 0; i < n && cursor_ok(c); i++)
		v->words[i] = unpack_u64(c);
}

static bool get_bool(struct cursor *c)
{
	return unpack_u8(c) != 0;
}

/* ---- messages ---- */

static int put_register(struct buf *b, const struct dvm_register *m)
{
	int rc = pack_u32(b, m->version);

	rc = rc ? rc : pack_u32(b, m->has.cores);
	rc = rc ? rc : pack_u32(b, m->has.gpus);
	rc = rc ? rc : pack_u64(b, m->has.memory);
	rc = rc ? rc : pack_u16(b, m->port);
	rc = rc ? rc : dvm_bytes_pack(b, &m->name);
	return rc ? rc : dvm_bytes_pack(b, &m->build);
}

static void get_register(struct cursor *c, struct dvm_register *m)
{
	m->version = unpack_u32(c);
	m->has.cores = unpack_u32(c);
	m->has.gpus = unpack_u32(c);
	m->has.memory = unpack_u64(c);
	m->port = unpack_u16(c);
	get_bytes(c, DVM_TEXT_MAX, &m->name);
	get_bytes(c, DVM_TEXT_MAX, &m->build);
}

static int put_profile(struct buf *b, const struct dvm_profile_msg *m)
{
	int rc = pack_u32(b, m->number);

	rc = rc ? rc : dvm_bytes_pack(b, &m->cwd);
	return rc ? rc : dvm_bytes_pack(b, &m->env);
}

static void get_profile(struct cursor *c, struct dvm_profile_msg *m)
{
	m->number = unpack_u32(c);
	get_bytes(c, DVM_TEXT_MAX, &m->cwd);
	get_bytes(c, DVM_COMMAND_MAX, &m->env);
	if (!dvm_texts_ok(&m->cwd, 1) || !dvm_texts_ok(&m->env, 0))
		c->failed = true;
}

static int put_launch(struct buf *b, const struct dvm_launch *m)
{
	const uint32_t numbers[] = { m->instance, m->profile, m->ranks, m->nodes,
		m->node, m->first_rank, m->ranks_here, m->limit_s, m->grace_ms,
		m->universe };
	int rc = pack_u64(b, m->task);

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		rc = rc ? rc : pack_u32(b, numbers[i]);
	rc = rc ? rc : put_cores(b, &m->cores);
	rc = rc ? rc : pack_u64(b, m->gpus);
	rc = rc ? rc : pack_u8(b, m->pmi);
	rc = rc ? rc : pack_u8(b, m->keep);
	rc = rc ? rc : pack_u8(b, m->output);
	rc = rc ? rc : dvm_bytes_pack(b, &m->argv);
	rc = rc ? rc : dvm_bytes_pack(b, &m->path);
	rc = rc ? rc : dvm_bytes_pack(b, &m->places);
	return rc ? rc : dvm_bytes_pack(b, &m->spawned);
}

static void get_launch(struct cursor *c, struct dvm_launch *m)
{
	uint32_t *const numbers[] = { &m->instance, &m->profile, &m->ranks,
		&m->nodes, &m->node, &m->first_rank, &m->ranks_here,
		&m->limit_s, &m->grace_ms, &m->universe };

	m->task = unpack_u64(c);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		*numbers[i] = unpack_u32(c);
	get_cores(c, &m->cores);
	m->gpus = unpack_u64(c);
	m->pmi = get_bool(c);
	m->keep = get_bool(c);
	m->output = unpack_u8(c);
	get_bytes(c, DVM_COMMAND_MAX, &m->argv);
	get_bytes(c, DVM_TEXT_MAX, &m->path);
	get_bytes(c, DVM_PLACES_MAX, &m->places);
	get_bytes(c, DVM_SPAWN_MAX, &m->spawned);
	if (m->output >= DVM_OUTPUTS || !m->ranks_here || m->node >= m->nodes ||
	    m->first_rank >= m->ranks || m->ranks_here > LEDGER_RANKS_MAX ||
	    m->ranks_here > m->ranks - m->first_rank ||
	    !dvm_texts_ok(&m->argv, 1) ||
	    !dvm_texts_ok(&m->path, m->output == DVM_OUTPUT_FILE))
		c->failed = true;
}

static int put_signal(struct buf *b, const struct dvm_signal *m)
{
	int rc = pack_u64(b, m->task);

	rc = rc ? rc : pack_u32(b, m->instance);
	return rc ? rc : pack_u32(b, m->number);
}

static void get_signal(struct cursor *c, struct dvm_signal *m)
{
	m->task = unpack_u64(c);
	m->instance = unpack_u32(c);
	m->number = unpack_u32(c);
}

static int put_started(struct buf *b, const struct dvm_started *m)
{
	int rc = pack_u64(b, m->task);

	return rc ? rc : pack_u32(b, m->instance);
}

static void get_started(struct cursor *c, struct dvm_started *m)
{
	m->task = unpack_u64(c);
	m->instance = unpack_u32(c);
}

static int put_held(struct buf *b, const struct dvm_held *m)
{
	const uint32_t numbers[] = { m->instance, m->nodes, m->node, m->first_rank,
				     m->ranks_here };
	int rc = pack_u64(b, m->task);

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		rc = rc ? rc : pack_u32(b, numbers[i]);
	rc = rc ? rc : put_cores(b, &m->cores);
	rc = rc ? rc : pack_u64(b, m->gpus);
	return rc ? rc : pack_u64(b, m->started_ns);
}

static void get_held(struct cursor *c, struct dvm_held *m)
{
	uint32_t *const numbers[] = { &m->instance, &m->nodes, &m->node,
				      &m->first_rank, &m->ranks_here };

	m->task = unpack_u64(c);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		*numbers[i] = unpack_u32(c);
	get_cores(c, &m->cores);
	m->gpus = unpack_u64(c);
	m->started_ns = unpack_u64(c);
	if (!m->ranks_here || m->node >= m->nodes)
		c->failed = true;
}

static int put_output(struct buf *b, const struct dvm_output_msg *m)
{
	int rc = pack_u64(b, m->task);

	rc = rc ? rc : pack_u32(b, m->rank);
	rc = rc ? rc : pack_u32(b, m->fd);
	return rc ? rc : dvm_bytes_pack(b, &m->data);
}

static void get_output(struct cursor *c, struct dvm_output_msg *m)
{
	m->task = unpack_u64(c);
	m->rank = unpack_u32(c);
	m->fd = unpack_u32(c);
	get_bytes(c, DVM_COMMAND_MAX, &m->data);
}

static int put_ended(struct buf *b, const struct dvm_ended *m)
{
	const uint64_t numbers[] = { m->started_ns, m->ended_ns, m->user_us,
				     m->system_us, m->peak_kib };
	int rc = pack_u64(b, m->task);

	rc = rc ? rc : pack_u32(b, m->instance);
	rc = rc ? rc : pack_u32(b, (uint32_t)m->status);
	rc = rc ? rc : pack_u32(b, m->rank);
	rc = rc ? rc : pack_u8(b, m->not_started);
	rc = rc ? rc : pack_u8(b, m->too_long);
	rc = rc ? rc : pack_u8(b, m->told);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		rc = rc ? rc : pack_u64(b, numbers[i]);
	rc = rc ? rc : dvm_bytes_pack(b, &m->why);
	rc = rc ? rc : dvm_bytes_pack(b, &m->out);
	return rc ? rc : dvm_bytes_pack(b, &m->err);
}

static void get_ended(struct cursor *c, struct dvm_ended *m)
{
	uint64_t *const numbers[] = { &m->started_ns, &m->ended_ns, &m->user_us,
				      &m->system_us, &m->peak_kib };

	m->task = unpack_u64(c);
	m->instance = unpack_u32(c);
	m->status = (int32_t)unpack_u32(c);
	m->rank = unpack_u32(c);
	m->not_started = get_bool(c);
	m->too_long = get_bool(c);
	m->told = get_bool(c);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		*numbers[i] = unpack_u64(c);
	get_bytes(c, DVM_TEXT_MAX, &m->why);
	get_bytes(c, DVM_TAIL_MAX, &m->out);
	get_bytes(c, DVM_TAIL_MAX, &m->err);
}

static int put_failure(struct buf *b, int32_t status, uint32_t rank, bool asked,
		       const struct dvm_bytes *why)
{
	int rc = pack_u32(b, (uint32_t)status);

	rc = rc ? rc : pack_u32(b, rank);
	rc = rc ? rc : pack_u8(b, asked);
	return rc ? rc : dvm_bytes_pack(b, why);
}

static void get_failure(struct cursor *c, int32_t *status, uint32_t *rank, bool *asked,
			struct dvm_bytes *why)
{
	*status = (int32_t)unpack_u32(c);
	*rank = unpack_u32(c);
	*asked = get_bool(c);
	get_bytes(c, DVM_TEXT_MAX, why);
	if (!*status)
		c->failed = true;
}

static int put_fail(struct buf *b, const struct dvm_fail *m)
{
	int rc = pack_u32(b, m->part);

	return rc ? rc : put_failure(b, m->status, m->rank, m->asked, &m->why);
}

static void get_fail(struct cursor *c, struct dvm_fail *m)
{
	m->part = unpack_u32(c);
	get_failure(c, &m->status, &m->rank, &m->asked, &m->why);
}

static int put_failed(struct buf *b, const struct dvm_failed *m)
{
	int rc = pack_u64(b, m->task);

	rc = rc ? rc : pack_u32(b, m->instance);
	return rc ? rc : put_failure(b, m->status, m->rank, m->asked, &m->why);
}

static void get_failed(struct cursor *c, struct dvm_failed *m)
{
	m->task = unpack_u64(c);
	m->instance = unpack_u32(c);
	get_failure(c, &m->status, &m->rank, &m->asked, &m->why);
}

static int put_pmi_part(struct buf *b, const struct dvm_pmi_part *m)
{
	int rc = pack_u32(b, m->part);

	rc = rc ? rc : pack_u64(b, m->task);
	rc = rc ? rc : pack_u32(b, m->instance);
	rc = rc ? rc : pack_u32(b, m->ranks);
	rc = rc ? rc : pack_u32(b, m->node);
	rc = rc ? rc : pack_u32(b, m->universe);
	rc = rc ? rc : dvm_bytes_pack(b, &m->places);
	return rc ? rc : dvm_bytes_pack(b, &m->spawned);
}

static void get_pmi_part(struct cursor *c, struct dvm_pmi_part *m)
{
	m->part = unpack_u32(c);
	m->task = unpack_u64(c);
	m->instance = unpack_u32(c);
	m->ranks = unpack_u32(c);
	m->node = unpack_u32(c);
	m->universe = unpack_u32(c);
	get_bytes(c, DVM_PLACES_MAX, &m->places);
	get_bytes(c, DVM_SPAWN_MAX, &m->spawned);
	if (!m->ranks)
		c->failed = true;
}

static int put_pmi_rank(struct buf *b, const struct dvm_pmi_rank *m)
{
	int rc = pack_u32(b, m->part);

	rc = rc ? rc : pack_u32(b, m->slot);
	return rc ? rc : pack_u32(b, (uint32_t)m->status);
}

static void get_pmi_rank(struct cursor *c, struct dvm_pmi_rank *m)
{
	m->part = unpack_u32(c);
	m->slot = unpack_u32(c);
	m->status = (int32_t)unpack_u32(c);
}

static int put_ask(struct buf *b, const struct dvm_ask *m)
{
	int rc = pack_u64(b, m->task);

	rc = rc ? rc : pack_u32(b, m->instance);
	rc = rc ? rc : pack_u32(b, m->node);
	return rc ? rc : pack_u32(b, m->client);
}

static void get_ask(struct cursor *c, struct dvm_ask *m)
{
	m->task = unpack_u64(c);
	m->instance = unpack_u32(c);
	m->node = unpack_u32(c);
	m->client = unpack_u32(c);
}

static int put_pmi_ask(struct buf *b, const struct dvm_pmi_ask *m)
{
	int rc = pack_u32(b, m->part);

	return rc ? rc : put_ask(b, &m->about);
}

static void get_pmi_ask(struct cursor *c, struct dvm_pmi_ask *m)
{
	m->part = unpack_u32(c);
	get_ask(c, &m->about);
}

static int put_told(struct buf *b, const struct dvm_told *m)
{
	int rc = put_ask(b, &m->about);

	rc = rc ? rc : pack_u8(b, m->what);
	rc = rc ? rc : pack_u8(b, m->pmi);
	return rc ? rc : dvm_bytes_pack(b, &m->data);
}

static void get_told(struct cursor *c, struct dvm_told *m)
{
	get_ask(c, &m->about);
	m->what = unpack_u8(c);
	m->pmi = get_bool(c);
	get_bytes(c, DVM_TOLD_MAX, &m->data);
	if (m->what >= DVM_TOLDS)
		c->failed = true;
}

static int put_names(struct buf *b, const struct dvm_names *m)
{
	int rc = pack_u64(b, m->task);

	rc = rc ? rc : pack_u32(b, m->instance);
	return rc ? rc : dvm_bytes_pack(b, &m->data);
}

static void get_names(struct cursor *c, struct dvm_names *m)
{
	m->task = unpack_u64(c);
	m->instance = unpack_u32(c);
	get_bytes(c, DVM_NAMES_MAX, &m->data);
}

static int put_spawn(struct buf *b, const struct dvm_spawn *m)
{
	int rc = pack_u64(b, m->task);

	rc = rc ? rc : pack_u32(b, m->instance);
	rc = rc ? rc : pack_u32(b, m->token);
	rc = rc ? rc : pack_u32(b, m->ranks);
	rc = rc ? rc : dvm_bytes_pack(b, &m->argv);
	return rc ? rc : dvm_bytes_pack(b, &m->about);
}

static void get_spawn(struct cursor *c, struct dvm_spawn *m)
{
	m->task = unpack_u64(c);
	m->instance = unpack_u32(c);
	m->token = unpack_u32(c);
	m->ranks = unpack_u32(c);
	get_bytes(c, DVM_COMMAND_MAX, &m->argv);
	get_bytes(c, DVM_SPAWN_MAX, &m->about);
	if (!m->ranks || !m->about.len || !dvm_texts_ok(&m->argv, 1))
		c->failed = true;
}

static int put_ready(struct buf *b, const struct dvm_ready *m)
{
	int rc = pack_u64(b, m->task);

	rc = rc ? rc : pack_u32(b, m->instance);
	return rc ? rc : dvm_bytes_pack(b, &m->why);
}

static void get_ready(struct cursor *c, struct dvm_ready *m)
{
	m->task = unpack_u64(c);
	m->instance = unpack_u32(c);
	get_bytes(c, DVM_TEXT_MAX, &m->why);
}

static int put_spawned(struct buf *b, const struct dvm_spawned *m)
{
	int rc = pack_u64(b, m->task);

	rc = rc ? rc : pack_u32(b, m->instance);
	rc = rc ? rc : pack_u32(b, m->token);
	rc = rc ? rc : pack_u64(b, m->spawned);
	rc = rc ? rc : pack_u32(b, m->spawned_instance);
	return rc ? rc : dvm_bytes_pack(b, &m->why);
}

static void get_spawned(struct cursor *c, struct dvm_spawned *m)
{
	m->task = unpack_u64(c);
	m->instance = unpack_u32(c);
	m->token = unpack_u32(c);
	m->spawned = unpack_u64(c);
	m->spawned_instance = unpack_u32(c);
	get_bytes(c, DVM_TEXT_MAX, &m->why);
}

static int put_body(struct buf *b, const struct dvm_msg *m)
{
	switch (m->type) {
	case DVM_REGISTER:
		return put_register(b, &m->reg);
	case DVM_PROFILE:
		return put_profile(b, &m->profile);
	case DVM_FORGET:
		return pack_u32(b, m->profile.number);
	case DVM_LAUNCH:
		return put_launch(b, &m->launch);
	case DVM_SIGNAL:
		return put_signal(b, &m->signal);
	case DVM_STARTED:
	case DVM_FAILING:
	case DVM_DONE:
		return put_started(b, &m->started);
	case DVM_OUTPUT:
		return put_output(b, &m->output);
	case DVM_ENDED:
		return put_ended(b, &m->ended);
	case DVM_FAIL:
		return put_fail(b, &m->fail);
	case DVM_PMI_PART:
		return put_pmi_part(b, &m->pmi_part);
	case DVM_PMI_RANK:
		return put_pmi_rank(b, &m->pmi_rank);
	case DVM_PMI_OVER:
		return pack_u32(b, m->pmi_part.part);
	case DVM_FAILED:
		return put_failed(b, &m->failed);
	case DVM_ASK:
		return put_ask(b, &m->ask);
	case DVM_TOLD:
		return put_told(b, &m->told);
	case DVM_PMI_ASK:
		return put_pmi_ask(b, &m->pmi_ask);
	case DVM_NAMES:
		return put_names(b, &m->names);
	case DVM_SPAWN:
		return put_spawn(b, &m->spawn);
	case DVM_SPAWNED:
		return put_spawned(b, &m->spawned);
	case DVM_READY:
		return put_ready(b, &m->ready);
	case DVM_HELD:
		return put_held(b, &m->held);
	case DVM_CALL:
		return pack_u64(b, m->call.epoch);
	case DVM_STOP:
		return pack_u8(b, m->stop.now);
	case DVM_LEASE:
		return pack_u64(b, m->lease.sent_ms);
	default:
		return 0;
	}
}

int dvm_msg_pack(struct buf *b, const struct dvm_msg *m)
{
	size_t before = b->len;
	int rc = pack_u8(b, m->type);

	rc = rc ? rc : put_body(b, m);
	if (rc)
		b->len = before;
	return rc;
}

int dvm_msg_unpack(struct cursor *c, struct dvm_msg *m)
{
	memset(m, 0, sizeof(*m));
	m->type = unpack_u8(c);
	switch (m->type) {
	case DVM_REGISTER:
		get_register(c, &m->reg);
		break;
	case DVM_PROFILE:
		get_profile(c, &m->profile);
		break;
	case DVM_FORGET:
		m->profile.number = unpack_u32(c);
		break;
	case DVM_LAUNCH:
		get_launch(c, &m->launch);
		break;
	case DVM_SIGNAL:
		get_signal(c, &m->signal);
		break;
	case DVM_LEAVE:
	case DVM_ADOPT:
	case DVM_GONE:
		break;
	case DVM_STARTED:
	case DVM_FAILING:
	case DVM_DONE:
		get_started(c, &m->started);
		break;
	case DVM_OUTPUT:
		get_output(c, &m->output);
		break;
	case DVM_ENDED:
		get_ended(c, &m->ended);
		break;
	case DVM_FAIL:
		get_fail(c, &m->fail);
		break;
	case DVM_PMI_PART:
		get_pmi_part(c, &m->pmi_part);
		break;
	case DVM_PMI_RANK:
		get_pmi_rank(c, &m->pmi_rank);
		break;
	case DVM_PMI_OVER:
		m->pmi_part.part = unpack_u32(c);
		break;
	case DVM_FAILED:
		get_failed(c, &m->failed);
		break;
	case DVM_ASK:
		get_ask(c, &m->ask);
		break;
	case DVM_TOLD:
		get_told(c, &m->told);
		break;
	case DVM_PMI_ASK:
		get_pmi_ask(c, &m->pmi_ask);
		break;
	case DVM_NAMES:
		get_names(c, &m->names);
		break;
	case DVM_SPAWN:
		get_spawn(c, &m->spawn);
		break;
	case DVM_SPAWNED:
		get_spawned(c, &m->spawned);
		break;
	case DVM_READY:
		get_ready(c, &m->ready);
		break;
	case DVM_HELD:
		get_held(c, &m->held);
		break;
	case DVM_CALL:
		m->call.epoch = unpack_u64(c);
		break;
	case DVM_STOP:
		m->stop.now = get_bool(c);
		break;
	case DVM_LEASE:
		m->lease.sent_ms = unpack_u64(c);
		break;
	default:
		return -EPROTO;
	}
	return cursor_ok(c) ? 0 : -EPROTO;
}

bool dvm_msg_for_pmi(const void *data, size_t len)
{
	int type = len ? *(const unsigned char *)data : 0;

	return type == DVM_NAMES || type == DVM_SPAWNED;
}

bool dvm_msg_is_lease(const void *data, size_t len)
{
	return len && *(const unsigned char *)data == DVM_LEASE;
}

/* ---- places ---- */

int dvm_place_pack(struct buf *b, const struct dvm_place *p)
{
	int rc = pack_u32(b, p->node);

	rc = rc ? rc : pack_u32(b, p->ranks);
	rc = rc ? rc : buf_append(b, p->address.ip, sizeof(p->address.ip));
	rc = rc ? rc : pack_u16(b, p->address.port);
	return rc ? rc : dvm_bytes_pack(b, &p->name);
}

int dvm_place_unpack(struct cursor *c, struct dvm_place *p)
{
	const void *ip;

	p->node = unpack_u32(c);
	p->ranks = unpack_u32(c);
	ip = unpack_raw(c, sizeof(p->address.ip));
	if (ip)
		memcpy(p->address.ip, ip, sizeof(p->address.ip));
	p->address.port = unpack_u16(c);
	get_bytes(c, DVM_TEXT_MAX, &p->name);
	return cursor_ok(c) ? 0 : -EPROTO;
}

/* ---- ranks ---- */

int dvm_rank_pack(struct buf *b, const struct dvm_rank *r)
{
	int rc = pack_u32(b, r->rank);

	rc = rc ? rc : pack_u64(b, r->process);
	rc = rc ? rc : pack_u8(b, (uint8_t)r->state);
	return rc ? rc : pack_u64(b, r->cpu_us);
}

int dvm_rank_unpack(struct cursor *c, struct dvm_rank *r)
{
	r->rank = unpack_u32(c);
	r->process = unpack_u64(c);
	r->state = (char)unpack_u8(c);
	r->cpu_us = unpack_u64(c);
	return cursor_ok(c) ? 0 : -EPROTO;
}

/* ---- lists of texts ---- */

size_t dvm_texts_count(const struct dvm_bytes *b)
{
	size_t n = 0;

	for (const char *t = dvm_texts_next(b, NULL); t; t = dvm_texts_next(b, t))
		n++;
	return n;
}

bool dvm_texts_ok(const struct dvm_bytes *b, size_t min)
{
	const char *bytes = b->data;

	if (!b->len)
		return min == 0;
	return bytes[b->len - 1] == '\0' && dvm_texts_count(b) >= min;
}

const char *dvm_texts_next(const struct dvm_bytes *b, const char *text)
{
	const char *bytes = b->data, *end = bytes + b->len;

	text = text ? text + strlen(text) + 1 : bytes;
	return text < end ? text : NULL;
}

void dvm_jobid(char out[DVM_JOBID_MAX], const char *dvm, uint64_t task,
	       uint32_t instance)
{
	int n = snprintf(out, DVM_JOBID_MAX, "%.256s.%llu", dvm,
			 (unsigned long long)task);

	if (instance)
		snprintf(out + n, DVM_JOBID_MAX - (size_t)n, ".%u", instance);
}
