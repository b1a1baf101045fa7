/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix-killed WHEN RANK HOW: a PMIx client that ends without PMIx_Finalize, in this rank or
 * ("all") in each: "before" its first fence, "in" it (which it has entered), or "after" it;
 * by SIGKILL ("kill"), or with an exit code. The other ranks finalize, or exit with 1 where
 * their fence fails.
 */
#include <pmix.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void end(const char *how)
{
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	_exit(atoi(how));
}

static void ignore(pmix_status_t status, void *arg)
{
}

int main(int argc, char **argv)
{
	pmix_proc_t self;
	bool ends;

	if (argc != 4 || PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS)
		return 2;
	ends = !strcmp(argv[2], "all") || (uint32_t)atoi(argv[2]) == self.rank;
	if (ends && !strcmp(argv[1], "before"))
		end(argv[3]);
	if (ends && !strcmp(argv[1], "in")) {
		(void)PMIx_Fence_nb(NULL, 0, NULL, 0, ignore, NULL);
		usleep(100000);
		end(argv[3]);
	}
	if (PMIx_Fence(NULL, 0, NULL, 0) != PMIX_SUCCESS)
		return 1;
	if (ends)
		end(argv[3]);
	return PMIx_Finalize(NULL, 0) != PMIX_SUCCESS;
}
