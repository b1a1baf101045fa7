/* SPDX-License-Identifier: BSD-3-Clause */
/* Complete output of tasks that print more than a result has. */
#include <signal.h>

#include "bed.h"

#define SUBMIT \
	"{'op':'submit','profile':{'id':'o','cwd':'/','env':{},'outputs':'/outputs'},'tasks':[%s]}"

static void start_task(struct bed *b, const char *task)
{
	request(b, SUBMIT, task);
}

static struct fake_node *node_of(struct bed *b, int64_t process)
{
	return &b->nodes[b->processes[process].node];
}

/* The rank prints this number of bytes in two pieces. */
static void print(struct bed *b, int64_t process, int fd, size_t len)
{
	static char data[8192];
	struct fake_node *n = node_of(b, process);

	for (size_t i = 0; i < len; i++)
		data[i] = (char)('a' + i % 26);
	dvm_node_output(n->node, b->processes[process].part, fd, data, len / 2);
	dvm_node_output(n->node, b->processes[process].part, fd, data + len / 2, len - len / 2);
}

static void answer(struct fake_node *n, const char *files, size_t len, const char *why)
{
	const struct node_kept kept = { { files, len }, why };

	dvm_node_kept(n->node, n->ending, &kept, n->bed->now);
	deliver_all(n->bed);
}

BED_TEST(output_that_fits_in_the_result_has_no_file)
{
	start_task(b, "{'argv':['x']}");
	print(b, 1, 1, DVM_TAIL_MAX);
	print(b, 1, 2, DVM_TAIL_MAX);
	end_now(b, 1, 0);
	assert_string_equal(node_of(b, 1)->name, "");
	assert_null(json_object_get(end_of(b, 1), "files"));
	assert_int_equal(json_string_length(json_object_get(end_of(b, 1), "out")), DVM_TAIL_MAX);
}

BED_TEST(longer_output_is_in_a_file_from_its_first_byte)
{
	struct fake_node *n;

	start_task(b, "{'argv':['x'],'number':7}");
	n = node_of(b, 1);
	print(b, 1, 1, DVM_TAIL_MAX + 1);
	print(b, 1, 2, 10);
	assert_string_equal(n->name, "7");
	assert_int_equal(n->written_len[0], DVM_TAIL_MAX + 1);
	assert_memory_equal(n->written[0], "abcdefgh", 8);
	assert_int_equal(n->written_len[1], 0);
}

BED_TEST(task_ends_when_its_files_are_closed_and_the_result_names_them)
{
	start_task(b, "{'argv':['x']}");
	print(b, 1, 1, DVM_TAIL_MAX + 1);
	end_now(b, 1, 0);
	assert_null(end_of(b, 1));
	request(b, "{'op':'cancel','ids':[1]}");
	answer(node_of(b, 1), "1.out", 6, NULL);
	assert_int_equal(number(end_of(b, 1), "code"), 0);
	assert_string_equal(json_string_value(json_array_get(
		json_object_get(end_of(b, 1), "files"), 0)), "/outputs/1.out");
	assert_null(json_object_get(end_of(b, 1), "files_lost"));
}

BED_TEST(result_says_why_a_file_is_not_whole)
{
	start_task(b, "{'argv':['x']}");
	print(b, 1, 2, DVM_TAIL_MAX + 1);
	end_now(b, 1, 1 << 8);
	answer(node_of(b, 1), "1.err", 6, "No space left on device");
	assert_string_equal(text(end_of(b, 1), "files_lost"), "No space left on device");
}

BED_TEST(node_that_can_begin_no_file_says_so_and_the_end_does_not_wait)
{
	for (int i = 0; i < NODES; i++)
		b->nodes[i].no_files = true;
	start_task(b, "{'argv':['x']}");
	print(b, 1, 1, DVM_TAIL_MAX + 1);
	end_now(b, 1, 0);
	assert_non_null(strstr(text(end_of(b, 1), "files_lost"), "no process can write it: "));
	assert_int_equal(node_of(b, 1)->written_len[0], 0);
}

#define OVER_TWO_NODES "{'argv':['x'],'ranks':2,'nodes':2,'per_node':1}"

BED_TEST(task_over_nodes_has_a_file_of_each_part_that_prints)
{
	json_t *files;

	start_task(b, OVER_TWO_NODES);
	print(b, 1, 2, 10);
	print(b, 2, 1, 10);
	assert_string_equal(node_of(b, 1)->name, "1");
	assert_string_equal(node_of(b, 2)->name, "1.r1");
	end_process(b, 1, 0);
	end_now(b, 2, 0);
	answer(node_of(b, 1), "1.err", 6, NULL);
	answer(node_of(b, 2), "1.r1.out", 9, NULL);
	files = json_object_get(end_of(b, 1), "files");
	assert_int_equal(json_array_size(files), 2);
}

BED_TEST(task_over_nodes_of_which_only_rank_0_prints_has_no_file)
{
	start_task(b, OVER_TWO_NODES);
	print(b, 1, 1, DVM_TAIL_MAX);
	end_process(b, 1, 0);
	end_now(b, 2, 0);
	assert_string_equal(node_of(b, 1)->name, "");
	assert_int_equal(json_string_length(json_object_get(end_of(b, 1), "out")), DVM_TAIL_MAX);
}

/* The other rank prints, too, fails, and ends first. */
static void end_second_first(struct bed *b, const char *lost)
{
	start_task(b, OVER_TWO_NODES);
	print(b, 1, 1, 10);
	print(b, 2, 1, 20);
	end_now(b, 2, 1 << 8);
	answer(node_of(b, 2), "1.r1.out", 9, lost);
	end_now(b, 1, SIGTERM);
	assert_int_equal(number(end_of(b, 1), "code"), 1);
}

BED_TEST(result_has_the_output_of_the_part_without_a_file)
{
	end_second_first(b, NULL);
	assert_int_equal(json_string_length(json_object_get(end_of(b, 1), "out")), 10);
}

BED_TEST(part_whose_file_is_not_whole_reports_its_last_output)
{
	end_second_first(b, "No space left on device");
	assert_int_equal(json_string_length(json_object_get(end_of(b, 1), "out")), 20);
}

BED_TEST(tasks_without_a_directory_for_output_have_no_file)
{
	submit(b, "{'argv':['x']}");
	print(b, 1, 1, DVM_TAIL_MAX + 1);
	end_now(b, 1, 0);
	assert_string_equal(node_of(b, 1)->name, "");
	assert_int_equal(json_string_length(json_object_get(end_of(b, 1), "out")), DVM_TAIL_MAX);
}

BED_TEST(directory_must_begin_with_a_slash)
{
	request(b, "{'op':'submit','profile':{'id':'o','cwd':'/','outputs':'o'},'tasks':[]}");
	assert_non_null(strstr(text(event(b, "error"), "why"), "\"outputs\" of a profile"));
}

TEST(why_names_the_directory_that_takes_no_output)
{
	struct bed *b = bed_create(100);
	json_t *stall;

	start_task(b, "{'argv':['x']}");
	node_of(b, 1)->stall_ms = 2500;
	ask(b, "{'op':'why','id':1}"); /* no file has begun */
	deliver_all(b);
	assert_null(json_object_get(event(b, "told"), "file_stall"));
	print(b, 1, 1, DVM_TAIL_MAX + 1);
	ask(b, "{'op':'why','id':1}");
	deliver_all(b);
	stall = json_object_get(event(b, "told"), "file_stall");
	assert_string_equal(text(stall, "dir"), "/outputs");
	assert_true(json_number_value(json_object_get(stall, "seconds")) == 2.5);
}
