/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx clients before libpmix has them: who is let in, and who is not. */
#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libio/listener_socket.h"
#include "pmixd/clients.h"
#include "pmixd/door.h"
#include "pmixd/server_internal.h"

#define NSPACE "pmi2x.17.2"

static int listener, accepted, library;
static uint16_t port;
static int64_t now;
static unsigned let_in, reports;
static struct client_session sessions[1];
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

int door_let_in(int fd)
{
	if (let_in)
		close(library);
	let_in++;
	library = fd;
	return 0;
}

static void count_report(void *arg, enum log_level level, const char *text)
{
	reports++;
}

static const struct log_hook count_log = { .line = count_report };
static struct server server = { .log = &count_log };

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

/* Of rank 0: header, security module, credential, kind, namespace, rank, version. */
static void greet(int fd)
{
	static const char body[] = "native\0\0\0\0\0\0" NSPACE "\0\0\0\0\0" "4.2.2";
	uint32_t header[4] = { 0, 0, sizeof(body), 0 };

	assert_int_equal(write(fd, header, sizeof(header)), sizeof(header));
	assert_int_equal(write(fd, body, sizeof(body)), sizeof(body));
}

static struct clients *open_clients(void)
{
	struct sockaddr_storage here = { .ss_family = AF_INET };
	const uint32_t count = 1, rank = 0, *const ranks = &rank;
	struct clients *c;

	((struct sockaddr_in *)&here)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = listener_socket(&here, 0, &port);
	assert_true(listener >= 0);
	assert_int_equal(fcntl(listener, F_SETFL, 0), 0);
	assert_int_equal(layout_create(&job.nspace.layout, 1, 1, &count, &ranks), 0);
	job.nspace.node_names = names;
	memset(sessions, 0, sizeof(sessions));
	let_in = reports = 0;
	now = 1000;
	assert_int_equal(clients_create(&c, &server, &count_log), 0);
	return c;
}

static void close_clients(struct clients *c)
{
	if (let_in)
		close(library);
	close(clients_fd(c));
	free(c);
	layout_destroy(job.nspace.layout);
	close(listener);
}

static bool hears_end(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) <= 0;
}

static void second_client_of_a_rank_is_refused_after_a_second(void **state)
{
	struct clients *c = open_clients();
	int first = come(c), second = come(c);

	greet(first);
	clients_look(c);
	assert_int_equal(let_in, 1);
	greet(second);
	clients_look(c);
	assert_true(clients_timeout(c) > 0);
	now += 1000;
	clients_look(c);
	assert_int_equal(let_in, 1);
	assert_int_equal(reports, 1);
	assert_int_equal(clients_timeout(c), -1);
	assert_true(hears_end(second));
	close(first);
	close(second);
	close_clients(c);
}

static void client_that_has_left_is_neither_let_in_nor_refused(void **state)
{
	struct clients *c = open_clients();
	int given_up = come(c), again;

	greet(given_up);
	close(given_up);
	again = come(c);
	greet(again);
	clients_look(c);
	assert_int_equal(let_in, 1);
	assert_int_equal(clients_timeout(c), -1);
	now += 1000;
	clients_look(c);
	assert_int_equal(let_in, 1);
	assert_int_equal(reports, 0);
	close(again);
	close_clients(c);
}

static void client_that_leaves_midway_is_forgotten(void **state)
{
	struct clients *c = open_clients();
	int fd = come(c);

	assert_int_equal(write(fd, "x", 1), 1);
	clients_look(c);
	assert_int_not_equal(fcntl(accepted, F_GETFD), -1);
	close(fd);
	clients_look(c);
	assert_int_equal(fcntl(accepted, F_GETFD), -1);
	assert_int_equal(let_in, 0);
	close_clients(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(second_client_of_a_rank_is_refused_after_a_second),
		cmocka_unit_test(client_that_has_left_is_neither_let_in_nor_refused),
		cmocka_unit_test(client_that_leaves_midway_is_forgotten),
	};

	return cmocka_run_group_tests_name("pmixd-clients", tests, NULL, NULL);
}
