/* SPDX-License-Identifier: BSD-3-Clause */
/* Spawn requests: both protocols, the wire form, limits, hostile bytes. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "libpmi/spawn.h"

/* ---- what clients send ---- */

static int from_pmi2(const char *body, struct spawn_request **out, char *what)
{
	struct pmi_message m;
	const char *named;
	char *text = malloc(PMI2_HEADER_LEN + strlen(body) + 1);
	int len = sprintf(text, "%-6zu%s", strlen(body), body), rc;

	pmi_message_init(&m);
	assert_int_equal(pmi2_decode(text, len, &m), 0);
	rc = spawn_from_pmi2(&m, out, &named);
	strcpy(what, named ? named : "");
	pmi_message_free(&m);
	free(text);
	return rc;
}

static int add_pmi1(const char *lines, struct spawn_request **s, char *what)
{
	struct pmi_message m;
	const char *named;
	char *text = strdup(lines);
	int rc;

	pmi_message_init(&m);
	assert_int_equal(pmi1_frame(text, strlen(text)), strlen(text));
	assert_int_equal(pmi1_decode(text, strlen(text), &m), 0);
	rc = spawn_add_pmi1(&m, s, &named);
	strcpy(what, named ? named : "");
	pmi_message_free(&m);
	free(text);
	return rc;
}

#define TWO_COMMANDS                                                           \
	"cmd=spawn;thrid=140;ncmds=2;preputcount=1;ppkey0=PARENT_PORT;"        \
	"ppval0=tag#0$desc;;x;subcmd=./a;maxprocs=3;argc=2;argv0=-x;argv1=y z;"\
	"infokeycount=1;infokey0=wdir;infoval0=/tmp;"                          \
	"subcmd=b;maxprocs=1;argc=0;infokeycount=0;"

static void assert_two_commands(const struct spawn_request *s)
{
	assert_int_equal(s->ncommands, 2);
	assert_string_equal(s->commands[0].program, "./a");
	assert_int_equal(s->commands[0].nprocs, 3);
	assert_int_equal(s->commands[0].argc, 2);
	assert_string_equal(s->commands[0].argv[0], "-x");
	assert_string_equal(s->commands[0].argv[1], "y z");
	assert_null(s->commands[0].argv[2]);
	assert_string_equal(spawn_info(&s->commands[0], "wdir"), "/tmp");
	assert_null(spawn_info(&s->commands[0], "host"));
	assert_string_equal(s->commands[1].program, "b");
	assert_int_equal(s->commands[1].argc, 0);
	assert_null(s->commands[1].argv[0]);
	assert_null(spawn_info(&s->commands[1], "wdir"));
	assert_int_equal(spawn_procs(s), 4);
	assert_int_equal(s->npreput, 1);
	assert_string_equal(s->preput[0].key, "PARENT_PORT");
	assert_string_equal(s->preput[0].value, "tag#0$desc;x");
}

TEST(pmi2_message_is_read)
{
	struct spawn_request *s;
	char what[64];

	assert_int_equal(from_pmi2(TWO_COMMANDS, &s, what), 0);
	assert_two_commands(s);
	spawn_free(s);
}

/* Slurm's client leaves infokeycount out; some count arguments from 1. */
TEST(pmi2_variants_are_read)
{
	struct spawn_request *s;
	char what[64];

	assert_int_equal(from_pmi2("cmd=spawn;ncmds=2;preputcount=0;"
				   "subcmd=a;maxprocs=1;argc=1;argv1=x;"
				   "subcmd=a;maxprocs=1;argc=1;argv0=y;",
				   &s, what), 0);
	assert_int_equal(s->ncommands, 2);
	assert_string_equal(s->commands[0].argv[0], "x");
	assert_string_equal(s->commands[1].argv[0], "y");
	spawn_free(s);
}

TEST(pmi2_mistakes_are_named)
{
	static const struct {
		const char *body;
		const char *what;
	} mistakes[] = {
		{ "cmd=spawn;", "subcmd" },
		{ "cmd=spawn;ncmds=1;subcmd=;maxprocs=1;", "subcmd" },
		{ "cmd=spawn;ncmds=1;subcmd=a;", "maxprocs" },
		{ "cmd=spawn;ncmds=1;subcmd=a;maxprocs=0;", "maxprocs" },
		{ "cmd=spawn;ncmds=1;subcmd=a;maxprocs=-1;", "maxprocs" },
		{ "cmd=spawn;ncmds=1;subcmd=a;maxprocs=x;", "maxprocs" },
		{ "cmd=spawn;ncmds=1;subcmd=a;maxprocs=;", "maxprocs" },
		{ "cmd=spawn;ncmds=1;subcmd=a;maxprocs=1048577;", "maxprocs" },
		{ "cmd=spawn;ncmds=1;subcmd=a;maxprocs=99999999999999999999;",
		  "maxprocs" },
		{ "cmd=spawn;ncmds=1;maxprocs=1;subcmd=a;", "maxprocs" },
		{ "cmd=spawn;ncmds=2;subcmd=a;maxprocs=1048576;"
		  "subcmd=a;maxprocs=1;", "maxprocs" },
		{ "cmd=spawn;subcmd=a;maxprocs=1;", "ncmds" },
		{ "cmd=spawn;ncmds=2;subcmd=a;maxprocs=1;", "ncmds" },
		{ "cmd=spawn;ncmds=999999999;subcmd=a;maxprocs=1;", "ncmds" },
		{ "cmd=spawn;ncmds=1;subcmd=a;maxprocs=1;argc=1;", "argc" },
		{ "cmd=spawn;ncmds=2;subcmd=a;maxprocs=1;argc=1;"
		  "subcmd=a;maxprocs=1;argc=0;", "argc" },
		{ "cmd=spawn;ncmds=1;subcmd=a;maxprocs=1;argc=999999999;"
		  "argv0=x;", "argc" },
		{ "cmd=spawn;ncmds=1;argv0=a;subcmd=a;maxprocs=1;", "argv0" },
		{ "cmd=spawn;ncmds=1;subcmd=a;maxprocs=1;infokeycount=1;",
		  "infokeycount" },
		{ "cmd=spawn;ncmds=1;subcmd=a;maxprocs=1;infoval0=x;",
		  "infoval0" },
		{ "cmd=spawn;ncmds=1;subcmd=a;maxprocs=1;infokey0=;infoval0=x;",
		  "infoval0" },
		{ "cmd=spawn;ncmds=1;preputcount=2;ppkey0=a;ppval0=b;"
		  "subcmd=a;maxprocs=1;", "preputcount" },
	};
	struct spawn_request *s;
	char what[64];

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++) {
		assert_int_equal(from_pmi2(mistakes[i].body, &s, what), -EINVAL);
		assert_string_equal(what, mistakes[i].what);
	}
}

TEST(pmi1_messages_add_up)
{
	struct spawn_request *s = NULL;
	char what[64];

	assert_int_equal(add_pmi1("mcmd=spawn\nnprocs=3\nexecname=./a\n"
				  "totspawns=2\nspawnssofar=1\n"
				  "arg1=-x\narg2=y z\nargcnt=2\n"
				  "preput_num=1\npreput_key_0=PARENT_PORT\n"
				  "preput_val_0=tag#0$desc;x\n"
				  "info_num=1\ninfo_key_0=wdir\n"
				  "info_val_0=/tmp\nendcmd\n", &s, what), 1);
	assert_int_equal(add_pmi1("mcmd=spawn\nnprocs=1\nexecname=b\n"
				  "totspawns=2\nspawnssofar=2\nargcnt=0\n"
				  "preput_num=1\npreput_key_0=PARENT_PORT\n"
				  "preput_val_0=tag#0$desc;x\n"
				  "info_num=0\nendcmd\n", &s, what), 0);
	assert_two_commands(s);
	spawn_free(s);
}

TEST(pmi1_mistakes_are_named)
{
	static const struct {
		const char *lines;
		const char *what;
	} mistakes[] = {
		{ "mcmd=spawn\nendcmd\n", "execname" },
		{ "mcmd=spawn\nexecname=a\nendcmd\n", "nprocs" },
		{ "mcmd=spawn\nexecname=a\nnprocs=1\nendcmd\n", "spawnssofar" },
		{ "mcmd=spawn\nexecname=a\nmcmd=spawn\nexecname=b\nnprocs=1\n"
		  "totspawns=2\nspawnssofar=2\nendcmd\n", "mcmd" },
		{ "mcmd=spawn\nexecname=a\nnprocs=1\ntotspawns=1\n"
		  "spawnssofar=2\nendcmd\n", "spawnssofar" },
		{ "mcmd=spawn\nexecname=a\nnprocs=1\ntotspawns=0\n"
		  "spawnssofar=1\nendcmd\n", "totspawns" },
		{ "mcmd=spawn\nexecname=a\nnprocs=1\ntotspawns=1025\n"
		  "spawnssofar=1\nendcmd\n", "totspawns" },
		{ "mcmd=spawn\nexecname=a\nnprocs=1\ntotspawns=1\n"
		  "spawnssofar=1\nargcnt=3\narg1=a\nendcmd\n", "argcnt" },
		{ "mcmd=spawn\nexecname=a\nnprocs=1\ntotspawns=1\n"
		  "spawnssofar=1\npreput_key_0=a\npreput_val_0=b\nendcmd\n",
		  "number of preput pairs" },
	};
	char what[64];

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++) {
		struct spawn_request *s = NULL;

		assert_int_equal(add_pmi1(mistakes[i].lines, &s, what), -EINVAL);
		assert_string_equal(what, mistakes[i].what);
		assert_null(s);
	}
}

TEST(pmi1_mistake_later_frees_all)
{
	struct spawn_request *s = NULL;
	char what[64];
	const char *first = "mcmd=spawn\nnprocs=3\nexecname=./a\n"
			    "totspawns=2\nspawnssofar=1\nendcmd\n";

	assert_int_equal(add_pmi1(first, &s, what), 1);
	assert_int_equal(add_pmi1(first, &s, what), -EINVAL);
	assert_null(s);
}

/* ---- limits ---- */

TEST(limits_hold)
{
	struct spawn_request *s = spawn_new();
	const struct pmi_field pair = {
		.key = "k", .key_len = 1, .value = "v", .value_len = 1,
	};
	char *big = calloc(1, SPAWN_STRING_MAX + 1);

	memset(big, 'x', SPAWN_STRING_MAX + 1);
	for (int i = 0; i < SPAWN_PREPUT_MAX; i++)
		assert_int_equal(spawn_add_preput(s, &pair), 0);
	assert_int_equal(spawn_add_preput(s, &pair), -EINVAL);
	assert_int_equal(spawn_add_arg(s, "x", 1), -EINVAL);
	assert_int_equal(spawn_add_command(s), 0);
	assert_int_equal(spawn_set_program(s, big, SPAWN_STRING_MAX + 1),
			 -EINVAL);
	assert_int_equal(spawn_set_program(s, "a\0b", 3), -EINVAL);
	assert_int_equal(spawn_set_program(s, big, SPAWN_STRING_MAX), 0);
	for (int i = 0; i < SPAWN_ARGS_MAX; i++)
		assert_int_equal(spawn_add_arg(s, "", 0), 0);
	assert_int_equal(spawn_add_arg(s, "", 0), -EINVAL);
	for (int i = 0; i < SPAWN_INFO_MAX; i++)
		assert_int_equal(spawn_add_info(s, &pair), 0);
	assert_int_equal(spawn_add_info(s, &pair), -EINVAL);
	for (int i = 1; i < SPAWN_COMMANDS_MAX; i++)
		assert_int_equal(spawn_add_command(s), 0);
	assert_int_equal(spawn_add_command(s), -EINVAL);
	spawn_free(s);
	free(big);
}

TEST(all_strings_together_have_a_limit)
{
	struct spawn_request *s = spawn_new();
	char *big = calloc(1, SPAWN_STRING_MAX);
	uint32_t added = 0;
	struct buf b;

	memset(big, 'x', SPAWN_STRING_MAX);
	assert_int_equal(spawn_add_command(s), 0);
	assert_int_equal(spawn_set_nprocs(s, 1), 0);
	assert_int_equal(spawn_set_program(s, "a", 1), 0);
	while (spawn_add_arg(s, big, SPAWN_STRING_MAX) == 0)
		added++;
	assert_in_range(added, 10, SPAWN_BYTES_MAX / SPAWN_STRING_MAX);
	buf_init(&b, SPAWN_BYTES_MAX); /* what was let in can be sent */
	assert_int_equal(spawn_pack(&b, s), 0);
	buf_free(&b);
	spawn_free(s);
	free(big);
}

/* ---- wire form ---- */

static struct buf packed_two_commands(void)
{
	struct spawn_request *s;
	struct buf b;
	char what[64];

	assert_int_equal(from_pmi2(TWO_COMMANDS, &s, what), 0);
	buf_init(&b, SPAWN_BYTES_MAX);
	assert_int_equal(spawn_pack(&b, s), 0);
	spawn_free(s);
	return b;
}

/* In memory of exactly that size, so that the sanitizer sees every overrun. */
static int unpack_exact(const void *data, size_t len, struct spawn_request **s)
{
	char *copy = malloc(len ? len : 1);
	struct cursor c;
	int rc;

	memcpy(copy, data, len);
	cursor_init(&c, copy, len);
	rc = spawn_unpack(&c, s);
	free(copy);
	return rc;
}

TEST(packs_and_unpacks)
{
	struct buf b = packed_two_commands();
	struct spawn_request *s;
	struct cursor c;

	cursor_init(&c, b.data, b.len);
	assert_int_equal(spawn_unpack(&c, &s), 0);
	assert_true(cursor_done(&c));
	assert_two_commands(s);
	spawn_free(s);
	buf_free(&b);
}

TEST(failed_pack_leaves_the_buffer)
{
	struct buf b = packed_two_commands(), small;
	struct spawn_request *s;

	assert_int_equal(unpack_exact(b.data, b.len, &s), 0);
	buf_init(&small, b.len - 1);
	assert_int_equal(spawn_pack(&small, s), -ENOBUFS);
	assert_int_equal(small.len, 0);
	buf_free(&small);
	spawn_free(s);
	buf_free(&b);
}

TEST(every_truncation_is_refused)
{
	struct buf b = packed_two_commands();
	struct spawn_request *s;

	for (size_t len = 0; len < b.len; len++)
		assert_int_equal(unpack_exact(b.data, len, &s), -EPROTO);
	buf_free(&b);
}

/* Any byte of any count or length set to any extreme: no crash, no big memory. */
TEST(every_broken_byte_is_survived)
{
	const unsigned char values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
	struct buf b = packed_two_commands();
	struct spawn_request *s;

	for (size_t i = 0; i < b.len; i++) {
		unsigned char was = b.data[i];

		for (size_t v = 0; v < sizeof(values); v++) {
			b.data[i] = values[v];
			if (unpack_exact(b.data, b.len, &s) == 0)
				spawn_free(s);
		}
		b.data[i] = was;
	}
	buf_free(&b);
}

TEST(hostile_counts_are_refused)
{
	struct spawn_request *s;
	struct buf b;

	buf_init(&b, 1 << 20);
	pack_u32(&b, 0); /* no command */
	pack_u32(&b, 0);
	assert_int_equal(unpack_exact(b.data, b.len, &s), -EPROTO);
	buf_clear(&b);
	pack_u32(&b, UINT32_MAX);
	assert_int_equal(unpack_exact(b.data, b.len, &s), -EPROTO);
	for (uint32_t i = 0; i <= SPAWN_COMMANDS_MAX; i++) {
		pack_u32(&b, 1);
		pack_str(&b, "a");
		pack_u32(&b, 0);
		pack_u32(&b, 0);
	}
	assert_int_equal(unpack_exact(b.data, b.len, &s), -EPROTO);
	buf_clear(&b);
	pack_u32(&b, 1);
	pack_u32(&b, SPAWN_PROCS_MAX + 1);
	pack_str(&b, "a");
	pack_u32(&b, 0);
	pack_u32(&b, 0);
	pack_u32(&b, 0);
	assert_int_equal(unpack_exact(b.data, b.len, &s), -EPROTO);
	buf_free(&b);
}
