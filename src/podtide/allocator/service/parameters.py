"""What may stand in paths and queries. Litestar reads its own description of a parameter, not msgspec's of a type."""

from typing import Annotated, TypeAlias

from litestar.params import PathParameter, QueryParameter

from podtide.allocator.limits import LONGEST_NAME, LONGEST_PAGE, LONGEST_REASON
from podtide.allocator.subnets import UsageStep
from podtide.allocator.wire import END_OF_TIME_SECONDS, NAME_PATTERN

PathName: TypeAlias = Annotated[str, PathParameter(pattern=NAME_PATTERN, max_length=LONGEST_NAME)]
QueryName: TypeAlias = Annotated[str | None, QueryParameter(pattern=NAME_PATTERN, max_length=LONGEST_NAME)]
Moment: TypeAlias = Annotated[
    float, QueryParameter(ge=0, le=END_OF_TIME_SECONDS, description="Seconds since 1970.")
]
Step: TypeAlias = Annotated[UsageStep, QueryParameter(description="How long a row's time is.")]
Flag: TypeAlias = Annotated[bool, QueryParameter()]
QueryCidr: TypeAlias = Annotated[
    str, QueryParameter(min_length=1, max_length=64, description="A CIDR of the subnet.")
]
Reason: TypeAlias = Annotated[str, QueryParameter(max_length=LONGEST_REASON, description="Why, for the log.")]
Limit: TypeAlias = Annotated[int, QueryParameter(ge=1, le=LONGEST_PAGE)]
More: TypeAlias = Annotated[
    str, QueryParameter(max_length=1_000, description="The `more` of the page before.")
]
