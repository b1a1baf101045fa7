/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI-2 messages: lengths, framing at every split, doubled ';', any byte. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "libpmi/message.h"

/* A message with a right length around `body`; the caller frees it. */
static char *framed(const char *body, size_t len, size_t *total)
{
	char *text = malloc(len + PMI2_HEADER_LEN + 1);

	sprintf(text, "%-6zu", len);
	memcpy(text + PMI2_HEADER_LEN, body, len);
	*total = len + PMI2_HEADER_LEN;
	return text;
}

static int decode(const char *body, size_t len, char **text,
		  struct pmi_message *m)
{
	size_t total;

	*text = framed(body, len, &total);
	*text = realloc(*text, total); /* exact, for the address sanitizer */
	pmi_message_init(m);
	return pmi2_decode(*text, total, m);
}

static int decode_rc(const char *body, size_t len)
{
	struct pmi_message m;
	char *text;
	int rc = decode(body, len, &text, &m);

	pmi_message_free(&m);
	free(text);
	return rc;
}

TEST(every_split_waits_for_the_rest)
{
	size_t len;
	char *text = framed("cmd=kvs-put;key=a;value=b;", 26, &len);

	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(pmi2_frame(text, cut), 0);
	assert_int_equal(pmi2_frame(text, len), len);
	free(text);
}

TEST(lengths_are_decimal_and_padded)
{
	assert_int_equal(pmi2_frame("     1x", 7), 7);
	assert_int_equal(pmi2_frame(" 1    x", 7), 7);
	assert_int_equal(pmi2_frame("000001x", 7), 7);
	assert_int_equal(pmi2_frame("0     ", 6), 6);
	assert_int_equal(pmi2_frame("999999", 6), 0);
	assert_int_equal(pmi2_frame("-1    ", 6), -EPROTO);
	assert_int_equal(pmi2_frame("+1    ", 6), -EPROTO);
	assert_int_equal(pmi2_frame("1 1   ", 6), -EPROTO);
	assert_int_equal(pmi2_frame("      ", 6), -EPROTO);
	assert_int_equal(pmi2_frame("0x10  ", 6), -EPROTO);
	assert_int_equal(pmi2_frame("c", 1), -EPROTO);
}

TEST(fields_are_found)
{
	const char body[] = "cmd=kvs-put;thrid=7;key=a;key=b;wait=true;";
	struct pmi_message m;
	bool flag = false;
	char *text;
	int n;

	assert_int_equal(decode(body, strlen(body), &text, &m), 0);
	assert_string_equal(pmi_message_cmd(&m), "kvs-put");
	assert_string_equal(pmi_message_str(&m, "key"), "a");
	assert_int_equal(pmi_message_int(&m, "thrid", &n), 0);
	assert_int_equal(n, 7);
	assert_int_equal(pmi_message_int(&m, "key", &n), -EINVAL);
	assert_int_equal(pmi_message_int(&m, "none", &n), -ENOENT);
	assert_int_equal(pmi_message_bool(&m, "wait", &flag), 0);
	assert_true(flag);
	assert_int_equal(pmi_message_bool(&m, "key", &flag), -EINVAL);
	pmi_message_free(&m);
	free(text);
}

TEST(semicolons_are_doubled_in_values)
{
	const char *bodies[] = {"a=x;;y;b=;;;", "a=x;;y;b=;;"};

	for (int i = 0; i < 2; i++) {
		struct pmi_message m;
		char *text;

		assert_int_equal(decode(bodies[i], strlen(bodies[i]), &text, &m),
				 0);
		assert_int_equal(m.count, 2);
		assert_string_equal(m.fields[0].value, "x;y");
		assert_string_equal(m.fields[1].value, ";");
		pmi_message_free(&m);
		free(text);
	}
}

TEST(the_last_value_needs_no_semicolon)
{
	struct pmi_message m;
	char *text;

	assert_int_equal(decode("cmd=a;key=bc", 12, &text, &m), 0);
	assert_string_equal(pmi_message_cmd(&m), "a");
	assert_string_equal(pmi_message_str(&m, "key"), "bc");
	pmi_message_free(&m);
	free(text);
}

TEST(malformed_bodies_are_refused)
{
	assert_int_equal(decode_rc("", 0), -EPROTO);
	assert_int_equal(decode_rc(";", 1), -EPROTO);
	assert_int_equal(decode_rc("cmd", 3), -EPROTO);
	assert_int_equal(decode_rc("cmd;a=b;", 8), -EPROTO);
	assert_int_equal(decode_rc("=a;", 3), -EPROTO);
	assert_int_equal(decode_rc("c\0d=a;", 6), -EPROTO);
	assert_int_equal(decode_rc("a=b;c;", 6), -EPROTO);
}

TEST(no_truncation_reads_outside)
{
	const char body[] = "cmd=a;;b;key=;;;;c;value=d;";

	for (size_t cut = 0; cut <= strlen(body); cut++) {
		int rc = decode_rc(body, cut);

		assert_true(rc == 0 || rc == -EPROTO);
	}
}

TEST(too_many_fields_are_refused)
{
	struct buf b;

	buf_init(&b, PMI2_BODY_MAX);
	for (int i = 0; i < PMI_FIELDS_MAX; i++)
		buf_puts(&b, "a=b;");
	assert_int_equal(decode_rc(b.data, b.len), 0);
	buf_puts(&b, "a=b;");
	assert_int_equal(decode_rc(b.data, b.len), -EMSGSIZE);
	buf_free(&b);
}

TEST(any_byte_survives_a_round_trip)
{
	char bytes[512];
	struct pmi_writer w;
	struct pmi_message m;
	struct buf b;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i % 3 == 0 ? ';' : (char)i;
	buf_init(&b, 10000);
	pmi_write_begin(&w, &b, PMI_PROTOCOL_2, "x");
	pmi_write_bytes(&w, "records", bytes, sizeof(bytes));
	pmi_write_str(&w, "empty", "");
	assert_int_equal(pmi_write_end(&w), 0);
	assert_int_equal(pmi2_frame(b.data, b.len), b.len);
	pmi_message_init(&m);
	assert_int_equal(pmi2_decode(b.data, b.len, &m), 0);
	assert_int_equal(m.count, 3);
	assert_int_equal(m.fields[1].value_len, sizeof(bytes));
	assert_memory_equal(m.fields[1].value, bytes, sizeof(bytes));
	assert_string_equal(m.fields[2].value, "");
	pmi_message_free(&m);
	buf_free(&b);
}

TEST(errors_leave_the_buffer)
{
	char *big = calloc(1, PMI2_BODY_MAX);
	struct pmi_writer w;
	struct buf b;

	buf_init(&b, 2 * PMI2_BODY_MAX);
	buf_puts(&b, "before");
	pmi_write_begin(&w, &b, PMI_PROTOCOL_2, "x");
	pmi_write_bytes(&w, "v", big, PMI2_BODY_MAX);
	assert_int_equal(pmi_write_end(&w), -EMSGSIZE);
	pmi_write_begin(&w, &b, PMI_PROTOCOL_2, "x");
	pmi_write_str(&w, "bad key", "v");
	assert_int_equal(pmi_write_end(&w), -EINVAL);
	b.limit = 20;
	pmi_write_begin(&w, &b, PMI_PROTOCOL_2, "x");
	pmi_write_str(&w, "v", "0123456789");
	assert_int_equal(pmi_write_end(&w), -ENOBUFS);
	assert_string_equal(buf_cstr(&b), "before");
	buf_free(&b);
	free(big);
}
