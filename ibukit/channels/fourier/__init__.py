"""Noise on a plane by Fourier transforms: convolutions, and products with its normal equations."""
