# SPDX-License-Identifier: BSD-3-Clause
"""Modules of pmi2x bench dvm."""
