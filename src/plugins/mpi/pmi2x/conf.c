/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options as Slurm reads, passes on and shows them; the default ports. */
#include "slurm_compat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "slurm_log.h"

/*
 * Below Linux's default of ip_local_port_range. A constant, and nothing of the node's
 * own settings: neighbours look for a node at ports of their own range.
 */
#define PORT_FIRST 28672
#define PORT_LAST 32767
#define TRACE_KEY "Pmi2xTrace"
#define KEY_PREFIX "Pmi2x"
#define CONF_LINE_MAX 4096

/*
 * Every option is a string for Slurm: its number parser would end slurmctld and
 * slurmd over a bad value.
 */
void conf_options(s_p_options_t **options, int *count)
{
	s_p_options_t *add;
	size_t n = 0;

	while (option_key(n))
		n++;
	add = xcalloc(n + 1, sizeof(*add));
	for (size_t i = 0; i < n; i++) {
		add[i].key = (char *)option_key(i);
		add[i].type = S_P_STRING;
	}
	transfer_s_p_options(options, add, count);
	xfree(add);
}

void conf_set(struct conf *c, s_p_hashtbl_t *table)
{
	char *text = NULL;

	options_defaults(c);
	if (!table)
		return;
	for (size_t i = 0; option_key(i); i++) {
		if (s_p_get_string(&text, option_key(i), table))
			option_set(c, i, "mpi.conf", text, &slurm_log);
		xfree(text);
	}
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
				  "%s: unknown option %.*s: mpi_pmi2x.conf(5) lists the options",
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

/* The value of an option in use; xmalloc'ed; NULL: chosen by default. */
static char *value_in_use(const struct conf *c, size_t i)
{
	char text[OPTION_TEXT_MAX];

	option_text(c, i, text);
	return text[0] ? xstrdup(text) : NULL;
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
		char *text = value_in_use(c, i);

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
		char *text = value_in_use(c, i);

		add_pair(list, option_key(i), text ? text : xstrdup("(default)"));
	}
	return list;
}

/* The text by which a job overrides an option, or NULL. */
static const char *job_text(char **env, size_t i)
{
	return option_variable(i) ? getenvp(env, option_variable(i)) : NULL;
}

void conf_check(struct conf *c, char **env)
{
	for (size_t i = 0; option_key(i); i++)
		if (job_text(env, i))
			option_set(c, i, option_variable(i), job_text(env, i),
				   &slurm_log);
}

void conf_override(struct conf *c, char **env, const struct log_hook *log)
{
	for (size_t i = 0; option_key(i); i++)
		if (job_text(env, i))
			option_override(c, i, job_text(env, i), log);
}

void conf_ports(const struct conf *c, uint16_t *first, uint16_t *last)
{
	*first = PORT_FIRST;
	*last = PORT_LAST;
	if (c->port_first) {
		*first = c->port_first;
		*last = c->port_last;
	} else if (slurm_conf.srun_port_range) {
		*first = slurm_conf.srun_port_range[0];
		*last = slurm_conf.srun_port_range[1];
	}
}

void conf_agreed(const struct conf *c, char out[OPTION_TEXT_MAX])
{
	struct conf used = *c;

	conf_ports(c, &used.port_first, &used.port_last);
	options_agreed(&used, out);
}
