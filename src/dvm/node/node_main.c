/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program pmi2x-dvmd: the daemon of a DVM's node. It connects to the head, which it is
 * told about on its standard input (bootstrap.h), starts the zygote, passes on what the two
 * say, and serves PMI to tasks (tasks.h). When head or zygote is lost it ends, and the
 * zygote with all ranks - unless it is to wait for another head: then the zygote goes on,
 * and when none comes in time it ends the ranks.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dvm/common/bootstrap.h"
#include "dvm/common/core_file.h"
#include "dvm/common/rlimits.h"
#include "dvm/common/self_path.h"
#include "dvm/common/strays.h"
#include "dvm/core/dvm_msg.h"
#include "dvm/node/claim.h"
#include "dvm/node/lease_timer.h"
#include "dvm/node/mesh.h"
#include "dvm/node/pmix_hub.h"
#include "dvm/node/tasks.h"
#include "dvm/zygote/zygote.h"
#include "libio/attach_fds.h"
#include "libio/channel.h"
#include "libio/link.h"
#include "libio/loop.h"
#include "libio/protocol.h"
#include "libutil/decimal.h"
#include "pmi2x-build.h"

#define CONNECT_MS 10000   /* for an address, until the head is proved */
#define AGAIN_MS 1000      /* between two tries of all addresses */
#define GONE_MS 2000       /* for the head to hear that no rank is left */
#define RETRY_MAX_MS 60000 /* for a link to another daemon to be made */
#define HOST_NAME_MAX_BYTES 256
#define ZYGOTE "pmi2x-dvm-zygote"

struct dvmd {
	struct loop *loop;
	struct welcome welcome;
	struct handshake_self self;
	char name[HOST_NAME_MAX_BYTES];
	char programs[PATH_MAX]; /* their directory */
	uint32_t next_head;
	uint64_t begun_ms; /* when the first address was tried, by the loop's clock */
	bool try_again;    /* one of them may answer yet */
	struct link *head;
	struct channel *channel;
	struct tasks *tasks;
	struct pool *pool;
	struct pmix_hub *pmix;
	struct log_hook log;
	bool joined;       /* the head has been told what this node is */
	uv_timer_t orphan; /* it waits to try again, for another head, or for the end of
	                      its link */
	struct lease_timer lease;
	bool gives_up;     /* none has come, or this one does not answer */
	bool ended;        /* no rank is left */
	pid_t process;     /* of the zygote, */
	int pmi;           /* and a socket to it, over which it speaks of PMI */
	struct rlimit core; /* for that */
	int status;
};

/* All but the head. */
static void leave_others(struct dvmd *d)
{
	channel_close(d->channel);
	d->channel = NULL;
	lease_timer_close(&d->lease);
	tasks_close(d->tasks);
	pmix_hub_close(d->pmix);
	pool_close(d->pool);
	d->pool = NULL;
}

static void finish(struct dvmd *d, int status)
{
	d->status = status;
	if (d->head)
		link_close(d->head);
	d->head = NULL;
	if (!uv_is_closing((uv_handle_t *)&d->orphan))
		uv_close((uv_handle_t *)&d->orphan, NULL);
	leave_others(d); /* with that the loop ends */
}

__attribute__((format(printf, 2, 3)))
static void die(struct dvmd *d, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "pmi2x-dvmd on %s: ", d->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	finish(d, 1);
}

static void print_line(void *arg, enum log_level level, const char *text)
{
	const struct dvmd *d = arg;

	if (level == LOG_LEVEL_ERROR)
		fprintf(stderr, "pmi2x-dvmd on %s: %s\n", d->name, text);
}

/* ---- zygote ---- */

static bool outlives_head(const struct dvmd *d)
{
	return d->welcome.orphan_s && !d->gives_up;
}

static void wait_for_head(struct dvmd *d);
static void join(struct dvmd *d);

/* That a head has been killed may be seen here first. */
static int on_zygote_says(void *arg, const void *data, size_t len)
{
	struct dvmd *d = arg;
	int rc;

	if (!d->joined && *(const uint8_t *)data != DVM_REGISTER)
		return 0; /* it was for another head */
	if (!d->joined)
		join(d);
	rc = d->head ? link_send_bytes(d->head, FRAME_CONTROL_UP, data, len) : 0;
	if (!rc || !outlives_head(d))
		return rc;
	wait_for_head(d);
	return 0;
}

/* The zygote ends, for it is left alone; and its ranks, if it was killed. False: some cannot. */
static bool end_ranks(struct dvmd *d)
{
	if (d->process > 0)
		waitpid(d->process, NULL, 0);
	d->process = 0;
	return strays_kill_all();
}

static void on_told_gone(uv_timer_t *timer)
{
	finish(timer->data, 0);
}

/* That no rank is left is the last that the head hears: others may have the work now. */
static void tell_gone(struct dvmd *d)
{
	static const char message = DVM_GONE;

	d->ended = true;
	if (!d->head || link_send_bytes(d->head, FRAME_CONTROL_UP, &message, 1)) {
		finish(d, 0);
		return;
	}
	uv_timer_start(&d->orphan, on_told_gone, GONE_MS, 0);
	link_finish(d->head);
}

/* It ends by itself when the head has said so, and otherwise when it is killed. */
static void on_zygote_end(void *arg, int error)
{
	struct dvmd *d = arg;

	leave_others(d);
	if (end_ranks(d))
		tell_gone(d);
	else
		finish(d, 1);
}

/* Each may have another's number: they are put above those first. */
static bool place_fds(const struct dvmd *d, int fd, int pmi)
{
	const int from[] = { fd, pmi, link_fd(d->head), pool_listener(d->pool) };
	const int to[] = { ZYGOTE_FD, ZYGOTE_PMI_FD, ZYGOTE_LINK_FD, ZYGOTE_LISTENER_FD };
	int high[4];
	bool ok = true;

	for (int i = 0; i < 4; i++)
		high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, ZYGOTE_LISTENER_FD + 1);
	for (int i = 0; i < 4; i++)
		ok = dup2(high[i], to[i]) >= 0 && ok;
	return ok;
}

static void become_zygote(const struct dvmd *d, int fd, int pmi)
{
	const struct pmix_offer *pmix = pmix_hub_offer(d->pmix);
	char port[16], pmix_port[16], file[sizeof(d->programs) + 32];
	char *const argv[] = {
		ZYGOTE, (char *)d->name, (char *)d->welcome.slots,
		(char *)d->welcome.gpus, (char *)d->welcome.dvm, port, pmix_port,
		(char *)(pmix->port ? pmix->gds : ""), (char *)pmix->dir, NULL,
	};
	sigset_t none;

	snprintf(port, sizeof(port), "%u", pool_port(d->pool));
	snprintf(pmix_port, sizeof(pmix_port), "%u", pmix->port);
	snprintf(file, sizeof(file), "%s/" ZYGOTE, d->programs);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_CORE, &d->core);
	if (!place_fds(d, fd, pmi))
		_exit(126);
	execv(file, argv);
	fprintf(stderr, "pmi2x-dvmd on %s: cannot execute %s: %s\n", d->name, file,
		strerror(errno));
	_exit(126);
}

static void on_task_says(void *arg, const void *data, size_t len)
{
	struct dvmd *d = arg;

	if (d->channel)
		(void)channel_send(d->channel, data, len);
}

static int on_task_says_head(void *arg, const void *data, size_t len)
{
	struct dvmd *d = arg;

	return d->head && d->joined ?
	       link_send_bytes(d->head, FRAME_CONTROL_UP, data, len) : -ENOTCONN;
}

static int on_task_sends(void *arg, uint32_t node, const struct dvm_address *address,
			 const struct pool_frame *f, const struct payload_vec *body)
{
	struct dvmd *d = arg;

	return d->pool ? pool_send(d->pool, node, address, f, body) : -ENOTCONN;
}

static void on_task_pmix_sends(void *arg, uint32_t part, const void *head, size_t len,
			       struct payload *data)
{
	struct dvmd *d = arg;

	pmix_hub_send(d->pmix, part, head, len, data);
}

static void on_task_pmix_drops(void *arg, uint32_t part)
{
	struct dvmd *d = arg;

	pmix_hub_drop(d->pmix, part);
}

/* Takes over the descriptors. */
static int listen_to_zygote(struct dvmd *d, int fd, int pmi)
{
	static const struct channel_ops ops = {
		.message = on_zygote_says, .end = on_zygote_end,
	};
	bool pmix = pmix_hub_offer(d->pmix)->port;
	const struct tasks_ops task_ops = {
		.say = on_task_says, .say_head = on_task_says_head,
		.send = on_task_sends,
		.pmix_send = pmix ? on_task_pmix_sends : NULL,
		.pmix_drop = pmix ? on_task_pmix_drops : NULL,
	};
	const struct tasks_options options = { d->welcome.dvm, d->name };
	int rc = tasks_open(&d->tasks, d->loop, pmi, &options, &task_ops, d,
			    &d->log);

	if (!rc)
		return channel_open(&d->channel, loop_uv(d->loop), fd, &ops, d);
	close(fd);
	return rc;
}

static int start_zygote(struct dvmd *d)
{
	int ends[2], pmi[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pmi) < 0) {
		rc = -errno;
		close(ends[0]);
		close(ends[1]);
		return rc;
	}
	d->process = fork();
	if (!d->process)
		become_zygote(d, ends[1], pmi[1]);
	rc = d->process < 0 ? -errno : 0;
	close(ends[1]);
	close(pmi[1]);
	rlimits_raise(&(struct rlimit){ 0 }); /* each rank's connection is one */
	d->pmi = rc ? -1 : fcntl(pmi[0], F_DUPFD_CLOEXEC, 0);
	if (!rc)
		return listen_to_zygote(d, ends[0], pmi[0]);
	close(ends[0]);
	close(pmi[0]);
	return rc;
}

/* ---- head ---- */

static void connect_next(struct dvmd *d, int error);

/* The head's answer comes in a frame with others. */
static void join(struct dvmd *d)
{
	d->joined = true;
	if (!d->lease.lease.length_ms)
		lease_timer_begin(&d->lease, d->welcome.lease_ms);
}

/* Also a head that has not been told yet what this node is: it does not answer then. */
static void on_lease_ask(void *arg, uint64_t now_ms)
{
	const struct dvm_msg m = { .type = DVM_LEASE, .lease.sent_ms = now_ms };
	struct dvmd *d = arg;
	char room[16];
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	if (d->head && !dvm_msg_pack(&b, &m))
		(void)link_send_bytes(d->head, FRAME_CONTROL_UP, b.data, b.len);
}

/* False: it is another message. */
static bool take_lease(struct dvmd *d, const struct payload *body)
{
	struct dvm_msg m;
	struct cursor c;

	if (!dvm_msg_is_lease(body->data, body->len))
		return false;
	cursor_init(&c, body->data, body->len);
	if (!dvm_msg_unpack(&c, &m))
		lease_timer_answered(&d->lease, m.lease.sent_ms);
	return true;
}

static void end_politely(struct dvmd *d, const char *why);

/* Others may get the work soon: what runs is ended, at last by force. */
static void on_lease_over(void *arg, uint64_t late_ms)
{
	struct dvmd *d = arg;

	if (!d->gives_up && d->welcome.grace_ms)
		end_politely(d, "the head does not answer");
	else if (late_ms >= d->welcome.grace_ms && d->process > 0)
		kill(d->process, SIGKILL); /* its ranks are killed when it has ended */
}

static void on_proved(void *arg, struct link *l)
{
	struct dvmd *d = arg;
	int rc = start_zygote(d);

	if (rc)
		die(d, "cannot start pmi2x-dvm-zygote: %s", strerror(-rc));
}

static int on_head_says(void *arg, struct link *l, enum frame_type type,
			struct payload *body)
{
	struct dvmd *d = arg;

	if (type != FRAME_CONTROL_DOWN)
		return -EPROTO;
	if (take_lease(d, body))
		return 0;
	if (dvm_msg_for_pmi(body->data, body->len)) {
		if (d->tasks)
			tasks_head_says(d->tasks, body->data, body->len);
		return 0;
	}
	return d->channel ? channel_send(d->channel, body->data, body->len) : 0;
}

/* With what runs. The zygote ends then, and this daemon with it. */
static void end_politely(struct dvmd *d, const char *why)
{
	static const struct dvm_msg stop = { .type = DVM_STOP };
	char room[16];
	struct buf b;

	fprintf(stderr, "pmi2x-dvmd on %s: the daemon stops: %s\n", d->name, why);
	d->gives_up = true;
	buf_init_in(&b, room, sizeof(room));
	if (dvm_msg_pack(&b, &stop) || channel_send(d->channel, b.data, b.len))
		finish(d, 1);
}

static void on_orphan(uv_timer_t *timer)
{
	end_politely(timer->data, "no other head has come");
}

/* The requests of tasks to it fail. */
static void leave_head(struct dvmd *d)
{
	link_close(d->head);
	d->head = NULL;
	d->joined = false;
	tasks_head_lost(d->tasks);
}

/* Ranks go on, and nobody reads what they write. */
static void tell_alone(struct dvmd *d)
{
	static const char message = DVM_ALONE;

	(void)channel_send(d->channel, &message, 1);
}

static void wait_for_head(struct dvmd *d)
{
	uint64_t ms = d->welcome.orphan_s * UINT64_C(1000), left = lease_timer_left(&d->lease);

	leave_head(d);
	tell_alone(d);
	fprintf(stderr, "pmi2x-dvmd on %s: the head is lost: waiting %u s for another\n",
		d->name, d->welcome.orphan_s);
	uv_timer_start(&d->orphan, on_orphan, left < ms ? left : ms, 0);
}

static void on_head_end(void *arg, struct link *l, int error)
{
	struct dvmd *d = arg;

	link_close(l);
	d->head = NULL;
	if (d->ended)
		finish(d, 0);
	else if (!d->channel)
		connect_next(d, error);
	else if (outlives_head(d))
		wait_for_head(d);
	else if (error)
		die(d, "the head is lost: %s", link_strerror(error));
	else
		finish(d, 0);
}

static const struct link_ops head_ops = {
	.proved = on_proved, .frame = on_head_says, .end = on_head_end,
};

static void on_try_again(uv_timer_t *timer)
{
	struct dvmd *d = timer->data;

	d->next_head = 0;
	connect_next(d, 0);
}

/* A head that is there may be out of reach, or have too many callers, for a moment. */
static bool may_answer_yet(int error)
{
	return error == -ETIMEDOUT || error == -ECONNRESET || error == -EPIPE ||
	       error == -EHOSTUNREACH || error == -ENETUNREACH || error == -ECONNABORTED;
}

/* All addresses have been tried. */
static void wait_to_try_again(struct dvmd *d, int error)
{
	uint64_t tried = uv_now(loop_uv(d->loop)) - d->begun_ms;

	if (d->try_again && tried < d->welcome.within_ms)
		uv_timer_start(&d->orphan, on_try_again, AGAIN_MS, 0);
	else
		die(d, "cannot reach the head of the DVM: %s", link_strerror(error));
}

static void connect_next(struct dvmd *d, int error)
{
	const struct link_options options = {
		.handshake_ms = CONNECT_MS, .dead_peer_ms = d->welcome.peer_ms,
	};

	d->try_again |= may_answer_yet(error);
	while (d->next_head < d->welcome.nheads) {
		error = link_connect(&d->head, loop_uv(d->loop), &d->self,
				     HANDSHAKE_SRUN,
				     &d->welcome.heads[d->next_head++], &options,
				     &head_ops, d);
		if (!error)
			return;
		d->try_again |= may_answer_yet(error);
	}
	wait_to_try_again(d, error);
}

/* The zygote takes it if this process is killed: zygote.h. */
static void hand_link_on(const struct dvmd *d)
{
	const struct passed_fds fds = { .count = 1, .fds = { link_fd(d->head) } };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union attached_fds control;

	attach_fds(&msg, &fds, &control);
	(void)sendmsg(d->pmi, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* It goes on where another was lost, which this side may not have noticed yet. */
static void on_other_head(void *arg, struct link *l)
{
	struct dvmd *d = arg;

	if (!d->channel || !outlives_head(d)) {
		link_close(l);
		return;
	}
	leave_head(d);
	d->head = l;
	link_hand_over(l, &head_ops, d);
	hand_link_on(d);
	uv_timer_stop(&d->orphan);
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

/* A DVM of one machine has its head there alone. */
static bool is_local(const struct welcome *w)
{
	const struct sockaddr_in *a = (const struct sockaddr_in *)&w->heads[0];

	return w->nheads == 1 && a->sin_family == AF_INET &&
	       a->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

/*
 * Until the head has given up a node that it does not hear either, with its margin. Links
 * that have been made stand a cut of a minute, too.
 */
static uint32_t retry_ms(const struct welcome *w)
{
	uint64_t ms = ((uint64_t)w->lease_ms + w->grace_ms) / 4 * 5;

	return ms < RETRY_MAX_MS ? (uint32_t)ms : RETRY_MAX_MS;
}

static int open_pool(struct dvmd *d)
{
	static const struct pool_ops ops = {
		.frame = on_pool_frame, .lost = on_pool_lost, .head = on_other_head,
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
 * Its place among those that are started with it: of the argument, or of the srun step
 * that it is in.
 */
static bool find_position(struct dvmd *d, const char *given)
{
	const char *text = given ? given : getenv("SLURM_PROCID");

	return text && decimal_u32(text, 0, HANDSHAKE_SRUN - 1,
				   &d->self.position);
}

static int begin(struct dvmd *d)
{
	static const struct lease_timer_ops lease_ops = { on_lease_ask, on_lease_over };
	struct pool *pool;
	int rc = loop_create(&d->loop);

	if (rc)
		return rc;
	uv_timer_init(loop_uv(d->loop), &d->orphan);
	d->orphan.data = d;
	lease_timer_init(&d->lease, loop_uv(d->loop), &lease_ops, d);
	d->log = (struct log_hook){ print_line, d };
	d->self.jobid = d->welcome.dvm;
	d->self.build = PMI2X_BUILD;
	d->self.protocol = PROTOCOL_VERSION;
	d->self.secret = d->welcome.secret;
	secret_forget(&d->welcome.secret);
	rc = open_pool(d);
	rc = rc ? rc : open_pmix(d);
	pool = d->pool;
	d->begun_ms = uv_now(loop_uv(d->loop));
	if (!rc)
		connect_next(d, 0);
	loop_run(d->loop);
	loop_destroy(d->loop);
	tasks_destroy(d->tasks);
	pmix_hub_destroy(d->pmix);
	(void)end_ranks(d);
	pool_destroy(pool); /* whoever calls is refused from now on: no rank is left */
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
	rc = begin(&d);
	if (rc)
		fprintf(stderr, "pmi2x-dvmd on %s: %s\n", d.name, strerror(-rc));
	secret_forget(&d.self.secret);
	return rc ? 1 : d.status;
}
