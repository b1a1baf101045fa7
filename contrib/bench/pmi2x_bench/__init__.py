# SPDX-License-Identifier: BSD-3-Clause
"""What all of pmi2x bench shares, and its commands: collectives, launch, tasks."""
