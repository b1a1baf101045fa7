/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts pmi2x-pmixd, hears it, and ends it. */
#include "supervisor/pmixd_process.h"

#include <errno.h>
#include <stdio.h>

#include "helpers/pmixd/pmixd.h"
#include "libio/fd.h"
#include "supervisor/user_dir.h"

#define NAMED 5 /* arguments from DIR to PORT */
#define END_MS 1000 /* for the kernel to end what has been killed */

_Static_assert((int)PMIXD_FD_END <= (int)AGENT_FD_END, "descriptors are moved up to there");

const char pmixd_died[] = "has died: it was killed (by the user, or for lack of memory: see the kernel's log there)";

int pmixd_process_start(struct pmixd_process *x, const struct child_program *p,
			const struct pmixd_options *o, int *const fds[3])
{
	int none = -1, host = -1, rc;
	int *const all[] = { fds[0], &host, fds[1], fds[2], o->keeps_dir ? &x->dir : &none };
	char port[8], *args[CHILD_ARGS_MAX + 1] = {
		(char *)o->dir, (char *)o->library, (char *)o->gds, (char *)o->collect, port,
	};
	struct child_program whole = *p;

	snprintf(port, sizeof(port), "%u", o->port);
	for (size_t i = 0; o->more && o->more[i] && i + NAMED < CHILD_ARGS_MAX; i++)
		args[NAMED + i] = o->more[i];
	whole.more = args;
	whole.fds = all;
	whole.nfds = sizeof(all) / sizeof(*all);
	x->dir = user_dir_make(o->dir, p->uid, p->gid);
	if (x->dir < 0)
		return x->dir;
	rc = child_connect(&x->child, &host);
	rc = rc ? rc : p->file < 0 ? p->file : child_start(&x->child, &whole);
	fd_close(&host);
	return rc;
}

int pmixd_process_let_in(const struct pmixd_process *x, int client, bool is_old)
{
	const struct host_msg m = { .type = HOST_CLIENT, .number = is_old };
	const struct passed_fds fds = { .count = 1, .fds = { client } };

	return host_msg_send_with(x->child.fd, &m, &fds);
}

/* ---- what it says ---- */

static enum pmixd_news read_message(const struct host_msg *m, char why[PMIXD_WHY_MAX])
{
	int n;

	switch (m->type) {
	case HOST_READY:
	case HOST_SERVES:
	case HOST_LOG:
		return PMIXD_SAYS;
	case HOST_KILL:
		n = snprintf(why, PMIXD_WHY_MAX, "cannot serve: ");
		child_text(why + n, PMIXD_WHY_MAX - (size_t)n, m);
		return PMIXD_GIVES_UP;
	case HOST_CRASHED:
		snprintf(why, PMIXD_WHY_MAX, "crashed: signal %u; please report it", m->number);
		return PMIXD_HAS_FAILED;
	default:
		snprintf(why, PMIXD_WHY_MAX, "sent an invalid message");
		return PMIXD_HAS_FAILED;
	}
}

enum pmixd_news pmixd_process_hear(const struct pmixd_process *x, char room[HOST_MSG_MAX],
				   struct host_msg *m, char why[PMIXD_WHY_MAX])
{
	int rc = child_receive(&x->child, room, m);

	if (!rc)
		return PMIXD_SAYS_NOTHING;
	if (rc == 1)
		return read_message(m, why);
	snprintf(why, PMIXD_WHY_MAX, "%s", rc == -EPIPE ? pmixd_died : "sent an invalid message");
	return rc == -EPIPE ? PMIXD_HAS_DIED : PMIXD_HAS_FAILED;
}

void pmixd_process_why(char *out, size_t size, const char *node, const char *how)
{
	snprintf(out, size, "the PMIx server of node %.64s %.330s", node, how);
}

/* ---- its end ---- */

void pmixd_process_kill(const struct pmixd_process *x)
{
	child_kill(&x->child);
	child_wait_end(&x->child, END_MS);
}

void pmixd_process_forget(struct pmixd_process *x, const char *dir)
{
	child_forget(&x->child);
	if (x->dir >= 0)
		(void)user_dir_remove(x->dir, dir);
	x->dir = -1;
}
