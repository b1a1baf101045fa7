/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm batch: each line of a file is a task. It joins the DVM of its job or machine,
 * or starts one, which ends with its last client. The batch's directory and results
 * (batch_dir.h, batch_lines.h) have the state of earlier runs.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dvm/cli/batch_dir.h"
#include "dvm/cli/batch_lines.h"
#include "dvm/cli/complete_output.h"
#include "dvm/cli/dvm.h"
#include "dvm/cli/interrupt.h"
#include "dvm/cli/last_client.h"
#include "dvm/cli/standard_input.h"
#include "dvm/cli/submission.h"
#include "dvm/cli/task_text.h"
#include "dvm/core/dvm_msg.h"
#include "libio/clock.h"
#include "libutil/plural.h"

#define GONE_SHOWN 10
#define TRY_MS 50 /* before the next look for a DVM that ends */

struct line {
	char *text;
	size_t number; /* in the file */
	bool retry;    /* it failed in an earlier run */
};

struct batch {
	struct submission s;
	struct batch_dir dir;
	struct batch_lines known;
	bool own;      /* this client has started the DVM */
	bool used;     /* the DVM writes the journal in dir */
	bool over;     /* ignore results of earlier runs */
	bool resumes;  /* an earlier run has begun, and lines of it may have ended */
	struct line *lines; /* to run */
	size_t nlines, cap;
	int argc;      /* of the command, to print it */
	char **argv;
};

/* ---- the DVM ---- */

static int add_option(char **args, char *option, const char *value)
{
	if (!value)
		return 0;
	args[0] = option;
	args[1] = (char *)(uintptr_t)value;
	return 2;
}

/* Start it; with a journal that is there, paused. False: another client does so now. */
static bool start(struct batch *b)
{
	char *args[9] = { "up" };
	bool resume;
	int n = 1;

	if (b->over)
		batch_dir_start_over(&b->dir, false, 0);
	b->over = false;
	resume = batch_dir_has_journal(&b->dir);

	n += add_option(args + n, "--local", b->s.local);
	n += add_option(args + n, "--orphan", b->s.orphan);
	n += add_option(args + n, resume ? "--resume" : "--journal", b->dir.dir);
	if (b->s.take_over && b->dir.dir)
		args[n++] = "--take-over";
	return up_for_batch(n, args, resume);
}

static void check_join(const struct batch *b)
{
	if (b->s.orphan || b->s.take_over)
		die("--orphan and --take-over are for a DVM of its own, and %s is up already: end it, or leave them out",
		    b->s.dvm);
}

/* Find the DVM that is meant, or start one. */
static void find_dvm(struct batch *b)
{
	const char *named = b->s.dvm ? b->s.dvm : getenv(DVM_NAME_VARIABLE);
	static char own[DVM_PATH_MAX];

	if (named && *named) {
		b->s.dvm = named;
		check_join(b);
		return;
	}
	while (!(b->s.dvm = dvm_joinable(b->s.local))) {
		b->own = start(b);
		if (!b->own)
			continue;
		dvm_default_name(own);
		b->s.dvm = own;
		return;
	}
	check_join(b);
}

static bool is_same_directory(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* False: it has just ended, or is about to. */
static bool connect_dvm(struct batch *b)
{
	json_t *hello;

	submission_begin(&b->s);
	hello = conn_try(b->s.conn, json_pack("{s:s,s:i}", "op", "hello", "version", DVM_VERSION));
	if (!b->own && (!hello || json_is_true(json_object_get(hello, "ending")))) {
		json_decref(hello);
		conn_close(b->s.conn);
		sleep_ms(TRY_MS);
		return false;
	}
	b->used = b->dir.dir && is_same_directory(get_text(hello, "journal"), b->dir.dir);
	json_decref(hello);
	up_joined();
	return true;
}

/* Connect to the DVM that is meant, or start one. */
static void take_dvm(struct batch *b)
{
	char *named = (char *)(uintptr_t)b->s.dvm;

	do {
		b->s.dvm = named;
		find_dvm(b);
	} while (!connect_dvm(b));
	if (!b->own)
		fprintf(stderr, "pmi2x-dvm: batch joins the DVM %s, which is up already%s\n",
			b->s.dvm, b->s.local ? ": --local has no effect" : "");
	if (b->used) /* its tasks go on with the journal */
		b->s.journal_at = b->dir.dir;
	else
		b->s.tied = true; /* no other client waits for them */
}

/* ---- lines ---- */

static void add_line(struct batch *b, const char *text, size_t number, bool retry)
{
	if (b->nlines == b->cap) {
		b->cap = b->cap ? 2 * b->cap : 1024;
		b->lines = realloc(b->lines, b->cap * sizeof(*b->lines));
	}
	if (!b->lines || !(b->lines[b->nlines].text = strdup(text)))
		die("out of memory");
	b->lines[b->nlines].number = number;
	b->lines[b->nlines++].retry = retry;
}

static void take_line(struct batch *b, const char *text, size_t number)
{
	enum line_state state = batch_lines_take(&b->known, text, number);
	struct results *r = &b->s.results;
	bool retry = state == LINE_FAILED && b->s.retry_failed;

	if (state == LINE_NEW || retry)
		add_line(b, text, number, retry);
	else if (state != LINE_PENDING)
		r->before++;
	r->failed_before += state == LINE_FAILED && !retry;
}

static void send_line(struct batch *b, const struct line *l)
{
	char *shell[] = { (char *)(uintptr_t)(b->s.shell ? b->s.shell : "/bin/sh"), "-c", l->text };
	json_t *list, *task;

	b->s.given = l->number;
	list = submission_command(&b->s, 3, shell, NULL);
	if (!list)
		return;
	task = json_deep_copy(b->s.task);
	json_object_set_new(task, "argv", list);
	/* The journal of another client has no lines of this file. */
	json_object_set_new(task, b->used ? "line" : "number",
			    json_integer((json_int_t)l->number | (l->retry ? LINE_RETRY : 0)));
	submission_add(&b->s, task, l->text, l->retry);
}

/* Each line is sent when it comes, where nothing is known of any. */
static void on_line(struct submission *s, char *text, int argc, char **argv)
{
	struct batch *b = (struct batch *)s;

	if (text[strspn(text, " \t")] == '#' || line_is_blank(text))
		return;
	if (b->resumes)
		take_line(b, text, s->given);
	else
		send_line(b, &(struct line){ .text = text, .number = s->given });
}

/* ---- what earlier runs did ---- */

/* The head's description of a task that has ended, or NULL. */
static json_t *find_ended(void *arg, json_int_t id)
{
	struct batch *b = arg;
	json_t *answer = conn_try(b->s.conn, json_pack("{s:s,s:I}", "op", "show", "id", id));
	json_t *task = json_incref(json_object_get(answer, "task"));

	json_decref(answer);
	return task;
}

static void read_known(struct batch *b)
{
	if (!b->resumes)
		return;
	if (b->used && !b->own) { /* else the head knows only what the journal has */
		b->known.find = find_ended;
		b->known.arg = b;
	}
	batch_lines_read_results(&b->known, b->dir.results);
	batch_lines_read_journal(&b->known, b->dir.dir, b->dir.ignore, &b->s.written);
	results_file_flush(&b->s.written);
}

static void name_gone(struct batch *b)
{
	size_t gone = 0;

	for (size_t i = 0; i < b->known.npending; i++) {
		const struct pending_line *p = &b->known.pending[i];

		if (p->wanted || batch_lines_in_file(p))
			continue;
		if (++gone <= GONE_SHOWN)
			fprintf(stderr, "pmi2x-dvm: this line is no longer in the file, and is not started: %s\n",
				batch_lines_text(p));
	}
	if (gone > GONE_SHOWN)
		fprintf(stderr, "pmi2x-dvm: nor are %zu more\n", gone - GONE_SHOWN);
}

static void ask_about(struct batch *b, const char *op, json_t *ids)
{
	if (json_array_size(ids))
		json_decref(conn_ask(b->s.conn, json_pack("{s:s,s:O}", "op", op, "ids", ids)));
	json_decref(ids);
}

/* Tasks of the DVM that are wanted go on; others are ended before any is started. */
static void take_up(struct batch *b)
{
	json_t *wanted = json_array(), *gone = json_array();

	for (size_t i = 0; i < b->known.npending; i++) {
		const struct pending_line *p = &b->known.pending[i];

		json_array_append_new(p->wanted ? wanted : gone, json_integer(p->id));
		if (p->wanted)
			submission_know(&b->s, p->id, p->line, batch_lines_text(p), p->retry);
	}
	b->s.results.submitted += json_array_size(wanted);
	ask_about(b, "cancel", gone);
	ask_about(b, "wait", wanted);
	json_decref(conn_ask(b->s.conn, json_pack("{s:s}", "op", "go")));
}

/* Tasks that a lost DVM had are submitted again to a new one. */
static void forget_pending(struct batch *b)
{
	for (size_t i = 0; i < b->known.npending; i++) {
		struct pending_line *p = &b->known.pending[i];

		if (p->wanted)
			add_line(b, batch_lines_text(p), p->line, p->retry);
	}
}

/* ---- the end ---- */

static bool all_succeeded(const struct batch *b)
{
	const struct results *r = &b->s.results;

	return !r->failed && !r->refused && !r->failed_before && !interrupt_number();
}

static void on_event(void *arg, json_t *event)
{
	results_event(&((struct batch *)arg)->s.results, event);
}

/* End the DVM of a batch, if nobody else uses it. True: it has ended. */
static bool end_dvm(struct batch *b, const char *work)
{
	long long others = last_client_leaves(b->s.conn, work, on_event, b);

	if (others > 0)
		fprintf(stderr, "pmi2x-dvm: the DVM %s goes on for %lld other client%s\n",
			conn_name(b->s.conn), others, plural(others));
	if (others)
		return false;
	if (!interrupt_number())
		conn_say_logs(b->s.conn);
	return true;
}

static void print_quoted(const char *word)
{
	if (word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			      "_-./=:,+%@")]) {
		fputc('\'', stderr);
		for (; *word; word++)
			fputs(*word == '\'' ? "'\\''" : (char[]){ *word, '\0' }, stderr);
		fputc('\'', stderr);
	} else {
		fputs(*word ? word : "''", stderr);
	}
}

/* Print how many lines have ended, and the command that continues. */
static void say_how_to_go_on(struct batch *b, const char *what)
{
	struct results *r = &b->s.results;
	size_t ended = r->before + r->done + r->ended_failed;

	fputs(r->progress.tty ? "\n" : "", stderr);
	results_say_where(r);
	fprintf(stderr, "pmi2x-dvm: %s: %zu line%s ended, %zu of them failed",
		what, ended, ended == 1 ? " has" : "s have",
		r->failed_before + r->ended_failed);
	if (!b->dir.dir) {
		fputs("; a file that is not regular, as standard input, has no journal without --journal\n", stderr);
		return;
	}
	fputs("\npmi2x-dvm: this goes on: pmi2x-dvm", stderr);
	for (int i = 0; i < b->argc; i++) {
		fputc(' ', stderr);
		print_quoted(b->argv[i]);
	}
	fputc('\n', stderr);
}

/* SIGTERM leaves tasks the grace time: Slurm sends it before a job's end. */
static void __attribute__((noreturn)) stop(struct batch *b)
{
	struct results *r = &b->s.results;

	r->stopping = true;
	if (!end_dvm(b, interrupt_number() == SIGTERM ? "keep" : "stop")) {
		ask_about(b, "cancel", submission_living(&b->s));
		(void)results_collect(r, b->s.conn, true);
	}
	(void)results_file_close(&b->s.written);
	say_how_to_go_on(b, "interrupted");
	interrupt_die();
}

/* The DVM has gone, unless a signal has come. */
static void lose(struct batch *b)
{
	if (interrupt_number())
		return;
	conn_say_logs(b->s.conn);
	(void)results_file_close(&b->s.written);
	say_how_to_go_on(b, conn_end(b->s.conn));
	exit(1);
}

static int end(struct batch *b)
{
	bool over;
	int rc = results_end(&b->s.results, b->used ? NULL : b->s.conn);

	over = end_dvm(b, b->used ? "cancel" : "stop"); /* other tasks are another batch's */
	conn_close(b->s.conn);
	if (all_succeeded(b))
		batch_dir_finish(&b->dir, b->used && !over, b->s.last > b->known.last ?
				 b->s.last : b->known.last);
	else if (b->dir.dir)
		fprintf(stderr, "the journal is kept: %s\n", b->s.results.failed || b->s.results.failed_before ?
			"--retry-failed runs the lines that have failed again" :
			"the same command tries the rejected lines again");
	results_say_where(&b->s.results);
	batch_lines_free(&b->known);
	return rc;
}

/* ---- the command ---- */

static void open_results(struct batch *b)
{
	int rc;

	if (!b->dir.results)
		return;
	rc = results_file_open(&b->s.written, b->dir.results);
	if (rc)
		die("cannot write %s: %s", b->dir.results, strerror(-rc));
	b->s.results.file = &b->s.written;
}

/* As of b->over. Tasks of earlier runs that the DVM still has are ended. */
static void start_over(struct batch *b)
{
	struct batch_lines old = { 0 };
	struct results_file none = { .fd = -1 };
	json_t *ids = json_array();

	if (b->used)
		batch_lines_read_journal(&old, b->dir.dir, b->dir.ignore, &none);
	for (size_t i = 0; i < old.npending; i++)
		json_array_append_new(ids, json_integer(old.pending[i].id));
	ask_about(b, "cancel", ids);
	batch_dir_start_over(&b->dir, b->used, old.last);
	batch_lines_free(&old);
}

static void run_lines(struct batch *b, FILE *in)
{
	submission_for_lines(&b->s, in, 0, NULL, on_line);
	if (interrupt_number())
		return;
	name_gone(b);
	if (b->used && b->known.npending)
		take_up(b);
	else if (b->used)
		json_decref(conn_ask(b->s.conn, json_pack("{s:s}", "op", "go")));
	else
		forget_pending(b);
	for (size_t i = 0; i < b->nlines && !submission_stops(&b->s); i++)
		send_line(b, &b->lines[i]);
	if (!interrupt_number())
		submission_flush(&b->s);
}

int cmd_batch(int argc, char **argv)
{
	static struct batch b = { .s = { .wait = true, .keeps = true, .options_anywhere = true,
					 .written = { .fd = -1 } } };
	FILE *in;

	b.argc = argc;
	b.argv = argv;
	task_options_take(&b.s, argc, argv);
	if (optind + 1 != argc)
		die_usage("batch: name a file (-: standard input)");
	if (b.s.stdin_goes && !strcmp(argv[optind], "-"))
		die_usage("batch: the lines come from standard input: --stdin needs them in a file");
	output_options_check(&b.s, false);
	in = submission_open_input(&b.s, argv[optind]);
	submission_open_report(&b.s); /* report invalid options before a DVM is started */
	batch_dir_open(&b.dir, argv[optind], b.s.journal);
	b.s.named_results = !b.dir.results;
	if (b.dir.results)
		b.s.outputs = complete_output_dir(b.dir.results);
	b.over = b.s.again || b.dir.finished;
	if (b.s.stdin_goes)
		b.s.input = standard_input_read("batch");
	take_dvm(&b);
	interrupt_catch();
	if (b.over)
		start_over(&b);
	b.resumes = b.dir.begun;
	batch_dir_begin(&b.dir);
	open_results(&b);
	read_known(&b);
	run_lines(&b, in);
	if (!interrupt_number() && !results_collect(&b.s.results, b.s.conn, true))
		lose(&b);
	if (interrupt_number())
		stop(&b);
	return end(&b);
}
