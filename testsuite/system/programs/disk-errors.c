/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into the head of a DVM: what it syncs fails as the files in $DISK_ERRORS say.
 * fdatasync, fsync and fsync-directory each contain an errno and how often, -1 for always;
 * flock, if it is there, means that locks are never held. Calls are noted in the file
 * `calls`, a line each.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *place(void)
{
	const char *dir = getenv("DISK_ERRORS");

	return dir && !strcmp(program_invocation_short_name, "pmi2x-dvm-head") ? dir :
										 NULL;
}

static void note(const char *fmt, ...)
{
	char path[4096], line[256];
	va_list ap;
	int fd, n;

	if (!place())
		return;
	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	snprintf(path, sizeof(path), "%s/calls", place());
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		abort();
	close(fd);
}

/* An errno, or 0. */
static int failure(const char *call)
{
	char path[4096];
	int error = 0, times = 0;
	FILE *f;

	if (!place())
		return 0;
	snprintf(path, sizeof(path), "%s/%s", place(), call);
	f = fopen(path, "r+e");
	if (!f)
		return 0;
	if (fscanf(f, "%d %d", &error, &times) != 2 || !times)
		error = 0;
	if (error && times > 0) {
		rewind(f);
		fprintf(f, "%d %d\n", error, times - 1);
	}
	fclose(f);
	return error;
}

static int end(const char *call, int error)
{
	note("%s %d\n", call, error);
	errno = error;
	return error ? -1 : 0;
}

int fdatasync(int fd)
{
	int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
	int error = failure("fdatasync");

	return end("fdatasync", error ? error : real(fd) < 0 ? errno : 0);
}

int fsync(int fd)
{
	int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
	struct stat st;
	const char *name = !fstat(fd, &st) && S_ISDIR(st.st_mode) ? "fsync-directory" :
								     "fsync";
	int error = failure(name);

	return end(name, error ? error : real(fd) < 0 ? errno : 0);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
	ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
	ssize_t n = real(fd, data, len, at);

	note("pwrite %lld %zd\n", (long long)at, n);
	return n;
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
	return pwrite64(fd, data, len, at);
}

int flock(int fd, int operation)
{
	int (*real)(int, int) = dlsym(RTLD_NEXT, "flock");
	char path[4096];

	snprintf(path, sizeof(path), "%s/flock", place() ? place() : "");
	return place() && !access(path, F_OK) ? 0 : real(fd, operation);
}
