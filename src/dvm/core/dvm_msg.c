/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between head and node as bytes. */
#include "dvm/core/dvm_places.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- pieces ---- */

void dvm_code_bytes(struct coder *c, struct dvm_bytes *v, size_t max)
{
	code_limited(c, &v->data, &v->len, max);
}

/* Words up to the last that is not 0. */
static void code_cores(struct coder *c, struct dvm_cores *v)
{
	uint8_t n = DVM_CORES_WORDS;

	while (c->out && n && !v->words[n - 1])
		n--;
	code_u8(c, &n);
	CODE_CHECK(c, n <= DVM_CORES_WORDS);
	for (uint8_t i = 0; i < n && cursor_ok(&c->in); i++)
		code_u64(c, &v->words[i]);
}

/* A task, and which try it is. */
static void code_try(struct coder *c, uint64_t *task, uint32_t *instance)
{
	code_u64(c, task);
	code_u32(c, instance);
}

static void code_resources(struct coder *c, struct ledger_resources *v)
{
	code_u32(c, &v->cores);
	code_u32(c, &v->gpus);
	code_u64(c, &v->memory);
}

/* ---- messages ---- */

static void code_register(struct coder *c, struct dvm_msg *msg)
{
	struct dvm_register *m = &msg->reg;

	code_u32(c, &m->version);
	code_resources(c, &m->has);
	code_u16(c, &m->port);
	dvm_code_bytes(c, &m->name, DVM_TEXT_MAX - 1);
	dvm_code_bytes(c, &m->build, DVM_TEXT_MAX);
}

static void code_profile(struct coder *c, struct dvm_msg *msg)
{
	struct dvm_profile_msg *m = &msg->profile;

	code_u32(c, &m->number);
	dvm_code_bytes(c, &m->cwd, DVM_TEXT_MAX);
	dvm_code_bytes(c, &m->env, DVM_COMMAND_MAX);
	dvm_code_limits(c, &m->limits);
	dvm_code_bytes(c, &m->outputs, DVM_TEXT_MAX);
	dvm_code_bytes(c, &m->input, DVM_INPUT_MAX);
	CODE_CHECK(c, dvm_texts_ok(&m->cwd, 1) && dvm_texts_ok(&m->env, 0) &&
		      dvm_texts_ok(&m->outputs, 0));
}

static void code_forget(struct coder *c, struct dvm_msg *m)
{
	code_u32(c, &m->profile.number);
}

static void code_nodes(struct coder *c, struct dvm_msg *msg)
{
	struct dvm_nodes *m = &msg->nodes;

	code_u32(c, &m->first);
	dvm_code_bytes(c, &m->names, DVM_NODES_MAX);
	CODE_CHECK(c, dvm_names_count(&m->names) && m->first <= LEDGER_NODES_MAX);
}

/* A task on one node has no runs. */
static bool nodes_ok(const struct dvm_launch *m)
{
	return m->nodes == 1 ? !m->runs.len : dvm_runs_ok(&m->runs, m->nodes, m->ranks);
}

static bool launch_ok(const struct dvm_launch *m)
{
	return m->ranks_here && m->node < m->nodes && m->first_rank < m->ranks &&
	       m->ranks_here <= LEDGER_RANKS_MAX &&
	       m->ranks_here <= m->ranks - m->first_rank && nodes_ok(m) &&
	       dvm_texts_ok(&m->argv, 1) &&
	       (m->output != DVM_OUTPUT_FORWARD || m->window >= DVM_WINDOW_MIN) &&
	       dvm_texts_ok(&m->path, m->output == DVM_OUTPUT_FILE) &&
	       dvm_texts_ok(&m->error, 0) && dvm_texts_ok(&m->cwd, 0);
}

static void code_launch(struct coder *c, struct dvm_msg *msg)
{
	struct dvm_launch *m = &msg->launch;

	code_try(c, &m->task, &m->instance);
	code_u32(c, &m->profile);
	code_u32(c, &m->ranks);
	code_u32(c, &m->nodes);
	code_u32(c, &m->node);
	code_u32(c, &m->first_rank);
	code_u32(c, &m->ranks_here);
	code_u32(c, &m->limit_s);
	code_u32(c, &m->grace_ms);
	code_u32(c, &m->universe);
	code_cores(c, &m->cores);
	code_u64(c, &m->gpus);
	code_flag(c, &m->pmi);
	code_flag(c, &m->keep);
	code_flag(c, &m->append);
	code_flag(c, &m->preloaded);
	CODE_ENUM(c, &m->output, DVM_OUTPUTS);
	code_u32(c, &m->window);
	dvm_code_bytes(c, &m->argv, DVM_COMMAND_MAX);
	dvm_code_bytes(c, &m->path, DVM_TEXT_MAX);
	dvm_code_bytes(c, &m->error, DVM_TEXT_MAX);
	dvm_code_bytes(c, &m->cwd, DVM_TEXT_MAX);
	dvm_code_bytes(c, &m->runs, DVM_RUNS_MAX);
	dvm_code_bytes(c, &m->neighbours, DVM_NEIGHBOURS_BYTES);
	dvm_code_bytes(c, &m->spawned, DVM_SPAWN_MAX);
	dvm_code_bytes(c, &m->input, DVM_INPUT_MAX);
	code_u64(c, &m->line);
	CODE_CHECK(c, launch_ok(m));
}

static void code_signal(struct coder *c, struct dvm_msg *m)
{
	code_try(c, &m->signal.task, &m->signal.instance);
	code_u32(c, &m->signal.number);
}

static void code_started(struct coder *c, struct dvm_msg *m)
{
	code_try(c, &m->started.task, &m->started.instance);
}

static void code_held(struct coder *c, struct dvm_msg *msg)
{
	struct dvm_held *m = &msg->held;

	code_try(c, &m->task, &m->instance);
	code_u32(c, &m->nodes);
	code_u32(c, &m->node);
	code_u32(c, &m->first_rank);
	code_u32(c, &m->ranks_here);
	code_cores(c, &m->cores);
	code_u64(c, &m->gpus);
	code_u64(c, &m->started_ns);
	CODE_CHECK(c, m->ranks_here && m->node < m->nodes);
}

static void code_output(struct coder *c, struct dvm_msg *m)
{
	code_u64(c, &m->output.task);
	code_u32(c, &m->output.rank);
	code_u32(c, &m->output.fd);
	dvm_code_bytes(c, &m->output.data, DVM_COMMAND_MAX);
}

static void code_credit(struct coder *c, struct dvm_msg *m)
{
	code_try(c, &m->credit.task, &m->credit.instance);
	code_u32(c, &m->credit.bytes);
}

static void code_ended(struct coder *c, struct dvm_msg *msg)
{
	struct dvm_ended *m = &msg->ended;

	code_try(c, &m->task, &m->instance);
	code_i32(c, &m->status);
	code_u32(c, &m->rank);
	code_flag(c, &m->not_started);
	code_flag(c, &m->too_long);
	code_flag(c, &m->told);
	CODE_ENUM(c, &m->lack, DVM_LACKS);
	code_flag(c, &m->any_started);
	code_u64(c, &m->started_ns);
	code_u64(c, &m->ended_ns);
	code_u64(c, &m->user_us);
	code_u64(c, &m->system_us);
	code_u64(c, &m->peak_kib);
	dvm_code_bytes(c, &m->why, DVM_TEXT_MAX);
	dvm_code_bytes(c, &m->out, DVM_TAIL_MAX);
	dvm_code_bytes(c, &m->err, DVM_TAIL_MAX);
	dvm_code_bytes(c, &m->files, DVM_TEXT_MAX);
	dvm_code_bytes(c, &m->unkept, DVM_TEXT_MAX);
	CODE_CHECK(c, dvm_texts_ok(&m->files, 0));
}

static void code_failed(struct coder *c, struct dvm_msg *msg)
{
	struct dvm_failed *m = &msg->failed;

	code_try(c, &m->task, &m->instance);
	code_i32(c, &m->status);
	code_u32(c, &m->rank);
	code_flag(c, &m->asked);
	dvm_code_bytes(c, &m->why, DVM_TEXT_MAX);
	CODE_CHECK(c, m->status);
}

static void code_exec(struct coder *c, struct dvm_msg *msg)
{
	struct dvm_exec *m = &msg->exec;

	code_u32(c, &m->part);
	code_u32(c, &m->first);
	code_u32(c, &m->profile);
	code_flag(c, &m->pmi);
	dvm_code_bytes(c, &m->launch, DVM_LAUNCH_MAX);
}

static void code_give_up(struct coder *c, struct dvm_msg *m)
{
	code_u32(c, &m->give_up);
}

static void code_kill(struct coder *c, struct dvm_msg *m)
{
	code_u32(c, &m->kill.part);
	code_u32(c, &m->kill.number);
}

static void code_processes(struct coder *c, struct dvm_msg *m)
{
	code_u32(c, &m->processes.part);
	code_i32(c, &m->processes.error);
	dvm_code_bytes(c, &m->processes.numbers, LEDGER_RANKS_MAX * sizeof(uint64_t));
}

static void code_exited(struct coder *c, struct dvm_msg *msg)
{
	struct dvm_exited *m = &msg->exited;

	code_u32(c, &m->part);
	code_u32(c, &m->slot);
	code_i32(c, &m->status);
	code_flag(c, &m->lacks);
	code_u64(c, &m->user_us);
	code_u64(c, &m->system_us);
	code_u64(c, &m->peak_kib);
	dvm_code_bytes(c, &m->why, DVM_TEXT_MAX);
}

static void code_own_resources(struct coder *c, struct dvm_msg *m)
{
	code_resources(c, &m->resources);
}

static void code_about(struct coder *c, struct dvm_ask *m)
{
	code_try(c, &m->task, &m->instance);
	code_u32(c, &m->node);
	code_u32(c, &m->client);
}

static void code_ask(struct coder *c, struct dvm_msg *m)
{
	code_about(c, &m->ask);
}

static void code_told(struct coder *c, struct dvm_msg *m)
{
	code_about(c, &m->told.about);
	CODE_ENUM(c, &m->told.what, DVM_TOLDS);
	code_flag(c, &m->told.pmi);
	code_u32(c, &m->told.file_stall_ms);
	dvm_code_bytes(c, &m->told.data, DVM_TOLD_MAX);
}

static void code_name_message(struct coder *c, struct dvm_msg *m)
{
	code_try(c, &m->names.task, &m->names.instance);
	dvm_code_bytes(c, &m->names.data, DVM_NAMES_MAX);
}

static void code_spawn(struct coder *c, struct dvm_msg *msg)
{
	struct dvm_spawn *m = &msg->spawn;

	code_try(c, &m->task, &m->instance);
	code_u32(c, &m->token);
	code_u32(c, &m->ranks);
	dvm_code_bytes(c, &m->argv, DVM_COMMAND_MAX);
	dvm_code_bytes(c, &m->about, DVM_SPAWN_MAX);
	CODE_CHECK(c, m->ranks && m->about.len && dvm_texts_ok(&m->argv, 1));
}

static void code_ready(struct coder *c, struct dvm_msg *m)
{
	code_try(c, &m->ready.task, &m->ready.instance);
	dvm_code_bytes(c, &m->ready.why, DVM_TEXT_MAX);
}

static void code_spawned(struct coder *c, struct dvm_msg *msg)
{
	struct dvm_spawned *m = &msg->spawned;

	code_try(c, &m->task, &m->instance);
	code_u32(c, &m->token);
	code_try(c, &m->spawned, &m->spawned_instance);
	dvm_code_bytes(c, &m->why, DVM_TEXT_MAX);
}

static void code_call(struct coder *c, struct dvm_msg *m)
{
	code_u64(c, &m->call.epoch);
}

static void code_stop(struct coder *c, struct dvm_msg *m)
{
	code_flag(c, &m->stop.now);
}

static void code_lease(struct coder *c, struct dvm_msg *m)
{
	code_u64(c, &m->lease.sent_ms);
}

static void code_nothing(struct coder *c, struct dvm_msg *m)
{
}

/* The fields of each type. */
static void (*const codes[DVM_MSG_TYPES])(struct coder *c, struct dvm_msg *m) = {
	[DVM_REGISTER] = code_register,
	[DVM_PROFILE] = code_profile,
	[DVM_FORGET] = code_forget,
	[DVM_LAUNCH] = code_launch,
	[DVM_SIGNAL] = code_signal,
	[DVM_LEAVE] = code_nothing,
	[DVM_STARTED] = code_started,
	[DVM_FAILING] = code_started,
	[DVM_OUTPUT] = code_output,
	[DVM_ENDED] = code_ended,
	[DVM_EXEC] = code_exec,
	[DVM_GIVE_UP] = code_give_up,
	[DVM_KILL] = code_kill,
	[DVM_PROCESSES] = code_processes,
	[DVM_FAILED] = code_failed,
	[DVM_ASK] = code_ask,
	[DVM_TOLD] = code_told,
	[DVM_EXITED] = code_exited,
	[DVM_NAMES] = code_name_message,
	[DVM_SPAWN] = code_spawn,
	[DVM_SPAWNED] = code_spawned,
	[DVM_READY] = code_ready,
	[DVM_ADOPT] = code_nothing,
	[DVM_HELD] = code_held,
	[DVM_DONE] = code_started,
	[DVM_STOP] = code_stop,
	[DVM_LEASE] = code_lease,
	[DVM_GONE] = code_nothing,
	[DVM_CALL] = code_call,
	[DVM_BULK] = code_nothing,
	[DVM_CREDIT] = code_credit,
	[DVM_RESOURCES] = code_own_resources,
	[DVM_HEAD_LINK] = code_nothing,
	[DVM_NODES] = code_nodes,
};

int dvm_msg_pack(struct buf *b, const struct dvm_msg *m)
{
	struct coder c = { .out = b };
	size_t start = b->len;

	c.rc = pack_u8(b, m->type);
	codes[m->type](&c, (struct dvm_msg *)m);
	return coder_wrote(&c, start);
}

int dvm_msg_unpack(struct cursor *in, struct dvm_msg *m)
{
	uint8_t type = unpack_u8(in);
	struct coder c = { .in = *in };

	memset(m, 0, sizeof(*m));
	m->type = type;
	if (type >= DVM_MSG_TYPES || !codes[type])
		return -EPROTO;
	codes[type](&c, m);
	return coder_leave(&c, in);
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

static const void *copy_to(char **at, const struct dvm_bytes *from)
{
	char *begin = *at;

	if (from->len)
		memcpy(begin, from->data, from->len);
	*at += from->len;
	return begin;
}

char *dvm_profile_copy(struct dvm_profile_msg *out, const struct dvm_profile_msg *m)
{
	char *bytes = malloc(m->cwd.len + m->env.len + m->outputs.len + m->input.len + 1), *at = bytes;

	if (!bytes)
		return NULL;
	*out = *m;
	out->cwd.data = copy_to(&at, &m->cwd);
	out->env.data = copy_to(&at, &m->env);
	out->outputs.data = copy_to(&at, &m->outputs);
	out->input.data = copy_to(&at, &m->input);
	return bytes;
}

/* ---- ranks ---- */

static void code_rank(struct coder *c, struct dvm_rank *r)
{
	code_u32(c, &r->rank);
	code_u64(c, &r->process);
	code_raw(c, &r->state, 1);
	code_u64(c, &r->cpu_us);
}

int dvm_rank_pack(struct buf *b, const struct dvm_rank *r)
{
	struct coder c = { .out = b };

	code_rank(&c, (struct dvm_rank *)r);
	return c.rc;
}

int dvm_rank_unpack(struct cursor *in, struct dvm_rank *r)
{
	struct coder c = { .in = *in };

	code_rank(&c, r);
	return coder_leave(&c, in);
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
