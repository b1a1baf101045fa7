/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The variables by which srun prepares the agents of a step. */
#include "slurm_compat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch_env.h"
#include "libutil/buf.h"
#include "libutil/decimal.h"
#include "libutil/hex.h"

#define SECRET_NAME "PMI2X_SECRET"
#define SEED_NAME "PMI2X_PORT_SEED"
#define JOBID_NAME "PMI2X_STEP_JOBID"
#define APPS_TEXT_MAX (LAUNCH_APPS_MAX * 11) /* ten digits and a comma each */

static int read_secret(struct launch_env *l, const char *text)
{
	return secret_parse(&l->secret, text);
}

static int read_seed(struct launch_env *l, const char *text)
{
	return decimal_u64(text, 1, UINT64_MAX, &l->port_seed) ? 0 : -EINVAL;
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
		rc = l->napps < LAUNCH_APPS_MAX &&
		     decimal_u32(item, 0, INT32_MAX,
				 &l->app_sizes[l->napps++]) ? 0 : -EINVAL;
	free(copy);
	return rc;
}

static int read_preput(struct launch_env *l, const char *text)
{
	size_t digits = strlen(text);

	if (digits % 2 || digits / 2 > LAUNCH_PREPUT_MAX)
		return -EINVAL;
	free(l->preput);
	l->preput_len = digits / 2;
	l->preput = malloc(l->preput_len + 1);
	if (!l->preput)
		return -ENOMEM;
	return hex_decode(text, l->preput_len, l->preput);
}

#define NUMBER(name, field, most) \
	{ name, .offset = offsetof(struct launch_env, field), .max = most }

/* The variables and who reads them. */
static const struct variable {
	const char *name;
	int (*read)(struct launch_env *l, const char *text); /* NULL: a number */
	bool inherited; /* a spawned srun has it from its parent */
	size_t offset;  /* of a number, an uint32_t, in struct launch_env */
	uint32_t max;   /* ... and its largest value */
} variables[] = {
	{ SECRET_NAME, .read = read_secret },
	{ SEED_NAME, .read = read_seed },
	{ JOBID_NAME, .read = read_jobid },
	NUMBER("PMI2X_RUN", run, UINT32_MAX),
	NUMBER("PMI2X_SRUN_PORT", srun_port, UINT16_MAX),
	NUMBER("PMI2X_UNIVERSE", universe_size, INT32_MAX),
	NUMBER("PMI2X_TRACING", trace, 1),
	NUMBER("PMI2X_KILL", kill, LAUNCH_KILL_YES),
	NUMBER("PMI2X_NO_KILL", no_kill, 1),
	NUMBER("PMI2X_MPI_PROGRAM", program, LAUNCH_PROGRAM_WRAPPER),
	{ LAUNCH_SPAWNER_JOBID, .read = read_spawner, .inherited = true },
	{ LAUNCH_APPS, .read = read_apps, .inherited = true },
	{ LAUNCH_PREPUT, .read = read_preput, .inherited = true },
};

#define VARIABLES (sizeof(variables) / sizeof(variables[0]))

static int read_variable(struct launch_env *l, const struct variable *v,
			 const char *text)
{
	uint32_t *number = (uint32_t *)((char *)l + v->offset);

	if (v->read)
		return v->read(l, text);
	return decimal_u32(text, 0, v->max, number) ? 0 : -EINVAL;
}

void launch_set_number(char ***env, const char *name, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	env_array_overwrite(env, name, text);
}

static void write_numbers(const struct launch_env *l, char ***env)
{
	for (const struct variable *v = variables; v < variables + VARIABLES; v++) {
		const uint32_t *number = (const uint32_t *)((const char *)l + v->offset);

		if (!v->read)
			launch_set_number(env, v->name, *number);
	}
}

static int write_secret(const struct launch_env *l, char ***env)
{
	char text[SECRET_TEXT_BYTES];

	secret_format(&l->secret, text);
	env_array_overwrite(env, SECRET_NAME, text);
	explicit_bzero(text, sizeof(text));
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

	write_numbers(l, env);
	launch_set_number(env, SEED_NAME, l->port_seed);
	env_array_overwrite(env, JOBID_NAME, l->jobid);
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
			explicit_bzero(*at + len, strlen(*at + len));
}

/* A secret of zeros, which everybody knows, is none. */
static bool secret_is_missing(const struct launch_env *l)
{
	static const struct secret none;

	return !memcmp(&l->secret, &none, sizeof(none));
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
		rc = read_variable(l, &variables[i], text);
		*what = variables[i].name;
	}
	launch_env_wipe(*env);
	for (size_t i = 0; i < VARIABLES; i++)
		unsetenvp(*env, variables[i].name);
	unsetenvp(*env, LAUNCH_SPAWN_FD);
	if (!rc && (!l->jobid || !l->port_seed || secret_is_missing(l))) {
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
		rc = read_variable(l, &variables[i], text);
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
