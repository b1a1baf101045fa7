/* SPDX-License-Identifier: BSD-3-Clause */
/* The four ways of the look-up study to keep a writer and readers apart. */
#include "lookup.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libshm/image.h"
#include "libshm/region.h"

#define CACHE_LINE 64

/* ---- an image that is changed in place, in shared memory ---- */

/* Figure 4: lock2 says that somebody waits, lock1 guards the data. */
struct client_locks {
	_Alignas(CACHE_LINE) pthread_mutex_t lock1;
	_Alignas(CACHE_LINE) pthread_mutex_t lock2;
};

struct in_place {
	_Alignas(CACHE_LINE) pthread_rwlock_t rwlock;
	struct image image;
	struct client_locks clients[]; /* one for each reader */
};

static void *map_shared(size_t len)
{
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void init_locks(struct in_place *p, uint32_t clients)
{
	pthread_rwlockattr_t rwlock;
	pthread_mutexattr_t mutex;

	pthread_rwlockattr_init(&rwlock);
	pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED);
	pthread_rwlock_init(&p->rwlock, &rwlock);
	pthread_mutexattr_init(&mutex);
	pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
	for (uint32_t i = 0; i < clients; i++) {
		pthread_mutex_init(&p->clients[i].lock1, &mutex);
		pthread_mutex_init(&p->clients[i].lock2, &mutex);
	}
}

/* Everything is at the same address in the readers, which are forked later. */
static int in_place_create(struct lookup_store *s)
{
	uint32_t clients = s->options->readers;
	struct in_place *p;
	void *image, *shared;
	size_t len;
	int rc = image_of(s, &image, &len);

	if (rc)
		return rc;
	p = map_shared(sizeof(*p) + clients * sizeof(p->clients[0]));
	shared = map_shared(len);
	if (p && shared) {
		memcpy(shared, image, len);
		init_locks(p, clients);
		rc = image_open(&p->image, shared, len);
		s->state = p;
	} else {
		rc = -ENOMEM;
	}
	free(image);
	return rc;
}

static int in_place_attach(struct lookup_store *s)
{
	return 0;
}

static const char *find(const struct lookup_store *s, uint32_t key)
{
	const struct in_place *p = s->state;
	size_t key_len = strlen(s->keys[key]), len;
	const char *value;

	if (!image_find(&p->image, image_hash(s->keys[key], key_len),
			s->keys[key], key_len, &value, &len) ||
	    len != s->options->bytes)
		return NULL;
	return value;
}

static bool copy_out(const struct lookup_store *s, uint32_t key,
		     unsigned char *out)
{
	const char *value = find(s, key);

	if (value)
		memcpy(out, value, s->options->bytes);
	return value != NULL;
}

static int change(const struct lookup_store *s, uint32_t key,
		  const unsigned char *value)
{
	const char *at = find(s, key);

	if (!at)
		return -ENOENT;
	memcpy((char *)(uintptr_t)at, value, s->options->bytes);
	return 0;
}

/* ---- rwlock ---- */

static bool rwlock_get(struct lookup_store *s, uint32_t reader, uint32_t key,
		       unsigned char *out)
{
	struct in_place *p = s->state;
	bool found;

	pthread_rwlock_rdlock(&p->rwlock);
	found = copy_out(s, key, out);
	pthread_rwlock_unlock(&p->rwlock);
	return found;
}

static int rwlock_put(struct lookup_store *s, uint32_t key,
		      const unsigned char *value)
{
	struct in_place *p = s->state;
	int rc;

	pthread_rwlock_wrlock(&p->rwlock);
	rc = change(s, key, value);
	pthread_rwlock_unlock(&p->rwlock);
	return rc;
}

const struct lookup_way lookup_rwlock = {
	.name = "rwlock",
	.whole = true,
	.create = in_place_create,
	.attach = in_place_attach,
	.get = rwlock_get,
	.put = rwlock_put,
};

/* ---- 2N mutexes ---- */

static bool two_n_get(struct lookup_store *s, uint32_t reader, uint32_t key,
		      unsigned char *out)
{
	struct in_place *p = s->state;
	struct client_locks *own = &p->clients[reader];
	bool found;

	pthread_mutex_lock(&own->lock2);   /* c1 */
	pthread_mutex_lock(&own->lock1);   /* c2 */
	pthread_mutex_unlock(&own->lock2); /* c3 */
	found = copy_out(s, key, out);
	pthread_mutex_unlock(&own->lock1);
	return found;
}

static int two_n_put(struct lookup_store *s, uint32_t key,
		     const unsigned char *value)
{
	struct in_place *p = s->state;
	uint32_t n = s->options->readers;
	int rc;

	for (uint32_t i = 0; i < n; i++)
		pthread_mutex_lock(&p->clients[i].lock2); /* s1 */
	for (uint32_t i = 0; i < n; i++)
		pthread_mutex_lock(&p->clients[i].lock1); /* s2 */
	rc = change(s, key, value);
	for (uint32_t i = 0; i < n; i++) {
		pthread_mutex_unlock(&p->clients[i].lock1);
		pthread_mutex_unlock(&p->clients[i].lock2);
	}
	return rc;
}

const struct lookup_way lookup_2n = {
	.name = "2n",
	.whole = true,
	.create = in_place_create,
	.attach = in_place_attach,
	.get = two_n_get,
	.put = two_n_put,
};

/* ---- none ---- */

static bool none_get(struct lookup_store *s, uint32_t reader, uint32_t key,
		     unsigned char *out)
{
	return copy_out(s, key, out);
}

static int none_put(struct lookup_store *s, uint32_t key,
		    const unsigned char *value)
{
	return change(s, key, value);
}

const struct lookup_way lookup_none = {
	.name = "none",
	.create = in_place_create,
	.attach = in_place_attach,
	.get = none_get,
	.put = none_put,
};

/* ---- immutable generations ---- */

struct generations {
	struct region_writer *writer; /* the writer's */
	struct region *region;        /* a reader's */
};

/* No generation is ever freed; merged indexes grow with the keys. */
static size_t room_for(const struct lookup_options *o, size_t image_len)
{
	uint64_t updates = (uint64_t)o->rate * o->ms / 1000 + 16;
	uint64_t each = 4096 + 2 * o->bytes;

	return REGION_SIZE_MIN + 4 * image_len + updates * each +
	       updates / REGION_CHAIN_MAX * (uint64_t)o->keys * 4;
}

static int pmi2x_create(struct lookup_store *s)
{
	struct generations *g = calloc(1, sizeof(*g));
	void *image = NULL;
	size_t len = 0, size;
	int rc = g ? image_of(s, &image, &len) : -ENOMEM;

	s->state = g;
	if (rc)
		return rc;
	size = room_for(s->options, len);
	if (size > REGION_SIZE_MAX)
		size = REGION_SIZE_MAX;
	rc = region_writer_create(&g->writer, size);
	rc = rc ? rc : region_publish_fence(g->writer, image, len);
	free(image);
	return rc;
}

static int pmi2x_attach(struct lookup_store *s)
{
	struct generations *g = s->state;

	return region_attach(&g->region, region_writer_fd(g->writer),
			     region_writer_size(g->writer));
}

static bool pmi2x_get(struct lookup_store *s, uint32_t reader, uint32_t key,
		      unsigned char *out)
{
	const struct generations *g = s->state;
	const char *value;
	size_t len;

	if (!region_find(g->region, s->keys[key], strlen(s->keys[key]), &value,
			 &len) || len != s->options->bytes)
		return false;
	memcpy(out, value, len);
	return true;
}

static int pmi2x_put(struct lookup_store *s, uint32_t key,
		     const unsigned char *value)
{
	struct generations *g = s->state;
	void *image;
	size_t len;
	int rc = image_of_one(s, key, value, &image, &len);

	if (rc)
		return rc;
	rc = region_publish_fence(g->writer, image, len);
	free(image);
	return rc;
}

const struct lookup_way lookup_pmi2x = {
	.name = "pmi2x",
	.whole = true,
	.create = pmi2x_create,
	.attach = pmi2x_attach,
	.get = pmi2x_get,
	.put = pmi2x_put,
};
