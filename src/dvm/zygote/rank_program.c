/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments and environment of a rank. */
#include "dvm/zygote/rank_program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dvm/zygote/gpus.h"
#include "supervisor/pmix_env.h"

#define GPU_TEXT_MAX 1024

/*
 * A user may have hundreds of variables, most of which differ from all others in their
 * first letter.
 */
static bool begins(const char *variable, const char *prefix, size_t len)
{
	return *variable == *prefix && !strncmp(variable, prefix, len);
}

/*
 * True: the variable belongs to the step or program that started the DVM, and is wrong in a
 * task.
 */
static bool is_foreign(const char *variable)
{
	static const char *const prefixes[] = {
		"SLURM_STEP", "SLURM_TASK", "SLURM_PROCID=", "SLURM_LOCALID=",
		"SLURM_NODEID=", "SLURM_NTASKS", "SLURM_NPROCS=", "SLURM_NNODES=",
		"SLURM_CPU_BIND", "SLURM_CPUS_PER_TASK=", "SLURM_SRUN_COMM",
		"SLURM_LAUNCH_NODE", "SLURM_DISTRIBUTION=", "SLURM_GTIDS=",
		"PMI_", "PMIX_", "PMI2X_DVM_TASK=", "PMI2X_DVM_INSTANCE=", "PMI2X_DVM_RANK",
		"PMI2X_DVM_NODES=", "PMI2X_SYNC=", "MPIR_CVAR_PMI_VERSION=",
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (begins(variable, prefixes[i], strlen(prefixes[i])))
			return strncmp(variable, "PMIX_MCA_", 9) != 0;
	return false;
}

static void put(char *extra[EXTRA_MAX], size_t *n, const char *name,
		unsigned long long value)
{
	if (*n < EXTRA_MAX &&
	    asprintf(&extra[*n], "%s=%llu", name, value) >= 0)
		++*n;
}

static void put_text(char *extra[EXTRA_MAX], size_t *n, const char *name,
		     const char *value)
{
	if (*n < EXTRA_MAX && asprintf(&extra[*n], "%s=%s", name, value) >= 0)
		++*n;
}

static void put_gpus(char *extra[EXTRA_MAX], size_t *n,
		     const struct node_rank *r, const struct resources *has)
{
	char list[GPU_TEXT_MAX] = "";
	size_t len = 0;

	for (uint32_t i = 0; i < LEDGER_GPUS_MAX && len < sizeof(list); i++) {
		if (!(r->gpus >> i & 1))
			continue;
		if (has->gpus.names[i])
			len += (size_t)snprintf(list + len, sizeof(list) - len,
						"%s%s", len ? "," : "",
						has->gpus.names[i]);
		else
			len += (size_t)snprintf(list + len, sizeof(list) - len,
						"%s%u", len ? "," : "", i);
	}
	put_text(extra, n, has->gpus.variable, list);
}

/* ---- PMIx ---- */

struct pmix_list {
	char **extra;
	size_t *n;
	const struct dvm_bytes *env; /* the user's environment */
};

static bool is_set(const struct dvm_bytes *env, const char *name)
{
	size_t len = strlen(name);

	for (const char *t = dvm_texts_next(env, NULL); t; t = dvm_texts_next(env, t))
		if (!strncmp(t, name, len) && t[len] == '=' && !is_foreign(t))
			return true;
	return false;
}

static void set_pmix(void *arg, const char *name, const char *value, bool weak)
{
	const struct pmix_list *list = arg;

	if (!weak || !is_set(list->env, name))
		put_text(list->extra, list->n, name, value);
}

/* Nodes whose name is not that of their machine may share it. */
static bool shares_machine(const char *node)
{
	char machine[256] = "";

	gethostname(machine, sizeof(machine) - 1);
	machine[strcspn(machine, ".")] = '\0';
	return strcmp(machine, node) != 0;
}

static void put_pmix(char *extra[EXTRA_MAX], size_t *n, const struct node_rank *r,
		     const struct resources *has, const char *jobid)
{
	const struct pmix_offer *o = &has->pmix;
	const struct pmix_env e = {
		.jobid = jobid, .node = has->node,
		.address = { pmix_offer_address(r->part, false),
			     pmix_offer_address(r->part, true) },
		.port = { o->port, o->port }, .gds = o->gds, .dir = o->dir,
		.shares_machine = shares_machine(has->node),
	};
	struct pmix_list list = { extra, n, &r->profile->env };
	const char *step = getenv("SLURM_STEP_ID");

	if (step) /* without the variable Open MPI 4.1 takes each rank for a singleton */
		put_text(extra, n, "SLURM_STEP_ID", step);
	put(extra, n, "PMIX_RANK", r->launch->first_rank + r->local);
	pmix_env_each(&e, set_pmix, &list);
}

/* ---- the whole environment ---- */

static void put_pmi(struct program *p, const struct node_rank *r,
		    const struct resources *has)
{
	char **extra = p->extra;
	size_t *n = &p->nextra;
	const struct dvm_launch *l = r->launch;
	char jobid[DVM_JOBID_MAX];

	dvm_jobid(jobid, has->dvm, l->task, l->instance);
	put_text(extra, n, "PMI_FD", "-2147483648");
	p->pmi_fd = *n ? extra[*n - 1] + strlen("PMI_FD=") : NULL;
	put(extra, n, "PMI_RANK", l->first_rank + r->local);
	put(extra, n, "PMI_SIZE", l->ranks);
	put_text(extra, n, "PMI_JOBID", jobid);
	if (l->spawned.len)
		put(extra, n, "PMI_SPAWNED", 1);
	if (has->pmix.port)
		put_pmix(extra, n, r, has, jobid);
}

static void put_all(struct program *p, const struct node_rank *r,
		    const struct resources *has, bool pmi)
{
	const struct dvm_launch *l = r->launch;
	uint32_t rank = l->first_rank + r->local;
	char **extra = p->extra;
	size_t *n = &p->nextra;

	put(extra, n, "PMI2X_DVM_TASK", l->task);
	put(extra, n, "PMI2X_DVM_INSTANCE", l->instance);
	put(extra, n, "PMI2X_DVM_RANK", rank);
	put(extra, n, "PMI2X_DVM_RANKS", l->ranks);
	put(extra, n, "SLURM_PROCID", rank);
	put(extra, n, "SLURM_LOCALID", r->local);
	put(extra, n, "SLURM_NTASKS", l->ranks);
	put(extra, n, "SLURM_NPROCS", l->ranks);
	put(extra, n, "SLURM_NODEID", l->node);
	put(extra, n, "SLURM_NNODES", l->nodes);
	put_text(extra, n, "SLURMD_NODENAME", has->node);
	put(extra, n, "OMP_NUM_THREADS", cores_count(&r->cores));
	if (has->has.gpus)
		put_gpus(extra, n, r, has);
	if (pmi)
		put_pmi(p, r, has);
}

static bool has_name(char *const *list, size_t n, const char *variable)
{
	size_t len = strcspn(variable, "=") + 1;

	for (size_t i = 0; i < n; i++)
		if (begins(list[i], variable, len))
			return true;
	return false;
}

/* `gpus`: the node has GPUs, and the task gets its own. */
static char **make_environment(struct program *p, const struct dvm_bytes *env, bool gpus)
{
	char **out = calloc(dvm_texts_count(env) + p->nextra + 1, sizeof(*out));
	size_t n = 0;

	if (!out)
		return NULL;
	for (const char *t = dvm_texts_next(env, NULL); t;
	     t = dvm_texts_next(env, t)) {
		/* The user's own settings for OpenMP take precedence. */
		if (!strncmp(t, "OMP_NUM_THREADS=", 16) ||
		    (!is_foreign(t) && !(gpus && gpus_is_variable(t)) &&
		     !has_name(p->extra, p->nextra, t)))
			out[n++] = (char *)(uintptr_t)t;
	}
	for (size_t i = 0; i < p->nextra; i++)
		if (!has_name(out, n, p->extra[i]))
			out[n++] = p->extra[i];
	return out;
}

static char **make_argv(const struct dvm_bytes *argv)
{
	char **out = calloc(dvm_texts_count(argv) + 1, sizeof(*out));
	size_t n = 0;

	if (!out)
		return NULL;
	for (const char *t = dvm_texts_next(argv, NULL); t;
	     t = dvm_texts_next(argv, t))
		out[n++] = (char *)(uintptr_t)t;
	return out;
}

void program_free(struct program *p)
{
	for (size_t i = 0; i < p->nextra; i++)
		free(p->extra[i]);
	free(p->env);
	free(p->argv);
}

int program_make(struct program *p, const struct node_rank *r,
		 const struct resources *has, bool pmi)
{
	*p = (struct program){ .argv = make_argv(&r->launch->argv) };
	put_all(p, r, has, pmi);
	p->env = make_environment(p, &r->profile->env, has->has.gpus);
	if (p->argv && p->env && (p->pmi_fd || !pmi))
		return 0;
	program_free(p);
	return -ENOMEM;
}
