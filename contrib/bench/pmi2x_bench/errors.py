# SPDX-License-Identifier: BSD-3-Clause
"""What pmi2x bench collectives stops with."""


class BenchError(Exception):
    """Something the user can act upon; its text is all they see."""
