/* SPDX-License-Identifier: BSD-3-Clause */
/* The shell script by which a rank becomes what a spawn asks for. */
#include "libpmi/spawn_script.h"

#include <string.h>

/* Appends the characters of a text in single quotes. */
static int put_chars(struct buf *b, const char *text, size_t len)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < len; i++)
		rc = text[i] == '\'' ? buf_puts(b, "'\\''") : buf_append(b, text + i, 1);
	return rc;
}

static int put_quoted(struct buf *b, const char *word)
{
	int rc = buf_puts(b, "'");

	rc = rc ? rc : put_chars(b, word, strlen(word));
	return rc ? rc : buf_puts(b, "'");
}

static int put_file(struct buf *b, const char *dir, size_t len, const char *name)
{
	int rc = buf_puts(b, "'");

	rc = rc ? rc : put_chars(b, dir, len);
	rc = rc ? rc : buf_puts(b, "/");
	rc = rc ? rc : put_chars(b, name, strlen(name));
	return rc ? rc : buf_puts(b, "'");
}

static int put_args(struct buf *b, const struct spawn_command *c)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < c->argc; i++) {
		rc = buf_puts(b, " ");
		if (!rc)
			rc = put_quoted(b, c->argv[i]);
	}
	return rc;
}

/* "if [ -x DIR/PROGRAM ]; then exec ...; fi;" for each directory of `path`. */
static int put_search(struct buf *b, const struct spawn_command *c,
		      const char *path)
{
	int rc = 0;

	while (!rc && *path) {
		size_t len = strcspn(path, ":");

		if (len) {
			rc = buf_puts(b, "if [ -x ");
			rc = rc ? rc : put_file(b, path, len, c->program);
			rc = rc ? rc : buf_puts(b, " ]; then exec ");
			rc = rc ? rc : put_file(b, path, len, c->program);
			rc = rc ? rc : put_args(b, c);
			rc = rc ? rc : buf_puts(b, "; fi; ");
		}
		path += len + (path[len] == ':');
	}
	return rc;
}

static bool is_variable(const char *text)
{
	size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				  "0123456789_");

	return len && text[len] == '=' && (*text < '0' || *text > '9');
}

/* "export NAME=VALUE;" for each that a shell can have. */
static int put_env(struct buf *b, const struct spawn_command *c)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < c->ninfo; i++) {
		if (strcmp(c->info[i].key, "env") || !is_variable(c->info[i].value))
			continue;
		rc = buf_puts(b, "export ");
		rc = rc ? rc : put_quoted(b, c->info[i].value);
		rc = rc ? rc : buf_puts(b, "; ");
	}
	return rc;
}

/* Appends what a rank of command `c` does. */
static int put_command(struct buf *b, const struct spawn_command *c)
{
	const char *wdir = spawn_info(c, "wdir");
	const char *path = spawn_info(c, "path");
	int rc = 0;

	if (wdir) {
		rc = buf_puts(b, "cd -- ");
		rc = rc ? rc : put_quoted(b, wdir);
		rc = rc ? rc : buf_puts(b, " || exit 1; ");
	}
	rc = rc ? rc : put_env(b, c);
	if (!rc && path)
		rc = put_search(b, c, path);
	rc = rc ? rc : buf_puts(b, "exec ");
	rc = rc ? rc : put_quoted(b, c->program);
	rc = rc ? rc : put_args(b, c);
	return rc ? rc : buf_puts(b, "; ");
}

/* Command k has the ranks below `end` that no command before it has. */
int spawn_script(struct buf *b, const struct spawn_request *r)
{
	uint32_t end = 0;
	int rc = 0;

	for (uint32_t k = 0; !rc && k < r->ncommands; k++) {
		end += r->commands[k].nprocs;
		rc = buf_printf(b, "if [ \"$PMI_RANK\" -lt %u ]; then ", end);
		rc = rc ? rc : put_command(b, &r->commands[k]);
		rc = rc ? rc : buf_puts(b, "fi; ");
	}
	return rc;
}

bool spawn_wants_script(const struct spawn_request *r)
{
	return r->ncommands > 1 || spawn_info(&r->commands[0], "wdir") ||
		spawn_info(&r->commands[0], "path") ||
		spawn_info(&r->commands[0], "env");
}
