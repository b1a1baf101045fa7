/* SPDX-License-Identifier: BSD-3-Clause */
/* Each refused source is one line, and a count at the end. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libio/refusals.h"

#define LINES_MAX 64
#define OTHER_USER 65534 /* when root runs the test */

struct log {
	char lines[LINES_MAX][128];
	unsigned count;
};

static void take_line(void *arg, enum log_level level, const char *text)
{
	struct log *log = arg;

	assert_int_equal(level, LOG_LEVEL_INFO);
	assert_in_range(log->count, 0, LINES_MAX - 1);
	snprintf(log->lines[log->count++], sizeof(log->lines[0]), "%s", text);
}

static struct log log_;
static const struct log_hook hook = { .line = take_line, .arg = &log_ };

static void make_ip4(uint8_t ip[16], uint8_t last)
{
	memset(ip, 0, 10);
	memset(ip + 10, 0xff, 2);
	memcpy(ip + 12, "\xc0\x00\x02", 3);
	ip[15] = last;
}

static int set_up(void **state)
{
	memset(&log_, 0, sizeof(log_));
	return 0;
}

TEST_WITH(a_source_is_named_once_and_counted, set_up, NULL)
{
	struct refusals s;
	uint8_t ip[16];

	refusals_init(&s, &hook);
	make_ip4(ip, 7);
	refusals_add(&s, ip, -EPROTO);
	assert_int_equal(log_.count, 1);
	assert_string_equal(log_.lines[0], "refused a connection from 192.0.2.7:"
					   " the peer does not use pmi2x's protocol");
	refusals_add(&s, ip, -EPROTO);
	refusals_add(&s, ip, -EACCES);
	assert_int_equal(log_.count, 1);
	refusals_end(&s);
	assert_int_equal(log_.count, 2);
	assert_string_equal(log_.lines[1],
			    "refused 2 more connections from 192.0.2.7");
	refusals_end(&s);
	assert_int_equal(log_.count, 2);
}

TEST_WITH(addresses_and_users_are_told_apart, set_up, NULL)
{
	struct refusals s;
	uint8_t ip[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 };

	refusals_init(&s, &hook);
	refusals_add(&s, ip, -EACCES);
	make_ip4(ip, 1);
	refusals_add(&s, ip, -ETIMEDOUT);
	refusals_add_user(&s, 1001, "this socket");
	refusals_add_user(&s, 1002, "this socket");
	refusals_add_user(&s, 1001, "this socket");
	assert_int_equal(log_.count, 4);
	assert_non_null(strstr(log_.lines[0], "2001:db8::1: "));
	assert_non_null(strstr(log_.lines[1], "192.0.2.1: "));
	assert_non_null(strstr(log_.lines[2], "user 1001: "));
	assert_non_null(strstr(log_.lines[3], "user 1002: "));
	refusals_end(&s);
	assert_int_equal(log_.count, 5);
	assert_non_null(strstr(log_.lines[4], "1 more connections from user 1001"));
}

TEST_WITH(errors_of_no_attacker_are_not_logged, set_up, NULL)
{
	static const int errors[] = { 0, -ECONNRESET, -EADDRNOTAVAIL, -ENOMEM,
				      -EPROTONOSUPPORT };
	struct refusals s;
	uint8_t ip[16];

	refusals_init(&s, &hook);
	make_ip4(ip, 1);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		refusals_add(&s, ip, errors[i]);
	refusals_end(&s);
	assert_int_equal(log_.count, 0);
}

TEST_WITH(many_sources_are_counted_together, set_up, NULL)
{
	struct refusals s;
	uint8_t ip[16];

	refusals_init(&s, &hook);
	for (unsigned i = 0; i < REFUSALS_MAX + 5; i++) {
		make_ip4(ip, (uint8_t)i);
		refusals_add(&s, ip, -EPROTO);
	}
	assert_int_equal(log_.count, REFUSALS_MAX);
	refusals_end(&s);
	assert_int_equal(log_.count, REFUSALS_MAX + 1);
	assert_string_equal(log_.lines[REFUSALS_MAX],
			    "refused 5 connections from others");
}

/* The kernel notes as whom a process makes a pair of sockets. */
static void make_pair_as(uid_t user, int fds[2])
{
	if (seteuid(user))
		skip(); /* there is no such user here */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(seteuid(getuid()), 0);
}

static void check_let_in(uid_t user, uid_t owner, bool in)
{
	struct refusals s;
	int fds[2];

	refusals_init(&s, &hook);
	make_pair_as(user, fds);
	assert_int_equal(refusals_let_in(&s, fds[0], owner, "this socket"), in);
	close(fds[0]);
	close(fds[1]);
	/* Without a socket there is nobody. */
	assert_false(refusals_let_in(&s, fds[0], owner, "this socket"));
}

TEST_WITH(the_owner_and_root_are_let_in, set_up, NULL)
{
	uid_t user = getuid() ? getuid() : OTHER_USER;

	check_let_in(user, user, true);
	if (!getuid())
		check_let_in(0, user, true);
	assert_int_equal(log_.count, 0);
}

TEST_WITH(other_users_are_refused, set_up, NULL)
{
	uid_t user = getuid() ? getuid() : OTHER_USER;
	char line[128];

	check_let_in(user, user + 1, false);
	assert_int_equal(log_.count, 1);
	snprintf(line, sizeof(line), "refused a connection from user %u: this "
		 "socket is not that user's", (unsigned)user);
	assert_string_equal(log_.lines[0], line);
}
