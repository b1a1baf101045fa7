/* SPDX-License-Identifier: BSD-3-Clause */
/* An application is a command; what differs in its environment are info keys "env". */
#include "helpers/pmixd/spawn.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "helpers/pmixd/info.h"
#include "libpmi/control.h"
#include "libpmi/spawn.h"

static int add_info(struct spawn_request *r, const char *key, const char *value)
{
	const struct pmi_field pair = {
		.key = key, .key_len = strlen(key),
		.value = value, .value_len = strlen(value),
	};

	return spawn_add_info(r, &pair);
}

static const struct {
	const char *pmix, *pmi;
} directives[] = {
	{ PMIX_WDIR, "wdir" },
	{ PMIX_HOST, "host" },
};

static int take_directive(struct spawn_request *r, const pmix_info_t *info)
{
	for (size_t i = 0; i < sizeof(directives) / sizeof(*directives); i++)
		if (info_is(info, directives[i].pmix) &&
		    info->value.type == PMIX_STRING && info->value.data.string)
			return add_info(r, directives[i].pmi, info->value.data.string);
	return info->flags & PMIX_INFO_REQD ? -ENOTSUP : 0;
}

static int take_directives(struct spawn_request *r, const pmix_info_t info[], size_t n)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++)
		rc = take_directive(r, &info[i]);
	return rc;
}

/* argv[0] is the program's name. */
static int add_args(struct spawn_request *r, const pmix_app_t *app)
{
	int rc = 0;

	for (char **arg = app->argv ? app->argv : (char *[]){ NULL }; *arg && !rc; arg++)
		if (arg != app->argv)
			rc = spawn_add_arg(r, *arg, strlen(*arg));
	return rc;
}

/*
 * Open MPI gives children all its own variables named OMPI_. One of these names this server's
 * directory (supervisor/pmix_env.c), which on another node would be a wrong one.
 */
static bool names_directory(const char *env, const char *dir)
{
	const char *value = strchr(env, '=');

	return value && !strcmp(value + 1, dir);
}

static int add_env(struct spawn_request *r, const pmix_app_t *app, const char *dir)
{
	int rc = 0;

	for (char **env = app->env; env && *env && !rc; env++)
		if (!names_directory(*env, dir))
			rc = add_info(r, "env", *env);
	return rc;
}

static int add_app(struct spawn_request *r, const pmix_app_t *app,
		   const pmix_info_t job_info[], size_t njob, const char *dir)
{
	int rc = spawn_add_command(r);

	if (!app->cmd || app->maxprocs <= 0)
		return -EINVAL;
	rc = rc ? rc : spawn_set_program(r, app->cmd, strlen(app->cmd));
	rc = rc ? rc : spawn_set_nprocs(r, (uint64_t)app->maxprocs);
	rc = rc ? rc : add_args(r, app);
	rc = rc ? rc : add_env(r, app, dir);
	rc = rc ? rc : take_directives(r, app->info, app->ninfo);
	rc = rc ? rc : take_directives(r, job_info, njob);
	if (!rc && app->cwd && !spawn_info(&r->commands[r->ncommands - 1], "wdir"))
		rc = add_info(r, "wdir", app->cwd);
	return rc;
}

static pmix_status_t status_of(int error)
{
	switch (error) {
	case 0:
		return PMIX_SUCCESS;
	case -ENOTSUP:
		return PMIX_ERR_NOT_SUPPORTED;
	case -ENOMEM:
		return PMIX_ERR_NOMEM;
	default:
		return PMIX_ERR_BAD_PARAM;
	}
}

pmix_status_t spawn_make(struct buf *packed, const pmix_info_t job_info[], size_t njob,
			 const pmix_app_t apps[], size_t napps, const char *dir)
{
	struct spawn_request *r = spawn_new();
	int rc = r ? 0 : -ENOMEM;

	buf_init(packed, CONTROL_BODY_MAX);
	for (size_t i = 0; i < napps && !rc; i++)
		rc = add_app(r, &apps[i], job_info, njob, dir);
	rc = rc ? rc : napps ? spawn_pack(packed, r) : -EINVAL;
	spawn_free(r);
	return status_of(rc);
}
