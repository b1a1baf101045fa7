/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spawn requests: built field by field, and their wire form between agents and
 * srun. spawn_parse.c reads a client's request.
 *
 * Memory grows with the bytes that are really there, never with a count that
 * somebody sent.
 */
#include "libpmi/spawn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/array.h"
#include "libutil/coder.h"

#define STRING_COST 16   /* bytes charged for a string beside its own */
#define COMMAND_BYTES 16 /* packed, at least */

struct spawn_request *spawn_new(void)
{
	return calloc(1, sizeof(struct spawn_request));
}

static void free_pairs(struct spawn_pair *pairs, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		free(pairs[i].key);
		free(pairs[i].value);
	}
	free(pairs);
}

static void free_command(struct spawn_command *c)
{
	free(c->program);
	for (uint32_t i = 0; i < c->argc; i++)
		free(c->argv[i]);
	free(c->argv);
	free_pairs(c->info, c->ninfo);
}

void spawn_free(struct spawn_request *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->ncommands; i++)
		free_command(&s->commands[i]);
	free(s->commands);
	free_pairs(s->preput, s->npreput);
	free(s);
}

/* A copy of a string that came from outside, charged to the request. */
static int copy_string(struct spawn_request *s, const char *data, size_t len,
		       char **out)
{
	if (len > SPAWN_STRING_MAX || (len && memchr(data, '\0', len)))
		return -EINVAL;
	if (len + STRING_COST > SPAWN_BYTES_MAX - s->bytes)
		return -EINVAL;
	*out = malloc(len + 1);
	if (!*out)
		return -ENOMEM;
	if (len)
		memcpy(*out, data, len);
	(*out)[len] = '\0';
	s->bytes += len + STRING_COST;
	return 0;
}

/* Room for one more behind `count` items, which fill it at powers of two only. */
static int grow(void *array, size_t count, size_t size)
{
	size_t cap = count & (count - 1) ? count + 1 : count;

	return array_grow(array, count, &cap, size);
}

int spawn_add_command(struct spawn_request *s)
{
	struct spawn_command c = { 0 };
	int rc;

	if (s->ncommands == SPAWN_COMMANDS_MAX)
		return -EINVAL;
	rc = grow(&s->commands, s->ncommands, sizeof(*s->commands));
	if (rc)
		return rc;
	c.argv = calloc(1, sizeof(*c.argv));
	if (!c.argv)
		return -ENOMEM;
	s->commands[s->ncommands++] = c;
	return 0;
}

static struct spawn_command *last_command(struct spawn_request *s)
{
	return s->ncommands ? &s->commands[s->ncommands - 1] : NULL;
}

int spawn_set_program(struct spawn_request *s, const char *data, size_t len)
{
	struct spawn_command *c = last_command(s);

	if (!c || c->program || len == 0)
		return -EINVAL;
	return copy_string(s, data, len, &c->program);
}

int spawn_set_nprocs(struct spawn_request *s, uint64_t nprocs)
{
	struct spawn_command *c = last_command(s);

	if (!c || c->nprocs || nprocs == 0)
		return -EINVAL;
	if (nprocs > SPAWN_PROCS_MAX - spawn_procs(s))
		return -EINVAL;
	c->nprocs = nprocs;
	return 0;
}

int spawn_add_arg(struct spawn_request *s, const char *data, size_t len)
{
	struct spawn_command *c = last_command(s);
	int rc;

	if (!c || c->argc == SPAWN_ARGS_MAX)
		return -EINVAL;
	rc = grow(&c->argv, c->argc + 1, sizeof(*c->argv)); /* with the NULL */
	if (!rc)
		rc = copy_string(s, data, len, &c->argv[c->argc]);
	if (rc)
		return rc;
	c->argv[++c->argc] = NULL;
	return 0;
}

static int add_pair(struct spawn_request *s, struct spawn_pair **pairs,
		    uint32_t *count, uint32_t max, const struct pmi_field *f)
{
	struct spawn_pair pair;
	int rc;

	if (*count == max || f->key_len == 0)
		return -EINVAL;
	rc = grow(pairs, *count, sizeof(**pairs));
	if (rc)
		return rc;
	rc = copy_string(s, f->key, f->key_len, &pair.key);
	if (rc)
		return rc;
	rc = copy_string(s, f->value, f->value_len, &pair.value);
	if (rc) {
		free(pair.key);
		return rc;
	}
	(*pairs)[(*count)++] = pair;
	return 0;
}

int spawn_add_info(struct spawn_request *s, const struct pmi_field *pair)
{
	struct spawn_command *c = last_command(s);

	if (!c)
		return -EINVAL;
	return add_pair(s, &c->info, &c->ninfo, SPAWN_INFO_MAX, pair);
}

int spawn_add_preput(struct spawn_request *s, const struct pmi_field *pair)
{
	return add_pair(s, &s->preput, &s->npreput, SPAWN_PREPUT_MAX, pair);
}

uint32_t spawn_procs(const struct spawn_request *s)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < s->ncommands; i++)
		sum += s->commands[i].nprocs;
	return sum;
}

const char *spawn_info(const struct spawn_command *c, const char *key)
{
	for (uint32_t i = 0; i < c->ninfo; i++) {
		if (!strcmp(c->info[i].key, key))
			return c->info[i].value;
	}
	return NULL;
}

/*
 * Wire form: u32 commands, each: u32 processes, program, u32 arguments, each a
 * string, pairs of info; then pairs of preput. Pairs: u32 count, each key and
 * value. Strings as pack_bytes.
 */
static void code_string(struct coder *c, struct spawn_request *s, char **text)
{
	size_t len = c->out && *text ? strlen(*text) : 0;
	const void *at = *text;

	code_limited(c, &at, &len, SPAWN_STRING_MAX);
	if (!c->out && !c->rc && cursor_ok(&c->in))
		c->rc = copy_string(s, at, len, text);
}

/* A program, or a key: not empty. */
static void code_name(struct coder *c, struct spawn_request *s, char **text)
{
	code_string(c, s, text);
	CODE_CHECK(c, *text && **text);
}

/* A count, and an array of it and one more; each item has at least `packed` bytes. */
static void code_array(struct coder *c, void *array, uint32_t *count, uint32_t max,
		       size_t size, size_t packed)
{
	code_count(c, count, max, packed);
	if (c->out)
		return;
	*(void **)array = calloc((size_t)*count + 1, size);
	if (*(void **)array)
		return;
	*count = 0;
	c->rc = -ENOMEM;
}

static void code_pairs(struct coder *c, struct spawn_request *s, struct spawn_pair **pairs,
		       uint32_t *count, uint32_t max)
{
	code_array(c, pairs, count, max, sizeof(**pairs), 2 * sizeof(uint32_t));
	for (uint32_t i = 0; i < *count && !c->rc; i++) {
		code_name(c, s, &(*pairs)[i].key);
		code_string(c, s, &(*pairs)[i].value);
	}
}

static void code_command(struct coder *c, struct spawn_request *s, struct spawn_command *cmd)
{
	uint32_t nprocs = cmd->nprocs;

	code_u32(c, &nprocs);
	CODE_CHECK(c, nprocs && nprocs <= SPAWN_PROCS_MAX - spawn_procs(s));
	if (!c->out)
		cmd->nprocs = nprocs;
	code_name(c, s, &cmd->program);
	code_array(c, &cmd->argv, &cmd->argc, SPAWN_ARGS_MAX, sizeof(*cmd->argv),
		   sizeof(uint32_t));
	for (uint32_t i = 0; i < cmd->argc && !c->rc; i++)
		code_string(c, s, &cmd->argv[i]);
	code_pairs(c, s, &cmd->info, &cmd->ninfo, SPAWN_INFO_MAX);
}

static void code_request(struct coder *c, struct spawn_request *s)
{
	code_array(c, &s->commands, &s->ncommands, SPAWN_COMMANDS_MAX, sizeof(*s->commands),
		   COMMAND_BYTES);
	CODE_CHECK(c, s->ncommands);
	for (uint32_t i = 0; i < s->ncommands && !c->rc; i++)
		code_command(c, s, &s->commands[i]);
	code_pairs(c, s, &s->preput, &s->npreput, SPAWN_PREPUT_MAX);
}

int spawn_pack(struct buf *b, const struct spawn_request *s)
{
	struct coder c = { .out = b };
	size_t start = b->len;

	code_request(&c, (struct spawn_request *)s);
	return coder_wrote(&c, start);
}

int spawn_unpack(struct cursor *in, struct spawn_request **out)
{
	struct coder c = { .in = *in };
	struct spawn_request *s = spawn_new();
	int rc = -ENOMEM;

	if (s) {
		code_request(&c, s);
		rc = coder_leave(&c, in);
	}
	if (rc) {
		spawn_free(s);
		return rc == -ENOMEM ? rc : -EPROTO;
	}
	*out = s;
	return 0;
}
