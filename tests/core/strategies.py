"""What the laws of the core range over."""

from fractions import Fraction

from hypothesis import strategies as st

from podtide.core.subnet.exhaustion import Thresholds
from podtide.core.subnet.scaler import Scaler

demands = st.integers(0, 2000)
primaries = st.integers(0, 4)
fractions = st.builds(Fraction, st.integers(0, 400), st.integers(1, 100))
batches = st.integers(1, 300)
generous = st.just(10**9)
"""A maximum that never caps."""

uncapped_scalers = st.builds(Scaler, batch=batches, buffer=fractions, max_ips=generous)
scalers = st.builds(Scaler, batch=batches, buffer=fractions, max_ips=st.integers(1, 500))


@st.composite
def thresholds(draw: st.DrawFn) -> Thresholds:
    lower, upper = sorted(draw(st.lists(st.integers(1, 99), min_size=2, max_size=2, unique=True)))
    return Thresholds(Fraction(lower, 100), Fraction(upper, 100))
