/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of a head before its journal is safe, and those that wait for that. The test
 * says how much is safe; one node is played by it, too.
 */
#include "played.h"

#include <errno.h>
#include <stdlib.h>

#include "wrap-memory.h"

#define OTHER 2
#define SUBMIT "{'op':'submit','profile':{'id':'p','cwd':'/','env':{'A':'b'}},'tasks':["

static bool refuse;

static bool is_refused(void)
{
	return refuse;
}

struct bed {
	struct played p;
	char said[65536];  /* to CLIENT, and */
	char other[65536]; /* to OTHER */
	unsigned launches, dones, breaks;
};

static void on_message(void *arg, uint32_t node, const struct dvm_msg *m)
{
	struct bed *b = arg;

	b->launches += m->type == DVM_LAUNCH;
	b->dones += m->type == DVM_DONE;
}

static void client_send(void *arg, uint32_t client, const char *line, size_t len)
{
	struct bed *b = arg;
	char *to = client == CLIENT ? b->said : b->other;

	assert_true(strlen(to) + len < sizeof(b->said));
	strncat(to, line, len);
}

static void client_break(void *arg, uint32_t client)
{
	((struct bed *)arg)->breaks++;
}

static struct bed *create(bool journal, bool once, bool fast)
{
	static const struct dvm_head_ops ops = {
		.client_send = client_send, .client_break = client_break,
	};
	struct bed *b = played_new(sizeof(*b));

	b->p.options = usual_options(1);
	b->p.options.keeps = journal;
	b->p.options.once = once;
	b->p.options.fast = fast;
	b->p.cores = 4;
	b->p.message = on_message;
	played_start(&b->p, &ops, journal);
	dvm_head_client_opened(b->p.head, OTHER);
	return b;
}

static struct bed *bed_create(bool once, bool fast)
{
	return create(true, once, fast);
}

#define BED_TEST(name) TEST_ON(name, struct bed *b, bed_create(false, false))
#define ONCE_TEST(name) TEST_ON(name, struct bed *b, bed_create(true, false))

static void ask_as(struct bed *b, uint32_t client, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_request(b->p.head, client, b->p.now, fmt, ap);
	va_end(ap);
}

static uint64_t written(const struct bed *b)
{
	return b->p.journal.len - JOURNAL_HEADER_SIZE;
}

static void make_safe(struct bed *b, uint64_t position)
{
	dvm_head_safe(b->p.head, position, b->p.now);
	turn(&b->p);
}

static void make_all_safe(struct bed *b)
{
	make_safe(b, written(b));
}

static void end_task(struct bed *b, uint64_t id)
{
	const struct dvm_msg m = {
		.type = DVM_ENDED, .ended = { .task = id, .ended_ns = 5 },
	};

	say(&b->p, 0, &m);
}

static bool says(const char *where, const char *what)
{
	return strstr(where, what);
}

/* ---- tests ---- */

BED_TEST(a_submit_is_answered_when_it_is_safe)
{
	ask_as(b, CLIENT, SUBMIT "{'argv':['a']}]}");
	assert_int_equal(b->p.wait, DURABLE_NOW);
	assert_string_equal(b->said, "");
	make_safe(b, 10);
	assert_string_equal(b->said, "");
	make_all_safe(b);
	assert_true(says(b->said, "\"submitted\""));
}

TEST(head_without_a_journal_writes_nothing)
{
	struct bed *b = create(false, false, false);

	ask_as(b, CLIENT, SUBMIT "{'argv':['a']}]}");
	end_task(b, 1);
	assert_true(says(b->said, "\"submitted\""));
	assert_true(says(b->said, "\"ended\""));
	assert_int_equal(written(b), 0);
}

/* The answer's number could be taken for safe: the submit must be, and no later record. */
BED_TEST(nothing_passes_an_answer_that_waits)
{
	ask_as(b, CLIENT, SUBMIT "{'argv':['a']}]}");
	ask_as(b, CLIENT, "{'op':'status'}");
	ask_as(b, OTHER, "{'op':'status'}");
	assert_string_equal(b->said, "");
	assert_true(says(b->other, "\"status\""));
	make_all_safe(b);
	assert_true(strstr(b->said, "\"submitted\"") < strstr(b->said, "\"status\""));
}

BED_TEST(an_end_is_told_when_it_is_safe)
{
	ask_as(b, CLIENT, SUBMIT "{'argv':['a']},{'argv':['b']}]}");
	make_all_safe(b);
	b->p.wait = DURABLE_LATER;
	end_task(b, 1);
	end_task(b, 2);
	assert_int_equal(b->p.wait, DURABLE_SOON);
	assert_false(says(b->said, "\"ended\""));
	ask_as(b, OTHER, "{'op':'show','id':1}");
	ask_as(b, OTHER, "{'op':'ps','ended':true}");
	ask_as(b, OTHER, "{'op':'wait','ids':[1]}");
	assert_false(says(b->other, "\"done\""));
	make_all_safe(b);
	assert_true(says(b->said, "\"ended\""));
	assert_true(says(b->other, "\"done\""));
}

/* An answer that says how many have ended is of those ends, too. */
BED_TEST(a_wait_for_all_that_have_ended_waits_for_the_disk)
{
	ask_as(b, CLIENT, SUBMIT "{'argv':['a']}]}");
	make_all_safe(b);
	end_task(b, 1);
	b->p.wait = DURABLE_LATER;
	ask_as(b, OTHER, "{'op':'wait','all':true}");
	assert_int_equal(b->p.wait, DURABLE_SOON);
	assert_string_equal(b->other, "");
	make_all_safe(b);
	assert_true(says(b->other, "\"ok\""));
}

BED_TEST(the_end_of_a_task_of_run_is_told_at_once)
{
	ask_as(b, CLIENT, SUBMIT "{'argv':['a']}],'tied':true}");
	make_all_safe(b);
	end_task(b, 1);
	assert_true(says(b->said, "\"ended\""));
}

BED_TEST(nodes_hear_done_when_the_end_is_safe)
{
	uint64_t first;

	ask_as(b, CLIENT, SUBMIT "{'argv':['a']},{'argv':['b']},{'argv':['c']}]}");
	make_all_safe(b);
	end_task(b, 1);
	first = written(b);
	end_task(b, 2);
	end_task(b, 3);
	assert_int_equal(b->dones, 0);
	make_safe(b, first);
	assert_int_equal(b->dones, 1);
	make_all_safe(b);
	assert_int_equal(b->dones, 3);
}

BED_TEST(a_task_is_launched_when_its_start_is_written)
{
	ask_as(b, CLIENT, SUBMIT "{'argv':['a']}]}");
	assert_int_equal(b->launches, 1);
}

ONCE_TEST(with_once_a_task_is_launched_when_its_start_is_safe)
{
	uint64_t first;

	ask_as(b, CLIENT, SUBMIT "{'argv':['a']}]}");
	first = written(b);
	ask_as(b, CLIENT, SUBMIT "{'argv':['b']}]}");
	assert_int_equal(b->launches, 0);
	assert_int_equal(b->p.wait, DURABLE_NOW);
	make_safe(b, first);
	assert_int_equal(b->launches, 1);
	make_all_safe(b);
	assert_int_equal(b->launches, 2);
}

ONCE_TEST(a_task_that_is_cancelled_before_its_start_is_safe_ends)
{
	ask_as(b, CLIENT, SUBMIT "{'argv':['a']}]}");
	ask_as(b, CLIENT, "{'op':'cancel','ids':[1]}");
	make_all_safe(b);
	assert_int_equal(b->launches, 1);
	end_task(b, 1);
	make_all_safe(b);
	assert_true(says(b->said, "\"cancelled\""));
}

TEST(with_fast_nothing_waits_for_the_disk)
{
	struct bed *b = bed_create(true, true);

	ask_as(b, CLIENT, SUBMIT "{'argv':['a']}]}");
	assert_true(says(b->said, "\"submitted\""));
	assert_int_equal(b->launches, 1);
	end_task(b, 1);
	assert_true(says(b->said, "\"ended\""));
	assert_int_equal(b->dones, 1);
	assert_int_equal(b->p.wait, DURABLE_LATER);
}

BED_TEST(while_nothing_can_be_made_safe_nothing_is_taken_or_started)
{
	ask_as(b, CLIENT, "{'op':'drain','node':'n0'}");
	ask_as(b, CLIENT, SUBMIT "{'argv':['a']}]}");
	dvm_head_journal_failed(b->p.head, -EIO);
	ask_as(b, CLIENT, "{'op':'undrain','node':'n0'}");
	assert_int_equal(b->launches, 0);
	ask_as(b, OTHER, SUBMIT "{'argv':['b']}]}");
	assert_true(says(b->other, "the journal cannot be written: Input/output error: no task"));
	ask_as(b, OTHER, "{'op':'status'}");
	assert_true(says(b->other, "\"journal\":\"Input/output error\""));
	dvm_head_journal_failed(b->p.head, 0);
	make_all_safe(b);
	assert_int_equal(b->launches, 1);
	assert_true(says(b->said, "\"ids\":[1]"));
	b->other[0] = '\0';
	ask_as(b, OTHER, "{'op':'status'}");
	assert_true(says(b->other, "\"journal\":\"written\""));
}

/* A client that waits for the end of a task, and one that asks later for it. */
BED_TEST(clients_that_wait_for_the_disk_are_told_why)
{
	ask_as(b, CLIENT, SUBMIT "{'argv':['a']}]}");
	make_all_safe(b);
	end_task(b, 1);
	assert_false(says(b->said, "unsafe"));
	dvm_head_journal_failed(b->p.head, -EIO);
	assert_true(says(b->said, "{\"ev\":\"unsafe\",\"why\":\"Input/output error\"}"));
	assert_false(says(b->said, "\"ended\","));
	ask_as(b, OTHER, "{'op':'show','id':1}");
	assert_true(says(b->other, "\"ev\":\"unsafe\""));
	assert_false(says(b->other, "\"ev\":\"task\""));
	dvm_head_journal_failed(b->p.head, 0);
	make_all_safe(b);
	assert_true(says(b->other, "\"ev\":\"task\""));
}

/* Such a client does not wait for answers that it will not get. */
BED_TEST(a_client_for_which_there_is_no_memory_is_broken_off)
{
	ask_as(b, CLIENT, SUBMIT "{'argv':['a']}]}");
	refuse = true;
	for (unsigned i = 0; i < 1000 && !b->breaks; i++)
		ask_as(b, CLIENT, "{'op':'ps'}");
	refuse = false;
	assert_int_equal(b->breaks, 1);
	make_all_safe(b);
	ask_as(b, CLIENT, "{'op':'ps'}");
	assert_string_equal(b->said, "");
	assert_int_equal(b->breaks, 1);
	refuse = true;
	dvm_head_client_opened(b->p.head, OTHER + 1);
	refuse = false;
	assert_int_equal(b->breaks, 2);
}
