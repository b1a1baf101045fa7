/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks through the devices for the port and the GID to use. */
#include "verbs_port.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "transport.h"

#define GID_TYPE_MAX 32
#define PATH_LEN (IBV_SYSFS_PATH_MAX + 64)

static const char *const fabric_names[FABRICS] = {
	[FABRIC_ROCE_1] = "RoCE v1",
	[FABRIC_ROCE_2_LINK_LOCAL] = "RoCE v2 with link-local addresses",
	[FABRIC_ROCE_2_IPV6] = "RoCE v2 over IPv6",
	[FABRIC_ROCE_2_IPV4] = "RoCE v2 over IPv4",
	[FABRIC_INFINIBAND] = "InfiniBand",
};

const char *verbs_fabric_name(unsigned fabric)
{
	return fabric < FABRICS && fabric_names[fabric] ? fabric_names[fabric]
							: "unknown";
}

/* ---- GIDs of a RoCE port ---- */

static bool is_zero(const union ibv_gid *gid)
{
	static const union ibv_gid zero;

	return memcmp(gid, &zero, sizeof(zero)) == 0;
}

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

enum verbs_fabric verbs_gid_fabric(const union ibv_gid *gid, const char *type)
{
	if (is_zero(gid))
		return FABRIC_NONE;
	if (strcmp(type, "RoCE v2") != 0)
		return FABRIC_ROCE_1;
	if (is_ipv4(gid))
		return FABRIC_ROCE_2_IPV4;
	if (gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80)
		return FABRIC_ROCE_2_LINK_LOCAL;
	return FABRIC_ROCE_2_IPV6;
}

/* The kernel's name of the type; empty when it has none (it is version 1). */
static void gid_type(const struct ibv_context *context, uint8_t port, int index,
		     char type[GID_TYPE_MAX])
{
	char path[PATH_LEN];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/ports/%u/gid_attrs/types/%d",
		 context->device->ibdev_path, port, index);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		/* Reading fails for an empty place of the table. */
		n = read(fd, type, GID_TYPE_MAX - 1);
		close(fd);
	}
	type[n > 0 ? n : 0] = '\0';
	type[strcspn(type, "\n")] = '\0';
}

static enum verbs_fabric look_at_gid(const struct verbs_calls *calls,
				     const struct verbs_port *p, int index,
				     union ibv_gid *gid)
{
	char type[GID_TYPE_MAX];

	if (calls->query_gid(p->context, p->number, index, gid) || is_zero(gid))
		return FABRIC_NONE;
	gid_type(p->context, p->number, index, type);
	return verbs_gid_fabric(gid, type);
}

/* The best GID, or the one that is asked for. */
static void choose_roce_gid(const struct verbs_calls *calls,
			    const struct verbs_settings *s, int table_len,
			    struct verbs_port *p)
{
	bool chosen = s->gid_index >= 0;
	int first = chosen ? s->gid_index : 0;
	int end = chosen ? s->gid_index + 1 : table_len;

	for (int i = first; i < end && i < table_len; i++) {
		union ibv_gid gid;
		enum verbs_fabric fabric = look_at_gid(calls, p, i, &gid);

		if (fabric <= p->fabric)
			continue;
		p->fabric = fabric;
		p->gid_index = i;
		p->gid = gid;
	}
}

/* ---- ports ---- */

static void look_at_infiniband(const struct verbs_calls *calls,
			       const struct verbs_settings *s,
			       struct verbs_port *p)
{
	p->gid_index = s->gid_index >= 0 ? s->gid_index : 0;
	if (calls->query_gid(p->context, p->number, p->gid_index, &p->gid) == 0)
		p->fabric = FABRIC_INFINIBAND;
}

/* Leaves FABRIC_NONE when the port cannot be used. */
static void look_at_port(const struct verbs_calls *calls,
			 const struct verbs_settings *s, struct verbs_port *p)
{
	struct ibv_port_attr attr;

	memset(&attr, 0, sizeof(attr));
	p->fabric = FABRIC_NONE;
	if (calls->query_port(p->context, p->number, &attr) ||
	    attr.state != IBV_PORT_ACTIVE)
		return;
	p->lid = attr.lid;
	p->mtu = attr.active_mtu;
	/* The speed's bits are in order, if not in proportion. */
	p->rate = (uint64_t)attr.active_speed * attr.active_width;
	if (attr.link_layer == IBV_LINK_LAYER_ETHERNET)
		choose_roce_gid(calls, s, attr.gid_tbl_len, p);
	else
		look_at_infiniband(calls, s, p);
}

static bool is_better(const struct verbs_port *a, const struct verbs_port *b)
{
	if (a->fabric != b->fabric)
		return a->fabric > b->fabric;
	return a->fabric && a->rate > b->rate;
}

static void take_better(const struct verbs_calls *calls,
			const struct verbs_port *found, struct verbs_port *best)
{
	if (is_better(found, best)) {
		if (best->context && best->context != found->context)
			calls->close_device(best->context);
		*best = *found;
	}
}

static void look_at_device(const struct verbs_calls *calls,
			   const struct verbs_settings *s,
			   struct ibv_device *device, struct verbs_port *best)
{
	struct verbs_port p = { .context = calls->open_device(device) };
	struct ibv_device_attr attr;

	if (!p.context)
		return;
	snprintf(p.device, sizeof(p.device), "%s", device->name);
	if (calls->query_device(p.context, &attr))
		attr.phys_port_cnt = 0;
	for (int port = 1; port <= attr.phys_port_cnt; port++) {
		if (s->port && s->port != port)
			continue;
		p.number = port;
		look_at_port(calls, s, &p);
		take_better(calls, &p, best);
	}
	if (best->context != p.context)
		calls->close_device(p.context);
}

static int nothing_found(const struct verbs_settings *s, int devices,
			 char *why)
{
	if (s->device[0]) {
		snprintf(why, TRANSPORT_REASON_MAX,
			 "PMI2X_ALLGATHER_VERBS_DEVICE=%.40s: no such device "
			 "with a port that is up", s->device);
		return -ENODEV;
	}
	if (s->gid_index >= 0 && devices) {
		snprintf(why, TRANSPORT_REASON_MAX,
			 "PMI2X_ALLGATHER_VERBS_GID_INDEX=%d: no port that is "
			 "up has a GID there", s->gid_index);
		return -ENODEV;
	}
	snprintf(why, TRANSPORT_REASON_MAX,
		 devices ? "%d RDMA devices, but none can be opened and has a "
			   "port that is up with a GID"
			 : "no RDMA device", devices);
	return -ENODEV;
}

int verbs_port_find(const struct verbs_calls *calls,
		    const struct verbs_settings *s, struct verbs_port *out,
		    char *why)
{
	int count = 0;
	struct ibv_device **list = calls->get_device_list(&count);

	memset(out, 0, sizeof(*out));
	for (int i = 0; list && i < count; i++) {
		if (!s->device[0] || !strcmp(s->device, list[i]->name))
			look_at_device(calls, s, list[i], out);
	}
	if (list)
		calls->free_device_list(list);
	return out->context ? 0 : nothing_found(s, list ? count : 0, why);
}
