/* SPDX-License-Identifier: BSD-3-Clause */
/* The program pmi2x-dvm-head: head_main.h. */
#include "dvm/head/head_main.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dvm/common/core_file.h"
#include "dvm/common/rlimits.h"
#include "dvm/common/rundir.h"
#include "libio/clock.h"
#include "libutil/decimal.h"
#include "pmi2x-build.h"

#define GRACE_MS 10000       /* a default */
#define WITHIN_MS 120000     /* for the start of all daemons; a default */
#define LEAVE_MS 10000       /* for the daemons to end, beyond the grace time */
#define MARGIN_MS 10000      /* after it, others get the work */
#define COUNTERS_MAX LEDGER_COUNTERS_MAX

struct settings {
	struct head_options main;
	struct dvm_head_options head;
	const char *counters[COUNTERS_MAX]; /* NAME=NUMBER */
	size_t ncounters;
};

/* ---- the log ---- */

static void on_log(void *arg, enum log_level level, const char *text)
{
	struct head_main *h = arg;
	time_t t = time(NULL);
	char stamp[32];
	int n;

	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", localtime(&t));
	n = fprintf(stderr, "%s pmi2x-dvm-head: %s\n", stamp, text);
	if (level != LOG_LEVEL_ERROR && n > 0)
		h->log_notes += n;
}

/* A user who looks for the error finds the log, if there is anything in it. */
static void leave_place(const struct head_main *h)
{
	struct stat log;
	bool empty = !fstat(STDERR_FILENO, &log) && log.st_size == h->log_notes;

	place_leave(h->options.dir, !empty);
}

/* ---- the end ---- */

/* Another head has the journal, and takes over daemons that can wait for it. */
static bool leaves_daemons(const struct head_main *h)
{
	return h->journal.superseded && h->options.orphan_s;
}

static void check_left(struct head_main *h)
{
	if (!h->leaving || (!leaves_daemons(h) && (h->nlinks || h->ndaemons)))
		return;
	clients_close(h); /* clients that wait for the end get it */
	if (h->clients)
		return;
	if (uv_is_closing((uv_handle_t *)&h->turn))
		return;
	uv_close((uv_handle_t *)&h->turn, NULL);
	uv_close((uv_handle_t *)&h->limit, NULL);
	stop_close(h);
	job_close(h);
	uv_close((uv_handle_t *)&h->journal.timer, NULL);
	names_close(h);
	nodes_close(h);
	ends_close(h);
	former_close(h);
	if (leaves_daemons(h)) /* their launchers are still there */
		uv_stop(loop_uv(h->loop));
}

static void on_limit(uv_timer_t *timer)
{
	struct head_main *h = timer->data;

	if (!leaves_daemons(h)) {
		log_error(&h->log, "killed some daemons that did not end in time");
		launch_kill(h, 0);
	}
	uv_stop(loop_uv(h->loop));
}

static void leave(struct head_main *h)
{
	if (h->leaving)
		return;
	h->leaving = true;
	if (h->ready && head_journal_is_ours(h))
		orphans_withdraw(h);
	head_journal_close(h);
	if (h->tree)
		head_tree_flush(h); /* links send nothing more below */
	uv_timer_start(&h->limit, on_limit, LEAVE_MS, 0);
	launch_tell_no_addresses(h);
	if (h->head)
		launch_kill(h, dvm_head_registered(h->head)); /* the nodes that have not come */
	nodes_close(h);
	clients_refuse(h);
	check_left(h);
}

/* The reason was reported: head_fail. */
static void on_failed(struct head_main *h)
{
	if (!leaves_daemons(h)) {
		launch_kill(h, 0);
		nodes_end(h, h->ready ? 0 : h->norphans); /* others go on waiting */
	}
	leave(h);
}

/* ---- operations of libdvm's head ---- */

static void on_end(void *arg)
{
	leave(arg);
}

/* ---- turns ---- */

/* srun, which starts the daemons, may wait for those that can come no more. */
static void on_late(uv_timer_t *timer)
{
	struct head_main *h = timer->data;

	head_fail(h, "%u of %u nodes were up %u s after the first, and the others were not",
		   dvm_head_registered(h->head), h->options.nodes,
		   h->options.within_ms / 1000);
}

static void note_progress(struct head_main *h)
{
	static uint32_t said;

	if (h->ready || said == dvm_head_registered(h->head))
		return;
	said = dvm_head_registered(h->head);
	head_say(h, "up %u", said);
	if (said < h->options.nodes && !uv_is_active((uv_handle_t *)&h->limit))
		uv_timer_start(&h->limit, on_late, h->options.within_ms, 0);
	if (said < h->options.nodes || head_journal_begin(h))
		return;
	h->ready = true;
	launch_ready(h);
	uv_timer_stop(&h->limit);
	address_publish(h);
	orphans_publish(h);
	former_begin(h);
	job_watch(h);
	head_say(h, "ready");
	if (!h->options.ends)
		stop_forget_hold(h);
}

static void turn(struct head_main *h)
{
	if (h->head)
		note_progress(h);
	if (h->tree)
		head_tree_turn(h);
	if (h->leaving || !h->head)
		return;
	launch_turn(h); /* first the next head can find a node, then the node gets tasks */
	dvm_head_turn(h->head, head_now(h));
	head_journal_turn(h);
	orphans_turn(h);
	stop_turn(h);
}

static void on_turn(uv_prepare_t *handle)
{
	struct head_main *h = handle->data;

	turn(h);
	if (h->tree)
		head_tree_flush(h);
}

/* ---- life ---- */

static int make_head(struct head_main *h, const struct settings *s,
		     const struct dvm_head_options *options)
{
	static const struct dvm_head_ops ops = {
		.node_send = nodes_send,
		.node_break = nodes_break,
		.format = &dvm_json, .client_send = clients_send,
		.client_unread = clients_unread,
		.client_name = clients_name,
		.client_break = clients_break,
		.record = head_journal_record,
		.grow = launch_more,
		.names = names_ask,
		.names_end = names_end,
		.end = on_end,
	};
	char name[64];
	uint32_t amount;
	int rc = dvm_head_create(&h->head, options, &ops, h, &h->log);

	if (!rc)
		dvm_head_await_starter(h->head, h->options.ends && h->hold >= 0);
	for (size_t i = 0; !rc && i < s->ncounters; i++) {
		const char *equals = strchr(s->counters[i], '=');

		if (!equals || !decimal_u32(equals + 1, 0, INT32_MAX, &amount))
			return -EINVAL;
		snprintf(name, sizeof(name), "%.*s",
			 (int)(equals - s->counters[i]), s->counters[i]);
		rc = dvm_head_add_counter(h->head, name, amount);
	}
	return rc;
}

static int open_loop(struct head_main *h)
{
	uv_loop_t *uv;
	int rc = loop_create(&h->loop);

	if (rc)
		return rc;
	uv = loop_uv(h->loop);
	h->turn.data = h->limit.data = h;
	uv_prepare_init(uv, &h->turn);
	uv_prepare_start(&h->turn, on_turn);
	uv_timer_init(uv, &h->limit);
	job_open(h, stop_begin);
	return stop_open(h);
}

/* A margin for clocks that differ, and for ranks that take time to be killed. */
static void set_head_lease(const struct head_main *h, struct dvm_head_options *o)
{
	uint32_t lease = h->welcome.lease_ms, margin = lease / 4;

	if (!lease)
		return;
	o->lease_ms = lease + h->welcome.grace_ms;
	o->away_ms = o->lease_ms + (margin < MARGIN_MS ? margin : MARGIN_MS);
}

static int begin_with(struct head_main *h, uint32_t adopted)
{
	struct dvm_head_options options = h->settings->head;
	uint32_t more = h->options.nodes > adopted ? h->options.nodes - adopted : 0;
	int rc;

	h->options.nodes = options.nodes = h->norphans + more;
	options.keeps = h->options.orphan_s;
	options.adopts = adopted;
	options.unheard = h->unheard;
	set_head_lease(h, &options);
	rc = make_head(h, h->settings, &options);
	rc = rc ? rc : head_tree_open(h);
	rc = rc ? rc : names_open(h);
	rc = rc ? rc : clients_open(h);
	rc = rc ? rc : nodes_open(h);
	rc = rc ? rc : launch_daemons(h);
	if (!rc)
		orphans_adopt(h);
	return rc;
}

static int begin(struct head_main *h, const struct settings *s)
{
	static const struct head_hooks hooks = {
		.begin = begin_with, .failed = on_failed, .check_left = check_left,
	};
	int rc;

	h->hooks = &hooks;
	h->settings = s;
	rc = open_loop(h);
	rc = rc ? rc : head_journal_open(h);
	rc = rc ? rc : head_new_identity(h);
	rc = rc ? rc : orphans_call(h);
	return rc || h->called || h->head ? rc : begin_with(h, 0);
}

/* ---- arguments ---- */

static enum queue_order order_named(const char *name)
{
	return !strcmp(name, "large") ? QUEUE_LARGE :
	       !strcmp(name, "work") ? QUEUE_WORK : QUEUE_FIFO;
}

/* pmi2x-dvm up makes these: they are checked there for people. */
static bool take_option(struct settings *s, int option, const char *value)
{
	uint32_t number = 0;
	bool ok = true;

	if (strchr("NgpmwWkKrt", option))
		ok = decimal_u32(value, 0, INT32_MAX, &number);
	switch (option) {
	case 'n': s->main.name = s->head.name = value; break;
	case 'd': s->main.dir = value; break;
	case 'N': s->main.nodes = s->head.nodes = number; break;
	case 'l': s->main.local = true; break;
	case 'L': s->main.launcher = value; break;
	case 's': s->main.slots = value; break;
	case 'G': s->main.gpus = value; break;
	case 'H': s->main.hold = value; break;
	case 'D': s->main.lock = value; break;
	case 'A': s->main.address = value; break;
	case 'k': s->head.member = number; break;
	case 'K': s->head.members = number; break;
	case 'V': s->main.names = value; break;
	case 'r': s->main.relative = number; break;
	case 'S': s->main.share = true; break;
	case 'E': s->main.ends = s->head.ends = true; break;
	case 'I': s->main.preload = value; s->head.preloads = true; break;
	case 'P': s->head.paused = true; break;
	case 'J': s->main.journal.dir = s->head.journal = value; break;
	case 'R': s->main.journal.resume = true; break;
	case 'O': s->main.journal.once = s->head.once = true; break;
	case 'F': s->main.journal.fast = s->head.fast = true; break;
	case 'T': s->main.journal.take_over = true; break;
	case 'g': s->head.grace_ms = s->main.grace_ms = number; break;
	case 'w': s->main.within_ms = number; break;
	case 't': s->main.width = number; break;
	case 'W': s->main.orphan_s = number; break;
	case 'p': s->head.queue.patience_ms = number; break;
	case 'm': s->head.max_waiting = number; break;
	case 'o': s->head.queue.order = order_named(value); break;
	case 'c':
		if (s->ncounters < COUNTERS_MAX)
			s->counters[s->ncounters++] = value;
		break;
	default: return false;
	}
	return ok;
}

static bool take_arguments(struct settings *s, int argc, char **argv)
{
	int option;

	*s = (struct settings){
		.main = { .width = WIDTH_DEFAULT, .slots = "core", .gpus = "found", .preload = "", .grace_ms = GRACE_MS,
			   .within_ms = WITHIN_MS },
		.head = {
			.build = PMI2X_BUILD,
			.grace_ms = GRACE_MS,
			.max_waiting = 1000000,
			.queue = { .window = 1000, .patience_ms = 60000 },
		},
	};
	while ((option = getopt(argc, argv, "n:d:N:lL:s:G:H:D:A:J:ROFTg:p:w:W:t:m:o:c:k:K:r:V:SEPI:")) != -1)
		if (!take_option(s, option, optarg))
			return false;
	return s->main.name && s->main.dir && s->main.lock && s->main.nodes &&
	       optind == argc;
}

int main(int argc, char **argv)
{
	static struct settings s;
	static struct head_main h;
	int rc;

	prctl(PR_SET_NAME, "pmi2x-dvm-head", 0, 0, 0);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (!take_arguments(&s, argc, argv)) {
		fputs("pmi2x-dvm-head: pmi2x-dvm up starts this program; see pmi2x-dvm(1)\n",
		      stderr);
		return 2;
	}
	core_file_forbid(&h.core);
	rlimits_raise(&h.files);
	s.head.began_ns = clock_ns(CLOCK_REALTIME);
	h.options = s.main;
	h.log = (struct log_hook){ on_log, &h };
	fcntl(atoi(s.main.lock), F_SETFD, FD_CLOEXEC); /* it stays open, but not in programs */
	h.hold = s.main.hold ? atoi(s.main.hold) : -1;
	if (h.hold >= 0)
		fcntl(h.hold, F_SETFD, FD_CLOEXEC);
	rc = begin(&h, &s);
	if (rc < 0)
		head_say(&h, "failed %s", strerror(-rc));
	if (!rc)
		loop_run(h.loop);
	head_journal_free(&h);
	former_free(&h);
	head_tree_free(&h);
	leave_place(&h);
	return rc ? 1 : h.status;
}
