/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetches a value of one rank, in the form in which it was put. */
#include "fetch.h"

#include <errno.h>
#include <string.h>

#include "job.h"
#include "kvs.h"
#include "wire.h"

static int check(const struct job *job, int rank, const char *key, int timeout)
{
	if (!job->fetches)
		return -ENOTSUP;
	if (rank < 0 || rank >= job->size || !*key || timeout < -1)
		return -EINVAL;
	return strlen(key) < PMI_KEYLEN_MAX ? 0 : -ENAMETOOLONG;
}

/* Nobody else can put it, so there is nothing to wait for. */
static int start_alone(struct job *job, struct fetch *f)
{
	call_init(&f->call, NULL, "fetch");
	f->call.error = job->ops->get(job, NULL, f->rank, f->key, &f->value);
	return 0;
}

int fetch_start(struct job *job, int rank, const char *key, int timeout,
		struct fetch *f)
{
	int rc = check(job, rank, key, timeout);

	if (rc)
		return rc;
	f->value = (struct value){ NULL, 0 };
	f->rank = rank;
	strcpy(f->key, key);
	if (!job->conn)
		return start_alone(job, f);
	return job->ops->fetch(job, rank, key, timeout, &f->call);
}

static int take(struct job *job, struct fetch *f, struct value *out)
{
	if (job->conn)
		return wire_take(&f->call, 0, "value", out);
	*out = f->value;
	f->value = (struct value){ NULL, 0 };
	return wire_wait(&f->call);
}

/* A piece of a value that was put in pieces: who has put one has put them all. */
static int fetch_piece(struct job *job, int rank, const char *key,
		       struct value *out)
{
	struct fetch f;
	int rc = fetch_start(job, rank, key, 0, &f);

	if (rc)
		return rc;
	(void)call_wait(&f.call);
	return take(job, &f, out);
}

int fetch_finish(struct job *job, struct fetch *f, struct value *out)
{
	int rc = take(job, f, out);

	return rc ? rc : kvs_join(job, fetch_piece, f->rank, f->key, out);
}

void fetch_drop(struct fetch *f)
{
	call_end(&f->call);
	value_free(&f->value);
}

void fetch_cancel_all(struct job *job)
{
	if (job->conn)
		(void)job->ops->fetch_cancel(job);
}
