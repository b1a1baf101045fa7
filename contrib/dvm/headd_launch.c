/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starting the daemons: as processes here, or by one command, which is srun's unless the
 * user has another. What they are told goes over their standard input.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headd.h"

#define COMMAND_MAX 8192

/*
 * No PMI, no share of memory or cores: the steps of the tasks' own user go on beside it,
 * and the loss of a node does not end the others' daemons.
 */
#define SRUN "exec srun --mpi=none --overlap --no-kill -K0 --mem=0 --cpu-bind=none " \
	"--input=all --nodes=%u --ntasks=%u --ntasks-per-node=1 "

struct daemon_process {
	struct headd *head;
	uv_process_t process;
	uv_pipe_t input;
	uv_write_t write;
	char *text;      /* what it is told */
	bool running;
};

static void on_input_closed(uv_handle_t *input)
{
	struct daemon_process *d = input->data;

	if (d->text)
		explicit_bzero(d->text, strlen(d->text));
	free(d->text);
	d->text = NULL;
}

static void on_told(uv_write_t *write, int status)
{
	struct daemon_process *d = write->data;

	uv_close((uv_handle_t *)&d->input, on_input_closed);
}

static void on_daemon_exit(uv_process_t *process, int64_t code, int signal)
{
	struct daemon_process *d = process->data;
	struct headd *h = d->head;

	d->running = false;
	h->ndaemons--;
	uv_close((uv_handle_t *)process, NULL);
	if (!h->ready && !h->leaving)
		headd_fail(h, "%s has ended, with %s %d, before all nodes were up: see %s/" HEADD_LOG,
			   h->options.local ? "a daemon" : "what starts the daemons",
			   signal ? "signal" : "exit code",
			   signal ? signal : (int)code, h->options.dir);
	headd_check_left(h);
}

/* ---- commands ---- */

static const char *own_file(const char *name)
{
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);
	char *slash;

	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	strcpy(slash ? slash + 1 : path, name);
	return path;
}

/* 'it''s' in a shell. */
static void quote(char *out, size_t size, const char *text)
{
	size_t n = 0;

	out[n++] = '\'';
	for (; *text && n < size - 8; text++) {
		if (*text == '\'')
			n += (size_t)sprintf(out + n, "'\\''");
		else
			out[n++] = *text;
	}
	out[n++] = '\'';
	out[n] = '\0';
}

static void make_command(const struct headd *h, char out[COMMAND_MAX])
{
	char file[4096 + 64];
	int n;

	quote(file, sizeof(file), own_file("pmi2x-dvmd"));
	if (h->options.launcher)
		n = snprintf(out, COMMAND_MAX, "exec %s ", h->options.launcher);
	else
		n = snprintf(out, COMMAND_MAX, SRUN, h->options.nodes,
			     h->options.nodes);
	snprintf(out + n, COMMAND_MAX - (size_t)n, "%s", file);
}

/* ---- starting ---- */

static int spawn(struct headd *h, struct daemon_process *d, char **argv)
{
	uv_stdio_container_t stdio[] = {
		{ .flags = UV_CREATE_PIPE | UV_READABLE_PIPE,
		  .data.stream = (uv_stream_t *)&d->input },
		{ .flags = UV_INHERIT_FD, .data.fd = 2 },
		{ .flags = UV_INHERIT_FD, .data.fd = 2 },
	};
	uv_process_options_t options = {
		.file = argv[0], .args = argv, .stdio = stdio, .stdio_count = 3,
		.exit_cb = on_daemon_exit,
	};
	uv_buf_t text;
	int rc;

	d->head = h;
	d->process.data = d->input.data = d->write.data = d;
	d->text = welcome_format(&h->welcome);
	if (!d->text)
		return -ENOMEM;
	uv_pipe_init(loop_uv(h->loop), &d->input, 0);
	rc = uv_spawn(loop_uv(h->loop), &d->process, &options);
	if (rc)
		return rc;
	d->running = true;
	h->ndaemons++;
	text = uv_buf_init(d->text, (unsigned)strlen(d->text));
	return uv_write(&d->write, (uv_stream_t *)&d->input, &text, 1, on_told);
}

static int launch_local(struct headd *h)
{
	char position[16], name[32];
	char *argv[] = { (char *)own_file("pmi2x-dvmd"), position, name, NULL };
	int rc = 0;

	for (uint32_t i = 0; !rc && i < h->options.nodes; i++) {
		snprintf(position, sizeof(position), "%u", i);
		snprintf(name, sizeof(name), "local%u", i);
		rc = spawn(h, &h->daemons[i], argv);
	}
	return rc;
}

int launch_daemons(struct headd *h)
{
	char command[COMMAND_MAX];
	char *argv[] = { "/bin/sh", "-c", command, NULL };

	h->daemons = calloc(h->options.local ? h->options.nodes : 1,
			    sizeof(*h->daemons));
	if (!h->daemons)
		return -ENOMEM;
	if (h->options.local)
		return launch_local(h);
	make_command(h, command);
	return spawn(h, &h->daemons[0], argv);
}

void launch_kill(struct headd *h)
{
	uint32_t n = h->options.local ? h->options.nodes : 1;

	for (uint32_t i = 0; h->daemons && i < n; i++)
		if (h->daemons[i].running)
			uv_process_kill(&h->daemons[i].process, SIGTERM);
}
