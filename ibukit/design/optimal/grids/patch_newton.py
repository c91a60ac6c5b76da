"""Newton system of the interior-point method of `patch_relaxation`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ibukit._ground.arguments import Floats
from ibukit.design.optimal.grids.patch_forms import (
    FormProducts,
    PatchForm,
    PatchFormStep,
    SummedForm,
)
from ibukit.design.optimal.whitening import Pairs


class PatchNewtonSystem(NamedTuple):
    """Linear equations of a step, in coordinates in which J = 1.

    The change of J is eliminated through its diagonal curvature, so the matrix is one of the forms
    and multipliers alone: jacobian (curvature of the criterion)^-1 jacobian^T plus the Hessians of
    the barriers, a block for each patch. It is factored once for predictor and corrector.
    """

    parts: list[PatchForm]
    products: FormProducts
    second: list[Floats]
    factor: tuple[Floats, bool]
    pairs: Pairs
    jacobian: Floats
    curvature: Floats
    gradient_residual: Floats

    @staticmethod
    def at(
        parts: list[PatchForm],
        products: FormProducts,
        local: list[Floats],
        pairs: Pairs,
        gradient: Floats,
    ) -> PatchNewtonSystem:
        """Factor the matrix at the current point."""
        curvature = np.sqrt(gradient[pairs.first] + gradient[pairs.second])
        blocks = list(_moments_jacobian(parts, local, pairs))
        jacobian = np.vstack([*blocks, pairs.products(products.first, products.second)]) / curvature
        # Eliminating J's change leaves jacobian H^-1 jacobian^T, with H diagonal in whitened
        # coordinates; each patch adds its barrier's Hessian on its own block.
        matrix = jacobian @ jacobian.T
        place = 0
        for part in parts:
            own = part.barrier()
            matrix[place : place + len(own), place : place + len(own)] += own
            place += len(own)
        rest = np.arange(place, len(matrix))
        matrix[rest, rest] += products.slacks / products.shares
        second = []
        for part, f in zip(parts, local, strict=True):
            # The second moments of a patch at J = I: f f^T, plus 1 for the squared mean.
            moment = f @ f.T
            moment[0, 0] += 1
            second.append(part.patch.pairs.of_matrix(moment))
        # Difference between the gradient at J and A, which is 0 at the optimum.
        gradient_residual = pairs.of_matrix(np.diag(gradient)) - pairs.of_matrix(
            SummedForm.of(parts, products, local).quadratic
        )
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        return PatchNewtonSystem(
            parts, products, second, factor, pairs, jacobian, curvature, gradient_residual
        )

    def step(self, target: float) -> tuple[list[PatchFormStep], Floats]:
        """Changes towards products equal to `target`, and that of J."""
        residuals = [part.pull(target) - x for part, x in zip(self.parts, self.second, strict=True)]
        residuals.append(target / self.products.shares - self.products.values())
        solution: Floats = cho_solve(
            self.factor,
            np.concatenate(residuals) - self.jacobian @ (self.gradient_residual / self.curvature),
            check_finite=False,
        )
        steps, place = [], 0
        for part in self.parts:
            numbers = solution[place : place + len(part.numbers)]
            place += len(numbers)
            steps.append(part.step(numbers, target))
        numbers = solution[place:]
        shares, slacks = self.products.shares, self.products.slacks
        steps.append(
            PatchFormStep(
                numbers,
                target / shares - slacks - slacks / shares * numbers,
                numbers,
                numbers,
                numbers,
            )
        )
        change = (
            self.gradient_residual / self.curvature**2 + solution @ self.jacobian / self.curvature
        )
        return steps, self.pairs.matrix(change)


def _moments_jacobian(
    parts: list[PatchForm], local: list[Floats], pairs: Pairs
) -> Iterator[Floats]:
    """Derivative of each patch's second moments by J."""
    for part, f in zip(parts, local, strict=True):
        own = part.patch.pairs
        yield pairs.products(f[own.first], f[own.second]) * (2 * own.size)[:, None]
