/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings that the ring takes from the environment, and what it refuses, and how. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "join.h"
#include "settings.h"

#define PREFIX "PMI2X_ALLGATHER_"

struct setting {
	const char *name, *value;
	const char *refusal; /* NULL: it is taken */
};

#define LIST "one or more of verbs,tcp,pmi is expected"
#define SECONDS "a number from 1 to 1000000 is expected"
#define PORTS "FIRST-LAST is expected"

static const struct setting of_joining[] = {
	{ "TRANSPORT", "tcp", NULL },
	{ "TRANSPORT", "pmi", NULL },
	{ "TRANSPORT", "pmi,verbs,tcp", NULL },
	{ "TRANSPORT", "", NULL },
	{ "TRANSPORT", "ib", "TRANSPORT=ib: " LIST },
	{ "TRANSPORT", "tcp,ib", "TRANSPORT=tcp,ib: " LIST },
	{ "TRANSPORT", "tcp,", LIST },
	{ "TRANSPORT", ",", LIST },
	{ "TRANSPORT", "tcp, pmi", LIST },
	{ "TRANSPORT", "TCP", LIST },
	{ "TRANSPORT", "tc", LIST },
	{ "TRANSPORT", "tcp\n", "TRANSPORT=tcp?: " LIST },
	{ "TIMEOUT", "1", NULL },
	{ "TIMEOUT", "1000000", NULL },
	{ "TIMEOUT", "", NULL },
	{ "TIMEOUT", "0", SECONDS },
	{ "TIMEOUT", "-1", SECONDS },
	{ "TIMEOUT", "+1", SECONDS },
	{ "TIMEOUT", " 1", SECONDS },
	{ "TIMEOUT", "1s", "TIMEOUT=1s: " SECONDS },
	{ "TIMEOUT", "1000001", SECONDS },
	{ "TIMEOUT", "99999999999999999999", SECONDS },
	{ "CONNECT_TIMEOUT", "soon", "CONNECT_TIMEOUT=soon: " SECONDS },
};

static const struct setting of_tcp[] = {
	{ "TCP_TIMEOUT", "3600", NULL },
	{ "TCP_TIMEOUT", "", NULL },
	{ "TCP_TIMEOUT", "3601", "a number from 1 to 3600 is expected" },
	{ "TCP_PORTS", "21000-29999", NULL },
	{ "TCP_PORTS", "", NULL },
	{ "TCP_PORTS", "21000", "TCP_PORTS=21000: " PORTS },
	{ "TCP_PORTS", "29999-21000", PORTS },
	{ "TCP_PORTS", "0-29999", PORTS },
	{ "TCP_PORTS", "21000-65536", PORTS },
	{ "TCP_PORTS", "21000-29999 or so", PORTS },
	{ "TCP_PORTS", "-21000", PORTS },
	{ "TCP_PORTS", "21000-", PORTS },
	{ "TCP_PORTS", "000000000000021000-29999", PORTS },
	{ "TCP_INTERFACE", "lo", NULL },
	{ "TCP_INTERFACE", "", NULL },
};

static void set(const struct setting *s, char *name, size_t size)
{
	snprintf(name, size, "%s%s", PREFIX, s->name);
	setenv(name, s->value, 1);
}

static void expect(const struct setting *s, const char *why)
{
	if (!s->refusal && why[0])
		fail_msg("%s=%s is refused: %s", s->name, s->value, why);
	if (s->refusal && !strstr(why, s->refusal))
		fail_msg("%s=%s: \"%s\" does not say: %s", s->name, s->value,
			 why, s->refusal);
}

TEST(joining)
{
	char name[64];

	for (size_t i = 0; i < sizeof(of_joining) / sizeof(*of_joining); i++) {
		struct pmi2x_ring ring = { .rank = 0 };
		struct join j = { .ring = &ring };

		set(&of_joining[i], name, sizeof(name));
		join_settings(&j);
		unsetenv(name);
		expect(&of_joining[i], j.wrong);
		/* The fence in which it is told needs a time, too. */
		assert_true(ring.stall_ms > 0 && j.connect_ms > 0);
	}
}

static int open_tcp(char *why)
{
	struct transport_params params = { .events = { NULL, NULL, NULL } };
	struct transport *t = NULL;
	int rc = tcp_transport.open(&t, &params, why);

	tcp_transport.close(t);
	return rc;
}

TEST(wrong_settings_of_tcp_are_rejected_with_a_reason)
{
	char name[64];

	for (size_t i = 0; i < sizeof(of_tcp) / sizeof(*of_tcp); i++) {
		char why[TRANSPORT_REASON_MAX] = "";
		int rc;

		set(&of_tcp[i], name, sizeof(name));
		rc = open_tcp(why);
		unsetenv(name);
		expect(&of_tcp[i], rc ? why : "");
		assert_int_equal(rc, of_tcp[i].refusal ? -EINVAL : 0);
	}
}

/* Other nodes may have the interface: no reason to refuse the ring. */
TEST(an_interface_that_is_not_here)
{
	char why[TRANSPORT_REASON_MAX] = "";

	setenv(PREFIX "TCP_INTERFACE", "none9", 1);
	assert_int_equal(open_tcp(why), -ENODEV);
	unsetenv(PREFIX "TCP_INTERFACE");
	assert_non_null(strstr(why, "interface none9 is up"));
}

TEST(lists)
{
	struct join j = { .allowed = "tcp,pmi" };

	assert_true(join_allows(&j, "tcp"));
	assert_true(join_allows(&j, "pmi"));
	assert_false(join_allows(&j, "verbs"));
	j.allowed = NULL;
	assert_true(join_allows(&j, "verbs"));
}

TEST(switches)
{
	static const char name[] = PREFIX "NOSHM";

	assert_false(setting_on(name));
	setenv(name, "", 1);
	assert_false(setting_on(name));
	setenv(name, "0", 1);
	assert_false(setting_on(name));
	setenv(name, "1", 1);
	assert_true(setting_on(name));
	unsetenv(name);
}
