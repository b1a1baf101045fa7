/* SPDX-License-Identifier: BSD-3-Clause */
/* The mark of a file that contains this library: see pmi2x-probe --nodes. */
#include "libio/protocol.h"

#include "pmi2x-build.h"

#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number

const char protocol_mark[] =
	"pmi2x build " PMI2X_BUILD " protocol " TEXT(PROTOCOL_VERSION);
