"""The study on `faithlab`: data, networks, meta-evaluation tests, claims, and what turns notebooks into a book."""

from faithlab import require

require("explainers,study", "filelock", "matplotlib", "PIL", "platformdirs", "pooch", "seaborn", "yaml")
