"""What the study explains: data sets, networks, and trained weights kept by their full recipe."""
