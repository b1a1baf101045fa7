/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other end of a TCP connection, by its address; on this node also by its user. The
 * filter of the agent allows no netlink, so the kernel's list of sockets is read.
 */
#include "agent/step/torch_peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512 /* of /proc/net/tcp6 */

/* IPv4 in its mapped form. */
struct endpoint {
	struct in6_addr ip;
	uint16_t port;
};

static bool endpoint_of(const struct sockaddr_storage *addr, struct endpoint *out)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)addr;

	memset(out, 0, sizeof(*out));
	if (addr->ss_family == AF_INET6) {
		out->ip = in6->sin6_addr;
		out->port = ntohs(in6->sin6_port);
	} else if (addr->ss_family == AF_INET) {
		out->ip.s6_addr[10] = out->ip.s6_addr[11] = 0xff;
		memcpy(out->ip.s6_addr + 12, &in4->sin_addr, sizeof(in4->sin_addr));
		out->port = ntohs(in4->sin_port);
	}
	return addr->ss_family == AF_INET6 || addr->ss_family == AF_INET;
}

static bool ends_of(int fd, struct endpoint *own, struct endpoint *peer)
{
	struct sockaddr_storage here = { 0 }, there = { 0 };
	socklen_t len = sizeof(here), there_len = sizeof(there);

	return !getsockname(fd, (struct sockaddr *)&here, &len) &&
	       !getpeername(fd, (struct sockaddr *)&there, &there_len) &&
	       endpoint_of(&here, own) && endpoint_of(&there, peer);
}

uint16_t torch_peers_port(int fd)
{
	struct sockaddr_storage here = { 0 };
	socklen_t len = sizeof(here);
	struct endpoint own;

	return !getsockname(fd, (struct sockaddr *)&here, &len) && endpoint_of(&here, &own) ? own.port : 0;
}

static void name_of(const struct endpoint *e, char name[NODE_WHY_MAX])
{
	if (IN6_IS_ADDR_V4MAPPED(&e->ip))
		inet_ntop(AF_INET, e->ip.s6_addr + 12, name, NODE_WHY_MAX);
	else
		inet_ntop(AF_INET6, &e->ip, name, NODE_WHY_MAX);
}

static bool same_ip(const struct endpoint *a, const struct endpoint *b)
{
	return !memcmp(&a->ip, &b->ip, sizeof(a->ip));
}

static bool is_loopback(const struct endpoint *e)
{
	return IN6_IS_ADDR_LOOPBACK(&e->ip) ||
	       (IN6_IS_ADDR_V4MAPPED(&e->ip) && e->ip.s6_addr[12] == 127);
}

/* ---- the kernel's list ---- */

/* One or four words in the host's byte order, eight digits each, as the kernel prints them. */
static bool read_endpoint(const char *digits, unsigned port, struct endpoint *out)
{
	uint32_t words[4] = { 0, 0, htonl(0xffff), 0 };
	size_t n = strlen(digits) / 8;

	if (n != 1 && n != 4)
		return false;
	for (size_t i = 0; i < n; i++)
		if (sscanf(digits + 8 * i, "%8x", &words[n == 1 ? 3 : i]) != 1)
			return false;
	memcpy(&out->ip, words, sizeof(out->ip));
	out->port = (uint16_t)port;
	return true;
}

static bool same_end(const struct endpoint *a, const struct endpoint *b)
{
	return same_ip(a, b) && a->port == b->port;
}

/* True: the line describes the socket at `own`, connected to `peer`. */
static bool is_socket(const char *line, const struct endpoint *own,
		      const struct endpoint *peer, unsigned *uid)
{
	char here[33], there[33];
	unsigned here_port, there_port;
	struct endpoint a, b;

	return sscanf(line, "%*u: %32[0-9A-F]:%x %32[0-9A-F]:%x %*x %*x:%*x %*x:%*x %*x %u",
		      here, &here_port, there, &there_port, uid) == 5 &&
	       read_endpoint(here, here_port, &a) && read_endpoint(there, there_port, &b) &&
	       same_end(&a, own) && same_end(&b, peer);
}

/* The port of the socket that a line describes; 0: the line describes none. */
static uint16_t port_of(const char *line)
{
	const char *number = strchr(line, ':');
	const char *port = number ? strchr(number + 1, ':') : NULL;

	return port ? (uint16_t)strtoul(port + 1, NULL, 16) : 0;
}

/* A connection whose other end is on this node. */
struct sought {
	struct torch_peer_of *peer;
	struct endpoint here, there;
};

static enum torch_peer judge(unsigned uid)
{
	return uid == getuid() || !uid ? TORCH_PEER_MAY : TORCH_PEER_OTHER_USER;
}

/* Remove what the line describes from the list. Returns how many are left. */
static uint32_t match(const char *line, struct sought *list, uint32_t count)
{
	const uint16_t port = port_of(line);
	unsigned uid;

	for (uint32_t i = 0; i < count; i++) {
		struct sought *s = &list[i];

		if (s->there.port != port || !is_socket(line, &s->there, &s->here, &uid))
			continue;
		s->peer->peer = judge(uid);
		*s = list[count - 1];
		return count - 1;
	}
	return count;
}

static uint32_t find_in(const char *path, struct sought *list, uint32_t count)
{
	FILE *file = count ? fopen(path, "re") : NULL;
	char line[LINE_MAX_BYTES];

	while (file && count && fgets(line, sizeof(line), file))
		count = match(line, list, count);
	if (file)
		fclose(file);
	return count;
}

/* ---- who may ---- */

/* The node of the step that has the address; NULL: none has. */
static const struct known_address *node_at(const struct node *n, const struct endpoint *peer)
{
	struct endpoint node;

	for (uint32_t i = 0; i < n->nknown; i++)
		if (endpoint_of(&n->known[i].addr, &node) && same_ip(&node, peer))
			return &n->known[i];
	return NULL;
}

static bool position_of(const struct node *n, uint32_t node_id, uint32_t *position)
{
	for (uint32_t i = 0; i < layout_nodes(n->layout); i++) {
		*position = i;
		if (layout_node_id(n->layout, i) == node_id)
			return true;
	}
	return false;
}

static bool is_here(const struct endpoint *own, const struct endpoint *peer)
{
	return is_loopback(peer) || same_ip(own, peer);
}

bool torch_peers_origin(const struct node *n, int fd, uint32_t *position, uint16_t *port)
{
	const struct known_address *node;
	struct endpoint own, peer;

	if (!ends_of(fd, &own, &peer))
		return false;
	*port = peer.port;
	*position = n->self.position;
	if (is_here(&own, &peer))
		return true;
	node = node_at(n, &peer);
	return node && position_of(n, node->node_id, position);
}

/* True: it is on this node, and to be sought. */
static bool look_at(const struct node *n, struct torch_peer_of *p, struct sought *s)
{
	s->peer = p;
	p->peer = TORCH_PEER_GONE; /* until it is found */
	p->name[0] = '\0';
	if (!ends_of(p->fd, &s->here, &s->there))
		return false;
	name_of(&s->there, p->name);
	if (is_here(&s->here, &s->there))
		return true;
	p->peer = node_at(n, &s->there) ? TORCH_PEER_MAY : TORCH_PEER_OTHER_HOST;
	return false;
}

void torch_peers_look(const struct node *n, struct torch_peer_of *peers, uint32_t count)
{
	struct sought list[TORCH_PEERS_MAX];
	uint32_t sought = 0;

	for (uint32_t i = 0; i < count; i++)
		sought += look_at(n, &peers[i], &list[sought]);
	sought = find_in("/proc/net/tcp", list, sought);
	(void)find_in("/proc/net/tcp6", list, sought);
}
