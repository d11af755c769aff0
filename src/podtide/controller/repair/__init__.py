"""Leak repair: what secondary networks hold for pods that are gone is taken back, and books that disagree are mended."""
