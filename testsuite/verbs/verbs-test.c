/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs transport between several devices, and its faults. For the guest of
 * soft-roce-guest: each element has a device of its own, rxe0 to rxe2, and some
 * tests take an interface down or end a process.
 */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "verbs.h"
#include "verbs_address.h"

#define ELEMENTS 3
/* A failure shows after a probe and 7 tries of 4.096 us * 2^14; the rest is for
 * a busy machine that emulates another one. */
#define PATIENCE_MS 60000
#define ACK_TIMEOUT "14"
#define MESSAGES 64
#define DEVICE "PMI2X_ALLGATHER_VERBS_DEVICE"

static const struct transport_ops *const ops = &verbs_transport;

struct element {
	struct transport *t;
	char address[TRANSPORT_ADDRESS_MAX];
	int received[SIDES];
	int broken[SIDES];
	char reason[SIDES][TRANSPORT_REASON_MAX];
};

static int on_message(void *arg, enum ring_side side, const void *data,
		      size_t len)
{
	struct element *e = arg;
	const unsigned char *bytes = data;

	assert_int_equal(len, TRANSPORT_MESSAGE_MAX);
	assert_int_equal(bytes[0], e->received[side] & 0xff);
	assert_int_equal(bytes[len - 1], e->received[side] & 0xff);
	e->received[side]++;
	return 0;
}

static void on_broken(void *arg, enum ring_side side, const char *reason)
{
	struct element *e = arg;

	e->broken[side]++;
	snprintf(e->reason[side], TRANSPORT_REASON_MAX, "%s", reason);
}

/* ---- what must not be left behind ---- */

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Objects of all devices, as the kernel counts them. */
static int count_objects(void)
{
	FILE *f = popen("rdma resource show", "r");
	char line[256];
	int total = 0, pd, cq, qp, id, mr;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*d: %*[^:]: pd %d cq %d qp %d cm_id %d mr %d",
			   &pd, &cq, &qp, &id, &mr) == 5)
			total += pd + cq + qp + mr;
	}
	assert_int_equal(pclose(f), 0);
	assert_true(total > 0);
	return total;
}

struct before {
	int descriptors, objects;
};

static int look_before(void **state)
{
	struct before *b = malloc(sizeof(*b));

	b->descriptors = count_descriptors();
	b->objects = count_objects();
	*state = b;
	return 0;
}

static int nothing_is_left(void **state)
{
	struct before *b = *state;

	assert_int_equal(count_descriptors(), b->descriptors);
	assert_int_equal(count_objects(), b->objects);
	free(b);
	return 0;
}

/* ---- elements ---- */

static void nonce_of(int index, unsigned char out[TRANSPORT_NONCE_LEN])
{
	memset(out, index + 1, TRANSPORT_NONCE_LEN);
}

static void open_on(struct element *e, int index)
{
	struct transport_params params = {
		.events = { e, on_message, on_broken },
	};
	char device[] = "rxe0", why[TRANSPORT_REASON_MAX] = "";

	memset(e, 0, sizeof(*e));
	device[3] += index;
	setenv(DEVICE, device, 1);
	nonce_of(index, params.nonce);
	if (ops->open(&e->t, &params, why))
		fail_msg("%s: %s", device, why);
	unsetenv(DEVICE);
	ops->address(e->t, e->address);
}

static void connect_to(struct element *e, enum ring_side side,
		       const char *address, int index)
{
	struct transport_peer peer = { .address = address };
	char why[TRANSPORT_REASON_MAX] = "";

	nonce_of(index, peer.nonce);
	if (ops->connect(e->t, side, &peer, why))
		fail_msg("connect: %s", why);
}

static void progress(struct element *e, int n)
{
	int count = 0;

	for (int i = 0; i < n; i++)
		count += e[i].t ? ops->progress(e[i].t) : 0;
	for (int i = 0; i < n && !count; i++)
		if (e[i].t)
			ops->wait(e[i].t, 2);
}

static bool all_connected(const struct element *e, int n)
{
	for (int i = 0; i < n; i++)
		for (int side = 0; side < SIDES; side++)
			if (!ops->connected(e[i].t, side))
				return false;
	return true;
}

static void connect_ring(struct element e[ELEMENTS])
{
	int64_t end = clock_ms() + PATIENCE_MS;

	for (int i = 0; i < ELEMENTS; i++)
		open_on(&e[i], i);
	for (int i = 0; i < ELEMENTS; i++) {
		int right = (i + 1) % ELEMENTS;

		connect_to(&e[i], SIDE_RIGHT, e[right].address, right);
		connect_to(&e[right], SIDE_LEFT, e[i].address, i);
	}
	while (!all_connected(e, ELEMENTS)) {
		progress(e, ELEMENTS);
		assert_true(clock_ms() < end);
	}
}

static void close_ring(struct element e[ELEMENTS])
{
	for (int i = 0; i < ELEMENTS; i++)
		ops->close(e[i].t);
}

/* Wait until `side` has heard of the end, in bounded time. */
static void until_broken(struct element *all, int n, const struct element *e,
			 enum ring_side side)
{
	int64_t end = clock_ms() + PATIENCE_MS;

	while (!e->broken[side]) {
		progress(all, n);
		if (clock_ms() > end)
			fail_msg("nobody noticed");
	}
	print_message("    reason: %s\n", e->reason[side]);
}

static int send_message(struct element *e, enum ring_side side, int number)
{
	static unsigned char bytes[TRANSPORT_MESSAGE_MAX];
	struct iovec iov = { bytes, sizeof(bytes) };

	memset(bytes, number, sizeof(bytes));
	return ops->send(e->t, side, &iov, 1, false);
}

/* ---- tests ---- */

#define LEAVES_NOTHING(test) TEST_WITH(test, look_before, nothing_is_left)

LEAVES_NOTHING(messages_go_over_the_wire)
{
	struct element e[ELEMENTS];
	int sent = 0;
	int64_t end = clock_ms() + PATIENCE_MS;

	connect_ring(e);
	while (e[1].received[SIDE_LEFT] < MESSAGES) {
		if (sent < MESSAGES && !send_message(&e[0], SIDE_RIGHT, sent))
			sent++;
		progress(e, ELEMENTS);
		assert_true(clock_ms() < end);
	}
	assert_int_equal(e[2].received[SIDE_RIGHT], 0);
	close_ring(e);
}

static int fabric_of(const struct element *e)
{
	struct verbs_address a;

	assert_int_equal(verbs_address_parse(&a, e->address), 0);
	assert_int_equal(a.mtu, IBV_MTU_4096);
	return a.fabric;
}

/* The IPv4 address by itself; the link-local one when it is asked for. */
LEAVES_NOTHING(the_gid_is_chosen_by_type)
{
	struct transport_peer peer = { 0 };
	struct element e[2];
	char why[TRANSPORT_REASON_MAX] = "";

	open_on(&e[0], 0);
	assert_int_equal(fabric_of(&e[0]), FABRIC_ROCE_2_IPV4);
	setenv("PMI2X_ALLGATHER_VERBS_GID_INDEX", "0", 1);
	open_on(&e[1], 1);
	unsetenv("PMI2X_ALLGATHER_VERBS_GID_INDEX");
	assert_int_equal(fabric_of(&e[1]), FABRIC_ROCE_2_LINK_LOCAL);
	peer.address = e[1].address;
	assert_int_equal(ops->connect(e[0].t, SIDE_LEFT, &peer, why), -EINVAL);
	assert_non_null(strstr(why, "link-local"));
	ops->close(e[0].t);
	ops->close(e[1].t);
}

static void refuse(const char *name, const char *value, int error,
		   const char *message)
{
	struct transport_params params = { .events = { NULL, NULL, NULL } };
	char why[TRANSPORT_REASON_MAX] = "";
	struct transport *t;

	setenv(name, value, 1);
	assert_int_equal(ops->open(&t, &params, why), error);
	unsetenv(name);
	if (!strstr(why, message))
		fail_msg("%s does not say %s", why, message);
}

LEAVES_NOTHING(settings_that_cannot_be_met_are_refused)
{
	refuse(DEVICE, "rxe9", -ENODEV, "rxe9");
	refuse(DEVICE, "rxe0:2", -ENODEV, "rxe0");
	refuse(DEVICE, "rxe0:x", -EINVAL, "NAME:PORT");
	refuse("PMI2X_ALLGATHER_VERBS_GID_INDEX", "77", -ENODEV, "77");
	refuse("PMI2X_ALLGATHER_VERBS_GID_INDEX", "-1", -EINVAL, "0 to 65535");
	refuse("PMI2X_ALLGATHER_VERBS_TIMEOUT", "32", -EINVAL, "0 to 31");
}

/* Every change of one character is found. */
LEAVES_NOTHING(a_changed_address_is_refused)
{
	struct element e;
	char changed[TRANSPORT_ADDRESS_MAX];
	struct verbs_address a;

	open_on(&e, 0);
	for (size_t i = 0; e.address[i]; i++) {
		strcpy(changed, e.address);
		changed[i] = changed[i] == '0' ? '1' : '0';
		assert_int_equal(verbs_address_parse(&a, changed), -EINVAL);
	}
	ops->close(e.t);
}

LEAVES_NOTHING(a_closed_neighbour_is_noticed_at_once)
{
	struct element e[ELEMENTS];

	connect_ring(e);
	ops->close(e[1].t);
	e[1].t = NULL;
	until_broken(e, ELEMENTS, &e[0], SIDE_RIGHT);
	until_broken(e, ELEMENTS, &e[2], SIDE_LEFT);
	assert_string_equal(e[0].reason[SIDE_RIGHT], "connection closed");
	assert_int_equal(e[0].broken[SIDE_LEFT], 0);
	close_ring(e);
}

static void break_queue_pair(const struct element *e, enum ring_side side)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct transport *t = e->t;

	assert_int_equal(t->device.calls.modify_qp(t->links[side].qp, &attr,
						   IBV_QP_STATE), 0);
}

LEAVES_NOTHING(a_queue_pair_in_error_is_noticed)
{
	struct element e[ELEMENTS];

	connect_ring(e);
	break_queue_pair(&e[0], SIDE_RIGHT);
	until_broken(e, ELEMENTS, &e[0], SIDE_RIGHT);
	until_broken(e, ELEMENTS, &e[1], SIDE_LEFT);
	close_ring(e);
}

static void run(const char *command)
{
	assert_int_equal(system(command), 0);
}

/* Nobody sends: the probes find it. */
LEAVES_NOTHING(a_port_that_goes_down_is_named)
{
	struct element e[ELEMENTS];

	connect_ring(e);
	run("ip link set roce1 down");
	until_broken(e, ELEMENTS, &e[1], SIDE_LEFT);
	until_broken(e, ELEMENTS, &e[1], SIDE_RIGHT);
	until_broken(e, ELEMENTS, &e[0], SIDE_RIGHT);
	until_broken(e, ELEMENTS, &e[2], SIDE_LEFT);
	assert_non_null(strstr(e[1].reason[SIDE_LEFT], "port 1 of rxe1 is down"));
	assert_null(strstr(e[0].reason[SIDE_RIGHT], "is down"));
	close_ring(e);
	/* A route goes with its interface. */
	run("ip link set roce1 up && "
	    "ip route add 192.168.77.0/24 dev roce1 table 1001");
}

/* A child with an element of its own, right of the parent's. */
static pid_t start_neighbour(const char *left, int address_fd)
{
	pid_t pid = fork();
	struct element e;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_on(&e, 1);
	connect_to(&e, SIDE_LEFT, left, 0);
	if (write(address_fd, e.address, sizeof(e.address)) < 0)
		_exit(1);
	for (;;)
		progress(&e, 1);
}

LEAVES_NOTHING(a_neighbour_that_is_killed_is_noticed)
{
	struct element e;
	char address[TRANSPORT_ADDRESS_MAX] = "";
	int64_t end = clock_ms() + PATIENCE_MS;
	int fds[2];
	pid_t pid;

	open_on(&e, 0);
	assert_int_equal(pipe(fds), 0);
	pid = start_neighbour(e.address, fds[1]);
	assert_int_equal(read(fds[0], address, sizeof(address)),
			 sizeof(address));
	close(fds[0]);
	close(fds[1]);
	connect_to(&e, SIDE_RIGHT, address, 1);
	while (!ops->connected(e.t, SIDE_RIGHT)) {
		progress(&e, 1);
		assert_true(clock_ms() < end);
	}
	assert_int_equal(send_message(&e, SIDE_RIGHT, 0), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	until_broken(&e, 1, &e, SIDE_RIGHT);
	ops->close(e.t);
}

/* A rank that waits for one that never comes can stop at any time. */
LEAVES_NOTHING(a_neighbour_that_never_joins_is_not_connected)
{
	struct element e[2];
	int64_t end = clock_ms() + 500;

	open_on(&e[0], 0);
	open_on(&e[1], 1);
	connect_to(&e[0], SIDE_RIGHT, e[1].address, 1);
	while (clock_ms() < end)
		progress(e, 2);
	assert_false(ops->connected(e[0].t, SIDE_RIGHT));
	assert_int_equal(send_message(&e[0], SIDE_RIGHT, 0), -EPIPE);
	ops->close(e[0].t);
	ops->close(e[1].t);
}

/* The right address, but not the number that was agreed over PMI. */
LEAVES_NOTHING(a_stranger_is_not_let_in)
{
	struct element e[2];
	int64_t end = clock_ms() + 500;

	open_on(&e[0], 0);
	open_on(&e[1], 1);
	connect_to(&e[0], SIDE_RIGHT, e[1].address, 2);
	connect_to(&e[1], SIDE_LEFT, e[0].address, 0);
	while (clock_ms() < end)
		progress(e, 2);
	assert_false(ops->connected(e[0].t, SIDE_RIGHT));
	assert_false(ops->connected(e[1].t, SIDE_LEFT));
	ops->close(e[0].t);
	ops->close(e[1].t);
}

/* The limit counts for ordinary users only. */
static void open_with_little_memory(void)
{
	struct transport_params params = { .events = { NULL, NULL, NULL } };
	struct rlimit limit = { 65536, 65536 };
	char why[TRANSPORT_REASON_MAX] = "";
	struct transport *t;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgid(65534) || setuid(65534))
		_exit(2);
	if (ops->open(&t, &params, why) != -ENOMEM)
		_exit(3);
	fprintf(stderr, "    reason: %s\n", why);
	_exit(strstr(why, "RLIMIT_MEMLOCK") && strstr(why, "ulimit -l") ? 0 : 4);
}

LEAVES_NOTHING(a_limit_of_locked_memory_is_named)
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		open_with_little_memory();
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

int main(void)
{
	setenv("PMI2X_ALLGATHER_VERBS_TIMEOUT", ACK_TIMEOUT, 1);
	return unit_run(NULL, NULL, NULL);
}
