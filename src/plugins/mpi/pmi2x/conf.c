/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mpi.conf and the overrides of a job: one table of options, checked here. */
#include "slurm_compat.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "libcoll/algorithm.h"
#include "libcoll/tree.h"
#include "libshm/region.h"
#include "libutil/log.h"
#include "slurm_log.h"

#define PORTS_KEY "Pmi2xPorts"
#define PORTS_WANTED 4096  /* size of the range chosen by default */
#define PORTS_LOWEST 1025  /* below, only root may listen */
#define EPHEMERAL_LOW 32768 /* Linux's default, when /proc does not say */
#define TRACE_KEY "Pmi2xTrace"
#define KEY_PREFIX "Pmi2x"
#define CONF_LINE_MAX 4096
#define MIB_SHIFT 20
#define WORDS_MAX 128 /* bytes of a list of words in a message */

/* Numbers; Pmi2xPorts and Pmi2xTrace have functions of their own. */
struct conf_number {
	const char *key;
	const char *env; /* variable by which a job overrides it, or NULL */
	size_t offset;   /* in struct conf */
	uint32_t min;
	uint32_t max;
	uint32_t initial;
	const char *unit;
	const char *(*word)(uint32_t value); /* NULL: written as a number */
};

static const char *algorithm_word(uint32_t value)
{
	return algorithm_name(value);
}

static const char *switch_word(uint32_t value)
{
	return value ? "on" : "off";
}

#define FIELD(name) offsetof(struct conf, name)

static const struct conf_number numbers[] = {
	{ "Pmi2xTreeWidth", "PMI2X_TREE_WIDTH", FIELD(tree_width),
	  TREE_WIDTH_MIN, TREE_WIDTH_MAX, 16, "children of a node", NULL },
	{ "Pmi2xCollectiveTimeout", "PMI2X_COLLECTIVE_TIMEOUT",
	  FIELD(collective_s), 0, 604800, 0, "seconds, 0: none", NULL },
	{ "Pmi2xConnectTimeout", "PMI2X_CONNECT_TIMEOUT", FIELD(connect_s), 1,
	  3600, 60, "seconds", NULL },
	{ "Pmi2xDeadPeerTimeout", NULL, FIELD(dead_peer_s), 1, 3600, 30,
	  "seconds", NULL },
	{ "Pmi2xDrainTimeout", "PMI2X_DRAIN_TIMEOUT", FIELD(drain_s), 1, 600, 10,
	  "seconds", NULL },
	{ "Pmi2xHandshakeTimeout", NULL, FIELD(handshake_s), 1, 600, 10,
	  "seconds", NULL },
	{ "Pmi2xRegionSize", "PMI2X_REGION_SIZE", FIELD(region_mib), 0,
	  REGION_SIZE_MAX >> MIB_SHIFT, 1024, "MiB", NULL },
	{ "Pmi2xStallReport", "PMI2X_STALL_REPORT", FIELD(stall_s), 0, 604800,
	  60, "seconds, 0: none", NULL },
	{ "Pmi2xTellAfter", NULL, FIELD(tell_after_ms), 10, 60000, 100,
	  "milliseconds", NULL },
	{ "Pmi2xAlgorithm", "PMI2X_ALGORITHM", FIELD(algorithm), 0,
	  COLL_ALGORITHMS - 1, COLL_BY_CHOICE, "how nodes exchange data",
	  algorithm_word },
	{ "Pmi2xCompression", "PMI2X_COMPRESSION", FIELD(compress), 0, 1, 0,
	  "compression of large results", switch_word },
};

#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static uint32_t *number_at(struct conf *c, const struct conf_number *n)
{
	return (uint32_t *)((char *)c + n->offset);
}

static uint32_t number_of(const struct conf *c, const struct conf_number *n)
{
	return *(const uint32_t *)((const char *)c + n->offset);
}

/* Decimal digits and nothing else. */
static bool parse_number(const char *text, uint32_t min, uint32_t max,
			 uint32_t *out)
{
	unsigned long long value;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end || value < min || value > max)
		return false;
	*out = (uint32_t)value;
	return true;
}

static bool parse_ports(const char *text, uint16_t *first, uint16_t *last)
{
	const char *dash = strchr(text, '-');
	uint32_t a, b;
	char low[6];

	if (!dash || dash - text >= (ptrdiff_t)sizeof(low))
		return false;
	memcpy(low, text, dash - text);
	low[dash - text] = '\0';
	if (!parse_number(low, 1, UINT16_MAX, &a) ||
	    !parse_number(dash + 1, 1, UINT16_MAX, &b) || a > b)
		return false;
	*first = (uint16_t)a;
	*last = (uint16_t)b;
	return true;
}

/* "auto, tree or ring"; cut where it does not fit. */
static void list_words(const struct conf_number *n, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (uint32_t i = n->min; i <= n->max && used < size; i++)
		used += snprintf(out + used, size - used, "%s%s",
				 i == n->min ? "" : i == n->max ? " or " : ", ",
				 n->word(i));
}

static void set_word(struct conf *c, const struct conf_number *n,
		     const char *where, const char *text,
		     const struct log_hook *log)
{
	char words[WORDS_MAX];

	for (uint32_t i = n->min; i <= n->max; i++)
		if (!strcasecmp(text, n->word(i))) {
			*number_at(c, n) = i;
			return;
		}
	list_words(n, words, sizeof(words));
	log_error(log, "%s: \"%s\" is no value for %s: use %s (%s); going on with %s",
		  where, text, n->key, words, n->unit,
		  n->word(number_of(c, n)));
}

/* `where` names the origin of the value: "mpi.conf" or a variable. */
static void set_number(struct conf *c, const struct conf_number *n,
		       const char *where, const char *text,
		       const struct log_hook *log)
{
	if (n->word)
		set_word(c, n, where, text, log);
	else if (!parse_number(text, n->min, n->max, number_at(c, n)))
		log_error(log,
			  "%s: \"%s\" is no value for %s: use a number from %u to %u (%s); going on with %u",
			  where, text, n->key, n->min, n->max, n->unit,
			  number_of(c, n));
}

static void set_ports(struct conf *c, const char *text)
{
	if (!parse_ports(text, &c->port_first, &c->port_last))
		log_error(&slurm_log,
			  "mpi.conf: \"%s\" is no value for " PORTS_KEY
			  ": use first-last with ports from 1 to 65535; going on with the default range",
			  text);
}

static void set_trace(struct conf *c, const char *text)
{
	if (text[0] == '/' && strlen(text) < sizeof(c->trace_dir))
		strcpy(c->trace_dir, text);
	else
		log_error(&slurm_log,
			  "mpi.conf: \"%s\" is no value for " TRACE_KEY
			  ": use an absolute path of less than %u bytes; going on without a trace",
			  text, CONF_PATH_MAX);
}

void conf_defaults(struct conf *c)
{
	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < NUMBERS; i++)
		*number_at(c, &numbers[i]) = numbers[i].initial;
}

/*
 * Every option is a string for Slurm: its number parser would end slurmctld and
 * slurmd over a bad value.
 */
static const char *option_key(size_t i)
{
	static const char *const others[] = { PORTS_KEY, TRACE_KEY, NULL };

	return i < NUMBERS ? numbers[i].key : others[i - NUMBERS];
}

void conf_options(s_p_options_t **options, int *count)
{
	s_p_options_t add[NUMBERS + 3] = { { 0 } };

	for (size_t i = 0; option_key(i); i++) {
		add[i].key = (char *)option_key(i);
		add[i].type = S_P_STRING;
	}
	transfer_s_p_options(options, add, count);
}

void conf_set(struct conf *c, s_p_hashtbl_t *table)
{
	char *text = NULL;

	conf_defaults(c);
	if (!table)
		return;
	for (size_t i = 0; i < NUMBERS; i++) {
		if (s_p_get_string(&text, numbers[i].key, table))
			set_number(c, &numbers[i], "mpi.conf", text,
				   &slurm_log);
		xfree(text);
	}
	if (s_p_get_string(&text, PORTS_KEY, table) && text[0])
		set_ports(c, text);
	xfree(text);
	if (s_p_get_string(&text, TRACE_KEY, table) && text[0])
		set_trace(c, text);
	xfree(text);
}

static bool is_option(const char *key, size_t len)
{
	for (size_t i = 0; option_key(i); i++)
		if (strlen(option_key(i)) == len &&
		    !strncasecmp(option_key(i), key, len))
			return true;
	return false;
}

static void check_line(const char *line, const char *path)
{
	size_t prefix = strlen(KEY_PREFIX), len;

	for (; *line && *line != '#'; line += len + !len) {
		len = strcspn(line, " \t\r\n=#\\");
		if (len > prefix && !strncasecmp(line, KEY_PREFIX, prefix) &&
		    !is_option(line, len))
			log_error(&slurm_log,
				  "%s: there is no option %.*s; mpi_pmi2x.conf(5) lists them",
				  path, (int)len, line);
		if (line[len] == '=')
			len += strcspn(line + len, " \t\r\n");
	}
}

void conf_warn_unknown(void)
{
	char *path = get_extra_conf_path("mpi.conf");
	FILE *file = path ? fopen(path, "re") : NULL;
	char line[CONF_LINE_MAX];

	while (file && fgets(line, sizeof(line), file))
		check_line(line, path);
	if (file)
		fclose(file);
	xfree(path);
}

/* The value of "key=value" when the line is that, as Slurm reads it. */
static char *value_of(char *line, const char *key)
{
	char *at = line + strspn(line, " \t");
	size_t len = strlen(key);

	if (strncasecmp(at, key, len))
		return NULL;
	at += len + strspn(at + len, " \t");
	if (*at != '=')
		return NULL;
	at += 1 + strspn(at + 1, " \t");
	at[strcspn(at, " \t\r\n#")] = '\0';
	return at;
}

char *conf_trace_dir(void)
{
	char *path = get_extra_conf_path("mpi.conf");
	FILE *file = path ? fopen(path, "re") : NULL;
	char line[CONF_LINE_MAX], *value, *dir = NULL;

	while (file && !dir && fgets(line, sizeof(line), file)) {
		value = value_of(line, TRACE_KEY);
		if (value && value[0] == '/')
			dir = strdup(value);
	}
	if (file)
		fclose(file);
	xfree(path);
	return dir;
}

/* The value of an option in use; xmalloc'ed. */
static char *option_text(const struct conf *c, size_t i)
{
	uint16_t first, last;

	if (i < NUMBERS && numbers[i].word)
		return xstrdup(numbers[i].word(number_of(c, &numbers[i])));
	if (i < NUMBERS)
		return xstrdup_printf("%u", number_of(c, &numbers[i]));
	if (strcmp(option_key(i), TRACE_KEY) == 0)
		return c->trace_dir[0] ? xstrdup(c->trace_dir) : NULL;
	if (!c->port_first)
		return NULL;
	conf_ports(c, &first, &last);
	return xstrdup_printf("%u-%u", first, last);
}

s_p_hashtbl_t *conf_table(const struct conf *c)
{
	s_p_options_t *options = NULL;
	s_p_hashtbl_t *table;
	int count = 0;

	conf_options(&options, &count);
	xrealloc(options, (count + 1) * sizeof(*options));
	table = s_p_hashtbl_create(options);
	for (int i = 0; i < count; i++)
		xfree(options[i].key);
	xfree(options);
	for (size_t i = 0; option_key(i); i++) {
		char *text = option_text(c, i);

		if (text)
			s_p_parse_pair(table, option_key(i), text);
		xfree(text);
	}
	return table;
}

static void add_pair(slurm_list list, const char *key, char *text)
{
	config_key_pair_t *pair = xmalloc(sizeof(*pair));

	pair->name = xstrdup(key);
	pair->value = text;
	list_append(list, pair);
}

slurm_list conf_printable(const struct conf *c)
{
	slurm_list list = list_create(destroy_config_key_pair);

	for (size_t i = 0; option_key(i); i++) {
		char *text = option_text(c, i);

		add_pair(list, option_key(i), text ? text : xstrdup("(default)"));
	}
	return list;
}

void conf_override(struct conf *c, char **env, const struct log_hook *log)
{
	const char *text;

	for (size_t i = 0; i < NUMBERS; i++) {
		if (!numbers[i].env)
			continue;
		text = getenvp(env, numbers[i].env);
		if (text)
			set_number(c, &numbers[i], numbers[i].env, text, log);
	}
}

/* The lowest port that the kernel gives to connections. */
static uint32_t ephemeral_low(void)
{
	FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	uint32_t low = 0;

	if (file && fscanf(file, "%u", &low) != 1)
		low = 0;
	if (file)
		fclose(file);
	return low > 0 && low <= UINT16_MAX ? low : EPHEMERAL_LOW;
}

/* Cut [*first, *last] where `port` divides it, keeping the larger part. */
static void leave_out(uint32_t port, uint32_t *first, uint32_t *last)
{
	if (port < *first || port > *last)
		return;
	if (port - *first > *last - port)
		*last = port - 1;
	else
		*first = port + 1;
}

void conf_ports(const struct conf *c, uint16_t *first, uint16_t *last)
{
	uint32_t low, high;

	if (c->port_first) {
		*first = c->port_first;
		*last = c->port_last;
		return;
	}
	if (slurm_conf.srun_port_range) {
		*first = slurm_conf.srun_port_range[0];
		*last = slurm_conf.srun_port_range[1];
		return;
	}
	high = ephemeral_low() - 1;
	if (high < PORTS_LOWEST + PORTS_WANTED) /* no room below: go anywhere */
		high = UINT16_MAX;
	low = high - PORTS_WANTED + 1;
	leave_out(slurm_conf.slurmd_port, &low, &high);
	leave_out(slurm_conf.slurmctld_port, &low, &high);
	*first = (uint16_t)low;
	*last = (uint16_t)high;
}
