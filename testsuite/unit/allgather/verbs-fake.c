/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that verbs-fake.h promises. */
#include "verbs-fake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"
#include "verbs_calls.h"

struct fake fake;

static char sysfs[64];

/* ---- sysfs ---- */

static void type_path(char *path, size_t size, int device, int port, int gid)
{
	snprintf(path, size, "%s/%s/ports/%d/gid_attrs/types/%d", sysfs,
		 fake.devices[device].name, port + 1, gid);
}

static void make_type(int device, int port, int gid)
{
	const char *type = fake.devices[device].ports[port].gids[gid].type;
	char path[256], command[512];
	FILE *f;

	if (!type)
		return;
	type_path(path, sizeof(path), device, port, gid);
	snprintf(command, sizeof(command), "mkdir -p $(dirname %s)", path);
	assert_int_equal(system(command), 0);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%s\n", type);
	fclose(f);
}

void fake_make_sysfs(void)
{
	strcpy(sysfs, "/tmp/pmi2x-verbs-XXXXXX");
	assert_non_null(mkdtemp(sysfs));
	for (int d = 0; fake.devices[d].name; d++)
		for (int p = 0; p < FAKE_PORTS_MAX; p++)
			for (int g = 0; g < FAKE_GIDS_MAX; g++)
				make_type(d, p, g);
}

void fake_remove_sysfs(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", sysfs);
	assert_int_equal(system(command), 0);
}

/* ---- calls ---- */

static int fails(void)
{
	if (++fake.calls != fake.fail_at)
		return 0;
	errno = fake.error;
	return 1;
}

/* An object with room for what the callers look at. */
static void *open_object(size_t size)
{
	void *object;

	if (fails())
		return NULL;
	object = calloc(1, size);
	assert_non_null(object);
	fake.open++;
	return object;
}

static int close_object(void *object)
{
	fake.open--;
	free(object);
	return 0;
}

#define CLOSE(function, type) \
	static int function(type *object) { return close_object(object); }

CLOSE(close_device, struct ibv_context)
CLOSE(destroy_comp_channel, struct ibv_comp_channel)
CLOSE(destroy_cq, struct ibv_cq)
CLOSE(dealloc_pd, struct ibv_pd)
CLOSE(dereg_mr, struct ibv_mr)
CLOSE(destroy_qp, struct ibv_qp)
CLOSE(destroy_ah, struct ibv_ah)

static struct ibv_device **get_device_list(int *count)
{
	struct ibv_device **list = open_object(
		(FAKE_DEVICES_MAX + 1) * sizeof(*list));

	for (*count = 0; list && fake.devices[*count].name; ++*count) {
		struct ibv_device *d = calloc(1, sizeof(*d));

		snprintf(d->name, sizeof(d->name), "%s",
			 fake.devices[*count].name);
		snprintf(d->ibdev_path, sizeof(d->ibdev_path), "%s/%s", sysfs,
			 d->name);
		list[*count] = d;
	}
	return list;
}

/* Contexts point to their devices: these stay until their list's memory. */
static struct ibv_device *kept[16];
static int kept_count;

static void free_device_list(struct ibv_device **list)
{
	for (int i = 0; i < kept_count; i++)
		free(kept[i]);
	kept_count = 0;
	for (int i = 0; list[i]; i++)
		kept[kept_count++] = list[i];
	close_object(list);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	return fails() ? errno : 0;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	return 0;
}

static struct ibv_context *open_device(struct ibv_device *device)
{
	struct ibv_context *c = open_object(sizeof(*c));

	if (!c)
		return NULL;
	c->device = device;
	c->async_fd = -1;
	c->ops.post_recv = post_recv;
	c->ops.poll_cq = poll_cq;
	return c;
}

static const struct fake_device *device_of(const struct ibv_context *c)
{
	for (int i = 0; fake.devices[i].name; i++)
		if (!strcmp(fake.devices[i].name, c->device->name))
			return &fake.devices[i];
	fail_msg("no such device");
	return NULL;
}

static int query_device(struct ibv_context *c, struct ibv_device_attr *attr)
{
	const struct fake_device *d = device_of(c);

	memset(attr, 0, sizeof(*attr));
	while (attr->phys_port_cnt < FAKE_PORTS_MAX &&
	       d->ports[attr->phys_port_cnt].state)
		attr->phys_port_cnt++;
	return fails() ? errno : 0;
}

static int query_port(struct ibv_context *c, uint8_t number,
		      struct ibv_port_attr *attr)
{
	const struct fake_port *p = &device_of(c)->ports[number - 1];

	attr->state = p->state;
	attr->link_layer = p->link_layer;
	attr->lid = p->lid;
	attr->active_mtu = IBV_MTU_2048;
	attr->active_width = p->width;
	attr->active_speed = p->speed;
	attr->gid_tbl_len = FAKE_GIDS_MAX;
	return fails() ? errno : 0;
}

static int query_gid(struct ibv_context *c, uint8_t number, int index,
		     union ibv_gid *gid)
{
	const struct fake_port *p = &device_of(c)->ports[number - 1];

	memset(gid, 0, sizeof(*gid));
	if (p->gids[index].address)
		assert_int_equal(inet_pton(AF_INET6, p->gids[index].address,
					   gid->raw), 1);
	return fails() ? -1 : 0;
}

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *c)
{
	return open_object(sizeof(struct ibv_comp_channel));
}

static struct ibv_cq *create_cq(struct ibv_context *c, int entries, void *arg,
				struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *cq = open_object(sizeof(*cq));

	if (cq)
		cq->context = c;
	return cq;
}

static struct ibv_pd *alloc_pd(struct ibv_context *c)
{
	struct ibv_pd *pd = open_object(sizeof(*pd));

	if (pd)
		pd->context = c;
	return pd;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *address, size_t len,
			     int access)
{
	return open_object(sizeof(struct ibv_mr));
}

static struct ibv_qp *create_qp(struct ibv_pd *pd,
				struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = open_object(sizeof(*qp));

	if (qp)
		qp->context = pd->context;
	return qp;
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	return fails() ? errno : 0;
}

static struct ibv_ah *create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	return open_object(sizeof(struct ibv_ah));
}

/* In the place of the function that looks for libibverbs. */
int verbs_calls_load(struct verbs_calls *calls, char *why)
{
	*calls = (struct verbs_calls){
		.get_device_list = get_device_list,
		.free_device_list = free_device_list,
		.open_device = open_device,
		.close_device = close_device,
		.query_device = query_device,
		.query_port = query_port,
		.query_gid = query_gid,
		.create_comp_channel = create_comp_channel,
		.destroy_comp_channel = destroy_comp_channel,
		.create_cq = create_cq,
		.destroy_cq = destroy_cq,
		.alloc_pd = alloc_pd,
		.dealloc_pd = dealloc_pd,
		.reg_mr = reg_mr,
		.dereg_mr = dereg_mr,
		.create_qp = create_qp,
		.modify_qp = modify_qp,
		.destroy_qp = destroy_qp,
		.create_ah = create_ah,
		.destroy_ah = destroy_ah,
	};
	return 0;
}
