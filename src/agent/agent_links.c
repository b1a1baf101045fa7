/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The neighbours of a node in the tree: frames to and from them, what waits
 * until a link is up, and goodbyes. How links are made is in agent_wireup.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"

/* ---- neighbours ---- */

struct neighbour *agent_neighbour(const struct agent *a, uint32_t position)
{
	struct agent_links *links = a->links;

	for (uint32_t i = 0; i < links->count; i++) {
		if (links->all[i].position == position)
			return &links->all[i];
	}
	return NULL;
}

struct neighbour *agent_parent(const struct agent *a)
{
	return a->links->parent;
}

static void drop_queue(struct neighbour *n)
{
	for (size_t i = 0; i < n->nqueue; i++) {
		payload_unref(n->queue[i].front);
		payload_vec_clear(&n->queue[i].body);
	}
	free(n->queue);
	n->queue = NULL;
	n->nqueue = n->queue_cap = n->queue_bytes = 0;
}

static int grow_queue(struct neighbour *n)
{
	size_t cap = n->queue_cap ? 2 * n->queue_cap : 4;
	struct queued_frame *grown;

	if (n->nqueue < n->queue_cap)
		return 0;
	grown = realloc(n->queue, cap * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	n->queue = grown;
	n->queue_cap = cap;
	return 0;
}

static int enqueue(struct neighbour *n, enum frame_type type,
		   struct payload *front, const struct payload_vec *body)
{
	size_t bytes = front->len + (body ? body->bytes : 0);
	struct queued_frame *f;
	int rc;

	if (bytes > AGENT_QUEUE_MAX - n->queue_bytes)
		return -ENOBUFS;
	rc = grow_queue(n);
	if (rc)
		return rc;
	f = &n->queue[n->nqueue];
	f->type = type;
	payload_vec_init(&f->body);
	rc = body ? payload_vec_add_all(&f->body, body) : 0;
	if (rc) {
		payload_vec_clear(&f->body);
		return rc;
	}
	f->front = payload_ref(front);
	n->nqueue++;
	n->queue_bytes += bytes;
	return 0;
}

static bool may_send(const struct neighbour *n)
{
	return n->state != NEIGHBOUR_LEFT && n->state != NEIGHBOUR_LOST &&
	       !n->said_goodbye;
}

/* Takes the reference to `front`; NULL: there was no memory for it. */
static void send_front(struct neighbour *n, enum frame_type type,
		       struct payload *front, const struct payload_vec *body)
{
	int rc = -ENOMEM;

	if (front && n->state == NEIGHBOUR_UP)
		rc = link_send_front(n->chosen->link, front, body);
	else if (front)
		rc = enqueue(n, type, front, body);
	payload_unref(front);
	if (rc && rc != -EPIPE) /* a broken link tells so itself */
		agent_wireup_send_failed(n, rc);
}

int agent_links_send(struct agent *a, struct neighbour *n, enum frame_type type,
		     const struct payload_vec *body)
{
	if (!may_send(n))
		return -ESHUTDOWN;
	if (n->is_parent && type == FRAME_CONTROL_UP)
		n->control_up++;
	send_front(n, type, frame_header(type, NULL, 0, body->bytes), body);
	return 0;
}

int agent_links_send_message(struct agent *a, struct neighbour *n,
			     const void *head, size_t head_len,
			     const struct payload_vec *body)
{
	if (!may_send(n))
		return -ESHUTDOWN;
	send_front(n, FRAME_COLLECTIVE,
		   frame_header(FRAME_COLLECTIVE, head, head_len,
				body ? body->bytes : 0), body);
	return 0;
}

int agent_links_send_bytes(struct agent *a, struct neighbour *n,
			   enum frame_type type, const void *data, size_t len)
{
	struct payload *p = payload_copy_in(a->step->budget, data, len);
	struct payload_vec body;
	int rc;

	payload_vec_init(&body);
	rc = p ? payload_vec_add(&body, p) : -ENOMEM;
	rc = rc ? rc : agent_links_send(a, n, type, &body);
	payload_vec_clear(&body);
	payload_unref(p);
	return rc;
}

static void send_queue(struct neighbour *n)
{
	for (size_t i = 0; i < n->nqueue; i++)
		link_send_front(n->chosen->link, n->queue[i].front,
				&n->queue[i].body);
	drop_queue(n);
}

void agent_neighbour_up(struct neighbour *n, struct conn *c)
{
	struct agent *a = n->agent;

	n->chosen = c;
	n->state = NEIGHBOUR_UP;
	a->links->lack_since = 0;
	agent_wireup_stop(n);
	send_queue(n);
	log_debug(a->log, "link to node %s is up",
		  agent_node_name(a, n->position));
	agent_wireup_met(a, agent_node_name(a, n->position), c->link);
	agent_trace_link(a);
	agent_control_unneeded(a);
	pmi_server_link_up(a->server, n->position);
}

/* What was to go through the parent goes to srun directly. */
static void reroute_control(struct neighbour *n)
{
	for (size_t i = 0; i < n->nqueue; i++) {
		if (n->queue[i].type == FRAME_CONTROL_UP)
			agent_control_unsent(n->agent, &n->queue[i].body);
	}
}

/* The end of a neighbour, for the engine and for what goes through it. */
static void gone(struct neighbour *n, enum neighbour_state state,
		 uint64_t control_dealt_with, const char *why)
{
	struct agent *a = n->agent;
	bool was_up = n->state == NEIGHBOUR_UP;

	n->state = state;
	if (n->chosen && !n->owes_answer)
		agent_conn_drop(n->chosen);
	agent_wireup_stop(n);
	if (n->is_parent) {
		reroute_control(n);
		/*
		 * A parent that was never there has dealt with nothing, but
		 * what was for it may not have been kept.
		 */
		agent_control_parent_gone(a, state == NEIGHBOUR_LEFT ||
					     (!was_up && !n->send_error),
					  control_dealt_with, why);
		agent_status_no_parent(a);
	}
	agent_control_unneeded(a);
	drop_queue(n);
	pmi_server_link_lost(a->server, n->position, state == NEIGHBOUR_LEFT,
			     why);
}

/*
 * Who goes without goodbye has been killed, or its host is down: nobody else
 * tells srun, which would wait for that node's ranks for ever. Who never was
 * there may have ranks that use no PMI: it matters to those who wait for it.
 * With --no-kill only what needs it fails.
 */
static bool ends_step(const struct neighbour *n)
{
	const struct agent *a = n->agent;

	return !a->options.no_kill &&
	       (n->state == NEIGHBOUR_UP || (a->stage == AGENT_SERVING &&
					     pmi_server_pending(a->server)));
}

void agent_neighbour_lost(struct neighbour *n, const char *why)
{
	bool ends = ends_step(n);

	/* What fails by it is reported with this reason, once for all nodes. */
	log_debug(n->agent->log, "%s", why);
	gone(n, NEIGHBOUR_LOST, 0, why);
	if (ends)
		agent_control_end_step(n->agent, why, 1);
}

static void neighbour_left(struct neighbour *n, uint64_t control_dealt_with)
{
	char why[AGENT_WHY_MAX];

	snprintf(why, sizeof(why),
		 "node %s has left the step: its ranks have ended",
		 agent_node_name(n->agent, n->position));
	log_debug(n->agent->log, "%s", why);
	gone(n, NEIGHBOUR_LEFT, control_dealt_with, why);
}

/* ---- connections ---- */

struct conn *agent_conn_new(struct agent *a, struct neighbour *n)
{
	struct agent_links *links = a->links;
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->agent = a;
	c->neighbour = n;
	c->prev = links->last;
	if (links->last)
		links->last->next = c;
	else
		links->first = c;
	links->last = c;
	links->unproved += !n;
	return c;
}

void agent_conn_drop(struct conn *c)
{
	struct agent_links *links = c->agent->links;

	if (c->prev)
		c->prev->next = c->next;
	else
		links->first = c->next;
	if (c->next)
		c->next->prev = c->prev;
	else
		links->last = c->prev;
	if (!c->neighbour)
		links->unproved--;
	else if (c->neighbour->attempt == c)
		c->neighbour->attempt = NULL;
	if (c->neighbour && c->neighbour->chosen == c)
		c->neighbour->chosen = NULL;
	link_close(c->link);
	free(c);
}

static int on_control_up(struct neighbour *n, struct payload *body)
{
	if (n->is_parent)
		return -EPROTO;
	if (!n->said_goodbye)
		n->control_up++;
	return agent_control_from_child(n->agent, n, body);
}

static int on_control_down(struct neighbour *n, struct payload *body)
{
	if (!n->is_parent)
		return -EPROTO;
	return agent_control_from_above(n->agent, body);
}

/*
 * Tells how many of its requests we have passed on: the rest will not be. A child's way
 * stays open, for it may have to answer later.
 */
static void say_goodbye(struct neighbour *n)
{
	uint64_t dealt_with = n->is_parent ? 0 : n->control_up;
	struct buf b;

	buf_init(&b, sizeof(dealt_with));
	if (!pack_u64(&b, dealt_with))
		link_send_bytes(n->chosen->link, FRAME_GOODBYE, b.data, b.len);
	if (n->is_parent)
		link_shutdown(n->chosen->link);
	buf_free(&b);
	n->said_goodbye = true;
}

/*
 * To its parent a child is silent until it has a link of its own to srun, or ends:
 * when it is killed before that, the parent is the only one to notice.
 */
static void answer_goodbye(struct neighbour *n)
{
	n->owes_answer = n->is_parent && !n->agent->options.no_kill &&
			 agent_control_will_connect(n->agent);
	if (!n->owes_answer)
		say_goodbye(n);
}

void agent_links_answer(struct agent *a)
{
	struct neighbour *n = agent_parent(a);

	if (!n || !n->owes_answer)
		return;
	n->owes_answer = false;
	if (!n->chosen)
		return;
	say_goodbye(n);
	if (link_queued(n->chosen->link))
		link_finish(n->chosen->link);
	else
		agent_conn_drop(n->chosen);
}

static int on_goodbye(struct neighbour *n, struct payload *body)
{
	struct cursor c;
	uint64_t dealt_with;

	cursor_init(&c, body->data, body->len);
	dealt_with = unpack_u64(&c);
	if (!cursor_done(&c))
		return -EPROTO;
	if (!n->said_goodbye) /* its abort has been passed on: see link_ended */
		answer_goodbye(n);
	n->dealt_with = dealt_with;
	/* Who hears no goodbye takes us for dead. */
	n->heard_goodbye = !n->owes_answer && link_queued(n->chosen->link);
	if (n->heard_goodbye)
		link_finish(n->chosen->link);
	else
		neighbour_left(n, dealt_with);
	return 0;
}

static void on_proved(void *arg, struct link *l)
{
	agent_wireup_proved(arg);
}

/* What a link carries once it is up; the others belong to its making. */
static int (*const frame_handlers[FRAME_TYPES])(struct neighbour *n,
						struct payload *body) = {
	[FRAME_CONTROL_UP] = on_control_up,
	[FRAME_CONTROL_DOWN] = on_control_down,
	[FRAME_GOODBYE] = on_goodbye,
};

/* It is the link. */
static bool is_up(const struct conn *c)
{
	const struct neighbour *n = c->neighbour;

	return n && n->chosen == c && n->state == NEIGHBOUR_UP;
}

static int on_frame(void *arg, struct link *l, enum frame_type type,
		    struct payload *body)
{
	struct conn *c = arg;

	if (!frame_handlers[type])
		return agent_wireup_frame(c, type);
	return is_up(c) ? frame_handlers[type](c->neighbour, body) : -EPROTO;
}

static int on_message(void *arg, struct link *l, const void *head,
		      size_t head_len, struct payload *body)
{
	struct conn *c = arg;

	if (!is_up(c) || (!c->has_head && coll_msg_read(head, head_len, &c->head)))
		return -EPROTO;
	c->has_head = false;
	return pmi_server_node_input(c->agent->server, c->neighbour->position,
				     &c->head, body);
}

static struct payload *on_room(void *arg, struct link *l, const void *head,
			       size_t head_len, size_t len)
{
	struct conn *c = arg;

	c->has_head = is_up(c) && !coll_msg_read(head, head_len, &c->head);
	if (!c->has_head)
		return NULL;
	return pmi_server_node_room(c->agent->server, c->neighbour->position,
				    &c->head, len);
}

/*
 * Who lives answers a goodbye. A child that does not has been killed, maybe before its
 * ranks have ended: its parent, which waits for the answer, is the last to know.
 */
static void link_ended(struct neighbour *n, int error)
{
	struct agent *a = n->agent;
	const char *name = agent_node_name(a, n->position);
	char why[AGENT_WHY_MAX];

	if (n->heard_goodbye) {
		neighbour_left(n, n->dealt_with);
		return;
	}
	if (error == -EPROTO || error == -EMSGSIZE)
		snprintf(why, sizeof(why),
			 "node %s sent a message that makes no sense; the connection to it is closed",
			 name);
	else
		snprintf(why, sizeof(why),
			 "lost the connection to node %s: %s", name,
			 link_strerror(error));
	if (!n->said_goodbye) {
		agent_neighbour_lost(n, why);
		return;
	}
	if (n->is_parent)
		agent_control_parent_silent(a, why);
	gone(n, NEIGHBOUR_LEFT, 0, why);
	if (!n->is_parent && !a->options.no_kill)
		agent_control_end_step(a, why, 1);
}

static void on_end(void *arg, struct link *l, int error)
{
	struct conn *c = arg;

	if (is_up(c))
		link_ended(c->neighbour, error);
	else
		agent_wireup_ended(c, error);
}

const struct link_ops *agent_conn_ops(void)
{
	static const struct link_ops ops = {
		.proved = on_proved,
		.frame = on_frame,
		.message = on_message,
		.room = on_room,
		.end = on_end,
	};

	return &ops;
}

/* ---- without descriptors ---- */

void agent_links_lack(struct agent *a, const char *what, int error)
{
	struct agent_links *links = a->links;
	uint64_t now = uv_now(loop_uv(a->loop));

	if (error != -EMFILE && error != -ENFILE)
		return;
	if (!links->lack_since ||
	    now - links->lack_last > 2 * AGENT_BACKOFF_MAX_MS)
		links->lack_since = now; /* it was better in between */
	links->lack_last = now;
	if (now - links->lack_since >= AGENT_LACK_MS)
		agent_give_up(a, what, error);
}

static bool waits_for_link(const struct agent *a)
{
	for (uint32_t i = 0; i < a->links->count; i++) {
		const struct neighbour *n = &a->links->all[i];

		if (n->state == NEIGHBOUR_WAITING && agent_wireup_tried(n))
			return true;
	}
	return false;
}

/*
 * Nobody can be let in. Strangers who hold what is lacking go first, and those
 * who come when all links are up do no harm outside.
 */
static void on_starved(void *arg, int error)
{
	struct agent *a = arg;

	if (!agent_wireup_drop_oldest(a) && waits_for_link(a))
		agent_links_lack(a, "cannot accept a connection of another node",
				 error);
}

/* ---- what there is to say of one ---- */

size_t agent_neighbour_queued(const struct neighbour *n)
{
	return n->state == NEIGHBOUR_UP ? link_queued(n->chosen->link) :
					  n->queue_bytes;
}

/* ---- leaving ---- */

bool agent_links_flushed(const struct agent *a)
{
	for (uint32_t i = 0; i < a->links->count; i++) {
		if (agent_neighbour_queued(&a->links->all[i]))
			return false;
	}
	return true;
}

/*
 * A link that we have chosen may be up for the other side already, which would
 * take its end for our death.
 */
static void abandon(struct agent *a, bool tried)
{
	for (uint32_t i = 0; i < a->links->count; i++) {
		struct neighbour *n = &a->links->all[i];

		if (n->state == NEIGHBOUR_WAITING &&
		    (tried || !agent_wireup_tried(n))) {
			if (n->chosen)
				say_goodbye(n);
			agent_neighbour_lost(n, "left before it connected");
		}
	}
}

void agent_links_abandon(struct agent *a)
{
	abandon(a, true);
}

void agent_links_abandon_untried(struct agent *a)
{
	abandon(a, false);
}

void agent_links_leave(struct agent *a, bool parent)
{
	for (uint32_t i = 0; i < a->links->count; i++) {
		struct neighbour *n = &a->links->all[i];

		if (n->is_parent == parent && n->state == NEIGHBOUR_UP &&
		    !n->said_goodbye)
			say_goodbye(n);
	}
}

bool agent_links_gone(const struct agent *a, bool parent)
{
	for (uint32_t i = 0; i < a->links->count; i++) {
		const struct neighbour *n = &a->links->all[i];

		if (n->is_parent == parent && n->state == NEIGHBOUR_UP)
			return false;
	}
	return true;
}

/* ---- life ---- */

static struct neighbour *add_neighbour(struct agent *a, uint32_t position)
{
	struct neighbour *n = &a->links->all[a->links->count++];

	n->agent = a;
	n->position = position;
	return n;
}

static void add_neighbours(struct agent *a)
{
	const struct tree_place *place = pmi_server_place(a->server);

	for (uint32_t i = 0; i < place->children; i++)
		add_neighbour(a, tree_child(place, i).first);
	if (place->parent != TREE_NONE) {
		a->links->parent = add_neighbour(a, place->parent);
		a->links->parent->is_parent = true;
	}
}

int agent_links_open(struct agent *a)
{
	const struct tree_place *place = pmi_server_place(a->server);
	struct agent_links *links = calloc(1, sizeof(*links));
	int rc;

	if (!links)
		return -ENOMEM;
	a->links = links;
	links->all = calloc(place->children + 1, sizeof(*links->all));
	if (!links->all)
		return -ENOMEM;
	add_neighbours(a);
	rc = agent_wireup_open(a);
	if (links->listener)
		listener_on_starved(links->listener, on_starved);
	return rc;
}

void agent_links_close(struct agent *a)
{
	struct agent_links *links = a->links;

	if (!links)
		return;
	listener_close(links->listener);
	links->listener = NULL;
	while (links->first)
		agent_conn_drop(links->first);
	for (uint32_t i = 0; i < links->count; i++)
		agent_close_handle(&links->all[i].timer);
}

void agent_links_free(struct agent *a)
{
	if (!a->links)
		return;
	for (uint32_t i = 0; i < a->links->count; i++)
		drop_queue(&a->links->all[i]);
	free(a->links->all);
	free(a->links);
}
