"""Measurements and figures: the paper's, and our own."""
