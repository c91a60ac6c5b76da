"""`override` for every supported Python: the standard library has it since 3.12."""

import sys

if sys.version_info >= (3, 12):
    from typing import override as override
else:
    from typing_extensions import override as override
