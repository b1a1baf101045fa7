/* SPDX-License-Identifier: BSD-3-Clause */
/* Agents: links in any order of events. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster.h"
#include "libio/listener.h"

CLUSTER_TEST(five_nodes_fence_and_get, 5)
{
	cluster_start_all(c);
	cluster_init_all(c);
	for (uint32_t i = 0; i < 5; i++) {
		char line[100];

		snprintf(line, sizeof(line),
			 "cmd=put kvsname=7.0 key=k%u value=v%u", i, i);
		rank_say(c, i, line);
		rank_expect(c, i, "rc=0");
	}
	cluster_barrier(c);
	for (uint32_t i = 0; i < 5; i++) {
		rank_say(c, i, "cmd=get kvsname=7.0 key=k3");
		rank_expect(c, i, "value=v3");
	}
	cluster_barrier(c);
	assert_string_equal(c->text, "");
}

static bool has_ipv6(void)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6 };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool has;

	in.sin6_addr = in6addr_loopback;
	has = fd >= 0 && !bind(fd, (struct sockaddr *)&in, sizeof(in));
	close(fd);
	return has;
}

/* A node that looks for them at 127.0.0.1 finds nobody. */
CLUSTER_TEST(nodes_of_ipv6_alone, 5)
{
	const struct sockaddr_in6 one = {
		.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};

	if (!has_ipv6())
		skip();
	c->ipv6 = true;
	memcpy(&c->options.bind, &one, sizeof(one));
	cluster_start_pmi(c);
	assert_string_equal(c->text, "");
}

/* All listen in a network of which node_address knows nothing. */
CLUSTER_TEST(a_network_of_their_own, 5)
{
	struct sockaddr_in here = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f4d4d01),
	};

	memcpy(&c->options.bind, &here, sizeof(here));
	c->options.addresses_told = true;
	c->nowhere = true;
	cluster_start_pmi(c);
	assert_string_equal(c->text, "");
	cluster_stop_all(c);
	assert_true(c->tells >= 4);
}

CLUSTER_TEST(neighbour_that_gives_no_address_is_named, 3)
{
	struct sockaddr_in here = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f4d4d01),
	};

	memcpy(&c->options.bind, &here, sizeof(here));
	c->options.addresses_told = true;
	c->options.connect_ms = 200;
	cluster_start(c, 1);
	rank_init(c, 1);
	rank_say(c, 1, "cmd=barrier_in");
	rank_expect(c, 1, "barrier_failed");
	cluster_expect_log(c, "node n0 did not send its address to node n1");
	cluster_expect_log(c, "Pmi2xNetwork");
}

CLUSTER_TEST(a_late_parent_is_found, 3)
{
	cluster_start(c, 2);
	cluster_start(c, 1);
	rank_init(c, 1);
	rank_init(c, 2);
	rank_say(c, 1, "cmd=barrier_in");
	rank_say(c, 2, "cmd=barrier_in");
	cluster_start(c, 0);
	rank_init(c, 0);
	rank_say(c, 0, "cmd=barrier_in");
	for (uint32_t i = 0; i < 3; i++)
		rank_expect(c, i, "cmd=barrier_out");
}

/* Another program sits on the ports of parent and child, and answers nothing. */
CLUSTER_TEST(strangers_on_the_ports_do_no_harm, 5)
{
	static const struct sockaddr_storage everywhere;
	uint16_t port;
	int fds[2];

	c->options.handshake_ms = 500;
	fds[0] = listener_socket(&everywhere, cluster_port(c, 0), &port);
	fds[1] = listener_socket(&everywhere, cluster_port(c, 1), &port);
	assert_true(fds[0] >= 0 && fds[1] >= 0);
	cluster_start_pmi(c);
	cluster_stop_all(c);
	assert_true(c->tells > 0);
	close(fds[0]);
	close(fds[1]);
}

/* slurmd may be about to start again: its port is free, and must stay so. */
CLUSTER_TEST(port_of_slurmd_is_left_free, 3)
{
	static const struct sockaddr_storage everywhere;
	uint16_t port;
	int fd;

	c->slurm_port = cluster_port(c, 0);
	cluster_start_all(c);
	fd = listener_socket(&everywhere, c->slurm_port, &port);
	assert_true(fd >= 0);
	close(fd);
	cluster_init_all(c);
	cluster_barrier(c);
}

/* Another step of another user answers, with another secret. */
TEST(another_steps_agents_are_not_taken_for_ours)
{
	struct cluster ours, theirs;

	cluster_open(&ours, 3);
	cluster_open(&theirs, 3);
	ours.options.port_last = ours.port_first + 5; /* their port ranges overlap */
	theirs.options.port_first = ours.options.port_first;
	theirs.options.port_last = ours.options.port_last;
	cluster_start_all(&theirs);
	cluster_start_all(&ours);
	cluster_init_all(&ours);
	cluster_init_all(&theirs);
	cluster_barrier(&ours);
	cluster_barrier(&theirs);
	cluster_close(&ours);
	cluster_close(&theirs);
}

/* Node `odd` is told something else of what all must have alike. */
static void start_with_settings(struct cluster *c, uint32_t odd, const char *usual,
				const char *other)
{
	for (uint32_t i = 0; i < c->nodes; i++) {
		c->options.settings = i == odd ? other : usual;
		cluster_start(c, i);
	}
}

TEST(nodes_of_different_trees_fail_by_the_option)
{
	for (uint32_t odd = 0; odd < 5; odd++) {
		struct cluster c;

		cluster_open(&c, 5);
		c.steps[odd].tree_width = 4;
		start_with_settings(&c, odd, "Pmi2xTreeWidth=2",
				    "Pmi2xTreeWidth=4");
		cluster_init_all(&c);
		for (uint32_t i = 0; i < 5; i++)
			rank_say(&c, i, "cmd=barrier_in");
		cluster_expect_log(&c, "do not agree on the tree of the step: Pmi2xTreeWidth is");
		cluster_expect_log(&c, "give all nodes the same mpi.conf");
		for (uint32_t i = 0; i < 5; i++)
			rank_close(&c, i);
		cluster_close(&c);
	}
}

static unsigned count_lines(const char *text, const char *part)
{
	unsigned n = 0;

	while ((text = strstr(text, part))) {
		n++;
		text += strlen(part);
	}
	return n;
}

CLUSTER_TEST(different_options_are_logged_once_a_node_and_harm_nobody, 5)
{
	start_with_settings(c, 0, "Pmi2xNew=1 Pmi2xPorts=1-2 Pmi2xPmix=no",
			    "Pmi2xPorts=3-4 Pmi2xPmix=no");
	cluster_init_all(c);
	cluster_barrier(c);
	cluster_stop_all(c);
	assert_non_null(strstr(c->text, "Pmi2xPorts is 3-4 on node n0 and 1-2 on node n"));
	assert_non_null(strstr(c->text, "Pmi2xPorts is 1-2 on node n1 and 3-4 on node n0"));
	assert_null(strstr(c->text, "Pmi2xPmix"));
	/* The root, and its two children. */
	assert_int_equal(count_lines(c->text, "same mpi.conf"), 3);
}

CLUSTER_TEST(settings_of_one_neighbour_only_are_not_compared, 3)
{
	start_with_settings(c, 0, "Pmi2xPorts=1-2", NULL);
	cluster_init_all(c);
	cluster_barrier(c);
	cluster_stop_all(c);
	assert_string_equal(c->text, "");
}

/* Ports that nobody can guess: all is told, in the form slurmd uses. */
CLUSTER_TEST(connect_back_messages_alone_connect_a_step, 3)
{
	c->options.port_first = c->options.port_last = 0;
	cluster_start_pmi(c);
}

CLUSTER_TEST(a_parent_that_never_comes_is_named, 3)
{
	c->options.connect_ms = 300;
	cluster_start(c, 1);
	rank_init(c, 1);
	rank_say(c, 1, "cmd=barrier_in");
	rank_expect(c, 1, "barrier_failed");
	cluster_expect_log(c, "cannot reach node n0");
	cluster_expect_log(c, "Pmi2xPorts");
}

CLUSTER_TEST(a_child_that_never_comes_is_named, 3)
{
	c->options.connect_ms = 100;
	cluster_start(c, 0);
	cluster_start(c, 1);
	rank_init(c, 0);
	rank_init(c, 1);
	for (uint32_t i = 0; i < 2; i++)
		rank_say(c, i, "cmd=barrier_in");
	for (uint32_t i = 0; i < 2; i++)
		rank_expect(c, i, "barrier_failed");
	cluster_expect_log(c, "cannot reach node n2");
	cluster_expect_log(c, "unless its ranks ended without PMI");
}

CLUSTER_TEST(mixed_builds_work_together, 3)
{
	c->steps[2].build = "0.2";
	cluster_start_pmi(c);
	assert_string_equal(c->text, "");
}

CLUSTER_TEST(mixed_protocols_are_refused_by_name, 3)
{
	c->options.protocol = 4;
	cluster_start(c, 0);
	cluster_start(c, 1);
	c->options.protocol = 5;
	c->steps[2].build = "0.2";
	cluster_start(c, 2);
	cluster_init_all(c);
	for (uint32_t i = 0; i < 3; i++)
		rank_say(c, i, "cmd=barrier_in");
	for (uint32_t i = 0; i < 3; i++)
		rank_expect(c, i, "barrier_failed");
	cluster_expect_log(c, "node n2 speaks protocol 5 (build 0.2), "
			       "node n0 protocol 4 (build 0.1): "
			       "install one version of pmi2x on all nodes");
	cluster_expect_log(c, "node n0 speaks protocol 4 (build 0.1), "
			       "node n2 protocol 5 (build 0.2):");
}
