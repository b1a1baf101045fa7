/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The results region as other processes have it: they cannot change it, attach to
 * nothing else, and see whole generations while the agent publishes.
 */
#include "config.h" /* _GNU_SOURCE */

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "region-fixture.h"

#define NOBODY 65534
#define CANNOT 77 /* a child may not do what it is to try */
#define CHILD_SECONDS 60 /* a child that hangs ends the test */

/* ---- helpers ---- */

/* Run `body` in a child; 0 or the line at which the child gave up. */
static int in_child(int (*body)(void *arg), void *arg)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(CHILD_SECONDS);
		_exit(body(arg));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* In a child: leave with a number that says where. */
#define EXPECT(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%d: %s\n", __LINE__, #condition); \
			return 1; \
		} \
	} while (0)

/* ---- protection ---- */

static int attack(void *arg)
{
	const struct region_writer *w = arg;
	int fd = region_writer_fd(w), again;
	size_t size = region_writer_size(w);
	char path[64];
	void *map;

	map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	EXPECT(map != MAP_FAILED);
	EXPECT(write(fd, "x", 1) < 0);
	EXPECT(pwrite(fd, "x", 1, 4096) < 0);
	EXPECT(ftruncate(fd, 0) < 0);
	EXPECT(ftruncate(fd, 2 * size) < 0);
	EXPECT(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			 4096) < 0);
	EXPECT(mprotect(map, 4096, PROT_READ | PROT_WRITE) < 0);
	EXPECT(madvise(map, 4096, MADV_REMOVE) < 0);
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) ==
	       MAP_FAILED);
	EXPECT(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	EXPECT(truncate(path, 0) < 0);
	again = open(path, O_RDWR);
	if (geteuid() != 0)
		EXPECT(again < 0);
	if (again < 0)
		return 0;
	/* Root opens what it likes: the seals remain. */
	EXPECT(pwrite(again, "x", 1, 4096) < 0);
	EXPECT(ftruncate(again, 0) < 0);
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again,
		    0) == MAP_FAILED);
	EXPECT(fallocate(again, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			 4096) < 0);
	return 0;
}

static int attack_as_nobody(void *arg)
{
	int fd = region_writer_fd(arg);

	EXPECT(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
	EXPECT(fchmod(fd, 0666) < 0);
	return attack(arg);
}

WRITER_TEST(nobody_else_can_change_it, REGION_SIZE_MIN)
{
	struct stat st;

	NOT_EMULATED("what madvise may not do");
	assert_int_equal(publish_keys(w, "k", 100, "v"), 0);
	assert_int_equal(fcntl(region_writer_fd(w), F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(region_writer_fd(w), F_GETFL) & O_ACCMODE,
			 O_RDONLY);
	assert_int_equal(fstat(region_writer_fd(w), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0444);
	assert_int_equal(in_child(attack, w), 0);
	if (geteuid() == 0)
		assert_int_equal(in_child(attack_as_nobody, w), 0);
}

/* ---- attaching ---- */

TEST(sizes_out_of_range_are_refused)
{
	struct region_writer *w;

	assert_int_equal(region_writer_create(&w, 0), -EINVAL);
	assert_int_equal(region_writer_create(&w, REGION_SIZE_MIN - 1),
			 -EINVAL);
	assert_int_equal(region_writer_create(&w, SIZE_MAX), -EINVAL);
	assert_int_equal(region_writer_create(&w, REGION_SIZE_MIN + 1), 0);
	assert_int_equal(region_writer_size(w) % 4096, 0);
	attach(w);
	region_writer_destroy(w);
}

WRITER_TEST(files_that_are_no_region_are_rejected, REGION_SIZE_MIN)
{
	size_t size = region_writer_size(w);
	struct region *r;
	int pipes[2], fd;

	assert_int_equal(region_attach(&r, region_writer_fd(w), 2 * size),
			 -EPROTO);
	assert_int_equal(region_attach(&r, region_writer_fd(w), size / 2),
			 -EPROTO);
	assert_int_equal(region_attach(&r, region_writer_fd(w), 0), -EPROTO);
	assert_int_equal(region_attach(&r, -1, size), -EBADF);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(region_attach(&r, pipes[0], size), -EPROTO);
	close(pipes[0]);
	close(pipes[1]);
	fd = memfd_create("zeros", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(region_attach(&r, fd, size), -EPROTO);
	close(fd);
}

/* A region of another version, byte order or maker, field by field. */
WRITER_TEST(foreign_headers_are_refused, REGION_SIZE_MIN)
{
	struct region *r = attach(w);
	size_t size = region_writer_size(w);
	int fd = memfd_create("copy", MFD_CLOEXEC);
	struct region *copy;

	assert_int_equal(ftruncate(fd, size), 0);
	for (size_t at = 0; at < 24; at++) {
		unsigned char bytes[24];

		memcpy(bytes, region_bytes(r, 0, 24), 24);
		assert_int_equal(pwrite(fd, bytes, 24, 0), 24);
		assert_int_equal(region_attach(&copy, fd, size), 0);
		region_detach(copy);
		bytes[at] ^= 0x81;
		assert_int_equal(pwrite(fd, bytes, 24, 0), 24);
		assert_int_equal(region_attach(&copy, fd, size), -EPROTO);
	}
	assert_int_equal(pwrite(fd, region_bytes(r, 0, 24), 24, 0), 24);
	assert_int_equal(ftruncate(fd, size - 1), 0);
	assert_int_equal(region_attach(&copy, fd, size), -EPROTO);
	close(fd);
}

static int attach_without_room(void *arg)
{
	const struct region_writer *w = arg;
	struct rlimit none = {1 << 20, 1 << 20};
	struct region *r;

	EXPECT(setrlimit(RLIMIT_AS, &none) == 0);
	EXPECT(region_attach(&r, region_writer_fd(w), region_writer_size(w)) ==
	       -ENOMEM);
	return 0;
}

WRITER_TEST(a_limit_on_memory_is_an_error_not_a_crash, REGION_SIZE_DEFAULT)
{
	NOT_EMULATED("a limit of address space");
	assert_int_equal(in_child(attach_without_room, w), 0);
}

#define LITTLE (1 << 20) /* bytes: far more than one generation takes */

static size_t memory_of(const struct region_writer *w)
{
	struct stat s;

	return fstat(region_writer_fd(w), &s) ? SIZE_MAX :
		(size_t)s.st_blocks * 512;
}

/* As root does it: others may lock less than a region. */
static int lock_all(void *arg)
{
	struct region_writer *w;
	struct region *r;

	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		return CANNOT;
	w = new_writer(REGION_SIZE_DEFAULT);
	EXPECT(publish_keys(w, "k", 1, "v") == 0);
	EXPECT(memory_of(w) < LITTLE);
	r = attach(w);
	EXPECT(has_key(r, "k0"));
	EXPECT(memory_of(w) < LITTLE);
	return 0;
}

/* slurmstepd does with LaunchParameters=slurmstepd_memlock_all. */
TEST(process_with_mlockall_locks_no_more_than_used)
{
	int rc = geteuid() ? CANNOT : in_child(lock_all, NULL);

	if (rc == CANNOT)
		skip();
	assert_int_equal(rc, 0);
}

/* ---- readers while the agent publishes ---- */

#define GENERATIONS 300
#define WIDTH 20

static long read_number(const struct region *r, const char *key)
{
	const char *value;
	size_t len;

	return region_find(r, key, strlen(key), &value, &len) ? atol(value) : -1;
}

/* A key never goes back, and no key of a generation comes before another. */
static int watch(void *arg)
{
	const struct region_writer *w = arg;
	struct region *r;
	long seen = -1;

	EXPECT(region_attach(&r, region_writer_fd(w),
			     region_writer_size(w)) == 0);
	while (seen < GENERATIONS - 1)
		for (int i = 0; i < WIDTH; i++) {
			char key[32];
			long g;

			snprintf(key, sizeof(key), "k%d", i);
			g = read_number(r, key);
			EXPECT(g >= seen);
			seen = g;
			snprintf(key, sizeof(key), "only%ld-%d", g, i);
			EXPECT(g < 0 || read_number(r, key) == g);
		}
	region_detach(r);
	return 0;
}

static void publish_generation(struct region_writer *w, int g)
{
	struct payload *image;
	struct buf b;
	char k[32], v[32];

	buf_init(&b, 1 << 20);
	snprintf(v, sizeof(v), "%d", g);
	for (int i = 0; i < WIDTH; i++) {
		snprintf(k, sizeof(k), "k%d", i);
		record_append(&b, k, strlen(k), v, strlen(v));
		snprintf(k, sizeof(k), "only%d-%d", g, i);
		record_append(&b, k, strlen(k), v, strlen(v));
	}
	image = finish_fence(&b);
	assert_int_equal(region_publish_fence(w, image->data, image->len), 0);
	payload_unref(image);
}

WRITER_TEST(readers_see_whole_generations_only, REGION_SIZE_DEFAULT)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(CHILD_SECONDS);
		_exit(watch(w));
	}
	for (int g = 0; g < GENERATIONS; g++)
		publish_generation(w, g);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}
