/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the process of a rank has ended, in the words of a message. A reason
 * travels between nodes and to srun as text, so what srun exits with is read
 * back from the text.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CAUSE_MAX 96 /* bytes, NUL included */
#define PMI_PROCESS_NAME_MAX 64 /* bytes of the name of a process, NUL included */

struct pmi_exit {
	bool by_launcher; /* a signal of the launcher has ended it */
	int status;       /* as wait(2) has it */
	bool lived_on;    /* for a while, after its connection had ended */
	const char *closed_by; /* its name when it closed PMI_FD and lived on; NULL: unknown */
	bool lacked_fd;        /* cause_may_lack_fd */
	uint32_t process;      /* outlived the connection; others may follow; 0: none */
};

/*
 * "exited with exit code 5", "exited by signal 9 (Killed)"; "exited" when
 * `end` is NULL: no more is known.
 */
void cause_text(const struct pmi_exit *end, char out[CAUSE_MAX]);

/* Whether srun's program starts programs of MPICH, which then need PMI_FD from it. */
enum cause_wrapper {
	WRAPPER_NONE,     /* srun starts the MPI program itself */
	WRAPPER_PERHAPS,
	WRAPPER_OF_MPICH, /* an argument is linked with MPICH */
};

/*
 * Whether the process ended like one that has started a program of MPICH without PMI_FD:
 * with MPICH's exit code, or, below a wrapper of MPICH, with any that says failure,
 * but those of slurmstepd.
 */
bool cause_may_lack_fd(const struct pmi_exit *end, enum cause_wrapper wrapper);
/* To be put behind how such a rank exited without starting PMI. */
#define CAUSE_LACKS_FD \
	"an MPICH program fails so if its parent has closed PMI_FD, as sudo and Python's subprocess do: let srun start the program itself, or pass PMI_FD on (man 7 pmi2x)"

/*
 * The exit code for srun in a text that contains one of those, the first of
 * them: 5; 137 (128 and the signal); 1 where it says no more.
 */
int cause_exit_code(const char *text);
