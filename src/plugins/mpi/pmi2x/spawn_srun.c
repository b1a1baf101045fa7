/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Command line and environment of the srun that carries out a spawn. */
#include "spawn_srun.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch_env.h"
#include "libshm/records.h"
#include "libpmi/spawn_script.h"
#include "libutil/buf.h"
#include "strvec.h"

/* The new srun's end of the pair has the first number that is free there. */
#define CHANNEL_FD (STDERR_FILENO + 1)

extern char **environ;

static const char *const known_keys[] = { "wdir", "path", "host", "env", NULL };

/*
 * Only these SLURM_* variables go on to the new srun, besides those that describe the
 * job: it would take the others for options, such as the number of tasks of the
 * spawning step.
 */
static const char *const kept_variables[] = {
	"SLURM_CONF=", "SLURM_SACK_SOCKET=", "SLURM_CLUSTER_NAME=",
	"SLURM_CLUSTERS=", "SLURM_WORKING_CLUSTER=", "SLURM_EXPORT_ENV=",
	"SLURM_LABELIO=", "SLURM_UNBUFFEREDIO=", "SLURM_SUBMIT_DIR=",
	"SLURM_SUBMIT_HOST=", "SLURM_SPANK_", "SLURM_JOB_", NULL
};

/* Variables of the job that are options for srun. */
static const char *const dropped_variables[] = {
	"SLURM_JOB_ID=", "SLURM_JOB_NUM_NODES=", "SLURM_JOB_NODELIST=", NULL
};

static bool starts_with(const char *text, const char *const *prefixes)
{
	for (; *prefixes; prefixes++)
		if (!strncmp(text, *prefixes, strlen(*prefixes)))
			return true;
	return false;
}

/* ---- the program ---- */

static void add_script(struct strvec *w, const struct spawn_request *r)
{
	const char *text = NULL;
	struct buf script;
	int rc;

	buf_init(&script, SPAWN_WORD_MAX - 1);
	rc = spawn_script(&script, r);
	if (!rc)
		text = buf_cstr(&script);
	if (text) {
		strvec_add(w, "/bin/sh");
		strvec_add(w, "-c");
		strvec_add(w, text);
	} else if (!w->error) {
		w->error = rc == -ENOBUFS ? -E2BIG : -ENOMEM;
	}
	buf_free(&script);
}

static void add_program(struct strvec *w, const struct spawn_command *c)
{
	strvec_add(w, c->program);
	for (uint32_t i = 0; i < c->argc; i++) {
		if (strlen(c->argv[i]) >= SPAWN_WORD_MAX && !w->error)
			w->error = -E2BIG;
		strvec_add(w, c->argv[i]);
	}
}

/* ---- placement ---- */

static bool wants_hosts(const struct spawn_request *r)
{
	for (uint32_t k = 0; k < r->ncommands; k++)
		if (spawn_info(&r->commands[k], "host"))
			return true;
	return false;
}

/*
 * One name for each process; a command's processes are placed block by block over its
 * nodes.
 */
static int put_hosts(struct buf *b, const struct spawn_command *c,
		     char *const *nodes, uint32_t nnodes)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < c->nprocs; i++) {
		uint32_t node = (uint32_t)((uint64_t)i * nnodes / c->nprocs);

		rc = buf_printf(b, "%s%s", b->len ? "," : "", nodes[node]);
	}
	return rc;
}

static int put_host_list(struct buf *b, const struct spawn_request *r,
			 const struct spawn_place *p)
{
	int rc = 0;

	for (uint32_t k = 0; !rc && k < r->ncommands; k++) {
		const struct spawn_command *c = &r->commands[k];
		const char *host = spawn_info(c, "host");
		char **names = NULL;
		uint32_t count = 0;

		if (host)
			names = p->expand(host, &count);
		if (host && !count)
			rc = -EINVAL;
		else if (host)
			rc = put_hosts(b, c, names, count);
		else
			rc = put_hosts(b, c, p->nodes, p->nnodes);
		strvec_free(names);
	}
	return rc;
}

static void add_hosts(struct strvec *w, const struct spawn_request *r,
		      const struct spawn_place *p)
{
	const char *text = NULL;
	struct buf list;
	int rc;

	buf_init(&list, SPAWN_WORD_MAX - sizeof("--nodelist="));
	rc = put_host_list(&list, r, p);
	if (!rc)
		text = buf_cstr(&list);
	if (text) {
		strvec_add(w, "--distribution=arbitrary");
		strvec_printf(w, "--nodelist=%s", text);
	} else if (!w->error) {
		w->error = rc == -ENOBUFS ? -E2BIG : rc ? rc : -ENOMEM;
	}
	buf_free(&list);
}

/* ---- the two vectors ---- */

int spawn_srun_args(const struct spawn_request *r, const struct spawn_place *p,
		    char ***args)
{
	uint32_t procs = spawn_procs(r);
	struct strvec w = { 0 };

	strvec_add(&w, p->srun);
	strvec_add(&w, "--mpi=pmi2x");
	strvec_printf(&w, "--jobid=%u", p->job_id);
	/* The allocation is in use by the spawning step: do not wait for it. */
	strvec_add(&w, "--overlap");
	if (p->universe_size && procs > p->universe_size)
		strvec_add(&w, "--overcommit");
	strvec_add(&w, "--input=none");
	strvec_printf(&w, "--ntasks=%u", procs);
	if (wants_hosts(r))
		add_hosts(&w, r, p);
	strvec_add(&w, "--");
	if (spawn_wants_script(r))
		add_script(&w, r);
	else
		add_program(&w, &r->commands[0]);
	return strvec_end(&w, args);
}

static void add_apps(struct strvec *w, const struct spawn_request *r)
{
	struct buf text;
	int rc = 0;

	if (r->ncommands < 2)
		return;
	buf_init(&text, SPAWN_WORD_MAX - 1);
	for (uint32_t k = 0; !rc && k < r->ncommands; k++)
		rc = buf_printf(&text, "%s%u", k ? "," : LAUNCH_APPS "=",
				r->commands[k].nprocs);
	if (!rc && buf_cstr(&text))
		strvec_add(w, text.data);
	else if (!w->error)
		w->error = rc ? rc : -ENOMEM;
	buf_free(&text);
}

static void add_preput(struct strvec *w, const struct spawn_request *r)
{
	struct buf records;
	char *text = NULL;
	int rc = 0;

	if (!r->npreput)
		return;
	buf_init(&records, LAUNCH_PREPUT_MAX);
	for (uint32_t i = 0; !rc && i < r->npreput; i++)
		rc = record_append(&records, r->preput[i].key,
				   strlen(r->preput[i].key), r->preput[i].value,
				   strlen(r->preput[i].value));
	if (!rc)
		text = launch_preput_text(records.data, records.len);
	if (text)
		strvec_printf(w, LAUNCH_PREPUT "=%s", text);
	else if (!w->error)
		w->error = rc == -ENOBUFS ? -E2BIG : rc ? rc : -ENOMEM;
	free(text);
	buf_free(&records);
}

static bool goes_on(const char *variable)
{
	if (!strncmp(variable, "PMI2X_SPAWN", strlen("PMI2X_SPAWN")) ||
	    !strncmp(variable, LAUNCH_APPS "=", sizeof(LAUNCH_APPS)) ||
	    !strncmp(variable, LAUNCH_PREPUT "=", sizeof(LAUNCH_PREPUT)))
		return false;
	if (strncmp(variable, "SLURM_", strlen("SLURM_")))
		return true;
	return starts_with(variable, kept_variables) &&
		!starts_with(variable, dropped_variables);
}

int spawn_srun_env(const struct spawn_request *r, const struct spawn_place *p,
		   char *const *env, int fd, char ***out)
{
	struct strvec w = { 0 };

	for (; *env; env++)
		if (goes_on(*env))
			strvec_add(&w, *env);
	strvec_printf(&w, LAUNCH_SPAWN_FD "=%d", fd);
	strvec_printf(&w, LAUNCH_SPAWNER_JOBID "=%s", p->jobid);
	add_apps(&w, r);
	add_preput(&w, r);
	return strvec_end(&w, out);
}

void spawn_srun_unknown(const struct spawn_request *r,
			const struct log_hook *log)
{
	for (uint32_t k = 0; k < r->ncommands; k++) {
		const struct spawn_command *c = &r->commands[k];

		for (uint32_t i = 0; i < c->ninfo; i++) {
			const char *const *known = known_keys;

			while (*known && strcmp(*known, c->info[i].key))
				known++;
			if (!*known)
				log_debug(log, "spawn: ignoring info key %s",
					  c->info[i].key);
		}
	}
}

/* ---- the process ---- */

/* srun blocks signals in its threads; the new one must start without. */
static int set_signals(posix_spawnattr_t *attributes)
{
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	rc = posix_spawnattr_setsigmask(attributes, &none);
	if (!rc)
		rc = posix_spawnattr_setsigdefault(attributes, &all);
	if (!rc)
		rc = posix_spawnattr_setflags(attributes,
					      POSIX_SPAWN_SETSIGMASK |
					      POSIX_SPAWN_SETSIGDEF);
	return rc;
}

/*
 * Nothing else of ours is for the new srun. Slurm's pipes come without CLOEXEC:
 * one tells a process of srun's own, by its end, that srun was killed.
 */
static int close_others(posix_spawn_file_actions_t *files)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
	return posix_spawn_file_actions_addclosefrom_np(files, CHANNEL_FD + 1);
#else
	(void)files;
	return 0;
#endif
}

static int set_files(posix_spawn_file_actions_t *files, int fd)
{
	int rc = posix_spawn_file_actions_addopen(files, STDIN_FILENO,
						  "/dev/null", O_RDONLY, 0);

	if (!rc) /* dup2 takes CLOEXEC away, also from the same number */
		rc = posix_spawn_file_actions_adddup2(files, fd, CHANNEL_FD);
	return rc ? rc : close_others(files);
}

/* posix_spawn, since between fork and exec a threaded program may do little. */
static pid_t run(char **args, char **env, int fd)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	pid_t pid;
	int rc;

	rc = posix_spawn_file_actions_init(&files);
	if (rc)
		return -rc;
	rc = posix_spawnattr_init(&attributes);
	if (rc)
		goto free_files;
	rc = set_signals(&attributes);
	if (!rc)
		rc = set_files(&files, fd);
	if (!rc)
		rc = posix_spawnp(&pid, args[0], &files, &attributes, args, env);
	posix_spawnattr_destroy(&attributes);
free_files:
	posix_spawn_file_actions_destroy(&files);
	return rc ? -rc : pid;
}

pid_t spawn_srun_start(const struct spawn_request *r,
		       const struct spawn_place *p, int *fd)
{
	char **args = NULL, **env = NULL;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = spawn_srun_args(r, p, &args);
	if (!pid)
		pid = spawn_srun_env(r, p, environ, CHANNEL_FD, &env);
	if (!pid)
		pid = run(args, env, pair[1]);
	strvec_free(args);
	strvec_free(env);
	close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	else
		*fd = pair[0];
	return pid;
}
