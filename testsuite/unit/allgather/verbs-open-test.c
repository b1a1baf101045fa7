/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the verbs transport chooses device, port and GID, and that it closes what
 * it has opened wherever opening fails; with functions in the place of libibverbs.
 */
#include "unit.h"

#include <errno.h>
#include <sys/resource.h>

#include "verbs-fake.h"
#include "verbs.h"

#define DEVICE "PMI2X_ALLGATHER_VERBS_DEVICE"
#define UP IBV_PORT_ACTIVE
#define DOWN IBV_PORT_DOWN
#define ETHERNET IBV_LINK_LAYER_ETHERNET
#define INFINIBAND IBV_LINK_LAYER_INFINIBAND

static const struct fake_gid ethernet_gids[FAKE_GIDS_MAX] = {
	{ "fe80::1", "IB/RoCE v1" },
	{ "fe80::1", "RoCE v2" },
	{ "::ffff:10.0.0.1", "IB/RoCE v1" },
	{ "::ffff:10.0.0.1", "RoCE v2" },
};

static struct fake_port ethernet(enum ibv_port_state state, int speed)
{
	struct fake_port p = {
		.state = state, .link_layer = ETHERNET, .width = 2,
		.speed = speed,
	};

	memcpy(p.gids, ethernet_gids, sizeof(p.gids));
	return p;
}

static struct fake_port infiniband(enum ibv_port_state state, int speed)
{
	return (struct fake_port){
		.state = state, .link_layer = INFINIBAND, .lid = 7, .width = 2,
		.speed = speed,
		.gids = { { "fe80::7", NULL } },
	};
}

static int open_transport(struct transport **t, char *why)
{
	struct transport_params params = { .events = { NULL, NULL, NULL } };
	int rc;

	why[0] = '\0';
	fake_make_sysfs();
	rc = verbs_transport.open(t, &params, why);
	fake_remove_sysfs();
	return rc;
}

static void expect(const char *device, int port, enum verbs_fabric fabric,
		   int gid_index)
{
	char why[TRANSPORT_REASON_MAX];
	struct transport *t;

	if (open_transport(&t, why))
		fail_msg("%s", why);
	assert_string_equal(t->device.port.device, device);
	assert_int_equal(t->device.port.number, port);
	assert_int_equal(t->device.port.fabric, fabric);
	assert_int_equal(t->device.port.gid_index, gid_index);
	verbs_transport.close(t);
	assert_int_equal(fake.open, 0);
}

static void refused(int error, const char *text)
{
	char why[TRANSPORT_REASON_MAX];
	struct transport *t;

	assert_int_equal(open_transport(&t, why), error);
	if (!strstr(why, text))
		fail_msg("%s does not say %s", why, text);
	assert_int_equal(fake.open, 0);
}

static int reset(void **state)
{
	memset(&fake, 0, sizeof(fake));
	unsetenv(DEVICE);
	unsetenv("PMI2X_ALLGATHER_VERBS_GID_INDEX");
	return 0;
}

/* ---- tests ---- */

TEST_WITH(a_machine_without_devices_says_so, reset, NULL)
{
	refused(-ENODEV, "no RDMA device");
	fake.devices[0] = (struct fake_device){ "a", { infiniband(DOWN, 1) } };
	refused(-ENODEV, "port that is up");
}

TEST_WITH(infiniband_comes_before_faster_ethernet, reset, NULL)
{
	fake.devices[0] = (struct fake_device){ "e", { ethernet(UP, 64) } };
	fake.devices[1] = (struct fake_device){ "i", { infiniband(UP, 16) } };
	expect("i", 1, FABRIC_INFINIBAND, 0);
}

TEST_WITH(the_faster_port_that_is_up_is_taken, reset, NULL)
{
	fake.devices[0] = (struct fake_device){
		"a", { infiniband(UP, 16), infiniband(UP, 32) } };
	fake.devices[1] = (struct fake_device){
		"b", { infiniband(DOWN, 64), infiniband(UP, 32) } };
	expect("a", 2, FABRIC_INFINIBAND, 0);
}

TEST_WITH(roce_2_over_ipv4_comes_first, reset, NULL)
{
	fake.devices[0] = (struct fake_device){ "e", { ethernet(UP, 1) } };
	expect("e", 1, FABRIC_ROCE_2_IPV4, 3);
	fake.devices[0].ports[0].gids[3].address = "2001:db8::1";
	expect("e", 1, FABRIC_ROCE_2_IPV6, 3);
	fake.devices[0].ports[0].gids[3].address = NULL;
	expect("e", 1, FABRIC_ROCE_2_LINK_LOCAL, 1);
	fake.devices[0].ports[0].gids[1].address = NULL;
	expect("e", 1, FABRIC_ROCE_1, 0);
}

TEST_WITH(the_environment_chooses, reset, NULL)
{
	fake.devices[0] = (struct fake_device){
		"a", { infiniband(UP, 16), infiniband(UP, 32) } };
	fake.devices[1] = (struct fake_device){ "e", { ethernet(UP, 1) } };
	setenv(DEVICE, "a:1", 1);
	expect("a", 1, FABRIC_INFINIBAND, 0);
	setenv(DEVICE, "e", 1);
	setenv("PMI2X_ALLGATHER_VERBS_GID_INDEX", "1", 1);
	expect("e", 1, FABRIC_ROCE_2_LINK_LOCAL, 1);
	setenv(DEVICE, "a:3", 1);
	refused(-ENODEV, "a");
	setenv(DEVICE, "a:none", 1);
	refused(-EINVAL, "NAME:PORT");
}

TEST_WITH(a_route_within_a_subnet_needs_no_gid, reset, NULL)
{
	struct verbs_device d = { .port = { .fabric = FABRIC_INFINIBAND } };
	union ibv_gid near = { .raw = { 0xfe, 0x80, [15] = 1 } };
	union ibv_gid far = { .raw = { 0xfe, 0xc0, [15] = 1 } };
	struct ibv_ah_attr attr;

	d.port.gid = near;
	d.port.number = 2;
	verbs_device_route(&d, 9, &near, &attr);
	assert_int_equal(attr.is_global, 0);
	assert_int_equal(attr.dlid, 9);
	assert_int_equal(attr.port_num, 2);
	verbs_device_route(&d, 9, &far, &attr);
	assert_int_equal(attr.is_global, 1);
	d.port.fabric = FABRIC_ROCE_2_IPV4;
	verbs_device_route(&d, 0, &near, &attr);
	assert_int_equal(attr.is_global, 1);
	assert_memory_equal(&attr.grh.dgid, &near, sizeof(near));
}

/* Whichever call fails: an error with a reason, and nothing stays open. */
TEST_WITH(every_failure_closes_what_was_opened, reset, NULL)
{
	char why[TRANSPORT_REASON_MAX];
	struct transport *t;
	int failures = 0;

	fake.devices[0] = (struct fake_device){ "a", { infiniband(UP, 16) } };
	fake.error = EINVAL;
	for (fake.fail_at = 1; ; fake.fail_at++) {
		fake.calls = 0;
		if (open_transport(&t, why) == 0)
			break;
		assert_true(why[0] != '\0');
		assert_int_equal(fake.open, 0);
		failures++;
	}
	assert_true(failures > 20);
	verbs_transport.close(t);
	assert_int_equal(fake.open, 0);
}

TEST_WITH(connecting_fails_with_a_reason, reset, NULL)
{
	char why[TRANSPORT_REASON_MAX], address[TRANSPORT_ADDRESS_MAX];
	struct transport_peer peer = { .address = address };
	struct transport *t;

	fake.devices[0] = (struct fake_device){ "a", { infiniband(UP, 16) } };
	fake.error = EHOSTUNREACH;
	for (int n = 1; n <= 3; n++) { /* to receive, to send, to tell that it is ready */
		fake.fail_at = 0;
		assert_int_equal(open_transport(&t, why), 0);
		verbs_transport.address(t, address);
		fake.calls = 0;
		fake.fail_at = n;
		assert_int_equal(verbs_transport.connect(t, SIDE_LEFT, &peer,
							 why), -EHOSTUNREACH);
		assert_non_null(strstr(why, strerror(EHOSTUNREACH)));
		verbs_transport.close(t);
		assert_int_equal(fake.open, 0);
	}
}

TEST_WITH(a_limit_of_locked_memory_is_named, reset, NULL)
{
	struct rlimit before, low;
	int call = 1;
	char why[TRANSPORT_REASON_MAX] = "";
	struct transport *t;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	low = before;
	low.rlim_cur = 65536;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	fake.devices[0] = (struct fake_device){ "a", { infiniband(UP, 16) } };
	fake.error = ENOMEM;
	for (; !strstr(why, "RLIMIT_MEMLOCK is 64 KiB"); call++) {
		fake.calls = 0;
		fake.fail_at = call;
		assert_int_not_equal(open_transport(&t, why), 0);
	}
	assert_non_null(strstr(why, "ulimit -l"));
	setrlimit(RLIMIT_MEMLOCK, &before);
}
