# SPDX-License-Identifier: BSD-3-Clause
"""A short soak: what goes wrong in some steps leaves nothing; "make soak"."""

import pathlib

import pytest

from harness import run

STEPS = 24


@pytest.mark.wide
def test_soak(cluster, prefix, only_pmi2x):
    soak = pathlib.Path(__file__).parent / "soak"
    options = ["--prefix", prefix, "--cluster", cluster.dir]
    options += ["--nodes", "8", "--steps", STEPS]
    result = run([soak, *options], timeout=480).ok()
    assert "ok: soak" in result.stdout
