"""`override` and `TypeVar` for every supported Python, as Python 3.12 and 3.13 have them."""

import sys

if sys.version_info >= (3, 12):
    from typing import override as override
else:
    from typing_extensions import override as override

# One that has a default, so that nobody has to write `Dataset[Alphabet]` for a `Dataset`.
if sys.version_info >= (3, 13):
    from typing import TypeVar as TypeVar
else:
    from typing_extensions import TypeVar as TypeVar
