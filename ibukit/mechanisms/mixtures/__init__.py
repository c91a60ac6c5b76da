"""Mixtures of mechanisms: chosen by the users, or averaged if nobody knows which was used."""
