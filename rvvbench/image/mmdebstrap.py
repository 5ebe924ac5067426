"""Calling mmdebstrap, and saying in our words what went wrong in it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rvvbench.errors import EnvironmentLacks, ManifestError, RvvbenchError

Progress = Callable[[str, str], None]
"""Called with the name of the phase and a line of output."""

# Room for the root filesystem, the archives of its packages and a margin; below it the disk is used.
TMPFS_NEEDS_BYTES = 8 << 30
TWIN_PATH = "/.rvvbench/bin"
# `wait` returns when a trap ran; the second one is for the command that is ending then.
_AND_ITS_GROUP = """\
end() {
    trap "" TERM
    kill -TERM 0
    (sleep 20; kill -KILL 0) &
    wait "$command"
    kill -KILL 0
}
trap end TERM
"$@" &
command=$!
wait "$command"
"""
_PROXY_KEYS = ("Acquire::http::Proxy", "Acquire::https::Proxy", "Acquire::https::CaInfo")


@dataclass(frozen=True)
class Source:
    """Where packages come from. `mirror` is a sources.list line or address, None for mmdebstrap's own choice.

    `ignore_expiry`: use a Release file past its Valid-Until date.
    """

    suite: str
    mirror: str | None = None
    ignore_expiry: bool = False


def require_tools() -> None:
    """Raises EnvironmentLacks where the host cannot build images."""
    missing = [tool for tool in ("mmdebstrap", "arch-test", "unshare", "setpriv") if shutil.which(tool) is None]
    if missing:
        packages = " ".join("util-linux" if tool in ("unshare", "setpriv") else tool for tool in missing)
        raise EnvironmentLacks(f"{', '.join(missing)} is not installed", mend=f"apt-get install {packages}")
    if os.geteuid() != 0:
        raise EnvironmentLacks("building an image needs root", mend="run the command as root, or with sudo -E")


def arguments(
    source: Source,
    arch: str,
    variant: str,
    packages: Sequence[str],
    target: str,
    *,
    output_format: str,
    extra: Sequence[str] = (),
) -> list[str]:
    """The command line. Proxy settings of this host reach apt during the build; nothing of them stays in the image."""
    options = [f'{key} "{value}"' for key, value in host_apt_settings().items()]
    options += ['Acquire::Languages "none"', 'Acquire::Retries "3"']
    # apt sets PATH for dpkg itself; the first folder is the twin's, see images/hooks/extract.sh.
    options.append(f'DPkg::Path "{TWIN_PATH}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"')
    if source.ignore_expiry:
        options.append('Acquire::Check-Valid-Until "false"')
    command = ["mmdebstrap", f"--arch={arch}", f"--variant={variant}", "--mode=root", f"--format={output_format}"]
    command += [f"--aptopt={option}" for option in options]
    if packages:
        command.append(f"--include={','.join(packages)}")
    command += [*extra, source.suite, target]
    if source.mirror is not None:
        command.append(source.mirror)
    return command


def host_apt_settings() -> dict[str, str]:
    """Proxy and CA settings in this host's apt configuration, which mmdebstrap does not read."""
    if shutil.which("apt-config") is None:
        return {}
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False).stdout
    return parse_apt_settings(dump)


def parse_apt_settings(dump: str) -> dict[str, str]:
    """The proxy and CA settings in the output of `apt-config dump`."""
    found = re.findall(r'^(\S+) "(.*)";$', dump, flags=re.MULTILINE)
    return {key: value for key, value in found if key in _PROXY_KEYS and value}


def in_private_mounts(command: Sequence[str], scratch: Path, *, in_memory: bool) -> list[str]:
    """The command in a mount namespace of its own, so that no mount outlives it even after kill -9.

    With `in_memory`, `scratch` is a tmpfs inside the namespace, which vanishes with it. When this process dies, the
    shell gets SIGTERM and passes it on to its process group (which has to be its own): mmdebstrap's first process
    ignores it, its children tidy up on it. What is left after 20 s is killed.
    """
    prepare = f'mount -t tmpfs -o mode=755 tmpfs "{scratch}" || exit\n' if in_memory else ""
    return [
        "setpriv",
        "--pdeathsig=TERM",
        "unshare",
        "--mount",
        "--propagation=private",
        "sh",
        "-c",
        prepare + _AND_ITS_GROUP,
        "sh",
        *command,
    ]


def memory_is_ample(meminfo: str) -> bool:
    """Whether the root filesystem can be put together in memory, from the text of /proc/meminfo."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo, flags=re.MULTILINE)
    return match is not None and int(match.group(1)) * 1024 >= TMPFS_NEEDS_BYTES


def run(
    command: Sequence[str],
    *,
    phase: str,
    progress: Progress,
    log: IO[str],
    scratch: Path,
    env: Mapping[str, str] | None = None,
    sink: Callable[[IO[bytes]], object] | None = None,
    in_memory: bool = True,
) -> list[str]:
    """Run mmdebstrap to its end and return its lines. With `sink`, standard output is handed to it as a binary stream.

    `in_memory` allows its scratch space to be a tmpfs where memory is ample.

    Raises one of the family's errors, see `explain`. Its processes are gone afterwards, after Ctrl-C too.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    in_memory = in_memory and memory_is_ample(Path("/proc/meminfo").read_text())
    environment = {**os.environ, "TMPDIR": str(scratch), "LC_ALL": "C.UTF-8", **(env or {})}
    # Hooks start programs of the twin by name; on the host the folder does not exist.
    environment["PATH"] = f"{TWIN_PATH}:" + environment.get("PATH", "") + ":/usr/sbin:/usr/bin:/sbin:/bin"
    log.write(f"$ {' '.join(command)}\n")
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        in_private_mounts(command, scratch, in_memory=in_memory),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if sink else write_end,
        stderr=write_end,
        start_new_session=True,
    )
    os.close(write_end)
    lines: deque[str] = deque(maxlen=20000)

    def read() -> None:
        for line in _lines(read_end):
            lines.append(line)
            log.write(line + "\n")
            log.flush()
            progress(phase, line)

    try:
        if sink is None:
            read()
        else:
            reader = threading.Thread(target=read, daemon=True)
            reader.start()
            assert process.stdout is not None
            sink(process.stdout)
            reader.join()
        code = process.wait()
    except BaseException:
        _end(process)
        raise
    if code != 0:
        raise explain(list(lines), where=log.name)
    return list(lines)


def explain(lines: Sequence[str], where: str) -> RvvbenchError:
    """The error that the output of a failed mmdebstrap means."""
    text = "\n".join(lines)
    if "No space left on device" in text:
        return EnvironmentLacks(
            "no space left while building the image", where=where, mend="free 8 GB, or set RVVBENCH_HOME"
        )
    if "is expired" in text and "Release file" in text:
        return ExpiredRelease(
            "the suite's Release file is past its Valid-Until date, so nothing vouches that it is current",
            where=where,
            mend="try later, or build with --accept-expired (the image's provenance will say so)",
        )
    missing = re.search(
        r"(?:Unable to locate package|no installation candidate for|Package '?)\s*([a-z0-9][a-z0-9+.-]+)", text
    )
    if missing and ("Unable to locate package" in text or "has no installation candidate" in text):
        return MissingPackage(missing.group(1), where)
    network = re.search(
        r".*(Temporary failure resolving|Could not resolve|Unable to connect|Could not connect|Connection refused"
        r"|Network is unreachable|Connection timed out|Connection failed).*",
        text,
    )
    if network:
        return EnvironmentLacks(
            f"the package mirror cannot be reached: {network.group(0).strip()}",
            where=where,
            mend="check the network and the proxy settings (http_proxy), then run the same command again",
        )
    errors = [line for line in lines if line.startswith(("E: ", "mount: ", "dpkg: error"))] or list(lines[-1:])
    said = errors[0].removeprefix("E: ") if errors else "it said nothing"
    return RvvbenchError(f"mmdebstrap failed: {said[:200]}", where=where, mend="read the log")


class ExpiredRelease(EnvironmentLacks):
    """The suite's Release file is past its Valid-Until date."""


class MissingPackage(ManifestError):
    """The suite has no package of a name that the recipe wants."""

    def __init__(self, package: str, where: str) -> None:
        super().__init__(f"the suite has no package {package}", where=where, mend="correct the recipe")
        self.package = package


def _lines(descriptor: int) -> Iterator[str]:
    with os.fdopen(descriptor, "r", encoding="utf-8", errors="replace", newline=None) as stream:
        for line in stream:
            yield line.rstrip("\n")


def _end(process: subprocess.Popen[bytes]) -> None:
    """mmdebstrap tidies up on SIGTERM; what ignores that is killed."""
    for kind, patience_s in ((signal.SIGTERM, 20.0), (signal.SIGKILL, 10.0)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, kind)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=patience_s)
            return
