/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every option of mpi.conf, with right values and with all kinds of wrong ones. */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>

#include "options.h"

#define WHERE "somewhere"
#define MANUAL "src/plugins/mpi/pmi2x/mpi_pmi2x.conf.5"
#define MANUAL_MAX 65536

struct said {
	char text[LOG_LINE_MAX];
	unsigned lines;
};

static void take_line(void *arg, enum log_level level, const char *text)
{
	struct said *said = arg;

	assert_int_equal(level, LOG_LEVEL_ERROR);
	said->lines++;
	snprintf(said->text, sizeof(said->text), "%s", text);
}

static void assert_said(const char *line, const char *part)
{
	if (!strstr(line, part))
		fail_msg("no \"%s\" in \"%s\"", part, line);
}

/* The log has one line with all that is needed, and no option has changed. */
static void assert_refused(size_t i, const char *text)
{
	char allowed[OPTION_TEXT_MAX], used[OPTION_TEXT_MAX];
	struct said said = { .lines = 0 };
	const struct log_hook log = { take_line, &said };
	struct conf c, before;

	options_defaults(&c);
	before = c;
	option_set(&c, i, WHERE, text, &log);
	if (said.lines != 1)
		fail_msg("%s=\"%s\": %u lines", option_key(i), text, said.lines);
	assert_memory_equal(&c, &before, sizeof(c));
	option_allowed(i, allowed);
	option_text(&c, i, used);
	assert_said(said.text, WHERE ": ");
	assert_said(said.text, option_key(i));
	assert_said(said.text, allowed);
	assert_said(said.text, "; continuing with ");
	assert_said(said.text, used);
	if (strlen(text) <= OPTION_SHOWN_MAX)
		assert_said(said.text, text);
	else
		assert_said(said.text, "...\" is not a value");
}

static void assert_taken(size_t i, const char *text)
{
	struct said said = { .lines = 0 };
	const struct log_hook log = { take_line, &said };
	char used[OPTION_TEXT_MAX];
	struct conf c;

	options_defaults(&c);
	option_set(&c, i, WHERE, text, &log);
	if (said.lines)
		fail_msg("%s=%s: %s", option_key(i), text, said.text);
	option_text(&c, i, used);
	assert_string_equal(used, text);
}

/* An empty PMI2X_TRACE switches traces off; an empty path of a library is none. */
static bool takes_nothing(size_t i)
{
	return !strcmp(option_key(i), "Pmi2xTrace") ||
	       !strcmp(option_key(i), "Pmi2xPmixLibrary");
}

TEST(values_that_no_option_takes_are_rejected_with_a_line)
{
	static const char *const wrong[] = {
		"", " ", "-1", "+1", "1.5", "1e3", "0x10", "many", "1,2", "16 ",
		"99999999999999999999999", "4294967296", "on off", "../trace",
		"1-", "-", "0-0", "7-3", "1-65536", "65536-65537", "1-2-3",
		" 1-2", "000001-2", "trace", "\"", "%s%n",
	};
	char endless[3000];

	memset(endless, '7', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '\0';
	for (size_t i = 0; option_key(i); i++) {
		for (size_t w = 0; w < sizeof(wrong) / sizeof(wrong[0]); w++)
			if (wrong[w][0] || !takes_nothing(i))
				assert_refused(i, wrong[w]);
		assert_refused(i, endless);
	}
}

TEST(numbers_end_where_the_line_says)
{
	char allowed[OPTION_TEXT_MAX], text[32], *at;
	unsigned numbers = 0;
	long min, max;

	for (size_t i = 0; option_key(i); i++) {
		option_allowed(i, allowed);
		at = strstr(allowed, "a number from");
		if (!at ||
		    sscanf(at, "a number from %ld to %ld", &min, &max) != 2)
			continue;
		numbers++;
		snprintf(text, sizeof(text), "%ld", min);
		assert_taken(i, text);
		snprintf(text, sizeof(text), "%ld", max);
		assert_taken(i, text);
		snprintf(text, sizeof(text), "%ld", max + 1);
		assert_refused(i, text);
		snprintf(text, sizeof(text), "%ld", min - 1);
		assert_refused(i, text);
	}
	assert_in_range(numbers, 9, 100);
}

static size_t find(const char *key)
{
	size_t i = 0;

	while (option_key(i) && strcmp(option_key(i), key))
		i++;
	assert_non_null(option_key(i));
	return i;
}

TEST(words_ports_and_directories_are_taken)
{
	assert_taken(find("Pmi2xTreeWidth"), "2");
	assert_taken(find("Pmi2xTreeWidth"), "auto");
	assert_refused(find("Pmi2xTreeWidth"), "0");
	assert_taken(find("Pmi2xTopology"), "off");
	assert_taken(find("Pmi2xTopology"), "variables");
	assert_refused(find("Pmi2xTopology"), "on");
	assert_taken(find("Pmi2xPmix"), "no");
	assert_taken(find("Pmi2xPmix"), "early");
	assert_refused(find("Pmi2xPmix"), "off");
	assert_taken(find("Pmi2xPmixGds"), "hash");
	assert_taken(find("Pmi2xPmixCollect"), "demand");
	assert_taken(find("Pmi2xPmixLibrary"), "/opt/pmix/lib/libpmix.so.2");
	assert_taken(find("Pmi2xPorts"), "1-65535");
	assert_taken(find("Pmi2xPorts"), "21000-21000");
	assert_taken(find("Pmi2xTorch"), "env");
	assert_taken(find("Pmi2xTorch"), "store");
	assert_refused(find("Pmi2xTorch"), "on");
	assert_taken(find("Pmi2xLend"), "no");
	assert_taken(find("Pmi2xLend"), "yes");
	assert_refused(find("Pmi2xLend"), "report");
	assert_taken(find("Pmi2xTrace"), "/var/log/pmi2x");
	assert_taken(find("Pmi2xNetwork"), "10.1.0.0/16");
	assert_taken(find("Pmi2xNetwork"), "fd00:1::/64");
}

TEST(a_path_that_is_too_long_is_refused)
{
	char path[CONF_PATH_MAX + 1];

	memset(path, '/', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_refused(find("Pmi2xTrace"), path);
	path[sizeof(path) - 2] = '\0';
	assert_taken(find("Pmi2xTrace"), path);
}

TEST(nothing_that_steers_a_terminal_is_repeated)
{
	struct said said = { .lines = 0 };
	const struct log_hook log = { take_line, &said };
	struct conf c;

	options_defaults(&c);
	option_set(&c, 0, WHERE, "\033[2J\n", &log);
	assert_said(said.text, "\"?[2J?\"");
}

TEST(without_a_log_a_wrong_value_is_refused_as_well)
{
	struct conf c, before;

	options_defaults(&c);
	before = c;
	for (size_t i = 0; option_key(i); i++)
		option_set(&c, i, WHERE, "wrong", NULL);
	assert_memory_equal(&c, &before, sizeof(c));
}

/* From the site's value a job gets what it asks for, or that with a line. */
static void assert_job_gets(const char *key, const char *site,
			    const char *asked, const char *gets)
{
	struct said said = { .lines = 0 };
	const struct log_hook log = { take_line, &said };
	char used[OPTION_TEXT_MAX];
	size_t i = find(key);
	struct conf c;

	options_defaults(&c);
	option_set(&c, i, WHERE, site, NULL);
	option_override(&c, i, asked, &log);
	option_text(&c, i, used);
	assert_string_equal(used, gets);
	assert_int_equal(said.lines, strcmp(asked, gets) ? 1 : 0);
	if (said.lines) {
		assert_said(said.text, option_variable(i));
		assert_said(said.text, key);
		assert_said(said.text, asked);
		assert_said(said.text, "continuing with ");
	}
}

TEST(job_can_only_lower_limits_of_the_site)
{
	assert_job_gets("Pmi2xDrainTimeout", "10", "600", "10");
	assert_job_gets("Pmi2xDrainTimeout", "10", "11", "10");
	assert_job_gets("Pmi2xDrainTimeout", "10", "10", "10");
	assert_job_gets("Pmi2xDrainTimeout", "600", "600", "600");
	assert_job_gets("Pmi2xDrainTimeout", "10", "1", "1");
	assert_job_gets("Pmi2xRegionSize", "0", "1024", "0");
	assert_job_gets("Pmi2xRegionSize", "64", "65", "64");
	assert_job_gets("Pmi2xRegionSize", "64", "0", "0");
	assert_job_gets("Pmi2xPmix", "no", "auto", "no");
	assert_job_gets("Pmi2xPmix", "no", "early", "no");
}

TEST(job_can_raise_its_own_limits)
{
	assert_job_gets("Pmi2xConnectTimeout", "1", "3600", "3600");
	assert_job_gets("Pmi2xStallReport", "0", "604800", "604800");
	assert_job_gets("Pmi2xCollectiveTimeout", "60", "0", "0");
	assert_job_gets("Pmi2xTreeWidth", "2", "1024", "1024");
	assert_job_gets("Pmi2xPmix", "auto", "early", "early");
	assert_job_gets("Pmi2xPmix", "early", "no", "no");
}

TEST(a_wrong_value_of_a_job_changes_nothing)
{
	struct said said = { .lines = 0 };
	const struct log_hook log = { take_line, &said };
	struct conf c, before;

	options_defaults(&c);
	before = c;
	for (size_t i = 0; option_key(i); i++)
		if (option_variable(i))
			option_override(&c, i, "wrong", &log);
	assert_memory_equal(&c, &before, sizeof(c));
	assert_int_equal(said.lines, 0);
}

TEST(the_manual_names_every_option_and_variable)
{
	const char *srcdir = getenv("srcdir");
	char path[4096], *manual = calloc(1, MANUAL_MAX);
	unsigned listed = 0, known = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/" MANUAL, srcdir ? srcdir : ".");
	file = fopen(path, "r");
	assert_non_null(file);
	assert_in_range(fread(manual, 1, MANUAL_MAX - 1, file), 1,
			MANUAL_MAX - 2);
	fclose(file);
	for (; option_key(known); known++) {
		snprintf(path, sizeof(path), ".It Cm %s Ns =", option_key(known));
		assert_said(manual, path);
		if (option_variable(known))
			assert_said(manual, option_variable(known));
	}
	for (const char *at = manual; (at = strstr(at, "\n.It Cm Pmi2x")); at++)
		listed++;
	assert_int_equal(listed, known);
	free(manual);
}

TEST(options_of_all_nodes_are_a_text_with_the_values_in_use)
{
	char text[OPTION_TEXT_MAX];
	struct conf c;

	options_defaults(&c);
	c.port_first = 28672;
	c.port_last = 32767;
	options_agreed(&c, text);
	assert_string_equal(text, "Pmi2xTreeWidth=auto Pmi2xCollectiveTimeout=0 "
				  "Pmi2xNetwork=(default) Pmi2xKillOnFailure=on "
				  "Pmi2xPmix=auto Pmi2xPorts=28672-32767 "
				  "Pmi2xTorch=off");
}

TEST(options_of_all_nodes_have_room_in_a_frame)
{
	char text[OPTION_TEXT_MAX];
	struct conf c;

	memset(&c, 0xff, sizeof(c));
	c.kill_on_failure = c.pmix = c.torch = 0;
	memset(c.network, 'f', sizeof(c.network) - 1);
	c.network[sizeof(c.network) - 1] = '\0';
	options_agreed(&c, text);
	assert_in_range(strlen(text), 100, 1024 - 1);
	assert_non_null(strstr(text, "Pmi2xPorts=65535-65535"));
}
