/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvmd: signals for ranks, when the zygote stands still.
 *
 * Normally the zygote sends the signals: it reaps, so it alone knows that a process number
 * is not another's by now. While a file system hangs in its vfork, the zygote neither reads
 * nor reaps. If it has not read a message for a second, this file signals its children.
 */
#include "dvm/node/dvmd.h"

#include <linux/sockios.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include <utlist.h>

#include "libio/proc_stat.h"

#define UNREAD_MS 1000

struct direct_kill {
	uint32_t part;
	int number;
	struct direct_kill *prev, *next;
};

/*
 * True: a child of the zygote, or of the interpreter that it has started, that is the first
 * process of its group.
 */
static bool is_rank(const struct dvmd *d, uint64_t process)
{
	struct proc_stat now, parent;

	return proc_stat_read(process, &now) && now.group == (int)process &&
	       (now.parent == d->process ||
		(proc_stat_read((uint64_t)now.parent, &parent) && parent.parent == d->process));
}

struct target {
	const struct dvmd *d;
	int number;
};

static void signal_group(void *arg, uint64_t process)
{
	const struct target *t = arg;

	if (is_rank(t->d, process))
		kill(-(pid_t)process, t->number);
}

static bool stands_still(const struct dvmd *d)
{
	int unread = 0;

	return d->channel && !ioctl(channel_fd(d->channel), SIOCOUTQ, &unread) && unread > 0;
}

static void on_unread(uv_timer_t *timer)
{
	struct dvmd *d = timer->data;
	const bool still = stands_still(d);
	struct direct_kill *k, *next;

	DL_FOREACH_SAFE(d->kills, k, next) {
		struct target target = { d, k->number };

		DL_DELETE(d->kills, k);
		if (still)
			dvm_node_each_process(d->node, k->part, signal_group, &target);
		free(k);
	}
}

void dvmd_kill_soon(struct dvmd *d, uint32_t part, int number)
{
	struct direct_kill *k = malloc(sizeof(*k));

	if (!k)
		return;
	*k = (struct direct_kill){ .part = part, .number = number };
	DL_APPEND(d->kills, k);
	if (!uv_is_active((uv_handle_t *)&d->unread))
		uv_timer_start(&d->unread, on_unread, UNREAD_MS, 0);
}

void dvmd_forget_kills(struct dvmd *d)
{
	struct direct_kill *k, *next;

	DL_FOREACH_SAFE(d->kills, k, next) {
		DL_DELETE(d->kills, k);
		free(k);
	}
}
