/* SPDX-License-Identifier: BSD-3-Clause */
/* A library that says what libpmix of an old release says of itself. */
const char *PMIx_Get_version(void);

const char *PMIx_Get_version(void)
{
	return "OpenPMIx 3.2.1 (PMIx Standard: 3.2, Stable ABI: 0.0)";
}
