/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starting the daemons: as processes here, or by one command, which is srun's unless the
 * user has another. Their options go over their standard input. Daemons that come later
 * have a command of their own; when that fails, none of them joins.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utlist.h>

#include "dvm/common/core_file.h"
#include "dvm/common/environ.h"
#include "dvm/common/rlimits.h"
#include "dvm/common/rundir.h"
#include "dvm/common/self_path.h"
#include "dvm/head/head_main.h"

#define WORDS_MAX 1024

/*
 * No PMI, no share of memory or cores: the steps of the tasks' own user go on beside it,
 * and the loss of a node does not end the others' daemons.
 */
#define WORDS_MS 1000 /* for srun to pass on the words of a daemon that has ended */
#define SRUN "exec srun --mpi=none --overlap --no-kill -K0 --mem=0 --cpu-bind=none " \
	"--input=all --nodes=%u --ntasks=%u --ntasks-per-node=1 "

/* Daemons that are started together. */
struct step {
	uint32_t first, nodes; /* their positions */
	bool more;             /* others have been started before */
	uint64_t job;          /* 0: the head's */
	const char *names;     /* NULL: any */
};

struct daemon_process {
	struct head_main *head;
	uint32_t first;  /* position, or that of the first of a step */
	uv_process_t process;
	uv_pipe_t input;
	uv_write_t write;
	char *text;      /* standard input */
	uv_write_t write_more;
	char *more;      /* what follows the text: addresses of relays */
	bool waits;      /* for these */
	bool running;
	unsigned open;   /* of process and input */
	struct daemon_process *prev, *next;
};

static void on_closed(uv_handle_t *handle)
{
	struct daemon_process *d = handle->data;

	if (--d->open)
		return;
	DL_DELETE(d->head->daemons, d);
	free(d);
}

static void forget_text(struct daemon_process *d)
{
	if (d->text)
		explicit_bzero(d->text, strlen(d->text));
	free(d->text);
	d->text = NULL;
}

static void on_input_closed(uv_handle_t *input)
{
	struct daemon_process *d = input->data;

	forget_text(d);
	free(d->more);
	d->more = NULL;
	on_closed(input);
}

static void close_input(struct daemon_process *d)
{
	d->waits = false;
	if (!uv_is_closing((uv_handle_t *)&d->input))
		uv_close((uv_handle_t *)&d->input, on_input_closed);
}

static void on_told(uv_write_t *write, int status)
{
	struct daemon_process *d = write->data;

	forget_text(d);
	if (status || (!d->waits && !d->more))
		close_input(d);
}

static void on_told_more(uv_write_t *write, int status)
{
	close_input(write->data);
}

static void tell_more(struct daemon_process *d)
{
	uv_buf_t text;

	d->waits = false;
	d->more = head_tree_addresses(d->head, d->head->options.nodes);
	text = uv_buf_init(d->more, d->more ? (unsigned)strlen(d->more) : 0);
	if (!d->more || uv_write(&d->write_more, (uv_stream_t *)&d->input, &text, 1, on_told_more))
		close_input(d);
}

void launch_tell_addresses(struct head_main *h)
{
	struct daemon_process *d;

	DL_FOREACH(h->daemons, d)
		if (d->waits)
			tell_more(d);
}

void launch_tell_no_addresses(struct head_main *h)
{
	struct daemon_process *d;

	DL_FOREACH(h->daemons, d)
		if (d->waits)
			close_input(d);
}

/* ---- those that end too early ---- */

/* The end of the log, as far as the log has grown since the DVM began to grow. */
static void last_words(const struct head_main *h, char words[WORDS_MAX])
{
	char path[4096];
	off_t end, from;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/" HEADD_LOG, h->options.dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	end = lseek(fd, 0, SEEK_END);
	from = end - h->log_at < WORDS_MAX ? h->log_at : end - WORDS_MAX + 1;
	n = pread(fd, words, WORDS_MAX - 1, from);
	while (n > 0 && words[n - 1] == '\n')
		n--;
	words[n > 0 ? n : 0] = '\0';
	for (char *c = words; *c; c++) /* the text may be cut inside a character */
		if (*c & 0x80)
			*c = '?';
	if (fd >= 0)
		close(fd);
}

/* The first that a daemon has said, which is most often the cause; or "". */
static void first_words(const struct head_main *h, char words[WORDS_MAX])
{
	char path[4096], line[WORDS_MAX / 2];
	FILE *log;

	snprintf(path, sizeof(path), "%s/" HEADD_LOG, h->options.dir);
	log = fopen(path, "re");
	*words = '\0';
	while (log && !*words && fgets(line, sizeof(line), log))
		if (!strncmp(line, "pmi2x-dvmd on ", 14))
			snprintf(words, WORDS_MAX, "%.*s", (int)strcspn(line, "\n"), line);
	if (log)
		fclose(log);
}

void launch_ready(struct head_main *h)
{
	char words[WORDS_MAX];
	struct stat log;

	first_words(h, words);
	if (!*words && !fstat(STDERR_FILENO, &log))
		h->log_notes = log.st_size;
}

static void ended_early(struct head_main *h, int64_t code, int signal)
{
	const char *who = h->options.local ? "a daemon" : "the command that starts the daemons";
	const char *how = signal ? "signal" : "exit code";
	char words[WORDS_MAX], why[WORDS_MAX + 128];

	if (!h->ready) {
		first_words(h, words);
		head_fail(h, "%s has ended, with %s %d, before all nodes were up%s%s",
			   who, how, signal ? signal : (int)code, *words ? ": " : "", words);
		return;
	}
	last_words(h, words);
	snprintf(why, sizeof(why), "%s has ended, with %s %d, before all nodes were up\n%s",
		 who, how, signal ? signal : (int)code, words);
	dvm_head_grow_failed(h->head, why);
}

static void on_words(uv_timer_t *limit)
{
	struct head_main *h = limit->data;
	char words[WORDS_MAX];

	first_words(h, words);
	head_fail(h, "a daemon has ended before all nodes were up%s%s", *words ? ": " : "", words);
}

void launch_daemon_lost(struct head_main *h)
{
	uv_timer_start(&h->limit, on_words, h->options.local ? 0 : WORDS_MS, 0);
}

static void on_daemon_exit(uv_process_t *process, int64_t code, int signal)
{
	struct daemon_process *d = process->data;
	struct head_main *h = d->head;

	d->running = false;
	h->ndaemons--;
	if (d->waits)
		close_input(d);
	if (!h->leaving && (!h->ready || d->first >= dvm_head_registered(h->head)))
		ended_early(h, code, signal);
	uv_close((uv_handle_t *)process, on_closed);
	h->hooks->check_left(h);
}

/* ---- commands ---- */

static const char *own_file(const char *name)
{
	static char path[PATH_MAX + 64];
	char dir[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", own_dir(dir, sizeof(dir)) ? dir : "", name);
	return path;
}

/* 'it''s' in a shell. */
static void quote(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text; text++)
		if (*text == '\'')
			fputs("'\\''", out);
		else
			fputc(*text, out);
	fputc('\'', out);
}

/* Names of the nodes that have a daemon, as a list. */
static void put_used(FILE *out, const struct head_main *h)
{
	const char *name, *comma = "";

	for (uint32_t i = 0; i < dvm_head_positions(h->head); i++) {
		name = h->links[i] && i < h->norphans ? orphans_name(h, i) :
			dvm_head_node_name(h->head, i);
		if (!name)
			continue;
		fputs(comma, out);
		quote(out, name);
		comma = ",";
	}
}

/* Print the place of a step whose nodes come later. */
static void put_where(FILE *out, const struct head_main *h, const struct step *s)
{
	const char *own = getenv("SLURM_JOB_ID");

	fputs("--jobid=", out);
	if (s->job)
		fprintf(out, "%llu", (unsigned long long)s->job);
	else
		quote(out, own ? own : "");
	fputs(s->names ? " --nodelist=" : " --exclude=", out);
	if (s->names)
		quote(out, s->names);
	else
		put_used(out, h);
	fputc(' ', out);
}

static void put_names(FILE *out, const char *names)
{
	fputs("--nodelist=", out);
	quote(out, names);
	fputc(' ', out);
}

/* To be freed; NULL: no memory. */
static char *make_command(const struct head_main *h, const struct step *s)
{
	char *command = NULL;
	size_t size;
	FILE *out = open_memstream(&command, &size);

	if (!out)
		return NULL;
	if (h->options.launcher)
		fprintf(out, "export PMI2X_DVM_NODES=%u; exec %s ", s->nodes,
			h->options.launcher);
	else
		fprintf(out, SRUN, s->nodes, s->nodes);
	if (s->more && !h->options.launcher)
		put_where(out, h, s);
	else if (h->options.names)
		put_names(out, h->options.names);
	else if (h->options.relative && !h->options.launcher)
		fprintf(out, "--relative=%u ", h->options.relative);
	quote(out, own_file("pmi2x-dvmd"));
	if (fclose(out) == 0)
		return command;
	free(command);
	return NULL;
}

/*
 * For srun, which is told the job: of the variables of Slurm, which are about this job
 * and step, those by which it reaches the controller.
 */
static bool is_for_srun(const char *variable)
{
	return strncmp(variable, "SLURM_", 6) || !strncmp(variable, "SLURM_CONF=", 11) ||
	       !strncmp(variable, "SLURM_SACK_SOCKET=", 18) ||
	       !strncmp(variable, "SLURM_JWT=", 10);
}

/* ---- starting ---- */

/* The process is there, or rc says why not. */
static int tell(struct head_main *h, struct daemon_process *d, int rc)
{
	uv_buf_t text = uv_buf_init(d->text, (unsigned)strlen(d->text));

	d->running = !rc;
	h->ndaemons += d->running;
	if (rc)
		uv_close((uv_handle_t *)&d->process, on_closed);
	else
		rc = uv_write(&d->write, (uv_stream_t *)&d->input, &text, 1, on_told);
	if (rc)
		close_input(d);
	return rc;
}

/* To be freed; NULL: no memory. `waits`: addresses of relays follow. */
static char *make_text(struct head_main *h, uint32_t first, bool *waits)
{
	char *text, *more, *both = NULL;

	h->welcome.first = h->options.local ? 0 : first;
	text = welcome_format(&h->welcome);
	h->welcome.first = 0;
	*waits = h->tree && !head_tree_knows_addresses(h);
	if (!h->tree || *waits || !text)
		return text;
	more = head_tree_addresses(h, dvm_head_positions(h->head));
	if (!more || asprintf(&both, "%s%s", text, more) < 0)
		both = NULL;
	explicit_bzero(text, strlen(text));
	free(text);
	free(more);
	return both;
}

/* The limits are for ranks, too. */
static int spawn_with_limits(struct head_main *h, struct daemon_process *d,
				 const uv_process_options_t *options)
{
	struct rlimit none;
	int rc;

	setrlimit(RLIMIT_CORE, &h->core);
	setrlimit(RLIMIT_NOFILE, &h->files);
	rc = uv_spawn(loop_uv(h->loop), &d->process, options);
	core_file_forbid(&none);
	rlimits_raise(&none);
	return rc;
}

static int spawn(struct head_main *h, uint32_t first, char **argv, char **env)
{
	struct daemon_process *d = calloc(1, sizeof(*d));
	uv_stdio_container_t stdio[] = {
		{ .flags = UV_CREATE_PIPE | UV_READABLE_PIPE },
		{ .flags = UV_INHERIT_FD, .data.fd = 2 },
		{ .flags = UV_INHERIT_FD, .data.fd = 2 },
	};
	uv_process_options_t options = {
		.file = argv[0], .args = argv, .env = env, .stdio = stdio,
		.stdio_count = 3, .exit_cb = on_daemon_exit,
	};

	if (d)
		d->text = make_text(h, first, &d->waits);
	if (!d || !d->text) {
		free(d);
		return -ENOMEM;
	}
	d->head = h;
	d->first = first;
	d->open = 2;
	DL_APPEND(h->daemons, d);
	uv_pipe_init(loop_uv(h->loop), &d->input, 0);
	d->process.data = d->input.data = d->write.data = d->write_more.data = d;
	stdio[0].data.stream = (uv_stream_t *)&d->input;
	return tell(h, d, spawn_with_limits(h, d, &options));
}

static int launch_local(struct head_main *h, const struct step *s)
{
	char position[16], name[32];
	char *argv[] = { (char *)own_file("pmi2x-dvmd"), position, name, NULL };
	int rc = 0;

	for (uint32_t i = 0; !rc && i < s->nodes; i++) {
		snprintf(position, sizeof(position), "%u", s->first + i);
		snprintf(name, sizeof(name), "local%u", h->options.relative + s->first + i);
		rc = spawn(h, s->first + i, argv, NULL);
	}
	return rc;
}

static int launch(struct head_main *h, const struct step *s)
{
	char *command = make_command(h, s);
	char *argv[] = { "/bin/sh", "-c", command, NULL };
	bool srun = s->more && !h->options.launcher;
	char **env = srun ? environ_filter(is_for_srun) : NULL;
	int rc = -ENOMEM;

	if (command && (env || !srun))
		rc = spawn(h, s->first, argv, env);
	free(env);
	free(command);
	return rc;
}

int launch_daemons(struct head_main *h)
{
	const struct step s = {
		.first = h->norphans, .nodes = h->options.nodes - h->norphans,
		.more = h->norphans,
	};

	if (!s.nodes)
		return 0;
	return h->options.local ? launch_local(h, &s) : launch(h, &s);
}

/* ---- more ---- */

static bool any_runs(const struct head_main *h, uint32_t first)
{
	const struct daemon_process *d;

	DL_FOREACH(h->daemons, d)
		if (d->running && d->first >= first)
			return true;
	return false;
}

int launch_more(void *head, uint32_t nodes, uint64_t job, const char *names)
{
	struct head_main *h = head;
	const struct step s = {
		.first = dvm_head_positions(h->head) - nodes, .nodes = nodes,
		.more = true, .job = job, .names = names,
	};

	if ((h->options.local || h->options.launcher) && (job || names))
		return -ENOTSUP;
	if (any_runs(h, s.first) || nodes_any(h, s.first))
		return -EBUSY;
	if (nodes_make_room(h, s.first + nodes))
		return -ENOMEM;
	if (h->tree)
		head_tree_forget(h, s.first);
	h->growing = true; /* a step that fails half-way is ended in the next turn */
	h->grow_until = head_now(h).ms + h->options.within_ms;
	h->log_at = lseek(STDERR_FILENO, 0, SEEK_END);
	return h->options.local ? launch_local(h, &s) : launch(h, &s);
}

void launch_turn(struct head_main *h)
{
	uint32_t all;

	if (h->growing && head_now(h).ms >= h->grow_until)
		dvm_head_grow_failed(h->head, "not all of them were up in time: see the log");
	all = dvm_head_positions(h->head);
	if (!h->growing || all > dvm_head_registered(h->head))
		return;
	h->growing = false;
	orphans_publish(h);
	launch_kill(h, all);
	for (uint32_t i = all; i < h->links_room; i++)
		nodes_break(h, i, "it cannot join");
}

void launch_kill(struct head_main *h, uint32_t first)
{
	struct daemon_process *d;

	DL_FOREACH(h->daemons, d)
		if (d->running && d->first >= first)
			uv_process_kill(&d->process, SIGTERM);
}
