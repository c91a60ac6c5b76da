"""R^T R in single precision without the interpreter's lock, which scipy's own function holds.

`fits` finds a product that is wrong because the library's routine is.
"""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas

from ibukit._ground.arguments import Floats
from ibukit._ground.single_precision import agrees, probe

Singles = NDArray[np.float32]

_INT, _SINGLE, _ARRAY = (
    ctypes.POINTER(ctypes.c_int),
    ctypes.POINTER(ctypes.c_float),
    ctypes.c_void_p,
)
# Prototypes of our own: to set argument types in ctypes.pythonapi would change them for everybody.
_NAME_OF = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_POINTER_IN = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _address(capsule: object) -> int:
    """Address of a BLAS function that scipy exports to Cython."""
    return int(_POINTER_IN(capsule, _NAME_OF(capsule)))


# ctypes releases the lock during a call. The arguments are: triangle, transposed or not, k, n,
# factor, matrix and its stride, factor of the result, result and its stride.
_SSYRK = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_char_p, _INT, _INT, _SINGLE, _ARRAY, _INT, _SINGLE, _ARRAY, _INT
)(_address(cython_blas.__pyx_capi__["ssyrk"]))


def lower_product(rows: Singles) -> Singles:
    """Lower triangle of R^T R, shape (k, k), with zeros above it; R has shape (n, k).

    >>> lower_product(np.array([[1, 2], [0, 1]], dtype=np.float32))
    array([[1., 0.],
           [2., 5.]], dtype=float32)
    """
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    # BLAS reads Fortran order, in which the array of R in C order is R^T.
    n, k = (ctypes.c_int(length) for length in rows.shape)
    product = np.zeros((k.value, k.value), dtype=np.float32, order="F")
    stride, one, zero = ctypes.c_int(max(1, k.value)), ctypes.c_float(1), ctypes.c_float(0)
    _SSYRK(b"L", b"N", k, n, one, rows.ctypes.data, stride, zero, product.ctypes.data, stride)
    return product


def fits(product: Singles, image: Floats) -> bool:
    """True if R^T R, given by its lower triangle, maps the `probe` x to `image`.

    The image is R^T (R x) in double precision, so a wrong product does not fit.
    """
    x = probe(len(product))
    # A sum that overflows is not finite, so such a product does not fit.
    with np.errstate(all="ignore"):
        return agrees(product @ x + x @ product - product.diagonal() * x, image)
