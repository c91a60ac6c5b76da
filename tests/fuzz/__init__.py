"""Every public function and class on every kind of wrong input:
`make fuzz`, by tests/house/test_fuzz.py.
"""
