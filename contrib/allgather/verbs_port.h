/* SPDX-License-Identifier: BSD-3-Clause */
/* The device, port and GID that the verbs transport uses. */
#pragma once

#include <stdbool.h>

#include "verbs_calls.h"

/*
 * Fabrics: the two ends of a link must have one in common. The order is that of
 * preference: RoCE v2 over IPv4 is routed almost everywhere, a link-local address
 * nowhere, and version 1 does not leave its Ethernet.
 */
enum verbs_fabric {
	FABRIC_NONE,
	FABRIC_ROCE_1,
	FABRIC_ROCE_2_LINK_LOCAL,
	FABRIC_ROCE_2_IPV6,
	FABRIC_ROCE_2_IPV4,
	FABRIC_INFINIBAND,
	FABRICS,
};

/* "InfiniBand", "RoCE v2 over IPv4", ...; "unknown" for others. */
const char *verbs_fabric_name(unsigned fabric);

/* The user's choice; zero-filled or from the environment. */
struct verbs_settings {
	char device[IBV_SYSFS_NAME_MAX]; /* empty: any */
	int port;                        /* 0: any that is up */
	int gid_index;                   /* -1: chosen by type */
	int timeout;                     /* local ACK timeout, 4.096 us * 2^n */
	int service_level;               /* InfiniBand */
	int traffic_class;               /* RoCE */
};

/*
 * Reads PMI2X_ALLGATHER_VERBS_DEVICE (NAME or NAME:PORT), _GID_INDEX, _TIMEOUT,
 * _SL and _TRAFFIC_CLASS. 0, or -EINVAL and `why`.
 */
int verbs_settings_read(struct verbs_settings *s, char *why);

struct verbs_port {
	struct ibv_context *context; /* open; the holder closes it */
	char device[IBV_SYSFS_NAME_MAX];
	uint8_t number;
	enum verbs_fabric fabric;
	uint64_t rate;               /* to compare ports; no unit */
	uint16_t lid;                /* 0 for RoCE */
	enum ibv_mtu mtu;            /* active */
	int gid_index;
	union ibv_gid gid;
};

/*
 * The best port that is up, with its device open: InfiniBand before RoCE, then
 * the preference above, then the faster one, then the first. 0; -ENODEV and
 * `why` when there is none, or not what the settings ask for.
 */
int verbs_port_find(const struct verbs_calls *calls,
		    const struct verbs_settings *settings,
		    struct verbs_port *out, char *why);

/* The kind of a GID of a RoCE port, whose type the kernel names `type`. */
enum verbs_fabric verbs_gid_fabric(const union ibv_gid *gid, const char *type);
