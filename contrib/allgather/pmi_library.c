/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the PMI library of the process and wraps its fence. */
#include "pmi_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "settings.h"

/*
 * Between two looks at a request: a sixteenth of the time waited so far, so that a
 * fence ends late by no more than that, and many ranks of a node that wait for
 * others do not keep its processors busy.
 */
#define PAUSE_FIRST_NS 20000
#define PAUSE_MAX_NS   50000000
#define PAUSE_PART     16

struct symbol {
	const char *name;
	size_t offset; /* of its pointer in pmi2x_ring_pmi */
	bool needed;
};

#define SYMBOL(name, field, needed) \
	{ name, offsetof(pmi2x_ring_pmi, field), needed }

static const struct symbol symbols[] = {
	SYMBOL("PMI2_Job_GetRank", get_rank, true),
	SYMBOL("PMI2_Info_GetSize", get_size, true),
	SYMBOL("PMI2_KVS_Put", put, true),
	SYMBOL("PMI2_KVS_Fence", fence, true),
	SYMBOL("PMI2_KVS_Get", get, true),
	SYMBOL("PMI2_Info_GetJobAttr", get_job_attr, true),
	SYMBOL("PMI2_Info_GetNodeAttr", get_node_attr, true),
	SYMBOL("PMI2_Info_PutNodeAttr", put_node_attr, true),
	SYMBOL("PMIX_Ring", ring, false),
	SYMBOL("PMIX_KVS_Ifence", ifence, false),
	SYMBOL("PMIX_Iallgather_n", iallgather, false),
	SYMBOL("PMIX_Wait", wait, false),
	SYMBOL("PMIX_Test", test, false),
	SYMBOL("PMI2_Nameserv_publish", publish, false),
	SYMBOL("PMI2_Nameserv_lookup", lookup, false),
	SYMBOL("PMIX_Capabilities", capabilities, false),
};

#define SYMBOLS (sizeof(symbols) / sizeof(*symbols))

typedef void function(void);

static function **field(const pmi2x_ring_pmi *pmi, const struct symbol *s)
{
	return (function **)((char *)pmi + s->offset);
}

bool pmi_complete(const pmi2x_ring_pmi *pmi)
{
	for (size_t i = 0; i < SYMBOLS; i++)
		if (symbols[i].needed && !*field(pmi, &symbols[i]))
			return false;
	return true;
}

static void fill(pmi2x_ring_pmi *pmi, void *library)
{
	for (size_t i = 0; i < SYMBOLS; i++) {
		void *found = dlsym(library, symbols[i].name);

		memcpy(field(pmi, &symbols[i]), &found, sizeof(found));
	}
}

/* A handle of a library that is loaded already; it stays loaded anyway. */
static void *loaded(const char *name)
{
	void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);

	if (library)
		dlclose(library);
	return library;
}

/*
 * Extensions must come from the library that has the session: with two in a
 * process, a look-up of each name on its own would mix them.
 */
static void *in_scope(void)
{
	void *fence = dlsym(RTLD_DEFAULT, "PMI2_KVS_Fence");
	Dl_info info;

	if (!fence || !dladdr(fence, &info) || !info.dli_fname)
		return NULL;
	/* The program itself has them: it is linked statically. */
	return loaded(info.dli_fname) ? loaded(info.dli_fname) : RTLD_DEFAULT;
}

bool pmi_find(pmi2x_ring_pmi *pmi, char *why, size_t size)
{
	const char *named = setting_text("PMI2X_ALLGATHER_PMI");
	void *library;

	if (named) {
		library = dlopen(named, RTLD_LAZY | RTLD_LOCAL);
	} else {
		library = in_scope();
		if (!library)
			library = loaded("libpmi2x.so.0");
		if (!library)
			library = loaded("libpmi2.so.0");
	}
	memset(pmi, 0, sizeof(*pmi));
	if (library || !named)
		fill(pmi, library);
	if (pmi_complete(pmi))
		return true;
	snprintf(why, size, "this process has no PMI-2 library%s%.200s: link libpmi2x, or name the library in PMI2X_ALLGATHER_PMI",
		 named ? ": " : "", named ? named : "");
	return false;
}

/* ---- fence ---- */

int pmi_fence(const pmi2x_ring_pmi *pmi, int64_t timeout_ms,
	      void (*waiting)(void *arg, int64_t waited_ms), void *arg)
{
	struct timespec pause = { 0, PAUSE_FIRST_NS };
	int64_t start = clock_ms(), waited;
	uint64_t request;
	int flag = 0;

	if (!pmi->ifence || !pmi->test)
		return pmi->fence() ? -EIO : 0;
	if (pmi->ifence(&request))
		return -EIO;
	while (pmi->test(request, &flag) == 0) {
		waited = clock_ms() - start;
		if (flag || waited > timeout_ms)
			return flag ? 0 : -ETIMEDOUT;
		waiting(arg, waited);
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < PAUSE_MAX_NS)
			pause.tv_nsec += pause.tv_nsec / PAUSE_PART;
	}
	return -EIO;
}

int pmi_lookup(const pmi2x_ring_pmi *pmi, const char *key, char *value,
	       size_t size)
{
	int len;

	return pmi->get(NULL, -1, key, value, size, &len) == 0;
}

bool pmi_refusal(const pmi2x_ring_pmi *pmi, char *out, size_t size)
{
	return pmi->capabilities &&
	       pmi->capabilities("refusal", out, (int)size) == 0 && out[0];
}
