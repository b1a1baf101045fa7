/* SPDX-License-Identifier: BSD-3-Clause */
/* A step in memory: servers, a queue for links, a launcher for srun. */
#include "net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "libpmi/pmix_msg.h"

#define OUT_MAX (16u << 20)

static const uint32_t COUNTS[NET_NODES] = {2, 3, 1};
static const uint32_t RANKS[NET_NODES][3] = {{0, 3}, {1, 2, 4}, {5}};
static const char *const NAMES[NET_NODES] = {"n0", "n1", "n2"};

/* ---- the host ---- */

static struct net_rank *rank_in(struct net_node *node, uint32_t slot)
{
	uint32_t count;
	const uint32_t *ranks;

	ranks = layout_ranks_at(node->net->layout, node->position, &count);
	assert_true(slot < count);
	return &node->net->ranks[ranks[slot]];
}

static void client_send(void *arg, uint32_t slot, const void *data, size_t len,
			const struct passed_fds *fds)
{
	struct net_rank *r = rank_in(arg, slot);

	assert_false(r->closed);
	assert_int_equal(buf_append(&r->out, data, len), 0);
	for (unsigned i = 0; fds && i < fds->count; i++) {
		r->fd = fds->fds[i];
		r->fds++;
	}
}

static void client_close(void *arg, uint32_t slot)
{
	rank_in(arg, slot)->closed = true;
}

static void node_send(void *arg, uint32_t position, const struct coll_msg *msg,
		      const void *head, size_t head_len,
		      const struct payload_vec *body)
{
	struct net_node *node = arg;
	struct net *n = node->net;
	struct net_frame *f = &n->queue[n->tail++];
	struct payload_vec all;
	struct payload *p = payload_copy(head, head_len);

	assert_true(n->tail <= sizeof(n->queue) / sizeof(n->queue[0]));
	assert_in_range(head_len, 1, PMI_NODE_HEAD_MAX);
	payload_vec_init(&all);
	f->from = node->position;
	f->to = position;
	f->head_len = head_len;
	n->node_bytes += body ? body->bytes : 0;
	/* A host without memory breaks the link, too. */
	if (p && !payload_vec_add(&all, p) &&
	    (!body || !payload_vec_add_all(&all, body)))
		f->bytes = payload_vec_join(&all);
	else
		f->bytes = NULL;
	payload_vec_clear(&all);
	payload_unref(p);
}

static void node_break(void *arg, uint32_t position)
{
	struct net_node *node = arg;
	struct net *n = node->net;

	n->queue[n->tail++] = (struct net_frame){
		.from = node->position, .to = position,
	};
}

static void break_link(struct net *n, uint32_t a, uint32_t b)
{
	n->nodes[a].broken[b] = n->nodes[b].broken[a] = true;
	pmi_server_link_lost(n->nodes[a].server, b, false, "the link broke");
	pmi_server_link_lost(n->nodes[b].server, a, false, "the link broke");
}

static void links_wanted(void *arg)
{
	struct net_node *node = arg;

	node->links_wanted++;
}

static void control_send(void *arg, const void *data, size_t len)
{
	struct net_node *node = arg;
	struct net *n = node->net;

	if (n->launcher) {
		assert_int_equal(step_services_receive(n->launcher, n, data, len),
				 0);
	} else {
		buf_clear(&n->control);
		buf_append(&n->control, data, len);
	}
}

static void slots_wake(void *arg)
{
	struct net_node *node = arg;

	node->wakes++;
}

static void slots_again(void *arg)
{
	struct net_node *node = arg;

	node->agains++;
}

static void tidy_later(void *arg, bool soon)
{
	struct net_node *node = arg;

	node->tidies++;
	node->tidies_soon += soon;
}

static bool pmi_rank(void *arg, uint32_t pid, uint32_t *number)
{
	const struct net_node *node = arg;

	if (pid < 100 || pid >= 100 + NET_RANKS || !node->numbers[pid - 100])
		return false;
	*number = node->numbers[pid - 100] - 1;
	return true;
}

static void end_step(void *arg, const char *why, int code)
{
	struct net_node *node = arg;

	node->ends++;
	node->end_code = code;
	snprintf(node->end_why, sizeof(node->end_why), "%s", why);
}

static void topology_wanted(void *arg)
{
	struct net_node *node = arg;

	node->topology_wanted++;
}

static void pmix_send(void *arg, const void *head, size_t len,
		      struct payload *data)
{
	struct net_node *node = arg;
	struct pmix_msg m;

	if (pmix_msg_unpack(&m, head, len) > 0 && m.type == PMIX_MSG_PMI) {
		assert_false(node->pmi);
		node->pmi = true;
		return;
	}
	assert_int_equal(buf_append(&node->pmix, head, len), 0);
	if (data && data->len)
		assert_int_equal(buf_append(&node->pmix, data->data, data->len), 0);
}

static void find_holder(void *arg, const unsigned char *socket, uint32_t near, bool all)
{
	struct net_node *node = arg;

	node->looks++;
	node->near = near;
}

static uint64_t now(void *arg)
{
	return ((struct net_node *)arg)->now;
}

static void fetch_timer(void *arg, uint64_t ms)
{
	struct net_node *node = arg;

	node->timer = node->now + ms;
}

void net_pass(struct net *n, uint64_t ms)
{
	for (int i = 0; i < NET_NODES; i++) {
		struct net_node *node = &n->nodes[i];

		node->now += ms;
		if (node->timer && node->timer <= node->now) {
			node->timer = 0;
			pmi_server_fetch_due(node->server);
		}
	}
	net_run(n);
}

static const struct pmi_host_ops HOST_OPS = {
	.client_send = client_send,
	.client_close = client_close,
	.node_send = node_send,
	.node_break = node_break,
	.links_wanted = links_wanted,
	.topology_wanted = topology_wanted,
	.control_send = control_send,
	.slots_wake = slots_wake,
	.slots_again = slots_again,
	.tidy_later = tidy_later,
	.pmix_send = pmix_send,
	.find_holder = find_holder,
	.pmi_rank = pmi_rank,
	.now = now,
	.fetch_timer = fetch_timer,
};

/* As HOST_OPS, for a host that ends a step. */
static const struct pmi_host_ops ENDING_OPS = {
	.client_send = client_send,
	.client_close = client_close,
	.node_send = node_send,
	.node_break = node_break,
	.links_wanted = links_wanted,
	.control_send = control_send,
	.end_step = end_step,
	.slots_wake = slots_wake,
	.slots_again = slots_again,
	.tidy_later = tidy_later,
	.pmix_send = pmix_send,
	.pmi_rank = pmi_rank,
};

static void log_to_buf(void *arg, enum log_level level, const char *text)
{
	struct net *n = arg;

	if (level == LOG_LEVEL_ERROR)
		buf_printf(&n->log, "%s\n", text);
}

/* ---- srun ---- */

/* A reply may come while the server is still sending: it must be queued. */
static void step_services_reply(void *arg, void *link, const void *data, size_t len)
{
	struct net *n = arg;
	struct net_frame *f = &n->queue[n->tail++];
	enum control_type type;

	assert_int_equal(control_peek(data, len, &type, &f->to), 0);
	f->from = UINT32_MAX;
	f->bytes = payload_copy(data, len);
}

static int step_services_spawn(void *arg, uint32_t token,
			  const struct spawn_request *request)
{
	struct net *n = arg;

	n->spawn_token = token;
	n->spawn_procs = spawn_procs(request);
	return 0;
}

static void step_services_abort(void *arg, uint32_t rank, int code, const char *text)
{
	struct net *n = arg;

	n->abort_code = code;
	snprintf(n->abort_text, sizeof(n->abort_text), "%u %s", rank, text);
}

static void step_services_report(void *arg, const char *text)
{
	struct net *n = arg;

	n->reports++;
	snprintf(n->report, sizeof(n->report), "%s", text);
}

static void step_services_gave_up(void *arg)
{
	struct net *n = arg;

	n->gave_ups++;
}

static void step_services_ready(void *arg)
{
	struct net *n = arg;

	n->ready++;
}

static void step_services_not_ready(void *arg, const char *why)
{
	struct net *n = arg;

	snprintf(n->not_ready, sizeof(n->not_ready), "%s", why);
}

static const struct step_services_ops STEP_SERVICES_OPS = {
	.reply = step_services_reply,
	.spawn = step_services_spawn,
	.abort = step_services_abort,
	.report = step_services_report,
	.gave_up = step_services_gave_up,
	.ready = step_services_ready,
	.not_ready = step_services_not_ready,
};

/* ---- the step ---- */

static const char *netinfo(void *arg)
{
	struct net *n = arg;

	n->netinfo_asked++;
	return "(n0,(eth0,IP_V4,10.0.0.1))";
}

static void create_node(struct net *n, uint32_t position,
			const struct net_options *o, const struct log_hook *log)
{
	static const uint32_t app_sizes[] = {2, 4};
	struct net_node *node = &n->nodes[position];
	size_t size = o->region_size ? o->region_size : (size_t)1 << 22;

	node->net = n;
	node->position = position;
	buf_init(&node->pmix, OUT_MAX);
	node->step = (struct pmi_step){
		.jobid = "17.2",
		.layout = n->layout,
		.position = position,
		.tree_width = 2,
		.budget = position ? NULL : o->budget,
		.mapping = "(vector,(0,3,2))",
		.universe_size = 12,
		.app_sizes = o->spawned ? app_sizes : NULL,
		.napps = o->spawned ? 2 : 0,
		.spawned = o->spawned,
		.spawner_jobid = o->spawned ? "17.1" : NULL,
		.netinfo = netinfo,
		.netinfo_arg = n,
		.preput = o->preput,
		.preput_len = o->preput_len,
		.build = "test",
		.node_names = NAMES,
	};
	if (!o->heap)
		assert_int_equal(region_writer_create(&node->region, size), 0);
	assert_int_equal(pmi_server_create(&node->server, &node->step,
					   node->region,
					   o->ends ? &ENDING_OPS : &HOST_OPS,
					   node, log),
			 0);
	if (!o->slots)
		return;
	assert_int_equal(slots_create(&node->slots, node->region,
				      COUNTS[position]), 0);
	pmi_server_use_slots(node->server, node->slots, NET_WAKE_FD);
}

static void net_destroy(void *net)
{
	struct net *n = net;

	net_run(n);
	for (uint32_t i = 0; i < NET_NODES; i++) {
		pmi_server_destroy(n->nodes[i].server);
		slots_destroy(n->nodes[i].slots);
		if (n->nodes[i].region)
			region_writer_destroy(n->nodes[i].region);
		buf_free(&n->nodes[i].pmix);
		buf_free(&n->nodes[i].heard);
	}
	for (uint32_t r = 0; r < NET_RANKS; r++) {
		buf_free(&n->ranks[r].out);
		free(n->ranks[r].last);
	}
	if (n->launcher)
		step_services_destroy(n->launcher);
	layout_destroy(n->layout);
	buf_free(&n->control);
	buf_free(&n->log);
	free(n);
}

struct net *net_create(const struct net_options *o)
{
	static const struct net_options ordinary;
	const uint32_t *ranks[NET_NODES] = {RANKS[0], RANKS[1], RANKS[2]};
	struct net *n = calloc(1, sizeof(*n) + sizeof(struct log_hook));
	struct log_hook *log = (struct log_hook *)(n + 1);

	if (!o)
		o = &ordinary;
	log->line = log_to_buf;
	log->arg = n;
	buf_init(&n->log, OUT_MAX);
	buf_init(&n->control, OUT_MAX);
	assert_int_equal(layout_create(&n->layout, NET_NODES, NET_RANKS, COUNTS,
				       ranks), 0);
	if (!o->no_launcher)
		assert_int_equal(step_services_create(&n->launcher,
						      &STEP_SERVICES_OPS, n, 0,
						 NULL), 0);
	for (uint32_t i = 0; i < NET_NODES; i++)
		create_node(n, i, o, log);
	for (uint32_t r = 0; r < NET_RANKS; r++) {
		buf_init(&n->ranks[r].out, OUT_MAX);
		n->ranks[r].fd = -1;
		pmi_server_client_open(net_node_of(n, r)->server,
				       net_slot_of(n, r));
	}
	return unit_at_end(net_destroy, n);
}

struct net_node *net_node_of(struct net *n, uint32_t rank)
{
	return &n->nodes[layout_rank_position(n->layout, rank)];
}

uint32_t net_slot_of(struct net *n, uint32_t rank)
{
	uint32_t count, slot = 0;
	const uint32_t *ranks;

	ranks = layout_ranks_at(n->layout, layout_rank_position(n->layout, rank),
				&count);
	while (ranks[slot] != rank)
		slot++;
	return slot;
}

int net_node_input(struct net_node *node, const struct net_frame *f)
{
	size_t len = f->bytes->len - f->head_len;
	const unsigned char *head = f->bytes->data;
	struct payload *body;
	struct coll_msg msg;
	int rc;

	if (coll_msg_read(head, f->head_len, &msg))
		return -EPROTO;
	body = pmi_server_node_room(node->server, f->from, &msg, len);
	if (!body)
		body = payload_new(len);
	assert_int_equal(body->len, len);
	memcpy(body->data, head + f->head_len, len);
	rc = pmi_server_node_input(node->server, f->from, &msg, body);
	payload_unref(body);
	return rc;
}

static void deliver(struct net *n, const struct net_frame *f)
{
	struct net_node *node = &n->nodes[f->to];

	if (f->from == UINT32_MAX)
		assert_int_equal(pmi_server_control_input(node->server,
							  f->bytes->data,
							  f->bytes->len), 0);
	else if (!node->link_lost && !n->nodes[f->from].link_lost &&
		 !node->broken[f->from])
		assert_int_equal(net_node_input(node, f), 0);
}

void net_run(struct net *n)
{
	while (n->head < n->tail) {
		struct net_frame f = n->queue[n->head++];

		if (!f.bytes)
			break_link(n, f.from, f.to);
		else
			deliver(n, &f);
		payload_unref(f.bytes);
	}
	n->head = 0;
	n->tail = 0;
}

void net_input(struct net *n, uint32_t rank, const void *data, size_t len)
{
	pmi_server_client_input(net_node_of(n, rank)->server,
				net_slot_of(n, rank), data, len);
}

void net_eof(struct net *n, uint32_t rank)
{
	pmi_server_client_eof(net_node_of(n, rank)->server,
			      net_slot_of(n, rank));
}

void net_hang_up(struct net *n, uint32_t rank)
{
	net_eof(n, rank);
	net_run(n);
}

/* ---- the ranks ---- */

const char *net_read(struct net *n, uint32_t rank)
{
	struct net_rank *r = &n->ranks[rank];
	size_t skip = 0, len;
	bool text = r->out.len && r->out.data[0] == 'c';

	free(r->last);
	r->last = NULL;
	if (r->out.len == 0)
		return NULL;
	if (text) {
		len = pmi1_frame(r->out.data, r->out.len);
	} else {
		skip = PMI2_HEADER_LEN;
		len = pmi2_frame(r->out.data, r->out.len);
	}
	assert_true(len > skip && len <= r->out.len);
	r->last = malloc(len - skip + 1);
	memcpy(r->last, r->out.data + skip, len - skip);
	r->last[len - skip - text] = '\0';
	buf_consume(&r->out, len);
	return r->last;
}

void net_forget(struct net *n)
{
	for (uint32_t r = 0; r < NET_RANKS; r++)
		buf_clear(&n->ranks[r].out);
}

const char *net_pmi1(struct net *n, uint32_t rank, const char *line)
{
	net_input(n, rank, line, strlen(line));
	net_input(n, rank, "\n", 1);
	net_run(n);
	return net_read(n, rank);
}

const char *net_pmi2(struct net *n, uint32_t rank, const char *body)
{
	char header[24];

	snprintf(header, sizeof(header), "%-6zu", strlen(body));
	net_input(n, rank, header, PMI2_HEADER_LEN);
	net_input(n, rank, body, strlen(body));
	net_run(n);
	return net_read(n, rank);
}

const char *net_pmi2_bytes(struct net *n, uint32_t rank, const char *cmd,
			   const char *key, const void *value, size_t len)
{
	struct pmi_writer w;
	struct buf b;

	buf_init(&b, OUT_MAX);
	pmi_write_begin(&w, &b, PMI_PROTOCOL_2, cmd);
	pmi_write_bytes(&w, key, value, len);
	assert_int_equal(pmi_write_end(&w), 0);
	net_input(n, rank, b.data, b.len);
	buf_free(&b);
	net_run(n);
	return net_read(n, rank);
}

void net_init1(struct net *n, uint32_t rank)
{
	assert_string_equal(
		net_pmi1(n, rank, "cmd=init pmi_version=1 pmi_subversion=1"),
		"cmd=response_to_init rc=0 pmi_version=1 "
		"compat=\tpmi_subversion=1 pmi_subversion=2");
}

static void handshake(struct net *n, uint32_t rank)
{
	assert_string_equal(
		net_pmi1(n, rank, "cmd=init pmi_version=2 pmi_subversion=0"),
		"cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0");
}

void net_init2(struct net *n, uint32_t rank)
{
	char expected[200];

	handshake(n, rank);
	snprintf(expected, sizeof(expected),
		 "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;"
		 "rank=%u;size=%u;appnum=-1;debugged=FALSE;pmiverbose=FALSE;",
		 rank, NET_RANKS);
	assert_string_equal(net_pmi2(n, rank, "cmd=fullinit;threaded=FALSE;"),
			    expected);
}

const char *net_init_ext(struct net *n, uint32_t rank, int region)
{
	char body[200];

	handshake(n, rank);
	snprintf(body, sizeof(body),
		 "cmd=fullinit;pmi2x=7;pmi2x-build=x;pmi2x-region=%d;", region);
	return net_pmi2(n, rank, body);
}

const char *net_init_slots(struct net *n, uint32_t rank, int slots)
{
	char body[200];

	handshake(n, rank);
	snprintf(body, sizeof(body),
		 "cmd=fullinit;pmi2x=1;pmi2x-region=1;pmi2x-slots=%d;", slots);
	return net_pmi2(n, rank, body);
}

char *net_field(const char *answer, const char *key)
{
	size_t len = strlen(answer);
	char *copy = malloc(len + PMI2_HEADER_LEN), *value = NULL;
	struct pmi_message m;

	pmi_message_init(&m);
	memcpy(copy + PMI2_HEADER_LEN, answer, len);
	assert_int_equal(pmi2_decode(copy, len + PMI2_HEADER_LEN, &m), 0);
	if (pmi_message_str(&m, key))
		value = strdup(pmi_message_str(&m, key));
	pmi_message_free(&m);
	free(copy);
	return value;
}
