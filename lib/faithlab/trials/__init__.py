"""Trials: questions to which the right answer is known, one file a question, put to any metric.

Each takes metrics, a `faithlab.subject.Subject` and attributions, and returns the long table.
"""
