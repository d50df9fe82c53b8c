"""Networks: architectures, training by recipe, weights that ship, and those that others trained."""

from faithlab import require

require("explainers,study", "deel", "safetensors", "torchvision")
