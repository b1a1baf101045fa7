/* SPDX-License-Identifier: BSD-3-Clause */
/* The description of a task: its keys, and the valid values of each. */
#include "dvm/json/json_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dvm/core/output_path.h"
#include "libutil/plural.h"

#define PLACED_MAX LEDGER_RANKS_MAX /* entries */
/*
 * Limit of a rank's memory in bytes: the sum over the ranks of a node must be a number,
 * too.
 */
#define MEMORY_MAX (INT64_MAX / LEDGER_RANKS_MAX)

/* ---- values ---- */

bool spec_has_nul(json_t *v)
{
	const char *name;
	json_t *each;
	size_t i;

	if (json_is_string(v))
		return strlen(json_string_value(v)) != json_string_length(v);
	json_array_foreach(v, i, each)
		if (spec_has_nul(each))
			return true;
	json_object_foreach(v, name, each)
		if (spec_has_nul(each))
			return true;
	return false;
}

static uint64_t get_number(struct spec_reading *r, const char *key, uint64_t missing,
			   uint64_t max)
{
	json_t *v = json_object_get(r->source, key);

	if (!v)
		return missing;
	if (!json_is_integer(v) || json_integer_value(v) < 0 ||
	    (uint64_t)json_integer_value(v) > max) {
		spec_wrong(r, key, "must be a whole number from 0 to %llu",
			   (unsigned long long)max);
		return missing;
	}
	return (uint64_t)json_integer_value(v);
}

static int32_t get_priority(struct spec_reading *r)
{
	json_t *v = json_object_get(r->source, "priority");
	json_int_t n = json_integer_value(v);

	if (v && (!json_is_integer(v) || n < -PRIORITY_MAX || n > PRIORITY_MAX))
		spec_wrong(r, "priority", "must be a whole number from %d to %d", -PRIORITY_MAX,
			   PRIORITY_MAX);
	return v ? (int32_t)n : 0;
}

static bool get_bool(struct spec_reading *r, const char *key)
{
	json_t *v = json_object_get(r->source, key);

	if (v && !json_is_boolean(v))
		spec_wrong(r, key, "must be true or false");
	return json_is_true(v);
}

static char *get_text(struct spec_reading *r, const char *key)
{
	json_t *v = json_object_get(r->source, key);
	char *copy;

	if (!v)
		return NULL;
	if (!json_is_string(v) || json_string_length(v) >= DVM_TEXT_MAX) {
		spec_wrong(r, key, "must be a text of less than %d bytes", DVM_TEXT_MAX);
		return NULL;
	}
	copy = strdup(json_string_value(v));
	if (!copy)
		spec_wrong(r, key, "out of memory");
	return copy;
}

/* ---- argv ---- */

static void read_argv(struct spec_reading *r)
{
	json_t *argv = json_object_get(r->source, "argv"), *v;
	struct buf b;
	size_t i;
	int rc = 0;

	if (!json_is_array(argv) || !json_array_size(argv)) {
		spec_wrong(r, "argv", "must be a list of texts, the program first");
		return;
	}
	buf_init(&b, DVM_COMMAND_MAX);
	json_array_foreach(argv, i, v) {
		if (!json_is_string(v))
			spec_wrong(r, "argv", "argument %zu is not a text", i);
		else
			rc = rc ? rc : buf_append(&b, json_string_value(v),
						  json_string_length(v) + 1);
	}
	if (rc)
		spec_wrong(r, "argv", "longer than %zu bytes", DVM_COMMAND_MAX);
	else if (b.len && !b.data[0])
		spec_wrong(r, "argv", "the program has no name");
	r->spec.argv = b.data;
	r->spec.argv_len = b.len;
}

/* ---- shape ---- */

static void read_counters(struct spec_reading *r)
{
	json_t *counters = json_object_get(r->source, "counters"), *v;
	const char *name;

	if (counters && !json_is_object(counters))
		spec_wrong(r, "counters", "must be an object: name and number");
	json_object_foreach(counters, name, v) {
		int i = ledger_find_counter(r->h->ledger, name);

		if (i < 0)
			spec_wrong(r, "counters", "this DVM has no counter %.40s: name it when it is started, with --counter",
				   name);
		else if (!json_is_integer(v) || json_integer_value(v) < 0 ||
			 json_integer_value(v) > INT32_MAX)
			spec_wrong(r, "counters", "%.40s must be a number", name);
		else
			r->spec.shape.counters[i] = (uint32_t)json_integer_value(v);
	}
}

/*
 * Read numbers that ascend from those in *all: ranks share the cores and GPUs of a part in
 * order.
 */
static bool read_set(struct spec_reading *r, json_t *list, uint32_t max,
		     struct dvm_cores *all, uint32_t *count)
{
	uint32_t at = 0;
	json_t *v;
	size_t i;

	if (list && !json_is_array(list)) {
		spec_wrong(r, "place", "cores and GPUs must be lists of numbers");
		return false;
	}
	for (uint32_t n = cores_next(all, 0); n < DVM_CORES_MAX;
	     n = cores_next(all, n + 1))
		at = n + 1;
	json_array_foreach(list, i, v) {
		json_int_t n = json_integer_value(v);

		if (!json_is_integer(v) || n < at || n >= max) {
			spec_wrong(r, "place", "the numbers of cores and GPUs on a node must ascend, also from rank to rank");
			return false;
		}
		cores_add(all, (uint32_t)n);
		at = (uint32_t)n + 1;
	}
	*count = (uint32_t)json_array_size(list);
	return true;
}

static void check_place_keys(struct spec_reading *r, json_t *entry)
{
	const char *key;
	json_t *v;

	json_object_foreach(entry, key, v)
		if (strcmp(key, "node") && strcmp(key, "cores") && strcmp(key, "gpus"))
			spec_wrong(r, "place", "unknown key %.60s", key);
}

/* Place a rank on its node, with these cores; the ranks of a node follow one another. */
static void place_rank(struct spec_reading *r, struct ledger_placement *p, json_t *entry)
{
	const char *name = json_string_value(json_object_get(entry, "node"));
	uint32_t node = name ? head_find_node(r->h, name) : NODE_NONE;
	struct ledger_part *part = p->count ? &p->parts[p->count - 1] : NULL;
	struct dvm_cores gpus = { { 0 } };
	uint32_t cores, ngpus;

	check_place_keys(r, entry);
	if (node == NODE_NONE) {
		spec_wrong(r, "place", "there is no node %.60s here", name ? name : "");
		return;
	}
	if (!part || part->node != node) {
		for (uint32_t i = 0; i < p->count; i++)
			if (p->parts[i].node == node)
				spec_wrong(r, "place", "the ranks of a node must follow one another");
		part = &p->parts[p->count++];
		part->node = node;
		part->first_rank = r->spec.shape.ranks;
	}
	gpus.words[0] = part->gpus;
	if (!read_set(r, json_object_get(entry, "cores"), DVM_CORES_MAX,
		      &part->cores, &cores) ||
	    !read_set(r, json_object_get(entry, "gpus"), LEDGER_GPUS_MAX, &gpus,
		      &ngpus))
		return;
	part->gpus = gpus.words[0];
	if (r->spec.shape.ranks &&
	    (cores != r->spec.shape.cores || ngpus != r->spec.shape.gpus))
		spec_wrong(r, "place", "all ranks must have the same number of cores and of GPUs");
	r->spec.shape.cores = cores;
	r->spec.shape.gpus = ngpus;
	part->ranks++;
	r->spec.shape.ranks++;
}

static void read_placed(struct spec_reading *r)
{
	json_t *place = json_object_get(r->source, "place"), *entry;
	size_t n = json_array_size(place), i;
	struct ledger_placement *p;

	if (!place)
		return;
	if (!n || n > PLACED_MAX) {
		spec_wrong(r, "place", "must be a list with an entry for each rank");
		return;
	}
	p = calloc(1, sizeof(*p) + n * sizeof(p->parts[0]));
	r->spec.shape.placed = p;
	if (!p) {
		spec_wrong(r, "place", "out of memory");
		return;
	}
	r->spec.shape.ranks = 0;
	json_array_foreach(place, i, entry)
		place_rank(r, p, entry);
}

static void name_node(struct spec_reading *r, struct ledger_placement *p, json_t *v)
{
	const char *name = json_string_value(v);
	uint32_t node = name ? head_find_node(r->h, name) : NODE_NONE;

	if (node == NODE_NONE)
		spec_wrong(r, "on", "there is no node %.60s here", name ? name : "");
	else if (ledger_may_use(&r->spec.shape, node))
		spec_wrong(r, "on", "node %.60s is named twice", name);
	else
		p->parts[p->count++].node = node;
}

/* The nodes for the task, with any cores there. */
static void read_on(struct spec_reading *r)
{
	json_t *on = json_object_get(r->source, "on"), *v;
	struct ledger_shape *s = &r->spec.shape;
	size_t n = json_array_size(on), i;
	struct ledger_placement *p;

	if (!on)
		return;
	if (!n || n > LEDGER_NODES_MAX || s->placed) {
		spec_wrong(r, "on", s->placed ? "cannot be given with \"place\"" :
						"must be a list of names of nodes");
		return;
	}
	p = calloc(1, sizeof(*p) + n * sizeof(p->parts[0]));
	if (!p) {
		spec_wrong(r, "on", "out of memory");
		return;
	}
	s->placed = p;
	s->named = true;
	json_array_foreach(on, i, v)
		name_node(r, p, v);
}

/* Refuse a shape for which no nodes are large enough, and say what they have. */
static void too_large(struct spec_reading *r, const struct ledger_shape *s)
{
	const struct ledger *l = r->h->ledger;
	struct ledger_resources most = { 0 };
	uint32_t nodes = 0, cores = 0;

	for (uint32_t i = 0; i < ledger_nodes(l); i++) {
		const struct ledger_resources *has = ledger_node_has(l, i);

		if (!ledger_may_use(s, i))
			continue;
		nodes++;
		cores += has->cores;
		most.cores = has->cores > most.cores ? has->cores : most.cores;
		most.gpus = has->gpus > most.gpus ? has->gpus : most.gpus;
		most.memory = has->memory > most.memory ? has->memory : most.memory;
	}
	cores = s->named ? cores : ledger_all_cores(l);
	spec_wrong(r, s->placed && !s->named ? "place" : "ranks",
		   "%u rank%s of %u core%s and %u GPU%s can never fit on %u node%s (%u cores): a node has at most %u cores, %u GPUs and %llu MiB",
		   s->ranks, plural(s->ranks), s->cores, plural(s->cores), s->gpus,
		   plural(s->gpus), nodes, plural(nodes), cores, most.cores, most.gpus,
		   (unsigned long long)(most.memory >> 20));
}

static void read_shape(struct spec_reading *r)
{
	struct ledger_shape *s = &r->spec.shape;

	s->ranks = (uint32_t)get_number(r, "ranks", 1, 1 << 26);
	s->cores = (uint32_t)get_number(r, "cores", 1, DVM_CORES_MAX);
	s->gpus = (uint32_t)get_number(r, "gpus", 0, LEDGER_GPUS_MAX);
	s->memory = get_number(r, "memory", 0, MEMORY_MAX);
	s->nodes = (uint32_t)get_number(r, "nodes", 0, LEDGER_NODES_MAX);
	s->per_node = (uint32_t)get_number(r, "per_node", 0, 1 << 26);
	s->exclusive = get_bool(r, "exclusive");
	if (!s->ranks)
		spec_wrong(r, "ranks", "must be 1 or more");
	if (s->nodes > s->ranks)
		spec_wrong(r, "nodes", "%u nodes need as many ranks: give -n %u", s->nodes, s->nodes);
	read_counters(r);
	read_placed(r);
	read_on(r);
	if (!r->key && !r->may_not_fit && !ledger_can_ever(r->h->ledger, s))
		too_large(r, s);
	if (!r->key && r->spawned && !spawned_fits_beside(r->h, r->spawned->parent, s))
		spec_wrong(r, "ranks", "%u rank%s can never fit beside the task that spawns them: the DVM has %u cores, including those of that task",
			   s->ranks, plural(s->ranks), ledger_all_cores(r->h->ledger));
}

/* ---- the rest ---- */

static const char *output_name(enum dvm_output output)
{
	static const char *const names[DVM_OUTPUTS] = {
		[DVM_OUTPUT_TAIL] = "tail", [DVM_OUTPUT_FILE] = "file",
		[DVM_OUTPUT_FORWARD] = "forward", [DVM_OUTPUT_NONE] = "none",
	};

	return names[output];
}

static char *get_path(struct spec_reading *r, const char *key)
{
	char *path = get_text(r, key);
	const char *unknown = path ? output_path_unknown(path) : NULL;

	if (unknown)
		spec_wrong(r, key, "unknown \"%.2s\": there are %%t, %%r, %%i and %%%%", unknown);
	return path;
}

static void read_output(struct spec_reading *r)
{
	json_t *v = json_object_get(r->source, "output");
	const char *name = json_string_value(v);

	r->spec.path = get_path(r, "path");
	r->spec.error = get_path(r, "error");
	r->spec.append = get_bool(r, "append");
	r->spec.output = r->spec.path ? DVM_OUTPUT_FILE : DVM_OUTPUT_TAIL;
	if (!v)
		return;
	for (int i = 0; name && i < DVM_OUTPUTS; i++)
		if (!strcmp(name, output_name((enum dvm_output)i))) {
			r->spec.output = (enum dvm_output)i;
			if (i == DVM_OUTPUT_FILE && !r->spec.path)
				spec_wrong(r, "path", "is needed with \"output\": \"file\"");
			return;
		}
	spec_wrong(r, "output", "must be tail, file, forward or none");
}

static const char unknown_key[] = "unknown key";

static void check_keys(struct spec_reading *r)
{
	static const char *const known[] = {
		"argv", "ranks", "cores", "gpus", "memory", "nodes", "per_node",
		"exclusive", "counters", "place", "on", "priority", "time", "retries",
		"output", "path", "error", "append", "cwd", "name", "profile", "line", "number", "pmi",
		"stdin", "preloaded",
	};
	json_t *json = r->source;
	const char *key;
	json_t *v;
	size_t i;

	json_object_foreach(json, key, v) {
		for (i = 0; i < sizeof(known) / sizeof(*known); i++)
			if (!strcmp(key, known[i]))
				break;
		if (i == sizeof(known) / sizeof(*known))
			spec_wrong(r, key, unknown_key);
		else if (spec_has_nul(v) && strcmp(key, "stdin"))
			spec_wrong(r, known[i], "a text contains a NUL byte");
	}
}

static void read_cwd(struct spec_reading *r)
{
	r->spec.cwd = get_text(r, "cwd");
	if (r->spec.cwd && r->spec.cwd[0] != '/')
		spec_wrong(r, "cwd", "must begin with /");
}

static void read_preloaded(struct spec_reading *r)
{
	r->spec.preloaded = get_bool(r, "preloaded");
	if (!r->spec.preloaded)
		return;
	if (!r->h->options.preloads)
		spec_wrong(r, "preloaded", "this DVM has no interpreter: start it with up --preload");
	else if (r->spec.shape.ranks != 1 || r->spec.pmi)
		spec_wrong(r, "preloaded", "a preloaded task has one rank, without PMI");
}

static void read_stdin(struct spec_reading *r)
{
	json_t *v = json_object_get(r->source, "stdin");

	if (v && !text_take_bytes(v, &r->spec.input, &r->spec.input_len))
		spec_wrong(r, "stdin", "must be a text of at most %zu bytes, each as the character of its number",
			   DVM_INPUT_MAX);
}

void spec_read(struct spec_reading *r, json_t *json)
{
	json_t *profile = json_object_get(json, "profile");

	r->source = json;
	if (!json_is_object(json)) {
		spec_wrong(r, "tasks", "must be an object");
		return;
	}
	check_keys(r);
	read_argv(r);
	read_shape(r);
	read_output(r);
	read_cwd(r);
	read_stdin(r);
	r->spec.name = get_text(r, "name");
	r->spec.priority = get_priority(r);
	r->spec.limit_s = (uint32_t)get_number(r, "time", 0, INT32_MAX / 1000);
	r->spec.retries = (uint32_t)get_number(r, "retries", 0, RETRIES_MAX);
	r->spec.pmi = get_bool(r, "pmi");
	read_preloaded(r);
	r->line = get_number(r, "line", 0, INT64_MAX);
	r->spec.number = get_number(r, "number", 0, INT64_MAX);
	if (profile && !json_is_string(profile))
		spec_wrong(r, "profile", "must be a text: the id of a profile that was sent before");
}

/* ---- tasks of the journal, and that are spawned ---- */

void spec_read_text(struct spec_reading *r, const struct dvm_bytes *text)
{
	json_t *json = json_loadb(text->data, text->len, 0, NULL);

	spec_read(r, json);
	if (r->key && json_object_get(json, r->key) && !strcmp(r->why, unknown_key)) {
		snprintf(r->why, sizeof(r->why), "unknown key %.60s", r->key);
		r->key = "tasks"; /* the text with the key is freed here */
	}
	json_decref(json);
}

/* The child's description, from that of its parent. */
int spec_write_spawned(const struct head_task *parent, const struct dvm_spawn *m,
		       struct buf *out)
{
	const struct task_texts *texts = task_texts(parent);
	json_t *argv = json_array(), *o;

	for (const char *a = dvm_texts_next(&m->argv, NULL); a;
	     a = dvm_texts_next(&m->argv, a))
		json_array_append_new(argv, json_string(a));
	o = json_pack("{s:o,s:i,s:b,s:i,s:i,s:s,s:s*,s:s*,s:b,s:s*,s:s*}", "argv", argv,
		      "ranks", (int)m->ranks, "pmi", 1,
		      "priority", parent->priority < PRIORITY_MAX ? parent->priority + 1 :
								    PRIORITY_MAX,
		      "time", (int)parent->limit_s, "output",
		      output_name((enum dvm_output)parent->output),
		      "path", texts->path, "error", texts->error, "append", parent->append,
		      "cwd", texts->cwd, "name", texts->name);
	if (json_array_size(argv) == dvm_texts_count(&m->argv))
		return text_append(out, o);
	json_decref(o);
	return -EILSEQ;
}
