# SPDX-License-Identifier: BSD-3-Clause
"""pmi2x-dvm, when the network between head and nodes fails for a while.

Limits are a tenth of those in real use: dvm_network.FASTER."""

import os
import pathlib
import signal
import time

import pytest

from dvm_network import FASTER, Network, check_allowed
from dvms import living, there, wait_until
from processes import children
from test_dvm_journal import ends

__all__ = ["there"]


@pytest.fixture(scope="module", autouse=True)
def allowed():
    check_allowed()


@pytest.fixture
def network(prefix, tmp_path, request):
    faster = getattr(request, "param", FASTER)
    with Network(prefix, tmp_path, nodes=2, faster=faster) as network:
        yield network
        network("down", "--cancel")
        wait_until(lambda: not living(network.env["PMI2X_DVM_DIR"]))
        assert not network.alive()


def begin(network, *options):
    """A task that runs on n0, while n1 has room."""
    network.up(*options)
    network("drain", "n1").ok()
    network.submit_beats()
    network.wait_for_instance(0)
    network("undrain", "n1").ok()


def cut(network, node, seconds):
    network.link(node, "down")
    time.sleep(seconds)  # the fault itself
    network.link(node, "up")


def test_link_that_is_down_for_less_than_a_lease_costs_nothing(network):
    begin(network)
    cut(network, 0, 1)
    network("submit", "--wait", "--report", "/dev/null", "true").ok()
    assert network.state(0) == "up"
    assert network.instances() == {0}


def read_log(network):
    places = pathlib.Path(network.env["PMI2X_DVM_DIR"])
    return "".join(path.read_text() for path in places.rglob("log"))


@pytest.mark.parametrize("network", [2], indirect=True)  # a lease of 22 s
def test_task_whose_nodes_connect_during_a_cut_goes_on_after_it(network, raw):
    network.up()
    wait = f"while ! [ -e {network.base}/go ]; do sleep 0.1; done"
    exchange = " ".join(map(str, raw("exchange", "1")))
    network("submit", "-n", "2", "-N", "2", "sh", "-c", f"{wait}; exec {exchange}").ok()
    network.link(1, "down")
    (network.base / "go").touch()
    wait_until(lambda: "trying again" in read_log(network), 20)
    network.link(1, "up")
    network("wait").ok()
    assert network.state(1) == "up"


def check_cut(network, journal, seconds, lease_s, options):
    """One instance runs at a time, and ends once."""
    begin(network, "--journal", journal, *options)
    cut(network, 0, seconds)
    if seconds > 1.2 * lease_s:
        network.wait_for_instance(1)
    elif seconds == 1:
        network("submit", "--wait", "true").ok()
        assert network.instances() == {0}
    else:  # a link has failed meanwhile, or has not
        wait_until(lambda: len(network.alive()) == 1)
    network.assert_one_at_a_time()
    assert len(network.alive()) <= 1  # it may be about to run elsewhere
    (network.base / "go").touch()
    network("wait").ok()
    wait_until(lambda: not network.alive())
    network("down").ok()
    assert set(ends(journal / "journal").values()) == {1}
    network.assert_one_at_a_time()


@pytest.mark.wide
@pytest.mark.parametrize("orphan", [False, True], ids=["plain", "orphan"])
@pytest.mark.parametrize("seconds", [1, 6, 30])
def test_cut_of_any_length_leaves_one_instance_that_ends_once(network, tmp_path, seconds, orphan):
    options = ("--orphan", "10") if orphan else ()
    check_cut(network, tmp_path / "j", seconds, 11.25 if orphan else 4.5, options)


@pytest.mark.wide
@pytest.mark.parametrize("network", [1], indirect=True, ids=["lease of 45 s"])
@pytest.mark.parametrize("orphan", [False, True], ids=["plain", "orphan"])
@pytest.mark.parametrize("seconds", [10, 60, 300])
def test_cut_leaves_one_instance_that_ends_once_with_the_limits_of_real_use(
    network, tmp_path, seconds, orphan
):
    options = ("--orphan", "100") if orphan else ()
    check_cut(network, tmp_path / "j", seconds, 105 if orphan else 45, options)


def kill_head(network):
    places = network.env["PMI2X_DVM_DIR"]
    head = next(p for p, n in living(places).items() if "head" in n)
    os.kill(head, signal.SIGKILL)
    wait_until(lambda: head not in living(places))


@pytest.mark.wide
def test_task_of_a_node_that_is_cut_off_waits_for_the_second_head_after(network, tmp_path):
    """The first head after has called the node, and the second one knows where it was."""
    options = ("--orphan", "22")
    begin(network, "--journal", tmp_path / "j", *options)
    network.link(0, "down")
    for _ in range(2):
        kill_head(network)
        network.up("--resume", tmp_path / "j", *options, nodes=1)
    network.wait_for_instance(1, 90)
    network.assert_one_at_a_time()


def test_task_of_a_node_that_is_cut_off_runs_elsewhere_after_its_lease(network):
    begin(network)
    network.link(0, "down")
    wait_until(lambda: network.state(0) == "lost")
    network.wait_for_instance(1)
    network.assert_one_at_a_time()
    network.link(0, "up")
    assert len(network.alive()) == 1


@pytest.mark.parametrize("network", [0.1], indirect=True, ids=["lease of 450 s"])
@pytest.mark.parametrize("name", ["pmi2x-dvmd", "pmi2x-dvm-zygot"])
def test_daemon_that_is_killed_is_proof_that_its_ranks_have_ended(network, name):
    """No lease is waited for, which would be longer than the test: the other of the two says so."""
    begin(network)
    daemon = network.daemon_of(0)
    if name == "pmi2x-dvmd":
        os.kill(daemon, signal.SIGKILL)
    else:
        [child] = children(daemon)
        os.kill(child, signal.SIGKILL)
    network.wait_for_instance(1)
    network.assert_one_at_a_time()


def step_of(network, node):
    """The processes of a node, those that were started first at the end: as when Slurm
    kills a step, nobody is left who could say that the ranks have ended."""
    found = [network.daemon_of(node)]
    for pid in found:
        found += children(pid)
    return found[::-1]


@pytest.mark.parametrize("network", [1], indirect=True)
@pytest.mark.parametrize("orphan", [False, True], ids=["plain", "orphan"])
def test_node_whose_processes_are_all_killed_refuses_a_call_of_the_head(network, tmp_path, orphan):
    """The refused call proves that the node's ranks have ended. The lease is 45 s."""
    begin(network, "--journal", tmp_path / "j", *(["--orphan", "60"] if orphan else []))
    step = step_of(network, 0)
    for number in signal.SIGSTOP, signal.SIGKILL:
        for pid in step:
            os.kill(pid, number)
    network.wait_for_instance(1, 20)
    network.assert_one_at_a_time()


def test_daemon_that_is_killed_says_so_to_its_second_head(network, tmp_path):
    """The lease is 30 s."""
    options = ("--orphan", "30")
    begin(network, "--journal", tmp_path / "j", *options)
    kill_head(network)
    network.up("--resume", tmp_path / "j", *options)
    assert network.instances() == {0}
    os.kill(network.daemon_of(0), signal.SIGKILL)
    network.wait_for_instance(1, 15)
    network.assert_one_at_a_time()


def test_node_that_is_given_up_is_ended_as_soon_as_it_can_be_reached(network, tmp_path):
    """The lease is 30 s. The tasks run elsewhere when the node has reported the end of
    its ranks."""
    begin(network, "--journal", tmp_path / "j", "--orphan", "30")
    network.link(0, "down")
    wait_until(lambda: network.state(0) == "lost")
    assert len(network.alive()) == 1
    assert network.instances() == {0}
    network.link(0, "up")
    network.wait_for_instance(1, 20)
    network.assert_one_at_a_time()
    wait_until(lambda: not network.daemon_of(0))


@pytest.mark.parametrize("network", [1], indirect=True)
def test_lease_of_a_node_is_the_time_of_orphan(network, tmp_path):
    """Without --orphan it is 45 s."""
    begin(network, "--journal", tmp_path / "j", "--orphan", "4")
    network.link(0, "down")
    network.wait_for_instance(1, 40)
    network.assert_one_at_a_time()


def test_cancel_names_a_node_that_cannot_be_told(network, tmp_path):
    """cancel tries for ten seconds; the ranks are ended as soon as the node can be
    reached."""
    begin(network, "--journal", tmp_path / "j", "--orphan", "60")
    network.link(0, "down")
    network("cancel", "--all").failed().says("node n0 cannot be reached: ranks there may run until")
    assert len(network.alive()) == 1
    network.link(0, "up")
    wait_until(lambda: not network.alive(), 20)
    wait_until(lambda: network.status()["ended"] == 1)
    assert network.instances() == {0}


def test_down_names_a_node_that_cannot_be_told(network, tmp_path):
    """... and leaves it to its lease."""
    begin(network, "--journal", tmp_path / "j", "--orphan", "22")
    network.link(0, "down")
    network("down", "--cancel", timeout=60).failed().says("node n0 cannot be reached")
    assert len(network.alive()) == 1
    wait_until(lambda: not network.alive(), 60)
    wait_until(lambda: not network.daemon_of(0))


@pytest.mark.parametrize("network", [1], indirect=True)
def test_head_calls_nodes_of_a_killed_one_without_orphan(network, tmp_path):
    """Their refusals prove that no rank runs. The lease is 45 s."""
    begin(network, "--journal", tmp_path / "j")
    kill_head(network)
    network.up("--resume", tmp_path / "j")
    network.wait_for_instance(1, 20)
    network.assert_one_at_a_time()


@pytest.mark.wide
def test_head_does_not_believe_a_node_of_a_killed_one_that_is_cut_off(network, tmp_path):
    begin(network, "--journal", tmp_path / "j")
    network.link(0, "down")
    kill_head(network)
    network.start_next_on([1])
    network.up("--resume", tmp_path / "j", nodes=1)
    network.wait_for_instance(1, 60)
    network.assert_one_at_a_time()
    network.link(0, "up")


def stop_head(network):
    [head] = [p for p, n in living(network.env["PMI2X_DVM_DIR"]).items() if n == "pmi2x-dvm-head"]
    os.kill(head, signal.SIGSTOP)
    return head


@pytest.mark.wide
@pytest.mark.parametrize("once", [False, True], ids=["again", "once"])
def test_head_that_stands_still_longer_than_a_lease(network, tmp_path, once):
    """Its nodes end their ranks. The head notices when it goes on, and the next one has
    the task."""
    begin(network, "--journal", tmp_path / "j", *(["--once"] if once else []))
    head = stop_head(network)
    wait_until(lambda: not network.alive())
    os.kill(head, signal.SIGCONT)
    wait_until(lambda: not living(network.env["PMI2X_DVM_DIR"]), 60)
    network.up("--resume", tmp_path / "j", *(["--once"] if once else []))
    if once:
        network("wait", "1", timeout=60).failed()
        assert network.instances() == {0}
    else:
        network.wait_for_instance(1)
    network.assert_one_at_a_time()


@pytest.mark.wide
@pytest.mark.parametrize("orphan", [(), ("--orphan", "20")], ids=["plain", "orphan"])
def test_head_that_goes_on_after_another_has_its_journal(network, tmp_path, orphan):
    """It ends, and neither starts nor ends a task of the other head."""
    begin(network, "--journal", tmp_path / "j", *orphan)
    first = stop_head(network)
    network.up("--name", "b", "--resume", tmp_path / "j", "--take-over", *orphan)
    network.wait_for_instance(0 if orphan else 1)
    os.kill(first, signal.SIGCONT)
    wait_until(lambda: first not in living(network.env["PMI2X_DVM_DIR"]))
    network("submit", "--dvm", "b", "--wait", "--report", "/dev/null", "true").ok()
    assert network.instances() == ({0} if orphan else {0, 1})
    assert len(network.alive()) == 1
    network.assert_one_at_a_time()
    network("down", "--dvm", "b", "--cancel")
    wait_until(lambda: not network.alive())
    assert ends(tmp_path / "j/journal") == {1: 1, 2: 1}
