"""Tests of the filter and the objective."""
