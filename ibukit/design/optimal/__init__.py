"""The private mechanism with the smallest asymptotic error, with a certified gap."""
