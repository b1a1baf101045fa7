/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-probe --mpi: which PMI a program will speak, or does speak. */
#pragma once

/* Look at it without running it, and say what is found. An exit status. */
int probe_mpi(const char *program);

/*
 * Run it on two ranks, with a witness between each of them and its server, and say what
 * they have spoken. An exit status. argv[0] is the program.
 */
int probe_run(char *const argv[]);

/*
 * The witness: run argv[0] with its arguments, pass on what it and the server say, and
 * print what it has spoken when it has ended. Returns its exit code.
 */
int probe_witness(char *const argv[]);

/* How that line begins, and what may follow. */
#define PROBE_SPOKE "pmi2x-probe: this rank has spoken "
#define PROBE_SPOKE_PMI1 "PMI-1"
#define PROBE_SPOKE_PMI2 "PMI-2"
#define PROBE_SPOKE_NOTHING "no PMI"
#define PROBE_SPOKE_OTHER "something else on PMI_FD"

/* Instead of srun or the server below libexec: words that start two ranks. */
#define PROBE_LAUNCHER_ENV "PMI2X_PROBE_LAUNCHER"
