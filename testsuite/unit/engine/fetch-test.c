/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values that a rank has put, fetched by ranks of its own and of other nodes: the latest,
 * from wherever it is, now or when it comes; an end by name when it cannot come.
 */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "libcoll/fetch.h"
#include "libshm/records.h"

#define FETCH "cmd=pmi2x-fetch;key=k;"

static struct net *create(void)
{
	struct net *n = net_create(&(struct net_options){.slots = true});

	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_init_ext(n, r, 0);
	return n;
}

#define FETCH_TEST(name) TEST_ON(name, struct net *n, create())

static void assert_has(const char *answer, const char *text)
{
	assert_non_null(answer);
	assert_non_null(strstr(answer, text));
}

/* ---- where values are ---- */

FETCH_TEST(from_any_node_before_and_after_a_fence)
{
	for (uint32_t r = 0; r < NET_RANKS; r++) {
		char put[80];

		snprintf(put, sizeof(put), "cmd=kvs-put;key=k;value=of %u;", r);
		assert_has(net_pmi2(n, r, put), "rc=0;");
	}
	for (int fenced = 0; fenced < 2; fenced++) {
		for (uint32_t r = 0; r < NET_RANKS; r++)
			for (uint32_t of = 0; of < NET_RANKS; of++) {
				char ask[80], want[80];

				snprintf(ask, sizeof(ask), FETCH "rank=%u;", of);
				snprintf(want, sizeof(want),
					 "rc=0;found=TRUE;value=of %u;", of);
				assert_has(net_pmi2(n, r, ask), want);
			}
		for (uint32_t r = 0; r < NET_RANKS && !fenced; r++)
			net_pmi2(n, r, "cmd=pmi2x-fence;");
		net_forget(n);
	}
}

FETCH_TEST(the_latest_in_every_place)
{
	net_pmi2(n, 5, "cmd=kvs-put;key=k;value=1;");
	net_pmi2(n, 5, "cmd=kvs-put;key=k;value=2;");
	assert_has(net_pmi2(n, 0, FETCH "rank=5;"), "value=2;");
	assert_null(net_pmi2(n, 5, "cmd=pmi2x-fence;")); /* in flight */
	assert_has(net_pmi2(n, 0, FETCH "rank=5;"), "value=2;");
	net_pmi2(n, 5, "cmd=kvs-put;key=k;value=3;");
	assert_has(net_pmi2(n, 0, FETCH "rank=5;"), "value=3;");
}

/* Only so much is kept of what each rank has fenced. */
FETCH_TEST(older_values_are_those_of_the_kvs)
{
	char *much = malloc(1000);

	memset(much, 'x', 1000);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_pmi2(n, r, "cmd=kvs-put;key=k;value=same;");
	for (int round = 0; round < 70; round++) {
		net_pmi2_bytes(n, 5, "kvs-put;key=much", "value", much, 1000);
		for (uint32_t r = 0; r < NET_RANKS; r++)
			net_pmi2(n, r, "cmd=pmi2x-fence;");
		net_forget(n);
	}
	assert_has(net_pmi2(n, 0, FETCH "rank=5;"), "value=same;");
	assert_has(net_pmi2(n, 0, "cmd=pmi2x-fetch;key=not;rank=5;"), "rc=4;");
	free(much);
}

/* A rank's own view of what it shows. */
static struct slot_shown *map_shown(struct net *n, uint32_t rank, void **map)
{
	const struct net_node *node = net_node_of(n, rank);

	net_init_slots(n, rank, SLOTS_VERSION);
	*map = mmap(NULL, slots_size(node->slots), PROT_READ | PROT_WRITE,
		    MAP_SHARED, slots_fd(node->slots), 0);
	assert_true(*map != MAP_FAILED);
	return slot_shown_at(*map, net_slot_of(n, rank));
}

static void show(struct slot_shown *shown, const char *value)
{
	struct buf b;

	buf_init(&b, SLOT_SHOWN_MAX);
	assert_int_equal(record_append(&b, "k", 1, value, strlen(value)), 0);
	memcpy(shown->records + shown->len, b.data, b.len);
	shown->len += b.len;
	buf_free(&b);
}

static bool is_watched(struct net *n, uint32_t rank)
{
	const struct net_node *node = net_node_of(n, rank);
	const struct slots_board *board = region_writer_bytes(
		node->region, slots_board_offset(node->slots),
		slots_board_size(1));

	return board->replies[net_slot_of(n, rank)].watched;
}

TEST(out_of_shared_memory)
{
	struct net *n = net_create(&(struct net_options){.slots = true});
	struct slot_shown *shown;
	void *map;

	net_init_ext(n, 0, 0);
	shown = map_shown(n, 1, &map);
	show(shown, "first");
	assert_has(net_pmi2(n, 0, FETCH "rank=1;"), "value=first;");
	show(shown, "second");
	assert_has(net_pmi2(n, 0, FETCH "rank=1;"), "value=second;");
	assert_false(is_watched(n, 1));
	assert_null(net_pmi2(n, 0, "cmd=pmi2x-fetch;key=not;rank=1;timeout=-1;"));
	assert_true(is_watched(n, 1));
	/* A record that comes is seen, nonsense is not. */
	shown->len = SLOT_SHOWN_MAX + 1;
	pmi_server_slots_input(net_node_of(n, 1)->server);
	shown->len = 77;
	memset(shown->records, 0xff, 77);
	pmi_server_slots_input(net_node_of(n, 1)->server);
	net_run(n);
	assert_null(net_read(n, 0));
	net_pmi2(n, 1, "cmd=kvs-put;key=not;value=now;");
	assert_has(net_read(n, 0), "value=now;");
	assert_false(is_watched(n, 1));
	munmap(map, slots_size(net_node_of(n, 1)->slots));
}

/* ---- waiting ---- */

FETCH_TEST(waits_until_it_is_there)
{
	assert_null(net_pmi2(n, 0, FETCH "rank=5;timeout=-1;thrid=a;"));
	assert_null(net_pmi2(n, 4, FETCH "rank=5;timeout=900;thrid=b;"));
	net_pmi2(n, 5, "cmd=kvs-put;key=other;value=1;");
	assert_null(net_read(n, 0));
	net_pmi2(n, 5, "cmd=kvs-put;key=k;value=1;");
	assert_has(net_read(n, 0), "thrid=a;rc=0;found=TRUE;value=1;");
	assert_has(net_read(n, 4), "thrid=b;rc=0;found=TRUE;value=1;");
}

FETCH_TEST(waits_no_longer_than_that)
{
	assert_has(net_pmi2(n, 0, FETCH "rank=5;"),
		   "rc=4;errmsg=rank 5 (node n2) has not put k;");
	assert_null(net_pmi2(n, 0, FETCH "rank=5;timeout=300;"));
	assert_null(net_pmi2(n, 3, FETCH "rank=5;timeout=100;"));
	net_pass(n, 99);
	assert_null(net_read(n, 3));
	net_pass(n, 1);
	assert_has(net_read(n, 3), "has not put k in time;");
	assert_null(net_read(n, 0));
	net_pass(n, 200);
	assert_has(net_read(n, 0), "rc=4;errmsg=rank 5 (node n2) has not put k in time;");
}

/* The other node does not answer: so the own one does. */
FETCH_TEST(waits_for_no_dead_node)
{
	static const char body[] = FETCH "rank=5;timeout=9;";
	char ask[80];

	snprintf(ask, sizeof(ask), "%-6zu%s", strlen(body), body);
	net_input(n, 0, ask, strlen(ask)); /* it does not reach another node */
	n->nodes[0].now = n->nodes[0].timer;
	pmi_server_fetch_due(n->nodes[0].server);
	assert_has(net_read(n, 0),
		   "rc=14;errmsg=node n2 has not answered for rank 5 in time;");
	net_run(n); /* the answer is nobody's */
	assert_null(net_read(n, 0));
}

/* ---- ends ---- */

FETCH_TEST(fetch_from_a_rank_that_exits_fails)
{
	const struct pmi_exit killed = { .status = 9 };

	net_pmi2(n, 5, "cmd=kvs-put;key=there;value=1;");
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_pmi2(n, r, "cmd=pmi2x-fence;");
	net_forget(n);
	assert_null(net_pmi2(n, 0, FETCH "rank=5;timeout=-1;"));
	pmi_server_client_exit(net_node_of(n, 5)->server, net_slot_of(n, 5),
			       &killed);
	net_run(n);
	assert_has(net_read(n, 0), "rc=14;errmsg=rank 5 (node n2)");
	/* The rank has no values any more, not even fenced ones. */
	assert_has(net_pmi2(n, 0, "cmd=pmi2x-fetch;key=there;rank=5;"),
		   "rc=14;errmsg=rank 5 (node n2) exited");
}

FETCH_TEST(fetch_from_a_rank_that_finalizes_fails_without_a_put)
{
	net_pmi2(n, 5, "cmd=kvs-put;key=there;value=1;");
	assert_null(net_pmi2(n, 0, FETCH "rank=5;timeout=-1;"));
	net_pmi2(n, 5, "cmd=finalize;");
	assert_has(net_read(n, 0),
		   "rc=14;errmsg=rank 5 (node n2) has finalized without putting k;");
	assert_has(net_pmi2(n, 0, "cmd=pmi2x-fetch;key=there;rank=5;"), "value=1;");
	net_hang_up(n, 5);
	assert_has(net_pmi2(n, 0, "cmd=pmi2x-fetch;key=there;rank=5;"), "value=1;");
	assert_has(net_pmi2(n, 0, FETCH "rank=5;timeout=-1;"), "rc=14;");
}

/* Values of the program before are not taken for the next one's. */
FETCH_TEST(fetch_returns_no_value_of_an_earlier_program)
{
	net_pmi2(n, 5, "cmd=kvs-put;key=k;value=old;");
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_pmi2(n, r, "cmd=pmi2x-fence;");
	net_forget(n);
	net_pmi2(n, 5, "cmd=finalize;");
	net_init_ext(n, 5, 0);
	assert_null(net_pmi2(n, 0, FETCH "rank=5;timeout=-1;"));
	net_pmi2(n, 5, "cmd=kvs-put;key=k;value=new;");
	assert_has(net_read(n, 0), "value=new;");
}

FETCH_TEST(a_rank_gives_up)
{
	assert_null(net_pmi2(n, 0, FETCH "rank=5;timeout=-1;thrid=a;"));
	assert_has(net_pmi2(n, 0, "cmd=pmi2x-fetch-cancel;thrid=b;"),
		   "thrid=a;rc=14;errmsg=the rank has given it up;");
	assert_has(net_read(n, 0), "thrid=b;rc=0;");
	net_pmi2(n, 5, "cmd=kvs-put;key=k;value=1;");
	assert_null(net_read(n, 0));
	/* The rank that asks goes. */
	assert_null(net_pmi2(n, 3, "cmd=pmi2x-fetch;key=x;rank=5;timeout=-1;"));
	net_eof(n, 3);
	net_pmi2(n, 5, "cmd=kvs-put;key=x;value=1;");
}

FETCH_TEST(invalid_fetches_are_rejected)
{
	static const char *const bad[] = {
		"cmd=pmi2x-fetch;", FETCH, FETCH "rank=6;", FETCH "rank=-1;",
		FETCH "rank=x;", "cmd=pmi2x-fetch;rank=0;",
		"cmd=pmi2x-fetch;rank=0;key=;", FETCH "rank=0;timeout=-2;",
		FETCH "rank=0;timeout=soon;", FETCH "rank=0;timeout=4294967296;",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *answer = net_pmi2(n, 0, bad[i]);

		assert_has(answer, "errmsg=");
		assert_null(strstr(answer, "rc=0;"));
	}
	for (uint32_t i = 0; i < COLL_FETCH_AHEAD_MAX; i++)
		assert_null(net_pmi2(n, 0, FETCH "rank=0;timeout=-1;"));
	assert_has(net_pmi2(n, 0, FETCH "rank=0;timeout=-1;"),
		   "rc=14;errmsg=too many fetches are under way;");
}
