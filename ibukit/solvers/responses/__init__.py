"""Maximisers under k-ary randomised response: one mechanism in closed form, and pools of them."""
