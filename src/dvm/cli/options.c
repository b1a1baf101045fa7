/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that several commands of pmi2x-dvm have. */
#include "dvm/cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dvm/cli/die.h"
#include "dvm/cli/help.h"
#include "dvm/cli/node_list.h"
#include "libutil/decimal.h"

/* The options that begin with this name, with commas between them; "": none. To be freed. */
static char *begin_with(const struct option *options, const char *name)
{
	size_t len = strcspn(name, "="), size;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		abort();
	for (; options->name; options++)
		if (len && !strncmp(options->name, name, len))
			fprintf(out, "%s--%s", ftell(out) ? ", " : "", options->name);
	fclose(out);
	return text;
}

void die_option(char **argv, int option, const struct option *options)
{
	const char *given = argv[optind - 1];
	const char *several;

	if (is_help(given))
		exit(help_print(argv[0]));
	if (option == ':')
		die_usage("%s: %s needs a value", argv[0], given);
	if (optopt && strncmp(given, "--", 2))
		die_usage("%s: there is no option -%c", argv[0], optopt);
	if (optopt)
		die_usage("%s: %s takes no value", argv[0], given);
	several = begin_with(options, given + strspn(given, "-"));
	if (*several)
		die_usage("%s: %s is the beginning of several options: %s", argv[0], given, several);
	die_usage("%s: there is no option %s", argv[0], given);
}

uint32_t option_number(const char *option, const char *text, uint32_t min, uint32_t max)
{
	uint32_t number;

	if (!decimal_u32(text, min, max, &number))
		die_usage("%s must be a number from %u to %u", option, min, max);
	return number;
}

json_t *option_nodelist(const char *text)
{
	json_t *names = json_array();

	if (!node_list_expand(text, names))
		die_usage("--nodelist is a list of nodes, as n1,n[3-5]");
	return names;
}

bool is_number(const char *word)
{
	return *word && !word[strspn(word, "0123456789")];
}

const char *local_nodes(char **argv, const char *value)
{
	if (!value && argv[optind] && is_number(argv[optind]))
		return argv[optind++];
	if (value && !is_number(value))
		die_usage("%s: --local=%s: not a number of nodes", argv[0], value);
	return value ? value : "1";
}
