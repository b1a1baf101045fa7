/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that ask for the topology of their node, and when they are answered. */
#include "net.h"

#define PATH "/spool/n0/topology.xml"
#define GET "cmd=get kvsname=17.2 key=PMI_hwloc_xmlfile"
#define ATTR "cmd=info-getjobattr;key=PMI_hwloc_xmlfile;"
#define HAS1 "cmd=get_result rc=0 value="
#define HAS2 "cmd=info-getjobattr-response;rc=0;found=TRUE;value="

NET_TEST(ranks_that_ask_wait_for_the_host)
{
	struct net_node *node = net_node_of(n, 1);

	net_init1(n, 1);
	net_init2(n, 2);
	net_init1(n, 4);
	assert_null(net_pmi1(n, 1, GET));
	assert_null(net_pmi2(n, 2, ATTR));
	assert_int_equal(node->topology_wanted, 1);
	assert_int_equal(net_node_of(n, 0)->topology_wanted, 0);
	pmi_server_topology(node->server, PATH);
	assert_string_equal(net_read(n, 1), HAS1 PATH);
	assert_string_equal(net_read(n, 2), HAS2 PATH ";");
	assert_string_equal(net_pmi1(n, 4, GET), HAS1 PATH);
	assert_int_equal(node->topology_wanted, 1);
}

NET_TEST(a_file_that_comes_late_is_for_who_asks_later)
{
	struct net_node *node = net_node_of(n, 1);

	net_init1(n, 1);
	assert_null(net_pmi1(n, 1, GET));
	pmi_server_topology(node->server, NULL);
	assert_string_equal(net_read(n, 1), HAS1 "unavailable");
	assert_string_equal(net_pmi1(n, 1, GET), HAS1 "unavailable");
	pmi_server_topology(node->server, PATH);
	assert_null(net_read(n, 1));
	assert_string_equal(net_pmi1(n, 1, GET), HAS1 PATH);
	pmi_server_topology(node->server, NULL);
	assert_string_equal(net_pmi1(n, 1, GET), HAS1 PATH);
}

NET_TEST(alone_on_its_node_a_rank_gets_none)
{
	net_init2(n, 5);
	assert_string_equal(net_pmi2(n, 5, ATTR), HAS2 "unavailable;");
	assert_int_equal(net_node_of(n, 5)->topology_wanted, 0);
}

NET_TEST(exited_rank_is_not_answered)
{
	struct net_node *node = net_node_of(n, 1);

	net_init1(n, 1);
	net_init1(n, 2);
	assert_null(net_pmi1(n, 1, GET));
	assert_null(net_pmi1(n, 2, GET));
	net_eof(n, 1);
	pmi_server_topology(node->server, PATH);
	assert_null(net_read(n, 1));
	assert_string_equal(net_read(n, 2), HAS1 PATH);
}
