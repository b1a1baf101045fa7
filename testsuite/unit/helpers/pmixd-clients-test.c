/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx clients before libpmix has them: who is let in, and who is not. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helpers/pmixd/accept_hook.h"
#include "helpers/pmixd/clients.h"
#include "helpers/pmixd/server_internal.h"
#include "libio/listener_socket.h"

#define NSPACE "pmi2x.17.2"

static int listener, accepted, library;
static uint16_t port;
static int64_t now;
static unsigned let_in, counted; /* counted: ranks, by libpmix */
static struct pmix_msg asked; /* the last question to the agent; id 0: none */
static struct client_session sessions[2];
static struct job job = { .nspace = { .name = NSPACE }, .sessions = sessions };
static const char *names[] = { "n0" };

/* ---- in place of the server, its clock, and libpmix ---- */

struct job *server_job_named(const struct server *s, const char *name)
{
	return strcmp(name, NSPACE) ? NULL : &job;
}

int64_t server_now(void)
{
	return now;
}

void server_old_client(struct server *s)
{
}

int accept_hook_let_in(int fd)
{
	if (let_in)
		close(library);
	let_in++;
	library = fd;
	return 0;
}

int link_send(struct link *l, const struct pmix_msg *m)
{
	asked = *m;
	return 0;
}

static const struct log_hook no_log;

static pmix_status_t count_ranks(const pmix_nspace_t nspace, int nlocalprocs, pmix_info_t info[],
				 size_t ninfo, pmix_op_cbfunc_t done, void *arg)
{
	assert_string_equal(nspace, NSPACE);
	assert_int_equal(ninfo, 1);
	assert_string_equal(info[0].key, PMIX_REGISTER_NODATA);
	assert_true(info[0].value.data.flag);
	counted = nlocalprocs;
	return PMIX_SUCCESS;
}

static const struct library libpmix = { .server_register_nspace = count_ranks };
static struct server server = { .log = &no_log, .library = &libpmix };

/* ---- clients ---- */

/* A client's end of a connection; the other end is `clients`'s. */
static int come(struct clients *c)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	clients_add(c, accepted, false);
	return fd;
}

/* Header, security module, credential, kind, namespace, rank, version. */
static void greet_as(int fd, unsigned char rank)
{
	char body[] = "native\0\0\0\0\0\0" NSPACE "\0\0\0\0\0" "4.2.2";
	uint32_t header[4] = { 0, 0, sizeof(body), 0 };

	body[sizeof(body) - sizeof("4.2.2") - 1] = rank;
	assert_int_equal(write(fd, header, sizeof(header)), sizeof(header));
	assert_int_equal(write(fd, body, sizeof(body)), sizeof(body));
}

static void greet(int fd)
{
	greet_as(fd, 0);
}

static void close_clients(void *clients)
{
	struct clients *c = clients;

	if (let_in)
		close(library);
	close(clients_fd(c));
	free(c);
	layout_destroy(job.nspace.layout);
	close(listener);
}

/* Two ranks on one node. */
static struct clients *open_clients(void)
{
	struct sockaddr_storage here = { .ss_family = AF_INET };
	const uint32_t count = 2, both[] = { 0, 1 }, *const ranks = both;
	struct clients *c;

	((struct sockaddr_in *)&here)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = listener_socket(&here, 0, &port);
	assert_true(listener >= 0);
	assert_int_equal(fcntl(listener, F_SETFL, 0), 0);
	assert_int_equal(layout_create(&job.nspace.layout, 1, 2, &count, &ranks), 0);
	job.nspace.node_names = names;
	memset(sessions, 0, sizeof(sessions));
	job.miscounted = job.pmi = false;
	server.jobs = &job;
	let_in = counted = 0;
	asked = (struct pmix_msg){ .id = 0 };
	now = 1000;
	assert_int_equal(clients_create(&c, &server, &no_log), 0);
	return unit_at_end(close_clients, c);
}

#define CLIENTS_TEST(name) TEST_ON(name, struct clients *c, open_clients())

/* This number of connections has been let in when all are looked at. */
static void look(struct clients *c, unsigned connections)
{
	clients_look(c);
	assert_int_equal(let_in, connections);
}

static bool hears_end(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) <= 0;
}

CLIENTS_TEST(second_client_of_a_rank_is_refused_after_a_second)
{
	int first = come(c), second = come(c);

	greet(first);
	look(c, 1);
	greet(second);
	clients_look(c);
	assert_true(clients_timeout(c) > 0);
	now += 1000;
	clients_look(c);
	assert_int_equal(asked.type, PMIX_MSG_ADMIT);
	assert_int_equal(asked.number, 1);
	assert_int_equal(clients_timeout(c), -1);
	/* The agent looks who it is. */
	assert_int_not_equal(fcntl(accepted, F_GETFD), -1);
	assert_int_equal(clients_admitted(c, asked.id, -EBUSY), 0);
	look(c, 1);
	assert_true(hears_end(second));
	close(first);
	close(second);
}

CLIENTS_TEST(client_that_has_left_is_neither_let_in_nor_refused)
{
	int given_up = come(c), again;

	greet(given_up);
	close(given_up);
	again = come(c);
	greet(again);
	look(c, 1);
	assert_int_equal(clients_timeout(c), -1);
	now += 1000;
	look(c, 1);
	assert_int_equal(asked.id, 0);
	close(again);
}

/* A client comes where ranks use PMI, and the agent answers `status`. */
static int come_beside_pmi(struct clients *c, int status)
{
	int fd = come(c);

	job.pmi = true;
	greet(fd);
	clients_look(c);
	assert_int_equal(asked.type, PMIX_MSG_ADMIT);
	assert_int_equal(asked.number, 0);
	assert_int_equal(let_in, 0);
	assert_int_equal(clients_admitted(c, asked.id, status), 0);
	clients_look(c);
	return fd;
}

CLIENTS_TEST(client_where_ranks_use_pmi_waits_for_the_agent)
{
	int fd = come_beside_pmi(c, 0);

	assert_int_equal(let_in, 1);
	close(fd);
}

CLIENTS_TEST(client_that_the_agent_refuses_is_closed)
{
	int fd = come_beside_pmi(c, -EBUSY);

	assert_int_equal(let_in, 0);
	assert_true(hears_end(fd));
	close(fd);
}

CLIENTS_TEST(client_that_leaves_midway_is_forgotten)
{
	int fd = come(c);

	assert_int_equal(write(fd, "x", 1), 1);
	clients_look(c);
	assert_int_not_equal(fcntl(accepted, F_GETFD), -1);
	close(fd);
	clients_look(c);
	assert_int_equal(fcntl(accepted, F_GETFD), -1);
	assert_int_equal(let_in, 0);
}

/* Rank 0's program comes and is killed; the next one has come. */
static int kill_and_follow(struct clients *c)
{
	int first = come(c), next;

	greet(first);
	look(c, 1);
	close(first);
	next = come(c);
	greet(next);
	return next;
}

CLIENTS_TEST(program_after_a_killed_one_waits_until_libpmix_says_so)
{
	int next;

	server_end_session(&job, 1);
	next = kill_and_follow(c);
	look(c, 1);
	server_lose_session(&server, &job, 0);
	server_lose_session(&server, &job, 0); /* some releases say it twice */
	look(c, 2);
	assert_int_equal(counted, 2);
	assert_int_equal(asked.id, 0);
	close(next);
}

CLIENTS_TEST(program_after_a_killed_one_waits_a_second_for_other_ranks)
{
	int next = kill_and_follow(c);

	server_lose_session(&server, &job, 0);
	look(c, 1);
	assert_true(clients_timeout(c) > 0);
	now += 1000;
	look(c, 2);
	assert_int_equal(counted, 2);
	close(next);
}

CLIENTS_TEST(killed_rank_that_has_ended_is_not_counted_again)
{
	int next = kill_and_follow(c);

	server_lose_session(&server, &job, 1);
	server_rank_gone(&job, 1);
	server_lose_session(&server, &job, 0);
	look(c, 2);
	assert_int_equal(counted, 1);
	close(next);
}

CLIENTS_TEST(killed_program_of_which_libpmix_speaks_late_is_counted_at_once)
{
	int next = kill_and_follow(c);

	clients_look(c);
	now += 1000;
	look(c, 2);
	assert_int_equal(counted, 0);
	server_lose_session(&server, &job, 0);
	assert_int_equal(counted, 2);
	close(next);
}

CLIENTS_TEST(program_after_a_finalized_one_does_not_wait)
{
	int next = kill_and_follow(c);

	server_end_session(&job, 0);
	look(c, 2);
	assert_int_equal(counted, 0);
	close(next);
}

/* Rank 0's second program waits in a fence while the first one of rank 1 is killed. */
CLIENTS_TEST(fence_without_a_killed_rank_is_recognised)
{
	static const uint32_t slots[] = { 0, 1 };
	int other = come(c), next;

	greet_as(other, 1);
	clients_look(c);
	let_in = 0; /* kill_and_follow counts */
	next = kill_and_follow(c);
	server_end_session(&job, 0);
	look(c, 2);
	assert_false(server_any_killed(&job, slots, 2));
	close(other);
	assert_true(server_any_killed(&job, slots, 2));
	close(next);
}

/* libpmix leaves out a rank before it reports the end of the rank's program. */
CLIENTS_TEST(fence_after_an_unreported_kill_is_recognised)
{
	static const uint32_t slots[] = { 0, 1 };
	int first = come(c), other = come(c);

	greet(first);
	clients_look(c);
	greet_as(other, 1);
	let_in = 0; /* libpmix keeps both connections */
	look(c, 1);
	assert_false(server_any_killed(&job, slots, 2));
	close(first);
	assert_true(server_any_killed(&job, slots, 2));
	assert_false(server_any_killed(&job, slots + 1, 1));
	close(other);
}

/* Rank 0's first two programs are killed before rank 1 starts its second one. */
CLIENTS_TEST(rank_killed_ahead_is_not_counted_for_the_program_of_others)
{
	int next;

	sessions[0].ended = 1;
	sessions[1].ended = 1;
	next = kill_and_follow(c);
	close(next);
	server_lose_session(&server, &job, 0);
	clients_look(c);
	next = come(c);
	greet_as(next, 1);
	look(c, 2);
	assert_int_equal(counted, 1);
	assert_true(job.miscounted);
	server_end_session(&job, 1);
	close(next);
	next = come(c);
	greet(next);
	look(c, 3);
	assert_int_equal(counted, 2);
	assert_false(job.miscounted);
	close(next);
}

/* The credential of the client has another user than the job. */
CLIENTS_TEST(client_of_another_user_is_told_of_once)
{
	char body[] = "native\0\0\0\0\010\0\0\0\0\0\0\0\0\0" NSPACE "\0\0\0\0\0" "4.2.2";
	uint32_t header[4] = { 0, 0, sizeof(body), 0 }, user = 1234;
	int fd = come(c);

	job.nspace.uid = 1000;
	memcpy(body + 11, &user, sizeof(user));
	assert_int_equal(write(fd, header, sizeof(header)), sizeof(header));
	assert_int_equal(write(fd, body, sizeof(body)), sizeof(body));
	clients_look(c);
	assert_int_equal(asked.type, PMIX_MSG_USER);
	assert_int_equal(asked.number, user);
	assert_int_equal(let_in, 1);
	job.nspace.uid = user;
	asked.type = 0;
	close(fd);
	fd = come(c);
	assert_int_equal(write(fd, header, sizeof(header)), sizeof(header));
	assert_int_equal(write(fd, body, sizeof(body)), sizeof(body));
	clients_look(c);
	assert_int_equal(asked.type, 0);
	close(fd);
	clients_look(c);
}

/* The agent hears nothing before, and then once. */
static bool tells_of_loss(void)
{
	asked.type = 0;
	assert_int_equal(server_expire_sessions(&server, now), 0);
	return asked.type == PMIX_MSG_LOST && asked.rank == 0;
}

CLIENTS_TEST(killed_program_of_a_rank_that_goes_on_is_told_of)
{
	int next;

	assert_true(server_sessions_due(&server) == SERVER_NEVER);
	next = kill_and_follow(c);
	close(next);
	server_lose_session(&server, &job, 0);
	now += 3999;
	assert_false(tells_of_loss());
	assert_int_equal(server_sessions_due(&server), now + 1);
	now += 1;
	assert_true(tells_of_loss());
	assert_false(tells_of_loss());
	assert_true(server_sessions_due(&server) == SERVER_NEVER);
	clients_look(c);
}

/*
 * After a killed program another process of the rank uses PMI, so the agent refuses the
 * next PMIx client, or that client leaves first.
 */
static void loss_is_told(bool refused)
{
	struct clients *c = open_clients();
	int next;

	server_end_session(&job, 1);
	job.pmi = false;
	next = kill_and_follow(c);
	job.pmi = true;
	server_lose_session(&server, &job, 0);
	clients_look(c);
	assert_int_equal(asked.type, PMIX_MSG_ADMIT);
	assert_int_equal(counted, 0);
	if (refused)
		assert_int_equal(clients_admitted(c, asked.id, -EBUSY), 0);
	else
		close(next);
	look(c, 1);
	now += 4000;
	assert_true(tells_of_loss());
	if (refused)
		close(next);
	/* The session of the client that is not let in does not block another one. */
	next = come(c);
	greet(next);
	clients_look(c);
	assert_int_equal(clients_admitted(c, asked.id, 0), 0);
	look(c, 2);
	assert_int_equal(counted, 2);
	assert_false(tells_of_loss());
	close(next);
	unit_end(c);
}

TEST(killed_program_before_a_refused_one_is_told_of)
{
	loss_is_told(true);
}

TEST(killed_program_before_one_that_gave_up_is_told_of)
{
	loss_is_told(false);
}

/* libpmix reports the end of the killed program only when the next one is refused. */
CLIENTS_TEST(loss_that_libpmix_reports_late_is_told)
{
	int next;

	server_end_session(&job, 1);
	next = kill_and_follow(c);
	job.pmi = true;
	clients_look(c);
	now += 1000;
	clients_look(c);
	assert_int_equal(asked.type, PMIX_MSG_ADMIT);
	server_lose_session(&server, &job, 0);
	assert_int_equal(clients_admitted(c, asked.id, -EBUSY), 0);
	clients_look(c);
	now += 4000;
	assert_true(tells_of_loss());
	close(next);
}

CLIENTS_TEST(end_of_a_rank_and_a_next_program_are_no_loss)
{
	int next = kill_and_follow(c);

	server_lose_session(&server, &job, 1);
	server_rank_gone(&job, 1);
	server_lose_session(&server, &job, 0);
	look(c, 2);
	now += 60000;
	assert_false(tells_of_loss());
	close(next);
}

CLIENTS_TEST(program_after_a_missed_fence_says_so_once)
{
	static const uint32_t slot = 0;

	server_miss(&job, &slot, 1);
	assert_int_equal(server_tell_connected(&server, &job, 0), 0);
	assert_int_equal(asked.type, PMIX_MSG_CONNECTED);
	assert_int_equal(asked.number, 1);
	assert_int_equal(server_tell_connected(&server, &job, 0), 0);
	assert_int_equal(asked.number, 0);
}
