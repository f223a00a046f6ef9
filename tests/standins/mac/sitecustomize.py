"""Makes the interpreter that starts with this on its path look like one on a Mac.

It takes away what Python has on Linux alone, by the "Availability" of its documentation.
"""

import fcntl
import os
import resource
import select
import signal
import sys
import time
import types

del select.epoll  # before `selectors` looks for it
import socket  # noqa: E402

LINUX_ALONE = {
    os: "O_PATH O_TMPFILE O_DIRECT O_NOATIME O_LARGEFILE EFD_CLOEXEC MFD_CLOEXEC MFD_ALLOW_SEALING"
    " P_PIDFD copy_file_range eventfd eventfd_read eventfd_write fdatasync getrandom getresgid"
    " getresuid getxattr listxattr memfd_create pidfd_open pipe2 posix_fadvise posix_fallocate"
    " removexattr sched_getaffinity sched_getparam sched_getscheduler sched_rr_get_interval"
    " sched_setaffinity sched_setparam sched_setscheduler setns setresgid setresuid setxattr"
    " splice timerfd_create unshare waitid",
    signal: "pidfd_send_signal sigtimedwait sigwaitinfo SIGRTMIN SIGRTMAX SIGPWR SIGPOLL SIGSTKFLT",
    socket: "AF_ALG AF_CAN AF_NETLINK AF_PACKET AF_VSOCK MSG_CMSG_CLOEXEC SOCK_CLOEXEC"
    " SOCK_NONBLOCK SO_PEERCRED SO_PASSCRED SO_DOMAIN SO_PROTOCOL TCP_USER_TIMEOUT TCP_QUICKACK",
    fcntl: "F_ADD_SEALS F_GET_SEALS F_SEAL_SEAL F_SEAL_SHRINK F_SEAL_GROW F_SEAL_WRITE F_NOTIFY"
    " F_SETPIPE_SZ F_GETPIPE_SZ F_OFD_SETLK F_OFD_SETLKW F_OFD_GETLK",
    resource: "prlimit RLIMIT_MSGQUEUE RLIMIT_NICE RLIMIT_RTPRIO RLIMIT_RTTIME RLIMIT_SIGPENDING",
    time: "CLOCK_BOOTTIME CLOCK_TAI pthread_getcpuclockid",
}
for module, names in LINUX_ALONE.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
if hasattr(os, "process_cpu_count"):
    os.__dict__["process_cpu_count"] = os.cpu_count  # as where no process is kept to some
# What describes the build of this interpreter has the name of the system that it is really on.
multiarch = getattr(sys.implementation, "_multiarch", "")
os.environ["_PYTHON_SYSCONFIGDATA_NAME"] = f"_sysconfigdata_{sys.abiflags}_linux_{multiarch}"
sys.platform = "darwin"
there = os.uname()
os.uname = lambda: os.uname_result(("Darwin", there.nodename, "24.6.0", "Darwin", "arm64"))
# Apple's frameworks, which `urllib` asks for proxies.
proxies = types.ModuleType("_scproxy")
vars(proxies).update(_get_proxies=dict, _get_proxy_settings=dict)
sys.modules["_scproxy"] = proxies
