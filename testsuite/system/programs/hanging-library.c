/* SPDX-License-Identifier: BSD-3-Clause */
/* A library, or a program, whose loading does not end. */
#include <unistd.h>

__attribute__((constructor)) static void hang(void)
{
	for (;;)
		sleep(1000);
}

int main(void)
{
	return 0;
}
