/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that uses every collective of libpmi2x and checks every value it gets,
 * for the fake server. Exits 0, or says what is wrong and calls abort. With a
 * number N it is killed before its fence N. EXERCISE_LARGE=BYTES in the
 * environment adds collectives of values of that size, which between nodes
 * travel in several messages; EXERCISE_PMI2 leaves the extensions out.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmi2.h"
#include "pmi2x.h"

static int rank, size;
static int last_round = -1; /* in it the rank is killed */

static void fail(const char *what, int index)
{
	fprintf(stderr, "exercise: rank %d: %s (%d)\n", rank, what, index);
	PMI2_Abort(1, what);
	exit(1);
}

static void expect(int ok, const char *what, int index)
{
	if (!ok)
		fail(what, index);
}

static void key_of(char *key, int round, int r)
{
	sprintf(key, "key-%d-%d", round, r);
}

static void put(int round)
{
	char key[64], value[64];

	key_of(key, round, rank);
	sprintf(value, "value;%d=%d;;", round, rank);
	expect(PMI2_KVS_Put(key, value) == PMI2_SUCCESS, "put", round);
}

static void get_all(int round)
{
	char key[64], value[64], want[64];
	int len;

	for (int r = 0; r < size; r++) {
		key_of(key, round, r);
		sprintf(want, "value;%d=%d;;", round, r);
		expect(PMI2_KVS_Get(NULL, PMI2_ID_NULL, key, value,
				    sizeof(value), &len) == PMI2_SUCCESS,
		       "get", r);
		expect(!strcmp(value, want), "value of a get", r);
	}
}

static void fences(void)
{
	for (int round = 0; round < 12; round++) {
		if (round == last_round)
			raise(SIGKILL);
		put(round);
		expect(PMI2_KVS_Fence() == PMI2_SUCCESS, "fence", round);
	}
	for (int round = 0; round < 12; round += 5)
		get_all(round);
}

static void ring(void)
{
	char value[32], left[32], right[32], want[32];
	int ring_rank, ring_size;

	sprintf(value, "r%d", rank);
	expect(PMIX_Ring(value, &ring_rank, &ring_size, left, right,
			 sizeof(left)) == 0, "ring", 0);
	expect(ring_size == size, "size of the ring", ring_size);
	expect(ring_rank >= 0 && ring_rank < size, "rank in ring", ring_rank);
	if (getenv("EXERCISE_BLOCK")) { /* ring order is rank order */
		expect(ring_rank == rank, "rank in ring", ring_rank);
		sprintf(want, "r%d", (rank + size - 1) % size);
		expect(!strcmp(left, want), "left", rank);
		sprintf(want, "r%d", (rank + 1) % size);
		expect(!strcmp(right, want), "right", rank);
	}
}

static void check_gathered(const char *buffer, int salt)
{
	char want[32];

	for (int r = 0; r < size; r++) {
		sprintf(want, "g%d.%d", salt, r);
		expect(!strcmp(buffer + (size_t)r * PMI2X_MAXLENGTH, want),
		       "gathered value", r);
	}
}

static void allgather(void)
{
	char *buffer = malloc((size_t)size * PMI2X_MAXLENGTH), value[32];

	sprintf(value, "g7.%d", rank);
	expect(PMIX_Allgather(value, buffer) == 0, "allgather", 0);
	check_gathered(buffer, 7);
	free(buffer);
}

/* Two gathers, a fence and a view in flight, completed in another order. */
static void in_flight(void)
{
	char *one = malloc((size_t)size * PMI2X_MAXLENGTH), value[32];
	char *two = malloc((size_t)size * PMI2X_MAXLENGTH);
	PMIX_Request a, b, c, d;
	PMIX_View *view;
	int flag = 0, len;

	sprintf(value, "g1.%d", rank);
	expect(PMIX_Iallgather(value, one, &a) == 0, "iallgather", 1);
	put(100);
	expect(PMIX_KVS_Ifence(&b) == 0, "ifence", 1);
	sprintf(value, "g2.%d", rank);
	expect(PMIX_Iallgather(value, two, &c) == 0, "iallgather", 2);
	expect(PMIX_Iallgather_view(&rank, sizeof(rank), &view, &d) == 0,
	       "view", 0);
	expect(PMIX_Wait(d) == 0, "wait for the view", 0);
	for (int r = 0; r < size; r++)
		expect(!memcmp(PMIX_View_value(view, r, &len), &r, sizeof(r)) &&
		       len == sizeof(r), "value of the view", r);
	expect(PMIX_View_free(view) == 0, "free of the view", 0);
	expect(PMIX_Wait(c) == 0, "wait", 2);
	check_gathered(two, 2);
	expect(PMIX_Wait(b) == 0, "wait for the fence", 0);
	get_all(100);
	while (!flag)
		expect(PMIX_Test(a, &flag) == 0, "test", 0);
	check_gathered(one, 1);
	expect(PMIX_Wait(a) != 0, "wait for a request that has ended", 0);
	free(one);
	free(two);
}

#define CROWD 6
#define CROWD_BIG 9000 /* bytes: more than a slot takes */

/* More collectives in flight than a slot has cells, some too big for one. */
static int crowd_len(int r, int i)
{
	return (r + i) % 8 == 1 ? CROWD_BIG : 1 + i;
}

static void enter_crowd(int i, PMIX_View **view, PMIX_Request *gather,
			PMIX_Request *fence)
{
	static char value[CROWD_BIG];
	char key[64];

	memset(value, 'a' + (rank + i) % 26, sizeof(value));
	expect(PMIX_Iallgather_view(value, crowd_len(rank, i), view, gather) ==
	       0, "iallgather in a crowd", i);
	sprintf(key, "crowd-%d-%d", i, rank);
	expect(PMIX_KVS_Put_n(key, value, crowd_len(rank, i)) == 0,
	       "put in a crowd", i);
	expect(PMIX_KVS_Ifence(fence) == 0, "ifence in a crowd", i);
}

static void check_crowd(int i, const PMIX_View *view)
{
	static char value[CROWD_BIG];
	char key[64];
	int len, other = (rank + i + 1) % size;

	for (int r = 0; r < size; r++) {
		const char *v = PMIX_View_value(view, r, &len);

		expect(len == crowd_len(r, i) && v[0] == 'a' + (r + i) % 26 &&
		       v[len - 1] == v[0], "value in a crowd", r);
	}
	sprintf(key, "crowd-%d-%d", i, other);
	expect(PMIX_KVS_Get_n(key, value, sizeof(value), &len) == 0 &&
	       len == crowd_len(other, i) &&
	       value[len - 1] == 'a' + (other + i) % 26, "get in a crowd", i);
}

static void crowd(void)
{
	PMIX_Request gathers[CROWD], fences[CROWD];
	PMIX_View *views[CROWD];

	for (int i = 0; i < CROWD; i++)
		enter_crowd(i, &views[i], &gathers[i], &fences[i]);
	for (int i = CROWD; i-- > 0;) {
		expect(PMIX_Wait(fences[i]) == 0, "wait in a crowd", i);
		expect(PMIX_Wait(gathers[i]) == 0, "wait in a crowd", i);
		check_crowd(i, views[i]);
		expect(PMIX_View_free(views[i]) == 0, "free in a crowd", i);
	}
}

#define LARGE_ROUNDS 3

static void fill(char *value, int len, int r, int round)
{
	for (int i = 0; i < len; i++)
		value[i] = 'a' + (i + 3 * r + round) % 26;
}

static void check_large(const PMIX_View *view, int len, int round)
{
	char *want = malloc(len), *got = malloc(len), key[64];
	int n;

	for (int r = 0; r < size; r++) {
		const char *value = PMIX_View_value(view, r, &n);

		fill(want, len, r, round);
		expect(n == len - r % 2 && !memcmp(value, want, n),
		       "large gathered value", r);
		key_of(key, 200 + round, r);
		expect(PMIX_KVS_Get_n(key, got, len, &n) == 0 && n == len &&
		       !memcmp(got, want, len), "large value of a get", r);
	}
	free(want);
	free(got);
}

/* In flight together, so that their messages mix on the links. */
static void large(int len)
{
	char *value = malloc(len), key[64];
	PMIX_Request gathers[LARGE_ROUNDS], fences[LARGE_ROUNDS];
	PMIX_View *views[LARGE_ROUNDS];

	for (int i = 0; i < LARGE_ROUNDS; i++) {
		fill(value, len, rank, i);
		expect(PMIX_Iallgather_view(value, len - rank % 2, &views[i],
					    &gathers[i]) == 0, "large", i);
		key_of(key, 200 + i, rank);
		expect(PMIX_KVS_Put_n(key, value, len) == 0, "large put", i);
		expect(PMIX_KVS_Ifence(&fences[i]) == 0, "large ifence", i);
	}
	for (int i = 0; i < LARGE_ROUNDS; i++) {
		expect(PMIX_Wait(fences[i]) == 0, "wait for large", i);
		expect(PMIX_Wait(gathers[i]) == 0, "wait for large", i);
		check_large(views[i], len, i);
		expect(PMIX_View_free(views[i]) == 0, "free of large", i);
	}
	free(value);
}

/* ---- fetch ---- */

#define FETCH_MS 60000
#define FETCH_LARGE 200000
#define FETCH_MANY 2000 /* puts: more than a rank shows its agent at a time */
#define FETCH_RANKS 4   /* the first of the job put so much */

static int fetch(int of, const char *key, char *value, size_t room, int ms)
{
	size_t len = room - 1;
	int rc = PMIX_KVS_Fetch(of, key, value, &len, ms);

	value[rc ? 0 : len] = '\0';
	return rc;
}

/* Everybody puts the same key, and each can be asked for its own value. */
static void put_own(int round)
{
	char value[64];

	sprintf(value, "%d;%d", rank, round);
	expect(PMI2_KVS_Put("own", value) == PMI2_SUCCESS, "put of own", round);
	sprintf(value, "own-%d", round);
	expect(PMI2_KVS_Put(value, "put") == PMI2_SUCCESS, "put after own", round);
}

static void fetch_own(int of, int round)
{
	char key[64], value[64], want[64];

	sprintf(key, "own-%d", round);
	sprintf(want, "%d;%d", of, round);
	expect(!fetch(of, key, value, sizeof(value), FETCH_MS),
	       "fetch of what was put last", of);
	/* The value is there; an answer from another node may be late on a busy machine. */
	expect(!fetch(of, "own", value, sizeof(value), of == rank ? 0 : FETCH_MS),
	       "fetch", of);
	expect(!strcmp(value, want), "a fetched value", of);
}

static void fetch_what_is_not(void)
{
	char value[64];
	size_t len = 1;

	expect(fetch(rank, "not", value, 64, 0) == PMI2_ERR_INVALID_KEY,
	       "fetch of what is not there", 0);
	expect(fetch((rank + 1) % size, "not", value, 64, 20) ==
	       PMI2_ERR_INVALID_KEY, "fetch with a limit", 20);
	expect(PMIX_KVS_Fetch(rank, "own", value, &len, 0) ==
	       PMI2_ERR_INVALID_LENGTH && len > 1, "fetch without room", len);
	expect(fetch(size, "own", value, 64, 0) == PMI2_ERR_INVALID_ARG,
	       "fetch of no rank", size);
	expect(fetch(-1, "own", value, 64, 0) == PMI2_ERR_INVALID_ARG,
	       "fetch of no rank", -1);
	expect(fetch(0, "", value, 64, 0) == PMI2_ERR_INVALID_ARG,
	       "fetch of no key", 0);
	expect(fetch(0, "own", value, 64, -2) == PMI2_ERR_INVALID_ARG,
	       "fetch before now", -2);
}

/* Asked for before it is put, without limit. */
static void fetch_late(void)
{
	char value[64] = "", key[64];
	size_t len = sizeof(value);
	PMIX_Request request;
	int flag = 0;

	/*
	 * The key names this process: another one on this rank may have put it before.
	 */
	sprintf(key, "late-%d", (int)getpid());
	expect(!PMIX_KVS_Ifetch(rank, key, value, &len, -1, &request),
	       "ifetch", rank);
	expect(!PMIX_Test(request, &flag) && !flag, "an early end", rank);
	expect(PMI2_KVS_Put(key, "late;") == PMI2_SUCCESS, "put of late", 0);
	expect(!PMIX_Wait(request) && len == 5 && !memcmp(value, "late;", 5),
	       "wait for an ifetch", (int)len);
}

static void put_large(char *value)
{
	char key[64];

	sprintf(key, "wide-%d", rank); /* so much is not kept for each rank */
	fill(value, FETCH_LARGE, rank, 0);
	expect(!PMIX_KVS_Put_n(key, value, FETCH_LARGE), "put of much", 0);
	for (int i = 0; i < FETCH_MANY; i++) {
		sprintf(value, "%d", i);
		expect(!PMI2_KVS_Put("often", value), "put again", i);
	}
}

static void fetch_large(int of, char *value)
{
	char key[64], often[64], *want = malloc(FETCH_LARGE);
	size_t len = FETCH_LARGE;

	sprintf(value, "%d", FETCH_MANY - 1);
	expect(!fetch(of, "often", often, sizeof(often), FETCH_MS) &&
	       !strcmp(often, value), "the last of many values", of);
	sprintf(key, "wide-%d", of);
	/*
	 * The value is there; but all ranks ask for much at once, and some answer is late.
	 */
	expect(!PMIX_KVS_Fetch(of, key, value, &len, FETCH_MS) &&
	       len == FETCH_LARGE, "fetch of much", of);
	fill(want, FETCH_LARGE, of, 0);
	expect(!memcmp(value, want, len), "a large fetched value", of);
	free(want);
}

static void fence(const char *what)
{
	expect(PMI2_KVS_Fence() == PMI2_SUCCESS, what, 0);
}

/* The fetch ends with the session. */
static void fetch_for_ever(void)
{
	static char value[1];
	static size_t len;
	PMIX_Request request;

	expect(!PMIX_KVS_Ifetch((rank + 1) % size, "never", value, &len, -1,
				&request), "ifetch forever", rank);
}

/* A rank whose library or server cannot fetch puts all the same. */
static void fetches(void)
{
	char value[FETCH_LARGE], can[8] = "";
	const int peers[] = { rank, (rank + 1) % size, (rank + size / 2) % size };

	expect(!PMIX_Capabilities("fetch", can, sizeof(can)), "fetch?", 0);
	if (can[0] != '1')
		expect(fetch(0, "own", value, 64, 0) == PMI2_FAIL, "refusal", 0);
	for (int round = 0; round < 3; round++) {
		put_own(round);
		for (int i = 0; i < 3 && can[0] == '1'; i++)
			fetch_own(peers[i], round);
		fence("fence of what was fetched");
		for (int i = 0; i < 3 && can[0] == '1'; i++)
			fetch_own(peers[i], round);
		fence("fence before the next");
	}
	if (rank < FETCH_RANKS)
		put_large(value);
	fence("fence of what is large");
	if (can[0] == '1') {
		fetch_what_is_not();
		fetch_late();
		fetch_large(rank % FETCH_RANKS % size, value);
	}
	fence("fence after fetching");
	if (can[0] == '1')
		fetch_for_ever();
}

static void node_attributes(void)
{
	char value[PMI2_MAX_ATTRVALUE];
	int found = 0;

	expect(PMI2_Info_PutNodeAttr("exercise", "yes") == PMI2_SUCCESS,
	       "put of a node attribute", 0);
	expect(PMI2_Info_GetNodeAttr("exercise", value, sizeof(value), &found,
				     1) == PMI2_SUCCESS && found &&
	       !strcmp(value, "yes"), "get of a node attribute", found);
}

static void names(void)
{
	char name[32], port[64];

	sprintf(name, "service-%d", rank);
	expect(PMI2_Nameserv_publish(name, NULL, "port;1") == PMI2_SUCCESS,
	       "publish", 0);
	expect(PMI2_Nameserv_lookup(name, NULL, port, sizeof(port)) ==
	       PMI2_SUCCESS && !strcmp(port, "port;1"), "lookup", 0);
	expect(PMI2_Nameserv_unpublish(name, NULL) == PMI2_SUCCESS,
	       "unpublish", 0);
	expect(PMI2_Nameserv_lookup(name, NULL, port, sizeof(port)) !=
	       PMI2_SUCCESS, "lookup after unpublish", 0);
}

static void extensions(void)
{
	ring();
	allgather();
	in_flight();
	crowd();
	if (getenv("EXERCISE_LARGE"))
		large(atoi(getenv("EXERCISE_LARGE")));
	fetches();
}

int main(int argc, char **argv)
{
	int spawned, appnum;

	if (PMI2_Init(&spawned, &size, &rank, &appnum) != PMI2_SUCCESS) {
		fprintf(stderr, "exercise: init failed\n");
		return 1;
	}
	if (argc > 1)
		last_round = atoi(argv[1]);
	fences();
	if (!getenv("EXERCISE_PMI2"))
		extensions();
	node_attributes();
	names();
	expect(PMI2_Finalize() == PMI2_SUCCESS, "finalize", 0);
	return 0;
}
