/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads a PMI client library and finds its functions. */
#include "bench_pmi.h"

#include <dlfcn.h>
#include <err.h>
#include <stddef.h>
#include <string.h>

struct symbol {
	const char *name;
	size_t offset; /* of its pointer in struct bench_pmi */
	bool extension;
};

#define SYMBOL(name, field, extension) \
	{ name, offsetof(struct bench_pmi, field), extension }

static const struct symbol symbols[] = {
	SYMBOL("PMI2_Init", init, false),
	SYMBOL("PMI2_Finalize", finalize, false),
	SYMBOL("PMI2_Abort", abort, false),
	SYMBOL("PMI2_KVS_Put", put, false),
	SYMBOL("PMI2_KVS_Fence", fence, false),
	SYMBOL("PMI2_KVS_Get", get, false),
	SYMBOL("PMIX_Ring", ring, true),
	SYMBOL("PMIX_KVS_Fetch", fetch, true),
	SYMBOL("PMIX_KVS_Ifence", ifence, true),
	SYMBOL("PMIX_Allgather_n", allgather, true),
	SYMBOL("PMIX_Iallgather_n", iallgather, true),
	SYMBOL("PMIX_Iallgather_view", iallgather_view, true),
	SYMBOL("PMIX_View_value", view_value, true),
	SYMBOL("PMIX_View_free", view_free, true),
	SYMBOL("PMIX_Wait", wait, true),
	SYMBOL("PMIX_Capabilities", capability, true),
	SYMBOL("PMIX_Version", version, true),
};

bool bench_pmi_load(struct bench_pmi *pmi, const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		warnx("%s", dlerror());
		return false;
	}
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		void *function = dlsym(handle, symbols[i].name);

		if (!function && !symbols[i].extension) {
			warnx("%s has no %s", library, symbols[i].name);
			return false;
		}
		memcpy((char *)pmi + symbols[i].offset, &function,
		       sizeof(function));
	}
	return true;
}
