"""Explanation faithfulness on one engine: masks, readouts and metrics that agree on what they measure."""
