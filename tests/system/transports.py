"""The ways in which Open MPI may carry messages, each asked for as a site would."""

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path

from nodes_rig import MPIRUN
from rig import DEADLINE_S, TUNDISH

INIT = "import ctypes, sys; mpi = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)\n" \
    "print('joined' if mpi.MPI_Init(None, None) == 0 else '', flush=True); mpi.MPI_Finalize()"


@dataclasses.dataclass
class Transport:
    options: tuple
    environment: dict = dataclasses.field(default_factory=dict)

    def why_not(self, environment):
        """A reason why this machine's MPI does not have it, or None."""
        if shutil.which("mpirun") is None:
            return "there is no mpirun"
        module = Path(TUNDISH).parent / "tundish-mpi.so"
        tried = subprocess.run(
            [*MPIRUN, *self.options, "-n", "2", sys.executable, "-c", INIT, str(module)],
            env={**environment, **self.environment}, capture_output=True, text=True, timeout=DEADLINE_S)
        # mpirun, told to put up with failures, ends well in any case.
        return None if tried.stdout.count("joined") == 2 else tried.stderr + tried.stdout


def mca(**settings):
    return tuple(word for name, value in settings.items() for word in ("--mca", name, value))


def transports(device):
    """Over that network device."""
    return {
        "tcp": Transport(mca(pml="ob1", btl="tcp,self", btl_tcp_if_include=device)),
        # Of itself Open MPI takes UCX only where it finds InfiniBand or the like.
        "ucx": Transport(mca(pml="ucx", opal_common_ucx_tls="any", opal_common_ucx_devices="any"),
                         {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": device}),
        # And leaves these of libfabric out.
        "ofi": Transport(mca(pml="cm", mtl="ofi", mtl_ofi_provider_include="tcp;ofi_rxm"),
                         {"FI_TCP_IFACE": device}),
        "sockets": Transport(mca(pml="cm", mtl="ofi", mtl_ofi_provider_include="sockets"),
                             {"FI_SOCKETS_IFACE": device} if device != "lo" else {}),
    }
