/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-probe --mpi PROGRAM: from what is in its files to a verdict. */
#include "tools/probe_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/probe.h"
#include "tools/probe_files.h"
#include "tools/probe_look.h"

#define SERVED "srun --mpi=pmi2x"

static void row(const char *name, const char *value)
{
	printf("%-12s %s\n", name, value);
}

static void row2(const char *name, const char *value, const char *detail)
{
	printf("%-12s %s (%s)\n", name, value, detail);
}

/* Prints the verdict on a kind of client: its advice is the last line. */
static int verdict(const char *speaks, const char *from, const char *advice,
		   int status)
{
	row2("speaks", speaks, from);
	row("start it", advice);
	return status;
}

static int speaks_pmix(const struct probe_look *l)
{
	return verdict("PMIx", l->libpmix ? l->libpmix : l->mpi_path,
		       "srun --mpi=pmi2x, where nodes have libpmix (pmi2x probe --nodes LIST)",
		       PROBE_PMIX);
}

static int speaks_by_component(const struct probe_look *l)
{
	return verdict("PMIx, or PMI where that is all there is",
		       l->components, SERVED, PROBE_OK);
}

static int speaks_by_intel(const struct probe_look *l)
{
	const char *library = getenv("I_MPI_PMI_LIBRARY");

	if (library && *library)
		return verdict("PMI by the library in I_MPI_PMI_LIBRARY",
			       library, SERVED, PROBE_OK);
	return verdict("PMI-1", "its own client", SERVED
		       ", better with I_MPI_PMI_LIBRARY: see pmi2x(7)",
		       PROBE_OK);
}

static int speaks_libpmi(const struct probe_look *l)
{
	if (l->libpmi_of_slurm)
		return verdict(
			"with srun, past its MPI plugin", l->libpmi,
			SERVED " with libpmi.so.0 of pmi2x first in LD_LIBRARY_PATH",
			PROBE_NO_CLIENT);
	return verdict("PMI-1", l->libpmi, SERVED, PROBE_OK);
}

static int speaks_by_itself(const struct probe_look *l)
{
	return verdict(!l->own_pmi2 ? "PMI-1" :
		       l->mpi ? "PMI-1, or PMI-2 when asked to" :
				"PMI-1 or PMI-2",
		       l->mpi ? "its own client" : l->own, SERVED, PROBE_OK);
}

static int speaks_nothing(const struct probe_look *l)
{
	return verdict("no PMI",
		       "libraries that it opens at run time are not known: use --run",
		       "with any --mpi", PROBE_NO_CLIENT);
}

static bool is_mpi(const struct probe_look *l, const char *name)
{
	return l->mpi && !strcmp(l->mpi, name);
}

/* Open MPI mentions PMI_FD, too, and MPICH may be built with a library. */
static int judge(const struct probe_look *l)
{
	if (is_mpi(l, "Open MPI"))
		return l->components ? speaks_by_component(l) : speaks_pmix(l);
	if (is_mpi(l, "Intel MPI"))
		return speaks_by_intel(l);
	if (l->libpmi2x)
		return verdict("PMI-2", l->libpmi2x, SERVED, PROBE_OK);
	if (l->libpmi2)
		return verdict("PMI-2", l->libpmi2, SERVED, PROBE_OK);
	if (l->libpmi)
		return speaks_libpmi(l);
	if (l->own)
		return speaks_by_itself(l);
	return l->libpmix ? speaks_pmix(l) : speaks_nothing(l);
}

static int report(const struct probe_files *files)
{
	struct probe_look look;

	if (!probe_look(&look, files))
		return PROBE_FAILED;
	row("program", files->paths[0]);
	if (look.mpi)
		row2("MPI library", look.mpi_path, look.mpi);
	else
		row("MPI library", "none");
	return judge(&look);
}

static int report_script(const struct probe_files *files)
{
	row("program", files->paths[0]);
	row2("a script", files->script, "which may start anything");
	row("speaks", "not known before it runs: use --run");
	return PROBE_UNKNOWN;
}

int probe_mpi(const char *program)
{
	struct probe_files *files = malloc(sizeof(*files));
	int status = PROBE_FAILED;

	if (!files) {
		perror("pmi2x-probe");
		return PROBE_FAILED;
	}
	if (probe_files_find(files, program))
		status = files->script[0] ? report_script(files) :
					    report(files);
	probe_files_free(files);
	free(files);
	return status;
}
