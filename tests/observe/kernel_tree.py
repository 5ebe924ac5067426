"""The files of a kernel, made up."""

from __future__ import annotations

from pathlib import Path

from rvvbench.observe.kernel_files import Roots

# As a BPI-F3 shows them: two clusters under one policy each, one passive trip point, a cooling device that slows CPUs.
BOARD = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Spacemit(R) X60\nisa\t\t: rv64imafdcv_zvfh\nmmu\t\t: sv39\n",
    "proc/meminfo": "MemTotal:       16266240 kB\nMemAvailable:   12000000 kB\nSwapTotal:             0 kB\n",
    "proc/loadavg": "0.52 0.58 0.59 1/389 12345\n",
    "proc/vmstat": "pgpgin 5\npswpin 10\npswpout 20\n",
    "proc/sys/kernel/osrelease": "6.6.63\n",
    "proc/device-tree/model": "Banana Pi BPI-F3\0",
    "proc/self/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
    "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 total=1000\nfull avg10=0.00 avg60=0.00 total=0\n",
    "sys/devices/system/cpu/online": "0-7\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq": "1600000\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq": "1600000\n",
    "sys/devices/system/cpu/cpufreq/policy0/stats/time_in_state": "614400 100\n1600000 900\n",
    "sys/devices/system/cpu/cpufreq/policy4/scaling_governor": "schedutil\n",
    "sys/devices/system/cpu/cpufreq/policy4/cpuinfo_max_freq": "1600000\n",
    "sys/devices/system/cpu/cpufreq/policy4/stats/time_in_state": "614400 0\n1600000 50\n",
    "sys/class/thermal/thermal_zone0/temp": "51000\n",
    "sys/class/thermal/thermal_zone0/trip_point_0_type": "passive\n",
    "sys/class/thermal/thermal_zone0/trip_point_0_temp": "75000\n",
    "sys/class/thermal/thermal_zone0/trip_point_1_type": "critical\n",
    "sys/class/thermal/thermal_zone0/trip_point_1_temp": "115000\n",
    "sys/class/thermal/thermal_zone0/trip_point_2_type": "active\n",
    "sys/class/thermal/thermal_zone0/trip_point_2_temp": "45000\n",
    "sys/class/thermal/cooling_device0/type": "cpufreq-cpu0\n",
    "sys/class/thermal/cooling_device0/cur_state": "0\n",
    "sys/class/thermal/cooling_device0/max_state": "4\n",
    "etc/os-release": 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 13 (trixie)"\n',
}


def write_tree(root: Path, files: dict[str, str]) -> Roots:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Roots(root / "proc", root / "sys", root / "etc")


class Tree:
    """Kernel files that a test can change."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.roots = write_tree(root, BOARD)

    def write(self, name: str, text: str) -> None:
        write_tree(self.root, {name: text})
