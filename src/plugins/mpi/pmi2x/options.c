/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One table of options: the allowed values, and the messages about others. */
#include "options.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "helpers/pmixd/pmixd.h"
#include "libcoll/tree.h"
#include "libshm/region.h"
#include "libutil/budget.h"
#include "libutil/decimal.h"
#include "network.h"

#define MIB_SHIFT 20

struct option {
	const char *key;
	const char *variable; /* by which a job overrides it, or NULL */
	const struct option_kind *kind;
	size_t offset;        /* of a number, in struct conf */
	uint32_t min;
	uint32_t max;
	uint32_t initial;
	const char *unit;
};

struct option_kind {
	/* Take the text if it is allowed. */
	bool (*parse)(struct conf *c, const struct option *o, const char *text);
	void (*show)(const struct conf *c, const struct option *o,
		     char out[OPTION_TEXT_MAX]);
	void (*allowed)(const struct option *o, char out[OPTION_TEXT_MAX]);
	const char *unset; /* the value in use when `show` returns "" */
	/* For the site's own sake: which values of a job are not above it. NULL: all. */
	bool (*may)(uint32_t job, uint32_t site);
	const char *const *words; /* of the values from min to max, or NULL */
};

/* ---- numbers ---- */

static uint32_t *number_at(struct conf *c, const struct option *o)
{
	return (uint32_t *)((char *)c + o->offset);
}

static uint32_t number_of(const struct conf *c, const struct option *o)
{
	return *(const uint32_t *)((const char *)c + o->offset);
}

static bool parse_number(struct conf *c, const struct option *o,
			 const char *text)
{
	return decimal_u32(text, o->min, o->max, number_at(c, o));
}

static void show_number(const struct conf *c, const struct option *o,
			char out[OPTION_TEXT_MAX])
{
	snprintf(out, OPTION_TEXT_MAX, "%u", number_of(c, o));
}

static void allowed_number(const struct option *o, char out[OPTION_TEXT_MAX])
{
	snprintf(out, OPTION_TEXT_MAX, "a number from %u to %u (%s)", o->min,
		 o->max, o->unit);
}

static const struct option_kind number = { parse_number, show_number,
					   allowed_number, NULL, NULL, NULL };

static bool not_above(uint32_t job, uint32_t site)
{
	return job <= site;
}

static const struct option_kind site_number = { parse_number, show_number,
						allowed_number, NULL, not_above,
						NULL };

/* ---- a number, or "auto" ---- */

static bool parse_width(struct conf *c, const struct option *o,
			const char *text)
{
	if (strcasecmp(text, "auto"))
		return parse_number(c, o, text);
	*number_at(c, o) = TREE_WIDTH_AUTO;
	return true;
}

static void show_width(const struct conf *c, const struct option *o,
		       char out[OPTION_TEXT_MAX])
{
	if (number_of(c, o) == TREE_WIDTH_AUTO)
		strcpy(out, "auto");
	else
		show_number(c, o, out);
}

static void allowed_width(const struct option *o, char out[OPTION_TEXT_MAX])
{
	snprintf(out, OPTION_TEXT_MAX, "auto or a number from %u to %u (%s)",
		 o->min, o->max, o->unit);
}

static const struct option_kind width = { parse_width, show_width,
					  allowed_width, NULL, NULL, NULL };

/* ---- switches ---- */

static bool parse_switch(struct conf *c, const struct option *o,
			 const char *text)
{
	bool on = !strcasecmp(text, "on");

	if (!on && strcasecmp(text, "off"))
		return false;
	*number_at(c, o) = on;
	return true;
}

static void show_switch(const struct conf *c, const struct option *o,
			char out[OPTION_TEXT_MAX])
{
	strcpy(out, number_of(c, o) ? "on" : "off");
}

static void allowed_switch(const struct option *o, char out[OPTION_TEXT_MAX])
{
	snprintf(out, OPTION_TEXT_MAX, "off or on (%s)", o->unit);
}

static const struct option_kind on_off = { parse_switch, show_switch,
					   allowed_switch, NULL, NULL, NULL };

/* ---- words ---- */

static const char *const topology_words[] = {
	[CONF_TOPOLOGY_OFF] = "off",
	[CONF_TOPOLOGY_ASKED] = "asked",
	[CONF_TOPOLOGY_AGENT] = "agent",
	[CONF_TOPOLOGY_VARIABLES] = "variables",
};

static const char *const pmix_words[] = {
	[CONF_PMIX_NO] = "no",
	[CONF_PMIX_AUTO] = "auto",
	[CONF_PMIX_EARLY] = "early",
};

static const char *const gds_words[] = {
	[CONF_PMIX_GDS_AUTO] = "auto",
	[CONF_PMIX_GDS_HASH] = "hash",
};

static const char *const torch_words[] = {
	[CONF_TORCH_OFF] = "off",
	[CONF_TORCH_ENV] = "env",
	[CONF_TORCH_STORE] = "store",
	[CONF_TORCH_TREE] = "tree",
};

static const char *const lend_words[] = { "no", "yes" };

const char *const options_collect_words[] = {
	[PMIXD_COLLECT_AUTO] = "auto",
	[PMIXD_COLLECT_DEMAND] = "demand",
	[PMIXD_COLLECT_STORE] = "store",
};

static bool parse_word(struct conf *c, const struct option *o, const char *text)
{
	for (uint32_t i = o->min; i <= o->max; i++)
		if (!strcasecmp(text, o->kind->words[i])) {
			*number_at(c, o) = i;
			return true;
		}
	return false;
}

static void show_word(const struct conf *c, const struct option *o,
		      char out[OPTION_TEXT_MAX])
{
	strcpy(out, o->kind->words[number_of(c, o)]);
}

static void allowed_words(const struct option *o, char out[OPTION_TEXT_MAX])
{
	size_t n = 0;

	for (uint32_t i = o->min; i <= o->max; i++)
		n += (size_t)snprintf(out + n, OPTION_TEXT_MAX - n, "%s%s",
				      i == o->min ? "" :
				      i == o->max ? " or " : ", ",
				      o->kind->words[i]);
	snprintf(out + n, OPTION_TEXT_MAX - n, " (%s)", o->unit);
}

/* A job does not get an option that its site does not offer. */
static bool is_offered(uint32_t job, uint32_t site)
{
	return site || !job;
}

#define WORDS(words, may) \
	{ parse_word, show_word, allowed_words, NULL, may, words }

static const struct option_kind topology = WORDS(topology_words, NULL);
static const struct option_kind pmix = WORDS(pmix_words, is_offered);
static const struct option_kind torch = WORDS(torch_words, NULL);
static const struct option_kind lend = WORDS(lend_words, NULL);
static const struct option_kind pmix_gds = WORDS(gds_words, NULL);
static const struct option_kind pmix_collect = WORDS(options_collect_words, NULL);

/* ---- a range of ports ---- */

static bool parse_ports(struct conf *c, const struct option *o,
			const char *text)
{
	const char *dash = strchr(text, '-');
	uint32_t first, last;
	char low[6];

	if (!dash || dash - text >= (ptrdiff_t)sizeof(low))
		return false;
	memcpy(low, text, dash - text);
	low[dash - text] = '\0';
	if (!decimal_u32(low, o->min, o->max, &first) ||
	    !decimal_u32(dash + 1, o->min, o->max, &last) || first > last)
		return false;
	c->port_first = (uint16_t)first;
	c->port_last = (uint16_t)last;
	return true;
}

static void show_ports(const struct conf *c, const struct option *o,
		       char out[OPTION_TEXT_MAX])
{
	out[0] = '\0';
	if (c->port_first)
		snprintf(out, OPTION_TEXT_MAX, "%u-%u", c->port_first,
			 c->port_last);
}

static void allowed_ports(const struct option *o, char out[OPTION_TEXT_MAX])
{
	snprintf(out, OPTION_TEXT_MAX,
		 "first-last with ports from %u to %u, the first not above the last",
		 o->min, o->max);
}

static const struct option_kind ports = {
	parse_ports, show_ports, allowed_ports,
	"SrunPortRange, else 28672-32767",
	NULL, NULL
};

/* ---- a network ---- */

static bool parse_network(struct conf *c, const struct option *o,
			  const char *text)
{
	struct network n;

	if (strlen(text) >= sizeof(c->network) || !network_parse(text, &n))
		return false;
	strcpy(c->network, text);
	return true;
}

static void show_network(const struct conf *c, const struct option *o,
			 char out[OPTION_TEXT_MAX])
{
	strcpy(out, c->network);
}

static void allowed_network(const struct option *o, char out[OPTION_TEXT_MAX])
{
	snprintf(out, OPTION_TEXT_MAX,
		 "a network as ADDRESS/BITS, as 10.1.0.0/16 or fd00:1::/64");
}

static const struct option_kind network = { parse_network, show_network,
					    allowed_network,
					    "the network of NodeAddr", NULL, NULL };

/* ---- a path ---- */

static bool parse_path(struct conf *c, const struct option *o, const char *text)
{
	if ((text[0] && text[0] != '/') || strlen(text) >= CONF_PATH_MAX)
		return false;
	strcpy((char *)c + o->offset, text);
	return true;
}

static void show_path(const struct conf *c, const struct option *o,
		      char out[OPTION_TEXT_MAX])
{
	strcpy(out, (const char *)c + o->offset);
}

static void allowed_path(const struct option *o, char out[OPTION_TEXT_MAX])
{
	snprintf(out, OPTION_TEXT_MAX,
		 "an absolute path of less than %u bytes, or nothing",
		 CONF_PATH_MAX);
}

static const struct option_kind directory = { parse_path, show_path,
					      allowed_path, "no trace", NULL,
					      NULL };
static const struct option_kind library = {
	parse_path, show_path, allowed_path, "the first libpmix in the usual directories",
	NULL, NULL
};

/* ---- the table ---- */

#define FIELD(name) offsetof(struct conf, name)

static const struct option options[] = {
	{ "Pmi2xTreeWidth", "PMI2X_TREE_WIDTH", &width, FIELD(tree_width),
	  TREE_WIDTH_MIN, TREE_WIDTH_MAX, TREE_WIDTH_AUTO, "children of a node" },
	{ "Pmi2xCollectiveTimeout", "PMI2X_COLLECTIVE_TIMEOUT", &number,
	  FIELD(collective_s), 0, 604800, 0, "seconds, 0: none" },
	{ "Pmi2xConnectTimeout", "PMI2X_CONNECT_TIMEOUT", &number,
	  FIELD(connect_s), 1, 3600, 60, "seconds" },
	{ "Pmi2xDeadPeerTimeout", NULL, &number, FIELD(dead_peer_s), 1, 3600,
	  30, "seconds" },
	{ "Pmi2xDrainTimeout", "PMI2X_DRAIN_TIMEOUT", &site_number,
	  FIELD(drain_s), 1, 600, 10, "seconds" },
	{ "Pmi2xHandshakeTimeout", NULL, &number, FIELD(handshake_s), 1, 600,
	  10, "seconds" },
	{ "Pmi2xRegionSize", "PMI2X_REGION_SIZE", &site_number,
	  FIELD(region_mib), 0, REGION_SIZE_MAX >> MIB_SHIFT, 1024,
	  "MiB, 0: no shared memory" },
	{ "Pmi2xBufferLimit", "PMI2X_BUFFER_LIMIT", &site_number,
	  FIELD(buffer_mib), 1, 1048576, BUDGET_DEFAULT >> MIB_SHIFT, "MiB" },
	{ "Pmi2xStallReport", "PMI2X_STALL_REPORT", &number, FIELD(stall_s), 0,
	  604800, 60, "seconds, 0: none" },
	{ "Pmi2xNetwork", NULL, &network, 0, 0, 0, 0, NULL },
	{ "Pmi2xKillOnFailure", "PMI2X_KILL_ON_FAILURE", &on_off,
	  FIELD(kill_on_failure), 0, 1, 1,
	  "end of the step when a collective fails" },
	{ "Pmi2xTopology", "PMI2X_TOPOLOGY", &topology, FIELD(topology),
	  CONF_TOPOLOGY_OFF, CONF_TOPOLOGY_VARIABLES, CONF_TOPOLOGY_ASKED,
	  "when the topology of a node is written to a file for its ranks" },
	{ "Pmi2xPmix", "PMI2X_PMIX", &pmix, FIELD(pmix), CONF_PMIX_NO,
	  CONF_PMIX_EARLY, CONF_PMIX_AUTO,
	  "whether PMIx is offered, and when its server is started" },
	{ "Pmi2xPmixLibrary", NULL, &library, FIELD(pmix_library), 0, 0, 0, NULL },
	{ "Pmi2xPmixGds", "PMI2X_PMIX_GDS", &pmix_gds, FIELD(pmix_gds),
	  CONF_PMIX_GDS_AUTO, CONF_PMIX_GDS_HASH, CONF_PMIX_GDS_AUTO,
	  "how PMIx clients get the data of the server" },
	{ "Pmi2xPmixCollect", NULL, &pmix_collect, FIELD(pmix_collect),
	  PMIXD_COLLECT_AUTO, PMIXD_COLLECT_STORE, PMIXD_COLLECT_AUTO,
	  "when libpmix gets the data of a PMIx fence" },
	{ "Pmi2xPorts", NULL, &ports, 0, 1, UINT16_MAX, 0, NULL },
	{ "Pmi2xTorch", "PMI2X_TORCH", &torch, FIELD(torch), CONF_TORCH_OFF,
	  CONF_TORCH_TREE, CONF_TORCH_OFF,
	  "variables and a TCPStore for PyTorch" },
	{ "Pmi2xLend", NULL, &lend, FIELD(lend), 0, 1, 1, "whether jobs may set PMI2X_LEND" },
	{ "Pmi2xTrace", "PMI2X_TRACE", &directory, FIELD(trace_dir), 0, 0, 0,
	  NULL },
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))

const char *option_key(size_t i)
{
	return i < OPTIONS ? options[i].key : NULL;
}

const char *option_variable(size_t i)
{
	return options[i].variable;
}

void option_allowed(size_t i, char out[OPTION_TEXT_MAX])
{
	options[i].kind->allowed(&options[i], out);
}

void option_text(const struct conf *c, size_t i, char out[OPTION_TEXT_MAX])
{
	options[i].kind->show(c, &options[i], out);
}

/*
 * The others concern the node alone: its memory, its timers, its programs. The data of a
 * PMIx fence say by themselves how they were collected.
 */
static const char *const agreed[] = {
	"Pmi2xTreeWidth", /* each node must have the same tree */
	"Pmi2xPorts",     /* ... look for the others where they listen */
	"Pmi2xNetwork",
	"Pmi2xCollectiveTimeout", /* ... fail in the same way */
	"Pmi2xKillOnFailure",
	"Pmi2xTorch",     /* tasks would look for the first node in vain */
	"Pmi2xPmix",      /* ranks would wait for those that get none */
};

static bool is_agreed(const char *key)
{
	for (size_t i = 0; i < sizeof(agreed) / sizeof(agreed[0]); i++)
		if (!strcmp(agreed[i], key))
			return true;
	return false;
}

void options_agreed(const struct conf *c, char out[OPTION_TEXT_MAX])
{
	char value[OPTION_TEXT_MAX];
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < OPTIONS && used < OPTION_TEXT_MAX; i++) {
		if (!is_agreed(options[i].key))
			continue;
		option_text(c, i, value);
		used += (size_t)snprintf(out + used, OPTION_TEXT_MAX - used,
					 "%s%s=%s", used ? " " : "",
					 options[i].key,
					 value[0] ? value : "(default)");
	}
}

void options_defaults(struct conf *c)
{
	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < OPTIONS; i++)
		if (options[i].unit)
			*number_at(c, &options[i]) = options[i].initial;
}

/* The value as a message can show it: printable, and not too long. */
static void shown(const char *text, char out[OPTION_SHOWN_MAX + 4])
{
	size_t len = strnlen(text, OPTION_SHOWN_MAX + 1);
	bool cut = len > OPTION_SHOWN_MAX;

	len = cut ? OPTION_SHOWN_MAX : len;
	for (size_t i = 0; i < len; i++)
		out[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
	strcpy(out + len, cut ? "..." : "");
}

void option_override(struct conf *c, size_t i, const char *text,
		     const struct log_hook *log)
{
	const struct option *o = &options[i];
	char asked[OPTION_TEXT_MAX], used[OPTION_TEXT_MAX];
	struct conf job = *c;

	if (!o->kind->parse(&job, o, text))
		return;
	if (!o->kind->may ||
	    o->kind->may(number_of(&job, o), number_of(c, o))) {
		*c = job;
		return;
	}
	option_text(&job, i, asked);
	option_text(c, i, used);
	log_error(log,
		  "%s=%s is above %s=%s, which a job can only lower: continuing with %s",
		  o->variable, asked, o->key, used, used);
}

void option_set(struct conf *c, size_t i, const char *where, const char *text,
		const struct log_hook *log)
{
	const struct option *o = &options[i];
	char value[OPTION_SHOWN_MAX + 4];
	char allowed[OPTION_TEXT_MAX], used[OPTION_TEXT_MAX];

	if (o->kind->parse(c, o, text))
		return;
	shown(text, value);
	option_allowed(i, allowed);
	option_text(c, i, used);
	log_error(log, "%s: \"%s\" is not a value of %s: use %s; continuing with %s",
		  where, value, o->key, allowed,
		  used[0] ? used : o->kind->unset);
}
