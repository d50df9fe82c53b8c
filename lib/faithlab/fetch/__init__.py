"""How files come here and are kept: sources and their archives, checksums, the cache, where stored weights are from."""

from faithlab import require

require("study", "filelock", "platformdirs", "pooch")
