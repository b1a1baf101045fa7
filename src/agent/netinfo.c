/* SPDX-License-Identifier: BSD-3-Clause */
/* The network interfaces of this host, in the form in which PMI gives them to ranks. */
#include "agent/netinfo.h"

#include <arpa/inet.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENTRY_MAX (IF_NAMESIZE + INET6_ADDRSTRLEN + 16) /* with ",(,IP_Vn,)" */

/* "" for an address of another kind. */
static void format_entry(const struct ifaddrs *i, char out[ENTRY_MAX])
{
	char text[INET6_ADDRSTRLEN];
	const void *addr;
	bool v6 = i->ifa_addr->sa_family == AF_INET6;

	out[0] = '\0';
	if (v6)
		addr = &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;
	else if (i->ifa_addr->sa_family == AF_INET)
		addr = &((struct sockaddr_in *)i->ifa_addr)->sin_addr;
	else
		return;
	if (inet_ntop(i->ifa_addr->sa_family, addr, text, sizeof(text)))
		snprintf(out, ENTRY_MAX, ",(%s,IP_V%c,%s)", i->ifa_name,
			 v6 ? '6' : '4', text);
}

void netinfo_format(const char *host, const struct ifaddrs *list,
		    char out[NETINFO_MAX])
{
	char entry[ENTRY_MAX];
	size_t len;

	snprintf(out, NETINFO_MAX, "(%.*s", HOST_NAME_MAX, host);
	len = strlen(out);
	for (; list; list = list->ifa_next) {
		if (!list->ifa_addr || list->ifa_flags & IFF_LOOPBACK)
			continue;
		format_entry(list, entry);
		if (len + strlen(entry) + sizeof(")") > NETINFO_MAX)
			continue;
		strcpy(out + len, entry);
		len += strlen(entry);
	}
	strcpy(out + len, ")");
}

char *netinfo_create(void)
{
	char host[HOST_NAME_MAX + 1] = "";
	char *out = malloc(NETINFO_MAX);
	struct ifaddrs *list = NULL;

	if (!out || gethostname(host, sizeof(host)) < 0 ||
	    getifaddrs(&list) < 0) {
		free(out);
		return NULL;
	}
	netinfo_format(host, list, out);
	freeifaddrs(list);
	return out;
}
