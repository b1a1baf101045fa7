# SPDX-License-Identifier: BSD-3-Clause
"""A private Slurm of N nodes on one machine."""
