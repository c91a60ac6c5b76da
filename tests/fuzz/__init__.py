"""Every public function and class on every kind of wrong input; `make fuzz` runs it, tests/test_fuzz.py says how."""
