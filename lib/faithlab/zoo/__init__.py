"""What the study explains: data sets, networks, and trained weights kept by their full recipe."""

from faithlab import require

require("explainers,study", "deel", "filelock", "PIL", "platformdirs", "pooch", "safetensors", "torchvision")
