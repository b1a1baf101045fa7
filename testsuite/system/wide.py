# SPDX-License-Identifier: BSD-3-Clause
"""Values of a parameter of which each run tries one, and --wide the others, too."""

import pytest


def mostly(first, *others):
    """For pytest.mark.parametrize."""
    return [first, *(pytest.param(other, marks=pytest.mark.wide) for other in others)]
