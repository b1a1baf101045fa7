/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses that the TCP transport gives to its neighbours, of the interfaces that this
 * file lists in place of the host's.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>

#include "tcp_address.h"

#define INTERFACE "PMI2X_ALLGATHER_TCP_INTERFACE"
#define ENTRIES_MAX 8

struct entry {
	const char *name, *address;
	unsigned flags;
};

static const struct entry *entries;
static struct ifaddrs list[ENTRIES_MAX];
static union tcp_socket_address addresses[ENTRIES_MAX];

static void fill(struct ifaddrs *i, union tcp_socket_address *at,
		 const struct entry *e)
{
	*i = (struct ifaddrs){ .ifa_name = (char *)e->name,
			       .ifa_flags = e->flags, .ifa_addr = &at->any };
	at->any.sa_family = AF_INET;
	if (inet_pton(AF_INET, e->address, &at->v4.sin_addr) == 1)
		return;
	at->any.sa_family = AF_INET6;
	assert_int_equal(inet_pton(AF_INET6, e->address, &at->v6.sin6_addr), 1);
}

int getifaddrs(struct ifaddrs **out)
{
	*out = NULL;
	for (int i = 0; entries[i].name; i++) {
		fill(&list[i], &addresses[i], &entries[i]);
		list[i].ifa_next = *out;
		*out = &list[i];
	}
	return 0;
}

void freeifaddrs(struct ifaddrs *first)
{
}

/* Addresses of `from`, as text; the interface is chosen by the environment. */
static int find(const struct entry *from, char *text)
{
	struct tcp_address found;
	char why[TRANSPORT_REASON_MAX];
	int rc;

	entries = from;
	rc = tcp_address_local(&found, 7, why);
	if (!rc)
		tcp_address_print(&found, text);
	return rc;
}

static const struct entry host[] = {
	{ "lo", "127.0.0.1", IFF_UP | IFF_LOOPBACK },
	{ "eth0", "fe80::1", IFF_UP },
	{ "eth0", "2001:db8::1", IFF_UP },
	{ "eth0", "192.0.2.1", IFF_UP },
	{ "eth1", "192.0.2.2", 0 },
	{ "eth2", "fe80::2", IFF_UP },
	{ NULL, NULL, 0 },
};

TEST(loopback_is_left_out_beside_another_interface)
{
	char text[TRANSPORT_ADDRESS_MAX];

	assert_int_equal(find(host, text), 0);
	assert_string_equal(text, "7+192.0.2.1+2001:db8::1");
}

TEST(loopback_is_used_where_it_is_alone)
{
	static const struct entry alone[] = {
		{ "lo", "127.0.0.1", IFF_UP | IFF_LOOPBACK },
		{ "eth0", "192.0.2.1", 0 },
		{ NULL, NULL, 0 },
	};
	char text[TRANSPORT_ADDRESS_MAX];

	assert_int_equal(find(alone, text), 0);
	assert_string_equal(text, "7+127.0.0.1");
}

TEST(link_local_addresses_are_never_given)
{
	char text[TRANSPORT_ADDRESS_MAX];

	setenv(INTERFACE, "eth0", 1);
	assert_int_equal(find(host, text), 0);
	assert_string_equal(text, "7+192.0.2.1+2001:db8::1");
	setenv(INTERFACE, "eth2", 1);
	assert_int_equal(find(host, text), -ENODEV);
	unsetenv(INTERFACE);
}
