// SPDX-License-Identifier: BSD-3-Clause
/*
 * Uses PMI-2 through whatever libpmi2.so.0 the loader finds: Slurm's own or the
 * drop-in. Puts, fences and gets the values of all ranks twice, reads
 * attributes, waits for a node attribute, and publishes a name. Argument: what
 * the values are joined with; the stock server cuts a value at a ';'.
 */
#include <pmi2.h> /* of the library that it is built against */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "wrong: %s\n", what);
	PMI2_Abort(1, "a check failed");
	exit(1);
}

static void exchange(const char *job, int rank, int size, const char *join,
		     int round)
{
	char key[PMI2_MAX_KEYLEN], value[PMI2_MAX_VALLEN], wanted[64];
	int length = 0;

	snprintf(key, sizeof(key), "key-%d-%d", round, rank);
	snprintf(value, sizeof(value), "%d%sof%s%d", rank, join, join,
		 size);
	require(PMI2_KVS_Put(key, value) == PMI2_SUCCESS, "put");
	require(PMI2_KVS_Fence() == PMI2_SUCCESS, "fence");
	for (int r = 0; r < size; r++) {
		snprintf(key, sizeof(key), "key-%d-%d", round, r);
		snprintf(wanted, sizeof(wanted), "%d%sof%s%d", r, join, join,
			 size);
		require(PMI2_KVS_Get(job, PMI2_ID_NULL, key, value,
				     sizeof(value), &length) == PMI2_SUCCESS,
			"get");
		require(strcmp(value, wanted) == 0, "a value");
	}
}

static void check_attributes(void)
{
	char value[PMI2_MAX_ATTRVALUE] = "";
	int found = 0, one = 0, number = 0;

	require(PMI2_Info_GetJobAttr("PMI_process_mapping", value,
				     sizeof(value), &found) == PMI2_SUCCESS &&
		found && strncmp(value, "(vector,(", 9) == 0, "the mapping");
	require(PMI2_Info_GetJobAttrIntArray("universeSize", &number, 1, &one,
					     &found) == PMI2_SUCCESS && found,
		"the universe size");
	if (getenv("SLURM_LOCALID")[0] == '0')
		require(PMI2_Info_PutNodeAttr("who", "local 0") ==
			PMI2_SUCCESS, "put of a node attribute");
	require(PMI2_Info_GetNodeAttr("who", value, sizeof(value), &found,
				      1) == PMI2_SUCCESS && found &&
		strcmp(value, "local 0") == 0, "a node attribute");
}

static void check_names(int rank)
{
	char port[PMI2_MAX_VALLEN] = "";

	if (rank == 0)
		require(PMI2_Nameserv_publish("name", NULL, "a port") ==
			PMI2_SUCCESS, "publish");
	require(PMI2_KVS_Fence() == PMI2_SUCCESS, "fence");
	require(PMI2_Nameserv_lookup("name", NULL, port, sizeof(port)) ==
		PMI2_SUCCESS && strcmp(port, "a port") == 0, "look-up");
	require(PMI2_KVS_Fence() == PMI2_SUCCESS, "fence");
	if (rank == 0)
		require(PMI2_Nameserv_unpublish("name", NULL) ==
			PMI2_SUCCESS, "unpublish");
}

int main(int argc, char **argv)
{
	const char *join = argc > 1 ? argv[1] : ";";
	int spawned = -1, size = 0, rank = -1, appnum = 0;
	char job[PMI2_MAX_VALLEN] = "";

	require(PMI2_Init(&spawned, &size, &rank, &appnum) == PMI2_SUCCESS,
		"init");
	require(!spawned && PMI2_Initialized(), "what init says");
	require(PMI2_Job_GetId(job, sizeof(job)) == PMI2_SUCCESS, "the job");
	exchange(job, rank, size, join, 0);
	exchange(job, rank, size, join, 1);
	check_attributes();
	check_names(rank);
	require(PMI2_Finalize() == PMI2_SUCCESS, "finalize");
	printf("pmi2 client of %d\n", size);
	return 0;
}
