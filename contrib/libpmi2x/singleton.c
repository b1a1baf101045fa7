/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire operations of a process that nobody manages: what it puts it can
 * get, a fence has nobody to wait for, and it cannot spawn.
 */
#include "singleton.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uthash.h>

#include "job.h"
#include "wire.h"

/* One table has all kinds; the kind is the first byte of a name. */
enum kind { KIND_KEY = 'k', KIND_NODE = 'n', KIND_NAME = 's' };

struct item {
	UT_hash_handle hh;
	struct value value;
	size_t name_len;
	char name[];
};

struct singleton {
	pthread_mutex_t lock;
	struct item *items;
};

int singleton_start(struct job *job)
{
	job->alone = calloc(1, sizeof(*job->alone));
	if (!job->alone)
		return -ENOMEM;
	pthread_mutex_init(&job->alone->lock, NULL);
	job->ops = &wire_singleton;
	job->rank = 0;
	job->size = 1;
	job->appnum = -1;
	job->groups = true;
	job->fetches = true;
	return 0;
}

static void drop(struct singleton *s, struct item *e)
{
	HASH_DEL(s->items, e);
	value_free(&e->value);
	free(e);
}

void singleton_destroy(struct singleton *s)
{
	struct item *e, *next;

	if (!s)
		return;
	HASH_ITER(hh, s->items, e, next)
		drop(s, e);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static struct item *item_new(enum kind kind, const char *name, size_t len)
{
	struct item *e = calloc(1, sizeof(*e) + len + 1);

	if (!e)
		return NULL;
	e->name[0] = (char)kind;
	memcpy(e->name + 1, name, len);
	e->name_len = len + 1;
	return e;
}

/* An entry of the same name is replaced. 0 or -ENOMEM. */
static int store(struct job *job, enum kind kind, const char *name,
		 size_t name_len, const void *value, size_t len)
{
	struct singleton *t = job->alone;
	struct item *e = item_new(kind, name, name_len);
	struct item *old;

	if (!e || value_set(&e->value, value, len)) {
		free(e);
		return -ENOMEM;
	}
	pthread_mutex_lock(&t->lock);
	HASH_FIND(hh, t->items, e->name, e->name_len, old);
	if (old)
		drop(t, old);
	HASH_ADD_KEYPTR(hh, t->items, e->name, e->name_len, e);
	pthread_mutex_unlock(&t->lock);
	return 0;
}

/* Copy the value out; with `take`, remove the entry. 0, -ENOENT, -ENOMEM. */
static int look_up(struct job *job, enum kind kind, const char *name,
		   bool take, struct value *out)
{
	struct singleton *t = job->alone;
	struct item *key = item_new(kind, name, strlen(name));
	struct item *e;
	int rc = -ENOENT;

	if (!key)
		return -ENOMEM;
	pthread_mutex_lock(&t->lock);
	HASH_FIND(hh, t->items, key->name, key->name_len, e);
	if (e)
		rc = value_set(out, e->value.data, e->value.len);
	if (e && take)
		drop(t, e);
	pthread_mutex_unlock(&t->lock);
	free(key);
	return rc;
}

static int alone_put(struct job *job, const char *key, size_t key_len,
		     const void *value, size_t value_len)
{
	return store(job, KIND_KEY, key, key_len, value, value_len);
}

static int alone_fence(struct job *job, struct call *call)
{
	call_init(call, NULL, "fence");
	return 0;
}

static int alone_get(struct job *job, const char *jobid, int source,
		     const char *key, struct value *out)
{
	return jobid ? -ENOENT : look_up(job, KIND_KEY, key, false, out);
}

static int alone_node_put(struct job *job, const char *name,
			  const char *value)
{
	return store(job, KIND_NODE, name, strlen(name), value, strlen(value));
}

/* Do not wait: another thread might still put the value, but nobody can know. */
static int alone_node_get(struct job *job, const char *name, bool wait,
			  struct value *out)
{
	return look_up(job, KIND_NODE, name, false, out);
}

static int alone_job_attr(struct job *job, const char *name,
			  struct value *out)
{
	static const struct {
		const char *name;
		const char *value;
	} attrs[] = {
		{ "universeSize", "1" },
		{ "hasNameServ", "1" },
		{ "PMI_process_mapping", "(vector,(0,1,1))" },
	};

	for (size_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++)
		if (!strcmp(name, attrs[i].name))
			return value_set(out, attrs[i].value,
					 strlen(attrs[i].value));
	return -ENOENT;
}

static int alone_publish(struct job *job, const char *name, const char *port)
{
	struct value old = { NULL, 0 };
	int rc = look_up(job, KIND_NAME, name, false, &old);

	value_free(&old);
	if (rc != -ENOENT)
		return rc ? rc : -EREMOTEIO; /* a name is published once */
	return store(job, KIND_NAME, name, strlen(name), port, strlen(port));
}

static int alone_unpublish(struct job *job, const char *name)
{
	struct value old = { NULL, 0 };
	int rc = look_up(job, KIND_NAME, name, true, &old);

	value_free(&old);
	return rc;
}

static int alone_lookup(struct job *job, const char *name,
			struct value *port)
{
	return look_up(job, KIND_NAME, name, false, port);
}

static int alone_ring(struct job *job, const char *value,
		      struct ring_place *out)
{
	out->rank = 0;
	out->size = 1;
	if (value_set(&out->left, value, strlen(value)) ||
	    value_set(&out->right, value, strlen(value)))
		return -ENOMEM;
	return 0;
}

static int alone_spawn(struct job *job, const struct spawn_request *request,
		       struct spawn_result *out)
{
	return -ENOTSUP;
}

static int alone_jobid(struct job *job, struct value *out)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "singleton.%ld", (long)getpid());

	return value_set(out, text, len);
}

static int alone_connect(struct job *job, const char *jobid)
{
	return -ENOTSUP;
}

static int alone_abort(struct job *job, bool world, int code,
		       const char *text)
{
	return 0;
}

static int alone_finalize(struct job *job)
{
	return 0;
}

static int alone_barrier_group(struct job *job, const char *group, int tag)
{
	return 0;
}

const struct wire_ops wire_singleton = {
	.put = alone_put,
	.fence = alone_fence,
	.barrier_group = alone_barrier_group,
	.get = alone_get,
	.node_put = alone_node_put,
	.node_get = alone_node_get,
	.job_attr = alone_job_attr,
	.publish = alone_publish,
	.unpublish = alone_unpublish,
	.lookup = alone_lookup,
	.ring = alone_ring,
	.spawn = alone_spawn,
	.jobid = alone_jobid,
	.connect = alone_connect,
	.disconnect = alone_connect,
	.abort = alone_abort,
	.finalize = alone_finalize,
};
