/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that write complete output to files, and those that cannot. */
#include "dvm/node/output_writer.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#define PART 3
#define MUCH ((size_t)4 << 20) /* more than a socket takes */
#define STALL_MS 50

struct bed {
	uv_loop_t loop;
	struct output_writers *writers;
	char dir[64], outputs[80];
	bool full, was_full;
	unsigned answers;
	char files[256], why[256];
	size_t files_len;
};

static void on_full(void *arg, uint32_t part, bool full)
{
	struct bed *b = arg;

	assert_int_equal(part, PART);
	b->full = full;
	b->was_full |= full;
}

static void on_kept(void *arg, uint32_t part, const struct node_kept *kept)
{
	struct bed *b = arg;

	assert_int_equal(part, PART);
	b->answers++;
	b->files_len = kept->files.len;
	if (kept->files.len)
		memcpy(b->files, kept->files.data, kept->files.len);
	snprintf(b->why, sizeof(b->why), "%s", kept->why ? kept->why : "");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

static void bed_destroy(void *bed)
{
	struct bed *b = bed;

	output_writers_close(b->writers);
	uv_run(&b->loop, UV_RUN_DEFAULT);
	output_writers_destroy(b->writers);
	assert_int_equal(uv_loop_close(&b->loop), 0);
	while (waitpid(-1, NULL, 0) > 0)
		;
	nftw(b->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(b);
}

static struct bed *bed_create(uint32_t stall_ms)
{
	static const struct output_writers_ops ops = { on_full, on_kept };
	struct bed *b = calloc(1, sizeof(*b));

	strcpy(b->dir, "/tmp/output-writer-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	snprintf(b->outputs, sizeof(b->outputs), "%s/outputs", b->dir);
	assert_int_equal(uv_loop_init(&b->loop), 0);
	assert_int_equal(output_writers_create(&b->writers, &b->loop, stall_ms, &ops, b), 0);
	return unit_at_end(bed_destroy, b);
}

#define BED_TEST(name, stall_ms) TEST_ON(name, struct bed *b, bed_create(stall_ms))

static void begin(struct bed *b, const char *dir)
{
	const struct node_keep what = { .dir = dir, .name = "7", .umask = DVM_UMASK_GIVEN | 077 };

	assert_int_equal(output_writers_begin(b->writers, PART, &what), 0);
}

static void write_much(struct bed *b, int stream, size_t len)
{
	static char data[65536];

	memset(data, 'x', sizeof(data));
	for (size_t n; len; len -= n) {
		n = len < sizeof(data) ? len : sizeof(data);
		output_writers_write(b->writers, PART, stream, data, n);
	}
}

static void until_not_full(struct bed *b)
{
	while (b->full)
		uv_run(&b->loop, UV_RUN_ONCE);
}

static void until_answered(struct bed *b)
{
	output_writers_end(b->writers, PART);
	assert_int_equal(b->answers, 0); /* not during the call */
	while (!b->answers)
		uv_run(&b->loop, UV_RUN_ONCE);
	assert_int_equal(b->answers, 1);
}

static long size_of(struct bed *b, const char *name, mode_t *mode)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", b->outputs, name);
	if (stat(path, &st) < 0)
		return -1;
	*mode = st.st_mode & 0777;
	return (long)st.st_size;
}

/* The only child. */
static pid_t process(void)
{
	FILE *children = fopen("/proc/thread-self/children", "re");
	int pid = 0;

	assert_int_equal(fscanf(children, "%d", &pid), 1);
	fclose(children);
	return pid;
}

BED_TEST(wait_lasts_until_the_process_takes_what_is_left, OUTPUT_WRITER_STALL_MS)
{
	begin(b, b->outputs);
	kill(process(), SIGSTOP);
	assert_int_equal(output_writers_stall_ms(b->writers, PART), 0);
	write_much(b, 1, MUCH);
	assert_true(b->full);
	do
		uv_run(&b->loop, UV_RUN_NOWAIT);
	while (output_writers_stall_ms(b->writers, PART) < 2);
	kill(process(), SIGCONT);
	until_not_full(b);
	assert_int_equal(output_writers_stall_ms(b->writers, PART), 0);
	until_answered(b);
}

BED_TEST(streams_have_a_file_each_in_a_new_directory, OUTPUT_WRITER_STALL_MS)
{
	mode_t mode;

	begin(b, b->outputs);
	output_writers_write(b->writers, PART, 1, "out", 3);
	output_writers_write(b->writers, PART, 2, "errors", 6);
	until_answered(b);
	assert_string_equal(b->why, "");
	assert_int_equal(b->files_len, 12);
	assert_memory_equal(b->files, "7.out\0" "7.err", 12);
	assert_int_equal(size_of(b, "7.out", &mode), 3);
	assert_int_equal(mode, 0600);
	assert_int_equal(size_of(b, "7.err", &mode), 6);
}

BED_TEST(file_that_is_there_is_not_written, OUTPUT_WRITER_STALL_MS)
{
	mode_t mode;

	for (int i = 0; i < 2; i++) {
		b->answers = 0;
		begin(b, b->outputs);
		output_writers_write(b->writers, PART, 1, "more", (size_t)i + 1);
		until_answered(b);
	}
	assert_string_equal(b->files, "7.1.out");
	assert_int_equal(size_of(b, "7.out", &mode), 1);
	assert_int_equal(size_of(b, "7.1.out", &mode), 2);
}

BED_TEST(part_waits_while_its_process_takes_nothing, OUTPUT_WRITER_STALL_MS)
{
	mode_t mode;

	begin(b, b->outputs);
	kill(process(), SIGSTOP);
	write_much(b, 1, MUCH);
	assert_true(b->full);
	kill(process(), SIGCONT);
	until_not_full(b);
	until_answered(b);
	assert_int_equal(size_of(b, "7.out", &mode), MUCH);
}

BED_TEST(process_that_takes_nothing_is_given_up, STALL_MS)
{
	begin(b, b->outputs);
	kill(process(), SIGSTOP);
	write_much(b, 1, MUCH);
	until_not_full(b);
	write_much(b, 1, MUCH); /* is dropped */
	assert_false(b->full);
	until_answered(b);
	assert_non_null(strstr(b->why, "the file system has not answered for"));
	assert_int_equal(b->files_len, 0);
}

BED_TEST(end_does_not_wait_longer_for_a_file_system, STALL_MS)
{
	begin(b, b->outputs);
	kill(process(), SIGSTOP);
	write_much(b, 1, 10);
	until_answered(b);
	assert_non_null(strstr(b->why, "the file system has not answered for"));
}

BED_TEST(process_that_is_killed_is_named, OUTPUT_WRITER_STALL_MS)
{
	begin(b, b->outputs);
	kill(process(), SIGKILL);
	write_much(b, 1, 10);
	until_answered(b);
	assert_true(strstr(b->why, "was killed") || strstr(b->why, strerror(EPIPE)) ||
		    strstr(b->why, strerror(ECONNRESET)));
}

BED_TEST(error_of_a_directory_is_reported_and_blocks_nothing, OUTPUT_WRITER_STALL_MS)
{
	begin(b, "/proc/none/outputs");
	write_much(b, 1, MUCH);
	until_not_full(b);
	until_answered(b);
	assert_string_equal(b->why, strerror(ENOENT));
	assert_int_equal(b->files_len, 0);
}

BED_TEST(full_disk_is_reported, OUTPUT_WRITER_STALL_MS)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 1000, limit.rlim_max });
	begin(b, b->outputs);
	setrlimit(RLIMIT_FSIZE, &limit);
	write_much(b, 1, MUCH);
	until_not_full(b);
	until_answered(b);
	assert_string_equal(b->why, strerror(EFBIG));
	assert_string_equal(b->files, "7.out");
}

BED_TEST(daemon_that_closes_leaves_no_process, OUTPUT_WRITER_STALL_MS)
{
	begin(b, b->outputs);
	write_much(b, 1, 10);
	output_writers_close(b->writers);
	assert_int_equal(b->answers, 0);
}
