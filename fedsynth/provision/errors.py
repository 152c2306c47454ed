"""What can be wrong with a kit. Nothing of a kit that is refused is applied.

InputError
└── KitRefused      it holds what it may not hold, is not whole, or is not what people compared
"""

from __future__ import annotations

from synth.errors import InputError


class KitRefused(InputError):
    code = "kit-refused"
