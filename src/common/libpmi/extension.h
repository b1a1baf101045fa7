/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Additions of pmi2x to the PMI-2 wire, between libpmi2x and the agent. Described in
 * doc/extension-protocol.md; both sides use these names.
 */
#pragma once

#define EXT_VERSION 1 /* highest this build speaks */

/* Fields of fullinit and its response. */
#define EXT_KEY_VERSION "pmi2x"         /* offered; agreed (lower of the two) */
#define EXT_KEY_BUILD "pmi2x-build"     /* version text of each side */
#define EXT_KEY_REGION "pmi2x-region"   /* layout version: offered; agreed */
#define EXT_KEY_REGION_SIZE "pmi2x-region-size" /* bytes to map */
#define EXT_KEY_NODES "pmi2x-nodes"     /* nodes of the step */
#define EXT_KEY_GROUPS "pmi2x-groups"   /* TRUE: the agent knows pmi2x-barrier */
#define EXT_KEY_FETCH "pmi2x-fetch"     /* TRUE: the agent knows that command */
#define EXT_KEY_SLOTS "pmi2x-slots"     /* layout version: offered; agreed */
#define EXT_KEY_SLOTS_SIZE "pmi2x-slots-size"   /* bytes to map */
#define EXT_KEY_SLOTS_BOARD "pmi2x-slots-board" /* its offset in the region */
#define EXT_KEY_SLOT "pmi2x-slot"       /* the rank's own */

/* Fields of finalize. */
#define EXT_KEY_SILENT "pmi2x-silent" /* TRUE: there is to be no response */
#define EXT_KEY_RANK_TRACE "pmi2x-stamps" /* as enum rank_trace_event, comma-separated */

/* Commands; each response is the name followed by "-response". */
#define EXT_CMD_PUT "pmi2x-put"             /* records= */
#define EXT_CMD_FENCE "pmi2x-fence"         /* records= */
#define EXT_CMD_BARRIER "pmi2x-barrier"     /* group= */
#define EXT_CMD_ALLGATHER "pmi2x-allgather" /* value= stride= done= */
#define EXT_CMD_READ "pmi2x-read"           /* offset= length= */
#define EXT_CMD_FETCH "pmi2x-fetch"         /* rank= key= timeout= */
#define EXT_CMD_FETCH_CANCEL "pmi2x-fetch-cancel"

#define EXT_KEY_RECORDS "records"
#define EXT_KEY_GROUP "group" /* as in PMI-1 1.2: who, a colon, and a number */
#define EXT_KEY_VALUE "value"
#define EXT_KEY_RANK "rank" /* the rank whose value is fetched */
#define EXT_KEY_KEY "key"
#define EXT_KEY_TIMEOUT "timeout" /* ms; 0: do not wait; -1: no limit */
#define EXT_KEY_STRIDE "stride"
#define EXT_KEY_OFFSET "offset"
#define EXT_KEY_LENGTH "length"
#define EXT_KEY_DATA "data"
#define EXT_KEY_DONE "done" /* gather offsets the rank will not read again */

/*
 * Times that a rank records when it finds EXT_ENV_RANK_TRACE in its environment: the
 * first time of each event, CLOCK_MONOTONIC in ns, 0 for events that have not happened.
 */
#define EXT_ENV_RANK_TRACE "PMI2X_STAMPS"
enum rank_trace_event {
	RANK_TRACE_INIT_BEGIN,
	RANK_TRACE_INIT_END,
	RANK_TRACE_PUT,
	RANK_TRACE_FENCE_IN,
	RANK_TRACE_FENCE_OUT,
	RANK_TRACE_GATHER_IN,
	RANK_TRACE_GATHER_OUT,
	RANK_TRACE_FINALIZE,
	RANK_TRACE_EVENTS,
};

#define EXT_READ_MAX 262144u /* bytes one pmi2x-read returns at most */
