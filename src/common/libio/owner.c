/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the kernel for the owner of a socket: sock_diag(7), else proc_net(5). */
#include "libio/owner.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int owner_note_peer(int fd, struct owner_peer *e)
{
	socklen_t own_len = sizeof(e->own), peer_len = sizeof(e->peer);

	if (getpeername(fd, (struct sockaddr *)&e->own, &own_len) ||
	    getsockname(fd, (struct sockaddr *)&e->peer, &peer_len))
		return errno == ENOTCONN ? -ENOENT : -errno;
	return e->own.sin_family == AF_INET ? 0 : -EAFNOSUPPORT;
}

/* ---- sock_diag ---- */

/*
 * True once the kernel has described a socket. A kernel without the module for TCP, which
 * cannot be loaded everywhere, answers ENOENT for each.
 */
static atomic_bool knows_tcp;

static int ask(int netlink, const struct owner_peer *e)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 body;
	} m = {
		.head = {
			.nlmsg_len = sizeof(m),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.body = {
			.sdiag_family = AF_INET,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = ~0U,
			.id = {
				.idiag_sport = e->own.sin_port,
				.idiag_dport = e->peer.sin_port,
				.idiag_src = { e->own.sin_addr.s_addr },
				.idiag_dst = { e->peer.sin_addr.s_addr },
				.idiag_cookie = { INET_DIAG_NOCOOKIE,
						  INET_DIAG_NOCOOKIE },
			},
		},
	};

	return send(netlink, &m, sizeof(m), 0) == sizeof(m) ? 0 : -errno;
}

/* An IPv6 socket may have the connection; its addresses are IPv4's, mapped. */
static uint32_t address_in(const __be32 address[4], uint8_t family)
{
	return family == AF_INET ? address[0] : address[3];
}

/* The kernel answers with a listening socket where there is no connection. */
static bool is_connection(const struct inet_diag_msg *found, const struct owner_peer *e)
{
	return found->idiag_state != TCP_LISTEN &&
	       found->id.idiag_sport == e->own.sin_port &&
	       found->id.idiag_dport == e->peer.sin_port &&
	       address_in(found->id.idiag_src, found->idiag_family) ==
		       e->own.sin_addr.s_addr &&
	       address_in(found->id.idiag_dst, found->idiag_family) ==
		       e->peer.sin_addr.s_addr;
}

static int read_answer(int netlink, const struct owner_peer *e, struct owner *out)
{
	union {
		struct nlmsghdr head;
		char room[1024];
	} m;
	ssize_t n = recv(netlink, &m, sizeof(m), 0);
	const struct inet_diag_msg *found = NLMSG_DATA(&m.head);
	const struct nlmsgerr *error = NLMSG_DATA(&m.head);

	if (n < 0)
		return -errno;
	if (!NLMSG_OK(&m.head, n))
		return -EPROTO;
	if (m.head.nlmsg_type == NLMSG_ERROR)
		return error->error ? error->error : -EPROTO;
	if (m.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    m.head.nlmsg_len < NLMSG_LENGTH(sizeof(*found)))
		return -EPROTO;
	atomic_store(&knows_tcp, true);
	if (!found->idiag_inode || !is_connection(found, e))
		return -ENOENT; /* closed: it has no owner */
	*out = (struct owner){ found->idiag_uid, found->idiag_inode };
	return 0;
}

static int by_sock_diag(const struct owner_peer *e, struct owner *out)
{
	int rc, netlink = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC,
				 NETLINK_SOCK_DIAG);

	if (netlink < 0)
		return -errno;
	rc = ask(netlink, e);
	rc = rc ? rc : read_answer(netlink, e, out);
	close(netlink);
	return rc;
}

/* ---- /proc ---- */

/* IPv4's address in IPv6's form ends with it; before it are this, and zeros. */
#define MAPPED "0000000000000000FFFF0000"

static const char tcp_line[] = " %*u: %8X:%4X %8X:%4X %*X %*X:%*X %*X:%*X %*X %u %*u %lu";
static const char tcp6_line[] = " %*u: " MAPPED "%8X:%4X " MAPPED
				"%8X:%4X %*X %*X:%*X %*X:%*X %*X %u %*u %lu";

static bool line_has(const char *line, const char *form, const struct owner_peer *e,
		     struct owner *out)
{
	unsigned own, own_port, peer, peer_port, owner;
	unsigned long inode;

	if (sscanf(line, form, &own, &own_port, &peer, &peer_port, &owner, &inode) != 6 ||
	    own != e->own.sin_addr.s_addr || own_port != ntohs(e->own.sin_port) ||
	    peer != e->peer.sin_addr.s_addr ||
	    peer_port != ntohs(e->peer.sin_port) || !inode)
		return false;
	*out = (struct owner){ owner, inode };
	return true;
}

static int by_table(const char *path, const char *form, const struct owner_peer *e,
		    struct owner *out)
{
	char line[256];
	FILE *file = fopen(path, "re");
	int rc = -ENOENT;

	if (!file)
		return -errno;
	while (rc && fgets(line, sizeof(line), file))
		if (line_has(line, form, e, out))
			rc = 0;
	fclose(file);
	return rc;
}

/* A kernel without IPv6 has no second table. */
static int by_proc(const struct owner_peer *e, struct owner *out)
{
	int rc = by_table("/proc/net/tcp", tcp_line, e, out);

	return rc == -ENOENT ? by_table("/proc/net/tcp6", tcp6_line, e, out) : rc;
}

int owner_find(const struct owner_peer *peer, struct owner *out)
{
	int rc = by_sock_diag(peer, out);

	if (!rc || (rc == -ENOENT && atomic_load(&knows_tcp)))
		return rc;
	return by_proc(peer, out);
}

int owner_of(const struct owner_peer *peer, uint32_t *uid)
{
	struct owner owner;
	int rc = owner_find(peer, &owner);

	if (!rc)
		*uid = owner.uid;
	return rc;
}

int owner_of_peer(int fd, uint32_t *uid)
{
	struct owner_peer e;
	int rc = owner_note_peer(fd, &e);

	return rc ? rc : owner_of(&e, uid);
}

/* ---- as bytes ---- */

static void put_address(unsigned char *at, const struct sockaddr_in *a)
{
	memcpy(at, &a->sin_addr.s_addr, 4);
	memcpy(at + 4, &a->sin_port, 2);
}

static void get_address(const unsigned char *at, struct sockaddr_in *a)
{
	a->sin_family = AF_INET;
	memcpy(&a->sin_addr.s_addr, at, 4);
	memcpy(&a->sin_port, at + 4, 2);
}

void owner_pack(const struct owner_peer *peer, unsigned char bytes[OWNER_BYTES])
{
	put_address(bytes, &peer->own);
	put_address(bytes + OWNER_BYTES / 2, &peer->peer);
}

void owner_unpack(const unsigned char bytes[OWNER_BYTES], struct owner_peer *out)
{
	*out = (struct owner_peer){ 0 };
	get_address(bytes, &out->own);
	get_address(bytes + OWNER_BYTES / 2, &out->peer);
}
