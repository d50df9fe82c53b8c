"""Networks: architectures, training by recipe, weights that ship, and those that others trained."""
