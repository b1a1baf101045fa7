# SPDX-License-Identifier: BSD-3-Clause
"""Submit tasks to a DVM of pmi2x-dvm, and wait for them as futures.

    import pmi2x_dvm

    with pmi2x_dvm.connect() as dvm:
        future = dvm.submit(["./sim", "7"], ranks=8, cores=2, time=600)
        print(future.result().code)
        for result in dvm.map([["./sim", str(i)] for i in range(1000)]):
            if result.code:
                print(result.id, result.why, result.err)

Needs the standard library of Python 3.6 or later. A client is used by one thread or by
many. Callbacks of futures are called in a thread of its own, and may use the client.
"""

import concurrent.futures
import contextlib
import hashlib
import hmac
import ipaddress
import itertools
import json
import os
import queue
import socket
import stat
import struct
import threading
import time
import warnings

VERSION = 3
BATCH = 1000
BATCH_SIZE = 4 << 20  # characters of arguments in a request
SUFFIX = ".address"
ANSWER_SECONDS = 5
DEAD_HEAD_SECONDS = 60  # as of remote.c


class Error(Exception):
    """The DVM is not there, has ended, or has refused something; says why."""


class Refused(Error):
    """A task cannot be: `key` is what is wrong with it."""

    def __init__(self, key, why):
        super().__init__(f"{key}: {why}")
        self.key = key


class Result:
    """How a task has ended.

    code: exit status, 128 + signal; out, err: the last 4 KiB of its output, bytes;
    nodes: names; setup_time: seconds from being placed to being started; seconds: how
    long it ran; usage: (user, system) in seconds and the peak of a rank in KiB.
    """

    def __init__(self, task):
        self.id = task["id"]
        self.code = task["code"]
        self.signal = task.get("signal")
        self.why = task.get("why", "")
        self.out = task.get("out", "").encode("latin-1")
        self.err = task.get("err", "").encode("latin-1")
        self.nodes = task["nodes"]
        self.instance = task["instance"]
        self.cancelled = task["state"] == "cancelled"
        self.usage = task["usage"]
        _, placed, started, ended = task["t"]
        self.setup_time = started - placed
        self.seconds = ended - started if started else 0.0

    def __repr__(self):
        return f"<task {self.id}: code {self.code}{self.why and ', ' + self.why}>"


class Task(concurrent.futures.Future):
    """A Future of a Result; `id` is the task's, `dvm` has it.

    cancel() ends the task, also one that runs. concurrent.futures.wait waits until it
    has ended. asyncio.wrap_future makes one that can be awaited.
    """

    def __init__(self, id, dvm):
        super().__init__()
        self.id, self.dvm = id, dvm

    def cancel(self):
        if not super().cancel():
            return False
        with contextlib.suppress(Error):
            self.dvm._send(self.dvm._cancel(self))
        return True


def base():
    """Where the directories of this user's DVMs are."""
    given = os.environ.get("PMI2X_DVM_DIR")
    return given or f"/tmp/pmi2x-dvm-{os.getuid()}"


def shared_base():
    """Where the files are by which clients on other nodes find them."""
    given = os.environ.get("PMI2X_DVM_DIR")
    return given or os.path.expanduser("~/.pmi2x-dvm")


def names():
    """The DVMs of this job, or, outside of jobs, of this machine, or else of others."""
    job = os.environ.get("SLURM_JOB_ID")
    here = [n for n in _list(base()) if job in (None, _job(n)) and _is_up(_open_here, n)]
    if not here and job is None:
        here = [name for name in _files() if _is_up(_open_there, name)]
    return list(dict.fromkeys(_split(name)[0] for name in here))


def _job(name):
    """The Slurm job in which a DVM was started, or ""."""
    try:
        with open(os.path.join(base(), name, "lock")) as file:
            return file.read()
    except OSError:
        return ""


def _files():
    return [f[: -len(SUFFIX)] for f in _list(shared_base()) if f.endswith(SUFFIX)]


def _split(name):
    """Of NAME.3, one of several under one name: NAME and 3; else 0."""
    first, _, number = name.rpartition(".")
    return (first, int(number)) if first and number.isdecimal() else (name, 0)


def _open_members(name):
    """{number: connection} of those that answer."""
    found = {}
    for names, opened in (_list(base()), _open_here), (_files(), _open_there):
        for each in names if not found else []:
            first, number = _split(each)
            if number and first == name:
                with contextlib.suppress(OSError, Error):
                    found[number] = opened(each)
    return found


def _list(directory):
    try:
        return sorted(os.listdir(directory))
    except FileNotFoundError:
        return []


def _open_here(name):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(os.path.join(base(), name, "head.sock"))
    except OSError:
        s.close()
        raise
    return _Here(s)


def _open_there(name):
    if "/" not in name:
        name = os.path.join(shared_base(), name + SUFFIX)
    return _connect_there(_read_address(name))


def _open(name):
    if "/" in name:
        return _open_there(name)
    try:
        return _open_here(name)
    except OSError:
        return _open_there(name)


def _is_up(opened, name):
    try:
        opened(name).close()
    except (OSError, Error):
        return False
    return True


def _find():
    own = "job" + os.environ.get("SLURM_JOB_ID", "")
    found = names()
    if own != "job" and (own in found or _is_up(_open, own)):
        return own
    if len(found) != 1:
        raise Error(
            f"several DVMs are up: {', '.join(found)}; choose one"
            if found
            else "no DVM is up on this machine, and no file tells of one on another machine: start one with pmi2x-dvm up"
        )
    return found[0]


def connect(name=None):
    """The DVM of this name, that of PMI2X_DVM, this job's, or the only one that is up.

    A name with a / is a file of shared_base(). Several DVMs of one name are a Several.
    """
    name = name or os.environ.get("PMI2X_DVM") or _find()
    try:
        return Dvm(_open(name), name)
    except OSError as error:
        members = _open_members(name)
        if members:
            return Several({n: Dvm(c, f"{name}.{n}") for n, c in members.items()}, name)
        raise Error(f"no DVM {name} is up on this machine, or known of another") from error


# ---- connections ----


class _Here:
    """Lines over the unix socket of a head on this machine."""

    def __init__(self, connection):
        self._socket = connection
        self.send = connection.sendall

    def lines(self):
        with self._socket.makefile("rb") as lines:
            yield from lines

    def shutdown(self):
        self._socket.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._socket.close()


class _There(_Here):
    """The same in frames, cut anywhere: src/common/libio/frames.h."""

    UP, DOWN = 1, 2
    PIECE = 1 << 20

    def __init__(self, connection):
        super().__init__(connection)
        self.send = self._send

    def _send(self, data):
        for at in range(0, len(data), self.PIECE):
            piece = data[at : at + self.PIECE]
            self._socket.sendall(struct.pack("<IHH", len(piece), self.UP, 0) + piece)

    def lines(self):
        rest = b""
        for piece in self._pieces():
            *whole, rest = (rest + piece).split(b"\n")
            yield from whole

    def _pieces(self):
        with self._socket.makefile("rb") as frames:
            for header in iter(lambda: frames.read(8), b""):
                size, kind, _ = struct.unpack("<IHH", header)
                if kind != self.DOWN:
                    return
                yield frames.read(size)


def _read_address(path):
    """What the file says, as a dict; "head" is a list."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(fd, encoding="ascii") as file:
        st = os.fstat(fd)
        if not stat.S_ISREG(st.st_mode) or st.st_uid != os.geteuid() or st.st_mode & 0o77:
            raise Error(f"{path} must be your file, and no other user may read it")
        words = [line.split() for line in file if line.strip()]
    if not words or words[0] != ["pmi2x-dvm", str(VERSION)]:
        raise Error(f"{path} is not the file of a DVM, or one of another version")
    address = {word[0]: word[1] for word in words if word[0] != "head"}
    address["head"] = [(word[1], int(word[2])) for word in words if word[0] == "head"]
    return address


def _end_without_answer(connection):
    """A head whose machine has died does not say so: an error follows in a minute."""
    options = {
        "TCP_USER_TIMEOUT": DEAD_HEAD_SECONDS * 1000,
        "TCP_KEEPIDLE": DEAD_HEAD_SECONDS // 4,
        "TCP_KEEPINTVL": DEAD_HEAD_SECONDS // 4,
        "TCP_KEEPCNT": 3,
    }
    for name, value in options.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _connect_there(address):
    error = ConnectionError("the file names no head")
    for to in address["head"]:
        try:
            connection = socket.create_connection(to, ANSWER_SECONDS)
        except OSError as failure:
            error = failure
            continue
        try:
            _prove(connection, address)
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _end_without_answer(connection)
            return _There(connection)
        except OSError as failure:
            error = failure
        connection.close()
    raise error


# ---- the handshake: src/common/libio/handshake.h ----

HANDSHAKE = 3
PROTOCOL = 8
HEAD, CLIENT = 0xFFFFFFFF, 0xFFFFFFFE
NONCE, PROOF = 24, 32
MAGIC = b"pmi2x\r\n\0"
BUILD = b"python"


def _text(data):
    return struct.pack("<I", len(data)) + data


def _message(body):
    return MAGIC + struct.pack("<HH", HANDSHAKE, len(body)) + body


def _endpoint(name):
    ip = ipaddress.ip_address(name[0].split("%")[0])
    packed = ip.packed if ip.version == 6 else b"\0" * 10 + b"\xff\xff" + ip.packed
    return packed + struct.pack("<H", name[1])


def _prove(connection, address):
    """Both ends prove that they know the secret; OSError when the other does not."""
    job = _text(address["dvm"].encode())
    ends = struct.pack("<II", CLIENT, HEAD)
    nonce = os.urandom(NONCE)
    connection.sendall(
        _message(_text(BUILD) + struct.pack("<H", PROTOCOL) + job + ends + nonce)
    )
    with connection.makefile("rb", 0) as answers:
        build, its_nonce, proof = _read_answer(answers)
    covered = struct.pack("<H", HANDSHAKE) + _text(BUILD) + _text(build)
    covered += struct.pack("<HH", PROTOCOL, PROTOCOL) + job + ends
    covered += nonce + _endpoint(connection.getsockname())
    covered += its_nonce + _endpoint(connection.getpeername())

    def proof_of(who):
        text = _text(b"pmi2x link: " + who) + covered
        return hmac.new(bytes.fromhex(address["secret"]), text, hashlib.sha256).digest()

    if not hmac.compare_digest(proof, proof_of(b"acceptor")):
        raise ConnectionError("another DVM answers there: the DVM of the file has ended")
    connection.sendall(_message(proof_of(b"connector")))


def _read_exactly(file, size):
    data = b""
    while len(data) < size:
        piece = file.read(size - len(data))
        if not piece:
            raise ConnectionError("another DVM, or version of pmi2x, answers there")
        data += piece
    return data


def _read_answer(file):
    """Build, nonce, proof."""
    header = _read_exactly(file, len(MAGIC) + 4)
    version, size = struct.unpack("<HH", header[len(MAGIC) :])
    body = _read_exactly(file, size)
    build_end = len(body) - (3 + NONCE + PROOF)
    build = body[4:build_end]
    right = header.startswith(MAGIC) and version == HANDSHAKE and build_end >= 4
    if not right or body[:build_end] != _text(build):
        raise ConnectionError("another DVM, or version of pmi2x, answers there")
    if body[build_end : build_end + 3] != struct.pack("<HB", PROTOCOL, 0):
        raise ConnectionError("another DVM, or version of pmi2x, answers there")
    rest = body[build_end + 3 :]
    return build, rest[:NONCE], rest[NONCE:]


class _Target:
    """What can be given tasks."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def submit(self, argv, **task):
        """Queue a task. Keys are those of doc/dvm.md: ranks, cores, gpus, nodes, ...

        cwd and env: the caller's unless given. Returns a Task. Raises Refused.
        """
        if isinstance(argv, str):
            raise TypeError("argv must be a list of texts, the program first")
        future = self.submit_many([dict(task, argv=list(argv))])[0]
        if future.done() and future.exception():
            raise future.exception()
        return future

    def map(self, commands, **task):
        """Results of many commands, in their order, as they come."""
        tasks = [dict(task, argv=list(argv)) for argv in commands]
        for future in self.submit_many(tasks):
            yield future.result()


class Dvm(_Target):
    """A connection with the head of a DVM; close it, or use it in `with`."""

    def __init__(self, connection, name):
        self.name = name
        self._connection = connection
        self._lock = threading.Lock()
        self._tags = itertools.count(1)
        self._sending = threading.Lock()  # apart, for what is sent may wait for the reader
        self._answers = {}  # by tag, in the order of the requests
        self._futures = {}  # by task
        self._early = {}  # results of tasks whose number is not known yet
        self._profiles = set()
        self._ended = None
        self._closed = f"the DVM {name} has ended, or the connection was closed"
        self._no_more = False  # results
        self._results = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._finisher = threading.Thread(target=self._finish_all, daemon=True)
        self._reader.start()
        self._finisher.start()
        self._ask({"op": "hello", "version": VERSION})
        while not self.status()["ready"]:
            time.sleep(0.05)

    def close(self):
        """End the connection; tasks go on. `pmi2x-dvm wait` leaves out what had ended."""
        with contextlib.suppress(Error):
            self._ask({"op": "waited"})
        try:
            self._connection.shutdown()
        except OSError:
            pass
        self._reader.join()
        if threading.current_thread() is not self._finisher:
            self._finisher.join()
        self._connection.close()

    def submit_many(self, tasks):
        """Queue tasks, each a dict with argv. A Task each; one that is refused has
        Refused as its exception."""
        futures = []
        for part in _requests(tasks):
            futures += self._submit([dict(t) for t in part])
        return futures

    def cancel(self, future):
        """End a task, or all: cancel("all"). They have a Result, unlike after
        cancel() of a Task. Returns how many there were to end."""
        return self._ask(self._cancel(future))["tasks"]

    def status(self):
        """What `pmi2x-dvm status --json` prints, as a dict."""
        return self._ask({"op": "status"})

    # ---- requests ----

    def _submit(self, tasks):
        said = [(os.fspath(t.get("cwd") or ""), id(t.get("env"))) for t in tasks]
        profiles = {}  # most tasks say the same of theirs: nothing
        for key, task in zip(said, tasks):
            if key not in profiles:
                profiles[key] = self._profile(task)
        if len({id for id, _, _ in profiles.values()}) > 1:  # one to a request
            pairs = zip(tasks, said)
            return [f for t, key in pairs for f in self._send_tasks([t], profiles[key])]
        return self._send_tasks(tasks, profiles[said[0]])

    def _profile(self, task):
        """Its id, directory and environment."""
        cwd = os.fspath(task.get("cwd") or os.getcwd())
        if not _is_text(cwd):
            raise Error(f"the directory {cwd!a} is not UTF-8 text")
        env = _texts(os.environ if task.get("env") is None else task["env"])
        text = json.dumps([cwd, env], sort_keys=True, default=os.fspath)
        return hashlib.sha256(text.encode()).hexdigest()[:32], cwd, env

    def _send_tasks(self, tasks, profile):
        id, cwd, env = profile
        request = {"op": "submit", "profile": {"id": id}}
        if id not in self._profiles:
            request["profile"].update(cwd=cwd, env=env)
        tasks = [
            {k: v for k, v in t.items() if k not in ("cwd", "env")} for t in tasks
        ]
        refused = {}
        if _unfit({"tasks": tasks}):  # which of them?
            refused = {i: wrong for i, wrong in enumerate(map(_unfit, tasks)) if wrong}
        request["tasks"] = [{} if i in refused else t for i, t in enumerate(tasks)]
        answer = self._ask(request)
        self._profiles.add(id)
        for each in answer["refused"]:
            wrong = Refused(each["key"], each["why"])
            refused.setdefault(each["index"], wrong)
        return [
            self._future(id, refused.get(i)) for i, id in enumerate(answer["ids"])
        ]

    def _future(self, id, refused):
        future = Task(id, self)
        if refused:
            future.set_exception(refused)
            return future
        with self._lock:
            early = self._early.pop(id, None)
            if not early and not self._no_more:
                self._futures[id] = future
        if early:
            future.set_result(early)
        elif self._no_more:
            future.set_exception(self._ended)
        return future

    @staticmethod
    def _cancel(future):
        which = {"all": True} if future == "all" else {"ids": [future.id]}
        return dict(which, op="cancel")

    def _ask(self, request):
        event = self._send(request).result()
        if event["ev"] == "error":
            raise Error(event["why"])
        return event

    def _send(self, request):
        """A Future of the answer."""
        answer = concurrent.futures.Future()
        tag = next(self._tags)
        line = _encode(dict(request, tag=tag)) + b"\n"
        with self._sending:
            with self._lock:
                if self._ended:
                    raise self._ended
                self._answers[tag] = answer
            try:
                self._connection.send(line)
            except OSError as error:
                raise Error(f"the DVM {self.name} has ended") from error
        return answer

    # ---- events, in a thread of its own ----

    def _read(self):
        try:
            for line in self._connection.lines():
                self._take(json.loads(line))
        except (OSError, ValueError):
            pass
        finally:
            self._end(Error(self._closed))

    def _take(self, event):
        if event["ev"] == "ended":
            self._results.put(event["tasks"])
        elif event["ev"] == "closed":
            self._closed = event["why"]
        elif "tag" in event or event["ev"] == "error":
            with self._lock:
                # A request that could not be read is answered without its tag, in turn.
                tag = event.get("tag", next(iter(self._answers), None))
                answer = self._answers.pop(tag, None)
            if answer:
                answer.set_result(event)

    def _end(self, error):
        with self._lock:
            self._ended = error
            answers, self._answers = self._answers, {}
        for answer in answers.values():
            answer.set_exception(error)
        self._results.put(None)

    # ---- results, in another one: callbacks may ask for something ----

    def _finish_all(self):
        try:
            for tasks in iter(self._results.get, None):
                for task in tasks:
                    self._finish(Result(task))
        finally:
            self._fail_the_rest()

    def _fail_the_rest(self):
        with self._lock:
            self._no_more = True
            futures, self._futures = self._futures, {}
        for future in futures.values():
            if future.set_running_or_notify_cancel():
                future.set_exception(self._ended)

    def _finish(self, result):
        with self._lock:
            future = self._futures.pop(result.id, None)
            if not future:
                self._early[result.id] = result
        if future and future.set_running_or_notify_cancel():
            future.set_result(result)


# ---- what JSON can say ----


def _requests(tasks):
    """The tasks in lists for one request each, by their number and their size."""
    begin = size = 0
    for at, task in enumerate(tasks):
        if at - begin == BATCH or size >= BATCH_SIZE:
            yield tasks[begin:at]
            begin, size = at, 0
        argv = task.get("argv")
        if isinstance(argv, (list, tuple)):
            size += sum(len(a) for a in argv if isinstance(a, str))
    if begin < len(tasks):
        yield tasks[begin:]


def _is_text(text):
    """Python has lone surrogates for bytes that are no UTF-8; JSON cannot say them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _texts(env):
    """Without variables that are no text, as pmi2x-dvm leaves them out."""
    env = dict(env)
    for name, value in list(env.items()):
        if not _is_text(name) or isinstance(value, str) and not _is_text(value):
            warnings.warn(f"the variable {name!a} is left out: its value is not UTF-8 text")
            del env[name]
    return env


def _whole(digits):
    number = int(digits)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError("is too large")
    return number


def _encode(value):
    return json.dumps(value, allow_nan=False, ensure_ascii=False, default=os.fspath).encode()


def _unfit(task):
    """Refused, of a task that would make the head refuse the whole request; else None."""
    for key, value in task.items():
        try:
            json.loads(_encode(value).decode(), parse_int=_whole)
        except UnicodeEncodeError:
            return Refused(key, "is not UTF-8 text")
        except (TypeError, ValueError) as error:
            return Refused(key, str(error))
    return None


class Several(_Target):
    """Several DVMs under one name: tasks go to the least loaded, or to that of the node
    that they name. What happens to one happens to its tasks alone."""

    def __init__(self, members, name):
        self.name = name
        self._members = dict(sorted(members.items()))

    def close(self):
        """End the connections; tasks go on."""
        for dvm in self._members.values():
            dvm.close()

    def submit_many(self, tasks):
        """As of Dvm."""
        futures = []
        for part in _requests(tasks):
            futures += self._submit(part)
        return futures

    def _submit(self, tasks):
        loads = [_Load(number, found) for number, found in self._statuses().items()]
        parts = {}
        for index, task in enumerate(tasks):
            parts.setdefault(_choose(loads, task), []).append(index)
        futures = [None] * len(tasks)
        for number, part in parts.items():
            found = self._members[number].submit_many([tasks[i] for i in part])
            for index, future in zip(part, found):
                futures[index] = future
        return futures

    def cancel(self, future):
        """End a task, or all: cancel("all")."""
        if future != "all":
            return future.dvm.cancel(future)
        return sum(self._members[n].cancel("all") for n in self._statuses())

    def status(self):
        """What `pmi2x-dvm status --json` prints, as a dict."""
        found = self._statuses()
        one = dict(next(iter(found.values())), dvm=self.name, nodes=[])
        for key in "expected", "queued", "running", "ended", "failed":
            one[key] = sum(status[key] for status in found.values())
        for number, status in found.items():
            of = f"{self.name}.{number}"
            one["nodes"] += [dict(node, dvm=of) for node in status["nodes"]]
        return one

    def _statuses(self):
        """{number: status} of those that are up."""
        found = {}
        for number, dvm in self._members.items():
            with contextlib.suppress(Error):
                found[number] = dvm.status()
        if not found:
            raise Error(f"all DVMs of {self.name} have ended")
        return found


class _Load:
    """What one of several has, and has to do."""

    def __init__(self, number, status):
        up = [node for node in status["nodes"] if node["state"] == "up"]
        self.number, self.nodes = number, len(up)
        self.names = {node["name"] for node in status["nodes"]}
        self.cores = sum(node["cores"] for node in up)
        self.waiting = status["queued"] + sum(n["cores"] - n["free"] for n in up)


def _choose(loads, task):
    """The number of the member that gets a task: as src/dvm/cli/group.c does it."""
    need = max(1, task.get("ranks", 1) * task.get("cores", 1))
    place = task.get("place") or [{}]
    able = (
        [load for load in loads if place[0].get("node") in load.names]
        or [x for x in loads if x.cores >= need and x.nodes >= task.get("nodes", 1)]
        or [max(loads, key=lambda load: load.cores)]
    )
    load = min(able, key=lambda each: (each.waiting + need) / (each.cores or 1))
    load.waiting += need
    return load.number
