/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of a task that does not use PMI (yet). */
#include "dvm/node/silent.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "libio/fd.h"

struct silent_rank {
	struct silent *of;
	struct registration registration; /* fd -1: not registered yet */
	struct watched_fd watched;
};

struct silent {
	struct silent_ops ops;
	const struct log_hook *log;
	struct epoll_set *epoll;
	struct watched_fd registration;
	bool over;
	bool pidfd_later; /* a rank's pidfd can be opened when it is needed */
	uint32_t count;
	struct silent_rank ranks[]; /* by slot */
};

static void look(const struct silent_rank *r)
{
	const struct silent *s = r->of;
	char byte;
	ssize_t n = recv(r->registration.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	bool ends = n == 0 || (n < 0 && errno != EAGAIN);

	if (n > 0 || (ends && s->ops.ends_count))
		s->ops.spoken(s->ops.arg, 0);
}

/* A rank that hangs up, or shuts down its side, has not used PMI. */
static void on_rank(struct watched_fd *e, int events, bool failed)
{
	const struct silent_rank *r = (struct silent_rank *)
		((char *)e - offsetof(struct silent_rank, watched));

	look(r);
}

/* Watch a rank: 0, or a negative errno, after which its messages would not be noticed. */
static int add_rank(struct silent *s, struct registration *reg)
{
	struct silent_rank *r;

	if (reg->fd < 0)
		return reg->lost ? -EMFILE : 0;
	if (reg->slot >= s->count || s->ranks[reg->slot].registration.fd >= 0) {
		registration_refuse(reg, reg->slot < s->count, s->log);
		return 0;
	}
	registration_find_process(reg, &s->pidfd_later);
	r = &s->ranks[reg->slot];
	r->registration = *reg;
	r->watched = (struct watched_fd){ .fd = reg->fd, .event = on_rank };
	return epoll_set_add(s->epoll, &r->watched, UV_READABLE);
}

static void on_registration(struct watched_fd *e, int events, bool failed)
{
	struct silent *s = (struct silent *)
		((char *)e - offsetof(struct silent, registration));
	struct registration reg[REGISTRATIONS_AT_ONCE];
	int rc, error = 0, n;

	do {
		n = registration_receive(e->fd, reg);
		for (int i = 0; i < n; i++) {
			rc = add_rank(s, &reg[i]);
			error = error ? error : rc;
		}
	} while (n == REGISTRATIONS_AT_ONCE);
	if (error)
		s->ops.spoken(s->ops.arg, error);
}

int silent_open(struct silent **out, struct epoll_set *epoll, int registration,
		uint32_t ranks, const struct silent_ops *ops, const struct log_hook *log)
{
	struct silent *s = calloc(1, sizeof(*s) + ranks * sizeof(*s->ranks));

	*out = s;
	if (!s)
		return -ENOMEM;
	s->ops = *ops;
	s->log = log;
	s->epoll = epoll;
	s->count = ranks;
	for (uint32_t i = 0; i < ranks; i++) {
		s->ranks[i].of = s;
		s->ranks[i].registration.fd = s->ranks[i].registration.pidfd = -1;
	}
	s->registration = (struct watched_fd){
		.fd = registration,
		.event = on_registration,
	};
	return epoll_set_add(epoll, &s->registration, UV_READABLE);
}

void silent_reaped(struct silent *s)
{
	on_registration(&s->registration, UV_READABLE, false);
	for (uint32_t i = 0; !s->over && i < s->count; i++)
		if (s->ranks[i].registration.fd >= 0)
			look(&s->ranks[i]);
}

void silent_end(struct silent *s, void (*take)(void *arg, struct registration *reg))
{
	if (!s || s->over)
		return;
	s->over = true;
	epoll_set_remove(s->epoll, &s->registration);
	for (uint32_t i = 0; i < s->count; i++) {
		struct silent_rank *r = &s->ranks[i];

		if (r->registration.fd < 0)
			continue;
		epoll_set_remove(s->epoll, &r->watched);
		if (take)
			take(s->ops.arg, &r->registration);
		fd_close(&r->registration.fd);
		fd_close(&r->registration.pidfd);
	}
}

void silent_destroy(struct silent *s)
{
	free(s);
}
