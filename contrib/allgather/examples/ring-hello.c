/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smallest useful program with libpmi2x-allgather: every process tells all
 * others its host name and process number, as an MPI library would tell its
 * address.
 *
 *   cc ring-hello.c $(pkg-config --cflags --libs pmi2x-allgather)
 *   srun --mpi=pmi2x -N4 ./a.out
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmi2.h"
#include "pmi2x_allgather.h"

/* The block of one process; all blocks have the same number of bytes. */
struct card {
	char host[64];
	long pid;
};

static void fill_card(struct card *card)
{
	memset(card, 0, sizeof(*card));
	gethostname(card->host, sizeof(card->host) - 1);
	card->pid = getpid();
}

static void show(const struct card *cards, int size, const char *transport)
{
	printf("%d processes, gathered over %s\n", size, transport);
	for (int r = 0; r < size; r++)
		printf("  rank %d: process %ld on %s\n", r, cards[r].pid,
		       cards[r].host);
}

/* Returns NULL or what has failed; then `why` may say more. */
static const char *gather(struct card *cards, int rank, int size, char *why,
			  size_t whylen)
{
	pmi2x_ring_request request;
	pmi2x_ring *ring;
	struct card own;
	const char *failed = NULL;

	if (pmi2x_ring_create(&ring, NULL, why, whylen))
		return "pmi2x_ring_create";
	fill_card(&own);
	if (pmi2x_ring_iallgather(ring, &own, sizeof(own), cards, &request))
		failed = "pmi2x_ring_iallgather";
	/* Work that does not need the cards can be done here. */
	if (!failed && pmi2x_ring_wait(ring, request))
		failed = "pmi2x_ring_wait";
	if (failed)
		snprintf(why, whylen, "%s", pmi2x_ring_error(ring));
	else if (rank == 0)
		show(cards, size, pmi2x_ring_transport(ring));
	pmi2x_ring_destroy(ring);
	return failed;
}

int main(void)
{
	int spawned, size, rank, appnum;
	char why[PMI2X_RING_ERROR_MAX] = "";
	struct card *cards;
	const char *failed;

	if (PMI2_Init(&spawned, &size, &rank, &appnum)) {
		fprintf(stderr, "PMI2_Init failed\n");
		return EXIT_FAILURE;
	}
	cards = calloc(size, sizeof(*cards));
	if (!cards)
		PMI2_Abort(1, "no memory");
	failed = gather(cards, rank, size, why, sizeof(why));
	if (failed) {
		fprintf(stderr, "rank %d: %s: %s\n", rank, failed, why);
		PMI2_Abort(1, failed);
	}
	free(cards);
	PMI2_Finalize();
	return EXIT_SUCCESS;
}
