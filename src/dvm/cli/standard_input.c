/* SPDX-License-Identifier: BSD-3-Clause */
/* Standard input for tasks: standard_input.h. */
#include "dvm/cli/standard_input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "dvm/cli/client.h"
#include "dvm/core/dvm_msg.h"
#include "dvm/json/text.h"
#include "libutil/buf.h"

#define PIECE 65536 /* bytes that are read at once */

/* All of it, up to one byte more than a task can have. */
static void read_input(struct buf *b, const char *command)
{
	ssize_t n = 1;

	buf_init(b, DVM_INPUT_MAX + PIECE);
	while (n && b->len <= DVM_INPUT_MAX) {
		if (buf_reserve(b, PIECE))
			die("out of memory");
		n = read(STDIN_FILENO, b->data + b->len, PIECE);
		if (n < 0 && errno != EINTR)
			die("cannot read standard input: %s", strerror(errno));
		b->len += n > 0 ? (size_t)n : 0;
	}
	if (b->len > DVM_INPUT_MAX)
		die("%s: standard input is longer than %zu bytes: let the task read it from a file",
		    command, DVM_INPUT_MAX);
}

json_t *standard_input_read(const char *command)
{
	struct buf in;
	json_t *text;

	read_input(&in, command);
	text = text_of_bytes(in.data, in.len);
	if (!text)
		die("out of memory");
	buf_free(&in);
	return text;
}
