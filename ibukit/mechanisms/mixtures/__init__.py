"""Mixtures of mechanisms: chosen by the users, or averaged where nobody knows which was used."""
