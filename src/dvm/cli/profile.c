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
#include "libutil/buf.h"
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
static void add_limits(json_t *profile, const struct dvm_limits *own)
{
	json_t *limits = json_object();

	for (int i = 0; i < DVM_LIMITS; i++)
		if (own->given >> i & 1)
			json_object_set_new(limits, dvm_limit_names[i],
					    json_integer((json_int_t)own->soft[i]));
	json_object_set_new(profile, "umask", json_integer(own->umask & ~DVM_UMASK_GIVEN));
	json_object_set_new(profile, "limits", limits);
}

static int add_text(struct buf *b, const char *text)
{
	return buf_append(b, text, strlen(text) + 1);
}

/*
 * Equal profiles have equal ids. This hashes the texts themselves: to make JSON of them takes
 * longer than all else that this program does for a task.
 */
static json_t *make_id(const char *cwd, const struct dvm_limits *own, const char *outputs,
		       json_t *input)
{
	unsigned char hash[HASH_NAME_SIZE];
	char id[2 * HASH_NAME_SIZE + 1];
	struct buf b;
	int rc;

	buf_init(&b, SIZE_MAX / 2);
	rc = buf_append(&b, own, sizeof(*own));
	rc = rc ? rc : add_text(&b, cwd);
	rc = rc ? rc : add_text(&b, outputs ? outputs : "");
	for (char **v = environ; !rc && *v; v++)
		rc = add_text(&b, *v);
	if (!rc && input) {
		rc = add_text(&b, ""); /* no variable */
		rc = rc ? rc : buf_append(&b, json_string_value(input), json_string_length(input));
	}
	if (rc)
		die("out of memory");
	hash_name(hash, b.data, b.len);
	buf_free(&b);
	for (size_t i = 0; i < sizeof(hash); i++)
		sprintf(id + 2 * i, "%02x", hash[i]);
	return json_string(id);
}

json_t *make_profile(const char *outputs, json_t *input)
{
	json_t *env = json_object(), *p;
	char cwd[DVM_TEXT_MAX];
	struct dvm_limits own;

	if (!getcwd(cwd, sizeof(cwd)))
		die("the name of the working directory is missing or too long: %s",
		    strerror(errno));
	for (char **v = environ; *v; v++)
		add_variable(env, *v);
	p = json_pack("{s:s,s:o}", "cwd", cwd, "env", env);
	if (!p)
		die("the name of the working directory is not UTF-8 text: change to another directory");
	rlimits_get(&own);
	add_limits(p, &own);
	if (outputs)
		json_object_set_new(p, "outputs", user_text("the name of the directory for output", outputs));
	json_object_set_new(p, "id", make_id(cwd, &own, outputs, input));
	if (input)
		json_object_set_new(p, "stdin", input);
	return p;
}
