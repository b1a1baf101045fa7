/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI_netinfo_of_task: its form, and what is left out. */
#include "unit.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include "agent/netinfo.h"

static struct sockaddr *v4(struct sockaddr_in *a, const char *text)
{
	a->sin_family = AF_INET;
	assert_int_equal(inet_pton(AF_INET, text, &a->sin_addr), 1);
	return (struct sockaddr *)a;
}

static struct sockaddr *v6(struct sockaddr_in6 *a, const char *text)
{
	a->sin6_family = AF_INET6;
	assert_int_equal(inet_pton(AF_INET6, text, &a->sin6_addr), 1);
	return (struct sockaddr *)a;
}

TEST(has_the_form_of_mpi_pmi2)
{
	struct sockaddr packet = { .sa_family = AF_PACKET };
	struct sockaddr_in a[2] = { 0 };
	struct sockaddr_in6 b = { 0 };
	struct ifaddrs list[5] = {
		{ .ifa_name = "lo", .ifa_flags = IFF_LOOPBACK,
		  .ifa_addr = v4(&a[0], "127.0.0.1") },
		{ .ifa_name = "eth0", .ifa_addr = &packet },
		{ .ifa_name = "tun0", .ifa_addr = NULL },
		{ .ifa_name = "eth0", .ifa_addr = v4(&a[1], "10.0.0.7") },
		{ .ifa_name = "ib0", .ifa_addr = v6(&b, "fe80::7") },
	};
	char out[NETINFO_MAX];

	for (int i = 0; i < 4; i++)
		list[i].ifa_next = &list[i + 1];
	netinfo_format("n7", list, out);
	assert_string_equal(out, "(n7,(eth0,IP_V4,10.0.0.7),(ib0,IP_V6,fe80::7))");
	netinfo_format("n7", NULL, out);
	assert_string_equal(out, "(n7)");
}

TEST(leaves_out_whole_entries_when_there_are_many)
{
	struct sockaddr_in a = { 0 };
	struct ifaddrs list[100];
	char out[NETINFO_MAX];

	for (int i = 0; i < 100; i++)
		list[i] = (struct ifaddrs){
			.ifa_name = "eth0", .ifa_addr = v4(&a, "10.0.0.7"),
			.ifa_next = i < 99 ? &list[i + 1] : NULL,
		};
	netinfo_format("n7", list, out);
	assert_in_range(strlen(out), NETINFO_MAX - 30, NETINFO_MAX - 1);
	assert_string_equal(out + strlen(out) - 11, ",10.0.0.7))");
}

TEST(knows_this_host)
{
	char *out = netinfo_create();

	assert_non_null(out);
	assert_int_equal(out[0], '(');
	assert_null(strstr(out, "127.0.0.1"));
	free(out);
}
