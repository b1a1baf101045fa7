/* SPDX-License-Identifier: BSD-3-Clause */
/* A directory that its user may fill with anything: what is removed, and what is not. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/user_dir.h"

#define PREFIX "pmi2x.test."
#define DEPTH 3000 /* no path is that long */

static char top[] = "/tmp/pmi2x-user-dir-XXXXXX";
static char path[64], other[64], outside[64];

static int make_top(void **state)
{
	if (!mkdtemp(top))
		return 1;
	snprintf(path, sizeof(path), "%s/" PREFIX "1", top);
	snprintf(other, sizeof(other), "%s/" PREFIX "2", top);
	snprintf(outside, sizeof(outside), "%s/outside", top);
	return mkdir(outside, 0755);
}

static int remove_top(void **state)
{
	return rmdir(outside) || rmdir(top);
}

static bool is_there(const char *name)
{
	struct stat st;

	return !lstat(name, &st);
}

static int make(const char *name)
{
	int fd = user_dir_make(name, getuid(), getgid());

	assert_true(fd >= 0);
	return fd;
}

TEST(only_its_user_may_enter)
{
	mode_t before = umask(0777);
	int fd = make(path);
	struct stat st;

	umask(before);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(user_dir_remove(fd, path), 0);
	assert_false(is_there(path));
}

TEST(links_are_removed_and_not_followed)
{
	int fd = make(path);

	assert_int_equal(symlinkat(outside, fd, "link"), 0);
	assert_int_equal(mkdirat(fd, "sub", 0700), 0);
	assert_int_equal(symlinkat(outside, fd, "sub/link"), 0);
	assert_int_equal(mkfifoat(fd, "fifo", 0600), 0);
	assert_int_equal(user_dir_remove(fd, path), 0);
	assert_false(is_there(path));
	assert_true(is_there(outside));
}

/* Names that it gives itself are taken there already. */
TEST(no_depth_is_too_deep)
{
	int fd = make(path), at = dup(fd), next;

	for (int i = 0; i < DEPTH; i++) {
		char name[16];

		snprintf(name, sizeof(name), ".%d", i);
		assert_int_equal(mkdirat(at, name, 0700), 0);
		next = openat(at, name, O_RDONLY | O_DIRECTORY);
		assert_true(next >= 0);
		close(at);
		at = next;
	}
	close(at);
	assert_int_equal(user_dir_remove(fd, path), 0);
	assert_false(is_there(path));
}

TEST(remains_of_a_killed_process_are_removed_by_the_next)
{
	int fd = make(path);

	assert_int_equal(mkdirat(fd, "sub", 0700), 0);
	close(fd); /* its process is killed */
	fd = make(path);
	assert_int_not_equal(faccessat(fd, "sub", F_OK, 0), 0);
	assert_int_equal(user_dir_remove(fd, path), 0);
}

static void fill(const char *name, unsigned int files)
{
	int fd = make(name);

	for (unsigned int i = 0; i < files; i++) {
		char file[16];

		snprintf(file, sizeof(file), "%u", i);
		close(openat(fd, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
	close(fd);
}

static unsigned int count_files(const char *name)
{
	DIR *d = opendir(name);
	unsigned int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n ? n - 2 : 0;
}

/* A user who leaves many files behind delays others' steps by no more than that. */
TEST(stale_files_are_removed_a_limited_number_at_a_time)
{
	const unsigned int files = USER_DIR_STALE_MAX + 100;
	char third[64];

	snprintf(third, sizeof(third), "%s/" PREFIX "3", top);
	fill(path, files);
	fill(other, files);
	user_dir_remove_stale(third, PREFIX);
	assert_true(count_files(path) + count_files(other) >= 2 * files - USER_DIR_STALE_MAX);
	while (is_there(path) || is_there(other)) {
		unsigned int before = count_files(path) + count_files(other);

		user_dir_remove_stale(third, PREFIX);
		assert_true(before == 0 ||
			    count_files(path) + count_files(other) < before);
	}
}

/* As fusermount does for a user, by a program that never answers. */
static bool mount_at(const char *place)
{
	int fd = open("/dev/fuse", O_RDWR);
	char options[128];

	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
	return fd >= 0 && !mount("test", place, "fuse", MS_NOSUID | MS_NODEV, options);
}

/* 0; 77: nothing can be mounted here. A wait for the mount ends by the alarm. */
static int remove_around_mount(const char *place)
{
	int fd = make(path);

	(void)mkdirat(fd, "sub", 0700);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    !mount_at(place))
		return 77;
	alarm(60);
	(void)user_dir_remove(fd, path);
	user_dir_remove_stale(other, PREFIX);
	return user_dir_make(path, getuid(), getgid()) < 0 ? 0 : 1;
}

/* Before Linux 5.6, in an emulator and in some containers there is no such call. */
static bool has_openat2(void)
{
#ifdef SYS_openat2
	return syscall(SYS_openat2, -1, "", NULL, 0) < 0 && errno != ENOSYS &&
	       errno != EPERM;
#else
	return false;
#endif
}

TEST(mounts_of_the_user_are_not_waited_for)
{
	char sub[80];
	int status, n = 0;

	if (!has_openat2())
		skip();
	snprintf(sub, sizeof(sub), "%s/sub", path);
	for (const char *place = sub; place; place = place == sub ? path : NULL, n++) {
		pid_t pid = fork();

		if (!pid)
			_exit(remove_around_mount(place));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(user_dir_remove(make(path), path), 0);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			skip();
		assert_int_equal(status, 0);
	}
	assert_int_equal(n, 2);
}

TEST(one_in_use_is_left_alone)
{
	int fd = make(path), left = make(other);

	assert_int_equal(user_dir_make(path, getuid(), getgid()), -EBUSY);
	user_dir_remove_stale(path, PREFIX);
	assert_true(is_there(other));
	close(left);
	user_dir_remove_stale(path, PREFIX);
	assert_false(is_there(other));
	assert_true(is_there(path));
	assert_true(is_there(outside));
	assert_int_equal(user_dir_remove(fd, path), 0);
}

int main(void)
{
	return unit_run(NULL, make_top, remove_top);
}
