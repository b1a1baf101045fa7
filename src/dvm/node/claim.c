/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One daemon of a Slurm job on a node: claim.h. The claim is a socket of a name without a
 * file, which ends with its process.
 */
#include "dvm/node/claim.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libio/peer.h"
#include "libutil/hash.h"
#include "libutil/hex.h"

#define ENDING_MS 5000 /* a daemon that has lost its head ends its ranks first */
#define BACKLOG 64

static const char *value_of(const char *variable)
{
	const char *value = getenv(variable);

	return value ? value : "";
}

/* Another cluster may have a job of this number, and use the same machine. */
static socklen_t make_name(struct sockaddr_un *a, const char *node)
{
	unsigned char hash[HASH_NAME_SIZE];
	char text[4096];

	snprintf(text, sizeof(text), "%u %s %s %.256s", (unsigned)getuid(),
		 value_of("SLURM_JOB_ID"), value_of("SLURM_CONF"), node);
	hash_name(hash, text, strlen(text));
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	strcpy(a->sun_path + 1, "pmi2x-dvmd.");
	hex_print(hash, sizeof(hash), a->sun_path + 1 + strlen(a->sun_path + 1));
	return (socklen_t)(sizeof(a->sun_family) + 1 + strlen(a->sun_path + 1));
}

/* True when the holder is a process of this user and does not end in time. */
static bool is_kept(const struct sockaddr_un *a, socklen_t len)
{
	struct pollfd p = { .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) };
	struct ucred who;
	bool kept = p.fd >= 0 && !connect(p.fd, (const struct sockaddr *)a, len) &&
		    !peer_credentials(p.fd, &who) && who.uid == getuid() &&
		    !poll(&p, 1, ENDING_MS);

	if (p.fd >= 0)
		close(p.fd);
	return kept;
}

int claim_node(const char *node)
{
	struct sockaddr_un a;
	socklen_t len = make_name(&a, node);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ours = fd >= 0 && !bind(fd, (struct sockaddr *)&a, len);
	bool kept = !ours && errno == EADDRINUSE && is_kept(&a, len);

	if (!ours && !kept)
		ours = !bind(fd, (struct sockaddr *)&a, len);
	if (ours)
		(void)listen(fd, BACKLOG); /* the socket stays open */
	else if (fd >= 0)
		close(fd);
	return kept ? -EADDRINUSE : 0;
}
