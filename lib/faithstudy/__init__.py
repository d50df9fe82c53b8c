"""The study: data, networks, trials and claims on `faithlab`, and what turns notebooks into a book."""

from faithlab import require

require("explainers,study", "deel", "filelock", "matplotlib", "PIL", "platformdirs", "pooch", "safetensors")
require("explainers,study", "seaborn", "torchvision", "yaml")
