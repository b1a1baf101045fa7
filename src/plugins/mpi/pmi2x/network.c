/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Networks as ADDRESS/BITS, and the addresses of this node's interfaces. */
#include "network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include "libutil/decimal.h"

bool network_parse(const char *text, struct network *out)
{
	const char *slash = strchr(text, '/');
	char address[INET6_ADDRSTRLEN];

	if (!slash || slash - text >= (ptrdiff_t)sizeof(address))
		return false;
	memset(out, 0, sizeof(*out));
	memcpy(address, text, slash - text);
	address[slash - text] = '\0';
	out->family = strchr(address, ':') ? AF_INET6 : AF_INET;
	return inet_pton(out->family, address, out->prefix) == 1 &&
	       decimal_u32(slash + 1, 0, out->family == AF_INET ? 32 : 128,
			   &out->bits);
}

static const uint8_t *ip_of(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET)
		return (const uint8_t *)&((const struct sockaddr_in *)sa)
			->sin_addr;
	return (const uint8_t *)&((const struct sockaddr_in6 *)sa)->sin6_addr;
}

static bool is_in(const struct network *n, const struct sockaddr *sa)
{
	const uint8_t *ip;
	uint8_t mask = 0xff << (8 - n->bits % 8);
	uint32_t whole = n->bits / 8;

	if (!sa || sa->sa_family != n->family)
		return false;
	ip = ip_of(sa);
	return !memcmp(ip, n->prefix, whole) &&
	       (n->bits % 8 == 0 || !((ip[whole] ^ n->prefix[whole]) & mask));
}

int network_address(const struct network *n, struct sockaddr_storage *out)
{
	struct ifaddrs *all, *one;

	if (getifaddrs(&all))
		return -errno;
	for (one = all; one; one = one->ifa_next)
		if (one->ifa_flags & IFF_UP && is_in(n, one->ifa_addr))
			break;
	memset(out, 0, sizeof(*out));
	if (one)
		memcpy(out, one->ifa_addr, n->family == AF_INET ?
						   sizeof(struct sockaddr_in) :
						   sizeof(struct sockaddr_in6));
	freeifaddrs(all);
	return one ? 0 : -EADDRNOTAVAIL;
}
