"""How long the allocator lets addresses rest, and claims stand."""

from msgspec import Struct

from podtide.runtime.settings import Settings

_DEFAULTS = Settings()


class StoreRules(Struct, frozen=True, kw_only=True):
    """Times in seconds."""

    cooldown_seconds: float = _DEFAULTS.cooldown_seconds
    quarantine_seconds: float = _DEFAULTS.quarantine_seconds
    claim_seconds: float = 600.0
    """A claim that no PUT renewed for so long holds nobody up."""
