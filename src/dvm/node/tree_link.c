/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvmd: links of the tree of control. */
#include "dvm/node/tree_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "dvm/core/tree_node.h"
#include "dvm/node/dvmd.h"

#define LEAVE_MS 5000 /* for children to go to other relays */

struct child_link {
	struct dvmd *d;
	struct link *link;
	uint32_t position;
	struct child_link *prev, *next;
};

struct dvmd_tree {
	struct tree_node node;
	struct tree_ancestor ancestors[TREE_ANCESTORS_MAX]; /* the nearest first */
	uint32_t count;
	uint32_t next;         /* the next one to try; behind them: addresses of the head */
	uint32_t parent;       /* position of the process at the other end of d->head */
	uint64_t moved_ms;     /* when it was last left because it did not answer */
	struct link *dialing;  /* in place of d->head when it is proved */
	struct child_link *children;
	uv_prepare_t flush;
	uv_timer_t late;       /* of leaving; or the loop goes on at once */
	bool lost;             /* the link d->head has ended, with this error */
	int error;
	bool refused;          /* ... before this node had attached by it */
	bool parent_leaves;
	bool open;
	void (*left)(struct dvmd *d); /* not NULL: leaving */
};

/* ---- the parent ---- */

/* A living process has taken this one in. */
static void on_proved(void *arg, struct link *l)
{
	struct dvmd *d = arg;
	struct dvmd_tree *t = d->tree;
	int rc = 0;

	if (d->head)
		link_close(d->head);
	d->head = l;
	t->dialing = NULL;
	t->parent = link_peer(l)->position;
	if (d->channel)
		dvmd_hand_link_on(d);
	else
		rc = dvmd_start_zygote(d);
	if (rc)
		dvmd_die(d, "cannot start pmi2x-dvm-zygote: %s", strerror(-rc));
	else if (tree_node_up(&t->node))
		d->leaves = true;
}

static int on_parent_says(void *arg, struct link *l, enum frame_type type,
			  struct payload *body)
{
	static const uint8_t no_ip[16];
	struct dvmd *d = arg;

	if (type != FRAME_CONTROL_DOWN || !bundle_is(body->data, body->len))
		return -EPROTO;
	return tree_node_input(&d->tree->node, RELAY_UP, body->data, body->len, no_ip);
}

static void on_parent_end(void *arg, struct link *l, int error)
{
	struct dvmd *d = arg;
	struct dvmd_tree *t = d->tree;

	link_close(l);
	if (l == t->dialing) {
		t->dialing = NULL;
		dvmd_connect_next(d, error);
		return;
	}
	d->head = NULL;
	t->refused = t->node.state != TREE_ATTACHED;
	tree_node_down(&t->node);
	t->lost = true;
	t->error = error;
}

static const struct link_ops parent_ops = {
	.proved = on_proved, .frame = on_parent_says, .end = on_parent_end,
	.drained = dvmd_link_drained,
};

static int dial(struct dvmd *d, uint32_t position, const struct sockaddr_storage *to)
{
	return dvmd_dial(d, &d->tree->dialing, position, to, &parent_ops);
}

int dvmd_tree_dial(struct dvmd *d, int error)
{
	struct dvmd_tree *t = d->tree;
	struct sockaddr_storage to;
	int rc = error ? error : -ECONNREFUSED;

	while (t->next < t->count) {
		const struct tree_ancestor *a = &t->ancestors[t->next++];

		welcome_sockaddr(&to, &a->where);
		rc = dial(d, a->position, &to);
		if (!rc)
			return 0;
	}
	if (!d->next_head) /* only the head's own errors count */
		d->try_again = false;
	while (!(d->head && t->parent == TREE_HEAD) && d->next_head < d->welcome.nheads) {
		rc = dial(d, HANDSHAKE_SRUN, &d->welcome.heads[d->next_head++]);
		if (!rc)
			return 0;
	}
	return rc;
}

static void connect_from(struct dvmd *d, uint32_t first)
{
	struct dvmd_tree *t = d->tree;

	if (t->dialing)
		link_close(t->dialing);
	t->dialing = NULL;
	t->next = first;
	d->next_head = 0;
	dvmd_connect_next(d, 0);
}

void dvmd_tree_connect(struct dvmd *d)
{
	connect_from(d, 0);
}

/* The place behind the parent among the ancestors. */
static uint32_t behind_parent(const struct dvmd_tree *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->ancestors[i].position == t->parent)
			return i + 1;
	return t->count;
}

/* The parent is lost; or it takes no children, as one whose head is lost. */
static void find_parent(struct dvmd *d)
{
	d->begun_ms = uv_now(loop_uv(d->loop));
	d->try_again = false;
	connect_from(d, d->tree->refused ? behind_parent(d->tree) : 0);
}

static void on_next_turn(uv_timer_t *timer)
{
}

static void parent_lost(struct dvmd *d)
{
	struct dvmd_tree *t = d->tree;

	t->lost = false;
	if (d->head || t->left)
		return;
	if (d->ended)
		dvmd_finish(d, 0);
	else if (d->leaves)
		return; /* the end of the zygote is the end of this daemon */
	else if (t->parent == TREE_HEAD)
		dvmd_lose_head(d, t->error);
	else if (!t->dialing)
		find_parent(d);
}

/* The last message of the parent may be LEAVE: the node handles it first. */
static void check_parent(struct dvmd *d)
{
	struct dvmd_tree *t = d->tree;

	if (!t->lost && !t->parent_leaves)
		return;
	if (d->changed && !d->ended) {
		uv_timer_start(&t->late, on_next_turn, 0, 0);
		return;
	}
	if (t->parent_leaves && d->head && !d->leaves && !d->ended && !t->dialing)
		connect_from(d, behind_parent(t));
	t->parent_leaves = false;
	if (t->lost)
		parent_lost(d);
}

void dvmd_tree_try_another(struct dvmd *d, uint64_t now_ms)
{
	struct dvmd_tree *t = d->tree;
	uint64_t since = d->lease.lease.answered_ms;

	since = since > t->moved_ms ? since : t->moved_ms;
	if (!d->head || t->parent == TREE_HEAD || t->dialing || d->ended ||
	    now_ms < since + d->welcome.lease_ms / 3)
		return;
	t->moved_ms = now_ms;
	connect_from(d, behind_parent(t));
}

/* ---- operations ---- */

static struct child_link *find_child(const struct dvmd_tree *t, uint32_t position)
{
	struct child_link *c;

	DL_FOREACH(t->children, c)
		if (c->position == position)
			return c;
	return NULL;
}

static void on_send(void *arg, uint32_t link, const void *data, size_t len)
{
	struct dvmd *d = arg;
	struct child_link *c = link == RELAY_UP ? NULL : find_child(d->tree, link);

	if (link == RELAY_UP && d->head) /* errors end the link */
		(void)link_send_bytes(d->head, FRAME_CONTROL_UP, data, len);
	else if (c)
		(void)link_send_bytes(c->link, FRAME_CONTROL_DOWN, data, len);
}

static void on_input(void *arg, const void *data, size_t len)
{
	dvmd_head_says(arg, data, len);
}

static void on_attached(void *arg)
{
	dvmd_node_changed(arg); /* output may wait */
}

static void on_parents(void *arg, const struct tree_ancestor *list, uint32_t count)
{
	struct dvmd *d = arg;
	struct dvmd_tree *t = d->tree;

	memcpy(t->ancestors, list, count * sizeof(*list));
	t->count = count;
	if (!d->leaves && !d->ended)
		dvmd_tree_connect(d);
}

static void on_leaving(void *arg)
{
	((struct dvmd *)arg)->tree->parent_leaves = true;
}

/* As for any message that there is no memory for: the head runs the tasks elsewhere. */
static void on_fail(void *arg, uint32_t link)
{
	((struct dvmd *)arg)->leaves = true;
}

/* ---- children ---- */

static void drop_child(struct child_link *c, const char *why)
{
	struct dvmd *d = c->d;
	struct dvmd_tree *t = d->tree;

	DL_DELETE(t->children, c);
	tree_node_child_lost(&t->node, c->position, why);
	link_close(c->link);
	free(c);
}

static void check_left(struct dvmd *d)
{
	struct dvmd_tree *t = d->tree;
	void (*left)(struct dvmd *d) = t->left;

	if (t->children || !left)
		return;
	t->left = NULL;
	uv_timer_stop(&t->late);
	left(d);
}

static int take_child_frame(struct child_link *c, const struct payload *body)
{
	struct tree_node *n = &c->d->tree->node;

	if (bundle_is(body->data, body->len))
		return tree_node_input(n, c->position, body->data, body->len,
				       link_source(c->link));
	if (body->len != 1 || *(const uint8_t *)body->data != DVM_GONE)
		return -EPROTO;
	tree_node_child_gone(n, c->position);
	return 0;
}

static int on_child_says(void *arg, struct link *l, enum frame_type type,
			 struct payload *body)
{
	return type == FRAME_CONTROL_UP ? take_child_frame(arg, body) : -EPROTO;
}

static void on_child_end(void *arg, struct link *l, int error)
{
	struct child_link *c = arg;
	struct dvmd *d = c->d;

	drop_child(c, error ? link_strerror(error) : "its daemon has ended");
	check_left(d);
}

void dvmd_tree_child(void *arg, struct link *l, struct payload *body)
{
	static const struct link_ops ops = { .frame = on_child_says, .end = on_child_end };
	struct dvmd *d = arg;
	struct child_link *c = d->tree && !d->tree->left && !d->ended ?
			       calloc(1, sizeof(*c)) : NULL;
	struct child_link *old;

	if (!c) {
		link_close(l);
		return;
	}
	*c = (struct child_link){ .d = d, .link = l, .position = link_peer(l)->position };
	old = find_child(d->tree, c->position);
	if (old)
		drop_child(old, "it has connected again");
	DL_APPEND(d->tree->children, c);
	link_hand_over(l, &ops, c);
	if (tree_node_child(&d->tree->node, c->position) || take_child_frame(c, body))
		drop_child(c, "invalid message");
}

/* ---- leaving ---- */

static void on_late(uv_timer_t *timer)
{
	struct dvmd *d = timer->data;

	while (d->tree->children)
		drop_child(d->tree->children, "its parent leaves");
	check_left(d);
}

void dvmd_tree_leave(struct dvmd *d, void (*done)(struct dvmd *d))
{
	struct dvmd_tree *t = d->tree;

	t->left = done;
	tree_node_leave(&t->node);
	uv_timer_start(&t->late, on_late, LEAVE_MS, 0);
	check_left(d);
}

/* ---- what the daemon does ---- */

int dvmd_tree_send(struct dvmd *d, const void *data, size_t len)
{
	return tree_node_send(&d->tree->node, data, len);
}

bool dvmd_tree_is_attached(const struct dvmd *d)
{
	return d->tree->node.state == TREE_ATTACHED;
}

void dvmd_tree_flush(struct dvmd *d)
{
	tree_node_turn(&d->tree->node);
}

static void on_flush(uv_prepare_t *prepare)
{
	struct dvmd *d = prepare->data;

	dvmd_tree_flush(d);
	check_parent(d);
}

/* ---- life ---- */

/* False: the end of the addresses. */
static bool next_address(FILE *in, struct tree_ancestor *out)
{
	char line[128], ip[INET6_ADDRSTRLEN];

	return fgets(line, sizeof(line), in) &&
	       sscanf(line, "relay %u %45s %hu", &out->position, ip, &out->where.port) == 3 &&
	       inet_pton(AF_INET6, ip, out->where.ip) == 1;
}

static bool is_ancestor(const struct dvmd *d, uint32_t position)
{
	uint32_t at = tree_parent(d->self.position, d->welcome.width);

	while (at != TREE_HEAD && at > position)
		at = tree_parent(at, d->welcome.width);
	return at == position;
}

/* The addresses come in order of their positions. */
static void read_addresses(struct dvmd *d)
{
	FILE *in = fdopen(dup(STDIN_FILENO), "r"); /* stdin itself has no buffer */
	struct dvmd_tree *t = d->tree;
	struct tree_ancestor a;

	while (in && next_address(in, &a)) {
		if (!is_ancestor(d, a.position) || t->count == TREE_ANCESTORS_MAX)
			continue;
		memmove(t->ancestors + 1, t->ancestors, t->count++ * sizeof(a));
		t->ancestors[0] = a;
	}
	if (in)
		fclose(in);
}

/* A node that is to have children connects to the head first, and need not read addresses. */
int dvmd_tree_open(struct dvmd *d)
{
	static const struct tree_node_ops ops = {
		.send = on_send, .input = on_input, .attached = on_attached,
		.parents = on_parents, .leaving = on_leaving, .fail = on_fail,
	};
	int null;

	d->tree = calloc(1, sizeof(*d->tree));
	if (!d->tree)
		return -ENOMEM;
	d->tree->parent = TREE_HEAD;
	tree_node_init(&d->tree->node, d->self.position, &ops, d);
	if (d->self.position >= d->welcome.relays)
		read_addresses(d);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null >= 0 && dup2(null, STDIN_FILENO) == STDIN_FILENO)
		close(null);
	return 0;
}

int dvmd_tree_begin(struct dvmd *d)
{
	struct dvmd_tree *t = d->tree;
	uv_loop_t *loop = loop_uv(d->loop);

	t->flush.data = t->late.data = d;
	t->open = true;
	uv_timer_init(loop, &t->late);
	uv_prepare_init(loop, &t->flush);
	return uv_prepare_start(&t->flush, on_flush);
}

void dvmd_tree_close(struct dvmd *d)
{
	struct dvmd_tree *t = d->tree;

	if (!t || !t->open)
		return;
	dvmd_tree_flush(d);
	t->open = false;
	t->left = NULL;
	while (t->children)
		drop_child(t->children, "its parent ends");
	if (t->dialing)
		link_close(t->dialing);
	t->dialing = NULL;
	uv_close((uv_handle_t *)&t->late, NULL);
	uv_close((uv_handle_t *)&t->flush, NULL);
}

void dvmd_tree_free(struct dvmd *d)
{
	struct dvmd_tree *both[] = { d->tree, d->former };

	for (int i = 0; i < 2; i++) {
		if (both[i])
			tree_node_free(&both[i]->node);
		free(both[i]);
	}
	d->tree = d->former = NULL;
}
