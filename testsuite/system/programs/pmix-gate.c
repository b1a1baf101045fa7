/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A PMIx client, or a program alone where no server is named, which makes the first file
 * and stays until the second is there.
 */
#include <fcntl.h>
#include <pmix.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* libpmix says the same where no server is named and where the server refuses. */
static bool is_alone(int rc)
{
	return rc == PMIX_ERR_UNREACH && !getenv("PMIX_NAMESPACE");
}

int main(int argc, char **argv)
{
	pmix_proc_t self;
	int rc, fd;

	if (argc != 3)
		return 2;
	rc = PMIx_Init(&self, NULL, 0);
	if (rc != PMIX_SUCCESS && !is_alone(rc)) {
		fprintf(stderr, "cannot start PMIx: %d\n", rc);
		return 1;
	}
	/* From now on the agents of all nodes know that their ranks use PMIx. */
	if (rc == PMIX_SUCCESS && PMIx_Fence(NULL, 0, NULL, 0) != PMIX_SUCCESS)
		return 1;
	fd = open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return 2;
	close(fd);
	while (access(argv[2], F_OK))
		usleep(10000);
	return rc == PMIX_SUCCESS && PMIx_Finalize(NULL, 0) != PMIX_SUCCESS;
}
