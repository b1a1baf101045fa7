/* SPDX-License-Identifier: BSD-3-Clause */
/* Variables with which PMIx clients of a node find pmi2x-pmixd: see pmix_hub.h. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct pmix_offer {
	uint16_t port;   /* of the loopback device; 0: PMIx is not offered */
	const char *gds; /* as pmi2x-pmixd is told: helpers/pmixd/pmixd.h */
	char dir[PATH_MAX]; /* its directory */
};

/*
 * The address to which the clients of a part connect, in the byte order of the machine. Two
 * parts share one only if the first is over long before the second begins. `old`: clients
 * of PMIx 3 and older.
 */
static inline uint32_t pmix_offer_address(uint32_t part, bool old)
{
	return 0x7f000002 + part % 0x7fffe * 2 + old;
}
