# SPDX-License-Identifier: BSD-3-Clause
"""Every request gets an answer that says which; also the unknown ones."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pmi  # noqa: E402

SILENCE_S = 15


def ask_all_of_pmi1():
    client = pmi.Pmi1()
    client.socket.settimeout(SILENCE_S)
    client.init()
    maxes = client.ask("get_maxes")
    assert int(maxes["kvsname_max"]) >= 256, maxes
    assert int(maxes["keylen_max"]) >= 64, maxes
    assert int(maxes["vallen_max"]) >= 1024, maxes
    assert "size" in client.ask("get_universe_size")
    assert "appnum" in client.ask("get_appnum")
    for command, fields in (
        ("create_kvs", {}),
        ("destroy_kvs", {"kvsname": client.kvsname}),
        ("getbyidx", {"kvsname": client.kvsname, "idx": 0}),
        ("publish_name", {"service": f"s{pmi.RANK}", "port": "p"}),
        ("lookup_name", {"service": "unknown"}),
        ("unpublish_name", {"service": f"s{pmi.RANK}"}),
        ("get", {"kvsname": client.kvsname, "key": "nothing"}),
    ):
        answer = client.ask(command, **fields)
        assert answer.get("cmd"), (command, answer)
    client.finalize()


def ask_all_of_pmi2():
    client = pmi.Pmi2()
    client.socket.settimeout(SILENCE_S)
    client.init()
    for command, fields in (
        ("job-getid", {}),
        ("job-connect", {"jobid": "1.0"}),
        ("job-disconnect", {"jobid": "1.0"}),
        ("kvs-get", {"jobid": pmi.JOB, "srcid": -1, "key": "nothing"}),
        ("info-getnodeattr", {"key": "nothing", "wait": "FALSE"}),
        ("info-getjobattr", {"key": "nothing"}),
        ("name-lookup", {"name": "unknown"}),
        ("name-unpublish", {"name": "unknown"}),
        ("no-such-command", {}),
    ):
        answer = client.ask(command, thrid=7, **fields)
        assert answer["cmd"] == f"{command}-response" or "rc" in answer, answer
        assert answer.get("thrid", "7") == "7", answer
    client.finalize()


if pmi.RANK % 2:
    ask_all_of_pmi2()
else:
    ask_all_of_pmi1()
print("all answered")
