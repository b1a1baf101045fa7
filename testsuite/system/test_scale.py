# SPDX-License-Identifier: BSD-3-Clause
"""Correctness of 1,024 ranks on 64 nodes; nothing here is timed."""

import importlib.machinery
import importlib.util
import pathlib
import types

import pytest

from harness import run

PROGRAM = pathlib.Path(__file__).parents[1] / "scale" / "check-scale"
SCALE_S = 900  # for a machine that does other things as well


@pytest.mark.wide
def test_1024_ranks_on_64_nodes(prefix):
    result = run(
        [PROGRAM, "--nodes", 64, "--ranks-per-node", 16, "--no-large"]
        + ["--programs", prefix / "libexec" / "pmi2x"]
        + ["--libraries", prefix / "lib"]
        + ["--plugindir", prefix / "lib" / "slurm"],
        timeout=SCALE_S,
    )
    if result.code == 2:
        pytest.skip(result.stderr.strip())
    result.ok()
    assert " 0 failed" in result.lines[-1], result


@pytest.fixture
def scale():
    loader = importlib.machinery.SourceFileLoader("check_scale", str(PROGRAM))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("check_scale", loader)
    )
    loader.exec_module(module)
    return module


@pytest.mark.parametrize("complaints", [[], ["srun: error: something"]])
def test_a_line_on_stderr_fails(scale, capsys, complaints):
    """check-scale itself: right values with a complaint are no success."""
    (peer, point), *_ = scale.checks_of(2, 2, "block", scale.CHECKS)
    sample = types.SimpleNamespace(complaints=complaints)
    runner = types.SimpleNamespace(measure=lambda *_: sample)
    report = scale.Report(1)
    scale.carry_out(runner, {}, report, peer, point)
    assert report.sum() == (1 if complaints else 0)
    assert ("FAIL" in capsys.readouterr().out) == bool(complaints)


def test_a_failed_step_fails(scale, capsys):
    def measure(*_):
        raise scale.BenchError("exit code 1\n    comparison failed")

    (peer, point), *_ = scale.checks_of(2, 2, "cyclic", scale.CHECKS)
    report = scale.Report(1)
    runner = types.SimpleNamespace(measure=measure)
    scale.carry_out(runner, {}, report, peer, point)
    assert report.sum() == 1
    assert "comparison failed" in capsys.readouterr().out
