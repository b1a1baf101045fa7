/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm run: one task, with its output and exit status. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dvm/cli/dvm.h"
#include "dvm/cli/standard_input.h"
#include "dvm/cli/submission.h"

/* Another process that shares the descriptor may have made it non-blocking. */
static void wait_until_writable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	(void)poll(&p, 1, -1);
}

static void write_output(int fd, json_t *event)
{
	size_t n;
	char *bytes = get_output(event, &n);

	for (size_t done = 0; done < n;) {
		ssize_t w = write(fd, bytes + done, n - done);

		if (w < 0 && errno == EAGAIN)
			wait_until_writable(fd);
		else if (w < 0 && errno != EINTR)
			die("output of the task cannot be written: %s",
			    strerror(errno));
		done += w > 0 ? (size_t)w : 0;
	}
	free(bytes);
}

/* ---- standard input ---- */

/* Warn: standard input is a pipe, and this command does not read it. */
static void warn_of_input(const struct submission *s)
{
	struct stat st;
	int left = 0;

	if (s->stdin_goes || fstat(STDIN_FILENO, &st) < 0 || !S_ISFIFO(st.st_mode) ||
	    ioctl(STDIN_FILENO, FIONREAD, &left) < 0 || !left)
		return;
	fprintf(stderr, "pmi2x-dvm: run: standard input is not read: --stdin gives it to the task\n");
}

/* ---- the task ---- */

/* And what it spawns, as srun does. */
static int follow(struct submission *s)
{
	struct results *r = &s->results;
	json_t *event;

	while (r->ended < r->submitted && (event = conn_next(s->conn))) {
		if (!strcmp(event_name(event), "output"))
			write_output((int)get_number(event, "fd"), event);
		else
			results_event(r, event);
		json_decref(event);
	}
	if (r->ended < r->submitted) {
		conn_say_logs(s->conn);
		die("%s, and the task with it", conn_end(s->conn));
	}
	return r->code;
}

static void check_options(const struct submission *s, int argc)
{
	task_options_refuse_batch(s);
	if (s->json || s->lines || s->array)
		die_usage("run starts one task; use submit for several");
	if (s->results.max_fails.set)
		die_usage("run: --max-fails is an option of batch and submit");
	if (optind == argc)
		die_usage("run: name a program");
}

int run_task(int argc, char **argv, const char *dvm, void (*no_node)(void))
{
	static struct submission s = { .wait = true, .tied = true, .follow = true, .quiet = true };
	int rc;

	s.dvm = dvm;
	s.no_node = no_node;
	task_options_take(&s, argc, argv);
	check_options(&s, argc);
	if (!json_object_get(s.task, "output"))
		json_object_set_new(s.task, "output", json_string("forward"));
	if (s.stdin_goes)
		json_object_set_new(s.task, "stdin", standard_input_read("run"));
	submission_begin(&s); /* when this client goes, the head ends the task */
	submission_add_command(&s, argc - optind, argv + optind, NULL, 0);
	submission_flush(&s);
	rc = s.results.refused ? 1 : follow(&s);
	conn_close(s.conn);
	if (!no_node)
		warn_of_input(&s);
	return rc;
}

int cmd_run(int argc, char **argv)
{
	return run_task(argc, argv, NULL, NULL);
}
