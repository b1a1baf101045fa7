# SPDX-License-Identifier: BSD-3-Clause
"""PMI-1 and PMI-2 in text on PMI_FD, without a library."""

import os
import socket

RANK = int(os.environ.get("PMI_RANK", 0))
SIZE = int(os.environ.get("PMI_SIZE", 1))
JOB = os.environ.get("PMI_JOBID", "")


class Closed(Exception):
    """The server hung up."""


class Pmi:
    """The connection of one rank."""

    version = 0
    subversion = 0

    def __init__(self):
        self.socket = socket.socket(fileno=os.dup(int(os.environ["PMI_FD"])))
        self.input = b""

    def send_raw(self, data):
        self.socket.sendall(data)

    def fill(self):
        data = self.socket.recv(65536)
        if not data:
            raise Closed
        self.input += data

    def line(self):
        while b"\n" not in self.input:
            self.fill()
        line, self.input = self.input.split(b"\n", 1)
        return dict(
            word.split("=", 1) for word in line.decode().split() if "=" in word
        )

    def greet(self):
        self.send_raw(
            b"cmd=init pmi_version=%d pmi_subversion=%d\n"
            % (self.version, self.subversion)
        )
        answer = self.line()
        assert answer["cmd"] == "response_to_init", answer
        assert answer["rc"] == "0", answer


class Pmi1(Pmi):
    version = 1
    subversion = 1

    def ask(self, command, **fields):
        text = " ".join([f"cmd={command}"] + [f"{k}={v}" for k, v in fields.items()])
        self.send_raw(text.encode() + b"\n")
        return self.line()

    def init(self):
        self.greet()
        self.kvsname = self.ask("get_my_kvsname")["kvsname"]

    def put(self, key, value):
        answer = self.ask("put", kvsname=self.kvsname, key=key, value=value)
        assert answer["rc"] == "0", answer

    def fence(self):
        answer = self.ask("barrier_in")
        assert answer["cmd"] == "barrier_out", answer
        assert answer.get("rc", "0") == "0", answer

    def get(self, key):
        answer = self.ask("get", kvsname=self.kvsname, key=key)
        return answer["value"] if answer["rc"] == "0" else None

    def finalize(self):
        assert self.ask("finalize")["cmd"] == "finalize_ack"


class Pmi2(Pmi):
    version = 2

    def send(self, command, **fields):
        text = f"cmd={command};"
        for key, value in fields.items():
            text += f"{key.replace('_', '-')}={str(value).replace(';', ';;')};"
        body = text.encode()
        self.send_raw(b"%-6d" % len(body) + body)

    def receive(self):
        while len(self.input) < 6:
            self.fill()
        length = int(self.input[:6])
        while len(self.input) < 6 + length:
            self.fill()
        body = self.input[6 : 6 + length].decode()
        self.input = self.input[6 + length :]
        body = body.replace(";;", "\0")
        words = [w.replace("\0", ";") for w in body.split(";") if "=" in w]
        return dict(word.split("=", 1) for word in words)

    def ask(self, command, **fields):
        self.send(command, **fields)
        return self.receive()

    def init(self):
        self.greet()
        answer = self.ask(
            "fullinit", pmijobid=JOB, pmirank=RANK, threaded="FALSE"
        )
        assert answer["rc"] == "0", answer

    def put(self, key, value):
        answer = self.ask("kvs-put", key=key, value=value)
        assert answer["rc"] == "0", answer

    def fence(self):
        answer = self.ask("kvs-fence")
        assert answer["rc"] == "0", answer

    def get(self, key):
        answer = self.ask("kvs-get", jobid=JOB, srcid=-1, key=key)
        return answer["value"] if answer.get("found") == "TRUE" else None

    def finalize(self):
        assert self.ask("finalize")["rc"] == "0"


def connect(version):
    return {"1": Pmi1, "2": Pmi2}[version]()
