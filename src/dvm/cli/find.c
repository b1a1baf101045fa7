/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding DVMs: their directories, the files that describe them, and the heads that answer.
 */
#include "dvm/cli/find.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "dvm/cli/client.h"
#include "dvm/common/rundir.h"
#include "dvm/cli/remote.h"
#include "dvm/common/bootstrap.h"
#include "libio/clock.h"
#include "libutil/decimal.h"

#define SHARED_IN_HOME ".pmi2x-dvm" /* where home directories are shared, so is it */
#define ADDRESS_SUFFIX ".address"
#define TRY_MS 50
#define SAY_AFTER_MS 1000
#define GRACE_MS 1000 /* pmi2x-dvm up may be about to begin */

/* ---- where DVMs are ---- */

/* Nobody else may put a socket there; where it is not, there is none. */
static void check_base(const char *path)
{
	struct stat st;
	int rc = lstat(path, &st);

	if (rc < 0 && errno == ENOENT)
		return;
	if (rc < 0 || !S_ISDIR(st.st_mode) ||
	    st.st_uid != getuid() || st.st_mode & 077)
		die("%s is not a directory that only you can enter; set "
		    DVM_BASE_VARIABLE " to one", path);
}

const char *dvm_base(void)
{
	static char path[DVM_PATH_MAX];
	const char *given = getenv(DVM_BASE_VARIABLE);

	if (*path)
		return path;
	if (given && *given)
		snprintf(path, sizeof(path), "%s", given);
	else
		snprintf(path, sizeof(path), "/tmp/pmi2x-dvm-%u",
			 (unsigned)getuid());
	check_base(path);
	return path;
}

void dvm_make_base(void)
{
	const char *path = dvm_base();

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		die("cannot make %s: %s; set " DVM_BASE_VARIABLE " to a directory of yours",
		    path, strerror(errno));
	check_base(path);
}

void dvm_dir(char out[DVM_PATH_MAX], const char *name)
{
	if (!*name || strchr(name, '/') || *name == '.' ||
	    strlen(name) > WELCOME_TEXT_MAX / 2)
		die_usage("\"%s\" cannot be the name of a DVM", name);
	if ((size_t)snprintf(out, DVM_PATH_MAX, "%s/%s", dvm_base(), name) >=
	    DVM_PATH_MAX)
		die("the path of %s is too long", dvm_base());
}

void dvm_say_log(const char *dir)
{
	char path[DVM_PATH_MAX + 8];
	struct stat st;

	snprintf(path, sizeof(path), "%s/" HEADD_LOG, dir);
	if (!stat(path, &st) && st.st_size)
		fprintf(stderr, "pmi2x-dvm: the log is in %s\n", path);
}

/* As of dvm_base, of what nodes share; NULL: nowhere. */
static const char *shared_base(void)
{
	static char path[DVM_PATH_MAX];
	const char *given = getenv(DVM_BASE_VARIABLE), *home = getenv("HOME");

	if (given && *given)
		return dvm_base();
	if (!home || *home != '/')
		return NULL;
	snprintf(path, sizeof(path), "%s/" SHARED_IN_HOME, home);
	return path;
}

bool dvm_address(char out[DVM_PATH_MAX], const char *name)
{
	const char *base = shared_base();

	return base && (size_t)snprintf(out, DVM_PATH_MAX, "%s/%s" ADDRESS_SUFFIX,
					base, name) < DVM_PATH_MAX;
}

/* ---- is it up ---- */

/*
 * The connection that showed that this DVM is up. The next connect to it takes the
 * connection, which spares the head another one.
 */
static struct {
	char name[DVM_PATH_MAX];
	int fd; /* -1: none */
} seen = { .fd = -1 };

static int take_seen(const char *name)
{
	int fd = seen.fd;

	if (fd < 0 || strcmp(seen.name, name))
		return -1;
	seen.fd = -1;
	return fd;
}

/* On this node: a descriptor, or a negative errno. */
static int connect_here(const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = take_seen(name), rc;
	char dir[DVM_PATH_MAX];

	if (fd >= 0)
		return fd;
	dvm_dir(dir, name);
	if ((size_t)snprintf(a.sun_path, sizeof(a.sun_path), "%s/" HEADD_SOCKET,
			     dir) >= sizeof(a.sun_path))
		die("the path %s is too long for a socket; set " DVM_BASE_VARIABLE
		    " to a shorter one", dir);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("cannot create a socket: %s", strerror(errno));
	if (!connect(fd, (struct sockaddr *)&a, sizeof(a)))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* On another node: the same. */
static int connect_there(const char *name)
{
	char file[DVM_PATH_MAX];

	if (strchr(name, '/'))
		return remote_connect(name);
	return dvm_address(file, name) ? remote_connect(file) : -ENOENT;
}

/* Connects here or there; *there: by frames, for it is on another node. */
static int try_connect(const char *name, bool *there)
{
	int fd = strchr(name, '/') ? -ENOENT : connect_here(name);

	*there = fd < 0;
	return *there ? connect_there(name) : fd;
}

/* ---- who answers ---- */

bool dvm_split_name(char *name, uint32_t *number)
{
	char *dot = strrchr(name, '.');

	if (!dot || dot == name || !decimal_u32(dot + 1, 1, DVM_MEMBERS_MAX, number))
		return false;
	*dot = '\0';
	return true;
}

static void add(struct dvm_socket **all, size_t *count, struct dvm_socket s)
{
	struct dvm_socket *more = realloc(*all, (*count + 1) * sizeof(s));

	if (!more)
		die("out of memory");
	*all = more;
	more[(*count)++] = s;
}

/* Cuts a file's name to the name of the DVM that the file describes. */
static bool cut_suffix(char *file)
{
	char *suffix = strstr(file, ADDRESS_SUFFIX);

	if (!suffix || strcmp(suffix, ADDRESS_SUFFIX))
		return false;
	*suffix = '\0';
	return true;
}

/*
 * Connects with members in a directory that answer; there: it has files of those on
 * other nodes.
 */
static void connect_members(const char *name, const char *dir, bool there,
			    struct dvm_socket **all, size_t *count)
{
	DIR *base = dir ? opendir(dir) : NULL;
	struct dvm_socket s = { .there = there };
	char whole[DVM_PATH_MAX];
	struct dirent *e;

	while (base && (e = readdir(base))) {
		if (there ? !cut_suffix(e->d_name) : !!strstr(e->d_name, ADDRESS_SUFFIX))
			continue;
		snprintf(whole, sizeof(whole), "%s", e->d_name);
		if (!dvm_split_name(e->d_name, &s.number) || strcmp(e->d_name, name))
			continue;
		s.fd = there ? connect_there(whole) : connect_here(whole);
		if (s.fd >= 0)
			add(all, count, s);
	}
	if (base)
		closedir(base);
}

static int by_number(const void *a, const void *b)
{
	const struct dvm_socket *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

int dvm_connect(const char *name, struct dvm_socket **out, size_t *count)
{
	struct dvm_socket s = { .number = 0 };

	*out = NULL;
	*count = 0;
	s.fd = try_connect(name, &s.there);
	if (s.fd >= 0) {
		add(out, count, s);
		return 0;
	}
	if (!strchr(name, '/'))
		connect_members(name, dvm_base(), false, out, count);
	if (!*count && !strchr(name, '/'))
		connect_members(name, shared_base(), true, out, count);
	if (*count)
		qsort(*out, *count, sizeof(**out), by_number);
	return *count ? 0 : s.fd;
}

static bool close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void close_all(struct dvm_socket *all, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(all[i].fd);
	free(all);
}

bool dvm_is_up(const char *name)
{
	struct dvm_socket *all;
	size_t count;

	(void)dvm_connect(name, &all, &count);
	close_all(all, count);
	return count;
}

/* ---- which are up ---- */

/* The name of a DVM that is up here, or, of the file of one, on another node. */
static bool name_here(char *name)
{
	int fd = *name != '.' && !strstr(name, ADDRESS_SUFFIX) ? connect_here(name) : -1;

	if (fd < 0)
		return false;
	(void)close_if_open(seen.fd);
	seen.fd = fd;
	snprintf(seen.name, sizeof(seen.name), "%s", name);
	return true;
}

static bool name_there(char *name)
{
	return cut_suffix(name) && close_if_open(connect_there(name));
}

/* True: the name is in this list with commas. */
static bool is_listed(const char *names, const char *name)
{
	size_t len = strlen(name);
	const char *at = names;

	while ((at = strstr(at, name))) {
		if ((at == names || at[-1] == ' ') && (!at[len] || at[len] == ','))
			return true;
		at += len;
	}
	return false;
}

/* The names of those that are up, one after another; several of one name are one. */
static size_t list_up(const char *dir, bool (*take)(char *name), char *names,
		      size_t size)
{
	DIR *base = dir ? opendir(dir) : NULL;
	struct dirent *e;
	size_t count = 0, n = 0;
	uint32_t number;

	*names = '\0';
	while (base && (e = readdir(base))) {
		if (!take(e->d_name))
			continue;
		(void)dvm_split_name(e->d_name, &number);
		if (is_listed(names, e->d_name))
			continue;
		if (n < size)
			n += (size_t)snprintf(names + n, size - n, "%s%s",
					      count ? ", " : "", e->d_name);
		count++;
	}
	if (base)
		closedir(base);
	return count;
}

static const char *own_job(void)
{
	const char *job = getenv("SLURM_JOB_ID");

	return job && *job ? job : NULL;
}

void dvm_default_name(char out[DVM_PATH_MAX])
{
	const char *job = own_job();

	if (job)
		snprintf(out, DVM_PATH_MAX, "job%s", job);
	else
		strcpy(out, "local");
}

/* As name_here, of those that were started in this job. */
static bool name_of_job(char *name)
{
	char dir[DVM_PATH_MAX], job[64];

	if (*name == '.' || strstr(name, ADDRESS_SUFFIX))
		return false;
	dvm_dir(dir, name);
	place_job(dir, job, sizeof(job));
	return !strcmp(job, own_job()) && name_here(name);
}

/* A job has no business with the DVMs of another one. */
static size_t list_any(char *names, size_t size)
{
	size_t n = list_up(dvm_base(), own_job() ? name_of_job : name_here, names, size);

	return n || own_job() ? n : list_up(shared_base(), name_there, names, size);
}

static bool is_taken(const char *name)
{
	char dir[DVM_PATH_MAX];

	dvm_dir(dir, name);
	return place_is_taken(dir);
}

/*
 * Connect to the DVM of this name, or to its members, as dvm_connect. Waits while it is
 * starting or ending, and grace_ms at most for the first sign of it.
 */
static int connect_patiently(const char *name, uint32_t grace_ms, struct dvm_socket **out,
			     size_t *count)
{
	uint32_t waited = 0;
	int rc;

	while ((rc = dvm_connect(name, out, count)) &&
	       (is_taken(name) || waited < grace_ms)) {
		if (waited == SAY_AFTER_MS)
			fprintf(stderr, "pmi2x-dvm: waiting for the DVM %s, which is starting or ending\n",
				name);
		sleep_ms(TRY_MS);
		waited += TRY_MS;
	}
	return rc;
}

/* The only one that is up. */
static char *find_any(void)
{
	char names[DVM_PATH_MAX];
	size_t n = list_any(names, sizeof(names));

	if (!n && own_job())
		die("this job has no DVM: start one with pmi2x-dvm up, or name one of another job with --dvm");
	if (!n)
		die("no DVM is up on this machine, and no file tells of one on another machine: start one with pmi2x-dvm up, inside salloc or sbatch, or with --local");
	if (n > 1)
		die("several DVMs are up: %s; choose one with --dvm NAME or "
		    DVM_NAME_VARIABLE, names);
	return strdup(names);
}

char *dvm_joinable(bool local)
{
	char names[DVM_PATH_MAX];
	struct dvm_socket *all;
	size_t count;

	dvm_default_name(names);
	if (!connect_patiently(names, 0, &all, &count)) {
		close_all(all, count);
		return strdup(names);
	}
	if (local && !own_job())
		return NULL;
	if (!list_up(dvm_base(), own_job() ? name_of_job : name_here, names, sizeof(names)))
		return NULL;
	return find_any();
}

/* The DVM of this job's name; pmi2x-dvm up may be about to start it, or it has another name. */
static int connect_own(const char *own, struct dvm_socket **out, size_t *count)
{
	char names[DVM_PATH_MAX];
	int rc = connect_patiently(own, 0, out, count);

	if (rc && !list_any(names, sizeof(names)))
		rc = connect_patiently(own, GRACE_MS, out, count);
	return rc;
}

char *dvm_reach(const char *name, struct dvm_socket **out, size_t *count, int *error)
{
	char own[DVM_PATH_MAX], *found;

	if (!name)
		name = getenv(DVM_NAME_VARIABLE);
	dvm_default_name(own);
	if ((!name || !*name) && own_job() && !connect_own(own, out, count)) {
		*error = 0;
		return strdup(own);
	}
	found = name && *name ? strdup(name) : find_any();
	*error = found ? dvm_connect(found, out, count) : -ENOMEM;
	return found;
}
