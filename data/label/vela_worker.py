"""Runs Vela on many networks; `vela.py` starts it with the Python that has Vela, so it imports nothing of irgauge.

Standard input: `{"cpu_s", "wall_s", "memory_bytes", "jobs": [{"arguments": [...], "messages": file}, ...]}`. Standard
output: the wait status of each job, a line each. Vela is imported once, and each job runs in a child process of its
own: what one network does to the process, a crash or memory not given back, cannot reach the next.
"""

import json
import os
import resource
import signal
import sys
import traceback
from typing import Any, NoReturn

from ethosu.vela import vela


def main() -> None:
    given = json.load(sys.stdin)
    for job in given["jobs"]:
        pid = os.fork()
        if pid == 0:
            _child(job, given)
        print(os.waitpid(pid, 0)[1], flush=True)


def _child(job: dict[str, Any], limits: dict[str, Any]) -> NoReturn:
    """Runs one job and ends the process; what Vela prints goes to the job's file."""
    code = 1
    try:
        file = os.open(job["messages"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        resource.setrlimit(resource.RLIMIT_AS, (limits["memory_bytes"],) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (limits["cpu_s"], limits["cpu_s"] + 1))
        signal.alarm(limits["wall_s"])
        code = vela.main(job["arguments"])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code or 0)


if __name__ == "__main__":
    main()
