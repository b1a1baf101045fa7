/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client library in real processes against the real server engine: one
 * node, its ranks forked, their sockets served by the test.
 */
#include "unit.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libengine/pmi_server.h"
#include "libio/attach_fds.h"
#include "pmi.h"
#include "pmi2.h"
#include "pmi2x.h"

#define RANKS 5
#define INPUT 65536

/* ---- the host of the engine ---- */

struct host {
	struct pmi_server *server;
	int fds[RANKS];
	pid_t pids[RANKS];
	int open;
};

static void host_send(void *arg, uint32_t slot, const void *data, size_t len,
		      const struct passed_fds *fds)
{
	union attached_fds control;
	struct iovec iov = { (void *)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct host *h = arg;

	if (fds && fds->count)
		attach_fds(&msg, fds, &control);
	sendmsg(h->fds[slot], &msg, MSG_NOSIGNAL);
}

static void host_close(void *arg, uint32_t slot)
{
	struct host *h = arg;

	shutdown(h->fds[slot], SHUT_WR);
}

static void no_node(void *arg, uint32_t position, const struct coll_msg *msg,
		      const void *head, size_t head_len,
		      const struct payload_vec *body)
{
}

static void no_break(void *arg, uint32_t position)
{
}

static void no_links(void *arg)
{
}

static void no_control(void *arg, const void *data, size_t len)
{
}

static void serve_slot(struct host *h, uint32_t slot)
{
	static char input[INPUT];
	ssize_t n = recv(h->fds[slot], input, sizeof(input), 0);

	if (n > 0) {
		pmi_server_client_input(h->server, slot, input, n);
		return;
	}
	pmi_server_client_eof(h->server, slot);
	close(h->fds[slot]);
	h->fds[slot] = -1;
	h->open--;
}

static void serve(struct host *h)
{
	struct pollfd p[RANKS];

	while (h->open > 0) {
		for (int i = 0; i < RANKS; i++)
			p[i] = (struct pollfd){ h->fds[i], POLLIN, 0 };
		poll(p, RANKS, -1);
		for (int i = 0; i < RANKS; i++)
			if (p[i].revents)
				serve_slot(h, i);
	}
}

/* ---- ranks ---- */

typedef int program(int rank);

static void start_rank(struct host *h, int rank, program *main_of_rank)
{
	char text[16];
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	h->pids[rank] = fork();
	if (h->pids[rank] == 0) {
		for (int i = 0; i < rank; i++)
			close(h->fds[i]);
		close(fds[0]);
		snprintf(text, sizeof(text), "%d", fds[1]);
		setenv("PMI_FD", text, 1);
		snprintf(text, sizeof(text), "%d", rank);
		setenv("PMI_RANK", text, 1);
		setenv("PMI_SIZE", "5", 1);
		setenv("PMI_JOBID", "12.3", 1);
		_exit(main_of_rank(rank));
	}
	close(fds[1]);
	h->fds[rank] = fds[0];
}

static void create_server(struct host *h, struct layout **layout,
			  struct region_writer **region)
{
	static const uint32_t all[RANKS] = { 0, 1, 2, 3, 4 };
	static const char *const names[] = { "n1" };
	static const struct pmi_host_ops ops = {
		.client_send = host_send,
		.client_close = host_close,
		.node_send = no_node,
		.node_break = no_break,
		.links_wanted = no_links,
		.control_send = no_control,
	};
	static struct pmi_step step;
	const uint32_t *ranks = all;
	uint32_t count = RANKS;

	assert_int_equal(layout_create(layout, 1, RANKS, &count, &ranks), 0);
	step = (struct pmi_step){
		.jobid = "12.3",
		.layout = *layout,
		.tree_width = 2,
		.mapping = "(vector,(0,1,5))",
		.universe_size = 8,
		.build = "test",
		.node_names = names,
	};
	assert_int_equal(region_writer_create(region, 64 << 20), 0);
	assert_int_equal(pmi_server_create(&h->server, &step, *region, &ops, h,
					   NULL), 0);
}

/* Run the program in every rank; each must return 0. */
static void run(program *main_of_rank)
{
	struct host h = { .open = RANKS };
	struct region_writer *region;
	struct layout *layout;
	int status;

	for (int i = 0; i < RANKS; i++)
		start_rank(&h, i, main_of_rank);
	create_server(&h, &layout, &region);
	for (int i = 0; i < RANKS; i++)
		pmi_server_client_open(h.server, i);
	serve(&h);
	for (int i = 0; i < RANKS; i++) {
		assert_int_equal(waitpid(h.pids[i], &status, 0), h.pids[i]);
		assert_int_equal(status, 0);
	}
	pmi_server_destroy(h.server);
	region_writer_destroy(region);
	layout_destroy(layout);
}

/* In a rank: leave the program with a failure. */
#define NEED(what)                                                        \
	do {                                                              \
		if (!(what)) {                                            \
			fprintf(stderr, "line %d: %s\n", __LINE__, #what); \
			return 1;                                         \
		}                                                         \
	} while (0)

static int start_pmi2(int want)
{
	int spawned, size, rank, appnum;

	NEED(!PMI2_Init(&spawned, &size, &rank, &appnum));
	NEED(size == RANKS && rank == want && !spawned && appnum == -1);
	return 0;
}

static int fence_and_get(int rank)
{
	char key[32], value[64];
	int n;

	for (int round = 0; round < 10; round++) {
		snprintf(key, sizeof(key), "%d-%d", round, rank);
		snprintf(value, sizeof(value), "v;%d=%d", round, rank);
		NEED(!PMI2_KVS_Put(key, value));
		NEED(!PMI2_KVS_Fence());
		for (int r = 0; r < RANKS; r++) {
			snprintf(key, sizeof(key), "%d-%d", round, r);
			NEED(!PMI2_KVS_Get("12.3", r, key, value,
					   sizeof(value), &n));
			snprintf(key, sizeof(key), "v;%d=%d", round, r);
			NEED(!strcmp(key, value));
		}
	}
	NEED(PMI2_KVS_Get(NULL, -1, "-NONEXIST-KEY", NULL, 0, &n) ==
	     PMI2_ERR_INVALID_KEY);
	return 0;
}

/* Values of one length into places that are shorter, as long, and longer. */
static int even_values(const char *value)
{
	static const char *const want[] = { "rank", "rank 2", "rank 2\0\0" };
	char all[RANKS * 8];
	int lengths[RANKS];

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		size_t place = 4 + 2 * i;

		memset(all, '?', sizeof(all));
		NEED(!PMIX_Allgather_n(value, 6, all, place, lengths));
		NEED(lengths[0] == 6 && lengths[RANKS - 1] == 6);
		NEED(!memcmp(all + 2 * place, want[i], place));
		NEED(!memcmp(all + (RANKS - 1) * place, "rank", 4));
		NEED(all[RANKS * place - 1] == (i == 0 ? 'k' :
						i == 1 ? '4' : '\0'));
		NEED(i == 2 || all[RANKS * place] == '?');
	}
	return 0;
}

static int exchanges(int rank)
{
	char all[RANKS * PMI2X_MAXLENGTH], value[32], left[32], right[32];
	int at, size, lengths[RANKS];
	PMIX_Request request;
	PMIX_View *view;
	void *shared;

	snprintf(value, sizeof(value), "rank %d", rank);
	NEED(!PMIX_Allgather(value, all));
	NEED(!strcmp(all + 3 * PMI2X_MAXLENGTH, "rank 3"));
	NEED(!PMIX_Allgather_n(value, rank, all, 3, lengths));
	NEED(lengths[4] == 4 && !memcmp(all + 12, "ran", 3));
	NEED(!even_values(value));
	for (int i = 0; i < 20; i++) {
		NEED(!PMIX_Iallgather_view(value, 6, &view, &request));
		NEED(!PMIX_Wait(request));
		NEED(!memcmp(PMIX_View_value(view, 2, NULL), "rank 2", 6));
		NEED(!PMIX_View_free(view));
	}
	NEED(!PMIX_Ring(value, &at, &size, left, right, sizeof(left)));
	NEED(size == RANKS && at == rank);
	NEED(right[5] == '0' + (rank + 1) % RANKS);
	NEED(!PMI2_SHMEM_Iallgather(value));
	NEED(!PMI2_SHMEM_Iallgather_wait(&shared));
	NEED(!strcmp((char *)shared + 4 * 1024, "rank 4"));
	return 0;
}

static int attributes(int rank)
{
	char text[64];
	int found, n, ranks[RANKS];

	if (rank == 2)
		NEED(!PMI2_Info_PutNodeAttr("who", "two"));
	NEED(!PMI2_Info_GetNodeAttr("who", text, sizeof(text), &found, 1));
	NEED(found && !strcmp(text, "two"));
	NEED(!PMI2_Info_GetJobAttrIntArray("universeSize", ranks, 1, &n,
					   &found));
	NEED(found && n == 1 && ranks[0] == 8);
	NEED(!PMI_Get_clique_ranks(ranks, RANKS) && ranks[4] == 4);
	NEED(!PMI2_Job_GetId(text, sizeof(text)) && !strcmp(text, "12.3"));
	NEED(PMI2_Job_Connect("1.0", &(PMI2_Connect_comm_t){ 0 }) != 9999);
	return 0;
}

static int uses_everything(int rank)
{
	for (int i = 0; i < 2; i++) {
		NEED(!start_pmi2(rank));
		NEED(!fence_and_get(rank));
		NEED(!exchanges(rank));
		NEED(!attributes(rank));
		NEED(!PMI2_Finalize());
	}
	return 0;
}

static int without_mapping(int rank)
{
	setenv("PMI2X_NOSHM", "1", 1);
	NEED(!start_pmi2(rank));
	NEED(!fence_and_get(rank));
	NEED(!exchanges(rank));
	return PMI2_Finalize();
}

static int without_extension(int rank)
{
	setenv("PMI2X_DISABLE", "1", 1);
	NEED(!start_pmi2(rank));
	NEED(!fence_and_get(rank));
	NEED(!exchanges(rank));
	return PMI2_Finalize();
}

/* One step, all kinds of ranks: the fence is for all of them. */
static int mixed(int rank)
{
	char name[256], value[64], key[32];
	int spawned;

	if (rank % 3 == 1)
		setenv("PMI2X_PMI1_WIRE", "1", 1);
	if (rank % 3 == 2)
		setenv("PMI2X_DISABLE", "1", 1);
	NEED(!PMI_Init(&spawned));
	NEED(!PMI_KVS_Get_my_name(name, sizeof(name)));
	snprintf(key, sizeof(key), "k%d", rank);
	NEED(!PMI_KVS_Put(name, key, key + 1));
	NEED(!PMI_KVS_Commit(name));
	NEED(!PMI_Barrier());
	for (int r = 0; r < RANKS; r++) {
		snprintf(key, sizeof(key), "k%d", r);
		NEED(!PMI_KVS_Get(name, key, value, sizeof(value)));
		NEED(!strcmp(value, key + 1));
	}
	return PMI_Finalize();
}

/* A rank that leaves makes the fence of the others fail; nobody hangs. */
static int one_leaves(int rank)
{
	NEED(!start_pmi2(rank));
	if (rank == 1)
		_exit(0);
	NEED(PMI2_KVS_Fence() != 0);
	PMI2_Finalize();
	return 0;
}

TEST(ranks_use_everything)
{
	run(uses_everything);
}

TEST(ranks_without_mapping)
{
	run(without_mapping);
}

TEST(ranks_without_extension)
{
	run(without_extension);
}

TEST(ranks_of_all_kinds_in_one_step)
{
	run(mixed);
}

TEST(a_rank_that_leaves_fails_the_fence)
{
	run(one_leaves);
}
