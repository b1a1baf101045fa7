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
#include <sys/un.h>
#include <unistd.h>

#include "headd.h"
#include "libdvm/dvm_msg.h"
#include "libutil/hash.h"
#include "pmi2x-build.h"

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

static int try_connect(const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char dir[DVM_PATH_MAX];
	int fd;

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
	close(fd);
	return -1;
}

bool dvm_is_up(const char *name)
{
	int fd = try_connect(name);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* The names of those that are up, one after another. */
static size_t list_up(char *names, size_t size)
{
	DIR *base = opendir(dvm_base());
	struct dirent *e;
	size_t count = 0, n = 0;

	*names = '\0';
	while (base && (e = readdir(base))) {
		if (e->d_name[0] == '.' || !dvm_is_up(e->d_name))
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

bool dvm_any_up(void)
{
	char names[2];

	return list_up(names, sizeof(names)) > 0;
}

char *dvm_find(const char *name)
{
	char names[1024];
	size_t n;

	if (!name)
		name = getenv(DVM_NAME_VARIABLE);
	if (name && *name)
		return strdup(name);
	n = list_up(names, sizeof(names));
	if (!n)
		die("no DVM is up on this machine: start one with pmi2x-dvm up, inside salloc or sbatch, or with --local N");
	if (n > 1)
		die("several DVMs are up: %s; say which with --dvm NAME or "
		    DVM_NAME_VARIABLE, names);
	return strdup(names);
}

/* ---- connection ---- */

struct conn {
	FILE *in;
	int fd;
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

	if (!text)
		die("out of memory, or an argument or variable is no UTF-8 text");
	len = strlen(text);
	text[len++] = '\n';
	for (size_t done = 0; done < len;) {
		ssize_t n = send(c->fd, text + done, len - done, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			die("the DVM %s has gone: %s", c->name, strerror(errno));
		done += n > 0 ? (size_t)n : 0;
	}
	free(text);
	json_decref(request);
}

json_t *conn_next(struct conn *c)
{
	ssize_t n = getline(&c->line, &c->size, c->in);
	json_t *event;

	if (n <= 0)
		return NULL;
	event = json_loadb(c->line, (size_t)n, 0, NULL);
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

struct conn *conn_open(const char *given)
{
	char *name = dvm_find(given);
	struct conn *c = calloc(1, sizeof(*c));

	if (!c || !name)
		die("out of memory");
	c->name = name;
	c->fd = try_connect(name);
	if (c->fd < 0)
		die("no DVM of the name %s is up on this machine", name);
	c->in = fdopen(c->fd, "r");
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
