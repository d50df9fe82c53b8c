"""What the whole suite shares: reproducible property tests, and the skipping of tests that need a CUDA device."""

import pytest
import torch
from hypothesis import settings

# A busy machine must not fail a property, and a failure must come back on the next run.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("suite")

# The suite's models are tiny: threads only wait for each other, and for whatever else runs on the machine.
torch.set_num_threads(1)


def pytest_collection_modifyitems(items):
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
