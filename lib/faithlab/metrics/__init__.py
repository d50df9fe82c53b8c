"""Metrics: arithmetic on the answers of `faithlab.engine`. They know neither models nor explainers nor data sets."""
