/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPUs of a node: gpus.h. */
#include "dvm/zygote/gpus.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define VARIABLES_MAX 5

/* Tasks get the first variable; the GPUs of the DVM are looked for in all. */
struct vendor {
	const char *files; /* a pattern below /dev; NULL: not known */
	const char *variables[VARIABLES_MAX];
};

/*
 * A machine with GPUs of two vendors has them for computing in this order: processors of
 * AMD and Intel contain small ones.
 */
static const struct vendor vendors[] = {
	{ "nvidiactl", { "CUDA_VISIBLE_DEVICES" } },
	{ "kfd", { "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES",
		   "GPU_DEVICE_ORDINAL" } },
	{ "dri/renderD*", { "ZE_AFFINITY_MASK" } },
	{ NULL, { "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK" } },
};

static bool any_file(const char *dev, const char *files)
{
	char pattern[PATH_MAX];
	glob_t found;
	bool any;

	snprintf(pattern, sizeof(pattern), "%s/%s", dev, files);
	any = !glob(pattern, GLOB_NOSORT, NULL, &found);
	if (any)
		globfree(&found);
	return any;
}

static const struct vendor *find_vendor(const char *dev)
{
	const struct vendor *v = vendors;

	while (v->files && !any_file(dev, v->files))
		v++;
	return v;
}

/* ---- words of a mask ---- */

static const char *skip_digits(const char *text)
{
	return text + strspn(text, "0123456789");
}

/* An index, or a tile of a GPU: "1", "1.0". */
static bool is_index(const char *word)
{
	const char *end = skip_digits(word);

	if (end != word && *end == '.' && end[1])
		end = skip_digits(end + 1);
	return end != word && !*end;
}

/* Programs ignore the rest of a mask behind an invalid word: "-1", "NoDevFiles". */
static bool is_gpu(const char *word)
{
	return is_index(word) || !strncasecmp(word, "GPU-", 4) ||
	       !strncasecmp(word, "MIG-", 4);
}

static bool has_word(const struct gpus *g, const char *word)
{
	for (uint32_t i = 0; i < g->count; i++)
		if (!strcmp(g->names[i], word))
			return true;
	return false;
}

static int take_mask(struct gpus *g, const char *mask)
{
	char *copy = strdup(mask), *save, *word; /* never freed: the names point into it */

	if (!copy)
		return -ENOMEM;
	for (word = strtok_r(copy, ",", &save);
	     word && is_gpu(word) && g->count < LEDGER_GPUS_MAX;
	     word = strtok_r(NULL, ",", &save))
		if (!has_word(g, word))
			g->names[g->count++] = word;
	if (!g->count)
		free(copy);
	return 0;
}

int gpus_find(struct gpus *out, const char *dev)
{
	const struct vendor *v = find_vendor(dev);

	*out = (struct gpus){ .variable = v->variables[0] };
	for (int i = 0; i < VARIABLES_MAX && v->variables[i]; i++) {
		const char *mask = getenv(v->variables[i]);

		if (!mask || (!v->files && !*mask))
			continue;
		if (!v->files)
			out->variable = v->variables[i];
		return take_mask(out, mask);
	}
	return 0;
}

bool gpus_is_variable(const char *variable)
{
	static const char *const all[] = {
		"CUDA_VISIBLE_DEVICES=", "ROCR_VISIBLE_DEVICES=", "HIP_VISIBLE_DEVICES=",
		"GPU_DEVICE_ORDINAL=", "ZE_AFFINITY_MASK=",
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (*variable == *all[i] && !strncmp(variable, all[i], strlen(all[i])))
			return true;
	return false;
}
