/* SPDX-License-Identifier: BSD-3-Clause */
/* The pipes over which the ranks of a part write, two for all of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <uthash.h>

#include "dvm/zygote/zygote.h"
#include "libio/fd.h"

#define PIECE 65536 /* bytes that are read at once */

struct output {
	uint32_t part;
	int ours[2], theirs[2]; /* of stdout and stderr; -1 */
	size_t limit; /* bytes that may be read; 0: the pipes are not watched */
	UT_hash_handle hh;
};

struct outputs {
	int epoll;
	struct dvm_node **node;
	struct output *all;
	char piece[PIECE];
};

int outputs_create(struct outputs **out, int epoll, struct dvm_node **node)
{
	struct outputs *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->epoll = epoll;
	o->node = node;
	*out = o;
	return 0;
}

static int watch(struct outputs *o, const struct output *p, int i)
{
	struct epoll_event e = {
		.events = EPOLLIN,
		.data.u64 = (uint64_t)p->part << 1 | (unsigned)i,
	};

	return epoll_ctl(o->epoll, EPOLL_CTL_ADD, p->ours[i], &e) ? -errno : 0;
}

static int open_pipe(struct outputs *o, struct output *p, int i)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	p->ours[i] = ends[0];
	p->theirs[i] = ends[1];
	/* Only this end is not to wait: a rank may. */
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return watch(o, p, i);
}

/*
 * A child that has not executed its program yet has a copy: without this epoll would
 * go on to tell of it until then.
 */
static void close_ours(struct outputs *o, struct output *p, int i)
{
	if (p->ours[i] >= 0)
		epoll_ctl(o->epoll, EPOLL_CTL_DEL, p->ours[i], NULL);
	fd_close(&p->ours[i]);
}

static void output_free(struct outputs *o, struct output *p)
{
	for (int i = 0; i < 2; i++) {
		close_ours(o, p, i);
		fd_close(&p->theirs[i]);
	}
	free(p);
}

int outputs_open(struct outputs *o, uint32_t part)
{
	struct output *p = malloc(sizeof(*p));
	int rc;

	if (!p)
		return -ENOMEM;
	*p = (struct output){
		.part = part, .ours = { -1, -1 }, .theirs = { -1, -1 },
		.limit = SIZE_MAX,
	};
	rc = open_pipe(o, p, 0);
	rc = rc ? rc : open_pipe(o, p, 1);
	if (rc) {
		output_free(o, p);
		return rc;
	}
	HASH_ADD(hh, o->all, part, sizeof(p->part), p);
	return 0;
}

static struct output *find(struct outputs *o, uint32_t part)
{
	struct output *p;

	HASH_FIND(hh, o->all, &part, sizeof(part), p);
	return p;
}

void outputs_of(struct outputs *o, uint32_t part, int ends[2])
{
	const struct output *p = find(o, part);

	ends[0] = p ? p->theirs[0] : -1;
	ends[1] = p ? p->theirs[1] : -1;
}

void outputs_started(struct outputs *o, uint32_t part)
{
	struct output *p = find(o, part);

	if (!p)
		return;
	fd_close(&p->theirs[0]);
	fd_close(&p->theirs[1]);
}

/* The end of a pipe that is not watched would still come as an event: it is taken out. */
static void set_watched(struct outputs *o, struct output *p, bool watched)
{
	for (int i = 0; i < 2; i++)
		if (p->ours[i] < 0)
			;
		else if (!watched)
			epoll_ctl(o->epoll, EPOLL_CTL_DEL, p->ours[i], NULL);
		else if (watch(o, p, i))
			close_ours(o, p, i); /* its ranks are not to wait forever */
}

void outputs_limit(struct outputs *o, uint32_t part, size_t bytes)
{
	struct output *p = find(o, part);

	if (!p)
		return;
	if (!bytes != !p->limit)
		set_watched(o, p, bytes);
	p->limit = bytes;
}

/* A piece, so that one that writes much does not keep others waiting. How much it was. */
static size_t read_piece(struct outputs *o, struct output *p, int i, size_t max)
{
	size_t size = max < sizeof(o->piece) ? max : sizeof(o->piece);
	ssize_t n = read(p->ours[i], o->piece, size);

	if (n > 0)
		dvm_node_output(*o->node, p->part, i + 1, o->piece, (size_t)n);
	else if (!n || (errno != EAGAIN && errno != EINTR))
		close_ours(o, p, i);
	return n > 0 ? (size_t)n : 0;
}

/* All that the pipe holds now; a rank may have made it larger than a piece. */
static void read_rest(struct outputs *o, struct output *p, int i)
{
	size_t n = read_piece(o, p, i, SIZE_MAX);
	int left = 0;

	if (n < sizeof(o->piece) || ioctl(p->ours[i], FIONREAD, &left) < 0)
		return;
	for (; n && left > 0; left -= (int)n)
		n = read_piece(o, p, i, (size_t)left);
}

void outputs_event(struct outputs *o, uint64_t data)
{
	struct output *p = find(o, (uint32_t)(data >> 1));

	if (p && p->limit && p->ours[data & 1] >= 0)
		read_piece(o, p, data & 1, p->limit);
}

/*
 * A process that has left its rank's group may hold the pipe, and write forever: no more
 * is read than a pipe holds.
 */
void outputs_close(struct outputs *o, uint32_t part)
{
	struct output *p = find(o, part);

	if (!p)
		return;
	for (int i = 0; i < 2; i++)
		if (p->ours[i] >= 0)
			read_rest(o, p, i);
	HASH_DEL(o->all, p);
	output_free(o, p);
}
