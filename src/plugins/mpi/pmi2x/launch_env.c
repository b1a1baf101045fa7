/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The variables by which srun prepares the agents of a step. */
#include "slurm_compat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "launch_env.h"
#include "libutil/buf.h"
#include "libutil/decimal.h"

#define SECRET_NAME "PMI2X_SECRET"
#define PORT_NAME "PMI2X_SRUN_PORT"
#define JOBID_NAME "PMI2X_STEP_JOBID"
#define UNIVERSE_NAME "PMI2X_UNIVERSE"
#define TRACING_NAME "PMI2X_TRACING"
#define KILL_NAME "PMI2X_KILL"
#define NO_KILL_NAME "PMI2X_NO_KILL"
#define BASE64 sodium_base64_VARIANT_ORIGINAL
#define APPS_TEXT_MAX (LAUNCH_APPS_MAX * 11) /* ten digits and a comma each */

static int read_number(const char *text, uint32_t max, uint32_t *out)
{
	return decimal_u32(text, 0, max, out) ? 0 : -EINVAL;
}

static int read_secret(struct launch_env *l, const char *text)
{
	return secret_parse(&l->secret, text);
}

static int read_port(struct launch_env *l, const char *text)
{
	uint32_t port;
	int rc = read_number(text, UINT16_MAX, &port);

	if (!rc)
		l->srun_port = (uint16_t)port;
	return rc;
}

static int read_universe(struct launch_env *l, const char *text)
{
	return read_number(text, INT32_MAX, &l->universe_size);
}

static int read_trace(struct launch_env *l, const char *text)
{
	l->trace = !strcmp(text, "1");
	return 0;
}

static int read_kill(struct launch_env *l, const char *text)
{
	uint32_t kill;
	int rc = read_number(text, LAUNCH_KILL_YES, &kill);

	if (!rc)
		l->kill = kill;
	return rc;
}

static int read_no_kill(struct launch_env *l, const char *text)
{
	l->no_kill = !strcmp(text, "1");
	return 0;
}

static int read_text(char **out, const char *text)
{
	free(*out);
	*out = strdup(text);
	return *out ? 0 : -ENOMEM;
}

static int read_jobid(struct launch_env *l, const char *text)
{
	return launch_is_jobid(text) ? read_text(&l->jobid, text) : -EINVAL;
}

static int read_spawner(struct launch_env *l, const char *text)
{
	return launch_is_jobid(text) ? read_text(&l->spawner_jobid, text) :
				       -EINVAL;
}

static int read_apps(struct launch_env *l, const char *text)
{
	char *copy = strdup(text), *rest = copy, *item;
	int rc = copy ? 0 : -ENOMEM;

	free(l->app_sizes);
	l->napps = 0;
	l->app_sizes = calloc(LAUNCH_APPS_MAX, sizeof(*l->app_sizes));
	if (!l->app_sizes)
		rc = -ENOMEM;
	while (!rc && (item = strsep(&rest, ",")))
		rc = l->napps == LAUNCH_APPS_MAX ? -EINVAL :
		     read_number(item, INT32_MAX, &l->app_sizes[l->napps++]);
	free(copy);
	return rc;
}

static int read_preput(struct launch_env *l, const char *text)
{
	free(l->preput);
	l->preput_len = 0;
	l->preput = malloc(LAUNCH_PREPUT_MAX);
	if (!l->preput)
		return -ENOMEM;
	if (sodium_base642bin(l->preput, LAUNCH_PREPUT_MAX, text, strlen(text),
			      NULL, &l->preput_len, NULL, BASE64))
		return -EINVAL;
	return 0;
}

/* The variables and who reads them. */
static const struct variable {
	const char *name;
	int (*read)(struct launch_env *l, const char *text);
	bool inherited; /* a spawned srun has it from its parent */
} variables[] = {
	{ SECRET_NAME, read_secret, false },
	{ PORT_NAME, read_port, false },
	{ JOBID_NAME, read_jobid, false },
	{ UNIVERSE_NAME, read_universe, false },
	{ TRACING_NAME, read_trace, false },
	{ KILL_NAME, read_kill, false },
	{ NO_KILL_NAME, read_no_kill, false },
	{ LAUNCH_SPAWNER_JOBID, read_spawner, true },
	{ LAUNCH_APPS, read_apps, true },
	{ LAUNCH_PREPUT, read_preput, true },
};

#define VARIABLES (sizeof(variables) / sizeof(variables[0]))

static int write_secret(const struct launch_env *l, char ***env)
{
	char text[SECRET_TEXT_BYTES];

	secret_format(&l->secret, text);
	env_array_overwrite(env, SECRET_NAME, text);
	sodium_memzero(text, sizeof(text));
	return 0;
}

static int write_apps(const struct launch_env *l, char ***env)
{
	struct buf text;
	const char *value;
	int rc = 0;

	if (!l->napps)
		return 0;
	buf_init(&text, APPS_TEXT_MAX);
	for (uint32_t i = 0; !rc && i < l->napps; i++)
		rc = buf_printf(&text, "%s%u", i ? "," : "", l->app_sizes[i]);
	value = rc ? NULL : buf_cstr(&text);
	if (value)
		env_array_overwrite(env, LAUNCH_APPS, value);
	else if (!rc)
		rc = -ENOMEM;
	buf_free(&text);
	return rc;
}

static int write_preput(const struct launch_env *l, char ***env)
{
	char *text;

	if (!l->preput_len)
		return 0;
	if (l->preput_len > LAUNCH_PREPUT_MAX)
		return -E2BIG;
	text = launch_preput_text(l->preput, l->preput_len);
	if (!text)
		return -ENOMEM;
	env_array_overwrite(env, LAUNCH_PREPUT, text);
	free(text);
	return 0;
}

uint32_t launch_leader(uint32_t job, uint32_t het_job)
{
	return het_job && het_job != NO_VAL ? het_job : job;
}

int launch_env_write(const struct launch_env *l, char ***env)
{
	int rc;

	env_array_overwrite_fmt(env, PORT_NAME, "%u", l->srun_port);
	env_array_overwrite_fmt(env, UNIVERSE_NAME, "%u", l->universe_size);
	env_array_overwrite(env, JOBID_NAME, l->jobid);
	env_array_overwrite(env, TRACING_NAME, l->trace ? "1" : "0");
	env_array_overwrite_fmt(env, KILL_NAME, "%u", l->kill);
	env_array_overwrite(env, NO_KILL_NAME, l->no_kill ? "1" : "0");
	/* Empty says that what else there may be of a spawn is not ours. */
	env_array_overwrite(env, LAUNCH_SPAWNER_JOBID,
			    l->spawner_jobid ? l->spawner_jobid : "");
	rc = write_apps(l, env);
	if (!rc)
		rc = write_preput(l, env);
	if (!rc)
		rc = write_secret(l, env);
	return rc;
}

void launch_env_wipe(char **env)
{
	const size_t len = strlen(SECRET_NAME "=");

	for (char **at = env; at && *at; at++)
		if (!strncmp(*at, SECRET_NAME "=", len))
			sodium_memzero(*at + len, strlen(*at + len));
}

/* A secret of zeros, which everybody knows, is none. */
static bool secret_is_missing(const struct launch_env *l)
{
	return sodium_is_zero(l->secret.bytes, sizeof(l->secret.bytes));
}

int launch_env_take(struct launch_env *l, char ***env, const char **what)
{
	const char *spawner = getenvp(*env, LAUNCH_SPAWNER_JOBID);
	bool spawned = spawner && spawner[0];
	int rc = 0;

	memset(l, 0, sizeof(*l));
	for (size_t i = 0; i < VARIABLES; i++) {
		const char *text = getenvp(*env, variables[i].name);

		if (!text || rc || (variables[i].inherited && !spawned))
			continue;
		rc = variables[i].read(l, text);
		*what = variables[i].name;
	}
	launch_env_wipe(*env);
	for (size_t i = 0; i < VARIABLES; i++)
		unsetenvp(*env, variables[i].name);
	unsetenvp(*env, LAUNCH_SPAWN_FD);
	if (!rc && (!l->jobid || secret_is_missing(l))) {
		rc = -ENOENT;
		*what = SECRET_NAME;
	}
	return rc;
}

int launch_env_inherit(struct launch_env *l, const char **what)
{
	int rc = 0;

	if (!getenv(LAUNCH_SPAWN_FD))
		return 0;
	for (size_t i = 0; !rc && i < VARIABLES; i++) {
		const char *text = getenv(variables[i].name);

		if (!text || !variables[i].inherited)
			continue;
		rc = variables[i].read(l, text);
		*what = variables[i].name;
	}
	return rc;
}

void launch_env_free(struct launch_env *l)
{
	secret_forget(&l->secret);
	free(l->jobid);
	free(l->spawner_jobid);
	free(l->app_sizes);
	free(l->preput);
	memset(l, 0, sizeof(*l));
}
