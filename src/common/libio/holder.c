/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks for a socket in the descriptors of processes, as /proc shows them. */
#include "libio/holder.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libio/proc_stat.h"

#define ANCESTORS_MAX 64  /* of a process that are looked at */
#define FDS_MAX (1 << 20) /* of one process */

static bool is_socket(int dir, const char *name, unsigned long inode)
{
	char want[40], link[40];
	int len = snprintf(want, sizeof(want), "socket:[%lu]", inode);

	return readlinkat(dir, name, link, sizeof(link)) == len &&
	       !memcmp(link, want, (size_t)len);
}

/* NULL also where the kernel hides them: of a process that is not dumpable root has them. */
static DIR *open_fds(pid_t pid, uint32_t uid)
{
	char path[32];
	struct stat st;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir || (!fstat(dirfd(dir), &st) && st.st_uid == uid))
		return dir;
	closedir(dir);
	return NULL;
}

/* A process that may not be looked at has nothing, as far as is known. */
static bool holds(pid_t pid, uint32_t uid, unsigned long inode)
{
	DIR *dir = open_fds(pid, uid);
	struct dirent *entry;
	bool found = false;

	if (!dir)
		return false;
	for (int i = 0; !found && i < FDS_MAX && (entry = readdir(dir)); i++)
		found = is_socket(dirfd(dir), entry->d_name, inode);
	closedir(dir);
	return found;
}

static bool may_look(pid_t pid, uint32_t uid)
{
	DIR *dir = open_fds(pid, uid);

	if (dir)
		closedir(dir);
	return dir != NULL;
}

/* 0: it has none, or none is known. */
static pid_t parent_of(pid_t pid)
{
	struct proc_stat now;

	proc_stat_read((uint64_t)pid, &now);
	return now.parent;
}

static pid_t find_near(pid_t near, uint32_t uid, unsigned long inode)
{
	pid_t found = 0, at = near;

	for (int i = 0; at > 1 && i < ANCESTORS_MAX; i++, at = parent_of(at))
		if (holds(at, uid, inode))
			found = at;
	return found;
}

static pid_t find_anywhere(uint32_t uid, unsigned long inode)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	while (proc && !found && (entry = readdir(proc))) {
		int pid = atoi(entry->d_name); /* other names are 0 */

		if (pid > 0 && holds(pid, uid, inode))
			found = pid;
	}
	if (proc)
		closedir(proc);
	return found;
}

int holder_find(const struct holder_question *q)
{
	struct owner owner;
	int rc = owner_find(&q->peer, &owner);
	pid_t found;

	if (rc)
		return rc;
	if (owner.uid != q->uid)
		return -EPERM;
	if (q->near && !may_look(q->near, q->uid))
		return -EACCES;
	found = find_near(q->near, q->uid, owner.inode);
	if (!found && q->all)
		found = find_anywhere(q->uid, owner.inode);
	return found ? found : -ESRCH;
}

void holder_pack(const struct holder_question *q, unsigned char bytes[HOLDER_BYTES])
{
	uint32_t near = (uint32_t)q->near;

	owner_pack(&q->peer, bytes);
	memcpy(bytes + OWNER_BYTES, &near, sizeof(near));
	bytes[OWNER_BYTES + sizeof(near)] = q->all;
}

void holder_unpack(const unsigned char bytes[HOLDER_BYTES], uint32_t uid,
		   struct holder_question *out)
{
	uint32_t near;

	owner_unpack(bytes, &out->peer);
	memcpy(&near, bytes + OWNER_BYTES, sizeof(near));
	out->near = near > INT32_MAX ? 0 : (pid_t)near;
	out->all = bytes[OWNER_BYTES + sizeof(near)] != 0;
	out->uid = uid;
}
