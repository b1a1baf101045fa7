/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to the zygote, and the descriptors that come with them. */
#include "dvm/zygote/orders.h"
#include "unit.h"

#include <sys/socket.h>
#include <unistd.h>

#include "libio/attach_fds.h"
#include "libio/fd.h"

struct bed {
	int theirs;
	struct orders orders;
	unsigned taken;
	uint32_t parts[8];
	char marks[8][PASSED_FDS_MAX]; /* a byte that each descriptor of a message has */
};

static void bed_destroy(void *bed)
{
	struct bed *b = bed;

	fd_close(&b->theirs);
	close(b->orders.fd);
	frame_reader_free(&b->orders.reader);
	free(b);
}

static struct bed *bed_create(void)
{
	struct bed *b = calloc(1, sizeof(*b));
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	b->theirs = ends[0];
	orders_init(&b->orders, ends[1]);
	return unit_at_end(bed_destroy, b);
}

static int take(void *arg, const struct dvm_msg *m)
{
	struct bed *b = arg;

	assert_int_equal(m->type, DVM_EXEC);
	for (int i = 0; i < 2 + m->exec.pmi; i++) {
		int fd = orders_fd(&b->orders);

		assert_int_equal(read(fd, &b->marks[b->taken][i], 1), 1);
		close(fd);
	}
	b->parts[b->taken++] = m->exec.part;
	return 0;
}

/* A descriptor from which `mark` can be read. */
static int marked(char mark)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], &mark, 1), 1);
	close(ends[1]);
	return ends[0];
}

static struct payload *exec_frame(uint32_t part, bool pmi, size_t launch)
{
	static char bytes[1 << 20];
	const struct dvm_msg m = {
		.type = DVM_EXEC, .exec = { .part = part, .pmi = pmi, .launch = { bytes, launch } },
	};
	struct payload *frame;
	struct buf b;

	buf_init(&b, sizeof(bytes) + 100);
	assert_int_equal(dvm_msg_pack(&b, &m), 0);
	frame = frame_whole(FRAME_CONTROL_UP, b.data, b.len);
	assert_non_null(frame);
	buf_free(&b);
	return frame;
}

/* Bytes with descriptors "a", "b", ...: as many as there are marks. */
static void send_with(struct bed *b, const void *data, size_t len, const char *marks)
{
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union attached_fds control;
	struct passed_fds fds = { 0 };

	for (; *marks; marks++)
		fds.fds[fds.count++] = marked(*marks);
	if (fds.count)
		attach_fds(&msg, &fds, &control);
	assert_int_equal(sendmsg(b->theirs, &msg, 0), len);
	while (fds.count)
		close(fds.fds[--fds.count]);
}

static void send_exec(struct bed *b, uint32_t part, const char *marks)
{
	struct payload *frame = exec_frame(part, strlen(marks) == 3, 10);

	send_with(b, frame->data, frame->len, marks);
	payload_unref(frame);
}

TEST(descriptors_come_with_their_messages)
{
	struct bed *b = bed_create();

	send_exec(b, 5, "abc");
	send_exec(b, 6, "de");
	send_exec(b, 7, "fgh");
	for (int i = 0; i < 4; i++)
		assert_int_equal(orders_read(&b->orders, take, b), 0);
	assert_int_equal(b->taken, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(b->parts[i], 5 + i);
	assert_memory_equal(b->marks[0], "abc", 3);
	assert_memory_equal(b->marks[1], "de", 2);
	assert_memory_equal(b->marks[2], "fgh", 3);
	assert_int_equal(orders_fd(&b->orders), -1);
}

/* The next one's descriptors come with the end of this one. */
TEST(message_may_come_in_pieces)
{
	struct bed *b = bed_create();
	struct payload *frame = exec_frame(5, true, 1 << 19);
	size_t sent = 0;

	while (sent < frame->len) {
		size_t n = frame->len - sent < 100000 ? frame->len - sent : 100000;

		send_with(b, frame->data + sent, n, sent ? "" : "abc");
		sent += n;
		if (sent == frame->len)
			send_exec(b, 6, "def");
		for (int i = 0; i < 8; i++)
			assert_int_equal(orders_read(&b->orders, take, b), 0);
		assert_int_equal(b->taken, sent < frame->len ? 0 : 2);
	}
	assert_memory_equal(b->marks[0], "abc", 3);
	assert_memory_equal(b->marks[1], "def", 3);
	payload_unref(frame);
}

TEST(end_shows)
{
	struct bed *b = bed_create();

	assert_int_equal(orders_read(&b->orders, take, b), 0);
	fd_close(&b->theirs);
	assert_true(orders_read(&b->orders, take, b) < 0);
}
