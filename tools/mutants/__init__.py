"""Deliberately broken variants of podtide, by which the simulation shows that it would notice."""
