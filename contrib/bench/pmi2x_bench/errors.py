# SPDX-License-Identifier: BSD-3-Clause
"""The error with which pmi2x bench stops."""


class BenchError(Exception):
    """Something the user can act upon; its text is all they see."""
