/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix-host: run a program of PMIx on several nodes that are all here. Exit code: of
 * the first rank that fails; 1: a rank is killed; 3: PMIx cannot be served, and why on
 * standard output; 4: pmi2x-pmixd does what it must not.
 */
#include "host.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attack.h"
#include "fake.h"
#include "libconfine/host_msg.h"

#define LIMIT_MS 100000 /* of silence */

void host_end(struct host *h, int result)
{
	if (h->result < 0)
		h->result = result;
}

/* ---- what pmi2x-pmixd tells slurmstepd ---- */

/* -1: it has ended. */
static ssize_t receive(struct node *n, char *room, size_t size)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = { room, size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t len = recvmsg(n->host, &m, 0);
	struct cmsghdr *c = len > 0 ? CMSG_FIRSTHDR(&m) : NULL;

	if (c && c->cmsg_type == SCM_CREDENTIALS)
		n->pid = ((struct ucred *)CMSG_DATA(c))->pid;
	return len > 0 ? len : -1;
}

static void host_word(struct host *h, struct node *n, const struct host_msg *m)
{
	switch (m->type) {
	case HOST_READY:
	case HOST_SERVES:
		break;
	case HOST_LOG:
		printf("%s: %.*s\n", h->names[n->position], (int)m->len,
		       (const char *)m->data);
		break;
	case HOST_KILL:
		printf("%s gives up: %.*s\n", h->names[n->position], (int)m->len,
		       (const char *)m->data);
		host_end(h, 3);
		break;
	case HOST_CRASHED:
		printf("%s: pmi2x-pmixd crashed (signal %u)\n", h->names[n->position],
		       m->number);
		host_end(h, 4);
		break;
	default:
		printf("pmi2x-pmixd says %d, which it has no business to\n", m->type);
		host_end(h, 4);
	}
}

static void take_host_word(struct host *h, struct node *n)
{
	char room[HOST_MSG_MAX];
	struct host_msg m;
	ssize_t len = receive(n, room, sizeof(room));

	if (len > 0 && !host_msg_unpack(&m, room, (size_t)len)) {
		host_word(h, n, &m);
		return;
	}
	close(n->host);
	n->host = -1;
	if (h->result < 0)
		printf("%s: pmi2x-pmixd has ended\n", h->names[n->position]);
	host_end(h, 4);
}

/* ---- ranks ---- */

static void start_ranks(struct host *h)
{
	h->started = true;
	attack_listeners(h);
	for (uint32_t p = 0; p < h->options->real; p++) {
		uint32_t count;
		const uint32_t *ranks = layout_ranks_at(h->layout, p, &count);

		for (uint32_t i = 0; i < count; i++) {
			struct rank *r = &h->ranks[ranks[i]];

			if (node_start_rank(&h->nodes[p], h, ranks[i], &r->pid))
				host_end(h, 4);
			else
				h->running++;
		}
	}
}

static void start_when_ready(struct host *h)
{
	for (uint32_t p = 0; p < h->options->real; p++)
		if (!h->nodes[p].ready)
			return;
	if (!h->started)
		start_ranks(h);
}

static void rank_ended(struct host *h, uint32_t rank, int status)
{
	h->ranks[rank].pid = 0;
	h->running--;
	if (WIFSIGNALED(status)) {
		printf("rank %u killed by signal %d\n", rank, WTERMSIG(status));
		agent_rank_gone(h, rank);
		h->signalled = true;
	} else if (WEXITSTATUS(status)) {
		printf("rank %u ended with %d\n", rank, WEXITSTATUS(status));
		host_end(h, WEXITSTATUS(status));
	}
	if (!h->running)
		host_end(h, h->signalled);
}

static void reap(struct host *h)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (uint32_t r = 0; r < layout_ranks(h->layout); r++)
			if (h->ranks[r].pid == pid)
				rank_ended(h, r, status);
}

static void kill_ranks(struct host *h)
{
	for (uint32_t r = 0; r < layout_ranks(h->layout); r++)
		if (h->ranks[r].pid)
			kill(h->ranks[r].pid, SIGKILL);
	while (wait(NULL) > 0)
		;
}

/* ---- the loop ---- */

static void take_messages(struct host *h, struct node *n)
{
	struct pmix_msg m;
	int more, rc = link_read(&n->link);

	if (rc == -EPIPE || rc == -ECONNRESET)
		return; /* the other socket says why */
	while (!rc && (more = link_next(&n->link, &m, NULL))) {
		rc = more < 0 ? more : agent_message(h, n, &m);
		if (rc)
			printf("message %d of pmi2x-pmixd: %s\n", m.type,
			       strerror(-rc));
	}
	if (rc)
		host_end(h, 4);
	start_when_ready(h);
}

static void fill(const struct host *h, struct pollfd *fds)
{
	for (uint32_t p = 0; p < h->options->real; p++) {
		const struct node *n = &h->nodes[p];

		fds[2 * p] = (struct pollfd){
			n->host < 0 ? -1 : n->link.fd,
			POLLIN | (link_has_to_write(&n->link) ? POLLOUT : 0), 0 };
		fds[2 * p + 1] = (struct pollfd){ n->host, POLLIN, 0 };
	}
}

static void handle(struct host *h, const struct pollfd *fds)
{
	for (uint32_t p = 0; p < h->options->real; p++) {
		if (fds[2 * p].revents & (POLLIN | POLLHUP))
			take_messages(h, &h->nodes[p]);
		if (fds[2 * p + 1].revents)
			take_host_word(h, &h->nodes[p]);
	}
	for (uint32_t p = 0; p < h->options->real; p++)
		(void)link_write(&h->nodes[p].link);
}

static void loop(struct host *h)
{
	uint32_t n = 2 * h->options->real;
	struct pollfd *fds = calloc(n + 1, sizeof(*fds));
	struct signalfd_siginfo info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fds[n] = (struct pollfd){ signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
				  POLLIN, 0 };
	while (h->result < 0) {
		fill(h, fds);
		if (!poll(fds, n + 1, LIMIT_MS)) {
			printf("nothing happens any more\n");
			host_end(h, 4);
		}
		handle(h, fds);
		if (fds[n].revents &&
		    read(fds[n].fd, &info, sizeof(info)) == sizeof(info))
			reap(h);
	}
	close(fds[n].fd);
	free(fds);
}

/* ---- */

static void say_times(const struct host *h)
{
	struct rusage ranks;
	double seconds = 0;

	for (uint32_t p = 0; p < h->options->real; p++)
		seconds += node_seconds(&h->nodes[p]);
	getrusage(RUSAGE_CHILDREN, &ranks);
	printf("pmi2x-pmixd: %.0f ms a node, %ld KiB; ranks: %.0f ms; %u nodes, %llu fences\n",
	       seconds * 1000 / h->options->real, node_memory(&h->nodes[0]),
	       (double)(ranks.ru_utime.tv_sec + ranks.ru_stime.tv_sec) * 1000 +
		       (double)(ranks.ru_utime.tv_usec + ranks.ru_stime.tv_usec) / 1000,
	       h->options->nodes, (unsigned long long)h->fences);
}

static int run(struct host *h)
{
	const struct options *o = h->options;

	for (uint32_t p = 0; p < o->real; p++) {
		if (node_start(&h->nodes[p], h, p))
			return 4;
		attack_start(h, &h->nodes[p]);
	}
	loop(h);
	if (o->times)
		say_times(h);
	for (uint32_t p = 0; p < o->real; p++)
		if (!node_stop(&h->nodes[p])) {
			printf("a pmi2x-pmixd does not end\n");
			h->result = 4;
		}
	return h->result;
}

static int prepare(struct host *h)
{
	const struct options *o = h->options;
	const struct fake_options layout = {
		.nodes = o->nodes, .ranks = o->ranks, .distribution = o->distribution,
	};

	h->result = -1;
	h->nodes = calloc(o->real, sizeof(*h->nodes));
	h->ranks = calloc(o->ranks, sizeof(*h->ranks));
	h->names = calloc(o->nodes, sizeof(*h->names));
	if (!h->nodes || !h->ranks || !h->names || fake_layout(&h->layout, &layout) ||
	    name_store_create(&h->name_store, 0, agent_answer_names, h))
		return -EINVAL;
	for (uint32_t i = 0; i < o->nodes; i++)
		if (asprintf(&h->names[i], "n%u", i) < 0)
			return -ENOMEM;
	return 0;
}

static const char usage[] =
"usage: pmix-host -N NODES -n RANKS [-r REAL] [-m DISTRIBUTION] [-p PMI2X-PMIXD]\n"
"                 [-l LIBPMIX] [-g GDS] [-c COLLECT] [-d DIR] [-a SIZES] [-T XML]\n"
"                 [-o] [-t] [-L LOOK-UPS] [-x ATTACK] PROGRAM...\n";

static int read_options(struct options *o, int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "+N:n:r:m:p:l:g:c:d:a:otx:T:L:")) >= 0) {
		switch (c) {
		case 'N': o->nodes = (uint32_t)atoi(optarg); break;
		case 'n': o->ranks = (uint32_t)atoi(optarg); break;
		case 'r': o->real = (uint32_t)atoi(optarg); break;
		case 'm': o->distribution = optarg; break;
		case 'p': o->helper = optarg; break;
		case 'l': o->library = optarg; break;
		case 'g': o->gds = optarg; break;
		case 'c': o->collect = optarg; break;
		case 'd': o->dir = optarg; break;
		case 'L': o->look_ups_max = (uint32_t)atoi(optarg); break;
		case 'T': o->topology = optarg; break;
		case 'a': o->apps = optarg; break;
		case 'o': o->old = true; break;
		case 't': o->times = true; break;
		case 'x': o->attack = optarg; break;
		default: return -EINVAL;
		}
	}
	o->program = argv + optind;
	o->real = o->real ? o->real : o->nodes;
	return o->nodes && o->ranks >= o->nodes && o->real <= o->nodes &&
		       *o->program && o->library && o->dir ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
	struct options o = {
		.nodes = 1, .ranks = 1, .distribution = "block",
		.helper = "../../src/helpers/pmixd/pmi2x-pmixd", .gds = "hash",
		.collect = "auto", .look_ups_max = UINT32_MAX,
	};
	struct host h = { .options = &o };
	int result;

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	if (read_options(&o, argc, argv) || prepare(&h)) {
		fputs(usage, stderr);
		return 2;
	}
	result = run(&h);
	kill_ranks(&h);
	return result;
}
