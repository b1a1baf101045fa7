/* SPDX-License-Identifier: BSD-3-Clause */
/* Remembers refused sources, so that the log names each once. */
#include "libio/refusals.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "libio/peer.h"

void refusals_init(struct refusals *s, const struct log_hook *log)
{
	memset(s, 0, sizeof(*s));
	s->log = log;
}

/* NULL: this is no stranger's doing. */
static const char *reason(int error)
{
	switch (error) {
	case -EPROTO:
	case -EMSGSIZE:
		return "the peer does not use pmi2x's protocol";
	case -EACCES:
		return "the peer does not belong to this step";
	case -ENOPROTOOPT:
		return "the peer uses another version of pmi2x's protocol";
	case -ETIMEDOUT:
		return "the peer did not authenticate in time";
	case -ENOBUFS:
		return "too many connections wait for authentication";
	default:
		return NULL;
	}
}

/* NULL: it is new, and there is no room. */
static struct refusal *find(struct refusals *s, const char *name, bool *known)
{
	struct refusal *at = s->known;

	for (; at < s->known + s->count; at++)
		if (!strcmp(at->name, name)) {
			*known = true;
			return at;
		}
	*known = false;
	if (s->count == REFUSALS_MAX)
		return NULL;
	s->count++;
	snprintf(at->name, sizeof(at->name), "%s", name);
	return at;
}

static void note(struct refusals *s, const char *name, const char *why)
{
	bool known;
	struct refusal *who = find(s, name, &known);

	if (!who)
		s->others++;
	else if (known)
		who->more++;
	else
		log_info(s->log, "refused a connection from %s: %s", name, why);
}

void refusals_add(struct refusals *s, const uint8_t ip[16], int error)
{
	const struct in6_addr *in6 = (const struct in6_addr *)ip;
	const char *why = reason(error);
	char name[INET6_ADDRSTRLEN];

	if (!why)
		return;
	if (IN6_IS_ADDR_V4MAPPED(in6))
		inet_ntop(AF_INET, ip + 12, name, sizeof(name));
	else
		inet_ntop(AF_INET6, ip, name, sizeof(name));
	note(s, name, why);
}

void refusals_add_user(struct refusals *s, uid_t uid, const char *what)
{
	char name[REFUSAL_NAME_MAX], why[REFUSAL_NAME_MAX];

	snprintf(name, sizeof(name), "user %u", (unsigned)uid);
	snprintf(why, sizeof(why), "%s is not that user's", what);
	note(s, name, why);
}

bool refusals_let_in(struct refusals *s, int fd, uid_t owner,
		      const char *what)
{
	struct ucred peer;

	if (peer_credentials(fd, &peer))
		return false;
	if (refusals_user_counts(peer.uid, owner))
		return true;
	refusals_add_user(s, peer.uid, what);
	return false;
}

void refusals_end(struct refusals *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->known[i].more)
			log_info(s->log, "refused %u more connections from %s",
				 s->known[i].more, s->known[i].name);
	if (s->others)
		log_info(s->log, "refused %u connections from others",
			 s->others);
	s->count = s->others = 0;
}
