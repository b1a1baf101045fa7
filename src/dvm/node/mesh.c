/* SPDX-License-Identifier: BSD-3-Clause */
/* Links between the daemons of a DVM. */
#include "dvm/node/mesh.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "dvm/common/bootstrap.h"
#include "dvm/core/bundle.h"
#include "libio/fd.h"
#include "libio/link.h"
#include "libio/listener.h"
#include "libio/strangers.h"
#include "libutil/array.h"

#define STRANGERS_MAX 256        /* connections without a proof so far */
#define HANDSHAKE_MS 10000
#define DEAD_PEER_MS 60000
#define AGAIN_MS 200             /* between two attempts to connect */
#define WAITING_MAX ((size_t)1 << 30) /* bytes for a link that is not made yet */
#define NODE_NONE UINT32_MAX
#define WHY_MAX 256

struct waiting {
	struct payload *front; /* made by frame_header */
	struct payload_vec body;
};

struct pool_link {
	struct pool *pool;
	struct link *link;     /* NULL: to be tried again */
	struct stranger stranger;
	uint32_t node;         /* NODE_NONE: an incoming link that is not proved yet */
	bool calls;            /* NODE_NONE: of a head that has not sent CALL yet */
	struct sockaddr_storage to; /* the other side of a link that this side makes */
	uint64_t until_ms;          /* until then the link is tried again (loop time), or 0 */
	bool again;                 /* the new tries have been logged */
	struct waiting *queue; /* until the other side has proved itself */
	size_t nqueue, queue_cap, queue_bytes;
	struct pool_link *prev, *next;
	UT_hash_handle hh;     /* by node: links that this side sends over */
};

struct pool {
	struct loop *loop;
	const struct handshake_self *self;
	struct pool_ops ops;
	void *arg;
	const struct log_hook *log;
	uint32_t retry_ms;
	uv_timer_t again;
	struct listener *listener;
	int fd;                 /* a copy of the listener's descriptor, or -1 */
	uint16_t port;
	struct strangers strangers;
	struct pool_link *all;
	struct pool_link *ways; /* by node */
	uint64_t epoch;         /* of the last head that called */
};

/* ---- links ---- */

static struct pool_link *find_way(const struct pool *p, uint32_t node)
{
	struct pool_link *l;

	HASH_FIND(hh, p->ways, &node, sizeof(node), l);
	return l;
}

static void drop_queue(struct pool_link *l)
{
	for (size_t i = 0; i < l->nqueue; i++) {
		payload_unref(l->queue[i].front);
		payload_vec_clear(&l->queue[i].body);
	}
	free(l->queue);
	l->queue = NULL;
	l->nqueue = l->queue_cap = l->queue_bytes = 0;
}

static void drop(struct pool_link *l)
{
	struct pool *p = l->pool;

	DL_DELETE(p->all, l);
	strangers_leave(&p->strangers, &l->stranger);
	if (l->node != NODE_NONE && find_way(p, l->node) == l)
		HASH_DEL(p->ways, l);
	drop_queue(l);
	link_close(l->link);
	free(l);
}

static void drop_stranger(void *owner)
{
	drop(owner);
}

static struct pool_link *new_link(struct pool *p, uint32_t node)
{
	struct pool_link *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->pool = p;
	l->node = node;
	if (node != NODE_NONE)
		HASH_ADD(hh, p->ways, node, sizeof(l->node), l);
	if (node != NODE_NONE && !l->hh.tbl) {
		free(l);
		return NULL;
	}
	DL_APPEND(p->all, l);
	if (node == NODE_NONE)
		strangers_join(&p->strangers, &l->stranger, l, &l->link);
	return l;
}

/* ---- receiving ---- */

static struct link *give_away(struct pool_link *l)
{
	struct link *link = l->link;

	l->link = NULL;
	drop(l);
	return link;
}

/* True: the link is that of a child, and is not this object's any more. */
static bool take_child(struct pool_link *l, enum frame_type type, struct payload *body)
{
	struct pool *p = l->pool;

	if (l->calls || l->node == NODE_NONE || find_way(p, l->node) == l || !p->ops.child ||
	    type != FRAME_CONTROL_UP || !bundle_is(body->data, body->len))
		return false;
	p->ops.child(p->arg, give_away(l), body);
	return true;
}

static void on_proved(void *arg, struct link *link)
{
	struct pool_link *l = arg;
	struct pool *p = l->pool;

	if (l->node == NODE_NONE)
		strangers_leave(&p->strangers, &l->stranger);
	l->calls = l->node == NODE_NONE && link_peer(link)->position == HANDSHAKE_SRUN;
	if (l->calls)
		return;
	if (l->node == NODE_NONE) /* its first message says that it is a link of the mesh */
		l->node = link_peer(link)->position;
	for (size_t i = 0; i < l->nqueue; i++) /* an error ends the link */
		link_send_front(link, l->queue[i].front, &l->queue[i].body);
	drop_queue(l);
}

/*
 * A head whose journal another head has taken over may have called before it knew that: its
 * requests to this node are void.
 */
static int on_frame(void *arg, struct link *link, enum frame_type type,
		    struct payload *body)
{
	struct pool_link *l = arg;
	struct pool *p = l->pool;
	struct dvm_msg m;
	struct cursor c;

	if (take_child(l, type, body))
		return 0;
	cursor_init(&c, body->data, body->len);
	if (!l->calls || type != FRAME_CONTROL_DOWN || dvm_msg_unpack(&c, &m) ||
	    m.type != DVM_CALL)
		return -EPROTO;
	if (m.call.epoch < p->epoch)
		return -ESTALE;
	p->epoch = m.call.epoch;
	p->ops.head(p->arg, give_away(l));
	return 0;
}

static int on_message(void *arg, struct link *link, const void *head,
		      size_t head_len, struct payload *body)
{
	struct pool_link *l = arg;
	struct pool *p = l->pool;
	struct pool_frame f;
	struct cursor c;

	cursor_init(&c, head, head_len);
	f.task = unpack_u64(&c);
	f.instance = unpack_u32(&c);
	f.from = unpack_u32(&c);
	f.type = unpack_u8(&c);
	f.head_len = cursor_left(&c);
	f.head = unpack_raw(&c, f.head_len);
	if (!cursor_ok(&c) || f.type >= FRAME_TYPES)
		return -EPROTO;
	if (!find_way(p, l->node)) {
		HASH_ADD(hh, p->ways, node, sizeof(l->node), l);
		if (!l->hh.tbl)
			return -ENOMEM;
	}
	return p->ops.frame(p->arg, l->node, &f, body);
}

/* The network has failed, perhaps for a moment; the daemon there may live. */
static bool is_cut(int error)
{
	return error == -ETIMEDOUT || error == -EHOSTUNREACH || error == -ENETUNREACH ||
	       error == -EHOSTDOWN || error == -ENETDOWN || error == -ECONNRESET;
}

static void on_again(uv_timer_t *timer);

static bool try_later(struct pool_link *l, int error)
{
	struct pool *p = l->pool;

	if (!is_cut(error) || uv_now(loop_uv(p->loop)) >= l->until_ms)
		return false;
	if (!l->again)
		log_error(p->log, "cannot connect to node %u of the DVM: %s: trying again for %u s",
			  l->node, link_strerror(error), p->retry_ms / 1000);
	l->again = true;
	link_close(l->link);
	l->link = NULL;
	if (!uv_is_active((uv_handle_t *)&p->again))
		uv_timer_start(&p->again, on_again, AGAIN_MS, 0);
	return true;
}

static void lose(struct pool_link *l, const char *how, int error)
{
	struct pool *p = l->pool;
	uint32_t node = l->node;
	char why[WHY_MAX];

	snprintf(why, sizeof(why), "%s: %s", how, link_strerror(error));
	drop(l);
	if (node != NODE_NONE)
		p->ops.lost(p->arg, node, why);
}

/* A node that ends in order shares no task with this one any more. */
static void on_end(void *arg, struct link *link, int error)
{
	struct pool_link *l = arg;

	strangers_ended(&l->pool->strangers, &l->stranger, error);
	if (link_is_proved(link))
		lose(l, "lost the connection", error);
	else if (!try_later(l, error))
		lose(l, "cannot connect", error);
}

static const struct link_ops link_ops = {
	.proved = on_proved,
	.frame = on_frame,
	.message = on_message,
	.end = on_end,
};

static const struct link_options link_options = {
	.handshake_ms = HANDSHAKE_MS,
	.dead_peer_ms = DEAD_PEER_MS,
};

static void on_accept(void *arg, int fd)
{
	struct pool *p = arg;
	struct pool_link *l = new_link(p, NODE_NONE);

	if (!l)
		close(fd);
	else if (link_accept(&l->link, loop_uv(p->loop), p->self, fd,
			     &link_options, &link_ops, l))
		drop(l);
}

/* ---- sending ---- */

/* 0, also if the link is tried later; or a negative errno. */
static int dial(struct pool_link *l)
{
	struct pool *p = l->pool;
	int rc = link_connect(&l->link, loop_uv(p->loop), p->self, l->node, &l->to,
			      &link_options, &link_ops, l);

	return rc && try_later(l, rc) ? 0 : rc;
}

/* A callback for a lost node may change the list: the rest is tried in the next turn. */
static void on_again(uv_timer_t *timer)
{
	struct pool *p = timer->data;
	struct pool_link *l;
	int rc;

	DL_FOREACH(p->all, l) {
		rc = l->link ? 0 : dial(l);
		if (!rc)
			continue;
		uv_timer_start(timer, on_again, 0, 0);
		lose(l, "cannot connect", rc);
		return;
	}
}

static int connect_to(struct pool *p, uint32_t node,
		      const struct dvm_address *address, struct pool_link **out)
{
	struct pool_link *l = new_link(p, node);
	int rc;

	*out = l;
	if (!l)
		return -ENOMEM;
	welcome_sockaddr(&l->to, address);
	l->until_ms = uv_now(loop_uv(p->loop)) + p->retry_ms;
	rc = dial(l);
	if (rc)
		drop(l);
	return rc;
}

static int keep(struct pool_link *l, struct payload *front,
		const struct payload_vec *body)
{
	size_t bytes = front->len + (body ? body->bytes : 0);
	struct waiting *w;
	int rc = bytes > WAITING_MAX - l->queue_bytes ? -ENOBUFS : 0;

	rc = rc ? rc : array_grow(&l->queue, l->nqueue, &l->queue_cap, sizeof(*w));
	if (rc)
		return rc;
	w = &l->queue[l->nqueue];
	payload_vec_init(&w->body);
	rc = body ? payload_vec_add_all(&w->body, body) : 0;
	if (rc) {
		payload_vec_clear(&w->body);
		return rc;
	}
	w->front = payload_ref(front);
	l->nqueue++;
	l->queue_bytes += bytes;
	return 0;
}

static struct payload *make_front(const struct pool_frame *f, size_t body_len)
{
	char room[FRAME_HEAD_MAX];
	struct buf b;
	int rc;

	buf_init_in(&b, room, sizeof(room));
	rc = pack_u64(&b, f->task);
	rc = rc ? rc : pack_u32(&b, f->instance);
	rc = rc ? rc : pack_u32(&b, f->from);
	rc = rc ? rc : pack_u8(&b, (uint8_t)f->type);
	rc = rc ? rc : buf_append(&b, f->head, f->head_len);
	return rc ? NULL : frame_header(FRAME_COLLECTIVE, b.data, b.len, body_len);
}

int pool_send(struct pool *p, uint32_t node, const struct dvm_address *address,
	      const struct pool_frame *f, const struct payload_vec *body)
{
	struct payload *front = make_front(f, body ? body->bytes : 0);
	struct pool_link *l = find_way(p, node);
	int rc = front ? 0 : -ENOMEM;

	if (!rc && !l)
		rc = address ? connect_to(p, node, address, &l) : -ENOTCONN;
	if (!rc && l->link && link_is_proved(l->link))
		rc = link_send_front(l->link, front, body);
	else if (!rc)
		rc = keep(l, front, body);
	payload_unref(front);
	return rc;
}

/* ---- life ---- */

uint16_t pool_port(const struct pool *p)
{
	return p->port;
}

int pool_listener(const struct pool *p)
{
	return p->fd;
}

int pool_open(struct pool **out, struct loop *loop, const struct handshake_self *self,
	      const struct pool_options *options, const struct pool_ops *ops, void *arg,
	      const struct log_hook *log)
{
	struct sockaddr_storage bind_to = { .ss_family = AF_UNSPEC };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&bind_to;
	struct pool *p = calloc(1, sizeof(*p));
	int fd;

	*out = p;
	if (!p)
		return -ENOMEM;
	p->loop = loop;
	p->self = self;
	p->ops = *ops;
	p->arg = arg;
	p->log = log;
	p->retry_ms = options->retry_ms;
	p->again.data = p;
	uv_timer_init(loop_uv(loop), &p->again);
	strangers_init(&p->strangers, STRANGERS_MAX, drop_stranger, log);
	if (options->local) {
		v4->sin_family = AF_INET;
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	}
	fd = listener_socket(&bind_to, 0, &p->port);
	p->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? fd : listener_open(&p->listener, loop_uv(loop), fd,
					   on_accept, p);
}

void pool_close(struct pool *p)
{
	if (!p)
		return;
	listener_close(p->listener);
	p->listener = NULL;
	if (!uv_is_closing((uv_handle_t *)&p->again))
		uv_close((uv_handle_t *)&p->again, NULL);
	while (p->all)
		drop(p->all);
	strangers_close(&p->strangers);
}

void pool_destroy(struct pool *p)
{
	if (p)
		fd_close(&p->fd);
	free(p);
}
