/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI-1 text: framing at every split, fields, what it cannot carry. */
#include "unit.h"

#include <errno.h>

#include "libpmi/message.h"

static const char PUT[] = "cmd=put kvsname=1.0 key=k value=a=b\n";
static const char SPAWN[] = "mcmd=spawn\nnprocs=2\nexecname=a b\n"
			    "arg1=x=y z\nendcmd\n";

/* Decode a copy; the caller frees *copy and *m. */
static int decode(const char *text, size_t len, char **copy,
		  struct pmi_message *m)
{
	*copy = malloc(len ? len : 1);
	memcpy(*copy, text, len);
	pmi_message_init(m);
	return pmi1_decode(*copy, len, m);
}

static int decode_rc(const char *text, size_t len)
{
	struct pmi_message m;
	char *copy;
	int rc = decode(text, len, &copy, &m);

	pmi_message_free(&m);
	free(copy);
	return rc;
}

TEST(every_split_waits_for_the_rest)
{
	const char *texts[] = {PUT, SPAWN};

	for (int i = 0; i < 2; i++) {
		size_t len = strlen(texts[i]);
		char *two = malloc(2 * len);

		for (size_t cut = 0; cut < len; cut++)
			assert_int_equal(pmi1_frame(texts[i], cut), 0);
		memcpy(two, texts[i], len);
		memcpy(two + len, texts[i], len);
		for (size_t cut = len; cut <= 2 * len; cut++)
			assert_int_equal(pmi1_frame(two, cut), len);
		free(two);
	}
}

TEST(fields_are_found)
{
	struct pmi_message m;
	char *copy;

	assert_int_equal(decode(PUT, strlen(PUT), &copy, &m), 0);
	assert_string_equal(pmi_message_cmd(&m), "put");
	assert_string_equal(pmi_message_str(&m, "key"), "k");
	assert_string_equal(pmi_message_str(&m, "value"), "a=b");
	assert_null(pmi_message_str(&m, "msg"));
	assert_int_equal(m.count, 4);
	pmi_message_free(&m);
	free(copy);
}

TEST(words_without_a_key_belong_to_the_value)
{
	const char *line = "cmd=x  msg= two  words \n";
	struct pmi_message m;
	char *copy;

	assert_int_equal(decode(line, strlen(line), &copy, &m), 0);
	assert_string_equal(pmi_message_cmd(&m), "x");
	assert_string_equal(pmi_message_str(&m, "msg"), " two  words");
	pmi_message_free(&m);
	free(copy);
}

TEST(an_mcmd_has_a_value_a_line)
{
	struct pmi_message m;
	char *copy;
	int n;

	assert_int_equal(decode(SPAWN, strlen(SPAWN), &copy, &m), 0);
	assert_true(m.mcmd);
	assert_string_equal(pmi_message_cmd(&m), "spawn");
	assert_string_equal(pmi_message_str(&m, "execname"), "a b");
	assert_string_equal(pmi_message_str(&m, "arg1"), "x=y z");
	assert_int_equal(pmi_message_int(&m, "nprocs", &n), 0);
	assert_int_equal(n, 2);
	pmi_message_free(&m);
	free(copy);
}

TEST(invalid_messages_are_rejected_at_once)
{
	assert_int_equal(pmi1_frame("x", 1), -EPROTO);
	assert_int_equal(pmi1_frame("cmx", 3), -EPROTO);
	assert_int_equal(pmi1_frame("\0", 1), -EPROTO);
	assert_int_equal(pmi1_frame("\n", 1), -EPROTO);
	assert_int_equal(decode_rc("cmd=a\0b\n", 8), -EPROTO);
	assert_int_equal(decode_rc("cmd\n", 4), -EPROTO);
	assert_int_equal(decode_rc("=x\n", 3), -EPROTO);
	assert_int_equal(decode_rc("cmd=a", 5), -EPROTO);
	assert_int_equal(decode_rc("", 0), -EPROTO);
	assert_int_equal(decode_rc("cmd=a\nb=c\n", 10), -EPROTO);
	assert_int_equal(decode_rc("mcmd=s\nx\nendcmd\n", 16), -EPROTO);
	assert_int_equal(decode_rc("mcmd=s\n\nendcmd\n", 15), -EPROTO);
}

TEST(overlong_lines_are_refused)
{
	size_t len = PMI1_LINE_MAX + 2;
	char *text = malloc(len);

	memset(text, 'a', len);
	memcpy(text, "cmd=", 4);
	assert_int_equal(pmi1_frame(text, PMI1_LINE_MAX), 0);
	assert_int_equal(pmi1_frame(text, PMI1_LINE_MAX + 1), -EMSGSIZE);
	text[PMI1_LINE_MAX] = '\n';
	assert_int_equal(pmi1_frame(text, PMI1_LINE_MAX + 1), -EMSGSIZE);
	memcpy(text, "mcmd=a\n", 7);
	assert_int_equal(pmi1_frame(text, PMI2_BODY_MAX), 0);
	assert_int_equal(pmi1_frame(text, PMI2_BODY_MAX + 1), -EMSGSIZE);
	free(text);
}

TEST(too_many_fields_are_refused)
{
	struct buf b;

	buf_init(&b, PMI1_LINE_MAX);
	buf_puts(&b, "cmd=x");
	for (int i = 1; i < PMI_FIELDS_MAX; i++)
		buf_puts(&b, " a=b");
	buf_puts(&b, "\n");
	assert_int_equal(decode_rc(b.data, b.len), 0);
	b.len--;
	buf_puts(&b, " a=b\n");
	assert_int_equal(decode_rc(b.data, b.len), -EMSGSIZE);
	buf_free(&b);
}

TEST(written_lines_are_read_back)
{
	struct pmi_writer w;
	struct pmi_message m;
	struct buf b;

	buf_init(&b, 1000);
	pmi_write_begin(&w, &b, PMI_PROTOCOL_1, "get_result");
	pmi_write_int(&w, "rc", -1);
	pmi_write_str(&w, "value", "a =b= c");
	pmi_write_bool(&w, "found", true);
	assert_int_equal(pmi_write_end(&w), 0);
	assert_string_equal(buf_cstr(&b),
			    "cmd=get_result rc=-1 value=a =b= c found=TRUE\n");
	pmi_message_init(&m);
	assert_int_equal(pmi1_decode(b.data, b.len, &m), 0);
	assert_string_equal(pmi_message_str(&m, "value"), "a =b= c");
	pmi_message_free(&m);
	buf_free(&b);
}

TEST(values_with_forbidden_bytes_leave_the_buffer_unchanged)
{
	const char *values[] = {"a\nb", "a ", "a b=c", "a  b=c"};
	struct pmi_writer w;
	struct buf b;

	buf_init(&b, 1000);
	buf_puts(&b, "before");
	for (int i = 0; i < 4; i++) {
		pmi_write_begin(&w, &b, PMI_PROTOCOL_1, "x");
		pmi_write_str(&w, "value", values[i]);
		assert_int_equal(pmi_write_end(&w), -EINVAL);
	}
	pmi_write_begin(&w, &b, PMI_PROTOCOL_1, "x");
	pmi_write_bytes(&w, "value", "a\0b", 3);
	assert_int_equal(pmi_write_end(&w), -EINVAL);
	assert_string_equal(buf_cstr(&b), "before");
	buf_free(&b);
}
