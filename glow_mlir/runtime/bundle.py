"""What the files of a bundle are called and have in common, and a bundle as a session, without the compiler."""

from __future__ import annotations

ABI = 1
"""The version of how bundles are called, and of what their files hold."""

SEAL_BYTES = 16
"""What is behind the constants of a bundle: four words, the third of which is the version of the bundle."""

SEAL_VERSION = 8
"""Where in these the version is."""

ENTRY_SUFFIX = "_call"
"""What is behind the name of an entry where it is called as a session does."""

MANIFEST_SUFFIX = ".json"
WEIGHTS_SUFFIX = ".weights.bin"
