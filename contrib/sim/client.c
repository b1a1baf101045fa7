/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that uses PMI to the server of its node. */
#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "contents.h"
#include "libpmi/extension.h"
#include "libpmi/message.h"
#include "libshm/records.h"
#include "pmi_node.h"

#define INPUT_MAX ((size_t)16 << 20) /* bytes of answers */
#define REQUEST_MAX ((size_t)2 << 20)

/* The commands of a protocol, by enum scenario_clients. */
static const struct {
	enum pmi_protocol form;
	const char *put, *put_answer, *fence, *fence_answer;
	const char *get, *get_answer, *finalize, *finalize_answer;
} words[] = {
	[CLIENTS_PMI1] = {
		PMI_PROTOCOL_1, "put", "put_result", "barrier_in",
		"barrier_out", "get", "get_result", "finalize", "finalize_ack",
	},
	[CLIENTS_PMI2] = {
		PMI_PROTOCOL_2, "kvs-put", "kvs-put-response", "kvs-fence",
		"kvs-fence-response", "kvs-get", "kvs-get-response",
		"finalize", "finalize-response",
	},
	[CLIENTS_PMI2X] = {
		PMI_PROTOCOL_2, EXT_CMD_PUT, EXT_CMD_PUT "-response",
		EXT_CMD_FENCE, EXT_CMD_FENCE "-response", "kvs-get",
		"kvs-get-response", "finalize", "finalize-response",
	},
};

void client_init(struct client *c, enum scenario_clients speaks)
{
	memset(c, 0, sizeof(*c));
	buf_init(&c->input, INPUT_MAX);
	c->speaks = speaks;
}

void client_free(struct client *c)
{
	buf_free(&c->input);
}

static struct client *client_at(const struct sim_node *n, uint32_t slot)
{
	return &pmi_node_of(n)->clients[slot];
}

static uint32_t rank_of(const struct sim_node *n, uint32_t slot)
{
	return rank_number(n->sim, n->first + slot);
}

/* ---- answers ---- */

/* The length of the first whole message; 0: none; below 0: no message. */
static long whole(const struct buf *in)
{
	if (!in->len)
		return 0;
	return in->data[0] == 'c' ? pmi1_frame(in->data, in->len) :
				    pmi2_frame(in->data, in->len);
}

/* False: it is no message, or not this one. Its rc, 0 when there is none. */
static bool understand(char *data, size_t len, const char *name, int *rc,
		       struct pmi_message *m)
{
	int error = data[0] == 'c' ? pmi1_decode(data, len, m) :
				     pmi2_decode(data, len, m);
	const char *cmd = error ? NULL : pmi_message_cmd(m);

	*rc = 0;
	if (!cmd || pmi_message_int(m, "rc", rc) == -EINVAL)
		return false;
	return *rc || strcmp(cmd, name) == 0;
}

/* Why it failed, in the words of either protocol. */
static const char *reason_of(const struct pmi_message *m)
{
	const char *text = pmi_message_str(m, "errmsg");

	if (!text)
		text = pmi_message_str(m, "msg");
	return text ? text : "no reason is given";
}

/* ---- requests ---- */

/* A request, and its answer if that comes at once. */
struct request {
	struct sim_node *n;
	uint32_t slot;
	struct client *client;
	struct buf out;
	struct pmi_writer w;
	struct pmi_message answer; /* lies in the client's input */
	size_t answer_len;
};

static void begin_form(struct request *rq, struct sim_node *n, uint32_t slot,
		       enum pmi_protocol form, const char *cmd)
{
	rq->n = n;
	rq->slot = slot;
	rq->client = client_at(n, slot);
	rq->answer_len = 0;
	buf_init(&rq->out, REQUEST_MAX);
	pmi_message_init(&rq->answer);
	pmi_write_begin(&rq->w, &rq->out, form, cmd);
}

static void begin(struct request *rq, struct sim_node *n, uint32_t slot,
		  const char *cmd)
{
	begin_form(rq, n, slot, words[client_at(n, slot)->speaks].form, cmd);
}

static void end(struct request *rq)
{
	buf_consume(&rq->client->input, rq->answer_len);
	pmi_message_free(&rq->answer);
	buf_free(&rq->out);
}

static void hand_over(struct request *rq)
{
	if (pmi_write_end(&rq->w))
		sim_fail(rq->n->sim, "rank %u cannot write a request",
			 rank_of(rq->n, rq->slot));
	else
		pmi_server_client_input(pmi_node_of(rq->n)->server, rq->slot,
					rq->out.data, rq->out.len);
}

/* False, and the simulation ends, unless this answer comes with rc 0. */
static bool ask(struct request *rq, const char *answer)
{
	struct sim *s = rq->n->sim;
	struct client *c = rq->client;
	int rc = 0;
	long len;

	node_spend(rq->n, s->scenario->node.request);
	c->asking = true;
	hand_over(rq);
	c->asking = false;
	if (s->failed)
		return false;
	len = whole(&c->input);
	if (len <= 0 ||
	    !understand(c->input.data, len, answer, &rc, &rq->answer)) {
		sim_fail(s, "rank %u got no %s", rank_of(rq->n, rq->slot),
			 answer);
		return false;
	}
	rq->answer_len = len;
	if (rc)
		sim_fail(s, "rank %u asked for %s and was refused: %s",
			 rank_of(rq->n, rq->slot), answer,
			 reason_of(&rq->answer));
	return !rc;
}

static bool ask_and_end(struct request *rq, const char *answer)
{
	bool ok = ask(rq, answer);

	end(rq);
	return ok;
}

/* ended() answers the request later. */
static void enter(struct request *rq)
{
	rq->client->entered = true;
	hand_over(rq);
	end(rq);
}

/* ---- init and finalize ---- */

static void say_init(struct sim_node *n, uint32_t slot, int version)
{
	struct request rq;

	begin_form(&rq, n, slot, PMI_PROTOCOL_1, "init");
	pmi_write_int(&rq.w, "pmi_version", version);
	pmi_write_int(&rq.w, "pmi_subversion", version == 1);
	ask_and_end(&rq, "response_to_init");
}

static bool says(const struct pmi_message *m, const char *key, int expected)
{
	int value;

	return !pmi_message_int(m, key, &value) && value == expected;
}

static void say_fullinit(struct sim_node *n, uint32_t slot)
{
	bool extended = client_at(n, slot)->speaks == CLIENTS_PMI2X;
	struct request rq;

	begin(&rq, n, slot, "fullinit");
	pmi_write_bool(&rq.w, "threaded", false);
	if (extended)
		pmi_write_int(&rq.w, EXT_KEY_VERSION, EXT_VERSION);
	if (ask(&rq, "fullinit-response") &&
	    (!says(&rq.answer, "rank", rank_of(n, slot)) ||
	     !says(&rq.answer, "size", n->sim->nranks) ||
	     extended != says(&rq.answer, EXT_KEY_VERSION, EXT_VERSION)))
		sim_fail(n->sim, "rank %u was told another rank, size or version",
			 rank_of(n, slot));
	end(&rq);
}

static void start(struct sim_node *n, uint32_t slot)
{
	struct client *c = client_at(n, slot);
	bool second = words[c->speaks].form == PMI_PROTOCOL_2;

	if (c->started)
		return;
	c->started = true;
	say_init(n, slot, second ? 2 : 1);
	if (second && !n->sim->failed)
		say_fullinit(n, slot);
}

void client_finalize(struct sim_node *n, uint32_t slot)
{
	const struct client *c = client_at(n, slot);
	struct request rq;

	start(n, slot);
	begin(&rq, n, slot, words[c->speaks].finalize);
	ask_and_end(&rq, words[c->speaks].finalize_answer);
}

/* ---- fence ---- */

/* The value that the rank puts under its key-th key. */
struct pair {
	char key[RECORD_KEY_MAX + 1];
	int key_len;
	char *value;
	uint32_t value_len;
};

static bool make_pair(const struct sim *s, uint32_t op, uint32_t rank,
		      uint32_t key, struct pair *out)
{
	const struct scenario_op *o = &s->scenario->ops[op];

	out->key_len = contents_key(out->key, s->scenario, o->keys, rank, key);
	out->value_len = o->bytes;
	out->value = malloc(o->bytes + 1);
	if (out->value)
		contents_fill(out->value, o->bytes, rank, op, key);
	return out->value;
}

static void write_pair(struct request *rq, const struct pair *pair)
{
	struct buf record;

	if (rq->client->speaks == CLIENTS_PMI2X) {
		buf_init(&record, REQUEST_MAX);
		if (record_append(&record, pair->key, pair->key_len,
				  pair->value, pair->value_len))
			rq->w.error = -ENOMEM;
		pmi_write_bytes(&rq->w, EXT_KEY_RECORDS, record.data,
				record.len);
		buf_free(&record);
		return;
	}
	if (rq->client->speaks == CLIENTS_PMI1)
		pmi_write_str(&rq->w, "kvsname", PMI_NODE_JOBID);
	pmi_write_str(&rq->w, "key", pair->key);
	pmi_write_bytes(&rq->w, "value", pair->value, pair->value_len);
}

/* With the extension the last pair travels with the fence itself. */
static void enter_fence(struct sim_node *n, uint32_t slot, uint32_t op)
{
	const struct client *c = client_at(n, slot);
	uint32_t keys = n->sim->scenario->ops[op].keys;
	bool together = c->speaks == CLIENTS_PMI2X;
	struct request rq;
	struct pair pair;

	for (uint32_t key = 0; key < keys && !n->sim->failed; key++) {
		bool last = together && key + 1 == keys;

		if (!make_pair(n->sim, op, rank_of(n, slot), key, &pair)) {
			sim_fail(n->sim, "not enough memory");
			return;
		}
		begin(&rq, n, slot,
		      last ? words[c->speaks].fence : words[c->speaks].put);
		write_pair(&rq, &pair);
		free(pair.value);
		if (last)
			enter(&rq);
		else
			ask_and_end(&rq, words[c->speaks].put_answer);
	}
	if (together || n->sim->failed)
		return;
	begin(&rq, n, slot, words[c->speaks].fence);
	enter(&rq);
}

static bool get_is_right(struct sim_node *n, uint32_t slot, uint32_t op,
			 uint32_t rank, uint32_t key)
{
	const struct client *c = client_at(n, slot);
	const struct scenario *sc = n->sim->scenario;
	char name[RECORD_KEY_MAX + 1];
	const struct pmi_field *f = NULL;
	struct request rq;
	bool right;

	contents_key(name, sc, sc->ops[op].keys, rank, key);
	begin(&rq, n, slot, words[c->speaks].get);
	if (c->speaks == CLIENTS_PMI1)
		pmi_write_str(&rq.w, "kvsname", PMI_NODE_JOBID);
	pmi_write_str(&rq.w, "key", name);
	if (ask(&rq, words[c->speaks].get_answer))
		f = pmi_message_field(&rq.answer, "value");
	right = f && contents_value_is(n->sim, op, rank, key, f->value,
				       f->value_len);
	end(&rq);
	return right;
}

static bool gets_are_right(struct sim_node *n, uint32_t slot, uint32_t op,
			   uint32_t rank)
{
	uint32_t keys = n->sim->scenario->ops[op].keys;

	for (uint32_t key = 0; key < keys; key++)
		if (!get_is_right(n, slot, op, rank, key))
			return false;
	return true;
}

/* ---- values without a key ---- */

static char *room_for_value(struct sim_node *n, uint32_t bytes)
{
	char *value = malloc(bytes + 1);

	if (!value)
		sim_fail(n->sim, "not enough memory");
	return value;
}

/* ---- allgather ---- */

static void enter_gather(struct sim_node *n, uint32_t slot, uint32_t op)
{
	struct client *c = client_at(n, slot);
	uint32_t bytes = n->sim->scenario->ops[op].bytes;
	char *value = room_for_value(n, bytes);
	struct request rq;

	if (!value)
		return;
	contents_fill(value, bytes, rank_of(n, slot), op, 0);
	begin(&rq, n, slot, EXT_CMD_ALLGATHER);
	pmi_write_bytes(&rq.w, EXT_KEY_VALUE, value, bytes);
	pmi_write_int(&rq.w, EXT_KEY_STRIDE, bytes);
	if (c->gathered)
		pmi_write_int(&rq.w, EXT_KEY_DONE, c->offset);
	c->gathered = false;
	free(value);
	enter(&rq);
}

static bool note_gathered(struct client *c, const struct pmi_message *m)
{
	const char *text = pmi_message_str(m, EXT_KEY_OFFSET);
	char *rest;

	if (!text)
		return false;
	c->offset = strtoull(text, &rest, 10);
	c->gathered = rest != text && !*rest;
	return c->gathered;
}

/* Value r of a gather lies r strides behind its beginning. */
static bool read_is_right(struct sim_node *n, uint32_t slot, uint32_t op,
			  uint32_t rank)
{
	uint32_t bytes = n->sim->scenario->ops[op].bytes;
	const struct pmi_field *f = NULL;
	struct request rq;
	bool right;

	if (!bytes)
		return true;
	begin(&rq, n, slot, EXT_CMD_READ);
	pmi_write_int(&rq.w, EXT_KEY_OFFSET,
		      client_at(n, slot)->offset + (uint64_t)rank * bytes);
	pmi_write_int(&rq.w, EXT_KEY_LENGTH, bytes);
	if (ask(&rq, EXT_CMD_READ "-response"))
		f = pmi_message_field(&rq.answer, EXT_KEY_DATA);
	right = f && contents_value_is(n->sim, op, rank, 0, f->value,
				       f->value_len);
	end(&rq);
	return right;
}

/* ---- ring ---- */

static void enter_ring(struct sim_node *n, uint32_t slot, uint32_t op)
{
	uint32_t bytes = n->sim->scenario->ops[op].bytes;
	char *value = room_for_value(n, bytes);
	struct request rq;

	if (!value)
		return;
	begin(&rq, n, slot, "ring");
	pmi_write_int(&rq.w, "ring-count", 1);
	contents_fill(value, bytes, rank_of(n, slot), op, 0);
	pmi_write_bytes(&rq.w, "ring-left", value, bytes);
	contents_fill(value, bytes, rank_of(n, slot), op, 1);
	pmi_write_bytes(&rq.w, "ring-right", value, bytes);
	free(value);
	enter(&rq);
}

static struct ring_value value_in(const struct pmi_message *m, const char *key)
{
	const struct pmi_field *f = pmi_message_field(m, key);

	return f ? (struct ring_value){ f->value, f->value_len } :
		   (struct ring_value){ NULL, SIZE_MAX };
}

static void check_ring(struct sim_node *n, uint32_t slot, uint32_t op,
		       const struct pmi_message *m)
{
	int rank = -1, size = -1;

	pmi_message_int(m, "ring-count", &rank);
	pmi_message_int(m, "ring-size", &size);
	contents_check_ring(n, op, slot, rank, size, value_in(m, "ring-left"),
			    value_in(m, "ring-right"));
}

/* ---- collectives ---- */

void client_enter(struct sim_node *n, uint32_t slot, uint32_t op)
{
	start(n, slot);
	if (n->sim->failed)
		return;
	switch (n->sim->scenario->ops[op].kind) {
	case OP_FENCE:
		enter_fence(n, slot, op);
		break;
	case OP_ALLGATHER:
		enter_gather(n, slot, op);
		break;
	default:
		enter_ring(n, slot, op);
	}
}

static const char *answer_to(const struct client *c, enum scenario_op_kind kind)
{
	if (kind == OP_FENCE)
		return words[c->speaks].fence_answer;
	return kind == OP_RING ? "ring-response" :
				 EXT_CMD_ALLGATHER "-response";
}

static void succeed(struct sim_node *n, uint32_t slot, uint32_t op,
		    const struct pmi_message *m)
{
	enum scenario_op_kind kind = n->sim->scenario->ops[op].kind;
	struct client *c = client_at(n, slot);

	if (kind == OP_RING)
		check_ring(n, slot, op, m);
	else
		pmi_node_publishes(n, op);
	if (kind == OP_ALLGATHER && !note_gathered(c, m))
		sim_fail(n->sim, "rank %u was told of no place of a gather",
			 rank_of(n, slot));
	c->succeeded = true;
	rank_exits(n, slot, NULL);
}

/* The answer to the collective that the rank has entered. */
static void ended(struct sim_node *n, uint32_t slot, long len)
{
	struct client *c = client_at(n, slot);
	uint32_t op = n->sim->ranks[n->first + slot].next;
	const char *name = answer_to(c, n->sim->scenario->ops[op].kind);
	struct pmi_message m;
	int rc;

	pmi_message_init(&m);
	c->entered = c->succeeded = false;
	if (len < 0 || !understand(c->input.data, len, name, &rc, &m))
		sim_fail(n->sim, "rank %u got no %s", rank_of(n, slot), name);
	else if (rc)
		rank_exits(n, slot, reason_of(&m));
	else
		succeed(n, slot, op, &m);
	pmi_message_free(&m);
	if (len > 0)
		buf_consume(&c->input, len);
}

void client_receive(struct sim_node *n, uint32_t slot, const void *data,
		    size_t len)
{
	struct client *c = client_at(n, slot);
	long first;

	if (buf_append(&c->input, data, len)) {
		sim_fail(n->sim, "not enough memory");
	} else if (c->asking) {
		return; /* ask() reads it */
	} else if (!c->entered) {
		sim_fail(n->sim, "rank %u got an answer to nothing",
			 rank_of(n, slot));
	} else {
		first = whole(&c->input);
		if (first)
			ended(n, slot, first);
	}
}

/* The ranks of a node share what there is to look at. */
void client_look(struct sim_node *n, uint32_t slot, uint32_t op)
{
	bool fence = n->sim->scenario->ops[op].kind == OP_FENCE;
	uint32_t stride = contents_stride(n->sim), turn = 0;

	if (!client_at(n, slot)->succeeded ||
	    n->sim->scenario->ops[op].kind == OP_RING)
		return;
	for (uint32_t rank = n->position % stride;
	     rank < n->sim->nranks && !n->sim->failed; rank += stride, turn++)
		if (turn % n->nranks == slot &&
		    !(fence ? gets_are_right : read_is_right)(n, slot, op, rank))
			sim_fail(n->sim, "rank %u got a wrong value of rank %u from operation %u",
				 rank_of(n, slot), rank, op + 1);
}
