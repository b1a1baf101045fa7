/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program pmi2x-dvmd: the daemon of a DVM's node. It reads the head's address from its
 * standard input (bootstrap.h) and connects to the head. It starts the zygote, which starts
 * and reaps ranks, and hosts the node's state machine (node_host.c), with the PMI of tasks
 * (tasks.h).
 *
 * When head or zygote is lost the daemon ends, and so do the zygote and all ranks. A daemon
 * that is to wait for another head keeps its ranks, and ends them when none comes in time.
 */
#include "dvm/node/dvmd.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dvm/common/core_file.h"
#include "dvm/common/self_path.h"
#include "dvm/common/strays.h"
#include "dvm/node/claim.h"
#include "dvm/node/tree_link.h"
#include "libio/protocol.h"
#include "libutil/decimal.h"
#include "pmi2x-build.h"

#define RETRY_MAX_MS 60000 /* limit of the time in which a link to another daemon is made */

/* Close all but the link to the head. */
void dvmd_leave_others(struct dvmd *d)
{
	channel_close(d->channel);
	d->channel = NULL;
	lease_timer_close(&d->lease);
	dvmd_close_node(d);
	dvmd_close_signals(d);
	tasks_close(d->tasks);
	pmix_hub_close(d->pmix);
	pool_close(d->pool);
	d->pool = NULL;
}

void dvmd_finish(struct dvmd *d, int status)
{
	d->status = status;
	dvmd_tree_close(d);
	if (d->head)
		link_close(d->head);
	d->head = NULL;
	if (!uv_is_closing((uv_handle_t *)&d->orphan)) {
		uv_close((uv_handle_t *)&d->orphan, NULL);
		uv_close((uv_handle_t *)&d->late, NULL);
	}
	dvmd_leave_others(d); /* then the loop ends */
}

void dvmd_die(struct dvmd *d, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "pmi2x-dvmd on %s: ", d->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	dvmd_finish(d, 1);
}

static void print_line(void *arg, enum log_level level, const char *text)
{
	const struct dvmd *d = arg;

	if (level == LOG_LEVEL_ERROR)
		fprintf(stderr, "pmi2x-dvmd on %s: %s\n", d->name, text);
}

/* ---- other daemons ---- */

static int on_pool_frame(void *arg, uint32_t node, const struct pool_frame *f,
			 struct payload *body)
{
	struct dvmd *d = arg;

	return d->tasks ? tasks_frame(d->tasks, node, f, body) : -EPROTO;
}

static void on_pool_lost(void *arg, uint32_t node, const char *why)
{
	struct dvmd *d = arg;

	if (d->tasks)
		tasks_node_lost(d->tasks, node, why);
}

/* True: the head is on this machine, and has no address for others. */
static bool is_local(const struct welcome *w)
{
	const struct sockaddr_in *a = (const struct sockaddr_in *)&w->heads[0];

	return w->nheads == 1 && a->sin_family == AF_INET &&
	       a->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

/*
 * The time for new tries: until the head has given up a node that it does not hear either,
 * with its margin. Existing links survive a network failure of a minute, too.
 */
static uint32_t retry_ms(const struct welcome *w)
{
	uint64_t ms = ((uint64_t)w->lease_ms + w->grace_ms) / 4 * 5;

	return ms < RETRY_MAX_MS ? (uint32_t)ms : RETRY_MAX_MS;
}

static int open_pool(struct dvmd *d)
{
	static const struct pool_ops ops = {
		.frame = on_pool_frame, .lost = on_pool_lost, .head = dvmd_other_head,
		.child = dvmd_tree_child,
	};

	const struct pool_options options = {
		.local = is_local(&d->welcome), .retry_ms = retry_ms(&d->welcome),
	};

	return pool_open(&d->pool, d->loop, &d->self, &options, &ops, d, &d->log);
}

/* ---- PMIx ---- */

static bool on_pmix_find(void *arg, uint32_t address, uint32_t *part)
{
	const struct dvmd *d = arg;

	return d->tasks && tasks_pmix_find(d->tasks, address, part);
}

static int on_pmix_message(void *arg, uint32_t part, struct payload *message)
{
	struct dvmd *d = arg;

	return tasks_pmix_message(d->tasks, part, message);
}

static void on_pmix_lost(void *arg, uint32_t part, const char *why)
{
	struct dvmd *d = arg;

	tasks_pmix_lost(d->tasks, part, why);
}

static int open_pmix(struct dvmd *d)
{
	static const struct pmix_hub_ops ops = {
		.find = on_pmix_find, .message = on_pmix_message, .lost = on_pmix_lost,
	};

	return pmix_hub_open(&d->pmix, d->loop, d->programs, d->name, &ops, d, &d->log);
}

/* ---- life ---- */

static void find_name(struct dvmd *d, const char *given)
{
	const char *slurm = getenv("SLURMD_NODENAME");

	if (given || slurm)
		snprintf(d->name, sizeof(d->name), "%s", given ? given : slurm);
	else
		gethostname(d->name, sizeof(d->name) - 1);
}

/*
 * The position among daemons that start together: from the argument, or from the srun step.
 */
static bool find_position(struct dvmd *d, const char *given)
{
	const char *text = given ? given : getenv("SLURM_PROCID");

	return text && decimal_u32(text, 0, HANDSHAKE_SRUN - 1,
				   &d->self.position);
}

static int begin(struct dvmd *d)
{
	static const struct lease_timer_ops lease_ops = { dvmd_ask_for_lease, dvmd_lease_over };
	struct pool *pool;
	int rc = loop_create(&d->loop);

	if (rc)
		return rc;
	uv_timer_init(loop_uv(d->loop), &d->orphan);
	uv_timer_init(loop_uv(d->loop), &d->late);
	d->orphan.data = d->late.data = d;
	d->signals = -1;
	lease_timer_init(&d->lease, loop_uv(d->loop), &lease_ops, d);
	d->log = (struct log_hook){ print_line, d };
	d->self.jobid = d->welcome.dvm;
	d->self.build = PMI2X_BUILD;
	d->self.protocol = PROTOCOL_VERSION;
	d->self.secret = d->welcome.secret;
	secret_forget(&d->welcome.secret);
	rc = open_pool(d);
	rc = rc ? rc : open_pmix(d);
	rc = rc || !d->tree ? rc : dvmd_tree_begin(d);
	pool = d->pool;
	d->begun_ms = uv_now(loop_uv(d->loop));
	if (!rc && d->tree)
		dvmd_tree_connect(d);
	else if (!rc)
		dvmd_connect_next(d, 0);
	loop_run(d->loop);
	loop_destroy(d->loop);
	dvmd_free_node(d);
	dvmd_tree_free(d);
	tasks_destroy(d->tasks);
	pmix_hub_destroy(d->pmix);
	(void)dvmd_end_ranks(d);
	pool_destroy(pool); /* connections are refused from now on: no rank is left */
	return rc;
}

static int usage(void)
{
	fputs("pmi2x-dvmd: the daemon of a node; pmi2x-dvm(1) starts it\n"
	      "usage: pmi2x-dvmd [POSITION NODE]\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static struct dvmd d;
	int rc;

	signal(SIGPIPE, SIG_IGN);
	/*
	 * Ranks have this session: a task that kills its session must not reach the head,
	 * nor other nodes of the same machine. In a step of Slurm the call fails, and the
	 * session is that of slurmstepd.
	 */
	(void)setsid();
	core_file_forbid(&d.core);
	strays_adopt();
	find_name(&d, argc > 2 ? argv[2] : NULL);
	if ((argc != 1 && argc != 3) ||
	    !find_position(&d, argc > 1 ? argv[1] : NULL) || !own_dir(d.programs, sizeof(d.programs)))
		return usage();
	rc = welcome_read(&d.welcome, stdin);
	if (rc) {
		fprintf(stderr, "pmi2x-dvmd on %s: %s\n", d.name,
			rc == -EPROTONOSUPPORT ?
				"pmi2x-dvm has another version: install the same version on all nodes" :
				"got no instructions from pmi2x-dvm: only pmi2x-dvm up starts this program");
		return 1;
	}
	if (!d.welcome.share && claim_node(d.name)) {
		fprintf(stderr, "pmi2x-dvmd on %s: another DVM of this job is on this node: stop that DVM with pmi2x-dvm down, or start this one with pmi2x-dvm up --share\n",
			d.name);
		return 1;
	}
	d.self.position += d.welcome.first;
	rc = d.welcome.width ? dvmd_tree_open(&d) : 0;
	rc = rc ? rc : begin(&d);
	if (rc)
		fprintf(stderr, "pmi2x-dvmd on %s: %s\n", d.name, strerror(-rc));
	secret_forget(&d.self.secret);
	return rc ? 1 : d.status;
}
