/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket of pmi2x-sync: held from the beginning of the step, and given to the agent, which
 * serves it. Until there is an agent, the first caller of the step's user starts it. Nothing
 * that callers send is read here.
 *
 * The name is in the abstract namespace: it needs no file, goes with the socket, and is found
 * by every process of the node's network namespace. The kernel tells the user of each caller.
 */
#include "supervisor/supervisor_internal.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libio/clock.h"
#include "libio/hang_up.h"
#include "libio/peer.h"
#include "libutil/hash.h"
#include "supervisor/accept_user.h"

static int bind_and_listen(struct sync_socket *x)
{
	struct sockaddr_un here = { .sun_family = AF_UNIX };
	size_t len = strlen(x->name);

	memcpy(here.sun_path + 1, x->name, len);
	x->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (x->listener < 0 ||
	    bind(x->listener, (struct sockaddr *)&here,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) ||
	    listen(x->listener, SOMAXCONN))
		return -errno;
	return 0;
}

/*
 * Others shall not know the name before it is taken. It follows from the step's random number,
 * which it does not reveal, and from the time: that takes no system call.
 */
static void make_name(struct supervisor *s)
{
	const int64_t now[] = { clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_REALTIME) };
	uint64_t seed = s->options.agent.port_seed;

	snprintf(s->sync.name, sizeof(s->sync.name), "pmi2x-sync-%08x%08x",
		 hash_seeded(seed, now, sizeof(now)), hash_seeded(~seed, now, sizeof(now)));
}

/* A step without the socket runs all the same. */
void sync_open(struct supervisor *s)
{
	struct sync_socket *x = &s->sync;
	int rc;

	x->listener = x->client = -1;
	if (!s->options.sync)
		return;
	make_name(s);
	rc = bind_and_listen(x);
	if (!rc)
		return;
	fd_close(&x->listener);
	x->name[0] = '\0';
	log_info(s->log, "pmi2x-sync cannot be used in this step on node %s: %s",
		 supervisor_node_name(s), strerror(-rc));
}

/* Callers of other users may have sent descriptors, so their sockets are hung up. */
bool sync_is_asked(struct supervisor *s)
{
	struct sync_socket *x = &s->sync;
	struct ucred peer;

	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		int fd = accept4(x->listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			return errno == EMFILE || errno == ENFILE;
		if (!peer_credentials(fd, &peer) && peer.uid == s->options.program.uid) {
			x->client = fd;
			return true;
		}
		hang_up(&fd);
	}
	return false;
}

void sync_hand_over(struct supervisor *s)
{
	fd_close(&s->sync.listener);
	fd_close(&s->sync.client);
}

void sync_refuse(struct supervisor *s)
{
	hang_up(&s->sync.client);
	hang_up_listener(&s->sync.listener);
}

const char *supervisor_sync_name(const struct supervisor *s)
{
	return s->sync.name[0] ? s->sync.name : NULL;
}
