"""The launcher of this tree, and its modules: `from launch.MODULE import ...` works after this import."""

import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
LAUNCH = SCRIPTS / "tundish-launch"
sys.path.insert(0, str(SCRIPTS))
