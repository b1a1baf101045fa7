/* SPDX-License-Identifier: BSD-3-Clause */
/* A store on one node, and clients that keep their last answer. */
#include "bed.h"

static const char *const names[] = { "n0" };

static void on_answer(void *arg, uint64_t token, const struct store_answer *a)
{
	struct bed_client *c = arg;

	c->answers++;
	c->token = token;
	c->status = a->status;
	c->number = a->number;
	c->nvalues = a->nvalues;
	snprintf(c->text, sizeof(c->text), "%s", a->text);
	for (uint32_t i = 0; i < a->nvalues && i < BED_VALUES_MAX; i++) {
		const struct payload *p = a->values[i];

		snprintf(c->values[i], sizeof(c->values[i]), "%.*s", p ? (int)p->len : 1,
			 p ? (const char *)p->data : "-");
	}
}

static const struct store_client_ops ops = { .answer = on_answer };

void bed_open(struct bed *b, uint32_t ranks)
{
	const struct tree_place place = tree_place(1, 2, 0);
	const struct store_ops none = { .arg = NULL };
	uint32_t *numbers = calloc(ranks, sizeof(*numbers));
	const uint32_t *lists[] = { numbers };

	for (uint32_t i = 0; i < ranks; i++)
		numbers[i] = i;
	assert_int_equal(layout_create(&b->layout, 1, ranks, &ranks, lists), 0);
	free(numbers);
	assert_int_equal(store_create(&b->store, b->layout, &place, names, &b->options,
				      &none), 0);
}

void bed_close(struct bed *b)
{
	store_destroy(b->store);
	layout_destroy(b->layout);
}

void bed_client(struct bed *b, struct bed_client *c, enum store_space space)
{
	memset(c, 0, sizeof(*c));
	c->client = store_client_open(b->store, space, &ops, c);
	assert_non_null(c->client);
}

void bed_hang_up(struct bed_client *c)
{
	store_client_close(c->client);
	c->client = NULL;
}

bool bed_answered(struct bed_client *c)
{
	uint32_t n = c->answers;

	c->answers = 0;
	assert_true(n <= 1);
	return n == 1;
}

static struct store_bytes bytes_of(const char *text)
{
	return (struct store_bytes){ text, text ? strlen(text) : 0 };
}

/* Tokens are the client's own: here each request has the next one. */
static void ask(struct bed_client *c, const struct store_request *rq)
{
	store_ask(c->client, ++c->token, rq);
}

void bed_ask(struct bed_client *c, enum store_op op, const char *keys, const char *value)
{
	struct store_bytes list[BED_VALUES_MAX];
	struct store_request rq = { .op = op, .keys = list, .value = bytes_of(value) };

	while (*keys) {
		size_t n = strcspn(keys, " ");

		list[rq.nkeys++] = (struct store_bytes){ keys, n };
		keys += n + (keys[n] == ' ');
	}
	ask(c, &rq);
}

void bed_compare_set(struct bed_client *c, const char *key, const char *expected,
		     const char *value)
{
	const struct store_bytes k = bytes_of(key);
	const struct store_request rq = {
		.op = STORE_COMPARE_SET, .keys = &k, .nkeys = 1,
		.expected = bytes_of(expected), .value = bytes_of(value),
	};

	ask(c, &rq);
}

void bed_add(struct bed_client *c, const char *key, int64_t number)
{
	const struct store_bytes k = bytes_of(key);
	const struct store_request rq = {
		.op = STORE_ADD, .keys = &k, .nkeys = 1, .number = number,
	};

	ask(c, &rq);
}

void bed_meet(struct bed_client *c, const char *name, uint32_t rank, const char *value)
{
	const struct store_bytes k = bytes_of(name);
	const struct store_request rq = {
		.op = STORE_MEET, .keys = &k, .nkeys = 1, .rank = rank,
		.gather = value != NULL, .value = bytes_of(value),
	};

	ask(c, &rq);
}

const char *bed_get(struct bed_client *c, const char *key)
{
	c->answers = 0;
	bed_ask(c, STORE_GET, key, NULL);
	assert_true(bed_answered(c));
	assert_int_equal(c->status, STORE_OK);
	return c->values[0];
}
