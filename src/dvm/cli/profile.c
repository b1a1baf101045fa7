/* SPDX-License-Identifier: BSD-3-Clause */
/* The profile of a client's tasks: its directory and environment. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dvm/cli/client.h"
#include "dvm/common/rlimits.h"
#include "dvm/core/dvm_msg.h"
#include "libutil/hash.h"

static void add_variable(json_t *env, const char *variable)
{
	const char *equals = strchr(variable, '=');
	char *name;

	if (!equals || equals == variable)
		return;
	name = strndup(variable, (size_t)(equals - variable));
	/* Bytes that are not valid UTF-8 cannot be sent. */
	if (name && json_object_set_new(env, name, json_string(equals + 1)))
		fprintf(stderr, "pmi2x-dvm: the variable %s is left out: its value is not UTF-8 text\n",
			name);
	free(name);
}

/* Tasks get the umask and soft limits of this process. */
static void add_limits(json_t *profile)
{
	json_t *limits = json_object();
	struct dvm_limits own;

	rlimits_get(&own);
	for (int i = 0; i < DVM_LIMITS; i++)
		if (own.given >> i & 1)
			json_object_set_new(limits, dvm_limit_names[i],
					    json_integer((json_int_t)own.soft[i]));
	json_object_set_new(profile, "umask", json_integer(own.umask & ~DVM_UMASK_GIVEN));
	json_object_set_new(profile, "limits", limits);
}

json_t *make_profile(const char *outputs, json_t *input)
{
	unsigned char hash[HASH_NAME_SIZE];
	char id[2 * HASH_NAME_SIZE + 1], cwd[DVM_TEXT_MAX], *text;
	json_t *env = json_object(), *p;

	if (!getcwd(cwd, sizeof(cwd)))
		die("the name of the working directory is missing or too long: %s",
		    strerror(errno));
	for (char **v = environ; *v; v++)
		add_variable(env, *v);
	p = json_pack("{s:s,s:o}", "cwd", cwd, "env", env);
	add_limits(p);
	if (!p)
		die("the name of the working directory is not UTF-8 text: change to another directory");
	if (outputs)
		json_object_set_new(p, "outputs", user_text("the name of the directory for output", outputs));
	if (input)
		json_object_set_new(p, "stdin", input);
	text = p ? json_dumps(p, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	if (!text)
		die("out of memory");
	hash_name(hash, text, strlen(text));
	free(text);
	for (size_t i = 0; i < sizeof(hash); i++)
		sprintf(id + 2 * i, "%02x", hash[i]);
	json_object_set_new(p, "id", json_string(id));
	return p;
}
