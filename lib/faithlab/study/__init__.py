"""The study: what turns the library into a book. Notebooks and the pipeline use it, the rooms below do not."""

from faithlab import require

require("explainers,study", "matplotlib", "platformdirs", "seaborn", "yaml")
