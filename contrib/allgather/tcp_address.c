/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds, prints and parses the addresses of a TCP listener. */
#include "tcp_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings.h"

#define SEPARATOR '+'

socklen_t tcp_address_len(const union tcp_socket_address *at)
{
	return at->any.sa_family == AF_INET ? sizeof(at->v4) : sizeof(at->v6);
}

static void set_port(union tcp_socket_address *at, uint16_t port)
{
	if (at->any.sa_family == AF_INET)
		at->v4.sin_port = htons(port);
	else
		at->v6.sin6_port = htons(port);
}

static uint16_t get_port(const union tcp_socket_address *at)
{
	return ntohs(at->any.sa_family == AF_INET ? at->v4.sin_port
						  : at->v6.sin6_port);
}

static void host_text(const union tcp_socket_address *at, char *out)
{
	if (at->any.sa_family == AF_INET)
		inet_ntop(AF_INET, &at->v4.sin_addr, out, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, &at->v6.sin6_addr, out, INET6_ADDRSTRLEN);
}

/* ---- this host's ---- */

struct choice {
	const char *interface; /* NULL: all */
	int family;
	bool loopback;
};

static bool fits(const struct ifaddrs *i, const struct choice *c)
{
	const struct sockaddr_in6 *v6;

	if (!i->ifa_addr || i->ifa_addr->sa_family != c->family ||
	    !(i->ifa_flags & IFF_UP))
		return false;
	/* The text of an address has no scope, without which nobody can connect. */
	v6 = (const struct sockaddr_in6 *)i->ifa_addr;
	if (c->family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
		return false;
	if (c->interface)
		return strcmp(i->ifa_name, c->interface) == 0;
	return !!(i->ifa_flags & IFF_LOOPBACK) == c->loopback;
}

static void collect(struct tcp_address *out, const struct ifaddrs *all,
		    uint16_t port, const struct choice *c)
{
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		union tcp_socket_address *at = &out->at[out->count];

		if (out->count == TCP_ADDRESSES_MAX || !fits(i, c))
			continue;
		memset(at, 0, sizeof(*at));
		memcpy(at, i->ifa_addr, c->family == AF_INET ? sizeof(at->v4)
							     : sizeof(at->v6));
		set_port(at, port);
		out->count++;
	}
}

int tcp_address_local(struct tcp_address *out, uint16_t port, char *why)
{
	struct choice c = { setting_text("PMI2X_ALLGATHER_TCP_INTERFACE"), 0,
			    false };
	struct ifaddrs *all;

	out->count = 0;
	if (getifaddrs(&all)) {
		snprintf(why, TRANSPORT_REASON_MAX, "network interfaces: %s",
			 strerror(errno));
		return -errno;
	}
	for (int loopback = 0; loopback < 2 && !out->count; loopback++) {
		c.loopback = loopback;
		c.family = AF_INET;
		collect(out, all, port, &c);
		c.family = AF_INET6;
		collect(out, all, port, &c);
	}
	freeifaddrs(all);
	if (out->count)
		return 0;
	snprintf(why, TRANSPORT_REASON_MAX, "no network interface%s%.32s is up "
		 "with an address", c.interface ? " " : "",
		 c.interface ? c.interface : "");
	return -ENODEV;
}

/* ---- text ---- */

void tcp_address_print(const struct tcp_address *address, char *out)
{
	char host[INET6_ADDRSTRLEN];
	size_t n;

	n = snprintf(out, TRANSPORT_ADDRESS_MAX, "%u",
		     get_port(&address->at[0]));
	for (int i = 0; i < address->count; i++) {
		host_text(&address->at[i], host);
		n += snprintf(out + n, TRANSPORT_ADDRESS_MAX - n, "%c%s",
			      SEPARATOR, host);
	}
}

static int parse_host(union tcp_socket_address *at, const char *text, size_t n)
{
	char host[INET6_ADDRSTRLEN];

	if (n >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = '\0';
	memset(at, 0, sizeof(*at));
	at->any.sa_family = AF_INET;
	if (inet_pton(AF_INET, host, &at->v4.sin_addr) == 1)
		return 0;
	at->any.sa_family = AF_INET6;
	return inet_pton(AF_INET6, host, &at->v6.sin6_addr) == 1 ? 0 : -EINVAL;
}

int tcp_address_parse(struct tcp_address *out, const char *text)
{
	char *at;
	unsigned long port = strtoul(text, &at, 10);

	out->count = 0;
	if (at == text || *at != SEPARATOR || !port || port > UINT16_MAX)
		return -EINVAL;
	while (*at == SEPARATOR && out->count < TCP_ADDRESSES_MAX) {
		size_t n = strcspn(++at, "+");

		if (parse_host(&out->at[out->count], at, n))
			return -EINVAL;
		set_port(&out->at[out->count++], port);
		at += n;
	}
	return *at ? -EINVAL : 0;
}

void tcp_address_show(const union tcp_socket_address *at, char *out)
{
	char host[INET6_ADDRSTRLEN];

	host_text(at, host);
	snprintf(out, TCP_TEXT_MAX, strchr(host, ':') ? "[%s]:%u" : "%s:%u",
		 host, get_port(at));
}
