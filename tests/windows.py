"""Windows, as far as it can be had here: a program that begins with this lacks what Windows lacks.

It is run by `python -c`, with what is under test appended.
"""

from typing import Final

WINDOWS: Final = """
import asyncio, functools, os, select, selectors, signal, socket, sqlite3, stat, subprocess, sys, tempfile, time
import zoneinfo, click, psutil

# What is imported above has taken what it needs of this system.
sys.platform = "win32"
socket.socketpair = functools.partial(socket.socketpair, socket.AF_UNIX)
for name in ("fcntl", "grp", "pwd", "resource", "termios", "tty", "uvloop"):
    sys.modules[name] = None
for module, names in {
    os: ("O_CLOEXEC", "fchmod", "fork", "getuid", "killpg", "register_at_fork", "set_blocking", "sysconf"),
    select: ("poll", "epoll"),
    signal: ("SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2"),
    socket: ("AF_UNIX", "MSG_DONTWAIT"),
    time: ("CLOCK_BOOTTIME",),
}.items():
    for name in names:
        delattr(module, name)


def sockets_only(wait):
    def refuse_others(*lists):
        for file in (file for files in lists[:3] for file in files):
            number = file if isinstance(file, int) else file.fileno()
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                raise OSError(10038, "an operation was attempted on something that is not a socket")
        return wait(*lists)
    return refuse_others


def files_only(duplicate):
    def refuse_sockets(number):
        if stat.S_ISSOCK(os.fstat(number).st_mode):
            raise OSError(9, "a socket is not a file")
        return duplicate(number)
    return refuse_sockets


select.select = sockets_only(select.select)
os.dup = files_only(os.dup)
selectors.DefaultSelector = selectors.SelectSelector


class ProactorEventLoop(asyncio.SelectorEventLoop):
    def add_reader(self, *_):
        raise NotImplementedError
    add_writer = add_signal_handler = add_reader


asyncio.ProactorEventLoop = ProactorEventLoop
asyncio.get_event_loop_policy()._loop_factory = ProactorEventLoop
"""
