/* SPDX-License-Identifier: BSD-3-Clause */
/* The standard input and the files for output of a rank: rank_files.h. */
#include "dvm/zygote/rank_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dvm/core/output_path.h"
#include "libio/fd.h"

/*
 * Other writers may have the same file: ranks, earlier starts of the task, with --append
 * any other task. Each appends, and only a sole writer empties it.
 */
int rank_file_flags(const struct node_rank *r, const char *name)
{
	const struct dvm_launch *l = r->launch;
	bool sole = (l->ranks == 1 || output_path_has(name, 'r')) &&
		    (!l->instance || output_path_has(name, 'i'));

	return O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | (sole && !l->append ? O_TRUNC : 0);
}

bool rank_file_path(char *out, size_t size, const struct node_rank *r, const char *name)
{
	const struct output_numbers numbers = {
		r->launch->task, r->launch->first_rank + r->local, r->launch->instance,
	};

	return output_path_expand(out, size, name, &numbers);
}

/* A spawned task has the profile of its parent, and no input. */
static const struct dvm_bytes *input_of(const struct node_rank *r)
{
	return r->launch->input.len || r->launch->spawned.len ? &r->launch->input :
								 &r->profile->input;
}

/* Rank 0 reads the task's input; other ranks read /dev/null. */
int rank_file_input(const struct node_rank *r, int null)
{
	const struct dvm_bytes *input = input_of(r);
	int fd;

	if (!input->len || r->launch->first_rank + r->local)
		return null;
	fd = memfd_create("stdin", MFD_CLOEXEC);
	if (fd >= 0 && !fd_write_all(fd, input->data, input->len) && !lseek(fd, 0, SEEK_SET))
		return fd;
	fd_close(&fd);
	return -1;
}
