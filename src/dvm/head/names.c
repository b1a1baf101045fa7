/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names that ranks publish, and others look up: those of PMI and those of PMIx. All tasks
 * of the DVM share them; they go with the task that has published them.
 */
#include "dvm/head/head_main.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libpmi/pmix_nspace.h"
#include "libpmi/step_services.h"

struct asker_key {
	uint64_t task;
	uint64_t instance; /* as wide, so that there is no hole */
};

/* A task that has asked: what the launcher knows as a link. */
struct asker {
	struct asker_key key;
	uint32_t position; /* of the node that asks for it */
	UT_hash_handle hh;
};

struct name_service {
	struct head_main *head;
	struct step_services *launcher;
	struct asker *askers;
	uv_timer_t due; /* a look-up has waited long enough */
};

/* ---- operations of the launcher ---- */

static void on_reply(void *arg, void *link, const void *data, size_t len)
{
	const struct name_service *s = arg;
	const struct asker *a = link;
	const struct dvm_msg m = {
		.type = DVM_NAMES,
		.names = { a->key.task, (uint32_t)a->key.instance, { data, len } },
	};
	struct buf out;

	buf_init(&out, DVM_NAMES_MAX + DVM_TEXT_MAX);
	if (dvm_msg_pack(&out, &m))
		log_error(&s->head->log, "task %llu: no memory for an answer to a name request",
			  (unsigned long long)a->key.task);
	else
		nodes_send(s->head, a->position, out.data, out.len);
	buf_free(&out);
}

static void on_report(void *arg, const char *text)
{
	const struct name_service *s = arg;

	log_error(&s->head->log, "%s", text);
}

/* ---- who asks ---- */

static struct asker *find(struct name_service *s, const struct asker_key *key)
{
	struct asker *a;

	HASH_FIND(hh, s->askers, key, sizeof(*key), a);
	return a;
}

static struct asker *find_or_add(struct name_service *s, const struct asker_key *key)
{
	struct asker *a = find(s, key);

	if (a)
		return a;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->key = *key;
	HASH_ADD(hh, s->askers, key, sizeof(a->key), a);
	if (a->hh.tbl)
		return a;
	free(a);
	return NULL;
}

static bool is_about_names(const struct dvm_bytes *b)
{
	enum control_type type;
	uint32_t origin;

	if (control_peek(b->data, b->len, &type, &origin))
		return false;
	return type == CONTROL_PUBLISH || type == CONTROL_UNPUBLISH ||
	       type == CONTROL_LOOKUP || type == CONTROL_NAMES;
}

/* ---- time ---- */

static void on_due(uv_timer_t *timer);

static void expire(struct name_service *s)
{
	uint64_t now = uv_now(loop_uv(s->head->loop));
	uint64_t due = step_services_expire(s->launcher, now);

	if (due == UINT64_MAX)
		uv_timer_stop(&s->due);
	else
		uv_timer_start(&s->due, on_due, due - now, 0);
}

static void on_due(uv_timer_t *timer)
{
	expire(timer->data);
}

/* ---- requests ---- */

void names_ask(void *head, uint32_t position, const struct dvm_names *m)
{
	struct head_main *h = head;
	struct name_service *s = h->names;
	const struct asker_key key = { m->task, m->instance };
	struct asker *a = is_about_names(&m->data) ? find_or_add(s, &key) : NULL;

	if (!a) {
		nodes_break(h, position, "the daemon sent an invalid name request, or there is no memory");
		return;
	}
	a->position = position;
	if (step_services_receive(s->launcher, a, m->data.data, m->data.len))
		nodes_break(h, position, "the daemon sent an invalid name request");
	expire(s);
}

void names_end(void *head, uint64_t task, uint32_t instance)
{
	struct head_main *h = head;
	struct name_service *s = h->names;
	const struct asker_key key = { task, instance };
	struct asker *a = find(s, &key);
	char jobid[DVM_JOBID_MAX], nspace[PMIX_NSPACE_NAME_MAX + 1];

	if (a)
		step_services_step_lost(s->launcher, a);
	dvm_jobid(jobid, h->welcome.dvm, task, instance);
	pmix_nspace_name(nspace, jobid);
	step_services_namespace_ended(s->launcher, nspace);
	expire(s);
	if (a)
		HASH_DEL(s->askers, a);
	free(a);
}

/* ---- life ---- */

int names_open(struct head_main *h)
{
	static const struct step_services_ops ops = {
		.reply = on_reply, .report = on_report,
	};
	struct name_service *s = calloc(1, sizeof(*s));
	uint64_t seed;

	h->names = s;
	if (!s)
		return -ENOMEM;
	s->head = h;
	uv_timer_init(loop_uv(h->loop), &s->due);
	s->due.data = s;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return -EIO;
	return step_services_create(&s->launcher, &ops, s, seed, &h->log);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void names_close(struct head_main *h)
{
	struct name_service *s = h->names;
	struct asker *a, *next;

	if (!s)
		return;
	HASH_ITER(hh, s->askers, a, next) {
		HASH_DEL(s->askers, a);
		free(a);
	}
	step_services_destroy(s->launcher);
	uv_close((uv_handle_t *)&s->due, on_closed);
}
