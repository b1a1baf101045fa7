/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages to pmi2x-dvmd, which serves PMI, about parts that are to have one
 * (dvm_msg.h), one a packet. With the first of a part goes the socket over which its
 * ranks register (libio/registration.h).
 */
#include <errno.h>
#include <sys/socket.h>

#include "dvm/zygote/zygote.h"
#include "libio/attach_fds.h"
#include "libio/fd.h"
#include "libio/registration.h"

#define MESSAGE_MAX (DVM_PLACES_MAX + DVM_SPAWN_MAX + 256) /* bytes */

/* `fd`: -1: none. */
static int send_packet(const void *data, size_t len, int fd)
{
	const struct passed_fds fds = { .count = 1, .fds = { fd } };
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union attached_fds control;
	ssize_t n;

	if (fd >= 0)
		attach_fds(&msg, &fds, &control);
	do {
		n = sendmsg(ZYGOTE_PMI_FD, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static int say(const struct dvm_msg *m, int fd)
{
	struct buf b;
	int rc;

	buf_init(&b, MESSAGE_MAX);
	rc = dvm_msg_pack(&b, m);
	rc = rc ? rc : send_packet(b.data, b.len, fd);
	buf_free(&b);
	return rc;
}

int zygote_pmi_open(uint32_t part, const struct dvm_launch *l, int *registration)
{
	const struct dvm_msg m = {
		.type = DVM_PMI_PART,
		.pmi_part = { part, l->task, l->instance, l->ranks, l->node,
			      l->universe, l->places, l->spawned },
	};
	int ours, rc = registration_open(0, &ours, registration);

	if (rc)
		return rc;
	rc = say(&m, ours);
	close(ours);
	if (rc)
		fd_close(registration);
	return rc;
}

/* A send error means that pmi2x-dvmd has died; this process then ends. */
void zygote_pmi_rank_ended(uint32_t part, uint32_t slot, int32_t status)
{
	const struct dvm_msg m = {
		.type = DVM_PMI_RANK, .pmi_rank = { part, slot, status },
	};

	(void)say(&m, -1);
}

void zygote_pmi_ask(const struct dvm_pmi_ask *ask)
{
	const struct dvm_msg m = { .type = DVM_PMI_ASK, .pmi_ask = *ask };

	(void)say(&m, -1);
}

void zygote_pmi_close(uint32_t part)
{
	const struct dvm_msg m = {
		.type = DVM_PMI_OVER, .pmi_part = { .part = part },
	};

	(void)say(&m, -1);
}
