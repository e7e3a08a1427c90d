#!/usr/bin/env python3
"""Stands in for `tundish serve`: opens its socket, notes its arguments, ends on SIGTERM; a SIGUSR1 is
noted in a file like USR1server0 of rank 0.

FAKE_SERVER=fail exits with status 3; FAKE_SERVER=slow opens the socket only after a second.
FAKE_SERVER=rank says by the descriptor PMI_FD that it is one.
"""

import os
import signal
import socket
import sys
import time


def main():
    rank = os.environ.get("OMPI_COMM_WORLD_RANK", "")
    with open(f"server{rank}.txt", "w", encoding="utf-8") as notes:
        print(os.getpid(), *sys.argv[1:], file=notes)
    behaviour = os.environ.get("FAKE_SERVER")
    if behaviour == "fail":
        sys.exit(3)
    if behaviour == "slow":
        time.sleep(1)
    if behaviour == "rank":
        os.write(int(os.environ["PMI_FD"]), b"a rank\n")
    path = sys.argv[sys.argv.index("--socket") + 1]
    # Blocked and waited for: one that comes just before a pause would end the next pause only.
    minded = {signal.SIGTERM, signal.SIGUSR1}
    signal.pthread_sigmask(signal.SIG_BLOCK, minded)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()
        os.write(int(sys.argv[sys.argv.index("--ready-fd") + 1]), b"ready\n")
        while signal.sigwait(minded) == signal.SIGUSR1:
            open(f"USR1server{rank}", "w", encoding="utf-8").close()


if __name__ == "__main__":
    main()
