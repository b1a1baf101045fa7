# SPDX-License-Identifier: BSD-3-Clause
"""Modules that the commands of pmi2x bench share, and those of its commands
collectives, launch and tasks."""
