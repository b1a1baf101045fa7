/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding a DVM and talking to its head. */
#include "client.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "headd.h"
#include "libdvm/dvm_msg.h"
#include "libutil/decimal.h"
#include "libutil/hash.h"
#include "pmi2x-build.h"
#include "remote.h"

#define SHARED_IN_HOME ".pmi2x-dvm" /* where home directories are shared, so is it */
#define ADDRESS_SUFFIX ".address"

/* ---- words ---- */

static void say(const char *fmt, va_list ap)
{
	fflush(stdout);
	fputs("pmi2x-dvm: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	exit(1);
}

void die_usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	fputs("pmi2x-dvm --help lists commands and options\n", stderr);
	exit(2);
}

/* ---- where DVMs are ---- */

/* Nobody else may put a socket there. */
static void check_base(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		die("cannot make %s: %s; set " DVM_BASE_VARIABLE " to a directory of yours",
		    path, strerror(errno));
	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) ||
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

void dvm_dir(char out[DVM_PATH_MAX], const char *name)
{
	if (!*name || strchr(name, '/') || *name == '.' ||
	    strlen(name) > WELCOME_TEXT_MAX / 2)
		die_usage("\"%s\" cannot be the name of a DVM", name);
	if ((size_t)snprintf(out, DVM_PATH_MAX, "%s/%s", dvm_base(), name) >=
	    DVM_PATH_MAX)
		die("the path of %s is too long", dvm_base());
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

/* On this node: a descriptor, or a negative errno. */
static int connect_here(const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char dir[DVM_PATH_MAX];
	int fd, rc;

	dvm_dir(dir, name);
	if ((size_t)snprintf(a.sun_path, sizeof(a.sun_path), "%s/" HEADD_SOCKET,
			     dir) >= sizeof(a.sun_path))
		die("the path %s is too long for a socket; set " DVM_BASE_VARIABLE
		    " to a shorter one", dir);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("no socket can be made: %s", strerror(errno));
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

/* The same; *there: by frames, for it is on another node. */
static int try_connect(const char *name, bool *there)
{
	int fd = strchr(name, '/') ? -ENOENT : connect_here(name);

	*there = fd < 0;
	return *there ? connect_there(name) : fd;
}

static bool close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool dvm_is_up(const char *name)
{
	bool there;

	return close_if_open(try_connect(name, &there));
}

/* The name of a DVM that is up here, or, of the file of one, on another node. */
static bool name_here(char *name)
{
	return *name != '.' && !strstr(name, ADDRESS_SUFFIX) &&
	       close_if_open(connect_here(name));
}

static bool name_there(char *name)
{
	char *suffix = strstr(name, ADDRESS_SUFFIX);

	if (!suffix || strcmp(suffix, ADDRESS_SUFFIX))
		return false;
	*suffix = '\0';
	return close_if_open(connect_there(name));
}

/* The names of those that are up, one after another. */
static size_t list_up(const char *dir, bool (*take)(char *name), char *names,
		      size_t size)
{
	DIR *base = dir ? opendir(dir) : NULL;
	struct dirent *e;
	size_t count = 0, n = 0;

	*names = '\0';
	while (base && (e = readdir(base))) {
		if (!take(e->d_name))
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

void dvm_default_name(char out[DVM_PATH_MAX], bool local)
{
	const char *job = getenv("SLURM_JOB_ID");

	if (local || !job)
		strcpy(out, "local");
	else
		snprintf(out, DVM_PATH_MAX, "job%s", job);
}

/* A job has no business with another's that is on another node. */
static size_t list_any(char *names, size_t size)
{
	size_t n = list_up(dvm_base(), name_here, names, size);

	if (n || getenv("SLURM_JOB_ID"))
		return n;
	return list_up(shared_base(), name_there, names, size);
}

/* Its name, or "". */
static void find_jobs_own(char out[DVM_PATH_MAX])
{
	dvm_default_name(out, false);
	if (!getenv("SLURM_JOB_ID") || !dvm_is_up(out))
		*out = '\0';
}

bool dvm_any_up(void)
{
	char names[DVM_PATH_MAX];

	find_jobs_own(names);
	return *names || list_up(dvm_base(), name_here, names, sizeof(names));
}

char *dvm_find(const char *name)
{
	char names[DVM_PATH_MAX];
	size_t n;

	if (!name)
		name = getenv(DVM_NAME_VARIABLE);
	if (name && *name)
		return strdup(name);
	find_jobs_own(names);
	if (*names)
		return strdup(names);
	n = list_any(names, sizeof(names));
	if (!n)
		die("no DVM is up on this machine, nor is one known of another: start one with pmi2x-dvm up, inside salloc or sbatch, or with --local N");
	if (n > 1)
		die("several DVMs are up: %s; say which with --dvm NAME or "
		    DVM_NAME_VARIABLE, names);
	return strdup(names);
}

/* ---- connection ---- */

struct conn {
	FILE *in;
	int fd;
	bool there; /* on another node: what is sent goes in frames */
	char *line;
	size_t size;
	char *name;
	void (*on_event)(void *arg, json_t *event);
	void *arg;
};

void conn_on_event(struct conn *c, void (*fn)(void *arg, json_t *event), void *arg)
{
	c->on_event = fn;
	c->arg = arg;
}

void conn_send(struct conn *c, json_t *request)
{
	char *text = json_dumps(request, JSON_COMPACT);
	size_t len;
	int rc;

	if (!text)
		die("out of memory, or an argument or variable is no UTF-8 text");
	len = strlen(text);
	text[len++] = '\n';
	rc = c->there ? remote_send(c->fd, text, len) :
			remote_send_all(c->fd, text, len);
	if (rc)
		die("the DVM %s has gone: %s", c->name, strerror(-rc));
	free(text);
	json_decref(request);
}

void conn_limit(struct conn *c, unsigned seconds)
{
	const struct timeval limit = { .tv_sec = seconds };

	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

json_t *conn_next(struct conn *c)
{
	ssize_t n = getline(&c->line, &c->size, c->in);
	json_t *event;

	if (n <= 0)
		return NULL;
	event = json_loadb(c->line, (size_t)n, JSON_ALLOW_NUL, NULL);
	if (!event)
		die("the DVM %s says what makes no sense", c->name);
	return event;
}

const char *event_name(json_t *event)
{
	return get_text(event, "ev");
}

json_t *conn_ask(struct conn *c, json_t *request)
{
	static json_int_t tag;
	json_t *event;

	json_object_set_new(request, "tag", json_integer(++tag));
	conn_send(c, request);
	while ((event = conn_next(c))) {
		if (get_number(event, "tag") == tag)
			break;
		if (c->on_event)
			c->on_event(c->arg, event);
		json_decref(event);
	}
	if (!event)
		die("the DVM %s has gone", c->name);
	if (!strcmp(event_name(event), "error"))
		die("%s", get_text(event, "why"));
	return event;
}

static void __attribute__((noreturn)) die_not_up(const char *name, int error)
{
	char file[DVM_PATH_MAX];

	if (strchr(name, '/'))
		die("%s: %s", name, remote_strerror(error));
	if (error == -ENOENT || !dvm_address(file, name))
		die("no DVM of the name %s is up on this machine, nor is it known of another",
		    name);
	die("no DVM of the name %s is up on this machine, and on that of which %s tells: %s",
	    name, file, remote_strerror(error));
}

struct conn *conn_open(const char *given)
{
	char *name = dvm_find(given);
	struct conn *c = calloc(1, sizeof(*c));

	if (!c || !name)
		die("out of memory");
	c->name = name;
	c->fd = try_connect(name, &c->there);
	if (c->fd < 0)
		die_not_up(name, c->fd);
	c->in = c->there ? remote_reader(c->fd) : fdopen(c->fd, "r");
	if (!c->in)
		die("out of memory");
	json_decref(conn_ask(c, json_pack("{s:s,s:i}", "op", "hello", "version",
					  DVM_VERSION)));
	return c;
}

void conn_close(struct conn *c)
{
	fclose(c->in);
	free(c->line);
	free(c->name);
	free(c);
}

long long get_number(json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

const char *get_text(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

json_int_t get_task(const char *text)
{
	uint64_t id;

	if (!decimal_u64(text, 1, INT64_MAX, &id))
		die_usage("\"%s\" is not the number of a task", text);
	return (json_int_t)id;
}

void print_json(json_t *value)
{
	json_dumpf(value, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	putchar('\n');
}

char *get_bytes(json_t *data, size_t *len)
{
	const unsigned char *at = (const void *)json_string_value(data);
	size_t size = json_string_length(data);
	char *bytes = malloc(size + 1);

	if (!bytes)
		die("out of memory");
	*len = 0;
	for (size_t i = 0; i < size; i++) {
		unsigned high = at[i] < 0x80 ? 0 : at[i++];

		bytes[(*len)++] =
			(char)(high ? high << 6 | (at[i] & 0x3f) : at[i]);
	}
	return bytes;
}

/* ---- profile ---- */

static void add_variable(json_t *env, const char *variable)
{
	const char *equals = strchr(variable, '=');
	char *name;

	if (!equals || equals == variable)
		return;
	name = strndup(variable, (size_t)(equals - variable));
	/* What is no text of UTF-8 cannot travel. */
	if (name && json_object_set_new(env, name, json_string(equals + 1)))
		fprintf(stderr, "pmi2x-dvm: the variable %s is left out: it is no UTF-8 text\n",
			name);
	free(name);
}

json_t *make_profile(void)
{
	unsigned char hash[HASH_NAME_SIZE];
	char id[2 * HASH_NAME_SIZE + 1], cwd[DVM_TEXT_MAX], *text;
	json_t *env = json_object(), *p;

	if (!getcwd(cwd, sizeof(cwd)))
		die("the working directory has no name, or one that is too long: %s",
		    strerror(errno));
	for (char **v = environ; *v; v++)
		add_variable(env, *v);
	p = json_pack("{s:s,s:o}", "cwd", cwd, "env", env);
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
