/* SPDX-License-Identifier: BSD-3-Clause */
/* Links between the head and the daemons of its nodes, and clients on other nodes. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "dvm/head/head_main.h"

#define STRANGERS_MAX 256      /* connections that have not proved themselves */
#define HANDSHAKE_MS 10000

/* Why this side has connected. */
enum call {
	CALL_NONE,   /* not called */
	CALL_ADOPTS, /* the daemon waits for a head */
	CALL_ENDS,   /* the daemon waits, and this head has given it up */
};

struct node_link {
	struct head_main *head;
	struct link *link;
	struct stranger stranger; /* until it is proved, if it has come */
	bool proved;
	uint32_t position;
	struct client *client; /* NULL: the link of a node */
	enum call call;
	const char *broken; /* why this side has ended it */
	struct node_link *prev, *next;
};

static void forget(struct node_link *n)
{
	struct head_main *h = n->head;

	DL_DELETE(h->all_links, n);
	strangers_leave(&h->strangers, &n->stranger);
	if (!n->proved)
		;
	else if (n->client)
		clients_leave(n->client);
	else if (h->links[n->position] == n) {
		h->links[n->position] = NULL;
		h->nlinks--;
	}
	link_close(n->link);
	free(n);
	h->hooks->check_left(h);
}

/* The daemon of the link has another one to this head. */
static void replace(struct node_link *old)
{
	head_tree_link_lost(old->head, old->position, "the daemon has connected again");
	forget(old);
}

static void have(struct node_link *n)
{
	strangers_leave(&n->head->strangers, &n->stranger);
	n->proved = true;
	n->head->links[n->position] = n;
	n->head->nlinks++;
}

static void take_node(struct node_link *n, uint32_t position)
{
	struct head_main *h = n->head;

	if (position >= dvm_head_positions(h->head) || (h->links[position] && !h->tree)) {
		forget(n);
		return;
	}
	if (h->links[position])
		replace(h->links[position]);
	n->position = position;
	have(n);
	if (!h->tree)
		dvm_head_node_address(h->head, position, link_source(n->link));
	else if (head_tree_link(h, position))
		link_finish(n->link);
}

static void tell_to_end(struct node_link *n)
{
	static const struct dvm_msg stop = { .type = DVM_STOP, .stop.now = true };
	char room[16];
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	if (!dvm_msg_pack(&b, &stop))
		(void)link_send_bytes(n->link, FRAME_CONTROL_DOWN, b.data, b.len);
}

/* The node may have a later head, and this one not know of that yet. */
static void say_who_calls(struct node_link *n)
{
	const struct dvm_msg call = {
		.type = DVM_CALL, .call.epoch = head_journal_epoch(n->head),
	};
	char room[16];
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	if (!dvm_msg_pack(&b, &call))
		(void)link_send_bytes(n->link, FRAME_CONTROL_DOWN, b.data, b.len);
}

static void on_answer(struct node_link *n)
{
	say_who_calls(n);
	if (n->call == CALL_ENDS) {
		tell_to_end(n);
		return; /* the daemon sends GONE and ends */
	}
	have(n);
	orphans_answer(n->head, n->position, 0);
}

static void take_client(struct node_link *n)
{
	n->client = clients_join(n->head, n->link);
	if (!n->client) {
		forget(n);
		return;
	}
	strangers_leave(&n->head->strangers, &n->stranger);
	n->proved = true;
}

static void on_proved(void *arg, struct link *l)
{
	struct node_link *n = arg;
	uint32_t position = link_peer(l)->position;

	if (n->call)
		on_answer(n);
	else if (position == WELCOME_CLIENT)
		take_client(arg);
	else
		take_node(arg, position);
}

/* All but GONE is for the last head. */
static int take_gone(struct node_link *n, const struct payload *body)
{
	if (body->len && *(const uint8_t *)body->data == DVM_GONE)
		dvm_head_node_gone(n->head->head, n->position, head_now(n->head));
	return 0;
}

/* While others are called, ranks go on. Its other messages are for the last head. */
static int answer_lease(struct node_link *n, const struct payload *body)
{
	return dvm_msg_is_lease(body->data, body->len) ?
		link_send_bytes(n->link, FRAME_CONTROL_DOWN, body->data, body->len) : 0;
}

static int take_tree_frame(struct node_link *n, const struct payload *body)
{
	int rc = head_tree_frame(n->head, n->position, body, link_source(n->link));

	return n->broken ? -EPROTO : rc;
}

static int on_frame(void *arg, struct link *l, enum frame_type type,
		    struct payload *body)
{
	struct node_link *n = arg;
	struct head_main *h = n->head;

	if (type != FRAME_CONTROL_UP)
		return -EPROTO;
	if (n->client)
		return clients_input(n->client, body->data, body->len);
	if (n->call == CALL_ENDS)
		return take_gone(n, body);
	if (!h->head)
		return answer_lease(n, body);
	if (h->tree)
		return take_tree_frame(n, body);
	if (dvm_msg_is_lease(body->data, body->len)) /* a slow disk may have delayed it */
		uv_update_time(loop_uv(h->loop));
	dvm_head_node_input(h->head, n->position, body->data, body->len,
			    head_now(h));
	return n->broken ? -EPROTO : 0;
}

/* Refuse a node of another version: it is one of those that were to come. */
static void refuse_version(struct head_main *h)
{
	static const char why[] =
		"a node has another version of pmi2x-dvmd: install the same version on all nodes";

	if (h->ready)
		dvm_head_grow_failed(h->head, why);
	else
		head_fail(h, "%s", why);
}

static void lost(struct node_link *n, const char *why)
{
	struct head_main *h = n->head;

	if (!h->head) {
		h->unheard = true; /* it answered this head's call, and its ranks may run */
		return;
	}
	if (h->tree) {
		head_tree_link_lost(h, n->position, why);
		return;
	}
	if (!h->ready && !h->norphans) {
		launch_daemon_lost(h);
		return;
	}
	orphans_be_absent(h, n->position);
	dvm_head_node_lost(h->head, n->position, why, head_now(h));
}

/* A daemon that was called has not answered, or was told to end. */
static void not_answered(struct node_link *n, int error)
{
	struct head_main *h = n->head;
	uint32_t position = n->position;
	bool awaited = n->call == CALL_ADOPTS;

	forget(n);
	if (awaited)
		orphans_answer(h, position, error ? error : -ECONNRESET);
	else
		ends_called(h, position, error);
}

static void on_end(void *arg, struct link *l, int error)
{
	struct node_link *n = arg;
	struct head_main *h = n->head;
	const char *why = n->broken ? n->broken :
			  error ? link_strerror(error) : "its daemon has ended";

	bool is_client = link_peer(l)->position == WELCOME_CLIENT;
	bool is_node = n->proved && !is_client;
	uint32_t position = n->position;

	if (n->call && !n->proved) {
		not_answered(n, error);
		return;
	}
	strangers_ended(&h->strangers, &n->stranger, error);
	if (is_node)
		lost(n, why);
	forget(n);
	if (is_node && !h->tree)
		ends_begin(h, position); /* which may end this head */
	if (error == -EPROTONOSUPPORT && !is_client)
		refuse_version(h);
}

static const struct link_ops node_link_ops = {
	.proved = on_proved, .frame = on_frame, .end = on_end,
};

static struct link_options link_options(const struct head_main *h)
{
	return (struct link_options){
		.handshake_ms = HANDSHAKE_MS, .dead_peer_ms = h->welcome.peer_ms,
	};
}

static void on_accept(void *arg, int fd)
{
	struct head_main *h = arg;
	const struct link_options options = link_options(h);
	struct node_link *n = calloc(1, sizeof(*n));

	if (!n) {
		close(fd);
		return;
	}
	n->head = h;
	strangers_join(&h->strangers, &n->stranger, n, &n->link);
	DL_APPEND(h->all_links, n);
	if (link_accept(&n->link, loop_uv(h->loop), &h->self, fd, &options, &node_link_ops,
			n))
		forget(n);
}

/* ---- daemons that wait ---- */

static int call(struct head_main *h, uint32_t position,
		const struct dvm_address *where,
		enum call call)
{
	const struct link_options options = link_options(h);
	struct node_link *n = calloc(1, sizeof(*n));
	struct sockaddr_storage to;
	int rc = -ENOMEM;

	if (!n)
		return rc;
	*n = (struct node_link){ .head = h, .position = position, .call = call };
	welcome_sockaddr(&to, where);
	rc = link_connect(&n->link, loop_uv(h->loop), &h->self, position, &to,
			  &options, &node_link_ops, n);
	if (rc) {
		free(n);
		return rc;
	}
	DL_APPEND(h->all_links, n);
	return 0;
}

int nodes_call(struct head_main *h, uint32_t position,
	       const struct dvm_address *where)
{
	return call(h, position, where, CALL_ADOPTS);
}

int nodes_call_to_end(struct head_main *h, uint32_t position,
		      const struct dvm_address *where)
{
	return call(h, position, where, CALL_ENDS);
}

/* ---- where ---- */

static void add_head(struct head_main *h, const struct sockaddr *a, uint16_t port)
{
	struct sockaddr_storage *out = &h->welcome.heads[h->welcome.nheads];

	if (h->welcome.nheads == WELCOME_HEADS_MAX)
		return;
	memset(out, 0, sizeof(*out));
	if (a->sa_family == AF_INET) {
		memcpy(out, a, sizeof(struct sockaddr_in));
		((struct sockaddr_in *)out)->sin_port = htons(port);
	} else {
		memcpy(out, a, sizeof(struct sockaddr_in6));
		((struct sockaddr_in6 *)out)->sin6_port = htons(port);
	}
	h->welcome.nheads++;
}

static bool is_useful(const struct ifaddrs *i, int family)
{
	const struct sockaddr_in6 *six = (const void *)i->ifa_addr;

	if (!i->ifa_addr || i->ifa_addr->sa_family != family ||
	    i->ifa_flags & IFF_LOOPBACK || !(i->ifa_flags & IFF_UP))
		return false;
	return family == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
}

static void add_interfaces(struct head_main *h, uint16_t port)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct ifaddrs *list;

	if (getifaddrs(&list) < 0)
		return;
	for (size_t f = 0; f < 2; f++)
		for (const struct ifaddrs *i = list; i; i = i->ifa_next)
			if (is_useful(i, families[f]))
				add_head(h, i->ifa_addr, port);
	freeifaddrs(list);
}

static void drop_stranger(void *owner)
{
	forget(owner);
}

int nodes_open(struct head_main *h)
{
	struct sockaddr_in loopback = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct sockaddr_storage bind_to = { .ss_family = AF_UNSPEC };
	uint16_t port;
	int fd;

	strangers_init(&h->strangers, STRANGERS_MAX + h->options.nodes, drop_stranger, &h->log);
	if (h->options.local)
		memcpy(&bind_to, &loopback, sizeof(loopback));
	if (nodes_make_room(h, h->options.nodes))
		return -ENOMEM;
	fd = listener_socket(&bind_to, 0, &port);
	if (fd < 0)
		return fd;
	if (!h->options.local)
		add_interfaces(h, port);
	add_head(h, (struct sockaddr *)&loopback, port);
	return listener_open(&h->nodes_listener, loop_uv(h->loop), fd, on_accept,
			     h);
}

/* ---- positions ---- */

int nodes_make_room(struct head_main *h, uint32_t positions)
{
	struct node_link **links;

	if (positions <= h->links_room)
		return 0;
	links = realloc(h->links, positions * sizeof(struct node_link *));
	if (!links)
		return -ENOMEM;
	memset(links + h->links_room, 0,
	       (positions - h->links_room) * sizeof(struct node_link *));
	h->links = links;
	h->links_room = positions;
	h->strangers.max = STRANGERS_MAX + positions;
	return 0;
}

bool nodes_any(const struct head_main *h, uint32_t first)
{
	for (uint32_t i = first; i < h->links_room; i++)
		if (h->links[i] || (h->tree && head_tree_has(h, i)))
			return true;
	return false;
}

/* ---- sending ---- */

void nodes_send_frame(struct head_main *h, uint32_t position, const void *data, size_t len)
{
	struct node_link *n = h->links[position];

	if (n) /* errors end the link */
		(void)link_send_bytes(n->link, FRAME_CONTROL_DOWN, data, len);
}

void nodes_send(void *head, uint32_t position, const void *data, size_t len)
{
	struct head_main *h = head;

	if (h->tree)
		head_tree_send(h, position, data, len);
	else
		nodes_send_frame(h, position, data, len);
}

void nodes_break(void *head, uint32_t position, const char *why)
{
	struct head_main *h = head;
	struct node_link *n = h->links[position];
	bool all = !h->tree || head_tree_end(h, position, why);

	if (!n || n->broken || !all)
		return;
	n->broken = why;
	if (!h->tree)
		tell_to_end(n);
	link_finish(n->link);
}

void nodes_end(struct head_main *h, uint32_t first)
{
	for (uint32_t i = first; i < h->links_room; i++)
		nodes_break(h, i, "the head tells the daemon to end");
}

void nodes_close(struct head_main *h)
{
	struct node_link *n, *next;

	listener_close(h->nodes_listener);
	h->nodes_listener = NULL;
	DL_FOREACH_SAFE(h->all_links, n, next)
		if (!n->proved)
			forget(n);
		else if (!n->client)
			link_finish(n->link);
	strangers_close(&h->strangers);
}
