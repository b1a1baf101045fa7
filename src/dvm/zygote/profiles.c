/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiles that ranks are started with: profiles.h. */
#include "dvm/zygote/profiles.h"

#include <errno.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct held_profile {
	struct dvm_profile_msg msg;
	char *bytes; /* memory of the texts */
	UT_hash_handle hh;
};

static struct held_profile *find(struct held_profile *all, uint32_t number)
{
	struct held_profile *p;

	HASH_FIND(hh, all, &number, sizeof(number), p);
	return p;
}

int profiles_add(struct held_profile **all, const struct dvm_profile_msg *m)
{
	struct held_profile *p = malloc(sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->bytes = dvm_profile_copy(&p->msg, m);
	if (!p->bytes) {
		free(p);
		return -ENOMEM;
	}
	HASH_ADD(hh, *all, msg.number, sizeof(p->msg.number), p);
	if (p->hh.tbl)
		return 0;
	free(p->bytes);
	free(p);
	return -ENOMEM;
}

const struct dvm_profile_msg *profiles_find(struct held_profile *all, uint32_t number)
{
	const struct held_profile *p = find(all, number);

	return p ? &p->msg : NULL;
}

void profiles_forget(struct held_profile **all, uint32_t number)
{
	struct held_profile *p = find(*all, number);

	if (!p)
		return;
	HASH_DEL(*all, p);
	free(p->bytes);
	free(p);
}
