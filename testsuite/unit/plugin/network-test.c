/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks as ADDRESS/BITS, and the address of this host in them. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#include "network.h"

TEST(invalid_networks_are_rejected)
{
	static const char *const wrong[] = {
		"", "/", "/8", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33",
		"10.0.0/8", "10.0.0.0/8/8", "10.0.0.0/-1", "10.0.0.0/0x8",
		"::/129", "fe80::%lo/10", "eth0", "eth0/8", "::/", " ::/0",
		"1111:2222:3333:4444:5555:6666:7777:8888:9999/8",
	};
	struct network n;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (network_parse(wrong[i], &n))
			fail_msg("%s is a network", wrong[i]);
}

static int address_in(const char *text, struct sockaddr_in *out)
{
	struct sockaddr_storage found;
	struct network n;
	int rc;

	assert_true(network_parse(text, &n));
	rc = network_address(&n, &found);
	memcpy(out, &found, sizeof(*out));
	return rc;
}

TEST(the_loopback_address_is_found)
{
	static const char *const networks[] = {
		"127.0.0.0/8", "127.0.0.1/32", "127.0.0.0/31", "127.255.0.0/8",
		"96.0.0.0/3", "127.0.0.99/25",
	};
	struct sockaddr_in in;

	for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
		assert_int_equal(address_in(networks[i], &in), 0);
		assert_int_equal(in.sin_family, AF_INET);
		assert_int_equal(ntohl(in.sin_addr.s_addr), INADDR_LOOPBACK);
	}
}

/* No host has these addresses. */
TEST(a_network_without_this_host_is_told)
{
	struct sockaddr_in in;

	assert_int_equal(address_in("240.0.0.0/4", &in), -EADDRNOTAVAIL);
	assert_int_equal(address_in("::2/127", &in), -EADDRNOTAVAIL);
	assert_int_equal(address_in("127.0.0.2/32", &in), -EADDRNOTAVAIL);
	assert_int_equal(address_in("127.0.0.2/31", &in), -EADDRNOTAVAIL);
}
