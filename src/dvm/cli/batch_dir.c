/* SPDX-License-Identifier: BSD-3-Clause */
/* The directory of a batch, which it has between its runs: batch_dir.h. */
#include "dvm/cli/batch_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dvm/cli/client.h"
#include "dvm/cli/results_file.h"
#include "dvm/common/journal_file.h"
#include "dvm/common/rundir.h"
#include "libio/clock.h"

#define EARLIER_RUN_S 60 /* more than KillWait of most sites */
#define SUFFIX ".journal"
#define RESULTS ".results"
#define WHO_MAX 256

static char *print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static char *print(const char *fmt, ...)
{
	va_list ap;
	char *text;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		die("out of memory");
	return text;
}

/* ---- names ---- */

/* A directory of this user's, or none yet in one that this user can write. */
static bool is_possible(const char *parent, const char *dir)
{
	struct stat st;

	if (!stat(dir, &st))
		return st.st_uid == geteuid();
	return !access(parent, W_OK | X_OK);
}

static char *real_path(const char *path)
{
	char *real = realpath(path, NULL);

	if (!real)
		die("%s: %s", path, strerror(errno));
	return real;
}

static char *own_name(const char *file)
{
	const char *element = getenv("SLURM_ARRAY_TASK_ID");
	char *real = real_path(file), *here = real_path("."), *name = strrchr(real, '/') + 1;
	char *base = print("%s%s%s" SUFFIX, name, element ? "." : "", element ? element : "");
	char *dir;

	name[-1] = '\0'; /* the path before the name is its directory */
	dir = print("%s/%s", real, base);
	if (!is_possible(real, dir)) {
		free(dir);
		dir = print("%s/%s", here, base);
	}
	free(base);
	free(real);
	free(here);
	return dir;
}

/* FILE.results of FILE.journal; DIR.results of another DIR. */
static char *results_name(const char *dir)
{
	size_t len = strlen(dir), cut = len - strlen(SUFFIX);

	if (len > strlen(SUFFIX) && !strcmp(dir + cut, SUFFIX))
		len = cut;
	return print("%.*s" RESULTS, (int)len, dir);
}

static bool is_there(const struct batch_dir *b, const char *name)
{
	char *path = print("%s/%s", b->dir, name);
	bool there = !access(path, F_OK);

	free(path);
	return there;
}

bool batch_dir_has_journal(const struct batch_dir *b)
{
	return b->dir && is_there(b, "journal");
}

/* ---- small files ---- */

static void write_number(const struct batch_dir *b, const char *name, uint64_t number)
{
	char *path = print("%s/%s", b->dir, name);
	FILE *out = fopen(path, "we");

	if (!out || fprintf(out, "%llu\n", (unsigned long long)number) < 0 || fclose(out))
		die("cannot write %s: %s", path, strerror(errno));
	free(path);
}

/* False: there is none. */
static bool read_number(const struct batch_dir *b, const char *name, uint64_t *number)
{
	char *path = print("%s/%s", b->dir, name);
	FILE *in = fopen(path, "re");
	unsigned long long n = 0;
	bool read = in && fscanf(in, "%llu", &n) == 1;

	if (in)
		fclose(in);
	free(path);
	*number = n;
	return read;
}

static void remove_file(const struct batch_dir *b, const char *name)
{
	char *path = print("%s/%s", b->dir, name);

	unlink(path);
	free(path);
}

/* ---- the lock ---- */

static void write_who(int lock)
{
	const char *job = getenv("SLURM_JOB_ID");
	char host[WHO_MAX] = "?", *who;

	(void)gethostname(host, sizeof(host) - 1);
	who = print("%s%s%sprocess %d on %s", job ? "job " : "", job ? job : "", job ? ", " : "",
		    (int)getpid(), host);
	if (ftruncate(lock, 0) < 0 || write(lock, who, strlen(who)) < 0)
		die("out of space for the lock of the batch: %s", strerror(errno));
	free(who);
}

static void read_who(const struct batch_dir *b, char who[WHO_MAX])
{
	ssize_t n = pread(b->lock, who, WHO_MAX - 1, 0);

	who[n > 0 ? n : 0] = '\0';
}

static bool is_locked(const struct batch_dir *b)
{
	return flock(b->lock, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/*
 * True: an earlier run of this job, which was requeued, has the directory and is about to
 * end.
 */
static bool is_of_earlier_run(const char *who)
{
	const char *job = getenv("SLURM_JOB_ID");
	char *same = print("job %s,", job ? job : "");
	bool is = job && getenv("SLURM_RESTART_COUNT") && !strncmp(who, same, strlen(same));

	free(same);
	return is;
}

static void wait_for_earlier_run(const struct batch_dir *b, const char *who)
{
	fprintf(stderr, "pmi2x-dvm: waits for %s to end, which this job ran before it was requeued\n", who);
	for (int i = 0; i < EARLIER_RUN_S * 10 && is_locked(b); i++)
		sleep_ms(100);
}

static void refuse_busy(const struct batch_dir *b, const char *file)
{
	char who[WHO_MAX];

	read_who(b, who);
	if (is_of_earlier_run(who))
		wait_for_earlier_run(b, who);
	if (is_locked(b))
		die("%s works on %s now: wait until it has ended, or give --journal another directory",
		    *who ? who : "another process", file);
}

/* A file system without locks has none; the head's journal has its own owner then. */
static void take_lock(struct batch_dir *b, const char *file)
{
	char *path = print("%s/batch", b->dir);

	b->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (b->lock < 0)
		die("cannot make %s: %s", path, strerror(errno));
	if (is_locked(b))
		refuse_busy(b, file);
	free(path);
	write_who(b->lock);
}

/* ---- removal ---- */

static bool is_of_journal(const char *name)
{
	static const char *const names[] = { "lock", "batch", "begun", "fresh", "finished", "earlier" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return !strncmp(name, "journal", 7) || !strncmp(name, "owner.", 6);
}

/* Remove its files, but not the lock of this client if it is to work on. */
static void remove_files(const struct batch_dir *b, bool all)
{
	DIR *files = opendir(b->dir);
	struct dirent *e;

	while (files && (e = readdir(files)))
		if (is_of_journal(e->d_name) && (all || strcmp(e->d_name, "batch")))
			unlinkat(dirfd(files), e->d_name, 0);
	if (files)
		closedir(files);
	if (all)
		rmdir(b->dir);
}

static const struct batch_dir *fresh; /* made by this process; nothing is in it */

static void remove_fresh(void)
{
	if (fresh && !batch_dir_has_journal(fresh))
		remove_files(fresh, true);
}

/* ---- life ---- */

/* Standard input, pipes and devices are not there again for the next run. */
static bool is_regular(const char *file)
{
	struct stat st;

	return strcmp(file, "-") && (stat(file, &st) < 0 || S_ISREG(st.st_mode));
}

void batch_dir_open(struct batch_dir *b, const char *file, const char *journal)
{
	int rc;

	*b = (struct batch_dir){ .named = journal, .lock = -1 };
	if (!journal && !is_regular(file))
		return;
	b->dir = journal ? strdup(journal) : own_name(file);
	json_decref(user_text("the name of the journal", b->dir));
	rc = journal_dir_make(b->dir);
	if (rc && rc != -EEXIST)
		die("cannot make %s: %s; give --journal a directory that can be written", b->dir,
		    strerror(-rc));
	if (journal) {
		free(b->dir);
		b->dir = real_path(journal);
	}
	b->results = results_name(b->dir);
	take_lock(b, file);
	b->begun = is_there(b, "begun") || (batch_dir_has_journal(b) && !is_there(b, "fresh"));
	b->finished = read_number(b, "finished", &b->ignore);
	if (!b->finished)
		(void)read_number(b, "earlier", &b->ignore);
	if (b->begun)
		return;
	write_number(b, "fresh", 0);
	fresh = b;
	atexit(remove_fresh);
}

void batch_dir_begin(struct batch_dir *b)
{
	if (!b->dir)
		return;
	fresh = NULL;
	if (!b->begun)
		results_file_keep(b->results);
	b->begun = true;
	write_number(b, "begun", 0);
	remove_file(b, "fresh");
}

void batch_dir_start_over(struct batch_dir *b, bool used, uint64_t last)
{
	if (!b->dir)
		return;
	b->begun = false;
	write_number(b, "fresh", 0);
	remove_file(b, "begun");
	if (used) {
		b->ignore = last;
		write_number(b, "earlier", last);
		remove_file(b, "finished");
		return;
	}
	if (place_is_taken(b->dir))
		die("another DVM still writes the journal in %s: end it, or wait until it has ended",
		    b->dir);
	b->ignore = 0;
	remove_files(b, false);
	write_number(b, "fresh", 0);
}

void batch_dir_finish(struct batch_dir *b, bool used, uint64_t last)
{
	if (!b->dir)
		return;
	if (used || b->named)
		write_number(b, "finished", last);
	else
		remove_files(b, true);
}
