/* SPDX-License-Identifier: BSD-3-Clause */
/* main() of unit tests that have none of their own. */
#include "unit.h"

int main(void)
{
	return unit_run(NULL, NULL, NULL);
}
